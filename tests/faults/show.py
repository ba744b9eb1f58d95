"""Kill parts of a cluster in the middle of each job, with the counts before and after, and time analyze on engines.

    python -m tests.faults.show --engines build/engines --reports 1000000

Prints a transcript; ends with an exception where anything was lost.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.inputs import FILE_RECORDS, Place, Setting, as_shuffled, counts, drawn, make_place, names, sealed
from deploy.flink.cluster import flink, job_server, worker_pool
from tests.faults.collection import SECONDS, Collection, collect, finished, started
from tests.faults.flink_faults import failures, kill_task_manager, running, wait_until_working
from tests.support.jobs import summary

JOBS = ("shuffle", "analyze", "aux-server", "analyzer")
PROCESSES = ("--", "--direct_num_workers=2", "--direct_running_mode=multi_processing")
ITEMS = 1000


def main() -> None:
    """Do both."""
    parser = argparse.ArgumentParser(description="Kill parts of a cluster in the middle of each job; time analyze.")
    parser.add_argument("--engines", type=Path, default=Path("build/engines"), help="What deploy/flink/fetch.py wrote.")
    parser.add_argument("--reports", type=int, default=1_000_000, help="How many analyze is timed on.")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hushcount-show-") as made:
        root, engines = Path(made), asked.engines.absolute()
        (root / "collected").mkdir()
        collection = collect(root / "collected")
        for job in JOBS:
            show_kill(collection, engines, root / job, job)
        show_times(engines, root / "timed", asked.reports)


def show_kill(collection: Collection, engines: Path, directory: Path, job: str) -> None:
    """Kill the TaskManager that works at a job, and print what was there before and after."""
    directory.mkdir()
    out = directory / "out"
    say(f"$ hushcount {' '.join(collection.arguments(job, 'out')[:1])} ({job}) on two TaskManagers")
    say(f"  without a fault:  {told(collection.undisturbed(job))}")
    with running(engines, directory / "flink", restarts=5) as (cluster, options):
        with started(*collection.arguments(job, out), *options) as process:
            found, victim = wait_until_working(cluster)
            kill_task_manager(cluster, victim)
            say(f"  kill -9 {cluster.task_managers[victim].pid}  # {victim}, at work")
            _, printed = process.communicate(timeout=SECONDS)
        lost = failures(cluster, found)
    say(f"  exit status {process.returncode}{printed and ': ' + printed.strip()}; Flink lost work {lost} time(s)")
    say(f"  after the kill:   {told(out)}")
    collection.assert_same(job, out)
    collection.assert_input_intact()
    say("  the same result, the input as it was\n")


def told(directory: Path) -> str:
    """Return the counts of a result, in a line."""
    data: dict[str, Any] = summary(directory)
    parts = [f"received {data['received']:,}", f"accepted {data['accepted']:,}", f"rejected {data['rejected']}"]
    return ", ".join(parts + [f"{name} {data[name]}" for name in ("released", "bins") if name in data])


def show_times(engines: Path, directory: Path, reports: int) -> None:
    """Time analyze of so many reports, with two workers, on Beam's embedded runner and on Flink."""
    place = make_place(directory, Setting("ais", ITEMS, epsilon=2.0))
    values = names(ITEMS - 1)
    source = as_shuffled(
        place, "reports", (sealed(place, "reports", drawn(values, n)) for n in counts(reports, FILE_RECORDS))
    )
    say(f"analyze of {reports:,} reports, wall time of the command:")
    with ExitStack() as stack:
        logs = directory / "flink"
        logs.mkdir()
        cluster = stack.enter_context(flink(engines, logs, task_managers=2, slots=1))
        endpoint = stack.enter_context(job_server(engines / "job-server-light.jar", logs, cluster.rest))
        pool = stack.enter_context(worker_pool(logs))
        there = ("--runner", "PortableRunner", "--", f"--job_endpoint={endpoint}", "--parallelism=2")
        on_flink = (*there, "--environment_type=EXTERNAL", f"--environment_config={pool}")
        runs = {
            "FnApiRunner, one process": (),
            "FnApiRunner, two worker processes": PROCESSES,
            "Flink, two TaskManagers and a worker each, first job": on_flink,
            "Flink, the same cluster, second job": on_flink,
        }
        tallies = []
        for number, (name, options) in enumerate(runs.items()):
            out = directory / f"results-{number}"
            say(f"  {timed(place, source, out, options):6.1f} s  {name}")
            assert summary(out)["accepted"] == reports
            with np.load(out / "tally.npz") as tally:
                tallies.append({array: tally[array] for array in tally.files})
    assert all((one[name] == tallies[0][name]).all() for one in tallies for name in one)
    say("  all tallies equal")


def timed(place: Place, source: str, out: Path, options: tuple[str, ...]) -> float:
    """Return the seconds of a whole command."""
    began = time.monotonic()
    paths = ("--campaign", str(place.campaign_path), "--input", source, "--keys", str(place.keys), "--out", str(out))
    finished("job", "analyze", *paths, *options)
    return time.monotonic() - began


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


if __name__ == "__main__":
    main()
