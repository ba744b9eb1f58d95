"""One collection that all faults befall, and a table of what happened to it in how many trials."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engines.conftest import fetched
from tests.faults.collection import Collection, collect

__all__ = ["fetched"]

Note = Callable[[str, str, str], None]
"""Of the fault, the job that it befell, and what came of it."""
_SEEN: pytest.StashKey[Counter[tuple[str, str, str]]] = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_SEEN] = Counter()
    # As on Ctrl-C, with fixtures undone.
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.fixture
def note(request: pytest.FixtureRequest) -> Note:
    """Note the outcome of a trial: of one fault, one job, what came of it."""

    def noted(fault: str, job: str, outcome: str) -> None:
        print(f"{fault} | {job} | {outcome}")
        request.config.stash[_SEEN][fault, job, outcome] += 1

    return noted


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the table, and write it to build/faults.md."""
    seen = config.stash[_SEEN]
    if not seen:
        return
    lines = ["| fault | job | outcome | trials |", "|---|---|---|---:|"]
    lines += [f"| {fault} | {job} | {outcome} | {trials} |" for (fault, job, outcome), trials in seen.items()]
    terminalreporter.section("faults")
    terminalreporter.write("".join(f"{line}\n" for line in lines))
    target = Path("build")
    target.mkdir(exist_ok=True)
    (target / "faults.md").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@pytest.fixture(scope="session")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    """A collection whose jobs take seconds, each of them done once undisturbed. Nobody writes to these files."""
    return collect(tmp_path_factory.mktemp("collected"))
