"""The tables of ImageNet-FS at one scale: a block for each run, and the caption."""

from epcore.config.imagenet_fs import ImageNetFsRun
from epcore.plan.captions import caption_of, this_run
from epcore.plan.imagenet_fs import ImageNetFs
from epcore.plan.registry import Registry
from epcore.report.table_settings import Block, Row, Table
from epcore.settings import pick


def with_runs(table: Table, fs: ImageNetFs, registry: Registry) -> Table:
    """A table of ImageNet-FS with a block for each run of the scale, and the columns of its K.

    A row with a network of its own stands in the first block of each data set.
    """
    settings = table.imagenet_fs
    if settings is None:
        return table
    runs = fs.scale.runs[:1] if settings.runs == "first" else fs.scale.runs
    first = {run.dataset: run for run in reversed(runs)}
    blocks = [
        _block(
            run,
            [row for row in settings.rows if row.backbone is None or run is first[run.dataset]],
            fs,
            registry,
        )
        for run in runs
    ]
    columns = tuple(column for column in table.columns if column.protocol in fs.protocols)
    return table.model_copy(update={"columns": columns, "blocks": (*table.blocks, *blocks)})


def _block(run: ImageNetFsRun, rows: list[Row], fs: ImageNetFs, registry: Registry) -> Block:
    location = f"{registry.scale_file}, imagenet_fs, runs"
    dataset = pick(registry.datasets, run.dataset, "data set", location)
    return Block(
        name=f"{run.dataset}, {run.network}",
        label=f"*This run*: {dataset.title}, {fs.sized(run.network)}",
        backbone=run.network,
        dataset=run.dataset,
        rows=tuple(rows),
    )


def caption(table: Table, fs: ImageNetFs, registry: Registry) -> str:
    """The caption of a table of ImageNet-FS."""
    measured = (
        f"mean top-5 accuracy in % over {fs.settings.trials.novel} draws of K exemplars of "
        "each novel class"
    )
    sentence = this_run(measured, "±1.96 standard errors", registry.seeds)
    return caption_of(registry.scale, table.title, sentence, table.notes)
