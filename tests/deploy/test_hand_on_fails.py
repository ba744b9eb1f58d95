"""deploy/hand_on.py where something fails: nothing half is found, nothing stays for ever, and the others go on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from apache_beam.io.filesystem import FileMetadata

from hushcount.errors import HushcountError
from tests.deploy.handing_on import GONE, hands, inside, of_shuffler, shuffled
from tests.support.jobs import summary
from tests.support.site import Site
from tests.support.stub_store import StubStore


class ClientError(Exception):
    """What a store's client raises: of no kind that Beam knows."""


@pytest.mark.parametrize("folder", ["reports", "discovery"])
def test_a_batch_of_which_a_file_is_missing_or_was_added_gets_no_summary(
    hand_on: ModuleType, site: Site, folder: str
) -> None:
    shuffler, batch = shuffled(site)
    asked = hands(hand_on, f"shuffled/{folder}={site.root / 'to'}")
    made = inside(batch)
    block = next((made / folder).glob("*.blocks"))
    aside = block.rename(batch / "aside")
    to = site.root / "to" / "words" / batch.name
    number = summary(batch)["streams"][folder]["accepted"]
    done, (problem,) = hand_on.hand_on(shuffler, asked)
    assert (done, to.exists()) == ([], False)
    assert f"{made / folder} hold" in problem
    assert str(number) in problem
    aside.rename(block)
    # What an earlier try left at the recipient's, of other files.
    for name in ("left.blocks", f".{block.name}.0.tmp"):
        left = to / made.name / folder / name
        left.parent.mkdir(parents=True, exist_ok=True)
        left.write_bytes(block.read_bytes())
    assert hand_on.hand_on(shuffler, asked) == ([f"handed on: words/{batch.name} {folder}"], [])
    assert (to / "summary.json").read_bytes() == (batch / "summary.json").read_bytes()
    names = [{path.name for path in (where / folder).iterdir()} for where in (to / made.name, made)]
    assert names[0] == names[1]


def test_a_copy_of_which_the_store_lost_a_file_gets_no_summary(
    hand_on: ModuleType, site: Site, store: type[StubStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    shuffler, batch = shuffled(site)
    made = inside(batch)
    lost = f"/{next((made / 'reports').glob('*.blocks')).name}"
    taken = store.put

    def loses(path: str, content: bytes) -> None:
        if lost not in path:
            taken(path, content)

    monkeypatch.setattr(store, "put", staticmethod(loses))
    done, (problem,) = hand_on.hand_on(shuffler, hands(hand_on, "shuffled/reports=stub://to"))
    assert done == []
    copy = f"stub://to/words/{batch.name}/{made.name}/reports{lost}"
    assert f"{copy} is not what {made / 'reports'}{lost} was" in problem
    assert not any(name.endswith("/summary.json") for name in store.objects)


def test_a_deletion_that_failed_or_was_killed_is_gone_on_with(
    hand_on: ModuleType, site: Site, store: type[StubStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    shuffler, batch = shuffled(site)
    asked = hands(hand_on, "shuffled/reports=stub://to")
    hand_on.hand_on(shuffler, asked)
    shutil.rmtree(batch)

    def fails(system: StubStore, paths: list[str]) -> None:
        if paths[0].endswith("/"):
            raise ClientError("away")
        deleted(system, paths)

    with monkeypatch.context() as patched:
        deleted = StubStore.delete
        patched.setattr(StubStore, "delete", fails)
        done, (problem,) = hand_on.hand_on(shuffler, asked)
    assert (done, problem) == ([], f"words/{batch.name} reports: cannot delete stub://to/words/{batch.name}: away")
    # What is left has no summary by which it would be found.
    assert {name.split("/")[6] for name in store.objects} == {"reports", "summary.json.sig"}
    assert hand_on.hand_on(shuffler, asked) == ([f"deleted: words/{batch.name} reports"], [])
    assert store.objects == {}


def test_half_a_copy_of_what_was_deleted_meanwhile_goes_too(hand_on: ModuleType, tmp_path: Path) -> None:
    """Also what was being written as the copying was killed."""
    shuffler, asked = of_shuffler(tmp_path), hands(hand_on, f"shuffled/reports={tmp_path / 'to'}")
    half = tmp_path / "to" / "words" / GONE / "reports" / ".part-0.blocks.0.tmp"
    half.parent.mkdir(parents=True)
    half.write_bytes(b"sealed")
    (tmp_path / "own").mkdir()
    # An empty directory may be the wrong one: half a copy does not go for it either.
    done, (problem,) = hand_on.hand_on(shuffler, asked)
    assert (done, half.exists()) == ([], True)
    assert f"{tmp_path / 'to'} holds copies of 1" in problem
    (tmp_path / "own" / "words").mkdir()
    assert hand_on.hand_on(shuffler, asked) == ([f"deleted: words/{GONE} reports"], [])
    assert not half.exists()
    assert hand_on.hand_on(shuffler, asked) == ([], [])


def test_a_summary_that_does_not_say_how_much_there_is_is_not_handed_on(
    subtests: pytest.Subtests, hand_on: ModuleType, tmp_path: Path
) -> None:
    for broken in ({"streams": []}, {"streams": {"reports": 3}}, {"streams": {"reports": {}}}, {}):
        with subtests.test(broken=broken):
            here = tmp_path / str(len(list(tmp_path.iterdir())))
            here.mkdir()
            written = here / "own" / "words" / GONE / "summary.json"
            written.parent.mkdir(parents=True)
            written.write_text(json.dumps(broken))
            asked = hands(hand_on, f"shuffled/reports={here / 'to'}")
            done, (problem,) = hand_on.hand_on(of_shuffler(here), asked)
            assert done == []
            assert "summary.json" in problem
            assert not (here / "to").exists()


def test_a_recipient_whose_place_cannot_be_listed_does_not_hold_up_the_others(
    hand_on: ModuleType, site: Site, store: type[StubStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    shuffler, batch = shuffled(site)
    wheres = ("stub://first/x", "stub://away/x", "stub://last/x")
    asked = hands(hand_on, *(f"shuffled/reports={where}" for where in wheres))

    def lists(system: StubStore, path: str) -> Iterator[FileMetadata]:
        if path.startswith("stub://away"):
            raise ClientError("the token is no longer valid")
        return listed(system, path)

    listed = StubStore._list
    monkeypatch.setattr(StubStore, "_list", lists)
    done, (problem,) = hand_on.hand_on(shuffler, asked)
    assert done == [f"handed on: words/{batch.name} reports"] * 2
    assert problem.startswith("shuffled/reports was not handed on to stub://away/x: ")
    assert problem.endswith("the token is no longer valid")


def test_a_batch_that_cannot_be_handed_on_is_named_and_does_not_hold_up_the_others(
    hand_on: ModuleType, site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    _, batch = shuffled(site)
    # It sorts before the other and has no summary that can be read.
    broken = batch.with_name(f"20000101T000000Z-{batch.name.partition('-')[2]}")
    broken.mkdir()
    (broken / "summary.json").write_text("{")
    site.config.write_text(
        f'store = "unused"\n[windows]\nlength = "1d"\ngrace = "2d"\n[paths]\nshuffled = "{site.root / "own"}"\n'
    )
    with pytest.raises(HushcountError, match=f"{broken.name} reports: .*JSON"):
        hand_on.main(["--config", str(site.config), "--hand", f"shuffled/reports={site.root / 'to'}"])
    assert capsys.readouterr().out == f"handed on: words/{batch.name} reports\n"
    assert [path.name for path in (site.root / "to" / "words").iterdir()] == [batch.name]
