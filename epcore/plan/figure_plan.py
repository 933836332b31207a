"""What the stages of the analysis figures are told."""

from epcore.plan.figures import InterpolatedPairs
from epcore.plan.stages import (
    DecisionBoundaryStage,
    InterpolationNetwork,
    InterpolationStage,
    TwoMoonsStage,
    told,
)
from epcore.plan.tables import TablePlan


class FigurePlan(TablePlan):
    """A plan that knows the figures that are not of a table."""

    def two_moons(self) -> str:
        return told(TwoMoonsStage(settings=self.figures.two_moons))

    def decision_boundary(self) -> str:
        return told(
            DecisionBoundaryStage(
                settings=self.figures.decision_boundary,
            )
        )

    def interpolation(self) -> str:
        """Of a scale that has its runs."""
        figure = self.figures.interpolation
        one, other = (
            InterpolationNetwork(
                name=run[2],
                label=label,
                features=self.features_of(*run),
                propagation=self.recipe(run[2], run[1]).propagation_in("testing"),
            )
            for label, run in zip(figure.labels, self.interpolation_runs(), strict=True)
        )
        settings = figure.model_dump(include=set(InterpolatedPairs.model_fields))
        return told(
            InterpolationStage(
                networks=(one, other),
                settings=InterpolatedPairs(**settings),
                note=self._note(figure.column, figure.backbone),
            )
        )
