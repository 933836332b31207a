"""The same 1000 episodes by other libraries and here: accuracies, equal predictions, times.

easyfsl and scikit-learn take one episode at a time, this project a hundred. Features are Gaussian
classes behind a ReLU: like those of most networks they are not negative.
"""

from collections.abc import Callable

import torch
from measure import Pair, Times, row
from sklearn.semi_supervised import LabelSpreading
from torch import Tensor

import epcore.vision  # noqa: F401  # easyfsl imports torchvision
from epcore.classifiers import (
    BDCSPN,
    PTMAP,
    TIM,
    EpisodeBatch,
    EpisodeClassifier,
    LabelPropagationClassifier,
    LaplacianShot,
    Prototypes,
)

from easyfsl import methods as easyfsl  # isort: skip

EPISODES, TOGETHER = 1000, 100
WAY, SHOT, QUERIES, SIZE = 5, 1, 75, 64
SUPPORT = WAY * SHOT
SUPPORT_LABELS = torch.arange(WAY).repeat_interleave(SHOT)
QUERY_LABELS = torch.arange(WAY).repeat_interleave(QUERIES // WAY)

Predict = Callable[[Tensor], Tensor]


def drawn() -> Tensor:
    """Features `(episodes, support and queries, D)`, first the support, class by class."""
    random = torch.Generator().manual_seed(0)
    classes = torch.cat([SUPPORT_LABELS, QUERY_LABELS])
    centers = torch.randn(EPISODES, WAY, SIZE, generator=random)
    noise = torch.randn(EPISODES, len(classes), SIZE, generator=random)
    return (0.5 + 0.6 * centers[:, classes] + noise).relu()


def of_easyfsl(method: type, **settings: object) -> Predict:
    """Predictions `(episodes, queries)` by a method of easyfsl; what is not told is its default."""

    def predict(points: Tensor) -> Tensor:
        model = method(torch.nn.Identity(), **settings)
        predicted = []
        for episode in points:
            model.process_support_set(episode[:SUPPORT].clone(), SUPPORT_LABELS)
            predicted.append(model(episode[SUPPORT:]).argmax(dim=-1))
        return torch.stack(predicted)

    return predict


def of_scikit_learn(points: Tensor) -> Tensor:
    """Label spreading on the paper's graph: its bandwidth, that of each episode, and its alpha."""
    given = torch.cat([SUPPORT_LABELS, torch.full((QUERIES,), -1)]).numpy()
    predicted = []
    for episode in points:
        distances = torch.cdist(episode, episode).square()
        gamma = 1 / distances.std(correction=1).item()
        model = LabelSpreading(gamma=gamma, alpha=0.2, max_iter=1000, tol=1e-9)
        model.fit(episode.numpy(), given)
        predicted.append(torch.from_numpy(model.transduction_[SUPPORT:]))
    return torch.stack(predicted)


def of_ours(classifier: EpisodeClassifier) -> Predict:
    def predict(points: Tensor) -> Tensor:
        return classifier.scores(EpisodeBatch(points, WAY, SHOT, QUERIES)).argmax(dim=-1)

    return predict


# name -> the other library's, ours, and in what they differ.
METHODS: dict[str, tuple[Predict, EpisodeClassifier, str]] = {
    "easyfsl's PrototypicalNetworks": (
        of_easyfsl(easyfsl.PrototypicalNetworks), Prototypes(), "the same method",
    ),
    "easyfsl's SimpleShot": (
        of_easyfsl(easyfsl.SimpleShot, feature_normalization=2),
        Prototypes(preprocessing=("unit",)),
        "the same with one shot",
    ),
    "easyfsl's BDCSPN": (
        of_easyfsl(easyfsl.BDCSPN, feature_normalization=2),
        BDCSPN(preprocessing=("unit",)),
        "it moves queries for the new means, not when it classifies them, and weighs members by "
        "exp(cos), ours by exp(10 cos)",
    ),
    "easyfsl's LaplacianShot": (
        of_easyfsl(easyfsl.LaplacianShot, feature_normalization=2),
        LaplacianShot(preprocessing=("unit",)),
        "it begins with its BDCSPN, and has other neighbors and another weight of them",
    ),
    "easyfsl's TIM": (
        of_easyfsl(easyfsl.TIM, feature_normalization=2),
        TIM(),
        "50 steps of Adam on cosines; the authors take 1000 on distances, with a tenth of the "
        "weight on the support",
    ),
    "easyfsl's PTMAP": (
        of_easyfsl(easyfsl.PTMAP, feature_normalization=2),
        PTMAP(),
        "10 rounds, roots of unit features; the authors take 20, roots first, and center",
    ),
    "scikit-learn's LabelSpreading": (
        of_scikit_learn,
        LabelPropagationClassifier(),
        "the same system but for 0.0001 that the authors add to degrees; it iterates",
    ),
}  # fmt: skip


def timed(predict: Predict, points: Tensor) -> tuple[Tensor, Times]:
    start = Times.now()
    predicted = predict(points)
    return predicted, Times.now().since(start)


def main() -> None:
    points = drawn()
    for name, (theirs, classifier, why) in METHODS.items():
        sides: dict[str, tuple[Predict, list[Tensor], list[Times]]] = {
            "ours": (of_ours(classifier), [], []),
            "theirs": (theirs, [], []),
        }
        for part in points.split(TOGETHER):
            for predict, predictions, times in sides.values():
                predicted, seconds = timed(predict, part)
                predictions.append(predicted)
                times.append(seconds)
        pair = Pair.of(sides["ours"][2], sides["theirs"][2])
        classes, library_classes = (torch.cat(sides[side][1]) for side in ("ours", "theirs"))
        accuracy = 100 * (classes == QUERY_LABELS).double().mean()
        library_accuracy = 100 * (library_classes == QUERY_LABELS).double().mean()
        equal = 100 * (classes == library_classes).double().mean()
        row(
            f"{name}: times as long as ours",
            pair.other_to_ours,
            f"accuracy {library_accuracy:.2f}, ours {accuracy:.2f}; {equal:.2f} % of predictions "
            f"equal: {why}",
        )


if __name__ == "__main__":
    main()
