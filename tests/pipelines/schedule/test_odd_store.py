"""A store that answers late or twice: a run over it fails and says so, or counts every report once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from apache_beam.io.filesystem import BeamIOError, FileMetadata

from hushcount.errors import HushcountError
from pipelines.files import stores
from tests.support.collecting import collect
from tests.support.jobs import done
from tests.support.site import OBJECTS, Site, values
from tests.support.stub_store import StubStore

ODDITIES = 3
"""How often a store is odd before it behaves."""
Patch = pytest.MonkeyPatch


class Times:
    """Says of each third chance that it is taken, until there were enough."""

    def __init__(self) -> None:
        self.chances = self.taken = 0

    def now(self) -> bool:
        self.chances += 1
        taken = self.chances % 3 == 0 and self.taken < ODDITIES
        self.taken += taken
        return taken


def listed_late(patch: Patch, times: Times) -> None:
    """What was written is in no listing until it has been looked for once."""
    hidden: set[str] = set()
    real = StubStore._list

    def late(store: StubStore, path: str) -> Iterator[FileMetadata]:
        for file in real(store, path):
            # As each run writes under names of its own, it would never end.
            if times.taken < ODDITIES and file.path not in hidden and "/segments/" not in file.path:
                hidden.add(file.path)
                times.taken += 1
            else:
                yield file

    patch.setattr(StubStore, "_list", late)


def _done_and_denied(patch: Patch, times: Times, name: str) -> None:
    """Do what is asked for, and say that it failed."""
    real: Callable[..., Any] = getattr(StubStore, name)

    def odd(store: StubStore, *given: Any) -> Any:
        answer = real(store, *given)
        if times.now():
            raise BeamIOError(f"{name} timed out")
        return answer

    patch.setattr(StubStore, name, odd)


def put_and_denied(patch: Patch, times: Times) -> None:
    """An entry of a log is put, and the answer is lost."""
    real = stores.PUTS["stub"]

    def odd(path: str, content: bytes) -> bool:
        answer = real(path, content)
        if times.now():
            raise BeamIOError("put timed out")
        return answer

    patch.setitem(stores.PUTS, "stub", odd)


def written_and_denied(patch: Patch, times: Times) -> None:
    """A write is reported as failed, and it happened."""
    real = StubStore.put

    def odd(path: str, content: bytes) -> None:
        real(path, content)
        if times.now():
            raise BeamIOError("write timed out")

    patch.setattr(StubStore, "put", staticmethod(odd))


def deleted_and_denied(patch: Patch, times: Times) -> None:
    """A deletion is reported as failed, and it happened; the next one finds nothing."""
    _done_and_denied(patch, times, "delete")


def renamed_and_denied(patch: Patch, times: Times) -> None:
    """A rename is answered twice: the second answer is that its source is missing."""
    _done_and_denied(patch, times, "rename")


@pytest.mark.parametrize(
    "odd", [listed_late, put_and_denied, written_and_denied, deleted_and_denied, renamed_and_denied]
)
@pytest.mark.long(but=("put_and_denied", "renamed_and_denied"))
@pytest.mark.usefixtures("store")
def test_a_run_over_a_store_that_answers_late_or_twice_counts_every_report_once(
    tmp_path: Path, monkeypatch: Patch, odd: Callable[[Patch, Times], None]
) -> None:
    site = Site(tmp_path)
    collect(site.store, site.campaign, values(100), day=0)
    site.move_to_objects()
    times, hops, problems = Times(), [], []
    with monkeypatch.context() as patch:
        odd(patch, times)
        # Each run ends at what the store denies, or behind it.
        for _ in range(ODDITIES + 4):
            try:
                finished = site.run(1.1)
            except (HushcountError, OSError) as error:
                # It could not even take the lease.
                problems.append(str(error))
                continue
            hops += [name.rpartition(" ")[2] for name in finished.hops]
            problems += finished.problems
            if hops[-1:] == ["analyze"] and not finished.problems:
                break
    assert times.taken
    # A lost answer about an entry is none: whoever put it reads whose it is.
    assert problems or odd is put_and_denied
    assert hops == ["shuffle", "analyze"], problems
    result = json.loads(StubStore.objects[f"{OBJECTS}/results/words/{site.batch(0)}/summary.json"])
    assert (result["received"], result["accepted"], result["rejected"]) == (100, 100, {})
    assert "all numbers agree" in done("status", "--config", site.config).out
    (account,) = done("ledger", "show", "--ledger", site.root / "ledger.db", "--json").json["campaigns"]
    assert account["spent"]["releases"] == 1
