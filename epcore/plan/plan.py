"""The plan of one scale: its parts, and what concerns all of them."""

from functools import cached_property
from pathlib import Path
from typing import Any

from epcore.footprint.config import Co2Config
from epcore.plan import paths
from epcore.plan.claims import Claims
from epcore.plan.curves import Curves
from epcore.plan.data import Data
from epcore.plan.figure_job import FigureJob
from epcore.plan.figures import Figures
from epcore.plan.imagenet_fs import ImageNetFs
from epcore.plan.plots import Plots
from epcore.plan.registry import Registry
from epcore.plan.runs import Runs
from epcore.plan.tables import Tables
from epcore.plan.tested import Tested
from epcore.report.config import EnvironmentConfig, ReproductionConfig


class Plan:
    """The config folder at one scale, in parts that each take only those above them.

    registry: the config files, validated. data: data sets and episodes. runs: trainings and tests;
    compared: those of compared methods.
    imagenet_fs, if the scale has it. tables. figures. tested: the runs of both. plots: of tables.
    curves: of trainings. claims: of tables and figures.
    Arguments and errors are those of `Registry`.

    Methods named after a stage, here and in the parts, make its config: the settings that
    it reads, and nothing else.
    """

    def __init__(self, config: Path, scale: str, seeds: Any = None) -> None:
        self.registry = registry = Registry(config, scale, seeds)
        self.data = Data(registry)
        self.runs = runs = Runs(registry)
        self.compared = runs.compared
        of_fs = registry.scale.imagenet_fs
        self.imagenet_fs = fs = ImageNetFs(registry, of_fs) if of_fs else None
        self.tables = tables = Tables(registry, runs, fs)
        self.figures = figures = Figures(registry, runs, tables)
        self.tested = tested = Tested(registry, runs, tables, figures)
        self.plots = Plots(registry, tables)
        self.curves = Curves(registry, runs, tables, figures, tested, fs)
        self.claims = Claims(registry, tables, figures)

    def check(self) -> None:
        """Resolves every recipe and table of the scale, before anything runs.

        What no run uses does not stop one: `epcore doctor` checks all recipes.
        """
        if self.imagenet_fs is not None:
            self.imagenet_fs.check()
        self.tables.check()
        self.registry.check_recipes(self.tested.recipes)
        _ = self.figure_jobs
        _ = self.registry.footprint
        self.claims.stage()

    # -- tables and figures of all parts ----------------------------------------------------------

    @property
    def main_tables(self) -> list[str]:
        """The tables in the target `all`."""
        return [name for name in self.tables.covered if self.tables.table(name).in_all]

    @cached_property
    def figure_jobs(self) -> dict[str, FigureJob]:
        """The jobs of the figures that this scale has the runs of."""
        return self.figures.jobs | self.plots.jobs | self.curves.jobs

    @property
    def covered_figures(self) -> list[str]:
        """The figures that this scale has the runs of."""
        return list(self.figure_jobs)

    # -- the report -------------------------------------------------------------------------------

    @cached_property
    def job_metas(self) -> list[str]:
        """Metas of all trainings, then of all tests of the tables in the target `all`."""
        trained, tested = self.tested.trained_files, self.tested.score_files
        if fs := self.imagenet_fs:
            trained = [*trained, *fs.trained_files(self.tested.imagenet_fs)]
            tested = [*tested, *fs.tested_files(self.tested.imagenet_fs)]
        return list(map(paths.meta, [*trained, *tested]))

    def environment(self) -> EnvironmentConfig:
        title = f"What scale {self.registry.scale_name} ran on"
        return EnvironmentConfig(title=title, metas=tuple(self.job_metas))

    def co2(self) -> Co2Config:
        """The config of the stage `co2`: the tables and figures of the target `all`."""
        path = self.registry.path
        return Co2Config(
            tables={name: path(paths.TABLE_CSV, table=name) for name in self.main_tables},
            figures={name: path(paths.FIGURE, figure=name) for name in self.covered_figures},
        )

    def facts(self) -> dict[str, str]:
        """What the report's first page and the document say of this scale, as plain text."""
        registry, scale = self.registry, self.registry.scale
        data = (f"{c}: {registry.datasets[name].caption}" for c, name in scale.columns.items())
        stand_in = "Not the paper's data: no number is comparable with the paper's."
        refute = "On other data a verdict is on the method as it works there; it can refute no "
        seeds = registry.seeds
        alone = "one training of each network"
        bf16 = "bfloat16 where the processor or GPU multiplies in it, else float32"
        tested = self.tables.cells_if_shown("classifiers")
        facts = {
            "scale": registry.scale_name,
            "note": scale.note,
            "standin": "" if scale.comparable else stand_in,
            "refute": "" if scale.comparable else f"{refute}claim about ImageNet.",
            "backbones": ", ".join(map(registry.sized, scale.backbones)),
            "columns": "; ".join(data),
            "episodes": str(scale.episodes.novel),
            "classifiers": str(len({cell.row.name for cell in tested})),
            "trainings": alone if len(seeds) == 1 else f"{len(seeds)} trainings of each network",
            "seeds": ", ".join(map(str, seeds)),
            "precision": bf16 if scale.precision == "bf16" else scale.precision,
        }
        if "epnet" in registry.recipes.names:
            recipe = registry.recipes.resolve("epnet", next(iter(registry.backbones)))
            facts["embedding alpha"] = f"{recipe.propagation.embedding_alpha:g}"
            facts["label alpha"] = f"{recipe.propagation.label_alpha:g}"
        return facts

    def reproduction(self) -> ReproductionConfig:
        registry = self.registry
        co2 = ["co2"] if registry.footprint.tracking else []
        return ReproductionConfig(
            scale=registry.scale_name,
            seeds=registry.seeds,
            facts=self.facts(),
            tables=("claims", *self.main_tables, *co2),
            figures=tuple(self.covered_figures),
        )
