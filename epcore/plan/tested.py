"""What tables and figures test, of all of them together."""

from dataclasses import replace
from functools import cached_property

from epcore.config.recipes import TrainingPhase
from epcore.evaluation.config import EvaluateClassifiersConfig
from epcore.plan.figures import Figures
from epcore.plan.registry import Registry
from epcore.plan.run import Run, TrainedNetwork
from epcore.plan.runs import Runs
from epcore.plan.tables import Tables


class Tested:
    """The runs of a scale's tables and figures, and the checkpoints behind them."""

    def __init__(self, registry: Registry, runs: Runs, tables: Tables, figures: Figures) -> None:
        self._registry, self._runs = registry, runs
        self._tables, self._figures = tables, figures

    @cached_property
    def runs(self) -> list[Run]:
        """All runs but those of compared methods."""
        recipes = (run for run in self._shown_runs if not self._runs.compared.has(run.recipe))
        return list(dict.fromkeys([*recipes, *self._of_figures]))

    @property
    def _of_figures(self) -> list[Run]:
        return [*self._figures.alpha_runs(), *self._figures.interpolation_runs()]

    @cached_property
    def recipes(self) -> list[str]:
        """The recipes behind all runs, their candidates included, each once."""
        select = self._registry.recipes.selection
        used = dict.fromkeys(run.recipe.partition("+")[0] for run in self.runs)
        phases: tuple[TrainingPhase, ...] = ("pretraining", "finetuning")
        used |= dict.fromkeys(
            candidate for name in used for phase in phases for candidate in select(name, phase)
        )
        return list(used)

    @cached_property
    def _of_tables(self) -> dict[str, list[Run]]:
        """Table -> its runs, without those of ImageNet-FS."""
        tables = self._tables.shown.items()
        names = [name for name, table in tables if table.imagenet_fs is None]
        return {name: [cell.run for cell in self._tables.cells(name)] for name in names}

    @property
    def _shown_runs(self) -> list[Run]:
        return [run for runs in self._of_tables.values() for run in runs]

    @cached_property
    def _in_all(self) -> list[Run]:
        """The runs of the tables in the target `all`, without those of ImageNet-FS."""
        table = self._tables.table
        return [run for name, runs in self._of_tables.items() if table(name).in_all for run in runs]

    @property
    def score_files(self) -> list[str]:
        """The scores of every test of the tables in the target `all`."""
        return sorted({self._runs.scores(run).file for run in self._in_all})

    @cached_property
    def _classifiers(self) -> dict[Run, set[str]]:
        """The recipe's run before the + -> the classifiers behind it, whatever the seed."""
        classifiers: dict[Run, set[str]] = {}
        for run in self._shown_runs:
            recipe, _, classifier = run.recipe.partition("+")
            if classifier:
                classifiers.setdefault(replace(run, recipe=recipe, seed=0), set()).add(classifier)
        return classifiers

    def evaluate_classifiers(
        self, dataset: str, backbone: str, recipe: str, protocol: str
    ) -> EvaluateClassifiersConfig:
        """The classifiers that tables show with a recipe's network, sorted by name."""
        names = self._behind(Run(dataset, backbone, recipe, 0, protocol))
        return self._runs.evaluate_classifiers(backbone, recipe, names)

    def validation(self, run: Run) -> list[str]:
        """The episodes on which settings of classifiers behind a run are chosen, if any are."""
        tests = (replace(run, recipe=f"{run.recipe}+{name}") for name in self._behind(run))
        return sorted({file for test in tests if (file := self._runs.validation(test))})

    def _behind(self, run: Run) -> list[str]:
        """The classifiers that tables show behind a recipe's run, sorted by name."""
        return sorted(self._classifiers.get(replace(run, seed=0), ()))

    @cached_property
    def imagenet_fs(self) -> list[Run]:
        """The runs of ImageNet-FS in the target `all`."""
        return [
            cell.run
            for name, table in self._tables.shown.items()
            if table.imagenet_fs is not None and table.in_all
            for cell in self._tables.cells(name)
        ]

    @cached_property
    def networks(self) -> list[TrainedNetwork]:
        """The tested networks of the target `all`, each once; those of compared methods last."""
        checkpoint, has = self._runs.checkpoint, self._runs.compared.has
        networks = dict.fromkeys(map(checkpoint, [*self._in_all, *self._of_figures]))
        return sorted(networks, key=lambda network: has(network.recipe))
