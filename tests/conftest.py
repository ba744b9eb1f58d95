"""Settings of all tests: the engine of jobs, and which tests `make test` leaves to `make test-all`.

`make test` tells a developer within minutes what broke. `make test-all` runs every test with every case, and jobs on
Beam.

- `@pytest.mark.long`: statistics of a million draws, mechanisms crossed with everything, subprocesses by the dozen.
  `make test` leaves the test out. `@pytest.mark.long(but=(...))` names the cases that `make test` runs nevertheless, by
  their ids: at least one where the test backs a claim of docs/threat-model.md.
- `@pytest.mark.beam`: the test is about the engine, its workers or what is sent to them. Its jobs always run on Beam's
  own engine. Jobs of other tests run on tests/support/plain_engine.py, which a test holds to Beam's; with
  `--engine beam` they run on Beam too, except in rooms beside the jobs.

Which rooms those are, and what one run need not repeat of another, is in tests/support/covered.py.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Shared machines pause: how long an example takes, or is drawn, says nothing. Whoever changed nothing sees no new
# failure in `make test`, so its examples are the same each time; `make test-all` draws anew.
for name, derandomize in (("same", True), ("anew", False)):
    settings.register_profile(
        name, derandomize=derandomize, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile("same")
HERE = Path(__file__).parent
pytest_plugins = ["tests.support.covered", "tests.support.workers"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--engine",
        choices=("plain", "beam"),
        default="plain",
        help="of jobs in the tests' own process: their graphs evaluated at once, or Beam's embedded runner",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Give a test's jobs their engine, before any of its fixtures runs a job."""
    # A test that has imported no Beam has no job, or is slow once.
    if "apache_beam" not in sys.modules:
        return (yield)
    from tests.support.covered import is_beside_jobs, plain_jobs
    from tests.support.plain_engine import instead_of_beam
    from tests.support.quick_beam import let_beam_remember

    with_beam = item.config.getoption("engine") == "beam" and not is_beside_jobs(item)
    on_beam = with_beam or item.get_closest_marker("beam") is not None
    with pytest.MonkeyPatch.context() as patch:
        let_beam_remember(patch.setattr)
        if not on_beam:
            instead_of_beam(patch.setattr, plain_jobs(item.config).add)
        return (yield)


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Refuse a `long` test whose `but` names a case that it does not have."""
    for mark in metafunc.definition.iter_markers("long"):
        ids = {call.id for call in metafunc._calls}
        if missing := set(mark.kwargs.get("but", ())) - ids:
            raise pytest.UsageError(f"{metafunc.definition.nodeid} is long but for {missing}, which it does not have")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Take the marker `long` from the cases that it excepts, and begin with the longest tests.

    Those are in this folder itself: begun last, one of them would keep one worker at work alone. What is beside
    the jobs comes last: a fixture of the whole session that jobs' tests share with it is made on their engine.
    """
    for item in items:
        case = getattr(getattr(item, "callspec", None), "id", None)
        item.own_markers = [
            mark for mark in item.own_markers if mark.name != "long" or case not in mark.kwargs.get("but", ())
        ]
    from tests.support.covered import is_beside_jobs

    items.sort(key=lambda item: (item.path.parent != HERE, is_beside_jobs(item)))


def pytest_collection_finish() -> None:
    """Keep the garbage collector from looking through all that the tests import, again and again."""
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()
