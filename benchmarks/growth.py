"""How cost grows: CPU time and memory over the number of reports and of items, with the slopes of log-log fits."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.measure import Run, in_child
from benchmarks.stages import ITEMS


@dataclass(frozen=True)
class Sweep:
    """One stage at growing sizes.

    Attributes:
        stage: the name of the stage.
        axis: the quantity that grows, "reports" or "items".
        sizes: the values of that quantity, ascending.
        other: the fixed value of the other quantity.
    """

    stage: str
    axis: str
    sizes: tuple[int, ...]
    other: int


@dataclass(frozen=True)
class Curve:
    """The results of a sweep.

    Attributes:
        sweep: the sweep that was run.
        runs: one for each size.
        cpu_slope: exponent of CPU time in the size: 0 if it does not grow, 1 if it grows in proportion.
        memory_slope: exponent of the peak memory.
    """

    sweep: Sweep
    runs: tuple[Run, ...]
    cpu_slope: float
    memory_slope: float


_REPORTS = (100_000, 1_000_000, 10_000_000)
_FEWER = (100_000, 1_000_000, 3_000_000)
"""For stages where the sealing of ten million reports would take a quarter of an hour."""
_ITEMS = (100, 1000, 10_000, 100_000, 1_000_000)
_FEW = _REPORTS[0]
"""Few enough for points of some seconds, so that growth with the items shows beside growth with the reports."""
SWEEPS = (
    *(
        Sweep(stage, "items", _ITEMS, _FEW)
        for stage in ("encode", "analyze", "analyze-gcms", "discover", "decode", "decode-million")
    ),
    *(Sweep(stage, "reports", _REPORTS, ITEMS) for stage in ("shuffle", "decode", "analyze")),
    Sweep("encode", "reports", _FEWER, ITEMS),
    Sweep("discover", "reports", _FEWER, 1_000_000),
)


def grow(say: Callable[[str], None], sweeps: tuple[Sweep, ...] = SWEEPS) -> list[Curve]:
    """Run every sweep, each point once in a process of its own."""
    curves = []
    for sweep in sweeps:
        runs = []
        for size in sweep.sizes:
            say(f"{sweep.stage}, {size:,} {sweep.axis}")
            reports, items = (size, sweep.other) if sweep.axis == "reports" else (sweep.other, size)
            runs.append(in_child(sweep.stage, reports, items))
        cpu = slope(sweep.sizes, [run.stage.cpu for run in runs])
        curves.append(Curve(sweep, tuple(runs), cpu, slope(sweep.sizes, [run.peak_rss_mib for run in runs])))
    return curves


def merged(curves: list[Curve], others: list[Curve]) -> list[Curve]:
    """Return `curves`, with `others` in place of curves of the same stage and axis, in the order of SWEEPS."""
    kept = {(curve.sweep.stage, curve.sweep.axis): curve for curve in (*curves, *others)}
    order = {(sweep.stage, sweep.axis): place for place, sweep in enumerate(SWEEPS)}
    return [kept[key] for key in sorted(kept, key=lambda key: order.get(key, len(order)))]


def slope(sizes: tuple[int, ...], values: list[float]) -> float:
    """Return the exponent b of the least-squares fit `log value = a + b log size`."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def plot(curves: list[Curve]) -> bytes:
    """Return a PNG: CPU time and peak memory over reports and over items, both axes logarithmic."""
    # Without pyplot, which would look for a screen and keep figures alive.
    from matplotlib.figure import Figure

    sheet = Figure(figsize=(10.8, 8.4), layout="constrained")
    for row, axis in enumerate(("reports", "items")):
        for column, (label, value) in enumerate(_QUANTITIES.items()):
            axes = sheet.add_subplot(2, 2, 2 * row + column + 1)
            for curve in curves:
                if curve.sweep.axis == axis:
                    exponent = curve.memory_slope if column else curve.cpu_slope
                    name = f"{curve.sweep.stage}: {exponent:.2f}"
                    axes.loglog(curve.sweep.sizes, [value(run) for run in curve.runs], marker="o", label=name)
            axes.set_xlabel(axis)
            axes.set_ylabel(label)
            if axes.lines:
                axes.legend(title="slope", fontsize=8)
            axes.grid(alpha=0.3)
    stream = io.BytesIO()
    sheet.savefig(stream, format="png", dpi=90, metadata={"Software": None})
    return stream.getvalue()


_QUANTITIES: dict[str, Callable[[Run], float]] = {
    "CPU seconds": lambda run: run.stage.cpu,
    "peak memory, MiB": lambda run: run.peak_rss_mib,
}
