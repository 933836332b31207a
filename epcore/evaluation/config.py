"""The configs of the stages that make features and scores from checkpoints."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from epcore.backbones.config import BackboneConfig, Precision
from epcore.data.config import View
from epcore.settings import ComputeConfig, Probability, Settings, check_named


def _classifier(value: str | dict[str, Any]) -> str | dict[str, Any]:
    """The name of a classifier, or a mapping of `name` and settings; without any, the name."""
    if isinstance(value, str):
        return value
    return value["name"] if check_named(value).keys() == {"name"} else value


NamedClassifier = Annotated[str | dict[str, Any], AfterValidator(_classifier)]


class Propagation(Settings):
    """Embedding propagation and the classifier behind it; see `epcore.propagation`."""

    embedding: bool = Field(description="whether embedding propagation is there")
    classifier: NamedClassifier = Field(
        description="a name of epcore.classifiers, or its `name` and settings of its own; it also"
        " takes those of the settings here that it has fields for"
    )
    part: Literal["full", "off-diagonal", "diagonal"] = Field(
        description="of the propagator: all of it, or what stands off or on its diagonal"
    )
    embedding_alpha: Probability = Field(
        description="alpha of embedding propagation, how far embeddings spread"
    )
    label_alpha: Probability = Field(
        description="alpha of label propagation, how far labels spread"
    )
    bandwidth: Literal["std", "var"] = Field(
        description="squared distances are divided by their standard deviation or their variance"
    )
    normalize_labels: bool = Field(
        description="whether the rows of the label propagator are divided by their sums"
    )
    query_logits: Literal["log-scores", "scores"] = Field(
        description="what the softmax of queries sees: logarithms of scores, or the scores"
    )


class NetworkConfig(ComputeConfig):
    """Run a network over images."""

    backbone: BackboneConfig
    view: View
    precision: Precision


class EmbedConfig(NetworkConfig):
    """Compute features."""

    stage_version: int = 2


class BaseClassesConfig(NetworkConfig):
    """Find the mean feature of the base images and the weights of the base classes."""

    stage_version: int = 2


class ClassifierTest(Settings):
    """A classifier that is tested on given features; `grid` is that of `ClassifierChoice`."""

    propagation: Propagation
    grid: dict[str, tuple[Any, ...]] = Field(default={}, exclude_if=lambda value: not value)


class EvaluateClassifiersConfig(ComputeConfig):
    """Classify the queries of episodes with several entries of classifiers.yaml."""

    stage_version: int = 1
    classifiers: dict[str, ClassifierTest]


class EvaluateConfig(ComputeConfig, ClassifierTest):
    """Classify the queries of episodes as a recipe's own test does; nothing is chosen."""

    stage_version: int = 4


class MetaTestConfig(NetworkConfig):
    """Test a compared method on frozen episodes."""

    stage_version: int = 4
    method: dict[str, Any]
    way: int
    batch_statistics: bool
    episodes: int | None = Field(default=None, exclude_if=lambda value: value is None)
