"""Measure a stage in its own process, with input from another process, between two measurements of its limit."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hushcount.errors import HushcountError

_CLEAR_HIGH_WATER = "5"
"""Command of proc(5): reset the high-water mark of memory to the present value."""
_START_TIME = 19
"""Index of the field that proc(5) calls starttime, among the fields after the name of the process."""
_HIGH_WATER = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True)
class Used:
    """The time of some work, for all threads of the process together.

    Attributes:
        cpu: CPU seconds.
        wall: seconds by the clock.
    """

    cpu: float
    wall: float


@dataclass(frozen=True)
class Run:
    """One run of a stage.

    Attributes:
        reports: number of reports.
        stage: the time of the stage.
        limit: the time of the limit for as many reports, the mean of before and after; None without a limit.
        peak_rss_mib: the peak memory of the process while the stage ran, in MiB, imports included.
        bins: number of revealed unknown values; None if the stage does not reveal values.
        start: the time of the process before the stage began, mostly for imports.
    """

    reports: int
    stage: Used
    limit: Used | None
    peak_rss_mib: float
    bins: int | None = None
    start: Used = Used(0.0, 0.0)


@dataclass(frozen=True)
class Figures:
    """Medians over runs of one stage, and the spread of the runs.

    Attributes:
        reports: number of reports in each run.
        runs: number of runs.
        reports_per_second: by the clock.
        cpu_us_per_report: CPU microseconds.
        limit_reports_per_second: of the limit, in the same runs; None without a limit.
        ratio_to_limit: median of the runs' ratios, by the clock.
        cpu_ratio_to_limit: median of the runs' ratios of CPU time, limit over stage, which holds on a busy machine too.
        peak_rss_mib: largest of the runs.
        spread: largest CPU time of the runs over the least one.
        seconds_with_start: by the clock, from the start of the process.
        cpu_seconds_with_start: CPU time from the start of the process.
        bins: number of values revealed in the run with the fewest; None if the stage does not reveal values.
        note: a note on how these figures were measured, if a reader needs one.
    """

    reports: int
    runs: int
    reports_per_second: float
    cpu_us_per_report: float
    limit_reports_per_second: float | None
    ratio_to_limit: float | None
    cpu_ratio_to_limit: float | None
    peak_rss_mib: float
    spread: float
    seconds_with_start: float
    cpu_seconds_with_start: float
    bins: int | None = None
    note: str = ""


def used(work: Callable[[], object]) -> Used:
    """Do some work once, and return its time."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return Used(time.process_time() - cpu, time.perf_counter() - wall)


def since_start() -> Used:
    """Return the time of this process since its start."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[_START_TIME])
    wall = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return Used(time.process_time(), wall)


def between(stage: Callable[[], object], reports: int, limit: Callable[[], Used] | None) -> Run:
    """Measure a stage between two measurements of its limit, so that other load on the machine affects both."""
    before = limit() if limit else None
    forget_peak()
    took = used(stage)
    # Read before the limit runs again, because its memory does not belong to the stage.
    peak = peak_rss_mib()
    after = limit() if limit else None
    both = Used((before.cpu + after.cpu) / 2, (before.wall + after.wall) / 2) if before and after else None
    return Run(reports, took, both, peak)


def forget_peak() -> None:
    """Reset the peak to the memory that this process holds now."""
    Path("/proc/self/clear_refs").write_text(_CLEAR_HIGH_WATER)


def peak_rss_mib() -> float:
    """Return the most memory that this process has held since `forget_peak`; not its parent's, as getrusage may."""
    found = _HIGH_WATER.search(Path("/proc/self/status").read_text())
    if found is None:
        raise OSError("/proc/self/status has no VmHWM: peak memory can be measured on Linux only")
    return int(found[1]) / 1024


def in_child(stage: str, reports: int, items: int) -> Run:
    """Measure a stage once, as `prepared` does."""
    with prepared(stage, reports, items) as run:
        return run()


@contextmanager
def prepared(stage: str, reports: int, items: int) -> Iterator[Callable[[], Run]]:
    """Make a stage's input in one process, and yield a function that measures the stage once, in a new process.

    Raises:
        HushcountError: a process failed; the message has the last line of its output.
    """
    with tempfile.TemporaryDirectory(prefix="hushcount-bench-") as scratch:
        _child("make", stage, str(reports), str(items), scratch)
        yield partial(_run, stage, reports, scratch)


def _run(stage: str, reports: int, directory: str) -> Run:
    with tempfile.TemporaryDirectory(prefix="hushcount-bench-") as out:
        said = json.loads(_child("run", stage, str(reports), directory, out).splitlines()[-1])
    limit = said["limit"]
    took = {"stage": Used(**said["stage"]), "start": Used(**said["start"]), "limit": Used(**limit) if limit else None}
    return Run(**{**said, **took})


def _child(step: str, stage: str, *arguments: str) -> str:
    command = [sys.executable, "-m", "benchmarks.child", step, stage, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # our own words
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise HushcountError(f"stage {stage} failed: {last[0]}")
    return done.stdout


def summarise(runs: list[Run]) -> Figures:
    """Return the medians of runs of one stage over equally many reports."""
    count = runs[0].reports
    limits = [run.limit for run in runs if run.limit]
    cpu = [run.stage.cpu for run in runs]
    ratios = [run.limit.wall / run.stage.wall for run in runs if run.limit]
    bins = [run.bins for run in runs if run.bins is not None]
    cpu_ratios = [run.limit.cpu / run.stage.cpu for run in runs if run.limit]
    return Figures(
        reports=count,
        runs=len(runs),
        reports_per_second=count / statistics.median(run.stage.wall for run in runs),
        cpu_us_per_report=statistics.median(cpu) / count * 1e6,
        limit_reports_per_second=count / statistics.median(limit.wall for limit in limits) if limits else None,
        ratio_to_limit=statistics.median(ratios) if ratios else None,
        cpu_ratio_to_limit=statistics.median(cpu_ratios) if cpu_ratios else None,
        peak_rss_mib=max(run.peak_rss_mib for run in runs),
        spread=max(cpu) / min(cpu),
        seconds_with_start=statistics.median(run.start.wall + run.stage.wall for run in runs),
        cpu_seconds_with_start=statistics.median(run.start.cpu + run.stage.cpu for run in runs),
        bins=min(bins, default=None),
    )
