"""Measure a stage in a process of its own, between two measurements of its limit."""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hushcount.errors import HushcountError

_HIGH_WATER = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True)
class Used:
    """What some work took, all threads of the process together.

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
        reports: how many it worked on.
        stage: what it took.
        limit: what the limit took for as many, the mean of before and after; None without one.
        peak_rss_mib: the most memory that the process ever held, in MiB, everything imported included.
    """

    reports: int
    stage: Used
    limit: Used | None
    peak_rss_mib: float


@dataclass(frozen=True)
class Figures:
    """Medians over runs of one stage, and how far they lie apart.

    Attributes:
        reports: in each run.
        runs: how many.
        reports_per_second: by the clock.
        cpu_us_per_report: CPU microseconds.
        limit_reports_per_second: of the limit, in the same runs; None without one.
        ratio_to_limit: median of the runs' ratios, by the clock.
        cpu_us_beyond_limit: what the stage took more than its limit.
        peak_rss_mib: largest of the runs.
        spread: largest by least CPU time of the runs.
    """

    reports: int
    runs: int
    reports_per_second: float
    cpu_us_per_report: float
    limit_reports_per_second: float | None
    ratio_to_limit: float | None
    cpu_us_beyond_limit: float | None
    peak_rss_mib: float
    spread: float


def used(work: Callable[[], object]) -> Used:
    """Do some work once."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return Used(time.process_time() - cpu, time.perf_counter() - wall)


def between(stage: Callable[[], object], reports: int, limit: Callable[[], Used] | None) -> Run:
    """Measure a stage between two measurements of its limit, which share whatever else the machine does."""
    before = limit() if limit else None
    took = used(stage)
    after = limit() if limit else None
    both = Used((before.cpu + after.cpu) / 2, (before.wall + after.wall) / 2) if before and after else None
    return Run(reports, took, both, peak_rss_mib())


def peak_rss_mib() -> float:
    """Return the most memory that this process has held; not its parent's, as getrusage may tell."""
    found = _HIGH_WATER.search(Path("/proc/self/status").read_text())
    if found is None:
        raise OSError("/proc/self/status tells no VmHWM: peak memory is measured on Linux only")
    return int(found[1]) / 1024


def in_child(stage: str, reports: int, items: int) -> Run:
    """Measure a stage in a fresh process, so that its memory is its own.

    Raises:
        HushcountError: it failed; the last line of what it said is in the message.
    """
    command = [sys.executable, "-m", "benchmarks.child", stage, str(reports), str(items)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # our own words
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise HushcountError(f"stage {stage} failed: {last[0]}")
    said = json.loads(done.stdout.splitlines()[-1])
    limit = said["limit"]
    return Run(said["reports"], Used(**said["stage"]), Used(**limit) if limit else None, said["peak_rss_mib"])


def summarise(runs: list[Run]) -> Figures:
    """Return the medians of runs of one stage over equally many reports."""
    count = runs[0].reports
    limits = [run.limit for run in runs if run.limit]
    cpu = [run.stage.cpu for run in runs]
    ratios = [run.limit.wall / run.stage.wall for run in runs if run.limit]
    beyond = [(run.stage.cpu - run.limit.cpu) / count * 1e6 for run in runs if run.limit]
    return Figures(
        reports=count,
        runs=len(runs),
        reports_per_second=count / statistics.median(run.stage.wall for run in runs),
        cpu_us_per_report=statistics.median(cpu) / count * 1e6,
        limit_reports_per_second=count / statistics.median(limit.wall for limit in limits) if limits else None,
        ratio_to_limit=statistics.median(ratios) if ratios else None,
        cpu_us_beyond_limit=statistics.median(beyond) if beyond else None,
        peak_rss_mib=max(run.peak_rss_mib for run in runs),
        spread=max(cpu) / min(cpu),
    )
