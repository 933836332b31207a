"""What the table stages are told: cells of ours, rows of the literature, captions."""

from epcore.plan import paths
from epcore.plan.models import Table
from epcore.plan.registry import Registry
from epcore.plan.stages import (
    STAGE_VERSIONS,
    AggregateStage,
    LatexBlock,
    LatexColumn,
    LatexRow,
    LatexStage,
    OurCell,
    TableRow,
    told,
)


class TablePlan(Registry):
    """A registry that knows what its tables need and say."""

    def cells(self, name: str) -> list[OurCell]:
        """The cells of ours that this scale covers: its columns and its backbones."""
        table = self.table(name)
        cells = []
        for block in table.blocks:
            for row in block.rows:
                for column in table.columns:
                    dataset = self.scale.columns.get(column.dataset)
                    if (
                        row.recipe is None
                        or not dataset
                        or block.backbone not in self.scale.backbones
                    ):
                        continue
                    place = {
                        "scale": self.scale_name,
                        "dataset": dataset,
                        "backbone": block.backbone,
                        "recipe": row.recipe,
                        "seed": self.scale.seed,
                        "protocol": column.protocol,
                        "shot": self.protocols[column.protocol].shot,
                    }
                    cells.append(
                        OurCell(
                            block=block.name,
                            row=row.name,
                            column=column.name,
                            scores=paths.SCORES.format(**place),
                            checkpoint_meta=paths.meta(paths.FINETUNE.format(**place)),
                        )
                    )
        return cells

    def aggregate(self, name: str) -> str:
        table = self.table(name)
        return told(
            AggregateStage(
                stage_version=STAGE_VERSIONS["aggregate"],
                table=name,
                rows=tuple(
                    TableRow(
                        block=block.name,
                        row=row.name,
                        source=row.source or f"this run, recipe {row.recipe}",
                        parameters=row.parameters,
                    )
                    for block in table.blocks
                    for row in block.rows
                ),
                columns=tuple(column.name for column in table.columns),
                cells=tuple(self.cells(name)),
            )
        )

    def latex(self, name: str) -> str:
        table = self.table(name)
        return told(
            LatexStage(
                stage_version=STAGE_VERSIONS["latex"],
                label=table.label,
                caption=self._caption(table),
                columns=tuple(
                    LatexColumn(name=c.name, group=table.groups[c.dataset], heading=c.heading)
                    for c in table.columns
                ),
                blocks=tuple(
                    LatexBlock(
                        block=block.name,
                        heading=self._heading(block.backbone),
                        rows=tuple(
                            LatexRow(
                                row=row.name,
                                label=row.label or tex_escape(row.name),
                                source=tex_escape(row.source),
                            )
                            for row in block.rows
                        ),
                    )
                    for block in table.blocks
                ),
            )
        )

    def _heading(self, backbone: str) -> str:
        """The backbone's name, with its size where this scale makes it smaller."""
        label: str = self.backbones[backbone].label
        size = self.scale.backbones.get(backbone)
        if size is not None and size.width != 1:
            label += rf" $\times${size.width}"
        if size is not None and size.depth != 1:
            label += rf", depth $\times${size.depth}"
        return label

    def _caption(self, table: Table) -> str:
        shown = dict.fromkeys(column.dataset for column in table.columns)
        stand_in = [
            f"{table.groups[column]}: {tex_escape(self.datasets[dataset].title)}"
            for column in shown
            if (dataset := self.scale.columns.get(column))
        ]
        parts = [
            table.title,
            tex_escape(self.scale.note),
            f"Data in the columns: {'; '.join(stand_in)}.",
            rf"\emph{{This run}}: mean accuracy in \% over {self.scale.episodes.novel} test "
            r"episodes with its 95\,\% interval.",
            r"\emph{Paper}: as printed.",
            table.notes,
        ]
        if not self.scale.comparable:
            parts.append(
                r"\textbf{This run uses stand-in data: its numbers are not comparable with the "
                r"paper's}"
            )
        sentences = [part.rstrip(".") + "." for part in parts if part]
        return " ".join(sentences)


# What LaTeX would take for a command or print as another character.
TEX = {character: "\\" + character for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}


def tex_escape(text: str) -> str:
    """Plain text as LaTeX."""
    return "".join(TEX.get(character, character) for character in text)
