"""The files of config/scales, protocols.yaml and config.yaml."""

from fractions import Fraction
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, NonNegativeInt, PositiveInt

from epcore.backbones.config import Precision
from epcore.config.compared import ComparedScale
from epcore.config.imagenet_fs import ImageNetFsScale
from epcore.config.names import Name
from epcore.config.resources import Resources
from epcore.data.config import EpisodeSettings
from epcore.data.datasets import DataSet
from epcore.settings import Ratio, Settings


class Protocol(EpisodeSettings):
    """What an episode is, and how many there are.

    Support and queries are those of the protocol that differs in `labeled` and `unlabeled` alone.
    """

    finetuned_shot: PositiveInt | None = Field(
        default=None,
        description="the shot of the fine-tuned checkpoint that is tested; `shot` if there is none",
    )
    episodes: Annotated[int, Field(ge=2)] | None = Field(
        default=None, description="an upper bound on the number of episodes"
    )
    chosen_on: str | None = Field(
        default=None,
        description="the protocol on which the settings of classifiers are chosen; val- and this "
        "one's name if there is none",
    )

    @property
    def checkpoint_shot(self) -> int:
        """The shot of the fine-tuned checkpoint that is tested."""
        return self.finetuned_shot or self.shot


class ScaledBackbone(Settings):
    """Fractions of the paper's channel counts and numbers of blocks."""

    width: Ratio = Field(
        default=Fraction(1), description="what the paper's numbers of channels are multiplied by"
    )
    depth: Ratio = Field(
        default=Fraction(1),
        description="what the paper's number of blocks is multiplied by; of WRN-28-10 alone",
    )

    @property
    def shown(self) -> str:
        """What stands behind a backbone's name, nothing at the paper's size."""
        width = f" ×{self.width}" if self.width != 1 else ""
        return width + (f", depth ×{self.depth}" if self.depth != 1 else "")


class EpisodeCounts(Settings):
    """How many episodes validation and test have; an interval needs two."""

    val: Annotated[int, Field(ge=2)] = Field(description="episodes of each validation")
    novel: Annotated[int, Field(ge=2)] = Field(description="episodes of each test")
    seed: NonNegativeInt = Field(
        default=0,
        description="draws the episodes, and the exemplars of ImageNet-FS; it is not that of "
        "trainings, so that all of them are tested on the same episodes",
    )


def _apart(seeds: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(seeds)) < len(seeds):
        raise ValueError("a seed is there twice")
    return seeds


Seeds = Annotated[tuple[NonNegativeInt, ...], Field(min_length=1), AfterValidator(_apart)]


def _as_list(value: Any) -> Any:
    """A number n stands for 0 to n - 1."""
    if type(value) is int and value > 0:
        return list(range(value))
    if isinstance(value, list | tuple):
        return value
    raise ValueError(
        "expected a number of trainings (1 or more) or a list of seeds, such as '[0, 1, 2]'"
    )


CountedSeeds = Annotated[
    Seeds, BeforeValidator(_as_list, json_schema_input_type=PositiveInt | Seeds)
]


class MainConfig(Settings):
    """The defaults of Snakemake's --config."""

    scale: Annotated[str, BeforeValidator(lambda name: name and str(name))] = Field(
        description="a file of config/scales or config/examples"
    )
    seeds: CountedSeeds | None = Field(
        default=None,
        description="how many trainings, or their seeds; the scale's if there is none",
    )
    allow_cpu: bool = Field(description="train on a CPU what asks for a GPU")
    data_root: str = Field(description="where published data sets lie")


class TablePart(Settings):
    """A part of a table."""

    blocks: Annotated[tuple[str, ...], Field(min_length=1)] | None = Field(
        default=None, description="the names of its blocks; all if not given"
    )
    columns: Annotated[tuple[str, ...], Field(min_length=1)] | None = Field(
        default=None, description="the data sets of its columns; all if not given"
    )
    rows: Annotated[tuple[str, ...], Field(min_length=1)] | None = Field(
        default=None, description="the names of its rows; all if not given"
    )


class Scale(Settings):
    """What one run of the pipeline covers.

    Features are computed once for the episodes of every table, so that data with few classes or
    images must do without some.
    """

    note: str = Field(description="one sentence that stands below tables and figures")
    comparable: bool = Field(
        description="whether numbers may be compared with the paper's; false for stand-in data"
    )
    columns: dict[str, str] = Field(
        description="the paper's data sets (mini, tiered, cub), or `own` -> the data set that "
        "stands there"
    )
    tables: tuple[str, ...] | None = Field(
        default=None, description="the only tables that it has; all if there is none"
    )
    parts: dict[str, TablePart] = Field(
        default_factory=dict, description="table -> its only blocks, columns and rows that it has"
    )
    datasets: dict[Name, DataSet] = Field(
        default_factory=dict, description="data sets of this scale alone, as in datasets.yaml"
    )
    backbones: dict[str, ScaledBackbone] = Field(
        description="the backbones that it has, and how much smaller than the paper's they are"
    )
    episodes: EpisodeCounts = Field(description="how many episodes validation and test have")
    seeds: Seeds = Field(
        description="of trainings: every network is trained once with each, and tables show the "
        "mean"
    )
    precision: Precision = Field(
        description="of the networks' arithmetic on a GPU or CPU, in training and where features "
        "are computed: 32-bit floats, TF32 or bfloat16"
    )
    requires_gpu: bool = Field(description="whether trainings refuse to start without a GPU")
    resources: Resources = Field(
        description="what a training asks of a machine or cluster, and jobs of other stages"
    )
    recipe: dict[str, Any] = Field(
        default_factory=dict, description="settings that override every recipe"
    )
    figures: dict[str, Any] = Field(
        default_factory=dict, description="what it changes of figures.yaml"
    )
    imagenet_fs: ImageNetFsScale | None = Field(
        default=None, description="what it has of ImageNet-FS; without it none of its tables"
    )
    compared: ComparedScale = Field(
        default_factory=ComparedScale, description="what it changes of compared.yaml"
    )
