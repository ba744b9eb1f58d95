"""A run that is killed before or after anything that it changes in its store: the next one goes on, and all is once."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from pipelines.files import storage
from pipelines.handover.hops import table_of
from pipelines.log.fold import Fold
from pipelines.log.log import Logs
from tests.support.collecting import collect
from tests.support.jobs import done, files_under
from tests.support.plain_jobs import COPIES, PlainJobs, leave
from tests.support.site import Site, account_at, values
from tests.support.writes import Killed, acting_at, anywhere, kill

KEPT = '[retention]\nsegments = "5d"\nshuffled = "5d"\nreleased = "5d"\ndead_letters = "5d"\n'


def fold_of(site: Site) -> Fold:
    return Logs(site.deployment).read("words")


def counts_of(site: Site) -> dict[str, Any]:
    """Return what a site's fold counts, without what differs from run to run.

    What goes back joins the next window that closes: which one that is follows from where a run was killed.
    """
    fold = fold_of(site)
    hops: dict[str, Counter[str]] = {}
    for of in fold.done.values():
        for hop, one in of.items():
            accepted = {stream: counts.accepted for stream, counts in one.counts.streams.items()}
            hops.setdefault(hop, Counter()).update(accepted)
    return {"hops": hops, "windows": fold.counts_by_window, "deleted": fold.deleted}


def left(site: Site) -> list[str]:
    """Return what attempts and killed writes left in the store, and each table without a result or the reverse."""
    files = files_under(site.store)
    tables = {name: content.decode() for name, content in files.items() if name.startswith("estimates/")}
    fold = fold_of(site)
    done = {fold.named(name): hops["analyze"] for name, hops in fold.done.items() if "analyze" in hops}
    analyzed = [batch for batch, hop in done.items() if hop.counts.accepted]
    wanted = {storage.relative(table_of(site.deployment, one), str(site.store)): one.name for one in analyzed}
    unlike = {name for name, _ in tables.items() ^ wanted.items()}
    return [name for name in files if name.startswith("attempts/") or ".tmp" in name] + sorted(unlike)


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> PlainJobs:
    monkeypatch.setattr("pipelines.schedule.attempts.require_keys", lambda *_: None)
    return PlainJobs(monkeypatch)


def prepared(root: Path) -> Site:
    """Return a site with a batch, one that is too small when its copies are gone, one of two windows, and old ones."""
    site = Site(root, discovery=True, tail=KEPT)
    leave(site.store, site.campaign, 0, {"reports": 100, "discovery": 80})
    assert site.run(1.1).problems == []
    leave(site.store, site.campaign, 1, {"reports": 40, "discovery": 30})
    leave(site.store, site.campaign, 1, {"reports": 40}, COPIES)
    leave(site.store, site.campaign, 2, {"reports": 60})
    leave(site.store, site.campaign, 6, {"reports": 70, "discovery": 90})
    return site


def undisturbed(site: Site, root: Path) -> dict[str, Any]:
    """Return what a run of a copy of a prepared site counts, if nothing comes in its way."""
    whole = site.copied(root / "whole")
    assert whole.run(7.1, sure=True).problems == []
    return counts_of(whole)


@anywhere
@pytest.mark.long(but=("11",))
def test_a_run_that_is_killed_anywhere_is_taken_up_by_the_next(
    tmp_path: Path, jobs: PlainJobs, first: int, every: int
) -> None:
    site = prepared(tmp_path / "site")
    expected = undisturbed(site, tmp_path)
    assert expected["hops"]
    assert any(expected["deleted"].values())
    for number in count(first, every):
        twin = site.copied(tmp_path / str(number))
        with acting_at(number, kill) as writes, suppress(Killed):
            twin.run(7.1, sure=True)
        for _ in range(2):
            finished = twin.run(7.1, sure=True)
            assert finished.problems == [], writes.names[-1]
        assert counts_of(twin) == expected, writes.names
        assert left(twin) == [] or writes.names[-1] == "rename before", writes.names
        assert account_at(twin, 7.2).differences == [], writes.names
        if not writes.is_over:
            break
    assert number > 100
    # Before and after each kind of step.
    assert len({*writes.names}) == 16


def test_a_run_of_the_jobs_that_dies_again_and_again_counts_and_charges_once(tmp_path: Path) -> None:
    site = Site(tmp_path, discovery=True)
    collect(site.store, site.campaign, values(100), day=0)
    for number in count(1):
        with acting_at(number, kill) as writes, suppress(Killed):
            site.run(1.1)
        if not writes.is_over:
            break
    assert number > 10
    assert site.run(1.1).hops == []
    assert site.result(0)["received"] == 100
    hops = {name: hop.counts.streams for name, hop in fold_of(site).hops_of(site.batch(0)).items()}
    assert {name: sum(one.received for one in streams.values()) for name, streams in hops.items()} == {
        "shuffle": 200, "release": 100, "discover": 100, "analyze": 100
    }  # fmt: skip
    shown = done("ledger", "show", "--ledger", site.root / "ledger.db", "--json").json
    assert len(shown["charges"]) == 2
    assert shown["campaigns"][0]["spent"]["releases"] == 2
    assert "all numbers agree" in done("status", "--config", site.config).out
