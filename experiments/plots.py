"""Draw figures: predictions as solid curves, measured values as marks, printed formulas dashed, bounds dotted."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments.figure import Figure, Panel
from experiments.rows import Row, select

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKS = "osv^DPX*<>"
_WIDTH, _HEIGHT, _DOTS = 5.4, 4.2, 100
_LEAST_WIDTH = 9.0


def png(figure: Figure, rows: Sequence[Row]) -> bytes:
    """Return the figure's plot, one pair of axes for each panel."""
    # Not pyplot: it would look for a screen and keep figures in memory.
    import matplotlib as mpl
    from matplotlib.figure import Figure as Sheet
    from matplotlib.lines import Line2D

    columns = min(3, len(figure.panels)) if len(figure.panels) != 4 else 2
    lines = -(-len(figure.panels) // columns)
    with mpl.rc_context({"font.size": 9, "legend.fontsize": 7, "svg.hashsalt": figure.name}):
        sheet = Sheet(figsize=(max(_WIDTH * columns, _LEAST_WIDTH), _HEIGHT * lines), layout="constrained")
        sheet.suptitle(figure.title)
        axes = sheet.subplots(lines, columns, squeeze=False).reshape(-1)
        for place, panel in zip(axes, figure.panels, strict=False):
            _draw(place, panel, select(rows, panel.title))
        keys = [
            Line2D([], [], color="0.3", linestyle="-", label="predicted"),
            Line2D([], [], color="0.3", linestyle="", marker="o", label="measured"),
            Line2D([], [], color="0.3", linestyle="--", label="as printed"),
            Line2D([], [], color="0.3", linestyle=":", label="bound"),
        ]
        sheet.legend(handles=keys, loc="outside lower center", ncols=4, frameon=False)
        stream = io.BytesIO()
        sheet.savefig(stream, format="png", dpi=_DOTS, metadata={"Software": None})
    return stream.getvalue()


def _draw(axes: Axes, panel: Panel, rows: Sequence[Row]) -> None:
    for place, series in enumerate(dict.fromkeys(row.series for row in rows)):
        curve = sorted((row for row in rows if row.series == series), key=lambda row: row.x)
        color = f"C{place % 10}"
        for style, name in (("-", "predicted"), ("--", "printed"), (":", "bound")):
            line = [(row.x, value) for row in curve if (value := getattr(row, name)) is not None]
            if line:
                axes.plot(*zip(*line, strict=True), linestyle=style, color=color, linewidth=1.0, alpha=0.8)
        marks = [(row.x, row.measured) for row in curve if row.measured is not None]
        if marks:
            axes.plot(
                *zip(*marks, strict=True),
                linestyle="",
                marker=_MARKS[place % len(_MARKS)],
                color=color,
                markersize=4,
                label=series,
            )
        else:
            axes.plot([], [], color=color, label=series)
    axes.set(title=panel.title, xlabel=panel.x, ylabel=panel.y)
    if panel.log_x:
        axes.set_xscale("log")
    if panel.log_y:
        axes.set_yscale("log")
    axes.grid(visible=True, which="both", linewidth=0.3, alpha=0.5)
    axes.legend(loc="best")
