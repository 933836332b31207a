"""Few-shot classification of one's own features, with the habits of scikit-learn."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from epcore.classifiers.base import EpisodeClassifier
from epcore.classifiers.episodes import EpisodeBatch
from epcore.propagation import EmbeddingPropagation


class NotFittedError(ValueError, AttributeError):
    """A prediction is asked for before `fit`; scikit-learn's error of this name has these bases."""


class FewShotClassifier:
    """Classifies features with few labeled examples of each class.

    Args:
        classifier: how queries are classified, with its settings, such as `TIM()`.
        propagate: embedding propagation of the support, queries and unlabeled features together,
            before they are classified; None for the features as they are.
        random_state: seeds the random draws of classifiers that have some.

    Classes may have unequal numbers of examples, unless the classifier's `needs.equal_shots`
    says otherwise. Where the classifier is `transductive`, or embeddings are propagated, the
    prediction for a query depends on the queries that are given together with it. Features are
    moved to the device of the support.

    Example:
        >>> import torch
        >>> from epcore.classifiers import FewShotClassifier, Prototypes
        >>> support = torch.tensor([[0.0, 0.0], [1.0, 1.0], [0.9, 1.0]])
        >>> model = FewShotClassifier(Prototypes()).fit(support, ["cat", "dog", "dog"])
        >>> model.predict(torch.tensor([[0.1, 0.0], [0.8, 0.9]])).tolist()
        ['cat', 'dog']

    Attributes:
        classes_: the labels in ascending order, after `fit`.
    """

    def __init__(
        self,
        classifier: EpisodeClassifier,
        propagate: EmbeddingPropagation | None = None,
        random_state: int = 0,
    ) -> None:
        self.classifier, self.propagate, self.random_state = classifier, propagate, random_state

    @property
    def transductive(self) -> bool:
        """Whether the prediction for a query depends on the other queries."""
        return self.propagate is not None or self.classifier.transductive

    def fit(
        self, support: Tensor | ArrayLike, labels: Tensor | Sequence[Any] | ArrayLike
    ) -> "FewShotClassifier":
        """Takes the labeled features `(S, D)` and their labels `(S,)`, numbers or texts.

        Raises:
            ValueError: if features and labels are not as many, there are fewer than two classes,
                or a feature is not finite.
        """
        features = _features(support, "support")
        names = np.asarray(labels.cpu() if isinstance(labels, Tensor) else labels)
        if names.shape != (len(features),):
            raise ValueError(
                f"support has {len(features)} features, labels have the shape {names.shape}; give "
                "one label for each feature"
            )
        self.classes_, classes = np.unique(names, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("labels have one class; give features of two classes or more")
        order = np.argsort(classes, kind="stable")
        self._support = features[torch.as_tensor(order, device=features.device)]
        self._shots = tuple(np.bincount(classes).tolist())
        return self

    def scores(
        self, queries: Tensor | ArrayLike, unlabeled: Tensor | ArrayLike | None = None
    ) -> Tensor:
        """The classifier's logits `(Q, classes)` of queries `(Q, D)`, in the order of `classes_`.

        unlabeled: `(U, D)`, features without a label that semi-supervised classifiers learn from.

        Raises:
            NotFittedError: before `fit`.
            ValueError: for features of another dimension or that are not finite, and for unlabeled
                ones if the classifier takes none.
        """
        if not hasattr(self, "classes_"):
            raise NotFittedError("this FewShotClassifier is not fitted; call fit first")
        parts = [self._support, self._like_support(queries, "queries")]
        if unlabeled is not None:
            parts.append(self._like_support(unlabeled, "unlabeled"))
        points = torch.cat(parts)[None]  # one episode
        episode = EpisodeBatch(
            points if self.propagate is None else self.propagate(points),
            way=len(self.classes_),
            shot=self._shots,
            queries=len(parts[1]),
            unlabeled=sum(map(len, parts[2:])),
            numbers=torch.tensor([self.random_state]),
        )
        return self.classifier.scores(episode)[0]

    def predict(
        self, queries: Tensor | ArrayLike, unlabeled: Tensor | ArrayLike | None = None
    ) -> np.ndarray:
        """The most likely label of each query `(Q,)`; see `scores`."""
        chosen = self.scores(queries, unlabeled).argmax(dim=-1)
        predicted: np.ndarray = self.classes_[chosen.cpu().numpy()]
        return predicted

    def predict_proba(
        self, queries: Tensor | ArrayLike, unlabeled: Tensor | ArrayLike | None = None
    ) -> np.ndarray:
        """The softmax of the scores `(Q, classes)`, in the order of `classes_`; see `scores`.

        For methods that define a class distribution, this is it. Ridge regression, whose scores
        are regressed to 0 and 1, and SVM, whose scores are margins, define none: their softmax
        ranks the classes and is no calibrated probability.
        """
        probabilities: np.ndarray = self.scores(queries, unlabeled).softmax(dim=-1).cpu().numpy()
        return probabilities

    def _like_support(self, values: Tensor | ArrayLike, name: str) -> Tensor:
        features = _features(values, name).to(self._support)
        if features.shape[1] != self._support.shape[1]:
            raise ValueError(
                f"{name} have {features.shape[1]} dimensions, the support has "
                f"{self._support.shape[1]}"
            )
        return features


def _features(values: Tensor | ArrayLike, name: str) -> Tensor:
    """Features `(n, D)` as a tensor of floats, without gradients."""
    features = (
        values.detach() if isinstance(values, Tensor) else torch.as_tensor(np.asarray(values))
    )
    if features.dim() != 2 or not features.numel():
        raise ValueError(f"{name} must have the shape (n, D), it is {tuple(features.shape)}")
    if not features.is_floating_point():
        features = features.float()
    if not torch.isfinite(features).all():
        raise ValueError(f"{name}: a value is not finite; leave out its row")
    return features
