"""What tables and figures test, of all of them together."""

from dataclasses import replace
from functools import cached_property

from epcore.plan.figures import Figures
from epcore.plan.registry import Registry
from epcore.plan.run import Run, TrainedNetwork
from epcore.plan.runs import Runs, is_classified
from epcore.plan.tables import Tables


class Tested:
    """The runs of a scale's tables and figures, and the checkpoints behind them."""

    def __init__(self, registry: Registry, runs: Runs, tables: Tables, figures: Figures) -> None:
        self._registry, self._runs = registry, runs
        self._tables, self._figures = tables, figures

    @cached_property
    def runs(self) -> list[Run]:
        """Each once; figures are of the first seed alone. Without those of compared methods."""
        shown = [run for run in self._shown if not self._runs.compared.has(run.recipe)]
        figures = [*self._figures.alpha_runs(), *self._figures.interpolation_runs()]
        return list(dict.fromkeys([*shown, *figures]))

    @cached_property
    def _of_tables(self) -> dict[str, list[Run]]:
        """Table -> its runs, without those of ImageNet-FS."""
        tables = self._registry.tables.shown.items()
        names = [name for name, table in tables if table.imagenet_fs is None]
        return {name: [each.run for each in self._tables.runs(name)] for name in names}

    @property
    def _shown(self) -> list[Run]:
        return [run for runs in self._of_tables.values() for run in runs]

    @property
    def score_files(self) -> list[str]:
        """The scores of every test of the tables."""
        return sorted(set(map(self._runs.scores, self._shown)))

    @cached_property
    def imagenet_fs(self) -> list[Run]:
        """Those of ImageNet-FS in the target `all`."""
        return [
            each.run
            for name, table in self._registry.tables.shown.items()
            if table.imagenet_fs is not None and table.in_all
            for each in self._tables.runs(name)
        ]

    @cached_property
    def methods(self) -> list[TrainedNetwork]:
        """The tested networks of compared methods, each once."""
        compared = self._runs.compared
        shown = [run for run in self._shown if compared.has(run.recipe)]
        return list(dict.fromkeys(map(compared.checkpoint, shown)))

    @cached_property
    def checkpoints(self) -> list[TrainedNetwork]:
        """The tested checkpoints of recipes, each once."""
        return list(dict.fromkeys(map(self._runs.checkpoint, self.runs)))

    def suites(self, classifiers: bool) -> list[tuple[str, ...]]:
        """Protocols, split into what one job scores: of recipes alone, or with a classifier behind.

        That is what the same tables ask for of the same runs, so that no table waits for another's
        protocols. Recipes are scored as soon as a checkpoint is there. Of recipes with a classifier
        there are hundreds, most of which take less time than a process to begin: one job scores
        them with all checkpoints of a seed.
        """
        protocols = self._registry.protocols
        asked: dict[str, set[tuple[str, Run]]] = {name: set() for name in protocols}
        for name, runs in self._of_tables.items():
            for run in runs:
                if self._runs.compared.has(run.recipe):
                    continue
                owner = self._runs.scores_recipe(run.backbone, run.recipe)
                if is_classified(owner) == classifiers:
                    asked[run.protocol].add((name, replace(run, recipe=owner, protocol="")))
        suites: dict[object, list[str]] = {}
        for name, by in asked.items():
            apart = classifiers or protocols[name].checkpoint_shot
            key = (apart, frozenset(by)) if by else name
            suites.setdefault(key, []).append(name)
        return [tuple(names) for names in suites.values()]
