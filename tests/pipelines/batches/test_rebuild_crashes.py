"""A run that dies before any of its writes, and whose state is then lost or restored: each report counts once.

The jobs are plain ones (`PlainJobs`): what is tested is what a run remembers, not what it counts.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from pipelines.files import storage
from pipelines.outputs import staging
from tests.pipelines.schedule.test_run import Killed
from tests.support.plain_jobs import COPIES, PlainJobs, leave
from tests.support.site import Site, account_at

KEEP = '[retention]\nsegments = "6d"\nshuffled = "7d"\nreleased = "7d"\ndead_letters = "7d"\n'
LOSSES = ("deleted", "restored")
WRITES = ((storage, "write_whole"), (storage, "remove"), (storage, "remove_directory"), (staging, "_put"))


@contextmanager
def dying(number: int) -> Iterator[None]:
    """Kill what runs in the block before its write of that number: a file, a deletion, a transaction that changes."""
    left = number

    def step() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed

    def wrapped(real: Callable[..., Any]) -> Callable[..., Any]:
        def mortal(*arguments: object, **options: object) -> object:
            step()
            return real(*arguments, **options)

        return mortal

    def changes(connection: Any, _cursor: object, statement: str, *_: object) -> None:
        if statement.startswith(("INSERT", "UPDATE", "DELETE")):
            connection.info["changed"] = True

    def commits(connection: Any) -> None:
        if connection.info.pop("changed", False):
            step()

    with pytest.MonkeyPatch.context() as patch:
        for module, name in WRITES:
            patch.setattr(module, name, wrapped(getattr(module, name)))
        event.listen(Engine, "before_cursor_execute", changes)
        event.listen(Engine, "commit", commits)
        try:
            yield
        finally:
            event.remove(Engine, "before_cursor_execute", changes)
            event.remove(Engine, "commit", commits)


def lose(site: Site, loss: str) -> None:
    """Delete the state, or put back what was copied."""
    state = Path(site.deployment.state)
    state.unlink()
    if loss == "restored":
        shutil.copy(site.root / "yesterday.db", state)


def agrees(site: Site, day: float) -> None:
    assert account_at(site, day).differences == []


@pytest.mark.parametrize("first", ["left out", "dissolved"])
@pytest.mark.long
def test_each_segment_is_released_once_wherever_a_run_dies_and_its_state_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    site = Site(tmp_path / "site", discovery=True)
    site.run(0.5)
    shutil.copy(site.deployment.state, site.root / "yesterday.db")
    made = leave(site.store, site.campaign, 0, {"reports": 100 if first == "left out" else 20, "discovery": 40})
    made += leave(site.store, site.campaign, 0, {"reports": 40, "discovery": 20}, COPIES)
    ended = False
    for number in range(100):
        one = site.copied(tmp_path / str(number))
        loss, jobs = LOSSES[number % 2], PlainJobs(monkeypatch)
        try:
            with dying(number):
                assert one.run(1.1).problems == []
            ended = True
        except Killed:
            pass
        lose(one, loss)
        late = leave(one.store, one.campaign, 0, {"reports": 70, "discovery": 10}, "two")
        assert one.run(1.2).problems == []
        lose(one, loss)
        late += leave(one.store, one.campaign, 1, {"reports": 60, "discovery": 60})
        assert one.run(2.1).problems == []
        agrees(one, 2.1)
        released = Counter(path for listed in jobs.released.values() for path in listed)
        assert released == Counter([*made, *late]), number
        assert {state for window in account_at(one, 2.1).windows for state in window.states} == {"batched"}
        shutil.rmtree(one.root)
        if ended:
            break
    assert ended
    assert number >= 7


@pytest.mark.long
def test_nothing_runs_again_wherever_retention_dies_and_the_state_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path / "site", discovery=True, tail=KEEP)
    jobs = PlainJobs(monkeypatch)
    leave(site.store, site.campaign, 0, {"reports": 100, "discovery": 40})
    leave(site.store, site.campaign, 0, {"discovery": 20}, COPIES)
    site.run(1.1)
    leave(site.store, site.campaign, 1, {"reports": 100, "discovery": 60})
    site.run(2.1)
    assert len(jobs.ran) == 6
    shutil.copy(site.deployment.state, site.root / "yesterday.db")
    ended = False
    for number in range(100):
        one = site.copied(tmp_path / str(number))
        loss = LOSSES[number % 2]
        try:
            with dying(number):
                # All of the first window's, and the segments of the second.
                one.run(8.5, sure=True)
            ended = True
        except Killed:
            pass
        lose(one, loss)
        finished = one.run(20.1, sure=True)
        assert (finished.problems, len(jobs.ran)) == ([], 6), number
        lose(one, loss)
        assert one.run(20.2, sure=True).problems == []
        agrees(one, 20.2)
        assert len(jobs.ran) == 6
        left = {path.relative_to(one.store).parts[0] for path in one.store.rglob("*") if path.is_file()}
        assert left == {"found", "results"}
        shutil.rmtree(one.root)
        if ended:
            break
    assert ended
    assert number >= 6
