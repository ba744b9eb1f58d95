"""RESULTS.md: the measurements and the machine, as a page for people."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.cost import CORE_HOUR, SHUFFLED_GIB, Cost
from benchmarks.growth import Curve, slope
from benchmarks.measure import Figures
from benchmarks.peers import PeerRow
from benchmarks.record import Record
from benchmarks.stages import STAGES

_ENGINES = (
    "Stages that end in `-libsodium` ran with `HUSHCOUNT_OPENING=libsodium`. The others open and seal in lanes if the "
    "processor has AVX-512 IFMA and there are enough boxes to pay for compiling the lanes."
)
_OTHER = {"reports": "items", "items": "reports"}


def page(record: Record, costs: Sequence[Cost]) -> str:
    """Return the page; parts that were not measured are left out."""
    parts = [_head(record.machine), _stages(record.measured)]
    if costs:
        parts.append(_costs(costs))
    if record.curves:
        parts.append(_growth(record.curves))
    if record.peers:
        parts.append(_peers(record.peers))
    return "\n\n".join(parts) + "\n"


def _head(machine: str) -> str:
    return (
        "# What Hushcount costs\n\n"
        "`make bench` writes this page. Each stage runs in its own process, between two measurements of its limit. The "
        "limit is the time of PyNaCl to seal or open the same number of boxes, in plain loops on all cores. The "
        "shuffler has no cryptography: its limit is to read and write the same files once. CPU time and ratios hold on "
        "other machines and on busy ones; reports per second do not. Another process makes the input. The peak is the "
        f"most memory that the measuring process held while the stage ran, imports included.\n\n{machine}."
    )


def _stages(measured: dict[str, Figures]) -> str:
    rows = [
        (
            f"`{name}`",
            STAGES[name].what,
            f"{figures.reports:,}",
            f"{figures.reports_per_second:,.0f}",
            f"{figures.cpu_us_per_report:.2f}",
            _or_none(figures.limit_reports_per_second, "{:,.0f}"),
            _or_none(figures.ratio_to_limit, "{:.2f}"),
            _or_none(figures.cpu_ratio_to_limit, "{:.2f}"),
            f"{figures.seconds_with_start:.1f} / {figures.cpu_seconds_with_start:.1f}",
            f"{figures.peak_rss_mib:,.0f}",
            f"{figures.runs} / {figures.spread:.2f}",
            STAGES[name].target,
        )
        for name, figures in ((name, measured[name]) for name in STAGES if name in measured)
    ]
    revealed = [
        f"\n\n`{name}` kept and revealed {figures.bins:,} values or more in every run. Its limit is one box for each "
        "report; an inner box is opened only for a kept value, once for each value."
        for name, figures in measured.items()
        if figures.bins is not None and not STAGES[name].engine
    ]
    heads = (
        "stage", "what", "reports", "reports/s", "CPU us a report", "limit, reports/s", "ratio", "CPU ratio",
        "s with start: clock / CPU", "peak MiB", "runs / spread", "to reach",
    )  # fmt: skip
    return (
        "## Stages\n\nAll figures are medians. The ratio is the stage's reports per second over the limit's, in the "
        "same run. The CPU ratio is the limit's CPU time over the stage's; a busy machine changes it little. The start "
        "is the start of the measuring process, mostly imports. The spread is the largest CPU time of the runs over "
        "the least one. "
        f"{_ENGINES}\n\n" + table(heads, rows) + "".join([*revealed, *_notes(measured)])
    )


def _notes(measured: dict[str, Figures]) -> list[str]:
    """Return each note once, after the names of the stages that it is about."""
    about: dict[str, list[str]] = {}
    for name in STAGES:
        if name in measured and measured[name].note:
            about.setdefault(measured[name].note, []).append(f"`{name}`")
    return [f"\n\n{', '.join(names)}: {note}" for note, names in about.items()]


def _costs(costs: Sequence[Cost]) -> str:
    rows = [
        (
            f"`{cost.stage}`",
            f"{cost.cores:.4f}",
            f"{cost.shuffle:.4f}",
            f"{cost.total:.4f}",
            f"{cost.total * 1000:,.2f}",
        )
        for cost in costs
    ]
    return (
        f"## Cost\n\nCalculated for Dataflow: CPU time at {CORE_HOUR} dollars a core-hour, bytes grouped by key at "
        f"{SHUFFLED_GIB} dollars a GiB, list prices of one region. Idle cores, start-up and memory are not "
        "included.\n\n"
        + table(("stage", "CPU, $ a million", "shuffle, $ a million", "$ a million", "$ a billion"), rows)
    )


def _growth(curves: Sequence[Curve]) -> str:
    rows = [
        (
            f"`{curve.sweep.stage}`",
            f"{curve.sweep.axis} {curve.sweep.sizes[0]:,} to {curve.sweep.sizes[-1]:,}",
            f"{curve.sweep.other:,} {_OTHER[curve.sweep.axis]}",
            f"{curve.cpu_slope:.2f}, {_end(curve, [run.stage.cpu for run in curve.runs]):.2f}",
            f"{curve.memory_slope:.2f}, {_end(curve, [run.peak_rss_mib for run in curve.runs]):.2f}",
            f"{curve.runs[0].stage.cpu:,.1f} to {curve.runs[-1].stage.cpu:,.1f}",
            f"{curve.runs[0].peak_rss_mib:,.0f} to {curve.runs[-1].peak_rss_mib:,.0f}",
            "" if curve.runs[0].bins is None else f"{curve.runs[0].bins:,} to {curve.runs[-1].bins:,}",
        )
        for curve in curves
    ]
    heads = ("stage", "over", "at", "CPU slope", "memory slope", "CPU s", "peak MiB", "revealed")
    return (
        "## How cost grows\n\nSlopes of straight lines through the logarithms, with one run for each point: 1 means "
        "growth in proportion, 0 means no growth. The first slope is over all points. The second is between the last "
        "two points, because start-up flattens the small end.\n\n"
        + table(heads, rows)
        + "\n\n![CPU time and memory over reports and items](growth.png)"
    )


def _end(curve: Curve, values: list[float]) -> float:
    """Return the slope between the last two points."""
    return slope(curve.sweep.sizes[-2:], values[-2:])


def _peers(peers: Sequence[PeerRow]) -> str:
    rows = [
        (
            row.peer,
            row.version,
            row.mechanism,
            f"{row.reports:,}",
            f"{row.items:,}",
            f"{row.client_us:,.2f}",
            f"{row.client_alone_us:,.1f}",
            f"{row.server_us:,.2f}",
            f"{row.server_us / row.items * 1000:,.2f}",
            f"{row.mean_squared_error:,.0f}",
            f"{row.spread:.2f}",
            row.mended,
        )
        for row in peers
    ]
    heads = (
        "who", "version", "mechanism", "reports", "items", "client, us", "alone, us", "server, us a report",
        "ns a report and item", "mean squared error", "spread", "mended",
    )  # fmt: skip
    return (
        f"## Beside others\n\nAll libraries get the same values and epsilon {peers[0].epsilon:g}, in one run on one "
        "machine. Client time is CPU time to privatise a report: in one call for all reports if the library can do "
        "that, and in a call for each report (alone). Server time is CPU time to aggregate and estimate all items, for "
        "each report. The error is listed to show that no library is fast because it is wrong. All figures are "
        "medians.\n\n" + table(heads, rows)
    )


def _or_none(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
