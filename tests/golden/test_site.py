"""What a run makes of a stored deployment: every file, log and JSON answer, and the ledger, are as they were.

Where one of these fails, a format has changed. If that is meant, `python -m tests.golden.make` writes the expectations
anew, and what stores and ledgers of before hold must still be read.
"""

from __future__ import annotations

import json
import shutil
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from tests.golden.described import as_text, digest_of_json
from tests.golden.site import AFTER, Site, expected, first_run, kept, restored, second_run
from tests.support.jobs import done, files_under, refused, summary

PARTS = ("commands", "looks", "ledger", "files")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return first_run(tmp_path_factory.mktemp("golden").resolve() / "site")


@pytest.fixture(scope="module")
def summaries(site: Site) -> dict[str, dict[str, Any]]:
    """Every summary of the first run, by the folder and the window."""
    paths = sorted((site.root / "store").glob("*/words/*/summary.json"))
    return {f"{path.parts[-4]} {path.parts[-2][:8]}": json.loads(path.read_text()) for path in paths}


@pytest.fixture(scope="module")
def second(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Site:
    return second_run(site, tmp_path_factory.mktemp("golden").resolve() / "site")


def test_a_run_leaves_and_says_what_it_did(site: Site, subtests: pytest.Subtests) -> None:
    for part in PARTS:
        with subtests.test(part=part):
            assert as_text(site.seen[f"first-{part}"]) == as_text(expected(f"first-{part}"))


def test_a_summary_names_the_one_that_it_was_made_from(summaries: dict[str, dict[str, Any]]) -> None:
    for of, source in (("released", "shuffled"), ("found", "released"), ("results", "shuffled")):
        assert summaries[f"{of} 20210301"]["made_from"] == digest_of_json(summaries[f"{source} 20210301"])


def test_each_entry_names_the_one_before_by_its_bytes(site: Site) -> None:
    logs = list((site.root / "store" / "log").glob("*/words/*"))
    assert len(logs) == 3
    for log in logs:
        entries = [path.read_bytes() for path in sorted(log.iterdir())]
        before = [None, *(blake2b(data, digest_size=32).hexdigest() for data in entries)]
        assert [json.loads(data)["before"] for data in entries] == before[:-1]
        assert len({json.loads(data)["id"] for data in entries}) == len(entries)


def test_a_summary_is_that_of_the_entry_that_it_names(site: Site, summaries: dict[str, dict[str, Any]]) -> None:
    party = {"shuffled": "shuffler", "released": "aux-server", "found": "analyzer", "results": "analyzer"}
    assert len(summaries) == 8
    for name, published in summaries.items():
        said = published["log"]
        log = site.root / "store" / "log" / party[name.split()[0]] / "words" / f"{said['generation']:06d}"
        data = (log / f"{said['number']:010d}.json").read_bytes()
        assert said["digest"] == blake2b(data, digest_size=32).hexdigest()
        decision = json.loads(data)["decision"]
        assert decision["summary"] == {key: value for key, value in published.items() if key != "log"}
        assert decision["folder"] == published["folder"]


def test_a_shuffle_is_made_from_the_whole_of_its_batch(site: Site, summaries: dict[str, dict[str, Any]]) -> None:
    log = sorted((site.root / "store" / "log" / "shuffler" / "words" / "000001").iterdir())
    decisions = [json.loads(path.read_text())["decision"] for path in log]
    closed = next(one for one in decisions if one.get("window") == "20210301T000000Z")
    batch = _batch_of(closed, site.root / "store")
    streams = {
        name: {"received": number, "accepted": number, "rejected": {}}
        for name, number in (("reports", 129), ("discovery", 72))
    }
    collected = {
        "hop": "collect", "campaign": "words", "epoch": 1, "fingerprint": batch["fingerprint"], "received": 201,
        "accepted": 201, "rejected": {}, "streams": streams, "upstream": [], "batch_digest": digest_of_json(batch),
        "window": "20210301T000000Z", "authentication": "client-token",
        "allotments": {"reports": 2, "discovery": 1},
    }  # fmt: skip
    assert summaries["shuffled 20210301"]["made_from"] == digest_of_json(collected)


def _batch_of(closed: dict[str, Any], store: Path) -> dict[str, Any]:
    """Return all that a closed window says of the input of its shuffle."""
    segments = {
        f"{manifest['path'].rpartition('/')[0]}/{stream}/{part['name']}": {
            "path": f"{manifest['path'].rpartition('/')[0]}/{stream}/{part['name']}",
            **{key: part[key] for key in ("records", "bytes", "digest")},
            "authentication": manifest["authentication"],
        }
        for manifest in closed["manifests"]
        for stream, parts in manifest["segments"].items()
        for part in parts
    }
    ((campaign_file, streams),) = closed["batches"].items()
    return {
        "campaign": "words",
        "epoch": int(campaign_file.partition("-")[0]),
        "fingerprint": closed["manifests"][0]["fingerprint"],
        "window": closed["window"],
        "segments_folder": str(store / "segments"),
        "shuffled_folder": str(store / "shuffled" / "words"),
        "earlier": [],
        "segments": {stream: [segments[path] for path in paths] for stream, paths in streams.items()},
    }


def test_the_signed_files_are_those_that_are_there(site: Site, summaries: dict[str, dict[str, Any]]) -> None:
    for folder, streams in (("shuffled", ("reports", "discovery")), ("released", ("bins",))):
        (batch,) = (site.root / "store" / folder / "words").glob("20210301*")
        out = batch / summaries[f"{folder} 20210301"]["folder"]
        for stream in streams:
            there = [
                {"name": name, "bytes": len(data), "digest": blake2b(data, digest_size=32).hexdigest()}
                for name, data in sorted(files_under(out / stream).items())
            ]
            assert summaries[f"{folder} 20210301"]["files"][stream] == there


def test_the_next_run_publishes_and_deletes_as_it_did(second: Site, subtests: pytest.Subtests) -> None:
    for part in PARTS:
        with subtests.test(part=part):
            assert as_text(second.seen[f"second-{part}"]) == as_text(expected(f"second-{part}"))


def test_a_run_that_deletes_segments_deletes_what_it_did(second: Site, subtests: pytest.Subtests) -> None:
    for part in ("commands", "files"):
        with subtests.test(part=part):
            assert as_text(second.seen[f"third-{part}"]) == as_text(expected(f"third-{part}"))


def test_a_deployment_of_before_is_read_with_every_digest_and_has_nothing_left_to_do(tmp_path: Path) -> None:
    assert as_text(kept(tmp_path.resolve() / "site")) == as_text({"kept": expected("kept")})


def test_a_store_of_before_the_log_is_refused(tmp_path: Path) -> None:
    """Its outputs lay beside their summaries, which named no entry: what became of them only a state database said."""
    site = Site(restored(tmp_path.resolve() / "site", over=AFTER))
    shutil.rmtree(site.root / "store" / "log")
    for path in (site.root / "store").glob("*/words/*/summary.json"):
        published = json.loads(path.read_text())
        where = path.parent / published["folder"]
        path.unlink()
        for one in where.iterdir():
            one.rename(path.parent / one.name)
        where.rmdir()
    before = files_under(site.root / "store")
    says = "words: the log of shuffler was lost, or is an older copy"
    refused("run", "--config", site.config, "--clock-is-right", status=1, says=[says, "batches that it does not know"])
    after = files_under(site.root / "store")
    (look,) = (after.pop(name) for name in list(after) if name.endswith(".look.json"))
    assert json.loads(look).keys() == {"format", "at"}
    assert {name: data for name, data in after.items() if not name.startswith("log/")} == before
    decisions = [json.loads(data)["decision"]["kind"] for name, data in after.items() if name.startswith("log/")]
    assert set(decisions) <= {"opened", "confirmed"}


def test_what_was_released_before_is_neither_charged_nor_drawn_again(tmp_path: Path) -> None:
    """The key of a charge is made of the files of an input: they are known again, and so is the draw."""
    root = restored(tmp_path.resolve() / "site", over=AFTER)
    (source,) = (root / "store" / "shuffled" / "words").glob("20210301*")
    common = ("--campaign", root / "campaigns/words/words.json", "--input", source, "--keys", root / "keys")
    charging: tuple[object, ...] = ("--ledger", root / "ledger.db", "--signed-by", root / "signing" / "public.json")
    charges = {one["hop"]: one for one in reversed(expected("kept")["ledger"]["charges"])}
    for hop, out in (("analyze", tmp_path / source.name), ("discover", tmp_path / "found" / source.name)):
        done("job", hop, *common, *charging, "--out", out)
        charged = summary(out)["ledger"]["charged"]
        assert not charged["new"]
        assert (charged["key"], charged["manifest"]) == (charges[hop]["key"], charges[hop]["manifest"])
    assert done("ledger", "check", "--ledger", root / "ledger.db", "--json").json["charges"] == 3
    (batch,) = (root / "store" / "results" / "words").glob("20210301*")
    before = batch / summary(batch)["folder"]
    for name in ("tally.npz", "estimates.csv"):
        assert (tmp_path / source.name / name).read_bytes() == (before / name).read_bytes()
