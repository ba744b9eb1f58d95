"""hushcount keys rehearse: it passes where the parties would open what comes, and fails where one would not."""

from __future__ import annotations

import json
import tempfile
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.client import Client
from hushcount.errors import HushcountError, UsageError
from hushcount.policy import Policy
from keys.directories import create
from keys.listing import read_listing
from keys.rotation import retire, rotate
from tests.support.jobs import Chain, done, files_under, new_campaign, refused, write_lines
from tests.support.records import private_key

TOMORROW = datetime.now(timezone.utc).replace(microsecond=0) + timedelta(days=1)


def at(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two parties with keys of their own, which will change tomorrow, and the next campaign for them."""
    for name, role in (("analyzer", "analyzer"), ("aux", "aux_server")):
        create(tmp_path / name, days=30, roles=(role,))  # type: ignore[arg-type]
        rotate(tmp_path / name, overlap=timedelta(days=7), begins=TOMORROW)
    words = write_lines(tmp_path / "words.txt", ["alpha", "beta", "gamma", "größe"])
    campaign(tmp_path, "next", dictionary=words, discovery=2.0)
    rehearsals = tmp_path / "temporary"
    rehearsals.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(rehearsals))
    return tmp_path


def campaign(root: Path, name: str, **options: Any) -> Path:
    return new_campaign(
        root / f"{name}.json", root / "analyzer", "--keys", root / "aux", "--begins", at(TOMORROW), **options
    )


def rehearse(world: Path, *options: object, keys: tuple[str, ...] = ("analyzer", "aux"), name: str = "next") -> Any:
    """Run a rehearsal that must pass."""
    return done(*arguments(world, keys, name), *options, "--json").json


def arguments(world: Path, keys: tuple[str, ...] = ("analyzer", "aux"), name: str = "next") -> tuple[object, ...]:
    named = [argument for one in keys for argument in ("--keys", world / one)]
    return ("keys", "rehearse", "--campaign", world / f"{name}.json", *named)


def test_before_the_switch_every_party_opens_what_clients_will_send(world: Path) -> None:
    """Clients refuse the campaign today: its keys are pending. The rehearsal does not, and leaves nothing behind."""
    before = files_under(world)
    with pytest.raises(UsageError, match="valid"):
        Client(Campaign.read(world / "next.json"), policy=Policy.trusting()).report("alpha")
    told = rehearse(world)
    assert told["passed"] is True
    (analyzer, aux) = told["parties"]
    assert [party["role"] for party in told["parties"]] == ["analyzer", "aux_server"]
    assert analyzer["key"] == read_listing(world / "analyzer").keys[1].id
    assert analyzer["sent"] == analyzer["opened"]
    assert analyzer["sent"]["released values"] == 1
    assert analyzer["sent"]["frequency reports"] > 10
    assert aux["sent"] == aux["opened"]
    assert aux["sent"]["discovery reports"] > 10
    assert files_under(world) == before
    assert not list((world / "temporary").iterdir())


def test_a_campaign_whose_clients_remember_is_rehearsed_as_others_are(world: Path) -> None:
    """Made-up clients keep no answers, so the twin of the campaign asks for none."""
    options = ("--memory", "--memory-values", "3", "--begins", at(TOMORROW), "--keys", world / "aux")
    new_campaign(world / "kept.json", world / "analyzer", *options, dictionary=world / "words.txt", discovery=2.0)
    assert Campaign.read(world / "kept.json").memory_values == 3
    told = rehearse(world, name="kept")
    assert [(party["problem"], party["sent"] == party["opened"]) for party in told["parties"]] == [(None, True)] * 2


@pytest.mark.parametrize("party", ["analyzer", "aux-server"])
def test_each_party_may_rehearse_alone_with_its_own_key(world: Path, party: str) -> None:
    mine, other = ("analyzer", "aux") if party == "analyzer" else ("aux", "analyzer")
    (told,) = rehearse(world, "--party", party, keys=(mine,))["parties"]
    assert told["role"].replace("_", "-") == party
    run = refused(*arguments(world, (other,)), "--party", party, status=1)
    assert "FAILED: " in run.out
    assert "no key file" in run.out


def test_the_auxiliary_server_needs_neither_hash_key_nor_dictionary(world: Path) -> None:
    done("campaign", "redact", "--campaign", world / "next.json", "--out", world / "redacted.json")
    Chain(world / "next.json", world).dictionary.unlink()
    rehearse(world, "--party", "aux-server", keys=("aux",), name="redacted")
    refused(*arguments(world, ("analyzer",), "redacted"), "--party", "analyzer", says=["hash key"])


def test_a_dictionary_that_did_not_come_along_fails_the_analyzer(world: Path) -> None:
    write_lines(Chain(world / "next.json", world).dictionary, ["alpha", "beta", "another"])
    run = refused(*arguments(world), "--party", "analyzer", status=1)
    assert "analyzer: opened nothing" in run.out
    assert "is not the campaign's" in run.out


def damaged(world: Path, how: str) -> str:
    """Spoil the analyzer's side and return what the rehearsal must say."""
    next_id = read_listing(world / "analyzer").keys[1].id
    path = world / "analyzer" / f"analyzer-{next_id}.key"
    if how == "retired":
        retire(world / "analyzer", next_id)
        return "was retired on"
    if how == "missing":
        path.unlink()
        return "has no key file"
    if how == "readable by all":
        path.chmod(0o644)
        return "must be 0600"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "secret": record["secret"][::-1]}))
    return "holds another key, must hold"


@pytest.mark.parametrize("how", ["retired", "missing", "readable by all", "another secret"])
def test_a_key_that_would_fail_the_jobs_fails_the_rehearsal(world: Path, how: str) -> None:
    says = damaged(world, how)
    run = refused(*arguments(world), "--party", "analyzer", "--json", status=1)
    (analyzer,) = run.json["parties"]
    assert says in analyzer["problem"]
    assert run.json["passed"] is False


def test_one_party_that_fails_does_not_hide_that_the_other_passes(world: Path) -> None:
    damaged(world, "missing")
    run = refused(*arguments(world), "--json", status=1)
    assert [party["problem"] is None for party in run.json["parties"]] == [False, True]
    assert run.json["passed"] is False


def test_a_campaign_whose_keys_have_ended_fails(world: Path) -> None:
    past = datetime.now(timezone.utc) - timedelta(days=40)
    create(world / "old", days=30, now=past)
    data = json.loads((world / "next.json").read_text())
    listed = {key.role: key.part.model_dump(mode="json") for key in read_listing(world / "old").keys}
    data["keys"] = {role: [part] for role, part in listed.items()}
    (world / "ended.json").write_text(json.dumps(data))
    run = refused(*arguments(world, ("old",), "ended"), status=1)
    assert run.out.count("no client seals to key") == 2


@pytest.mark.parametrize(
    "options",
    [
        {"mechanism": "grr", "closed": True},
        {"mechanism": None, "discovery": 1.0},
        {"mechanism": "ss", "closed": True, "discovery": 0.5, "more": ("--discovery-rule", "laplace", "--cap", 2)},
        {"mechanism": "ais", "discovery": 1.0, "more": ("--max-value-bytes", 1)},
    ],
    ids=["frequencies only", "discovery only", "laplace with a cap", "open domain, values of one byte"],
)
def test_campaigns_of_every_kind_can_be_rehearsed(world: Path, options: dict[str, Any]) -> None:
    given = dict(options)
    more = given.pop("more", ())
    if given.pop("closed", False):
        given["dictionary"] = world / "words.txt"
    new_campaign(
        world / "kind.json", world / "analyzer", "--keys", world / "aux", "--begins", at(TOMORROW), *more, **given
    )
    told = rehearse(world, "--party", "analyzer", name="kind")
    (party,) = told["parties"]
    assert len(party["sent"]) == (given["mechanism"] is not None) + ("discovery" in given)
    assert party["sent"] == party["opened"]


def test_both_mixes_of_a_campaign_with_noise_are_rehearsed(world: Path) -> None:
    noise = ("--noise", "--epsilon", 1, "--window", "1d")
    new_campaign(
        world / "noisy.json", world / "analyzer", "--keys", world / "aux", "--begins", at(TOMORROW), *noise,
        mechanism=None, dictionary=world / "words.txt", min_batch=1,
    )  # fmt: skip
    told = rehearse(world, name="noisy")
    assert [party["role"] for party in told["parties"]] == ["analyzer", "aux_server"]
    assert all(party["sent"] == party["opened"] != {} for party in told["parties"])
    damaged(world, "another secret")
    refused(*arguments(world, name="noisy"), status=1)


def test_the_auxiliary_server_has_nothing_to_rehearse_without_discovery(world: Path) -> None:
    campaign(world, "plain", mechanism="grr", dictionary=world / "words.txt")
    refused(*arguments(world, ("aux",), "plain"), "--party", "aux-server", says=["discovery"])


def test_no_batch_of_the_real_campaign_takes_rehearsed_reports(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are bound to the twin: sealed to the real key, and refused for all that."""
    import pipelines.jobs.rehearse as module

    kept: list[Campaign] = []

    def plan_encode(path: Path, values: Path, out: str, **options: Any) -> Any:
        kept.append(Campaign.read(path))
        raise HushcountError("enough was seen")

    monkeypatch.setattr(module, "plan_encode", plan_encode)
    refused(*arguments(world), "--party", "analyzer", status=1)
    (twin,), campaign = kept, Campaign.read(world / "next.json")
    report = Client(twin, policy=Policy.trusting(), dictionary=campaign.read_dictionary()).report("alpha")
    for path in (world / "analyzer").glob("*.key"):
        if campaign.keys.analyzer[0].id not in path.name:
            path.unlink()
    plain = private_key(world / "analyzer", "analyzer").open(report)
    assert plain is not None
    assert plain.startswith(twin.binding("reports"))
    assert not plain.startswith(campaign.binding("reports"))
    assert twin.fingerprint != campaign.fingerprint
    assert twin.mechanism == campaign.mechanism
    assert twin.discovery == campaign.discovery
    assert twin.dictionary is not None
    assert campaign.dictionary is not None
    assert twin.dictionary.digest == campaign.dictionary.digest


def test_keys_may_come_from_the_environment(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUSHCOUNT_TEST_OTHER", "ab" * 32)
    id = read_listing(world / "aux").keys[1].id
    secret = json.loads((world / "aux" / f"aux_server-{id}.key").read_text())["secret"]
    monkeypatch.setenv("HUSHCOUNT_TEST_AUX", secret)
    asked = ("keys", "rehearse", "--campaign", world / "next.json", "--party", "aux-server")
    run = done(*asked, "--keys", "env:HUSHCOUNT_TEST_OTHER", "--keys", "env:HUSHCOUNT_TEST_AUX")
    assert "auxiliary server: opened" in run.out
    run = refused(*asked, "--keys", "env:HUSHCOUNT_TEST_OTHER", status=1)
    assert "HUSHCOUNT_TEST_OTHER" in run.out
    assert secret[:16] not in run.out + run.err
