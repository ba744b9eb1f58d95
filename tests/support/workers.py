"""Tests collected once, and run by so many processes that are forked then: `--workers 3`.

Other tools for tests in parallel let each process collect all tests by itself, which costs more than many of ours.
Each worker begins with its own part of the tests, in order, so that what a module shares is made once; one that has
none left takes the later half of the longest part that is left. A worker that dies is a failure of its test.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

import pytest

_FORK = get_context("fork")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--workers", type=int, default=1, help="how many processes share the tests that one collected")


class Shares:
    """Which tests each worker has still to begin, in memory that all of them share."""

    def __init__(self, tests: int, workers: int) -> None:
        edges = [tests * worker // workers for worker in range(workers + 1)]
        self._next = _FORK.Array("q", edges[:-1])
        self._ends = _FORK.Array("q", edges[1:], lock=False)

    def take(self, worker: int) -> int | None:
        """Return the number of a worker's next test, or None if all have begun."""
        with self._next.get_lock():
            if self._next[worker] == self._ends[worker]:
                left = [end - start for start, end in zip(self._next, self._ends, strict=True)]
                longest = left.index(max(left))
                self._ends[worker] = self._ends[longest]
                self._next[worker] = self._ends[longest] = self._ends[longest] - (left[longest] + 1) // 2
            if self._next[worker] == self._ends[worker]:
                return None
            self._next[worker] += 1
            return self._next[worker] - 1

    def stop(self) -> None:
        """Let no test begin any more."""
        with self._next.get_lock():
            self._ends[:] = self._next[:]


class _Sender:
    """What a worker says of its tests, instead of printing it."""

    def __init__(self, config: pytest.Config, to: Connection) -> None:
        self._config, self._to = config, to

    def pytest_runtest_logstart(self, nodeid: str, location: Any) -> None:
        self._to.send((nodeid, location, None))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._to.send((report.nodeid, report.location, data))


def _work(session: pytest.Session, take: Callable[[], int | None], to: Connection) -> None:
    """Run tests in a forked process until none is left."""
    config = session.config
    capture = config.pluginmanager.getplugin("capturemanager")
    # What is printed goes to a file, and those who were forked must not share one.
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()
    config.pluginmanager.unregister(name="terminalreporter")
    config.pluginmanager.register(_Sender(config, to))
    # Who interrupts a run interrupts all of its processes.
    with suppress(KeyboardInterrupt):
        number = take()
        while number is not None:
            following = take()
            item, then = session.items[number], None if following is None else session.items[following]
            item.ihook.pytest_runtest_protocol(item=item, nextitem=then)
            number = following
    to.send(None)


@dataclass
class _Worker:
    """What the process that collected knows of another one.

    Attributes:
        test: the name and the place of the test that it said something of last.
    """

    process: Any
    said: Connection
    test: tuple[str, Any] = ("", ("", None, "a worker"))


def _start(session: pytest.Session, take: Callable[[], int | None]) -> _Worker:
    said, to = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_work, args=(session, take, to))
    with warnings.catch_warnings():
        # Of libraries that start a thread when they are imported; it holds no lock of ours.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    # Only the worker holds the end that it writes to, so that its death is seen.
    to.close()
    return _Worker(process, said)


def _pass_on(config: pytest.Config, worker: _Worker) -> bool:
    """Tell pytest what a worker said; return whether it may say more."""
    try:
        said = worker.said.recv()
    except EOFError:
        worker.process.join()
        status = worker.process.exitcode
        died = f"its worker ended with status {status}; the test that this had next, if there was one, was NOT run"
        report = pytest.TestReport(*worker.test, keywords={}, outcome="failed", longrepr=died, when="call")
        config.hook.pytest_runtest_logreport(report=report)
        return False
    if said is None:
        worker.process.join()
        return False
    name, place, data = said
    worker.test = (name, place)
    if data is None:
        config.hook.pytest_runtest_logstart(nodeid=name, location=place)
    else:
        report = config.hook.pytest_report_from_serializable(config=config, data=data)
        config.hook.pytest_runtest_logreport(report=report)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    number = min(session.config.getoption("workers"), len(session.items))
    if number < 2 or session.config.option.collectonly or session.testsfailed:
        return None
    shares = Shares(len(session.items), number)
    workers = [_start(session, partial(shares.take, worker)) for worker in range(number)]
    try:
        at_work = {worker.said: worker for worker in workers}
        while at_work:
            for said in wait(list(at_work)):
                if not _pass_on(session.config, at_work[said]):
                    del at_work[said]
            if session.shouldfail or session.shouldstop:
                shares.stop()
    finally:
        for worker in workers:
            worker.process.terminate()
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)
    return True
