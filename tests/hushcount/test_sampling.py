"""Who is asked: buckets of random ids, layers that share nobody, and what an installation keeps."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.stats import chi2

from hushcount.arrays import IntArray
from hushcount.budget import Budget
from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.parts import BUCKETS, MOST_LAYERS, SamplePart
from hushcount.client import Client
from hushcount.formats.models import explain
from hushcount.newest import Untrusted
from hushcount.policy import Policy
from hushcount.sampling import Installation, NotAsked, bucket_of
from tests.hushcount.campaigns.test_campaign_file import WORDS, data

NOW = datetime(2026, 11, 27, tzinfo=timezone.utc)
YEAR = timedelta(days=365)


def ids(number: int, seed: int) -> list[str]:
    return [one.tobytes().hex() for one in np.random.default_rng(seed).integers(0, 256, (number, 16), np.uint8)]


def asking(id_: str, layer: str, *buckets: tuple[int, int]) -> Campaign:
    return Campaign.model_validate({**data(), "id": id_, "sample": {"layer": layer, "buckets": buckets}})


def test_buckets_are_those_of_the_published_hash() -> None:
    # MurmurHash3_x86_32, as its author's own program and others print it.
    import mmh3

    for text, value in (("", 0), ("hello", 613153351), ("hello, world", 345750399), ("Hello, world!", 3224780355)):
        assert mmh3.hash(text, 0, signed=False) == value
    assert bucket_of("00" * 16, "settings") == mmh3.hash(f"settings:{'00' * 16}", 0, signed=False) % BUCKETS


def test_honest_ids_fall_into_all_buckets_alike_and_layers_are_independent() -> None:
    """A wrong law (one bucket of 100 twice as likely) is rejected; a right one with probability 1 - 1e-9 is not."""
    drawn = ids(200_000, 1)
    one, other = (np.array([bucket_of(id_, layer) for id_ in drawn]) // 100 for layer in ("one", "other"))
    bound = chi2.isf(1e-9, 99)

    def distance(counts: IntArray) -> float:
        expected = counts.sum() / len(counts)
        return float(((counts - expected) ** 2 / expected).sum())

    for part in (one, other, (one + other) % 100):
        assert distance(np.bincount(part, minlength=100)) < bound
    skewed = np.where(np.random.default_rng(2).random(len(one)) < 0.01, 7, one)
    assert distance(np.bincount(skewed, minlength=100)) > bound


@pytest.mark.parametrize(
    ("buckets", "says"),
    [
        ([], "at least 1"), ([(0, 0)], "must rise"), ([(5, 3)], "must rise"), ([(0, 10), (10, 20)], "must rise"),
        ([(0, 10), (5, 20)], "must rise"), ([(0, BUCKETS + 1)], "at most"), ([(-1, 5)], "at least 0"),
        ([(n, n + 1) for n in range(0, 300, 2)], "100"),
    ],
)  # fmt: skip
def test_ranges_that_are_none_are_refused(buckets: list[tuple[int, int]], says: str) -> None:
    with pytest.raises(ValidationError) as refused:
        SamplePart.model_validate({"layer": "a", "buckets": buckets})
    assert says in explain(refused.value)


def test_samples_meet_and_widen() -> None:
    def part(*buckets: tuple[int, int], layer: str = "a") -> SamplePart:
        return SamplePart(layer=layer, buckets=buckets)

    narrow = part((10, 20), (30, 40))
    assert narrow.share == 20 / BUCKETS
    assert [one for one in range(50) if narrow.has(one)] == [*range(10, 20), *range(30, 40)]
    assert not narrow.meets(part((20, 30), (40, 50)))
    assert narrow.meets(part((39, 41)))
    assert not narrow.meets(part((10, 20), layer="b"))
    assert part((5, 50)).widens(narrow)
    assert not part((10, 20), (31, 40)).widens(narrow)
    assert not part((5, 50), layer="b").widens(narrow)


def test_an_installation_is_asked_by_one_campaign_of_a_layer_and_stays_so(tmp_path: Path) -> None:
    first, second = asking("first", "shared", (0, 5000)), asking("second", "shared", (5000, 10_000))
    kept = [Installation(tmp_path / f"{number}.json") for number in range(40)]
    asked = [(one.is_asked(first, NOW), one.is_asked(second, NOW)) for one in kept]
    assert all(one != other for one, other in asked)
    # All of 40 are in one half with probability 2e-12.
    assert {one for one, _ in asked} == {True, False}
    again = [Installation(tmp_path / f"{number}.json") for number in range(40)]
    for now in (NOW, NOW + YEAR - timedelta(days=1), NOW - YEAR):
        assert [(one.is_asked(first, now), one.is_asked(second, now)) for one in again] == asked
    # After a year all ids are new: that none changes has probability 1e-12.
    assert [(one.is_asked(first, NOW + YEAR), one.is_asked(second, NOW + YEAR)) for one in again] != asked


def test_an_installation_keeps_each_campaigns_layer_and_takes_part_in_few() -> None:
    here = Installation()
    for number in range(MOST_LAYERS):
        here.is_asked(asking(f"c{number}", f"layer-{number}", (0, 1)), NOW)
    here.is_asked(asking("another", "layer-0", (1, 2)), NOW)
    with pytest.raises(Untrusted, match=r"layer-3.*layer-0, layer-1, layer-2"):
        here.is_asked(asking("more", "layer-3", (0, BUCKETS)), NOW)
    with pytest.raises(Untrusted, match="is layer-1, was layer-0"):
        here.is_asked(asking("c0", "layer-1", (0, BUCKETS)), NOW)


def test_a_person_pays_for_one_campaign_of_a_layer_and_for_each_without_one(tmp_path: Path) -> None:
    """Three campaigns that share all clients cost each of 30 people one report; three without a sample cost three."""
    thirds = ((0, 3333), (3333, 6666), (6666, BUCKETS))
    for person in range(30):
        spent = []
        for sampled in (True, False):
            budget, installation = Budget(), Installation(tmp_path / f"{person}.json")
            for name, span in zip("abc", thirds, strict=True):
                campaign = asking(name, "shared", span if sampled else (0, BUCKETS))
                client = Client(
                    campaign, policy=Policy.trusting(), dictionary=WORDS, budget=budget, installation=installation
                )
                with suppress(NotAsked):
                    client.report("alpha")
            spent.append(budget.spent(NOW))
        one, three = (found.epsilon / campaign.require_frequency().epsilon for found in spent)
        assert (one, three) == (1.0, 3.0)
        assert len([said for said in spent[0].words() if said.startswith("Campaign ")]) == 1


def test_a_client_outside_makes_and_charges_nothing_whatever_the_value(tmp_path: Path) -> None:
    inside, outside = asking("c", "l", (0, BUCKETS)), asking("c", "l", (0, 1))
    path = tmp_path / "installation.json"
    # The one bucket asks an installation with probability 1e-4: draw until it does not.
    while Installation(path).is_asked(outside, NOW):
        path.unlink()
    client = Client(outside, policy=Policy.trusting(), dictionary=WORDS, installation=Installation(path))
    assert not client.is_asked
    for value in ("alpha", "unlisted", "", "x" * 100_000):
        with pytest.raises(NotAsked):
            client.report(value)
    assert client.spent().epsilon == 0.0
    assert Client(inside, policy=Policy.trusting(), dictionary=WORDS, installation=Installation(path)).report("alpha")
    kept = json.loads(path.read_text().splitlines()[0])
    assert len(kept["id"]) == 32
    assert kept["layers"] == {"c": "l"}
