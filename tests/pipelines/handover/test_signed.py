"""What the shuffler handed on is what the next party reads, or nothing is read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.signatures import SignatureError
from hushcount.client import Client
from hushcount.policy import Policy
from keys.directories import create, verify_keys
from keys.roles import Role
from keys.rotation import retire, rotate
from pipelines.audit.reconcile import account_of
from pipelines.files import storage
from pipelines.handover.file_list import listed_files
from pipelines.handover.upstream import read_upstream
from pipelines.schedule.run import run
from tests.support.clocks import stopped
from tests.support.collecting import collect
from tests.support.jobs import done, files_of, found, refused, summary
from tests.support.records import private_key, read_file, write_rows
from tests.support.site import Site, account_at, at, values, view_of

BOTH = """sign_with = "signing"
shuffler_keys = "signing/public.json"
aux_server_keys = "signing/public.json"
analyzer_keys = "signing/public.json"
"""
"""Settings of a deployment in which both parties sign that hand something on."""


def replace_key(keys: Path, role: Role, id: str) -> None:
    """Make the next key of a role and destroy this one; no two keys of a role begin in the same second."""
    later = datetime.now(timezone.utc) + timedelta(seconds=1)
    rotate(keys, (role,), overlap=timedelta(days=1), now=later)
    retire(keys, id, early=True, now=later)


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Site:
    site = Site(tmp_path_factory.mktemp("signed"), discovery=True)
    done("keys", "new", "--role", "shuffler", "--out", site.root / "shuffler")
    (path,) = [path for path in collect(site.store, site.campaign, values(200), day=0) if path.parent.name == "reports"]
    done(
        "job", "shuffle", "--campaign", site.campaign, "--input", path.parent.parent, "--out", site.root / "shuffled",
        "--sign-with", site.root / "shuffler",
    )  # fmt: skip
    return site


def copied(site: Site, to: Path) -> Path:
    shutil.copytree(site.root / "shuffled", to / "shuffled")
    return to / "shuffled"


def read(site: Site, source: Path, out: Path, keys: Path | None = None) -> list[list[object]]:
    trusted = keys or site.root / "shuffler"
    common = ["--campaign", site.campaign, "--input", source, "--keys", site.keys, "--signed-by", trusted]
    return [["job", "analyze", *common, "--out", out / "results"], ["job", "discover", *common, "--out", out / "found"]]


def test_what_was_signed_is_read(signed: Site, tmp_path: Path) -> None:
    for command in read(signed, copied(signed, tmp_path), tmp_path):
        done(*command)


def lose(source: Path, folder: str) -> None:
    next((files_of(source) / folder).glob("*.blocks")).unlink()


def add(source: Path, folder: str) -> None:
    path = next((files_of(source) / folder).glob("*.blocks"))
    (path.parent / "more.blocks").write_bytes(path.read_bytes())


def plant(source: Path, folder: str) -> None:
    """Nothing that a job reads today; what lies beside signed files is signed, whatever it is called."""
    (files_of(source) / folder / "notes.txt").write_text("read me")


def alter(source: Path, folder: str) -> None:
    path = next((files_of(source) / folder).glob("*.blocks"))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def restate(source: Path, _folder: str) -> None:
    path = source / "summary.json"
    path.write_text(path.read_text().replace('"accepted"', '"accepted" '))


def unsign(source: Path, _folder: str) -> None:
    (files_of(source) / "summary.json.sig").unlink()


def test_what_was_not_signed_is_refused_and_nothing_is_written(
    subtests: pytest.Subtests, signed: Site, tmp_path: Path
) -> None:
    for meddle, says in (
        (lose, "is missing"),
        (add, "was not signed"),
        (plant, "notes.txt was not signed"),
        (alter, "is not the file that was signed"),
        (restate, "is wrong: it was altered"),
        (unsign, "is not signed"),
    ):
        with subtests.test(meddle=meddle):
            here = tmp_path / meddle.__name__
            here.mkdir()
            source = copied(signed, here)
            for command, folder in zip(read(signed, source, here), ("reports", "discovery"), strict=True):
                if meddle in (restate, unsign) and folder == "discovery":
                    continue
                meddle(source, folder)
                refused(*command, status=1, says=[says])
            assert not (here / "results").exists()
            assert not (here / "found").exists()


def test_the_signature_of_another_shuffler_is_refused(signed: Site, tmp_path: Path) -> None:
    done("keys", "new", "--role", "shuffler", "--out", tmp_path / "another")
    for command in read(signed, copied(signed, tmp_path), tmp_path, tmp_path / "another"):
        refused(*command, status=1, says=[*(key.id for key in verify_keys(signed.root / "shuffler", "shuffler"))])


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
    shutil.rmtree(site.store / "log" / "analyzer")
    shutil.rmtree(site.store / "results")
    (site.root / "ledger.db").unlink()
    assert "is not the file that was signed" in account_at(site, 1.2).differences[0]


@pytest.mark.long
def test_what_one_party_has_read_is_still_new_to_another(tmp_path: Path) -> None:
    site = Site(tmp_path, discovery=True, settings=BOTH)
    done("keys", "new", "--role", "handing-on", "--out", site.root / "signing")
    collect(site.store, site.campaign, values(200), day=0)
    assert site.run(1.1).problems == []
    shuffled = site.store / "shuffled" / "words" / site.batch(0)
    alter(shuffled, "reports")
    assert account_at(site, 1.2).differences == []
    # As if the auxiliary server alone had read its stream yet.
    for folder in ("log/analyzer", "results", "found"):
        shutil.rmtree(site.store / folder)
    lost, difference = account_at(site, 1.2).differences
    assert "the log of analyzer was lost" in lost
    assert f"{files_of(shuffled)}/reports" in difference
    assert "is not the file that was signed" in difference


def test_the_files_that_count_are_those_of_the_summary_that_was_verified(
    signed: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever can write to the store exchanges the summary, and a file, between two looks at it."""
    source = copied(signed, tmp_path)
    good, exchanged = storage.read_bytes, list[str]()

    def exchanged_after(path: str, *most: int) -> bytes:
        data = good(path, *most)
        if path == str(source / "summary.json") and not exchanged:
            exchanged.append(path)
            alter(source, "reports")
            forged = json.loads(data)
            listed = listed_files(str(source), ["reports", "discovery"])
            forged["files"] = {name: [asdict(file) for file in files] for name, files in listed.items()}
            (source / "summary.json").write_text(json.dumps(forged))
        return data

    monkeypatch.setattr(storage, "read_bytes", exchanged_after)
    keys = verify_keys(signed.root / "shuffler", "shuffler")
    with pytest.raises(SignatureError, match="is not the file that was signed"):
        read_upstream(str(source), "shuffle", Campaign.read(signed.campaign), keys, "reports")


def test_a_key_that_was_retired_since_still_tells_what_it_signed(handed_on: tuple[Site, Path]) -> None:
    site, _ = handed_on
    keys = site.root / "shuffler"
    (old,) = verify_keys(keys, "shuffler")
    replace_key(keys, "shuffler", old.id)
    assert old not in verify_keys(keys, "shuffler")
    assert account_at(site, 1.2).differences == []


# In the place of another batch.


def test_a_signed_output_under_another_name_is_refused(signed: Site, tmp_path: Path) -> None:
    """By hand a batch has the name of its folder: of two that are told apart by it, none takes the other's place."""
    source = copied(signed, tmp_path).rename(tmp_path / "today")
    for command in read(signed, source, tmp_path):
        refused(*command, says=[str(source), "another batch"])
    # A link has a name of its own.
    (tmp_path / "shuffled").symlink_to(source)
    (tmp_path / "other").symlink_to(tmp_path / "shuffled")
    done(*read(signed, tmp_path / "shuffled", tmp_path)[0])
    refused(*read(signed, tmp_path / "other", tmp_path / "new")[0], says=["another batch"])


@pytest.mark.parametrize("settings", [BOTH, ""])
def test_yesterdays_batch_in_the_place_of_todays_is_refused(tmp_path: Path, settings: str) -> None:
    """Signed and whole, and of the same campaign: it would be counted twice, and today's batch never."""
    site = Site(tmp_path, settings=settings)
    done("keys", "new", "--role", "handing-on", "--out", site.root / "signing")
    shuffler, analyzer = site.of("shuffler"), site.of("analyzer")
    for day in (0, 1):
        collect(site.store, site.campaign, values(60), day=day)
        assert run(shuffler, clock=stopped(at(day + 1.1))).problems == []
    folder = site.store / "shuffled" / "words"
    shutil.rmtree(folder / site.batch(1))
    shutil.copytree(folder / site.batch(0), folder / site.batch(1))
    (problem,) = run(analyzer, clock=stopped(at(2.2))).problems
    assert f"{site.batch(1)}/summary.json is not what the shuffler states" in problem
    assert not (site.store / "results" / "words" / site.batch(1)).exists()
    if settings:
        differences = account_of(view_of(shuffler, at(2.2))).differences
        assert f"{folder / site.batch(1) / 'summary.json'} is not what entry 6 of the log says" in differences[0]


# What the auxiliary server hands the analyzer.


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """What a shuffler and an auxiliary server left, each signed by its own key."""
    site = Site(tmp_path_factory.mktemp("released"), discovery=True, settings=BOTH)
    done("keys", "new", "--role", "handing-on", "--out", site.root / "signing")
    collect(site.store, site.campaign, values(200), day=0)
    assert run(site.of("shuffler", "aux-server"), clock=stopped(at(1.1))).problems == []
    return site


def handed_out(site: Site, to: Path) -> Path:
    return Path(shutil.copytree(site.store / "released" / "words" / site.batch(0), to / site.batch(0)))


def reveal(site: Site, source: Path, out: Path, *trusted: object) -> list[object]:
    common = ["--campaign", site.campaign, "--input", source, "--keys", site.keys, "--out", out / "found"]
    return ["job", "discover", "--party", "analyzer", *common, *trusted]


def plant_a_value(site: Site, source: Path, files: bool) -> None:
    """Add the pair that an honest client would make of a value that nobody sent, and let all counts be right."""
    campaign = Campaign.read(site.campaign)
    plain = private_key(site.keys, "aux_server").open(
        Client(campaign, policy=Policy.trusting()).discovery_report("planted")
    )
    assert plain is not None
    pair = np.frombuffer(plain[len(campaign.discovery_format.binding) :], dtype=np.uint8)
    path = next((files_of(source) / "bins").glob("*.blocks"))
    header, rows = read_file(path)
    write_rows(path, header.kind, np.concatenate([rows, pair[None, :]]), campaign)
    data = summary(source)
    data["released"] += 1
    if files:
        data["files"] = {"bins": [asdict(file) for file in listed_files(str(files_of(source)), ["bins"])["bins"]]}
    (source / "summary.json").write_text(json.dumps(data))


def test_what_the_auxiliary_server_signed_is_revealed(released: Site, tmp_path: Path) -> None:
    trusted = ("--signed-by", released.root / "signing" / "public.json")
    done(*reveal(released, handed_out(released, tmp_path), tmp_path, *trusted))
    assert found(tmp_path / "found") == ["nobody"]


def test_a_planted_value_is_refused_where_the_auxiliary_servers_key_is_known(
    subtests: pytest.Subtests, released: Site, tmp_path: Path
) -> None:
    """Whoever could write to the place between the two parties had any value found."""
    for meddle, says in (
        (lambda site, source: plant_a_value(site, source, True), "is wrong: it was altered"),
        (lambda site, source: plant_a_value(site, source, False), "is wrong: it was altered"),
        (lambda _, source: add(source, "bins"), "was not signed"),
        (lambda _, source: alter(source, "bins"), "is not the file that was signed"),
        (lambda _, source: unsign(source, "bins"), "is not signed"),
        (lambda _, source: (files_of(source) / "summary.json.sig").write_text("{}"), "summary.json.sig is invalid"),
    ):
        with subtests.test(says=says):
            here = tmp_path / str(len(list(tmp_path.iterdir())))
            here.mkdir()
            source = handed_out(released, here)
            meddle(released, source)
            run_it = reveal(released, source, here, "--signed-by", released.root / "signing")
            refused(*run_it, status=2 if "invalid" in says else 1, says=[says])
            assert not (here / "found").exists()


def test_without_the_key_a_planted_value_is_found(released: Site, tmp_path: Path) -> None:
    """The limit, and the proof that what is planted above would be believed."""
    source = handed_out(released, tmp_path)
    plant_a_value(released, source, False)
    done(*reveal(released, source, tmp_path))
    assert found(tmp_path / "found") == ["nobody", "planted"]


def test_the_shufflers_signature_is_not_the_auxiliary_servers(released: Site, tmp_path: Path) -> None:
    """One party may not sign in the place of another, nor one batch's release stand in for another's."""
    source, trusted = handed_out(released, tmp_path), released.root / "signing"
    shuffled = released.store / "shuffled" / "words" / released.batch(0)
    files_of(source).rename(source / files_of(shuffled).name)
    shutil.copy(shuffled / "summary.json", source)
    shutil.copy(files_of(shuffled) / "summary.json.sig", files_of(source))
    refused(*reveal(released, source, tmp_path, "--signed-by", trusted), status=1, says=["signed with key"])
    other = handed_out(released, tmp_path / "more").rename(tmp_path / "elsewhere")
    refused(*reveal(released, other, tmp_path, "--signed-by", trusted), says=[str(other)])


@pytest.mark.parametrize("missing", ["sign_with", "aux_server_keys"])
def test_run_signs_and_requires_what_the_auxiliary_server_hands_on(tmp_path: Path, missing: str) -> None:
    kept = [line for line in BOTH.splitlines() if not line.startswith(missing)]
    site = Site(tmp_path, discovery=True, settings="\n".join(kept))
    create(site.root / "signing", 30, ("shuffler", "aux_signer"))
    if missing == "sign_with":
        site.config.write_text(site.config.read_text().replace("shuffler_keys", "# "))
    collect(site.store, site.campaign, values(200), day=0)
    done_here = site.run(1.1)
    if missing == "sign_with":
        assert "released" in done_here.problems[0]
        assert "is not signed" in done_here.problems[0]
        assert not (site.store / "found").exists()
    else:
        assert done_here.problems == []
        plant_a_value(site, site.store / "released" / "words" / site.batch(0), True)
        assert "summary.json is not what entry 3 of the log says" in account_at(site, 1.2).differences[0]


def test_what_is_counted_and_not_released_is_signed_too(tmp_path: Path) -> None:
    """A key that was retired: the analyzer is told so by a summary, which it would refuse unsigned."""
    site = Site(tmp_path, discovery=True, settings=BOTH)
    done("keys", "new", "--role", "handing-on", "--out", site.root / "signing")
    collect(site.store, site.campaign, values(200), day=0)
    (key,) = [path.stem.rpartition("-")[2] for path in site.keys.glob("aux_server-*.key")]
    replace_key(site.keys, "aux_server", key)
    first = site.run(1.1)
    assert len(first.problems) == 1
    assert "retired" in first.problems[0]
    assert [name.rpartition(" ")[2] for name in first.hops] == ["shuffle", "release", "discover", "analyze"]


def test_only_what_is_handed_on_is_signed(released: Site, tmp_path: Path) -> None:
    common = ("--campaign", released.campaign, "--keys", released.keys, "--out", tmp_path / "out")
    shuffled = released.store / "shuffled" / "words" / released.batch(0)
    signing = ("--sign-with", released.root / "signing")
    refused("job", "discover", *common, "--input", shuffled, *signing, says=["party is both"])
    other = ("--sign-with", released.keys)
    refused("job", "discover", *common, "--input", shuffled, "--party", "aux-server", *other, says=["no active key"])
