"""Statements and receipts between the parties of deploy/compose, each with its own volumes, by deploy/hand_on.py."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import ModuleType

import pytest

from hushcount.errors import UsageError
from pipelines.audit.reconcile import account_of
from pipelines.log.log import Logs
from pipelines.schedule.done import Done
from pipelines.schedule.run import run
from pipelines.schedule.work import Vouched
from tests.deploy.handing_on import hands, in_compose, mounted, of_shuffler, shuffled
from tests.deploy.test_schedules import JOBS, options, services
from tests.support.clocks import stopped
from tests.support.site import Site, at, view_of
from tests.support.stub_store import StubStore


class Parties:
    """The three parties of compose.yaml; what they write without a volume for it lies in `root/no-volume`."""

    def __init__(self, site: Site, hand_on: ModuleType) -> None:
        self.site, self._hand_on = site, hand_on
        volumes = site.root / "volumes"
        # Docker makes a volume before anything is written to it.
        (volumes / "mixed").mkdir(parents=True)
        (site.store / "segments").rename(volumes / "segments")

    def run(self, party: str, day: float, *late: str) -> Done:
        """Run on a day; the only problems are that these parties' receipts are late."""
        done = run(in_compose(self.site.root, party), clock=stopped(at(day)), vouched=Vouched(clock_is_right=True))
        assert [one.split(": ")[1].split(" of ")[0] for one in done.problems] == [
            f"{recipient} has left no receipt" for recipient in late
        ]
        return done

    def carry(self, party: str) -> list[str]:
        """Do what the party's hand_on does in one look."""
        service = f"{party}-hand-on"
        words = services()[service]["command"]
        asked = [self._here(service, text) for text in sorted(options(words, "--hand"))]
        fetches = [self._hand_on._fetch(self._here(service, text)) for text in sorted(options(words, "--fetch"))]
        here = in_compose(self.site.root, service)
        done, problems = self._hand_on.hand_on(here, hands(self._hand_on, *asked), fetches)
        assert problems == []
        return list(done)

    def _here(self, service: str, text: str) -> str:
        what, _, where = text.partition("=")
        return f"{what}={mounted(self.site.root, service, where)}"

    def volume(self, name: str) -> list[Path]:
        found = self.site.root / "volumes" / name
        return sorted(path.relative_to(found) for path in found.rglob("*") if path.is_file())


def test_receipts_come_back_and_retention_then_deletes_what_both_have_read(hand_on: ModuleType, site: Site) -> None:
    apart = Parties(site, hand_on)
    assert [line.rpartition(" ")[2] for line in apart.run("shuffler", 1.1).hops] == ["shuffle"]
    # Nothing was handed on yet: there is nothing to do, and nothing is wrong.
    assert apart.run("aux-server", 1.1).hops == apart.run("analyzer", 1.1).hops == []
    apart.carry("shuffler")
    assert apart.carry("shuffler") == []
    # The analyzer waits for what the auxiliary server finds.
    assert apart.run("analyzer", 1.2).hops == []
    assert len(apart.run("aux-server", 1.2).hops) == 1
    apart.carry("aux-server")
    apart.carry("shuffler")
    # The auxiliary server's receipt alone does not do.
    assert [one.rpartition(" ")[2] for one in apart.run("shuffler", 35, "analyzer").deleted] == ["segments"]
    assert len(apart.run("analyzer", 35).hops) == 2
    assert apart.run("aux-server", 35, "analyzer").deleted == []
    assert apart.carry("aux-server") == ["copied: receipts/analyzer words, 2"]
    assert apart.carry("shuffler") == ["copied: receipts/analyzer words, 2"]
    assert [one.rpartition(" ")[2] for one in apart.run("shuffler", 35.1).deleted] == ["shuffled"]
    assert [one.rpartition(" ")[2] for one in apart.run("aux-server", 35.1).deleted] == ["released"]
    for party in ("shuffler", "aux-server"):
        assert {line.partition(":")[0] for line in apart.carry(party)} == {"deleted"}
        assert apart.carry(party) == []
    # Copies went; statements stay, each with its signature.
    for name, parties in {"to-aux-server": 1, "to-analyzer": 1, "released-to-analyzer": 1}.items():
        assert [path.parts[0] for path in apart.volume(name)] == ["stated"] * 2 * parties
    for party in JOBS:
        deployment = in_compose(site.root, party)
        account = account_of(view_of(deployment, at(35.2)))
        assert (account.differences, account.waiting) == ([], [])
        assert apart.run(party, 35.2).is_quiet
        assert Logs(deployment).read("words").unreceived == ()
    assert not (site.root / "no-volume").exists()


def test_with_noise_the_auxiliary_server_gets_all_and_the_analyzer_what_was_mixed(
    hand_on: ModuleType, noise_site: Site
) -> None:
    """Nothing of the shuffler but its statements reaches the analyzer."""
    apart, batch = Parties(noise_site, hand_on), noise_site.batch(0)
    apart.run("shuffler", 1.1)
    assert apart.carry("shuffler") == [
        "copied: stated/shuffler words, 1", "copied: stated/shuffler words, 1",
        f"handed on: words/{batch} reports,discovery",
    ]  # fmt: skip
    assert {path.parts[0] for path in apart.volume("to-analyzer")} == {"stated"}
    assert apart.carry("shuffler") == []
    # What one hop has read the other still needs: the receipt is of both.
    (reports,) = (noise_site.root / "volumes" / "to-aux-server").rglob("reports")
    reports.rename(noise_site.root / "aside")
    done = run(in_compose(noise_site.root, "aux-server"), clock=stopped(at(1.2)))
    assert [hop.rpartition(" ")[2] for hop in done.hops] == ["release"]
    assert apart.volume("aux-server-receipts") == []
    (noise_site.root / "aside").rename(reports)
    assert [hop.rpartition(" ")[2] for hop in apart.run("aux-server", 1.2).hops] == ["mix"]
    assert apart.carry("aux-server")[1:] == [f"handed on: words/{batch} reports", f"handed on: words/{batch} bins"]
    assert len(apart.run("analyzer", 1.3).hops) == 2
    for party in ("shuffler", "aux-server"):
        apart.carry(party)
        assert apart.run(party, 35).deleted
        assert {line.partition(":")[0] for line in apart.carry(party)} == {"deleted"}
    for name in ("to-aux-server", "to-analyzer", "released-to-analyzer"):
        assert {path.parts[0] for path in apart.volume(name)} == {"stated"}
    for party in JOBS:
        assert account_of(view_of(in_compose(noise_site.root, party), at(35.2)), past=True).differences == []
    assert not (noise_site.root / "no-volume").exists()


def test_a_recipient_that_is_down_for_longer_than_retention_loses_nothing(hand_on: ModuleType, site: Site) -> None:
    apart = Parties(site, hand_on)
    apart.run("shuffler", 1.1)
    apart.carry("shuffler")
    apart.run("aux-server", 1.2)
    apart.carry("aux-server")
    for day, late in ((35, ["aux-server", "analyzer"]), (60, ["analyzer"])):
        apart.run("shuffler", day, *late)
        apart.run("aux-server", day, "analyzer")
        apart.carry("shuffler")
        apart.carry("aux-server")
    assert len(apart.run("analyzer", 61).hops) == 2
    for party in ("shuffler", "aux-server"):
        apart.carry(party)
        assert apart.run(party, 61).deleted


def test_what_is_stated_is_copied_whole_or_not_at_all_and_again_if_it_is_gone(
    hand_on: ModuleType, site: Site, store: type[StubStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    shuffler, _ = shuffled(site)
    asked = hands(hand_on, "stated=stub://to/stated")
    put = store.put

    def killed_behind_the_signature(path: str, content: bytes) -> None:
        put(path, content)
        if ".sig" in path:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(store, "put", staticmethod(killed_behind_the_signature))
        hand_on.hand_on(shuffler, asked)
    assert not [name for name in store.objects if name.endswith(".json")]
    assert hand_on.hand_on(shuffler, asked) == (["copied: stated/shuffler words, 1"], [])
    assert hand_on.hand_on(shuffler, asked) == ([], [])
    own = Path(shuffler.folder("stated", "shuffler", "words"))
    there = {f"stub://to/stated/shuffler/words/{path.name}": path.read_bytes() for path in own.iterdir()}
    assert len(there) == 2
    assert {name: data for name, data in store.objects.items() if not name.endswith(".tmp")} == there
    for name in there:
        del store.objects[name]
        assert hand_on.hand_on(shuffler, asked) == (["copied: stated/shuffler words, 1"], [])
    # Cut, as no store of ours leaves it.
    store.put(min(there), b"{")
    assert hand_on.hand_on(shuffler, asked)[1] == []
    assert {name: store.objects[name] for name in there} == there
    # It stays when all else is gone.
    shutil.rmtree(own)
    assert hand_on.hand_on(shuffler, asked) == ([], [])
    assert {name: store.objects[name] for name in there} == there


def test_only_what_is_a_receipt_of_that_party_is_fetched(
    subtests: pytest.Subtests, hand_on: ModuleType, site: Site
) -> None:
    apart = Parties(site, hand_on)
    apart.run("shuffler", 1.1)
    apart.carry("shuffler")
    apart.run("aux-server", 1.2)
    volume = site.root / "volumes" / "aux-server-receipts" / "words"
    (receipt,) = volume.glob("*.json")
    good = receipt.read_text()
    for name, text in (
        ("is not JSON", "{"),
        ("is not a receipt of a party", "{}"),
        ("is a receipt that belongs in another place", good.replace('"aux-server"', '"analyzer"')),
        ("is a receipt that belongs in another place", good.replace('"words"', '"others"')),
        ("must have at most", good + " " * (1 << 18)),
    ):
        with subtests.test(name=name, text=text[:80]):
            receipt.write_text(text)
            shuffler = in_compose(site.root, "shuffler-hand-on")
            fetch = hand_on._fetch(f"receipts/aux-server={volume.parent}")
            done, (problem,) = hand_on.hand_on(shuffler, [], [fetch])
            assert done == []
            assert problem.startswith(f"receipts/aux-server words/{receipt.name} was not copied: ")
            assert name in problem
            assert not Path(shuffler.folder("receipts", "aux-server")).exists()
    # What else lies there is passed over.
    receipt.rename(volume / "notes.json")
    assert hand_on.hand_on(shuffler, [], [fetch]) == ([], [])


def test_what_a_party_here_says_is_not_fetched_from_elsewhere(hand_on: ModuleType, tmp_path: Path) -> None:
    for text in ("receipts/shuffler=/x", "stated/shuffler=/x"):
        with pytest.raises(UsageError, match="which runs here"):
            hand_on.hand_on(of_shuffler(tmp_path), [], [hand_on._fetch(text)])
    for text in ("receipts=/x", "receipts/nobody=/x", "receipts/analyzer=", "shuffled/reports=/x"):
        with pytest.raises(UsageError, match="receipts/analyzer=FROM"):
            hand_on._fetch(text)
    with pytest.raises(UsageError, match="--hand and --fetch"):
        hand_on.main(["--config", str(tmp_path / "deployment.toml")])


def test_without_an_option_the_deployment_file_is_found_as_by_hushcount(
    hand_on: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ["--hand", f"stated={tmp_path}"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HUSHCOUNT_CONFIG", raising=False)
    with pytest.raises(UsageError, match=r"deployment file deployment\.toml does not exist"):
        hand_on.main(asked)
    monkeypatch.setenv("HUSHCOUNT_CONFIG", "named.toml")
    with pytest.raises(UsageError, match=r"deployment file named\.toml does not exist"):
        hand_on.main(asked)


def test_a_place_that_cannot_be_listed_is_named_and_holds_up_nothing_else(
    hand_on: ModuleType, site: Site, store: type[StubStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    shuffler, batch = shuffled(site)

    def fails(system: StubStore, path: str) -> object:
        if path.startswith("stub://away"):
            raise ConnectionError("no route")
        return listed(system, path)

    listed = StubStore._list
    monkeypatch.setattr(StubStore, "_list", fails)
    asked = hands(
        hand_on, "stated=stub://away/stated", "stated=stub://to/stated", f"shuffled/reports={site.root / 'to'}"
    )
    done, (problem,) = hand_on.hand_on(shuffler, asked)
    assert problem.startswith("stated/shuffler was not copied from ")
    assert "no route" in problem
    assert sorted(done) == ["copied: stated/shuffler words, 1", f"handed on: words/{batch.name} reports"]
