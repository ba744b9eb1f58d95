"""Tests that need not run again with `--engine beam`: one run writes them down, the next one leaves them out.

`--covered-to FILE` writes the ids of all tests that passed and ran no job on the plain engine: the other engine changes
nothing for them. `--but FILE` leaves those out, so that both runs together are every test with every case, once.
A test also ran a job if a fixture that it uses did, or a process that it forked.

Tests of `BESIDE_JOBS` run on the plain engine with `--engine beam` too, so they need no second run: their subject is
not what an engine does with a job, but when it runs, what it refuses and what is made of its results. That both engines
give the same results is held by the rest of tests/pipelines/jobs, and for a whole run of the schedule by
tests/model/test_plain_engine.py and tests/golden. All other tests run on Beam: those of a new room do until it is
listed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from multiprocessing import RawValue
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

BESIDE_JOBS = (
    *(
        f"tests/pipelines/{room}"
        for room in (
            "audit", "console", "epochs", "files", "handover", "ledger", "log", "monitoring", "outputs",
            "pages", "questions", "schedule", "windows",
        )
    ),
    *(
        f"tests/pipelines/jobs/test_{subject}.py"
        for subject in (
            "bad_reports", "damaged_files", "dead_letters", "earlier_batches", "encode_sealing",
            "found_counts", "groups", "memory_campaign", "oblivious", "open_domain", "opened_floor", "own_dictionary",
            "refusals", "second_draw", "simulate", "spellings",
        )
    ),
    *(
        f"tests/keys/test_{subject}.py"
        for subject in ("key_services", "rehearsal", "secret_manager", "wrapping")
    ),
    "tests/pipelines/jobs/data_set",
    "tests/pipelines/streaming/test_twice.py",
    "tests/shuffler/collector/test_uncapped.py",
    "tests/hushcount/campaigns/test_redacted_campaign.py",
    "tests/benchmarks",
    "tests/deploy",
    "tests/experiments",
    "tests/test_backup.py",
    "tests/test_demo.py",
    "tests/test_pasted.py",
)  # fmt: skip
"""Rooms, subjects of jobs, and files of the whole way: `make demo` and tests/pipelines/jobs/test_end_to_end.py go it on
Beam. A case of these that an engine could break is marked `beam` (`either_engine` in tests/pipelines/conftest.py)."""


class PlainJobs:
    """How many jobs ran on the plain engine, in this process and in what it forked."""

    def __init__(self) -> None:
        self._number = RawValue("Q")
        self.fixtures: set[pytest.FixtureDef[Any]] = set()

    def add(self) -> None:
        self._number.value += 1

    @property
    def number(self) -> int:
        return int(self._number.value)


_PLAIN_JOBS = pytest.StashKey[PlainJobs]()
_BEFORE = pytest.StashKey[int]()


def plain_jobs(config: pytest.Config) -> PlainJobs:
    """Return the count of this worker, and of no other: it begins with a worker's first test."""
    if _PLAIN_JOBS not in config.stash:
        config.stash[_PLAIN_JOBS] = PlainJobs()
    return config.stash[_PLAIN_JOBS]


def is_beside_jobs(item: pytest.Item) -> bool:
    """Return whether a test is of `BESIDE_JOBS`, whose jobs never run on Beam's own engine."""
    return _is_beside_jobs(item.nodeid.partition("::")[0])


@cache
def _is_beside_jobs(path: str) -> bool:
    return any(PurePosixPath(path).is_relative_to(room) for room in BESIDE_JOBS)


class _Covered:
    """What the process that reports all tests writes when they have ended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._covered: dict[str, bool] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        covered = report.passed and not getattr(report, "differs_on_beam", True)
        self._covered[report.nodeid] = self._covered.get(report.nodeid, True) and covered

    def pytest_sessionfinish(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text("".join(f"{name}\n" for name, covered in self._covered.items() if covered))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--covered-to", type=Path, help="write the tests that --engine changes nothing for, if they pass")
    parser.addoption("--but", type=Path, help="leave out the tests that a run with --covered-to wrote here")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("covered_to")
    if path:
        config.pluginmanager.register(_Covered(path))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    path = config.getoption("but")
    if path is None:
        return
    covered = set(path.read_text().splitlines())
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in covered])
    items[:] = [item for item in items if item.nodeid not in covered]


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Iterator[None]:
    jobs = plain_jobs(request.config)
    before = jobs.number
    try:
        return (yield)
    finally:
        if jobs.number != before:
            jobs.fixtures.add(fixturedef)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_BEFORE] = plain_jobs(item.config).number


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report: Any = yield
    jobs = plain_jobs(item.config)
    used = {one for name in item._fixtureinfo.name2fixturedefs.values() for one in name}  # type: ignore[attr-defined]
    ran = jobs.number != item.stash[_BEFORE] or not jobs.fixtures.isdisjoint(used)
    report.differs_on_beam = ran and not is_beside_jobs(item)
    return report
