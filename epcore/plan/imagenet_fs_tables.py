"""The tables of ImageNet-FS: what their stages are told."""

from dataclasses import replace

from epcore.markup import literal
from epcore.plan import paths
from epcore.plan.captions import caption_of, this_run
from epcore.plan.imagenet_fs import COLUMNS, ImageNetFs, read_imagenet_fs
from epcore.plan.imagenet_fs_models import ImageNetFsRun, ImageNetFsTable, Measure
from epcore.plan.printed import Shown
from epcore.plan.registry import Registry
from epcore.plan.run import MethodRun
from epcore.plan.stages import (
    AggregateStage,
    LatexBlock,
    LatexColumn,
    LatexRow,
    LatexStage,
    MeasuredCell,
    TableRow,
)

PRINTED = "-"  # the block of the paper's rows


class ImageNetFsTables:
    """The tables of ImageNet-FS; methods named after a stage return what it is told of one."""

    def __init__(self, registry: Registry, imagenet_fs: ImageNetFs) -> None:
        self._registry, self._fs = registry, imagenet_fs

    @property
    def printed(self) -> dict[str, Shown]:
        """Files of config/paper -> what shows them, here or at a scale that leaves nothing out."""
        shown: dict[str, Shown] = {}
        for settings in (self._fs.settings, read_imagenet_fs(self._registry.config)):
            for table in settings.tables.values():
                if table.paper is not None:
                    rows = shown.setdefault(table.paper, {})
                    for row in table.printed:
                        columns = {
                            f"{COLUMNS[measure][0]}{shots}"
                            for measure in table.measures
                            for shots in settings.shots
                        }
                        rows.setdefault((PRINTED, row.name), set()).update(columns)
        return shown

    def _columns(self, table: ImageNetFsTable) -> list[tuple[str, Measure, int]]:
        """Name, measure and K of every column."""
        shots = self._fs.settings.shots
        return [(f"{COLUMNS[m][0]}{k}", m, k) for m in table.measures for k in shots]

    def cells(self, name: str) -> list[MeasuredCell]:
        """The cells of ours of a table."""
        table = self._fs.table(name)
        return [
            self._cell(
                MethodRun(pair.dataset, pair.network, seed, row.method), row.baseline, column
            )
            for pair in self._fs.pairs(table)
            for row in table.rows
            for column in self._columns(table)
            for seed in self._registry.seeds
        ]

    def _cell(
        self, run: MethodRun, baseline: str | None, column: tuple[str, Measure, int]
    ) -> MeasuredCell:
        name, measure, shots = column

        def scores(method: str) -> str:
            of = replace(run, method=method)
            return self._fs.path(paths.TRIALS, of, measure=measure, shots=shots)

        return MeasuredCell(
            block=_block(run),
            row=run.method,
            column=name,
            seed=run.seed,
            scores=scores(run.method),
            checkpoint_meta=paths.meta(self._fs.trained(run)),
            baseline=scores(baseline) if baseline else None,
        )

    def printed_in(self, name: str) -> tuple[str, ...]:
        """The file of config/paper that a table shows, if it does."""
        paper = self._fs.table(name).paper
        return (paper,) if paper else ()

    def aggregate(self, name: str) -> AggregateStage:
        table = self._fs.table(name)
        printed = [
            TableRow(block=PRINTED, row=row.name, paper=row.name, source=row.source)
            for row in table.printed
        ]
        ours = [
            TableRow(
                block=_block(pair), row=row.method, paper=row.method,
                source=f"this run, method {row.method}", baseline=row.baseline or "",
            )
            for pair in self._fs.pairs(table)
            for row in table.rows
        ]  # fmt: skip
        return AggregateStage(
            table=name,
            rows=(*printed, *ours),
            columns=tuple(column for column, _, _ in self._columns(table)),
            cells=tuple(self.cells(name)),
            interval="normal",
        )

    def latex(self, name: str) -> LatexStage:
        table = self._fs.table(name)
        printed = LatexBlock(
            block=PRINTED,
            heading="As printed",
            rows=tuple(
                LatexRow(
                    row=row.name,
                    label=row.label or literal(row.name),
                    source=literal(row.source),
                )
                for row in table.printed
            ),
        )
        ours = [
            LatexBlock(
                block=_block(pair),
                heading=self._heading(pair),
                rows=tuple(LatexRow(row=row.method, label=row.label) for row in table.rows),
            )
            for pair in self._fs.pairs(table)
        ]
        return LatexStage(
            label=table.label,
            caption=self._caption(table),
            first="",
            marks=(),
            printed=False,
            stacked=True,
            columns=tuple(
                LatexColumn(name=column, group=COLUMNS[measure][1], heading=f"$K={shots}$")
                for column, measure, shots in self._columns(table)
            ),
            blocks=(*([printed] if table.printed else []), *ours),
        )

    def _heading(self, pair: ImageNetFsRun) -> str:
        network = literal(self._fs.sized(pair.network))
        title = literal(self._registry.datasets[pair.dataset].title)
        return f"*This run*: {title}, {network}"

    def _caption(self, table: ImageNetFsTable) -> str:
        return caption_of(
            self._registry.scale,
            table.title,
            this_run(
                f"mean top-5 accuracy in % over {self._fs.settings.trials.novel} draws of $K$ "
                "exemplars of each novel class",
                "$±1.96$ standard errors",
                self._registry.seeds,
            ),
            table.notes,
        )


def _block(of: ImageNetFsRun | MethodRun) -> str:
    return f"{of.dataset}, {of.network}"
