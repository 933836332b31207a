"""The settings of tables."""

import re
from typing import Literal, get_args

from pydantic import Field, PositiveInt, model_validator

from epcore.plan.imagenet_fs_models import Measure
from epcore.plan.settings import Markup, Settings


class Column(Settings):
    """One column: the paper's data set and the protocol of its episodes.

    Of ImageNet-FS, `dataset` is the classes that are told apart, and the protocol says them and K:
    novel-1shot, all-5shot, all-prior-20shot.
    """

    name: str
    dataset: str
    protocol: str
    heading: Markup


class Row(Settings):
    """A row of ours names a `recipe`; a row of the literature names its `source`.

    `unlabeled` takes, for the column's protocol p, the protocol p-u<unlabeled>. `paper` is the
    row's name in the paper's numbers, if it has another. `method`, of a row of the literature, is
    the recipe that this run has of it, in the tables that the scale names; of ImageNet-FS, whose
    recipes are the methods of imagenet-fs.yaml, the one that the row's claims are asked of.
    `baseline` is the row of the block that its paired difference is to, `baseline_recipe` one that
    the block need not show. `marks` are those of the table's marks that are ticked.
    """

    name: str
    label: Markup = ""
    parameters: str = ""
    recipe: str | None = None
    source: str = ""
    method: str | None = None
    unlabeled: PositiveInt | None = None
    paper: str = ""
    baseline: str | None = None
    baseline_recipe: str | None = None
    marks: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _one_baseline(self) -> "Row":
        if self.baseline is not None and self.baseline_recipe is not None:
            raise ValueError("give baseline or baseline_recipe, not both")
        return self

    @model_validator(mode="after")
    def _ours_or_theirs(self) -> "Row":
        if (self.recipe is None) == (self.source == ""):
            raise ValueError("give either recipe (ours) or source (the literature)")
        return self


class ClassifierRows(Settings):
    """A row for each classifier of classifiers.yaml, or of those in `names`, on one network.

    The network is that of `recipe`. Differences are to the row `baseline`, or to the same
    classifier on the network of `baseline_recipe`.
    """

    recipe: str
    names: tuple[str, ...] | None = None
    baseline: str | None = None
    baseline_recipe: str | None = None


class Block(Settings):
    """The rows of one backbone; without `backbone` all of them are of the literature.

    `label` stands behind the backbone's name, or instead of the block's; rows of `classifiers`
    below the others. `dataset` is that of blocks of ImageNet-FS, which come from the scale.
    """

    name: str
    label: Markup = ""
    backbone: str | None = None
    dataset: str | None = None
    rows: tuple[Row, ...] = ()
    classifiers: ClassifierRows | None = None

    @model_validator(mode="after")
    def _ours_have_a_backbone(self) -> "Block":
        if self.backbone is None and any(row.recipe for row in self.rows):
            raise ValueError("a block with a row of ours needs a backbone")
        return self


class ImageNetFsBlocks(Settings):
    """A block of the same `rows` for each run that the scale has of ImageNet-FS.

    `runs: first` leaves the other runs out, and the table out of the target `all`.
    """

    runs: Literal["all", "first"] = "all"
    rows: tuple[Row, ...]


class Rerun(Settings):
    """What the paper's authors printed of a later run: a file of config/paper, and where."""

    paper: str
    source: str


class Table(Settings):
    """A table of the paper. `title` and `notes` go into the caption. `label` is that of LaTeX.

    `groups` names the paper's data sets above the columns, or is empty for one's own, whose title
    then stands there; `paper` is a file of config/paper, or none for a table that the paper does
    not have; `rerun` is shown below the paper's own. `first` heads the first column, `marks` the
    columns of ticks. `training` adds columns that say when each row's learning rate first fell,
    `costs` two with the time and energy of its training, `assumptions` one with what each row's
    classifier assumes, `seconds` one with
    how long it takes. `imagenet_fs` makes it a table of ImageNet-FS, with our blocks below the
    others; only scales that have it have the table.
    """

    label: str
    paper: str | None = None
    rerun: Rerun | None = None
    first: Markup = ""
    marks: tuple[Markup, ...] = ()
    training: bool = False
    costs: bool = False
    assumptions: bool = False
    seconds: bool = Field(default=False, exclude_if=lambda value: not value)
    title: Markup
    notes: Markup = ""
    groups: dict[str, Markup]
    columns: tuple[Column, ...]
    blocks: tuple[Block, ...]
    imagenet_fs: ImageNetFsBlocks | None = None

    @model_validator(mode="after")
    def _what_imagenet_fs_has(self) -> "Table":
        if self.imagenet_fs is None:
            if any(block.dataset for block in self.blocks):
                raise ValueError("a block names a dataset in tables of ImageNet-FS alone")
            return self
        if self.rerun or self.training or self.costs or self.assumptions or self.seconds:
            raise ValueError(
                "a table of ImageNet-FS has no rerun, training, costs, assumptions and seconds"
            )
        for column in self.columns:
            if not re.fullmatch(rf"({'|'.join(get_args(Measure))})-\d+shot", column.protocol):
                known = ", ".join(f"{measure}-<K>shot" for measure in get_args(Measure))
                raise ValueError(
                    f"{column.name}: unknown protocol {column.protocol!r} of ImageNet-FS; "
                    f"known: {known}"
                )
        return self

    @model_validator(mode="after")
    def _rerun_of_the_paper(self) -> "Table":
        if self.rerun is not None and self.paper is None:
            raise ValueError("rerun stands below the paper's numbers; give paper as well")
        return self

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
    def interval(self) -> Literal["student", "normal"]:
        """That of one training: Student's, or as the code of wDAE-GNN has it on ImageNet-FS."""
        return "student" if self.imagenet_fs is None else "normal"

    @property
    def in_all(self) -> bool:
        """Whether the target `all` makes it, where a scale has it."""
        return self.imagenet_fs is None or self.imagenet_fs.runs == "all"

    @property
    def printed(self) -> tuple[str, ...]:
        """The files of config/paper that it shows: the paper's, then the re-run's."""
        if self.paper is None:
            return ()
        return (self.paper,) if self.rerun is None else (self.paper, self.rerun.paper)
