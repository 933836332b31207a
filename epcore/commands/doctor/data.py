"""Data sets: built, verified, to be downloaded or got by hand; and the room for downloads."""

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from epcore.commands.doctor.finding import Finding
from epcore.data.config import Split
from epcore.data.datasets import GlyphPictures, OfficialData, OwnData
from epcore.data.fetch import find
from epcore.data.sources import Sources
from epcore.errors import UserError
from epcore.plan import Plan, paths

if TYPE_CHECKING:
    from epcore.data.contents import Contents

GIB = 2**30
RESULTS = Path("results")


def check_data(plan: Plan, datasets: list[str], root: Path) -> list[Finding]:
    """A finding for each data set."""
    findings = []
    for name in datasets:
        store = _store(plan, name)
        findings.append(
            _built(plan, name, store) if store.is_file() else _sources(plan, name, root)
        )
    return findings


def check_disk(plan: Plan, datasets: list[str], root: Path) -> list[Finding]:
    """Whether there is room for what is missing: files as published, and packed data sets."""
    files, stores = missing(plan, datasets, root), packed(plan, datasets)
    place, results = _nearest(root), _nearest(RESULTS)
    shared = _sum(files) if place.stat().st_dev == results.stat().st_dev else 0
    data_root = "make room, or set data_root in config/config.yaml to a folder on another disk"
    return [
        _room("disk", root, files, data_root),
        _room("disk, packed", RESULTS, stores, "make room, or work on another disk", shared),
    ]


def _room(
    what: str, folder: Path, sizes: Mapping[str, int | None], remedy: str, shared: int = 0
) -> Finding:
    """Whether a folder's disk has room for sizes, and for what else will be put on it."""
    free, needed = shutil.disk_usage(_nearest(folder)).free, _sum(sizes)
    sentence = f"{free / GIB:,.1f} GiB free below {folder}, {needed / GIB:,.1f} to be put there"
    if shared:
        sentence += f" beside those {shared / GIB:,.1f} on the same disk"
    if unknown := [name for name, size in sizes.items() if size is None]:
        names = ", ".join([*unknown[:3], *(["..."] if len(unknown) > 3 else [])])
        sentence += f", not counting {len(unknown)} of unknown size ({names})"
    return Finding(what, sentence, remedy if free < needed + shared else "")


def _sum(sizes: Mapping[str, int | None]) -> int:
    return sum(size or 0 for size in sizes.values())


def _nearest(folder: Path) -> Path:
    """The folder, or the one that it will be made in."""
    return next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())


def missing(plan: Plan, datasets: list[str], root: Path) -> dict[str, int | None]:
    """The bytes of each source file that is not here, if known, for data sets that are not built.

    Data sets share files: each counts once.
    """
    sizes = {}
    for name in datasets:
        settings = plan.registry.datasets[name]
        if isinstance(settings, OfficialData) and not _store(plan, name).is_file():
            for source in settings.sources:
                for key, file in plan.registry.sources[source].files.items():
                    if not _verified(plan, source, key) and find(file, root) is None:
                        sizes[file.path] = file.size
    return sizes


def packed(plan: Plan, datasets: list[str]) -> dict[str, int | None]:
    """Bytes of the pixels of each data set that is not built; None if its images are not counted.

    Without those that are drawn, which are small.
    """
    sizes: dict[str, int | None] = {}
    for name in datasets:
        settings = plan.registry.datasets[name]
        if isinstance(settings, GlyphPictures) or _store(plan, name).is_file():
            continue
        size = 3 * settings.image_size**2
        images = settings.expected.images if isinstance(settings, OfficialData) else None
        sizes[name] = size * (images.base + images.val + images.novel) if images else None
    return sizes


def _store(plan: Plan, name: str) -> Path:
    return Path(paths.STORE.format(scale=plan.registry.scale_name, dataset=name))


def own_and_built(plan: Plan) -> list[str]:
    """The user's own data sets of the scale that have been built."""
    datasets = plan.registry.datasets.items()
    own = [name for name, settings in datasets if isinstance(settings, OwnData)]
    return [name for name in own if _store(plan, name).is_file()]


def _built(plan: Plan, name: str, store: Path) -> Finding:
    """What a built data set has; a user's own is compared with what its path holds now."""
    what, settings = f"data {name}", plan.registry.datasets[name]
    own = isinstance(settings, OwnData) and Path(settings.path).exists()
    try:
        facts = json.loads(store.read_text(encoding="utf-8"))
        classes = len(facts["classes"])
        # Of own images, those too that were left out because another split has them.
        images = (
            facts["shape"][0] + sum(facts["repeated_images"]["left_out"].values()) if own else 0
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return Finding(what, f"{store} is damaged", "delete it and run the same command again")
    if isinstance(settings, OwnData) and own:
        finding, there = _own(plan, name, settings)
        if finding.remedy:
            return finding
        if there != images:
            sentence = f"built of {images:,} images, {settings.path} has {there:,} now"
            return Finding(what, sentence, "run Snakemake once with --forcerun data")
    return Finding(what, f"built, {classes} classes")


def _sources(plan: Plan, name: str, root: Path) -> Finding:
    """What there is of the files of a data set that is not built."""
    settings, what = plan.registry.datasets[name], f"data {name}"
    if isinstance(settings, OwnData):
        return _own(plan, name, settings)[0]
    if not isinstance(settings, OfficialData):
        return Finding(what, "is made when it is needed, without a download")
    verified, present = 0, 0
    download: list[str] = []
    hand: list[str] = []
    for source in settings.sources:
        for key, file in plan.registry.sources[source].files.items():
            if _verified(plan, source, key):
                verified += 1
            elif find(file, root) is not None:
                present += 1
            else:
                (download if file.urls else hand).append(source)
    sentence = ", ".join(
        text
        for count, text in (
            (verified, f"{verified} files verified"),
            (present, f"{present} files found, to be verified"),
            (len(download), f"{len(download)} files to download"),
            (len(hand), f"{len(hand)} files to be got by hand"),
        )
        if count
    )
    if hand:
        names = " ".join(dict.fromkeys(hand))
        return Finding(what, sentence, f"epcore fetch {names} says the steps")
    if download:
        return Finding(what, f"{sentence}; Snakemake does it, here and not on compute nodes")
    return Finding(what, sentence)


def _own(plan: Plan, name: str, settings: OwnData) -> tuple[Finding, int]:
    """What the builder says of a user's own data, before it decodes pictures, and the episodes.

    With the number of images, 0 if something is wrong.
    """
    what = f"data {name}"
    if not Path(settings.path).exists():
        remedy = f"put your images there, or correct path of {name}"
        return Finding(what, f"{settings.path} does not exist", remedy), 0
    from epcore.data.build import contents_of
    from epcore.data.contents import check_classes

    try:
        contents = contents_of(settings, Sources.read([]))
        check_classes(name, contents.classes, contents.labels)
        for split, numbers in _episodes(plan, name):
            _draw(contents, split, numbers)
        _check_batch(plan, name, contents)
    except UserError as error:
        sentence, _, remedy = str(error).rpartition("; ")
        remedy, sentence = (
            (remedy, sentence) if sentence else (f"mend it in {settings.path}", remedy)
        )
        return Finding(what, sentence, remedy), 0
    images = len(contents.labels)
    sentence = f"{images:,} images of {len(contents.classes)} classes in {settings.path}"
    return Finding(what, sentence), images


def _episodes(plan: Plan, dataset: str) -> Iterator[tuple[Split, dict[str, Any]]]:
    """Split and numbers of its tests, validations and fine-tunings: one episode of each kind.

    Of unbalanced queries all episodes, as they will be drawn: each draws until its classes have
    images enough, and where they have few, one episode says nothing about the next.
    """
    runs = [run for run in plan.tested.runs if run.dataset == dataset]
    tested = dict.fromkeys(run.protocol for run in runs)
    shots = [plan.registry.protocols[protocol].checkpoint_shot for protocol in tested]
    names = [f"val-5way-{shot}shot" for shot in (5, *shots)]
    names += [*tested, *filter(None, map(plan.runs.chosen_on, runs))]
    for name in dict.fromkeys(names):
        episodes = plan.data.episodes(name)
        numbers = episodes.model_dump(exclude={"stage_version", "split"})
        yield episodes.split, numbers | ({} if episodes.dirichlet else {"episodes": 1})
    for network in plan.tested.checkpoints:
        if network.dataset == dataset and network.shot:
            stage = plan.runs.finetune(network.backbone, network.recipe, network.seed, network.shot)
            way, queries = stage.finetuning.way, stage.finetuning.queries
            numbers = {"way": way, "shot": stage.shot, "queries": queries}
            yield "base", numbers | {"episodes": 1, "seed": 0}


def _draw(contents: "Contents", split: Split, numbers: dict[str, Any]) -> None:
    """Raises `UserError` if no such episodes can be drawn from the classes of the split."""
    from epcore.data.episodes import SETTINGS, Pool, sample

    names = {n: c.name for n, c in enumerate(contents.classes) if c.split == split}
    rows = tuple(np.flatnonzero(contents.labels == label) for label in names)
    pool = Pool(f"split {split}", tuple(names.values()), rows, settings=SETTINGS[split])
    sample(pool, **numbers)


def _check_batch(plan: Plan, dataset: str, contents: "Contents") -> None:
    """Raises `UserError` if the base classes do not fill a batch of every pretraining."""
    base = sum(contents.class_of(row).split == "base" for row in range(len(contents.labels)))
    pretrainings = [
        plan.runs.pretraining(dataset, network.backbone, network.recipe)
        for network in plan.tested.checkpoints
        if network.dataset == dataset
    ]
    largest = max((pretraining.batch_size for pretraining in pretrainings), default=0)
    if base < largest:
        raise UserError(
            f"its {base} base images do not fill one batch of {largest}; add images, or set "
            f"`pretraining: {{batch_size: {base}}}` or less under `recipe` of the scale"
        )


def _verified(plan: Plan, source: str, key: str) -> bool:
    """Whether `epcore fetch` found the file to be the published one, and it has not changed."""
    receipt = Path(paths.RECEIPT.format(scale=plan.registry.scale_name, source=source))
    if not receipt.is_file():
        return False
    try:
        Sources.read([receipt]).path(source, key)
    except UserError:
        return False
    return True
