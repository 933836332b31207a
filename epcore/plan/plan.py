"""The plan of one scale: what each stage of a run is told."""

from functools import cached_property
from pathlib import Path

from epcore.errors import UserError
from epcore.plan import paths
from epcore.plan.datasets import BESIDE_PIXELS, OfficialData
from epcore.plan.imagenet_fs import ImageNetFsPlan
from epcore.plan.load import pick
from epcore.plan.network import check_sizes
from epcore.plan.plots import PlotPlan
from epcore.plan.printed import read_printed
from epcore.plan.stages import (
    CurvesStage,
    DataStage,
    EnvironmentStage,
    EpisodesStage,
    FetchStage,
    Training,
    told,
)


class Plan(PlotPlan):
    """The config folder at one scale; methods named after a stage return what it is told.

    That is canonical JSON of the settings that the stage reads, and of nothing else.
    """

    def check(self) -> None:
        """Resolves every recipe and table, so that a mistake is told before anything runs."""
        for table in self.tables:
            self.latex(table)
        for column in self.scale.columns:
            self.check_column(column, f"{self._scale_file}, columns")
        self.check_table_columns()
        for backbone in self.scale.backbones:
            check_sizes(self.backbone(backbone), f"{self._scale_file}, backbones.{backbone}")
        for recipe in self.recipes:
            for backbone in self.scale.backbones:
                self.recipe(recipe, backbone)
        self.alpha()
        for plot in self.plots.plots:
            self.plot(plot)
        _ = self.footprint
        if self.imagenet_fs is not None:
            for network in self.imagenet_fs.networks:
                check_sizes(self.imagenet_fs.backbone(network), f"{self._scale_file}, imagenet_fs")
            self.imagenet_fs.check()
        self._check_printed()

    def _check_printed(self) -> None:
        printed = self.printed
        if self.imagenet_fs is not None:
            for paper, shown in self.imagenet_fs.printed.items():
                printed[paper] = printed.get(paper, {}) | shown
        for paper, shown in printed.items():
            read_printed(self.config / "paper" / f"{paper}.csv", shown)

    @cached_property
    def imagenet_fs(self) -> ImageNetFsPlan | None:
        """ImageNet-FS, if the scale has it."""
        section = self.scale.imagenet_fs
        if section is None:
            return None
        return ImageNetFsPlan(self, section, f"{self._scale_file}, imagenet_fs")

    @property
    def with_imagenet_fs(self) -> ImageNetFsPlan:
        """The same, of a scale that has it."""
        if self.imagenet_fs is None:
            raise UserError(f"scale {self.scale_name} has no ImageNet-FS")
        return self.imagenet_fs

    @property
    def imagenet_fs_tables(self) -> list[str]:
        """The tables of ImageNet-FS in the target `all`."""
        return self.imagenet_fs.main_tables if self.imagenet_fs else []

    @cached_property
    def curves(self) -> dict[str, tuple[Training, ...]]:
        """Figure -> the trainings whose curves it shows."""
        return self.recipe_curves | (self.imagenet_fs.curves if self.imagenet_fs else {})

    def curves_of(self, name: str) -> str:
        """What the stage `curves` is told of a figure."""
        trainings = self.curves[name]
        dataset, network = trainings[0].checkpoint.split("/")[3:5]
        fs = self.imagenet_fs
        sized = fs.sized(network) if fs and name in fs.curves else self._sized(network)
        return told(
            CurvesStage(
                trainings=trainings,
                note=f"Scale {self.scale_name}: {self.datasets[dataset].caption}, {sized}",
            )
        )

    def curve_files(self, name: str) -> list[str]:
        """What a figure of curves is made from, as far as rules make it.

        The rule of generators does not list the curves beside them: a method has one for each K.
        """
        trainings = self.curves[name]
        curves = [paths.curve(training.checkpoint) for training in trainings if not training.model]
        return sorted({*curves, *(paths.meta(training.checkpoint) for training in trainings)})

    def _is_of_imagenet_fs(self, table: str) -> bool:
        return self.imagenet_fs is not None and table in self.imagenet_fs.tables

    def aggregate(self, name: str) -> str:
        if self._is_of_imagenet_fs(name):
            return self.with_imagenet_fs.aggregate(name)
        return super().aggregate(name)

    def latex(self, name: str) -> str:
        if self._is_of_imagenet_fs(name):
            return self.with_imagenet_fs.latex(name)
        return super().latex(name)

    def printed_in(self, table: str) -> tuple[str, ...]:
        """The files of config/paper that a table shows: of the paper, then of a re-run."""
        if self._is_of_imagenet_fs(table):
            paper = self.with_imagenet_fs.table(table).paper
            return (paper,) if paper else ()
        return tuple(self.table(table).printed)

    @property
    def covered_figures(self) -> list[str]:
        """The figures that this scale has the runs of."""
        gap = ["gap"] if self.gap_pairs() else []
        return [*super().covered_figures, *self.covered_plots, *self.curves, *gap]

    @cached_property
    def job_metas(self) -> list[str]:
        """Of every training, then of every test of the tables in the target `all`."""
        parts: list[PlotPlan | ImageNetFsPlan] = [self]
        parts += [self.imagenet_fs] if self.imagenet_fs else []
        files = [file for part in parts for file in part.trained_files]
        files += [file for part in parts for file in part.tested_files]
        return list(map(paths.meta, files))

    def environment(self) -> str:
        return told(
            EnvironmentStage(
                title=f"What scale {self.scale_name} ran on",
                metas=tuple(self.job_metas),
            )
        )

    def data(self, dataset: str) -> str:
        settings = pick(self.datasets, dataset, "data set", "config/datasets.yaml")
        settings = settings.model_copy(update=BESIDE_PIXELS)
        return told(DataStage(dataset=settings))

    def data_inputs(self, dataset: str) -> dict[str, list[str]]:
        """What a data set is built from: receipts of its sources; files of one's own, if there.

        A change of either rebuilds the data set.
        """
        settings = self.datasets[dataset]
        if isinstance(settings, OfficialData):
            place = {"scale": self.scale_name}
            names = settings.sources
            return {"sources": [paths.RECEIPT.format(source=name, **place) for name in names]}
        own = {"folder": "{}/split.csv", "npz": "{}"}.get(settings.kind, "")
        file = Path(own.format(getattr(settings, "path", "")))
        return {"own": [str(file)] if own and file.is_file() else []}

    def fetch(self, source: str) -> str:
        """Paths and checksums: other addresses or terms change nothing about the files."""
        files = pick(self.sources, source, "source", "config/datasets.yaml").files
        return told(
            FetchStage(
                files={key: file.model_copy(update={"urls": ()}) for key, file in files.items()},
            )
        )

    def episodes(self, protocol: str) -> str:
        asked = pick(self.protocols, protocol, "protocol", "config/protocols.yaml")
        if asked.split == "base":
            raise UserError(f"protocol {protocol}: episodes are of split val or novel")
        count = getattr(self.scale.episodes, asked.split)
        return told(
            EpisodesStage(
                split=asked.split,
                way=asked.way,
                shot=asked.shot,
                queries=asked.queries,
                labeled=asked.labeled,
                unlabeled=asked.unlabeled,
                episodes=min(count, asked.episodes or count),
                seed=self.scale.episodes.seed,
            )
        )
