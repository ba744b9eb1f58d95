"""What a closing window takes of what lies in the store: segments that are as their manifests say, each once."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.envelopes import ENVELOPES
from hushcount.wire.blocks import Header, encode_blocks
from pipelines.deployment.campaigns import read_epochs
from pipelines.log.entries import Closed
from pipelines.log.fold import Fold
from pipelines.log.log import Log
from pipelines.schedule.run import run
from pipelines.windows.closing import Rule
from pipelines.windows.intake import closed_next, intake_of
from pipelines.windows.rules import rule_of
from pipelines.windows.stored import stored_files
from tests.support.clocks import stopped
from tests.support.plain_jobs import PlainJobs, leave
from tests.support.site import FLOOR, Site, at


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def rule(site: Site) -> Rule:
    ((epochs,), _) = read_epochs(site.deployment.campaigns)
    return rule_of(site.deployment, epochs, Fold("words"))


def close(site: Site, day: float, fold: Fold | None = None) -> tuple[Closed, list[str]] | None:
    """Return what closing the next window says, for a log that nothing is in yet or for this fold."""
    before = fold or Fold("words")
    files = stored_files(site.deployment)["words"]
    return closed_next(site.deployment, before, intake_of(site.deployment, before, files).listed, rule(site), at(day))


def batched(closed: Closed) -> list[str]:
    return [path for streams in closed.batches.values() for paths in streams.values() for path in paths]


def test_an_entry_holds_what_the_window_takes(site: Site) -> None:
    paths = leave(site.store, site.campaign, 0, {"reports": 60})
    assert close(site, 0.9) is None
    found = close(site, 1.1)
    assert found is not None
    closed, said = found
    campaign = Campaign.read(site.campaign)
    assert (closed.window, closed.seconds, batched(closed), said) == (closed.manifests[0].window, 86_400, paths, [])
    (taken,) = closed.manifests
    assert (taken.fingerprint, taken.collector) == (campaign.fingerprint.hex(), "one")
    manifest = site.store / "segments" / taken.path
    assert taken.written.timestamp() == int(manifest.stat().st_mtime)


@pytest.mark.parametrize(
    ("damage", "reason"), [("missing", "is missing"), ("shorter", "bytes"), ("changed", "fails its digest")]
)
@pytest.mark.parametrize("others", [FLOOR, FLOOR - 1])
def test_a_segment_that_is_not_as_its_manifest_says_is_put_aside(
    site: Site, damage: str, reason: str, others: int
) -> None:
    """The batch comes without it, if the others are enough."""
    (good,) = leave(site.store, site.campaign, 0, {"reports": others})
    (bad,) = leave(site.store, site.campaign, 0, {"reports": 60}, "two")
    file = site.store / "segments" / bad
    data = file.read_bytes()
    file.write_bytes(data[:-1] if damage == "shorter" else b"x" + data[1:])
    if damage == "missing":
        file.unlink()
    found = close(site, 1.1)
    assert found is not None
    closed, (said,) = found
    assert batched(closed) == ([good] if others == FLOOR else [])
    assert closed.aside.keys() == {bad}
    assert reason in closed.aside[bad]
    kept = "the segment was put aside, and other segments do not wait for it; restore its file"
    assert said == f"{bad} {closed.aside[bad]}: {kept}"
    # It is not said again, and taken as soon as it is right.
    log = Log(site.deployment, "shuffler", "words")
    log.decide(lambda _: closed, at(1.1))
    leave(site.store, site.campaign, 1, {"reports": 7})
    again = close(site, 2.1, log.fold)
    assert again is not None
    assert (again[0].aside.keys(), again[1]) == ({bad}, [])
    file.write_bytes(data)
    mended = close(site, 2.1, log.fold)
    assert mended is not None
    assert (bad in batched(mended[0]), mended[0].aside) == (True, {})


@pytest.mark.parametrize("wrong", ["records", "kind", "no segment"])
def test_a_manifest_that_is_wrong_of_its_own_segment_holds_up_no_others(
    site: Site, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    """A digest only says that the file is the manifest's: the shuffle would refuse it, and all of the batch with it."""
    jobs = PlainJobs(monkeypatch)
    (good,) = leave(site.store, site.campaign, 0, {"reports": 60})
    (bad,) = leave(site.store, site.campaign, 0, {"reports": 60}, "two")
    file = site.store / "segments" / bad
    (manifest,) = file.parents[1].glob("two.manifest.json")
    described = json.loads(manifest.read_text())
    (part,) = described["segments"]["reports"]
    if wrong == "records":
        part["records"] = 61
    else:
        kind = ENVELOPES["discovery"] if wrong == "kind" else ENVELOPES["reports"]
        data = b"".join(encode_blocks(Header(kind, 5, 60, bytes(32), "words"), b"other" * 60))
        data = data if wrong == "kind" else b"x" + data
        file.write_bytes(data)
        part["bytes"] = len(data)
        part["digest"] = hashlib.blake2b(data, digest_size=32).hexdigest()
    manifest.write_text(json.dumps(described))
    (said,) = site.run(1.1).problems
    assert f"{bad} is " in said
    assert "put aside, and other segments do not wait" in said
    assert [*jobs.released.values()] == [[good]]
    leave(site.store, site.campaign, 3, {"reports": 60}, "three")
    assert site.run(4.1, sure=True).dropped[0].startswith(f"{bad}: ")


def test_of_two_manifests_of_one_segment_one_is_taken(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever a run saw first; the other is said, and its segment counts once."""
    jobs = PlainJobs(monkeypatch)
    paths = leave(site.store, site.campaign, 0, {"reports": 60})
    (first,) = site.store.glob("segments/words/*/*/one.manifest.json")
    second = shutil.copy(first, first.with_name(f"one-{'0' * 16}.manifest.json"))
    other = first.rename(first.with_suffix(".aside"))
    log = Log(site.deployment, "shuffler", "words")

    def meanwhile(step: str) -> None:
        """Another run saw the other manifest alone."""
        if "closing" not in step or log.head.number:
            return
        Path(second).rename(f"{second}.aside")
        other.rename(first)
        found = close(site, 1.1)
        assert found is not None
        log.decide(lambda _: found[0], at(1.1))
        Path(f"{second}.aside").rename(second)

    # When the next window too may close.
    assert run(site.deployment, clock=stopped(at(2.1)), say=meanwhile).problems == []
    (problem,) = site.run(2.2).problems
    assert "names a segment of another manifest" in problem
    assert [*jobs.released.values()] == [paths]
    assert sum(Log(site.deployment, "shuffler", "words").read().counts_by_state.values()) == 60
