"""Parties as deploy/compose and deploy/kubernetes keep them apart: each gets its own, and it is enough for its jobs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from hushcount.errors import UsageError
from pipelines.schedule.run import run
from tests.deploy.handing_on import GONE, deployment, files, hands, inside, of_shuffler, shuffled
from tests.support.clocks import stopped
from tests.support.jobs import summary
from tests.support.site import Site, at
from tests.support.stub_store import StubStore

SIGNED = ("summary.json", "summary.json.sig")


def test_what_is_handed_on_is_all_that_a_party_needs_and_no_more(hand_on: ModuleType, site: Site) -> None:
    to = {name: str(site.root / name) for name in ("to-aux", "to-analyzer", "bins")}
    shuffler, batch = shuffled(site)
    # What cannot be opened stays with who refused it.
    (inside(batch) / "dead_letter" / "reports").mkdir(parents=True)
    (inside(batch) / "dead_letter" / "reports" / "kept.blocks").write_bytes(b"sealed")
    asked = hands(hand_on, f"shuffled/discovery={to['to-aux']}", f"shuffled/reports={to['to-analyzer']}")
    told, problems = hand_on.hand_on(shuffler, asked)
    assert problems == []
    assert [line.rpartition(" ")[2] for line in told] == ["discovery", "reports"]
    assert files(Path(to["to-aux"])) == {"discovery", *SIGNED}
    assert files(Path(to["to-analyzer"])) == {"reports", *SIGNED}
    assert hand_on.hand_on(shuffler, asked) == ([], [])

    # Both read what the shuffler states.
    stated = {"stated/shuffler": shuffler.folder("stated", "shuffler")}
    aux = deployment(site.root, "aux-server", "redacted-campaigns", shuffled=to["to-aux"], **stated)
    with planted(Path(to["to-aux"]), batch, "discovery") as path:
        (problem,) = run(aux, clock=stopped(at(1.1))).problems
        assert f"{path} was not signed" in problem
    done = run(aux, clock=stopped(at(1.1)))
    assert (done.problems, len(done.hops)) == ([], 1)
    asked = hands(hand_on, f"released/bins={to['bins']}")
    (block,) = (site.root / "aux-server-store" / "released").rglob("*.blocks")
    aside = block.rename(block.with_suffix(".aside"))
    (problem,) = hand_on.hand_on(aux, asked)[1]
    released = summary(block.parents[2])["released"]
    assert "bins hold 0 records" in problem
    assert str(released) in problem
    assert not Path(to["bins"]).exists()
    aside.rename(block)
    assert hand_on.hand_on(aux, asked)[1] == []
    assert files(Path(to["bins"])) == {"bins", *SIGNED}

    stated["stated/aux-server"] = aux.folder("stated", "aux-server")
    read = {"shuffled": to["to-analyzer"], "released": to["bins"], **stated}
    analyzer = deployment(site.root, "analyzer", "campaigns", **read)
    with planted(Path(to["bins"]), batch, "bins") as path:
        (problem,) = run(analyzer, clock=stopped(at(1.1))).problems
        assert f"{path} was not signed" in problem
    with planted(Path(to["to-analyzer"]), batch, "reports") as path:
        done = run(analyzer, clock=stopped(at(1.1)))
        (problem,) = done.problems
        assert f"{path} was not signed" in problem
        assert len(done.hops) == 1
    done = run(analyzer, clock=stopped(at(1.1)))
    assert (done.problems, len(done.hops)) == ([], 1)
    results = site.root / "analyzer-store" / "results" / "words" / batch.name
    assert summary(results)["accepted"] == 300

    # With the redacted file nobody reveals a value: the analyzer needs the whole one.
    wrong = deployment(site.root, "analyzer", "redacted-campaigns", **read)
    (problem,) = run(replace(wrong, store=str(site.root / "x")), clock=stopped(at(1.1))).problems
    assert "no hash key" in problem


@contextmanager
def planted(where: Path, batch: Path, folder: str) -> Iterator[Path]:
    """Put a file beside those that were handed on, as whoever can write between two parties can."""
    path = inside(where / "words" / batch.name) / folder / "planted.blocks"
    path.write_bytes(next(path.parent.glob("*.blocks")).read_bytes())
    yield path
    path.unlink()


def test_a_store_takes_copies_too_the_summary_last_and_nothing_half(
    hand_on: ModuleType, site: Site, store: type[StubStore]
) -> None:
    shuffler, _ = shuffled(site)
    asked = hands(hand_on, "shuffled/reports=stub://analyzer/shuffled")
    hand_on.hand_on(shuffler, asked)
    names = [name for name in store.named if ".tmp" not in name]
    assert names[-1].endswith("/summary.json")
    assert names[-2].endswith("/summary.json.sig")
    assert all("/reports/" in name for name in names[:-2])
    assert len(names) > 2
    # Killed before the summary: the next look begins again.
    del store.objects[names[-1]]
    ((line,), _) = hand_on.hand_on(shuffler, asked)
    assert line.startswith("handed on: words/")


def test_a_batch_without_the_stream_is_handed_on_as_its_summary(hand_on: ModuleType, tmp_path: Path) -> None:
    """An analyzer must hear of a batch of discovery alone: what was found in it comes by another way."""
    batch = tmp_path / "own" / "words" / GONE
    (batch / "discovery").mkdir(parents=True)
    nothing = {"received": 0, "accepted": 0, "rejected": {}}
    said = {"hop": "shuffle", **nothing, "streams": {"discovery": nothing}, "upstream": []}
    named = {"campaign": "words", "epoch": 1, "fingerprint": 64 * "0"}
    (batch / "summary.json").write_text(json.dumps({**said, **named}))
    asked = hands(hand_on, f"shuffled/reports={tmp_path / 'to'}")
    assert hand_on.hand_on(of_shuffler(tmp_path), asked) == ([f"handed on: words/{GONE} reports"], [])
    assert files(tmp_path / "to") == {"summary.json"}
    assert hand_on.hand_on(of_shuffler(tmp_path), asked) == ([], [])


def test_a_source_that_is_not_there_deletes_nothing(hand_on: ModuleType, tmp_path: Path) -> None:
    kept = tmp_path / "to" / "words" / GONE / "summary.json"
    kept.parent.mkdir(parents=True)
    kept.write_text(json.dumps({"streams": {}}))
    with pytest.raises(UsageError, match="no directory"):
        hand_on.hand_on(of_shuffler(tmp_path), hands(hand_on, f"shuffled/reports={tmp_path / 'to'}"))
    assert kept.exists()


@pytest.mark.parametrize("source", ["own", "stub://wrong/shuffled"])
def test_a_source_that_holds_no_batch_at_all_deletes_nothing(
    hand_on: ModuleType, site: Site, store: type[StubStore], source: str
) -> None:
    shuffler, _ = shuffled(site)
    asked = hands(hand_on, f"shuffled/reports={site.root / 'to'}", f"shuffled/discovery={site.root / 'empty'}")
    hand_on.hand_on(shuffler, asked[:1])
    (site.root / "own").rename(site.root / "unmounted")
    (site.root / "own").mkdir()
    elsewhere = source if source.startswith("stub:") else str(site.root / source)
    moved = replace(shuffler, file=shuffler.file.model_copy(update={"paths": {"shuffled": elsewhere}}))
    done, (problem,) = hand_on.hand_on(moved, asked)
    assert done == []
    for said in (f"{elsewhere} holds no batch", f"{site.root / 'to'} holds copies of 1", "no copy was deleted"):
        assert said in problem
    assert files(site.root / "to") == {"reports", *SIGNED}
    (site.root / "own").rmdir()
    (site.root / "unmounted").rename(site.root / "own")
    assert hand_on.hand_on(shuffler, asked[:1]) == ([], [])


def test_two_folders_cannot_be_handed_on_to_one_place(hand_on: ModuleType, tmp_path: Path) -> None:
    """The second one would never come: a summary would be there already."""
    (tmp_path / "own").mkdir()
    asked = hands(hand_on, f"shuffled/reports={tmp_path / 'to'}", f"shuffled/discovery={tmp_path / 'to'}/")
    with pytest.raises(UsageError, match="2 folders"):
        hand_on.hand_on(of_shuffler(tmp_path), asked)


def test_nothing_but_what_is_the_next_partys_can_be_handed_on(hand_on: ModuleType) -> None:
    wrong = ("shuffled/dead_letter", "shuffled", "results/reports", "stated/shuffler", "receipts")
    for text in (*(f"{what}=/x" for what in wrong), "shuffled/reports=", "stated="):
        with pytest.raises(UsageError, match="shuffled/reports=WHERE"):
            hands(hand_on, text)
