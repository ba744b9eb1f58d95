"""hushcount campaign new: --after, where what is not given is as in the epoch before, and --noise."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.log import require_follows
from hushcount.campaigns.parts import MOST_DUMMIES, NoisePart
from hushcount.collection.tilings import Tiling
from hushcount.errors import UsageError
from pipelines.deployment.listed_windows import listed_until
from pipelines.deployment.settings import Deployment
from tests.support.jobs import done, new_campaign, new_keys, refused, write_lines

OPTIONS = (
    *("--cap", 2, "--delta", 1e-7, "--memory", "--memory-values", 3, "--discovery-counts", "--max-value-bytes", 32),
    *("--discovery-relation", "add-remove"),
)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_keys(tmp_path_factory.mktemp("campaigns") / "keys")


def following(before: Path, keys: Path, *options: object) -> Campaign:
    out = before.with_name("next.json")
    done("campaign", "new", "--after", before, "--keys", keys, "--out", out, *options)
    return Campaign.read(out)


def test_an_epoch_is_like_the_one_before_where_nothing_else_is_given(keys: Path, tmp_path: Path) -> None:
    words = write_lines(tmp_path / "w.txt", ["alpha", "beta", "gamma"])
    path = new_campaign(tmp_path / "words.json", keys, *OPTIONS, dictionary=words, discovery=1.0)
    before, after = Campaign.read(path), following(path, keys)
    assert after.terms == before.terms, "a publisher may sign it"
    assert (after.id, after.epoch, after.previous) == ("words", 2, before.head.hex())
    assert after.read_dictionary() == before.read_dictionary()
    assert after.discovery is not None
    assert before.discovery is not None
    assert after.discovery.hash_key != before.discovery.hash_key


def test_what_is_given_takes_the_place_of_what_was(keys: Path, tmp_path: Path) -> None:
    words = write_lines(tmp_path / "w.txt", ["alpha", "beta", "gamma"])
    path = new_campaign(tmp_path / "words.json", keys, *OPTIONS, dictionary=words, discovery=1.0)
    more = write_lines(tmp_path / "more.txt", ["alpha", "delta"])
    given = ("--dictionary", more, "--epsilon", 1, "--min-batch", 70, "--no-memory", "--no-discovery-counts")
    after = following(path, keys, *given)
    assert after.mechanism is not None
    assert (after.mechanism.name, after.mechanism.epsilon) == ("grr", 1.0)
    assert (after.shuffle.cap, after.shuffle.minimum_batch, after.shuffle.delta) == (2, 70, 1e-7)
    assert after.memory is False
    assert after.discovery is not None
    assert (after.discovery.counts, after.discovery.relation, after.discovery.epsilon) == (False, "add-remove", 1.0)
    assert after.dictionary is not None
    assert after.dictionary.items == 2


def test_discovery_ends_only_when_that_is_said(keys: Path, tmp_path: Path) -> None:
    path = new_campaign(tmp_path / "words.json", keys, mechanism="ais", discovery=1.0)
    again = ("campaign", "new", "--after", path, "--keys", keys, "--out", tmp_path / "n.json")
    refused(*again, "--no-discovery", "--discovery-delta", 1e-9, says=["no-discovery", "delta"])
    after = following(path, keys, "--no-discovery")
    assert (after.discovery, after.dictionary) == (None, None)
    assert after.streams == ("reports",)


def test_an_id_is_that_of_the_epoch_before_or_must_be_given(keys: Path, tmp_path: Path) -> None:
    path = new_campaign(tmp_path / "words.json", keys, mechanism="ais")
    new = ("campaign", "new", "--keys", keys, "--out", tmp_path / "next.json")
    refused(*new, "--mechanism", "ais", "--epsilon", 1, "--open-domain", says=["--id NAME, or --after FILE"])
    refused(*new, "--after", path, "--id", "other", says=[" words", " other"])
    assert not (tmp_path / "next.json").exists()
    done(*new, "--after", path, "--id", "words")


# Noise of the mixes.


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lines(tmp_path_factory.mktemp("words") / "w.txt", ["alpha", "beta", "gamma"])


def noisy(keys: Path, words: Path, out: Path, *options: object) -> tuple[object, ...]:
    of = ("--id", "w", "--keys", keys, "--dictionary", words, "--window", "1h", "--out", out)
    return ("campaign", "new", "--noise", "--epsilon", 1, *of, *options)


def test_a_campaign_has_noise_in_place_of_a_mechanism(keys: Path, words: Path, tmp_path: Path) -> None:
    told = done(*noisy(keys, words, tmp_path / "w.json", "--cap", 2, "--json")).json
    campaign = Campaign.read(tmp_path / "w.json")
    assert campaign.noise == NoisePart(epsilon=1.0, delta=1e-8, seconds=3600)
    assert (campaign.mechanism, campaign.local_epsilon, campaign.shuffle.minimum_batch) == (None, None, 1)
    noise = campaign.noise.dummies(4, 2)
    assert told["reports"].startswith("sealed, not randomised")
    assert told["standard_error"] == pytest.approx(noise.variance**0.5)
    assert told["dummies_of_a_cell"] == pytest.approx(noise.mean)
    assert told["sealed_bytes"] == campaign.sealed_bytes("reports")
    assert done("campaign", "show", "--campaign", tmp_path / "w.json", "--json").json == told
    # The next epoch has the same noise, or what options say of it.
    assert following(tmp_path / "w.json", keys).terms == campaign.terms
    (tmp_path / "next.json").unlink()
    other = following(tmp_path / "w.json", keys, "--epsilon", 2, "--window", "1d")
    assert other.noise == NoisePart(epsilon=2.0, delta=1e-8, seconds=86_400)


def test_a_deployment_states_the_windows_of_a_campaign_with_noise(keys: Path, words: Path, tmp_path: Path) -> None:
    out, config = tmp_path / "w.json", tmp_path / "deployment.toml"
    new = ("campaign", "new", "--noise", "--epsilon", 1, "--id", "w", "--keys", keys, "--dictionary", words)
    config.write_text('store = "store"\n[windows]\nlength = "12h"\ngrace = "2d"\n')
    done(*new, "--config", config, "--out", out)
    campaign, deployment = Campaign.read(out), Deployment.read(config)
    assert campaign.noise is not None
    assert (campaign.noise.seconds, campaign.windows) == (43_200, None)
    refused(*new, "--config", config, "--window", "1d", "--out", out, says=["--window or --config"])
    now = datetime(2026, 12, 1, tzinfo=timezone.utc)
    assert listed_until(campaign, deployment.windows.tiling, now) is None
    with pytest.raises(UsageError, match=r"windows of 12h, and windows are 1d long"):
        listed_until(campaign, Tiling(timedelta(days=1)), now)
    config.write_text('store = "store"\n[windows]\nlength = "week"\nzone = "Europe/Berlin"\ngrace = "14d"\n')
    done(*new, "--config", config, "--begins", "2026-12-01T00:00:00Z", "--out", tmp_path / "weeks.json")
    weekly = Campaign.read(tmp_path / "weeks.json")
    assert weekly.noise is not None
    assert (weekly.noise.seconds, weekly.windows is not None) == (None, True)


def test_what_noise_cannot_do_is_one_sentence_and_writes_nothing(
    keys: Path, words: Path, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    out = tmp_path / "new" / "w.json"
    out.parent.mkdir()
    alone, aux = tmp_path / "analyzer", tmp_path / "aux-server"
    for directory in (alone, aux):
        done("keys", "new", "--role", directory.name, "--out", directory)
    listed = json.loads((alone / "public.json").read_text())
    listed["keys"][0]["role"] = "aux_server"
    (tmp_path / "same").mkdir()
    (tmp_path / "same" / "public.json").write_text(json.dumps(listed))
    axis = write_lines(tmp_path / "axis.txt", ["x", "y"])
    many = write_lines(tmp_path / "many.txt", (f"{number}" for number in range(20_000)))
    whole = noisy(keys, words, out)
    bare = ("campaign", "new", "--noise", "--id", "w", "--keys", keys, "--out", out, "--window", "1d")
    cases: list[tuple[tuple[object, ...], list[str]]] = [
        ((*bare, "--epsilon", 1, "--open-domain"), ["noise: needs a dictionary"]),
        ((*bare, "--epsilon", 1, "--number", "0:9", "--mean"), ["--mean", "--bins"]),
        ((*bare, "--epsilon", 0.01, "--dictionary", many), ["20,001 items need up to", f"{MOST_DUMMIES:,}"]),
        ((*bare, "--dictionary", words), ["noise needs --epsilon"]),
        ((*bare[:-2], "--epsilon", 1, "--dictionary", words), ["noise needs --window"]),
        ((*whole, "--memory"), ["memory must be false"]),
        ((*whole, "--public-by", f"v={axis}"), ["public axes"]),
        ((*whole, "--min-batch", 2), ["minimum_batch is 2, must be 1"]),
        ((*whole, "--mechanism", "grr"), ["--mechanism contradicts noise"]),
        ((*whole, "--set", "s=1"), ["--set contradicts noise"]),
        ((*whole, "--window", "0s"), ["window", "'0s'"]),
        ((*whole, "--delta", 1), ["noise", "delta is 1.0"]),
        (noisy(alone, words, out), ["keys.aux_server: noise needs"]),
        ((*noisy(alone, words, out), "--keys", tmp_path / "same"), ["is of both roles"]),
        ((*(one for one in whole if one != "--noise"), "--mechanism", "grr"), ["without --noise"]),
    ]
    for given, says in cases:
        with subtests.test(says=says):
            run = refused(*given, says=says)
            assert run.err.strip().count("\n") == 0
            assert [*out.parent.iterdir()] == []
    done(*noisy(alone, words, out), "--keys", aux)


def test_a_campaign_keeps_noise_or_its_mechanism(keys: Path, words: Path, tmp_path: Path) -> None:
    done(*noisy(keys, words, tmp_path / "w.json"))
    plain = new_campaign(tmp_path / "plain.json", keys, dictionary=words)
    new = ("campaign", "new", "--keys", keys, "--out", tmp_path / "next.json")
    mechanism = ("--mechanism", "grr", "--epsilon", 1)
    refused(*new, "--after", tmp_path / "w.json", *mechanism, says=["--mechanism contradicts noise", "all epochs"])
    refused(*new, "--after", plain, "--noise", "--window", "1d", says=["campaign plain has no noise in epoch 1"])
    assert not (tmp_path / "next.json").exists()
    # Nor does a file that was made otherwise follow.
    noise, other = Campaign.read(tmp_path / "w.json"), Campaign.read(plain)
    for before, after in ((noise, other), (other, noise)):
        data = {**after.model_dump(), "epoch": 2, "previous": before.head.hex()}
        with pytest.raises(UsageError, match=r"epoch 2 .* noise of the mixes, unlike epoch 1"):
            require_follows(Campaign.model_validate(data), before)
    require_follows(following(tmp_path / "w.json", keys), noise)


def test_init_makes_no_campaign_with_noise_because_it_makes_all_keys(tmp_path: Path) -> None:
    refused("init", tmp_path / "new", "--noise", says=["one operator", "campaign new --noise"])
    assert [*tmp_path.iterdir()] == []
