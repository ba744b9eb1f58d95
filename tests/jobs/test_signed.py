"""What the shuffler handed on is what the next party reads, or nothing is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hushcount.signatures import SignatureError
from keys.store import verify_keys
from pipelines import storage
from pipelines.signed import listed_files, require_signed
from pipelines.state import HOPS, opened
from tests.support.collecting import collect
from tests.support.jobs import done, refused
from tests.support.site import Site, account_at, values


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Site:
    site = Site(tmp_path_factory.mktemp("signed"), discovery=True)
    done("keys", "new", "--role", "shuffler", "--out", site.root / "shuffler")
    (path,) = [path for path in collect(site.store, site.campaign, values(200), day=0) if path.parent.name == "reports"]
    done(
        "shuffle", "--campaign", site.campaign, "--input", path.parent.parent, "--out", site.root / "shuffled",
        "--sign-with", site.root / "shuffler",
    )  # fmt: skip
    return site


def copied(site: Site, to: Path) -> Path:
    import shutil

    shutil.copytree(site.root / "shuffled", to / "shuffled")
    return to / "shuffled"


def read(site: Site, source: Path, out: Path, keys: Path | None = None) -> list[list[object]]:
    trusted = keys or site.root / "shuffler"
    common = ["--campaign", site.campaign, "--input", source, "--keys", site.keys, "--shuffler-keys", trusted]
    return [["analyze", *common, "--out", out / "results"], ["discover", *common, "--out", out / "found"]]


def test_what_was_signed_is_read(signed: Site, tmp_path: Path) -> None:
    for command in read(signed, copied(signed, tmp_path), tmp_path):
        done(*command)


def lose(source: Path, folder: str) -> None:
    next((source / folder).glob("*.blocks")).unlink()


def add(source: Path, folder: str) -> None:
    path = next((source / folder).glob("*.blocks"))
    (source / folder / "more.blocks").write_bytes(path.read_bytes())


def alter(source: Path, folder: str) -> None:
    path = next((source / folder).glob("*.blocks"))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def restate(source: Path, _folder: str) -> None:
    path = source / "summary.json"
    path.write_text(path.read_text().replace('"accepted"', '"accepted" '))


def unsign(source: Path, _folder: str) -> None:
    (source / "summary.json.sig").unlink()


@pytest.mark.parametrize(
    ("meddle", "says"),
    [
        (lose, "is missing"),
        (add, "was not signed"),
        (alter, "is not the file that was signed"),
        (restate, "is wrong: it was altered"),
        (unsign, "is not signed"),
    ],
)
def test_what_was_not_signed_is_refused_and_nothing_is_written(
    signed: Site, tmp_path: Path, meddle: Callable[[Path, str], None], says: str
) -> None:
    source = copied(signed, tmp_path)
    for command, folder in zip(read(signed, source, tmp_path), ("reports", "discovery"), strict=True):
        if says in ("is not signed", "is wrong: it was altered") and folder == "discovery":
            continue
        meddle(source, folder)
        refused(*command, status=1, says=[says])
    assert not (tmp_path / "results").exists()
    assert not (tmp_path / "found").exists()


def test_the_signature_of_another_shuffler_is_refused(signed: Site, tmp_path: Path) -> None:
    done("keys", "new", "--role", "shuffler", "--out", tmp_path / "another")
    for command in read(signed, copied(signed, tmp_path), tmp_path, tmp_path / "another"):
        refused(*command, status=1, says=["was signed with key", "trusted are"])


def test_run_signs_and_requires_signatures_as_it_is_told(tmp_path: Path) -> None:
    site = Site(tmp_path, settings='shuffler_keys = "shuffler/public.json"')
    done("keys", "new", "--role", "shuffler", "--out", site.root / "shuffler")
    collect(site.store, site.campaign, values(200), day=0)
    (problem,) = site.run(1.1).problems
    assert "is not signed" in problem
    site.config.write_text('sign_with = "shuffler"\n' + site.config.read_text())
    collect(site.store, site.campaign, values(100), day=1)
    finished = site.run(2.1)
    assert [name.rpartition(" ")[2] for name in finished.hops] == ["shuffle", "analyze"]
    assert "is not signed" in finished.problems[0]
    (difference,) = account_at(site, 2.2).differences
    assert f"{site.batch(0)}/summary.json is not signed" in difference


@pytest.fixture
def handed_on(tmp_path: Path) -> tuple[Site, Path]:
    """What the shuffler signed, and the analyzer has read."""
    site = Site(tmp_path, settings='sign_with = "shuffler"\nshuffler_keys = "shuffler/public.json"')
    done("keys", "new", "--role", "shuffler", "--out", site.root / "shuffler")
    collect(site.store, site.campaign, values(200), day=0)
    assert site.run(1.1).problems == []
    return site, site.store / "shuffled" / "words" / site.batch(0)


def unsign(shuffled: Path, _folder: str) -> None:
    (shuffled / "summary.json.sig").unlink()


@pytest.mark.parametrize("harm", [lose, add, unsign])
def test_status_is_red_where_what_was_handed_on_is_not_what_was_signed(
    handed_on: tuple[Site, Path], harm: Callable[[Path, str], None]
) -> None:
    site, shuffled = handed_on
    assert account_at(site, 1.2).differences == []
    harm(shuffled, "reports")
    assert str(shuffled) in account_at(site, 1.2).differences[0]


def test_status_reads_what_is_new_and_with_digests_everything(handed_on: tuple[Site, Path]) -> None:
    site, shuffled = handed_on
    alter(shuffled, "reports")
    done("status", "--config", site.config)
    told = refused("status", "--config", site.config, "--digests", status=1, says=["1 difference"])
    assert "is not the file that was signed" in told.out
    # As if the analyzer had not read it yet.
    with opened(site.deployment.state) as state, state.begin() as connection:
        connection.execute(HOPS.delete().where(HOPS.c.hop == "analyze"))
    assert "is not the file that was signed" in account_at(site, 1.2).differences[0]


def test_what_one_party_has_read_is_still_new_to_another(tmp_path: Path) -> None:
    site = Site(tmp_path, discovery=True, settings='sign_with = "shuffler"\nshuffler_keys = "shuffler/public.json"')
    done("keys", "new", "--role", "shuffler", "--out", site.root / "shuffler")
    collect(site.store, site.campaign, values(200), day=0)
    assert site.run(1.1).problems == []
    shuffled = site.store / "shuffled" / "words" / site.batch(0)
    alter(shuffled, "reports")
    assert account_at(site, 1.2).differences == []
    # As if the auxiliary server alone had read its stream yet.
    with opened(site.deployment.state) as state, state.begin() as connection:
        connection.execute(HOPS.delete().where(HOPS.c.hop == "analyze"))
    (difference,) = account_at(site, 1.2).differences
    assert f"{shuffled}/reports" in difference
    assert "is not the file that was signed" in difference


def test_the_files_that_count_are_those_of_the_summary_that_was_verified(
    signed: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever can write to the store exchanges the summary, and a file, between two looks at it."""
    source = copied(signed, tmp_path)
    good = storage.read_bytes

    def exchanged_after(path: str) -> bytes:
        data = good(path)
        if path == str(source / "summary.json"):
            alter(source, "reports")
            forged = json.loads(data)
            forged["files"] = listed_files(str(source), ["reports", "discovery"])
            (source / "summary.json").write_text(json.dumps(forged))
        return data

    monkeypatch.setattr(storage, "read_bytes", exchanged_after)
    keys = verify_keys(signed.root / "shuffler", "shuffler")
    with pytest.raises(SignatureError, match="is not the file that was signed"):
        require_signed(str(source), "reports", keys)


def test_a_key_that_was_retired_since_still_tells_what_it_signed(handed_on: tuple[Site, Path]) -> None:
    site, _ = handed_on
    keys = site.root / "shuffler"
    (old,) = verify_keys(keys, "shuffler")
    done("keys", "rotate", "--role", "shuffler", "--keys", keys, "--overlap", "1d")
    done("keys", "retire", "--keys", keys, "--id", old.id, "--early", "--yes")
    assert old not in verify_keys(keys, "shuffler")
    assert account_at(site, 1.2).differences == []
