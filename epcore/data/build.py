"""From a data set's description to its packed store."""

from pathlib import Path

from epcore.plan.models import GlyphData
from epcore.plan.stages import DataStage


def run(stage: DataStage, out: Path) -> None:
    """The stage `data`."""
    dataset = stage.dataset
    if isinstance(dataset, GlyphData):
        from epcore.data import glyphs

        counts = dataset.images_per_class.model_dump()
        glyphs.build(out, dataset.selection, dataset.image_size, counts, dataset.seed)
    else:
        from epcore.data import folder

        folder.build(out, Path(dataset.path), dataset.image_size)
