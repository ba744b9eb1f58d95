"""Parties as deploy/compose and deploy/kubernetes keep them apart: each gets its own, and it is enough for its jobs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from hushcount.campaign import Campaign
from hushcount.errors import HushcountError, UsageError
from pipelines.deployment import Deployment
from pipelines.run import run
from tests.deploy.conftest import DEPLOY, script
from tests.support.collecting import collect, window_name
from tests.support.jobs import summary
from tests.support.site import Site, at, values
from tests.support.stub_store import StubStore


@pytest.fixture
def hand_on() -> Iterator[ModuleType]:
    with script(DEPLOY / "hand_on.py") as module:
        yield module


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """What a collector left, and the redacted campaigns beside the whole ones."""
    site = Site(tmp_path, discovery=True)
    collect(site.store, site.campaign, values(300), day=0)
    folder = tmp_path / "redacted-campaigns" / "words"
    folder.mkdir(parents=True)
    whole = Campaign.read(site.campaign)
    whole.redacted().write(folder / site.campaign.name)
    assert whole.dictionary is not None
    for name in ("collection.json", whole.dictionary.path):
        (folder / name).write_bytes((site.campaign.parent / name).read_bytes())
    return site


def deployment(site: Site, party: str, campaigns: str, **paths: str) -> Deployment:
    """Return a party's deployment file of compose.yaml with its mounts at places of this machine."""
    given = Deployment.read(DEPLOY / "compose" / f"{party}.toml")
    return replace(
        given,
        path=site.config,
        store=str(site.root / f"{party}-store"),
        state=str(site.root / f"{party}.db"),
        campaigns=site.root / campaigns,
        keys=site.keys,
        ledger=None,
        file=given.file.model_copy(update={"paths": paths}),
    )


def hands(module: ModuleType, *texts: str) -> list[object]:
    return [module._parsed(text) for text in texts]


def files(root: Path) -> set[str]:
    """Return the folders of batches, and the files beside them, that are anywhere below a directory."""
    return {path.relative_to(root).parts[2] for path in root.rglob("*") if len(path.relative_to(root).parts) > 2}


def test_what_is_handed_on_is_all_that_a_party_needs_and_no_more(hand_on: ModuleType, site: Site) -> None:
    to = {name: str(site.root / name) for name in ("to-aux", "to-analyzer", "bins")}
    shuffler = deployment(
        site, "shuffler", "redacted-campaigns", segments=str(site.store / "segments"), shuffled=str(site.root / "own")
    )
    # What cannot be opened stays with who refused it.
    own = site.root / "own"
    assert run(shuffler, now=at(1.1)).problems == []
    (batch,) = (own / "words").iterdir()
    (batch / "dead_letter" / "reports").mkdir(parents=True)
    (batch / "dead_letter" / "reports" / "kept.blocks").write_bytes(b"sealed")
    asked = hands(hand_on, f"shuffled/discovery={to['to-aux']}", f"shuffled/reports={to['to-analyzer']}")
    told, problems = hand_on.hand_on(shuffler, asked)
    assert problems == []
    assert [line.rpartition(" ")[2] for line in told] == ["discovery", "reports"]
    assert files(Path(to["to-aux"])) == {"discovery", "summary.json"}
    assert files(Path(to["to-analyzer"])) == {"reports", "summary.json"}
    assert hand_on.hand_on(shuffler, asked) == ([], [])

    aux = deployment(site, "aux-server", "redacted-campaigns", shuffled=to["to-aux"])
    done = run(aux, now=at(1.1))
    assert (done.problems, len(done.hops)) == ([], 1)
    asked = hands(hand_on, f"released/bins={to['bins']}")
    (block,) = (site.root / "aux-server-store" / "released").rglob("*.blocks")
    aside = block.rename(block.with_suffix(".aside"))
    (problem,) = hand_on.hand_on(aux, asked)[1]
    released = summary(block.parents[1])["released"]
    assert f"bins hold 0 records, the batch's summary says {released}:" in problem
    assert not Path(to["bins"]).exists()
    aside.rename(block)
    assert hand_on.hand_on(aux, asked)[1] == []
    assert files(Path(to["bins"])) == {"bins", "summary.json"}

    analyzer = deployment(site, "analyzer", "campaigns", shuffled=to["to-analyzer"], released=to["bins"])
    done = run(analyzer, now=at(1.1))
    assert (done.problems, len(done.hops)) == ([], 2)
    results = site.root / "analyzer-store" / "results" / "words" / batch.name
    assert summary(results)["accepted"] == 300

    # With the redacted file nobody reveals a value: the analyzer needs the whole one.
    wrong = deployment(site, "analyzer", "redacted-campaigns", shuffled=to["to-analyzer"], released=to["bins"])
    (problem,) = run(replace(wrong, state=str(site.root / "x.db"), store=str(site.root / "x")), now=at(1.1)).problems
    assert "no hash key" in problem


def test_what_is_deleted_where_it_was_written_is_deleted_where_it_was_handed_on(
    hand_on: ModuleType, site: Site
) -> None:
    shuffler = deployment(
        site, "shuffler", "redacted-campaigns", segments=str(site.store / "segments"), shuffled=str(site.root / "own")
    )
    run(shuffler, now=at(1.1))
    asked = hands(hand_on, f"shuffled/reports={site.root / 'to'}")
    hand_on.hand_on(shuffler, asked)
    assert files(site.root / "to") == {"reports", "summary.json"}
    assert run(shuffler, now=at(25)).deleted == []
    assert len(run(shuffler, now=at(35)).deleted) == 2
    ((line,), _) = hand_on.hand_on(shuffler, asked)
    assert line.startswith(f"deleted: words/{window_name(0)}-")
    assert files(site.root / "to") == set()


def test_a_store_takes_copies_too_the_summary_last_and_nothing_half(hand_on: ModuleType, site: Site) -> None:
    shuffler = deployment(
        site, "shuffler", "redacted-campaigns", segments=str(site.store / "segments"), shuffled=str(site.root / "own")
    )
    run(shuffler, now=at(1.1))
    StubStore.clear()
    try:
        hand_on.hand_on(shuffler, hands(hand_on, "shuffled/reports=stub://analyzer/shuffled"))
        names = [name for name in StubStore.named if ".tmp" not in name]
        assert names[-1].endswith("/summary.json")
        assert all("/reports/" in name for name in names[:-1])
        assert len(names) > 1
        # Killed before the summary: the next look begins again.
        del StubStore.objects[names[-1]]
        ((line,), _) = hand_on.hand_on(shuffler, hands(hand_on, "shuffled/reports=stub://analyzer/shuffled"))
        assert line.startswith("handed on: words/")
    finally:
        StubStore.clear()


def test_a_source_that_is_not_there_deletes_nothing(hand_on: ModuleType, site: Site) -> None:
    shuffler = deployment(site, "shuffler", "redacted-campaigns", shuffled=str(site.root / "own"))
    kept = site.root / "to" / "words" / f"{window_name(0)}-000001-{'0' * 16}" / "summary.json"
    kept.parent.mkdir(parents=True)
    kept.write_text(json.dumps({"streams": {}}))
    with pytest.raises(UsageError, match="is no directory: nothing was handed on and nothing deleted"):
        hand_on.hand_on(shuffler, hands(hand_on, f"shuffled/reports={site.root / 'to'}"))
    assert kept.exists()


def shuffled(site: Site) -> tuple[Deployment, Path]:
    """Return the shuffler's deployment after it shuffled one batch, and where that lies."""
    shuffler = deployment(
        site, "shuffler", "redacted-campaigns", segments=str(site.store / "segments"), shuffled=str(site.root / "own")
    )
    assert run(shuffler, now=at(1.1)).problems == []
    (batch,) = (site.root / "own" / "words").iterdir()
    return shuffler, batch


@pytest.fixture
def store() -> Iterator[type[StubStore]]:
    """An object store, empty before and after."""
    StubStore.clear()
    yield StubStore
    StubStore.clear()


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
    for said in (f"{elsewhere} holds no batch", f"{site.root / 'to'} copies of 1", "none was deleted"):
        assert said in problem
    assert files(site.root / "to") == {"reports", "summary.json"}
    (site.root / "own").rmdir()
    (site.root / "unmounted").rename(site.root / "own")
    assert hand_on.hand_on(shuffler, asked[:1]) == ([], [])


@pytest.mark.parametrize("folder", ["reports", "discovery"])
def test_a_batch_of_which_a_file_is_missing_or_was_added_gets_no_summary(
    hand_on: ModuleType, site: Site, folder: str
) -> None:
    shuffler, batch = shuffled(site)
    asked = hands(hand_on, f"shuffled/{folder}={site.root / 'to'}")
    block = next((batch / folder).glob("*.blocks"))
    aside = block.rename(batch / "aside")
    to = site.root / "to" / "words" / batch.name
    number = summary(batch)["streams"][folder]["accepted"]
    done, (problem,) = hand_on.hand_on(shuffler, asked)
    assert (done, to.exists()) == ([], False)
    assert f"{batch / folder} hold" in problem
    assert f"the batch's summary says {number}" in problem
    aside.rename(block)
    # What an earlier try left at the recipient's.
    left = to / folder / "left.blocks"
    left.parent.mkdir(parents=True)
    left.write_bytes(block.read_bytes())
    done, (problem,) = hand_on.hand_on(shuffler, asked)
    assert (done, (to / "summary.json").exists()) == ([], False)
    assert f"{to / folder} hold" in problem
    left.unlink()
    assert hand_on.hand_on(shuffler, asked) == ([f"handed on: words/{batch.name} {folder}"], [])
    assert (to / "summary.json").read_bytes() == (batch / "summary.json").read_bytes()


@pytest.mark.parametrize("broken", [{"streams": []}, {"streams": {"reports": 3}}, {"streams": {"reports": {}}}, {}])
def test_a_summary_that_does_not_say_how_much_there_is_is_not_handed_on(
    hand_on: ModuleType, site: Site, broken: dict[str, object]
) -> None:
    shuffler, batch = shuffled(site)
    (batch / "summary.json").write_text(json.dumps(broken))
    done, (problem,) = hand_on.hand_on(shuffler, hands(hand_on, f"shuffled/reports={site.root / 'to'}"))
    assert done == []
    assert "summary.json does not say how many records reports holds: restore it" in problem
    assert not (site.root / "to").exists()


class ClientError(Exception):
    """What a store's client raises: of no kind that Beam knows."""


def test_what_a_stores_client_raises_is_a_problem_of_one_batch(
    hand_on: ModuleType, site: Site, store: type[StubStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    shuffler, batch = shuffled(site)
    gone = f"20000101T000000Z-{batch.name.partition('-')[2]}"
    store.put(f"stub://to/words/{gone}/summary.json", b"{}")
    asked = hands(hand_on, "shuffled/reports=stub://to")

    def fails(_store: StubStore, paths: list[str]) -> None:
        if any(gone in path for path in paths):
            raise ClientError("first line\nthe token is no longer valid")
        kept(_store, paths)

    with monkeypatch.context() as patched:
        kept = StubStore.delete
        patched.setattr(StubStore, "delete", fails)
        done, problems = hand_on.hand_on(shuffler, asked)
    assert done == [f"handed on: words/{batch.name} reports"]
    assert problems == [
        f"words/{gone} reports: cannot delete stub://to/words/{gone}/summary.json: the token is no longer valid"
    ]
    assert hand_on.hand_on(shuffler, asked) == ([f"deleted: words/{gone} reports"], [])


@pytest.mark.parametrize("text", ["shuffled/dead_letter=/x", "shuffled=/x", "results/reports=/x", "shuffled/reports="])
def test_nothing_but_what_is_the_next_partys_can_be_handed_on(hand_on: ModuleType, text: str) -> None:
    with pytest.raises(UsageError, match="must be one of shuffled/reports=WHERE"):
        hands(hand_on, text)


def test_a_batch_that_cannot_be_handed_on_is_named_and_does_not_hold_up_the_others(
    hand_on: ModuleType, site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    shuffler = deployment(
        site, "shuffler", "redacted-campaigns", segments=str(site.store / "segments"), shuffled=str(site.root / "own")
    )
    run(shuffler, now=at(1.1))
    (batch,) = (site.root / "own" / "words").iterdir()
    # It sorts before the other and has no summary that can be read.
    broken = batch.with_name(f"20000101T000000Z-{batch.name.partition('-')[2]}")
    broken.mkdir()
    (broken / "summary.json").write_text("{")
    site.config.write_text(
        f'store = "unused"\n[windows]\nlength = "1d"\ngrace = "2d"\n[paths]\nshuffled = "{site.root / "own"}"\n'
    )
    with pytest.raises(HushcountError, match=f"{broken.name} reports: .* is not JSON"):
        hand_on.main(["--config", str(site.config), "--hand", f"shuffled/reports={site.root / 'to'}"])
    assert capsys.readouterr().out == f"handed on: words/{batch.name} reports\n"
    assert [path.name for path in (site.root / "to" / "words").iterdir()] == [batch.name]
