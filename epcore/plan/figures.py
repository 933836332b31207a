"""The configs of the stages of the analysis figures: the file figures.yaml at one scale."""

from functools import cached_property

from epcore.analysis.config import (
    DecisionBoundaryConfig,
    InterpolatedPairs,
    InterpolationConfig,
    InterpolationNetwork,
    TwoMoonsConfig,
)
from epcore.config.figures import FigureSettings, NetworkFigure
from epcore.config.load import read
from epcore.data.config import Split
from epcore.errors import UserError
from epcore.plan.registry import Registry
from epcore.plan.run import Run
from epcore.plan.runs import Runs
from epcore.plan.tables import TableRun, Tables
from epcore.report.figure_config import (
    AblationConfig,
    AlphaCandidate,
    AlphaConfig,
    Panel,
    PerEpisodeConfig,
    SpeedConfig,
)
from epcore.settings import pick


class Figures:
    """The figures of a scale but plots and curves; methods named after one make its config."""

    def __init__(self, registry: Registry, runs: Runs, tables: Tables) -> None:
        self._registry, self._runs, self._tables = registry, runs, tables

    @cached_property
    def settings(self) -> FigureSettings:
        """The file figures.yaml."""
        settings = read(self._registry.config, "figures.yaml", FigureSettings)
        where = f"{self._registry.config.name}/figures.yaml"
        self._check_networks(settings.alpha, "val", f"{where}, alpha", "alpha is chosen")
        self._check_networks(
            settings.interpolation, "novel", f"{where}, interpolation", "the figure is tested"
        )
        tables, speed, single = self._registry.tables, settings.speed, settings.per_episode
        tables.check_table(settings.gap.table, f"{where}, gap, table")
        tables.check_table(speed.table, f"{where}, speed, table")
        tables.check_column(speed.column, f"{where}, speed, column")
        blocks = {block.name: None for block in tables.every[speed.table].blocks}
        pick(blocks, speed.block, "block", f"{where}, speed, block")
        tables.check_table(single.table, f"{where}, per-episode, table")
        rows = [row for block in tables.every[single.table].blocks for row in block.rows]
        runnable = {row.name: None for row in rows if row.recipe or row.method}
        for row in single.rows:
            pick(runnable, row, "row of ours", f"{where}, per-episode, rows")
        return settings

    def _check_networks(self, figure: NetworkFigure, split: Split, where: str, what: str) -> None:
        registry = self._registry
        pick(registry.backbones, figure.backbone, "backbone", where)
        registry.tables.check_column(figure.column, f"{where}, column")
        found = pick(registry.protocols, figure.protocol, "protocol", where).split
        if found != split:
            raise UserError(
                f"{where}: protocol {figure.protocol!r} is of split {found}; {what} on "
                f"split {split}"
            )
        for recipe in figure.recipes:
            pick(dict.fromkeys(registry.recipes.names), recipe, "recipe", f"{where}, recipes")

    @property
    def covered(self) -> list[str]:
        """The figures that this scale has the runs of."""
        runs = {
            "ablation": "ablation" in self._tables.covered,
            "alpha": self.alpha_runs(),
            "two-moons": True,  # this and the next are of points of their own
            "decision-boundary": True,
            "interpolation": self.interpolation_runs(),
            "speed": self.speed_runs(),
            "per-episode": self.per_episode_runs(),
        }
        return [name for name, found in runs.items() if found]

    def alpha_runs(self) -> list[Run]:
        """One for each candidate, of the first seed, if the scale has them."""
        return self._network_runs(self.settings.alpha)

    def interpolation_runs(self) -> list[Run]:
        """Both networks of the interpolation, of the first seed, if the scale has them."""
        return self._network_runs(self.settings.interpolation)

    def speed_runs(self) -> list[TableRun]:
        """The tests whose accuracy is drawn over their time, if the scale has them."""
        figure = self.settings.speed
        shown = (figure.block, figure.column)
        runs = self._tables.runs_if_shown(figure.table)
        return [at for at in runs if (at.block.name, at.column.dataset) == shown]

    def per_episode_runs(self) -> list[TableRun]:
        """The tests whose single episodes are drawn, if the scale has them."""
        figure = self.settings.per_episode
        runs = self._tables.runs_if_shown(figure.table)
        return [at for at in runs if at.row.name in figure.rows]

    def _network_runs(self, figure: NetworkFigure) -> list[Run]:
        scale, (seed, *_) = self._registry.scale, self._registry.seeds
        dataset = scale.columns.get(figure.column)
        if dataset is None or figure.backbone not in scale.backbones:
            return []
        return [
            Run(dataset, figure.backbone, recipe, seed, figure.protocol)
            for recipe in figure.recipes
        ]

    # -- stages -----------------------------------------------------------------------------------

    def two_moons(self) -> TwoMoonsConfig:
        return TwoMoonsConfig(settings=self.settings.two_moons)

    def decision_boundary(self) -> DecisionBoundaryConfig:
        return DecisionBoundaryConfig(settings=self.settings.decision_boundary)

    def alpha(self) -> AlphaConfig:
        figure = self.settings.alpha
        return AlphaConfig(
            candidates=tuple(
                AlphaCandidate(
                    features=self._runs.features(run),
                    propagation=self._runs.evaluate(run.backbone, run.recipe).propagation,
                )
                for run in self.alpha_runs()
            ),
            label_alphas=figure.label_alphas,
            note=self._note(figure.column, figure.backbone),
        )

    def interpolation(self) -> InterpolationConfig:
        """Where the scale has its runs."""
        figure = self.settings.interpolation
        one, other = (
            InterpolationNetwork(
                name=run.recipe,
                label=label,
                features=self._runs.features(run),
                propagation=self._runs.evaluate(run.backbone, run.recipe).propagation,
            )
            for label, run in zip(figure.labels, self.interpolation_runs(), strict=True)
        )
        settings = figure.model_dump(include=set(InterpolatedPairs.model_fields))
        return InterpolationConfig(
            networks=(one, other),
            settings=InterpolatedPairs(**settings),
            note=self._note(figure.column, figure.backbone),
        )

    def speed(self) -> SpeedConfig:
        """Where the scale has its table."""
        shown = self.speed_runs()
        return SpeedConfig(
            block=self.settings.speed.block,
            labels={at.row.name: at.row.label or at.row.name for at in shown},
            panels={at.column.name: at.column.heading for at in shown},
            note=self._note(shown[0].column.dataset, shown[0].run.backbone),
        )

    def per_episode(self) -> PerEpisodeConfig:
        """Where the scale has its table."""
        registry = self._registry
        panels = [
            Panel(
                block=at.block.name,
                column=at.column.name,
                dataset=registry.datasets[at.run.dataset].caption,
                backbone=registry.sized(at.run.backbone),
                episodes=at.column.heading,
            )
            for at in self.per_episode_runs()
        ]
        return PerEpisodeConfig(
            rows=self.settings.per_episode.rows,
            panels=tuple(dict.fromkeys(panels)),
            note=f"Scale {registry.scale_name}, seeds {', '.join(map(str, registry.seeds))}",
        )

    def ablation(self) -> AblationConfig:
        """Where the rows of the table tick every combination of its marks."""
        table = self._registry.tables.table("ablation")
        block, column = table.blocks[0], table.columns[0]
        return AblationConfig(
            factors=table.marks,
            block=block.name,
            column=column.name,
            marks={row.name: row.marks for row in block.rows if row.recipe},
            note=self._note(column.dataset, block.backbone),
        )

    def _note(self, column: str, backbone: str | None) -> str:
        """What a figure's numbers are of."""
        registry = self._registry
        dataset = registry.scale.columns.get(column)
        title = registry.datasets[dataset].caption if dataset else "no data"
        label = registry.sized(backbone) if backbone else ""
        return f"scale {registry.scale_name}: {title}, {label}"
