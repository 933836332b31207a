"""What tables and figures test, of all of them together."""

from dataclasses import replace
from functools import cached_property

from epcore.plan.figures import Figures
from epcore.plan.registry import Registry
from epcore.plan.run import Run, TrainedNetwork
from epcore.plan.runs import Runs, is_classified, validation_of
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
    def _shown(self) -> list[Run]:
        """In tables."""
        return [each.run for name in self._registry.tables for each in self._tables.runs(name)]

    @cached_property
    def methods(self) -> list[TrainedNetwork]:
        """The tested networks of compared methods, each once."""
        compared = self._runs.compared
        shown = [run for run in self._shown if compared.has(run.recipe)]
        return list(dict.fromkeys(map(compared.checkpoint, shown)))

    @cached_property
    def checkpoints(self) -> dict[TrainedNetwork, list[str]]:
        """Every tested checkpoint -> the protocols that it is tested on."""
        found: dict[TrainedNetwork, dict[str, None]] = {}
        for run in self.runs:
            protocols = found.setdefault(self._runs.checkpoint(run), {})
            protocols[run.protocol] = None
            if self._runs.validation(run):
                protocols[validation_of(run.protocol)] = None
        return {checkpoint: list(protocols) for checkpoint, protocols in found.items()}

    @cached_property
    def classified(self) -> set[TrainedNetwork]:
        """The checkpoints that a classifier of classifiers.yaml is tested on."""
        return {self._runs.checkpoint(run) for run in self.runs if self._runs.base(run)}

    def protocols(self, checkpoint: TrainedNetwork) -> list[str]:
        """The protocols that the features of a checkpoint are for, the same for every seed.

        Of a checkpoint that nothing tests, those of all checkpoints of its name.
        """
        first = replace(checkpoint, seed=self._registry.seeds[0])
        if first in self.checkpoints:
            return self.checkpoints[first]
        alike = [
            found
            for other, found in self.checkpoints.items()
            if other.checkpoint == checkpoint.checkpoint
        ]
        return list(dict.fromkeys(protocol for found in alike for protocol in found))

    def suites(self, classifiers: bool) -> list[tuple[str, ...]]:
        """Protocols, split into what one job scores: of recipes alone, or with a classifier behind.

        That is what the same tables ask for of the same runs, so that no table waits for another's
        protocols; all of one checkpoint, so that its features are loaded once.
        """
        protocols = self._registry.protocols
        asked: dict[str, set[tuple[str, Run]]] = {name: set() for name in protocols}
        for name in self._registry.tables:
            for run in (each.run for each in self._tables.runs(name)):
                if self._runs.compared.has(run.recipe):
                    continue
                owner = self._runs.scores_recipe(run.backbone, run.recipe)
                if is_classified(owner) == classifiers:
                    asked[run.protocol].add((name, replace(run, recipe=owner, protocol="")))
        suites: dict[object, list[str]] = {}
        for name, by in asked.items():
            key = (protocols[name].checkpoint_shot, frozenset(by)) if by else name
            suites.setdefault(key, []).append(name)
        return [tuple(names) for names in suites.values()]
