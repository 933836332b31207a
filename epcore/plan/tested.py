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

    def _of_tables(self, imagenet_fs: bool = False, in_all: bool = False) -> list[Run]:
        """The runs of the tables of ImageNet-FS or of all others; in_all: of the target `all`."""
        return [
            cell.run
            for name, table in self._tables.shown.items()
            if (table.imagenet_fs is not None) == imagenet_fs and (table.in_all or not in_all)
            for cell in self._tables.cells(name)
        ]

    @property
    def _of_figures(self) -> list[Run]:
        return [*self._figures.alpha_runs(), *self._figures.interpolation_runs()]

    @cached_property
    def runs(self) -> list[Run]:
        """All runs but those of compared methods and ImageNet-FS, each once."""
        recipes = (run for run in self._of_tables() if not self._runs.compared.has(run.recipe))
        return list(dict.fromkeys([*recipes, *self._of_figures]))

    @cached_property
    def recipes(self) -> list[str]:
        """The recipes behind these runs, their candidates included, each once."""
        select = self._registry.recipes.selection
        used = dict.fromkeys(run.recipe.partition("+")[0] for run in self.runs)
        phases: tuple[TrainingPhase, ...] = ("pretraining", "finetuning")
        used |= dict.fromkeys(
            candidate for name in used for phase in phases for candidate in select(name, phase)
        )
        return list(used)

    @property
    def imagenet_fs(self) -> list[Run]:
        """The runs of ImageNet-FS in the target `all`."""
        return self._of_tables(imagenet_fs=True, in_all=True)

    @cached_property
    def networks(self) -> list[TrainedNetwork]:
        """The tested networks of the target `all`, each once; those of compared methods last."""
        runs = [*self._of_tables(in_all=True), *self._of_figures]
        networks = dict.fromkeys(map(self._runs.checkpoint, runs))
        return sorted(networks, key=lambda network: self._runs.compared.has(network.recipe))

    @property
    def trained_files(self) -> list[str]:
        """The checkpoint of every training behind these networks, pretraining first."""
        trainings = (step for network in self.networks for step in self._runs.trainings(network))
        trained = {training.checkpoint for training in trainings}
        return sorted(trained, key=lambda path: (not path.endswith("pretrain.pt"), path))

    @property
    def score_files(self) -> list[str]:
        """The scores of every test of the tables in the target `all`, ImageNet-FS aside."""
        return sorted({self._runs.scores(run).file for run in self._of_tables(in_all=True)})

    # -- classifiers behind one network -----------------------------------------------------------

    @cached_property
    def _classifiers(self) -> dict[Run, set[str]]:
        """The recipe's run before the +, of seed 0 -> the classifiers behind it."""
        classifiers: dict[Run, set[str]] = {}
        for run in self.runs:
            recipe, _, classifier = run.recipe.partition("+")
            if classifier:
                classifiers.setdefault(replace(run, recipe=recipe, seed=0), set()).add(classifier)
        return classifiers

    def _behind(self, run: Run) -> list[str]:
        """The classifiers that tables show behind a recipe's run, sorted by name."""
        return sorted(self._classifiers.get(replace(run, seed=0), ()))

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
