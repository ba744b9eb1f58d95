"""What CI runs in a clean clone, cheapest checks first, with a budget of CPU time for each step.

What mostly waits goes on beside the checks: for packages that are fetched, and for windows of containers that end.
What a machine cannot run is skipped, and a line says so. A budget is what a step took when it was written down, and a
tenth more; the table at the end shows what grew. Nothing fails by it, since processors differ.

Images, engines, fresh environments and the lanes are not run again while nothing of theirs has changed since they were
last green: records.py says what that is.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import records

ROOT = Path(__file__).parents[1]
LOGS = ROOT / "build" / "ci"
NEWEST = ROOT / "build" / "newest"
MEMORY = Path("/dev/shm")  # noqa: S108  # the parent of a folder of our own
LEAST_MEMORY = 2 << 30
"""Bytes that the files of a whole run fit into."""


@dataclass(frozen=True)
class Step:
    """One line of shell, which must end with status 0.

    Attributes:
        budget: CPU seconds of its processes on the machine of docs/contributors.md; what a Docker engine runs is not
            among them.
        minutes: after which it is ended.
        needs: programs; it is skipped where one is missing.
        after: the step of BESIDE that it waits for; it is skipped with that one.
        suite: of records.SUITES, if it need not run again while nothing of that changed.
        unless: what was NOT done, which a skip prints.
        may_fail: whether it is skipped where it fails, as what is fetched may be out of reach.
        tries: how often it is tried, on a machine that others use too.
        in_memory: whether its tests write in memory, since they wait for a disk as long as they work.
        alone: whether it waits until nothing runs beside it. Chromium drops its requests (ERR_NETWORK_CHANGED) when a
            network interface comes or goes, and a Docker engine makes one for each container.
    """

    name: str
    line: str
    budget: int
    minutes: float = 30
    needs: tuple[str, ...] = ()
    after: str = ""
    suite: str = ""
    unless: str = "it was NOT run"
    may_fail: bool = False
    tries: int = 1
    in_memory: bool = False
    alone: bool = False


@dataclass(frozen=True)
class Ran:
    """What came of a step: green, red, skipped, or unchanged since it was green."""

    step: Step
    outcome: str
    wall: float = 0.0
    cpu: float = 0.0


FIRST = (
    Step("environment", "make .venv/dev", 110, 15),
    Step("lint", "make lint", 35),
)
# One after the other, beside CHECKS.
BESIDE = (
    Step(
        "deploy tools", "make deploy-tools", 30, 10, needs=("go",), may_fail=True,
        unless="manifests and images were NOT held against their own readers",
    ),
    Step("chromium", "sh .ci/chromium.sh", 15, 10, may_fail=True, unless="NO page was opened in a browser"),
    Step("oldest environment", "make pythons OTHERS=3.10", 80, 15),
    Step(
        "newest Pythons", f"sh .ci/newest.sh get {NEWEST}", 40, 10, needs=("unshare", "chroot"), may_fail=True,
        unless="NOTHING was run on Python 3.14 and 3.15",
    ),
    Step("images", "make containers IMAGES=parties", 240, 15, suite="containers", tries=2),
    Step(
        "engines", "make engines", 230, 15, needs=("java", "mvn", "go"), suite="engines", may_fail=True,
        unless="the jobs were NOT run on Flink and Prism",
    ),
    Step("containers", "make test-containers-quick", 150, after="images", suite="containers"),
    Step("rust", "make test-rust", 370, 15, needs=("cargo",), suite="rust"),
    Step(
        "bindings", "make test-bindings", 60, 15, needs=("cargo", "go", "java", "mvn"), suite="bindings",
        unless="the native client was NOT called from C, Go and Kotlin",
    ),
)  # fmt: skip
CHECKS = (
    Step("packages", "make package", 15),
    Step("unit", "make unit", 875, in_memory=True),
    Step("environments", "make environments", 50, suite="environments"),
    Step("lanes", "make lanes", 65, suite="lanes"),
    Step("docs", "make docs", 30),
    Step("demo", "make demo", 115),
    Step("release", "make release", 90, 15, needs=("npm",), suite="release"),
    Step("oldest Python", "make test-pythons OTHERS=3.10", 165, after="oldest environment"),
    Step("on newest Pythons", f"sh .ci/newest.sh test {NEWEST}", 150, after="newest Pythons"),
    # With `unit` this is every test of `make test-all`.
    Step("rest", "make test-rest", 1670, 45, in_memory=True),
    Step("on engines", "make test-engines-quick", 150, 20, after="engines", suite="engines", tries=2),
    Step("typescript", "make test-typescript", 120, 15, needs=("npm",), alone=True),
    Step("browser", "make test-browser", 165, 10, needs=("chromium", "npm"), after="chromium", alone=True),
    Step(
        "bundlers", "make test-bundlers", 90, 10, needs=("chromium", "npm"), after="chromium", suite="bundlers",
        alone=True,
    ),
)  # fmt: skip


def main() -> int:
    """Run all steps until one is red; return the status."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "hushcount-ci"
    os.environ["ENGINES"] = str(cache / "engines" / records.digest_of(ROOT, records.Suite(of=("deploy/flink/",))))
    unchanged = records.unchanged(ROOT, cache)
    for suite, day in unchanged.items():
        print(f"NOT AGAIN: {suite}: nothing that it tests changed since it was green on {day}", flush=True)
    ran: list[Ran] = []
    with ThreadPoolExecutor(1) as beside, TemporaryDirectory(dir=memory(), ignore_cleanup_errors=True) as made:
        os.environ["TESTS_WRITE"] = made
        begun: dict[str, Future[Ran]] = {}
        for step in (*FIRST, *CHECKS):
            if step is CHECKS[0]:
                for one in BESIDE:
                    begun[one.name] = beside.submit(go, begun, one, unchanged, LOGS / f"{one.name}.log")
            ran.append(go(begun, step, unchanged))
            if ran[-1].outcome == "red":
                break
        beside.shutdown(cancel_futures=ran[-1].outcome == "red")
        ran += [one.result() for one in begun.values() if not one.cancelled()]
    print(table(ran))
    if any(one.outcome == "red" for one in ran):
        return 1
    green = {one.step.suite for one in ran} - {one.step.suite for one in ran if one.outcome != "green"}
    records.write(ROOT, cache, green, unchanged)
    return 0


def memory() -> Path | None:
    """Return where tests `in_memory` write: None is the disk, if memory is too small."""
    return MEMORY if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > LEAST_MEMORY else None


def go(begun: dict[str, Future[Ran]], step: Step, unchanged: dict[str, str], log: Path | None = None) -> Ran:
    """Run a step once what it waits for has ended, if that is there."""
    if step.alone:
        wait(begun.values())
    before = begun[step.after].result() if step.after else None
    if before and before.outcome == "red":
        return Ran(step, "red")
    if before and before.outcome == "skipped":
        print(f"SKIPPED: {step.name}: without {before.step.name} {before.step.unless}", flush=True)
        return Ran(step, "skipped")
    return run(step, unchanged, log)


def run(step: Step, unchanged: dict[str, str], log: Path | None = None) -> Ran:
    """Run a step, unless something that it needs is missing; with a log, print that when it has ended."""
    if step.suite in unchanged:
        return Ran(step, "unchanged")
    missing = [program for program in step.needs if shutil.which(program) is None]
    if missing:
        print(f"SKIPPED: {step.name}: there is no {' and no '.join(missing)}: {step.unless}", flush=True)
        return Ran(step, "skipped")
    for left in reversed(range(step.tries)):
        ran = once(step, log)
        if ran.outcome == "red":
            print(f"{'AGAIN' if left else 'FAILED'}: {step.name}: {step.line}", flush=True)
        else:
            break
    if ran.outcome == "red" and step.may_fail:
        print(f"SKIPPED: {step.name} failed: {step.unless}", flush=True)
        return Ran(step, "skipped", ran.wall, ran.cpu)
    return ran


def once(step: Step, log: Path | None) -> Ran:
    """Run a step's line and return how long it took, with all the processes that it waited for."""
    begun = time.monotonic()
    if log:
        log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") if log else os.fdopen(os.dup(1), "wb") as out:
        process = subprocess.Popen(  # noqa: S602  # our own lines
            step.line, shell=True, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
            env={**os.environ, "PYTEST_DEBUG_TEMPROOT": os.environ["TESTS_WRITE"] if step.in_memory else ""},
        )  # fmt: skip
        too_late = threading.Timer(60 * step.minutes, os.killpg, (process.pid, signal.SIGKILL))
        too_late.start()
        _, status, used = os.wait4(process.pid, 0)
        too_late.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
    if log:
        print(log.read_text("utf-8", "replace"), flush=True)
    outcome = "red" if process.returncode else "green"
    return Ran(step, outcome, time.monotonic() - begun, used.ru_utime + used.ru_stime)


def table(ran: list[Ran]) -> str:
    """Return what each step took beside its budget."""
    rows = [f"{'step':20} {'':9} {'wall s':>7} {'CPU s':>7} {'budget':>7}"]
    for one in ran:
        over = "  more than its budget" if one.cpu > one.step.budget else ""
        rows.append(f"{one.step.name:20} {one.outcome:9} {one.wall:7.0f} {one.cpu:7.0f} {one.step.budget:7}{over}")
    rows.append(f"{'all':30} {'':7} {sum(one.cpu for one in ran):7.0f} {budget():7}")
    return "\n".join(rows)


def budget() -> int:
    """Return the CPU seconds of all steps, which docs/contributors.md states."""
    return sum(step.budget for step in (*FIRST, *BESIDE, *CHECKS))


if __name__ == "__main__":
    sys.exit(main())
