"""Measure stages, each in its own process: `python -m benchmarks shuffle analyze --reports 500000` in a checkout.

Measurements in results.json of --out are kept; stages that are missing there, or named here, are measured. `make bench`
writes RESULTS.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks import gates
from benchmarks.cost import costs
from benchmarks.growth import SWEEPS, grow, merged, plot
from benchmarks.measure import Figures, prepared, summarise
from benchmarks.page import page, table
from benchmarks.peers import PeerRow, PeersMissing, compare
from benchmarks.record import Record, read_record, require_writable, write_record
from benchmarks.stages import BY_DEFAULT, STAGES
from hushcount.errors import HushcountError, UsageError
from hushcount.formats.whole_files import write_over

_FILE_MODE = 0o644
_PEER_REPORTS, _PEER_ITEMS, _PEER_EPSILON, _PEER_REPEATS = 100_000, 1000, 1.0, 3
_RANGES = {"reports": (1000, 10**8), "repeats": (1, 1000)}


def main(arguments: list[str]) -> int:
    """Measure, print a table, and return the exit status: 1 if a stage takes longer than its gate allows.

    Raises:
        UsageError: an unknown stage, a number out of range, or a directory that cannot be written.
        HushcountError: a stage failed.
    """
    asked = _parsed(arguments)
    stages, reports, repeats = asked.stages, asked.reports, asked.repeats
    if asked.gate:
        stages, reports, repeats = list(gates.GATES), reports or gates.REPORTS, 1
    if asked.out is not None:
        require_writable(asked.out)
    record = Record() if asked.out is None or asked.overwrite else read_record(asked.out)
    for name in stages or [name for name in BY_DEFAULT if name not in record.measured]:
        _say(f"{name}, its input")
        with prepared(name, reports or STAGES[name].reports, STAGES[name].items) as run:
            runs = []
            for number in range(repeats):
                _say(f"{name}, run {number + 1} of {repeats}")
                runs.append(run())
        record.measured[name] = summarise(runs)
        _keep(asked.out, record)
    shown = {name: record.measured[name] for name in stages or BY_DEFAULT}
    for sweep in SWEEPS if asked.growth else ():
        if sweep not in [curve.sweep for curve in record.curves]:
            record.curves = merged(record.curves, grow(_say, (sweep,)))
            _keep(asked.out, record)
    if asked.peers and not record.peers:
        record.peers = _peers()
        _keep(asked.out, record)
    print(_table(shown))
    slow = gates.beyond(shown) if asked.gate else []
    for sentence in slow:
        _say(sentence)
    return 1 if slow else 0


def _parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", allow_abbrev=False)
    parser.add_argument("stages", nargs="*", help="stages to measure, by default all; an unknown name lists them")
    parser.add_argument("--reports", type=int, help="reports of each run; by default each stage has its own number")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each stage (3)")
    parser.add_argument("--growth", action="store_true", help="also measure how cost grows; takes 15 minutes")
    parser.add_argument("--peers", action="store_true", help="also measure other libraries, in a temporary environment")
    parser.add_argument("--gate", action="store_true", help="only gated stages, once; status 1 if one is too slow")
    parser.add_argument("--out", type=Path, help="directory for RESULTS.md, its plot and results.json")
    parser.add_argument("--overwrite", action="store_true", help="measure everything again")
    asked = parser.parse_args(arguments)
    for name in asked.stages:
        if name not in STAGES:
            raise UsageError(f"stage is {name!r}, must be one of {', '.join(STAGES)}")
    for name, (least, most) in _RANGES.items():
        value = getattr(asked, name)
        if value is not None and not least <= value <= most:
            raise UsageError(f"--{name} is {value:,}, must be in {least:,}..{most:,}")
    return asked


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def _peers() -> list[PeerRow]:
    with tempfile.TemporaryDirectory(prefix="hushcount-peers-") as scratch:
        try:
            return compare(Path(scratch), _PEER_REPORTS, _PEER_ITEMS, _PEER_EPSILON, _PEER_REPEATS, _say)
        except PeersMissing as missing:
            _say(f"SKIPPED, peers were NOT measured: {missing}")
            return []


def _table(measured: dict[str, Figures]) -> str:
    rows = [
        (
            name,
            f"{figures.reports:,}",
            f"{figures.reports_per_second:,.0f}",
            f"{figures.cpu_us_per_report:.2f}",
            "" if figures.cpu_ratio_to_limit is None else f"{figures.cpu_ratio_to_limit:.2f}",
            f"{figures.peak_rss_mib:,.0f}",
            STAGES[name].target,
        )
        for name, figures in measured.items()
    ]
    return table(("stage", "reports", "reports/s", "CPU us a report", "CPU ratio", "peak MiB", "to reach"), rows)


def _keep(out: Path | None, record: Record) -> None:
    """Write the measurements so far, and their page."""
    if out is None:
        return
    write_record(out, record)
    write_over(out / "RESULTS.md", page(record, costs(record.measured)), _FILE_MODE)
    if record.curves:
        write_over(out / "growth.png", plot(record.curves), _FILE_MODE)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except HushcountError as error:
        _say(f"error: {error}")
        sys.exit(error.exit_status)
