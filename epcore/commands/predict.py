"""Classes of images from a few labeled ones: a CSV, and a page to look at."""

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from PIL import Image

from epcore.classifiers import FewShotClassifier
from epcore.commands.classify import methods_of
from epcore.commands.embed_folder import labeled_pictures, network_of
from epcore.commands.labeled import Labeled
from epcore.data.builders.folder import pictures_in
from epcore.data.datasets import Pixels
from epcore.data.pictures import decode
from epcore.errors import UserError
from epcore.files import write_text
from epcore.propagation import EmbeddingPropagation
from epcore.report.numbers import write_table
from epcore.report.writer import fill

SHOWN = 12  # most and least certain images on the page
THUMBNAIL = 112  # pixels
UNLABELED = ("", "-1")  # labels of rows whose class is asked for


def predict(
    classifier: str, support: np.ndarray, labels: np.ndarray, queries: np.ndarray, settings: Path
) -> pd.DataFrame:
    """The most likely class of each query feature `(Q, D)`, and its probability.

    Raises:
        UserError: if the classifier is unknown or cannot do with these features.
    """
    inference = methods_of([classifier], settings)[classifier]
    if inference.classifier.centers_on_base or inference.classifier.needs.base_weights:
        raise UserError(
            f"--classifier {classifier}: it takes the mean feature of the base images or weights "
            "of base classes, which predict does not have",
            "choose another classifier",
        )
    inference.check(torch.from_numpy(np.concatenate([support, queries])), None)
    propagate = (
        inference.propagate if isinstance(inference.propagate, EmbeddingPropagation) else None
    )
    model = FewShotClassifier(inference.classifier, propagate)
    try:
        probabilities = model.fit(support, labels).predict_proba(queries)
    except ValueError as error:
        raise UserError(str(error)) from None
    classes = model.classes_[probabilities.argmax(axis=1)]
    return pd.DataFrame({"class": classes, "probability": probabilities.max(axis=1)})


def page_of(predictions: pd.DataFrame, classifier: str, examples: int) -> str:
    """A page with the most and the least certain images, and how often each class is predicted."""
    ordered = predictions.sort_values("probability", ascending=False, kind="stable")
    parts = {"Most certain": ordered.head(SHOWN), "Least certain": ordered.iloc[::-1].head(SHOWN)}
    return fill(
        "predictions.html",
        title=f"{len(predictions)} images classified by {classifier} from {examples} examples",
        counts=predictions["class"].value_counts().sort_index().to_dict(),
        parts={
            name: [{**line, "image": _thumbnail(line["file"])} for line in part.to_dict("records")]
            for name, part in parts.items()
        },
    )


def _thumbnail(file: str) -> str:
    """A picture as text that a page holds inside."""
    pixels = decode(Path(file).read_bytes(), file, THUMBNAIL, Pixels(), upright=True)
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, format="JPEG")
    return base64.b64encode(content.getvalue()).decode()


def run(
    support: Path | None,
    queries: Path | None,
    features: Path | None,
    classifier: str,
    out: Path,
    batch: int,
    settings: Path,
    **network: Any,
) -> None:
    """The command `predict`: a CSV of file, class and probability, and a page beside it.

    Raises:
        UserError: if a folder, picture or file cannot be read, or there are fewer than two classes.
    """
    if features is not None:
        if support is not None or queries is not None:
            raise UserError("--features takes the place of --support and --queries", "leave it out")
        _of_features(features, classifier, out, settings)
        return
    if support is None or queries is None or network["backbone"] is None:
        raise UserError(
            "predict takes --support, --queries and --backbone",
            "or --features of images that are embedded already",
        )
    classes, pictures = labeled_pictures(support), pictures_in(queries)
    if len(classes) < 2:
        raise UserError(f"{support} has one class", "put a folder for each class there")
    if not pictures:
        raise UserError(f"{queries} has no pictures", "put those there that have no class yet")
    examples = [path for files in classes.values() for path in files]
    labels = np.repeat(list(classes), [len(files) for files in classes.values()])
    trained = network_of(settings=settings, **network)
    values = trained.features([*examples, *pictures], batch)
    known, unknown = values[: len(examples)], values[len(examples) :]
    predictions = predict(classifier, known, labels, unknown, settings)
    predictions.insert(0, "file", list(map(str, pictures)))
    _write(predictions, out, labels)
    page = out.with_suffix(".html")
    write_text(page, page_of(predictions, classifier, len(examples)))
    print(f"{page}: the most and the least certain ones, for a browser")


def _of_features(path: Path, classifier: str, out: Path, settings: Path) -> None:
    """Predicts the rows of a file that have no label."""
    labeled = Labeled.load(path)
    labels = np.array(labeled.pool.classes)[labeled.features.labels]
    unknown = np.isin(labels, UNLABELED)
    if not unknown.any():
        raise UserError(
            f"{path}: every row has a label", "label those to be predicted '' or, in numbers, -1"
        )
    values, names = labeled.features.values, labels[~unknown]
    if len(np.unique(names)) < 2:
        raise UserError(f"{path} has fewer than two classes", "label images of two or more")
    predictions = predict(classifier, values[~unknown], names, values[unknown], settings)
    predictions.insert(0, "row", np.flatnonzero(unknown))
    _write(predictions, out, names)


def _write(predictions: pd.DataFrame, out: Path, labels: np.ndarray) -> None:
    write_table(predictions, out, "%.4f")
    classes = len(np.unique(labels))
    print(f"{out}: {len(predictions)} images in {classes} classes, from {len(labels)} examples")
