"""How all figures look and are written."""

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epcore.files import atomic

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from seaborn import FacetGrid

# Okabe and Ito's colors, which the color-blind can tell apart, but for yellow.
ORANGE, SKY, GREEN, BLUE, RED, PURPLE, BLACK = (
    "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7", "#000000",
)  # fmt: skip
COLORS = (BLUE, RED, GREEN, ORANGE, PURPLE, SKY, BLACK)
# Of seaborn: from the least to the greatest of the numbers at a place.
BAR: Any = ("pi", 100)
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
    """Like `figure`, with canvas and axes `(rows, columns)`; `more` goes to `pyplot.subplots`.

    Sizes are of the whole, in inches.
    """
    with _written(out) as pyplot:
        size = {"figsize": (width, height), "layout": "constrained"}
        yield pyplot.subplots(rows, columns, squeeze=False, **size, **more)


@contextmanager
def facets(
    out: Path, function: str, size: tuple[float, float], below: str, /, **drawn: Any
) -> Iterator["FacetGrid"]:
    """Like `figure`, yielding the grid of a figure-level function of seaborn, such as `relplot`.

    The legend stands above the panels, `below` under them. `size` is of the whole, in inches.
    """
    import seaborn

    with _written(out):
        grid = getattr(seaborn, function)(**drawn)
        grid.figure.set_size_inches(size)
        grid.set_titles("{col_name}", row_template="{row_name}", col_template="{col_name}", size=8)
        for panel in grid.axes.flat:
            panel.set_title(_filled(panel.get_title(), 24), size=8)
            for row in panel.texts:
                row.set_text(_filled(row.get_text(), 18))
        grid.set_xlabels("")
        grid.figure.supxlabel(_filled(below, int(20 * size[0])), fontsize=7)
        if grid.legend:
            texts = [text.get_text() for text in grid.legend.texts]
            titles = (drawn["hue"], drawn.get("style"))
            entries = dict(zip(texts, grid.legend.legend_handles, strict=True))
            shown = {text: handle for text, handle in entries.items() if text not in titles}
            grid.legend.remove()
            columns = max(1, int(18 * size[0] / (6 + max(map(len, shown)))))
            grid.figure.legend(
                shown.values(), shown, loc="outside upper center", ncols=columns, fontsize=7
            )
        yield grid
        grid.figure.set_layout_engine("constrained")  # behind seaborn, which sets another one


def _filled(text: str, width: int) -> str:
    return "\n".join(textwrap.fill(line, width) for line in text.splitlines())


def ends(table: "pd.DataFrame", value: str, interval: str) -> "pd.DataFrame":
    """Each number and both ends of its interval, over which seaborn draws the error bar `BAR`."""
    import pandas as pd

    half = table[interval].fillna(0)
    return pd.concat(
        [table.assign(**{value: table[value] + sign * half}) for sign in (0, -1, 1)],
        ignore_index=True,
    )


@contextmanager
def _written(out: Path) -> Iterator[Any]:
    """`pyplot` in our style; afterwards the figure that was drawn is written."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    with mpl.rc_context(STYLE):
        try:
            yield pyplot
            # The date would make the bytes differ.
            for path, meta in ((out, {"CreationDate": None}), (out.with_suffix(".png"), {})):
                with atomic(path) as temporary:
                    pyplot.savefig(temporary, dpi=200, metadata=meta)
        finally:
            pyplot.close()
