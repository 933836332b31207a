"""How all figures look and are written."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epcore.files import atomic

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colors, which the color-blind can tell apart, but for black and yellow.
ORANGE, SKY, GREEN, BLUE, RED, PURPLE = (
    "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
COLORS = (BLUE, RED, GREEN, ORANGE, PURPLE, SKY)
STYLE: Any = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "legend.frameon": False,
    "pdf.fonttype": 42,  # letters stay letters
    "svg.hashsalt": "epcore",
}


@contextmanager
def figure(out: Path, width: float = 4.8, height: float = 3.2) -> Iterator["Axes"]:
    """Axes to draw on; afterwards `out` (.pdf) and a .png of the same name are written."""
    with panels(out, 1, 1, width, height) as (_, axes):
        yield axes[0, 0]


@contextmanager
def panels(
    out: Path, rows: int, columns: int, width: float, height: float, **more: Any
) -> Iterator[tuple["Figure", "np.ndarray"]]:
    """As `figure`, with the canvas and axes `(rows, columns)`; `more` as `pyplot.subplots` takes.

    Sizes are of the whole, in inches.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    with mpl.rc_context(STYLE):
        canvas, axes = pyplot.subplots(
            rows, columns, figsize=(width, height), layout="constrained", squeeze=False, **more
        )
        try:
            yield canvas, axes
            # The date would make the bytes differ.
            for path, meta in ((out, {"CreationDate": None}), (out.with_suffix(".png"), {})):
                with atomic(path) as temporary:
                    canvas.savefig(temporary, dpi=200, metadata=meta)
        finally:
            pyplot.close(canvas)
