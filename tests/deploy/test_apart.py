"""A shuffler and an analyzer apart, each with a store of its own, and retention that comes before the analyzer does."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import ModuleType

import pytest

from pipelines.deployment.settings import Deployment
from pipelines.schedule.done import Done
from pipelines.schedule.run import run
from pipelines.schedule.work import Vouched
from tests.support.clocks import stopped
from tests.support.collecting import collect
from tests.support.jobs import Run, cli, done
from tests.support.site import Site, at, values

_COMMON = """sign_with = "signing"
shuffler_keys = "signing/public.json"
analyzer_keys = "signing/public.json"
[windows]
length = "1d"
grace = "2d"
"""


class Apart:
    """Two deployments, and what hands on between them."""

    def __init__(self, root: Path, hand_on: ModuleType, retention: str) -> None:
        self.site = Site(root)
        done("keys", "new", "--role", "handing-on", "--out", root / "signing")
        self.files = {party: root / f"{party}.toml" for party in ("shuffler", "analyzer")}
        self.write(retention)
        self.files["analyzer"].write_text(f'store = "store-a"\nledger = "ledger.db"\nparties = ["analyzer"]\n{_COMMON}')
        self._hand_on = hand_on

    def write(self, retention: str) -> None:
        text = f'store = "store"\nparties = ["shuffler"]\n{_COMMON}[retention]\nshuffled = "6d"\n{retention}'
        self.files["shuffler"].write_text(text)

    def run(self, party: str, day: float) -> Done:
        return run(Deployment.read(self.files[party]), clock=stopped(at(day)), vouched=Vouched(clock_is_right=True))

    def hand_on(self) -> list[str]:
        to = self.site.root / "store-a"
        hands = [f"{name}={to / name.partition('/')[0]}" for name in ("shuffled/reports", "stated")]
        fetch = f"receipts/analyzer={to / 'receipts' / 'analyzer'}"
        lines, problems = self._hand_on.hand_on(
            Deployment.read(self.files["shuffler"]),
            [self._hand_on._parsed(text) for text in hands],
            [self._hand_on._fetch(fetch)],
        )
        assert problems == []
        return list(lines)

    def status(self, party: str) -> Run:
        return cli("status", "--config", self.files[party])


@pytest.fixture
def apart(hand_on: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Apart:
    """The shuffler shuffled 200 reports long ago, and handed them on; the analyzer never ran."""
    monkeypatch.setenv("COLUMNS", "600")
    apart = Apart(tmp_path, hand_on, "")
    collect(apart.site.store, apart.site.campaign, values(200), day=-30)
    assert apart.run("shuffler", -28.9).problems == []
    apart.hand_on()
    return apart


def test_retention_deletes_nothing_of_which_no_receipt_came(apart: Apart) -> None:
    batch = apart.site.batch(-30)
    ran = apart.run("shuffler", -10)
    assert ran.deleted == []
    (problem,) = ran.problems
    assert f"words/{batch}: analyzer has left no receipt of shuffled since" in problem
    assert not any(line.startswith("deleted") for line in apart.hand_on())
    for party in ("shuffler", "analyzer"):
        shown = apart.status(party)
        assert (shown.status, f"DIFFERENCE words/{batch}: " in shown.out) == (1, True)
    # The analyzer is back: it counts all, its receipt is fetched, and only then retention deletes.
    assert apart.run("analyzer", -9).problems == []
    assert apart.site.store.parent.joinpath("store-a", "results", "words", batch, "summary.json").exists()
    apart.hand_on()
    assert apart.run("shuffler", -9).deleted == [f"words/{batch} shuffled"]
    assert any(line.startswith("deleted") for line in apart.hand_on())
    for party in ("shuffler", "analyzer"):
        shown = apart.status(party)
        assert (shown.status, "words: all numbers agree" in shown.out) == (0, True), shown.out


def test_what_goes_after_at_most_is_named_by_both_parties_for_ever(apart: Apart) -> None:
    batch = apart.site.batch(-30)
    apart.write('at_most = "15d"\n')
    assert apart.run("shuffler", -15).deleted == []
    assert apart.run("shuffler", -10).deleted == [f"words/{batch} shuffled"]
    apart.hand_on()
    left = apart.site.root / "store-a" / "shuffled" / "words" / batch
    assert not left.exists()
    for days in (9, 5):
        ran = apart.run("analyzer", -days)
        assert ran.hops == []
        shown = apart.status("shuffler")
        gone = apart.site.store / "shuffled" / "words" / batch
        assert f"DIFFERENCE {batch}: retention deleted {gone} without a receipt of analyzer" in shown.out
        assert "whether 200 reports of it" in shown.out
        assert "deleted_unreceived 200" in shown.out
        assert shown.status == 1
        shown = apart.status("analyzer")
        assert f"DIFFERENCE words/{batch}: shuffler stated shuffle at" in shown.out
        assert shown.status == 1
        assert any(f"words/{batch}: shuffler stated shuffle at" in problem for problem in ran.problems)


def test_a_statement_that_somebody_else_signed_is_red_and_nothing_of_it_is_read(apart: Apart) -> None:
    root = apart.site.root
    shutil.copytree(root / "signing", root / "real")
    shutil.rmtree(root / "signing")
    done("keys", "new", "--role", "handing-on", "--out", root / "signing")
    shown = apart.status("analyzer")
    assert shown.status == 1
    (path,) = root.glob("store-a/stated/shuffler/words/*.json")
    assert f"DIFFERENCE {path}: " in shown.out
    assert "it has said nothing yet" in shown.out
    assert apart.run("analyzer", -9).hops == []
