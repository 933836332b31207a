"""The settings of tables."""

from typing import Literal

from pydantic import Field, PositiveInt, model_validator

from epcore.settings import Settings

Fact = Literal["parameters", "assumptions", "seconds", "costs"]


class Column(Settings):
    """One column: the paper's data set and the protocol of its episodes."""

    name: str = Field(description="its name in CSV files and claims")
    dataset: str = Field(
        description="a data set of the paper, which the scale's `columns` fill; of ImageNet-FS "
        "the classes that are told apart"
    )
    protocol: str = Field(
        description="its episodes; of ImageNet-FS the measure and K, such as novel-1shot, "
        "all-5shot, all-prior-20shot"
    )
    heading: str = Field(description="what stands above it")


class Row(Settings):
    """A row of ours names a `recipe`; a row of the literature names its `source`."""

    name: str = Field(description="its name in CSV files and claims")
    label: str = Field(default="", description="what stands in the table, if it is not the name")
    parameters: str = Field(
        default="", description="the number of parameters that a publication gives"
    )
    recipe: str | None = Field(
        default=None,
        description="the recipe of a row of ours; of ImageNet-FS a method of imagenet-fs.yaml",
    )
    source: str = Field(
        default="", description="where the numbers of a row of the literature come from"
    )
    method: str | None = Field(
        default=None,
        description="the recipe that this run has of a row of the literature, in the tables that "
        "the scale names",
    )
    backbone: str | None = Field(
        default=None, description="its backbone, if it is another than the block's"
    )
    unlabeled: PositiveInt | None = Field(
        default=None, description="takes, for the column's protocol p, the protocol p-u<unlabeled>"
    )
    paper: str = Field(
        default="", description="the row's name in the paper's numbers, if it has another"
    )
    baseline: str | None = Field(
        default=None,
        description="what the paired difference is to: a row of ours in the block, or a recipe, "
        "which the block need not show",
    )
    marks: tuple[str, ...] = Field(
        default=(), description="those of the table's marks that are ticked"
    )

    @model_validator(mode="after")
    def _ours_or_theirs(self) -> "Row":
        if (self.recipe is None) == (self.source == ""):
            raise ValueError("give either recipe (ours) or source (the literature)")
        return self


class ClassifierRows(Settings):
    """A row for each classifier, on one network."""

    recipe: str = Field(description="the recipe whose network they are tested on")
    names: tuple[str, ...] | None = Field(
        default=None, description="entries of classifiers.yaml; all if there is none"
    )
    baseline: str = Field(
        description="what differences are to: a row of the block, or a recipe, on whose network "
        "they are to the same classifier"
    )


class Block(Settings):
    """The rows of one backbone, or of the literature alone."""

    name: str = Field(description="its name in CSV files and claims")
    label: str = Field(
        default="", description="what stands behind the backbone's name, or instead of the block's"
    )
    backbone: str | None = Field(
        default=None,
        description="the backbone of its rows of ours; without one all are of the literature",
    )
    dataset: str | None = Field(
        default=None, description="of ImageNet-FS, the scale's data set; files have none"
    )
    rows: tuple[Row, ...] = Field(default=(), description="its rows, ours and of the literature")
    classifiers: ClassifierRows | None = Field(
        default=None, description="rows of classifiers, below the others"
    )

    @model_validator(mode="after")
    def _ours_have_a_backbone(self) -> "Block":
        if self.backbone is None and any(row.recipe for row in self.rows):
            raise ValueError("a block with a row of ours needs a backbone")
        return self


class ImageNetFsBlocks(Settings):
    """A block of the same `rows` for each run that the scale has of ImageNet-FS."""

    runs: Literal["all", "first"] = Field(
        default="all",
        description="the runs that the scale has of ImageNet-FS, or the first alone",
    )
    rows: tuple[Row, ...] = Field(description="the rows of each block")


class Table(Settings):
    """A table of the paper, or of ours."""

    label: str = Field(description="the label in LaTeX")
    paper: str | None = Field(
        default=None,
        description="the file of config/paper with its numbers, without the ending; none of a "
        "table that the paper does not have",
    )
    rerun: str | None = Field(
        default=None,
        description="another such file, with the numbers that the authors printed of a later run",
    )
    first: str = Field(default="", description="the heading of the first column")
    marks: tuple[str, ...] = Field(default=(), description="the headings of columns of ticks")
    facts: tuple[Fact, ...] = Field(
        default=(),
        description="what columns say of each row: the number of its parameters, what its "
        "classifier assumes, how long that takes, and what its training cost in time and energy",
    )
    title: str = Field(description="the caption's first sentence")
    notes: str = Field(default="", description="the rest of the caption")
    groups: dict[str, str] = Field(
        description="data set -> its name above its columns; empty for one's own, whose title it "
        "then is"
    )
    columns: tuple[Column, ...] = Field(min_length=1, description="its columns, from left to right")
    blocks: tuple[Block, ...] = Field(description="its blocks, from top to bottom")
    in_all: bool = Field(
        default=True,
        description="whether the target `all` makes it; if not, it is asked for by its name",
    )
    imagenet_fs: ImageNetFsBlocks | None = Field(
        default=None,
        description="makes it a table of ImageNet-FS, with our blocks below the others; only "
        "scales that have it have the table",
    )

    @property
    def stacked(self) -> bool:
        """Whether printed numbers and differences stand in rows of their own, not beside ours."""
        return self.imagenet_fs is not None

    @property
    def places(self) -> list[tuple[Block, Row, Column]]:
        """Every cell, ours or printed, row by row."""
        return [
            (block, row, column)
            for block in self.blocks
            for row in block.rows
            for column in self.columns
        ]

    @property
    def printed(self) -> tuple[str, ...]:
        """The files of config/paper that it shows: the paper's, then the re-run's."""
        return tuple(filter(None, (self.paper, self.rerun)))
