"""The auxiliary server opens layers of the batch's window alone, drops copies, and mixes boxes with its dummies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path

import apache_beam as beam
import numpy as np
import pytest

from aux_server.mix import Mix, OpenLayers
from hushcount.arrays import Octets
from hushcount.campaigns.campaign import Campaign
from hushcount.many_clients import ManyClients
from hushcount.randomness import SystemWords
from hushcount.report_making import in_layers
from hushcount.window_starts import WINDOW_BYTES
from hushcount.wire.sealing import Sealer
from hushcount.wire.tags import tag_keys
from keys.directories import KeyReference
from keys.private import PrivateKey
from pipelines.engine.runner import Engine
from tests.aux_server.test_copies import Write
from tests.hushcount.campaigns.test_campaign_file import WORDS
from tests.support.clocks import stopped
from tests.support.noise_campaigns import noise_campaign

DAY = 86_400
WINDOW = 1_800_000_000 // DAY * DAY
PLACES = 3


@pytest.fixture
def campaign() -> Campaign:
    return noise_campaign()


def layers(campaign: Campaign, values: Sequence[str], window: int = WINDOW) -> Octets:
    """Return reports as the shuffler hands them on, without the window before them."""
    clock = stopped(datetime.fromtimestamp(window + 9, timezone.utc))
    return ManyClients(campaign, dictionary=WORDS, clock=clock).reports(values)[:, WINDOW_BYTES:]


def mixed(
    campaign: Campaign,
    key: KeyReference,
    blocks: Sequence[Octets],
    dummies: Octets,
    keys: np.ndarray | None = None,  # type: ignore[type-arg]
) -> tuple[Counter[str], dict[int, list[bytes]]]:
    """Return the summed counts, and the boxes that each place writes."""
    out = Path(key.source) / "out"
    out.mkdir(exist_ok=True)
    for path in out.iterdir():
        path.unlink()
    opens = OpenLayers(key, campaign.binding("reports"), WINDOW, campaign.layer_bytes)
    spread = tag_keys(campaign.box_bytes, SystemWords()) if keys is None else keys
    with Engine().pipeline("mix") as pipeline:
        read = pipeline | "blocks" >> beam.Create([block.tobytes() for block in blocks])
        opened = read | beam.ParDo(opens).with_outputs("counts", "opening", "dead", main="boxes")
        given = {"boxes": opened.boxes, "dummies": pipeline | "dummies" >> beam.Create([dummies.tobytes()])}
        found = given | Mix(campaign.box_bytes, PLACES, spread)
        counts = (opened.counts, found["counts"]) | beam.Flatten()
        _ = counts | "write counts" >> beam.ParDo(Write(out, "count"))
        _ = found["shards"] | "write shards" >> beam.ParDo(Write(out, "shard"))
    counted, shards = Counter[str](), dict[int, list[bytes]]()
    for path in out.iterdir():
        name, value = eval(path.read_text())  # noqa: S307  # the test's own files
        if path.name.startswith("count"):
            counted[name] += value
        else:
            length = campaign.box_bytes
            shards[name] = [value[start : start + length] for start in range(0, len(value), length)]
    return +counted, shards


def of(campaign: Campaign, boxes: Sequence[bytes]) -> Counter[int]:
    """Return how often each cell is in boxes."""
    analyzer, mechanism = PrivateKey(bytes([1]) * 32), campaign.require_frequency()
    opened = [analyzer.open(box) for box in boxes]
    rows = np.frombuffer(b"".join(one[16:] for one in opened if one is not None), dtype=np.uint8)
    reports = mechanism.unpack(rows.reshape(-1, mechanism.report_bytes))[0]
    return Counter(map(int, reports["cell"]))


def fake(campaign: Campaign, number: int) -> Octets:
    return np.frombuffer(np.random.default_rng(1).bytes(number * campaign.box_bytes), np.uint8).reshape(number, -1)


def test_thirty_windows_of_one_client_are_not_one_batch(campaign: Campaign, key: KeyReference) -> None:
    """A shuffler that saves one person's reports cannot let them share the noise of one window."""
    saved = [layers(campaign, ["alpha"], WINDOW + number * DAY) for number in range(-15, 15)]
    counts, shards = mixed(campaign, key, [np.concatenate(saved)], fake(campaign, 5))
    assert counts == {"accepted": 1, "other_window": 29, "dummies": 5}
    assert sum(map(len, shards.values())) == 6


def test_a_box_resealed_under_a_fresh_layer_counts_once(campaign: Campaign, key: KeyReference) -> None:
    """Among them boxes that equal a dummy's: whether a copy was dropped must not tell what a dummy is."""
    aux = PrivateKey(bytes([2]) * 32)
    layered = layers(campaign, ["alpha", "beta", "gamma"])
    opened = [aux.open(row.tobytes()) for row in layered]
    boxes = np.frombuffer(b"".join(one[16 + WINDOW_BYTES :] for one in opened if one), np.uint8).reshape(3, -1)
    again = in_layers(campaign, boxes, WINDOW, Sealer(aux.public_key), 1)[:, WINDOW_BYTES:]
    assert not {row.tobytes() for row in again} & {row.tobytes() for row in layered}
    counts, shards = mixed(campaign, key, [layered, again, again[:1]], fake(campaign, 4))
    assert counts == {"accepted": 3, "duplicate": 4, "dummies": 4}
    assert {row.tobytes() for row in boxes} < {box for shard in shards.values() for box in shard}


def other_key(campaign: Campaign) -> Octets:
    boxes = layers(campaign, ["alpha", "beta"])
    return np.roll(boxes, 1, axis=1)


def another_campaign(_: Campaign) -> Octets:
    return layers(noise_campaign(epsilon=2.0), ["alpha", "beta"])


@pytest.mark.parametrize(("made", "reason"), [(other_key, "not_opened"), (another_campaign, "wrong_campaign")])
def test_what_is_not_of_this_campaign_is_counted_by_its_reason(
    campaign: Campaign, key: KeyReference, made: Callable[[Campaign], Octets], reason: str
) -> None:
    counts, shards = mixed(campaign, key, [layers(campaign, ["alpha"]), made(campaign)], fake(campaign, 1))
    assert counts == {"accepted": 1, reason: 2, "dummies": 1}
    assert sum(map(len, shards.values())) == 2


def test_what_is_written_is_a_function_of_the_set(campaign: Campaign, key: KeyReference) -> None:
    """So that a repetition writes the same bytes, and their order tells nothing of when a report came."""
    rows, dummies = layers(campaign, [*WORDS.items] * 30), fake(campaign, 40)
    keys = tag_keys(campaign.box_bytes, SystemWords())
    _, first = mixed(campaign, key, [rows], dummies, keys)
    _, again = mixed(campaign, key, [rows[::-1][:50], rows[::-1][50:]], dummies[::-1], keys)
    assert first == again
    assert all(shard == sorted(shard) for shard in first.values())
    assert len(first) == PLACES
    assert len([box for shard in first.values() for box in shard]) == 130
    everything = [box for shard in first.values() for box in shard if box not in {row.tobytes() for row in dummies}]
    assert of(campaign, everything) == {0: 30, 1: 30, 2: 30}
