"""The configs of the stages that make what networks are trained and tested on."""

from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from epcore.data.datasets import DataSet, SourceFile
from epcore.settings import Ratio, Settings, StageConfig

Split = Literal["base", "val", "novel"]
AugmentationName = Literal["flip", "crop", "padded-crop", "jitter", "ordered-jitter"]


class View(Settings):
    """What a network sees of a stored image: resized by one ratio, then the center cropped.

    Both are fractions of the stored size, so 92/84 and 80/84 are the authors' Resize(92) and
    CenterCrop(80) for images of 84 pixels, and the same picture at any other size.
    """

    resize: Ratio = Field(
        description="side of the resized image, as a ratio of the stored one, such as 92/84"
    )
    crop: Ratio = Field(
        description="side of the square that is cropped from its center, as a ratio of the stored"
        " one"
    )

    @model_validator(mode="after")
    def _crop_fits(self) -> "View":
        if self.crop > self.resize:
            raise ValueError("crop must not be larger than resize")
        return self


class EpisodeSettings(Settings):
    """What an episode is: classes, support and query images of each."""

    split: Literal["val", "novel"] = Field(
        description="the classes that episodes are drawn from: val (validation) or novel (test)"
    )
    way: Annotated[int, Field(ge=2)] = Field(description="classes of an episode")
    shot: PositiveInt = Field(description="support images of each class")
    queries: PositiveInt = Field(description="query images of each class")
    labeled: PositiveInt | None = Field(
        default=None,
        description="of the support images of a class so many keep their label, the others become"
        " unlabeled; all if there is none",
    )
    unlabeled: NonNegativeInt = Field(
        default=0,
        description="images without a label of each class, beside support and queries, which stay"
        " the same",
    )
    dirichlet: PositiveFloat | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="concentration of the Dirichlet distribution of the classes' shares of the "
        "queries, of which there are way * queries in all; evenly spread if there is "
        "none",
    )

    @model_validator(mode="after")
    def _some_support_is_unlabeled(self) -> "EpisodeSettings":
        if self.labeled is not None and self.labeled >= self.shot:
            raise ValueError("labeled must be smaller than shot; leave it out if all are labeled")
        return self

    @model_validator(mode="after")
    def _unbalanced_queries_alone(self) -> "EpisodeSettings":
        if self.dirichlet is not None and self.has_unlabeled:
            raise ValueError("dirichlet goes with no unlabeled images")
        return self

    @property
    def has_unlabeled(self) -> bool:
        """Whether an episode has images without a label that are no queries."""
        return self.unlabeled > 0 or self.labeled is not None


class FetchConfig(StageConfig):
    """Find or download a source's files, and verify them."""

    stage_version: int = 1
    files: dict[str, SourceFile]


class DataConfig(StageConfig):
    """Build a store."""

    stage_version: int = 4
    dataset: DataSet


class EpisodesConfig(StageConfig, EpisodeSettings):
    """Sample episodes."""

    stage_version: int = 2
    episodes: int
    seed: int
