"""Who sent a report is parted from what was sent, as the first thing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from hushcount.collection.envelopes import TOKEN_BYTES, envelope_dtype
from hushcount.wire.tags import MOST_PLACES, TAG_BYTES
from shuffler.separate import Report, Separate, TagReleased
from shuffler.shuffle import Shuffle
from tests.shuffler.test_shuffle import (
    KEYS,
    RUNNER,
    SEALED,
    envelopes,
    numbers,
    outputs,
    passed,
    plain_tag,
    records,
)


def test_no_step_after_the_first_is_given_a_ciphertext_beside_a_token_nor_time_nor_address() -> None:
    """All that leaves the first step, byte for byte: ciphertexts alone; and tokens, each with the tag of a ciphertext.

    The later steps are given nothing else: what they read are these two collections, and what is made of claims.
    """
    generator = np.random.default_rng(5)
    octets = generator.integers(256, size=(200, envelope_dtype(SEALED).itemsize), dtype=np.uint8)
    made = np.frombuffer(octets.tobytes(), dtype=envelope_dtype(SEALED))
    tokens, sealed = ([row.tobytes() for row in part] for part in (octets[:, :TOKEN_BYTES], octets[:, -SEALED:]))
    tagged = [plain_tag(row, KEYS.ciphertexts) for row in sealed]
    for places in (1, 3, MOST_PLACES):
        out = passed([made[:90], made[90:]], 1, places, KEYS)
        assert records(joined(out.sealed), SEALED) == sorted(sealed)
        pairs = sorted(token + tag for token, tag in zip(tokens, tagged, strict=True))
        assert records(joined(out.claims), TOKEN_BYTES + TAG_BYTES) == pairs
        for place, claims in out.claims.items():
            for claim in records(b"".join(claims), TOKEN_BYTES + TAG_BYTES):
                assert int.from_bytes(plain_tag(claim[:TOKEN_BYTES], KEYS.tokens)[:4], "little") % places == place
    # The tags that the cap gives are all that is known of a claim from then on.
    twice = np.concatenate([made, made, made[:50]])
    twice["client_token"] = b"one client"
    out = passed([twice], 150, 3, KEYS)
    refused = records(joined(out.refused), TAG_BYTES)
    assert set(refused) < set(tagged)
    assert len(set(refused)) == 50


def test_only_the_first_step_reads_envelopes() -> None:
    pipeline = beam.Pipeline(runner=RUNNER, options=PipelineOptions([]))
    _ = pipeline | "envelopes" >> beam.Create([b""]) | "shuffle" >> Shuffle(Report(SEALED), 1, 3)
    transforms = pipeline.to_runner_api().components.transforms.values()
    (read,) = {output for each in transforms if each.unique_name == "envelopes" for output in each.outputs.values()}
    readers = [each for each in transforms if read in each.inputs.values() and not each.subtransforms]
    assert [each.unique_name.split("/")[1] for each in readers] == ["separate"]
    steps = {each.unique_name.split("/")[1] for each in transforms if each.unique_name.startswith("shuffle/")}
    assert steps > {"separate", "refuse over cap", "mix"}


def joined(places: Mapping[int, Iterable[bytes]]) -> bytes:
    return b"".join(block for blocks in places.values() for block in blocks)


def test_every_bundle_begins_with_all_places_in_order_whatever_it_holds(subtests: pytest.Subtests) -> None:
    """An engine may go by the order in which places first came; it is the same for all."""
    for places in [1, 3, 50]:
        with subtests.test(places=places):
            dofn = Separate(Report(SEALED), places, (KEYS.ciphertexts, KEYS.tokens))
            for _ in range(2):
                dofn.start_bundle()
                for place, sealed in enumerate((5, 6, 7)):
                    main, _ = outputs(dofn.process(envelopes([1], [sealed]).tobytes()))
                    begins = [(at, b"") for at in range(places)] if place == 0 else []
                    assert main[: len(begins)] == begins
                    assert [numbers(block) for _, block in main[len(begins) :]] == [[sealed]]


def test_of_earlier_reports_only_tags_go_on_each_to_the_place_of_its_copies(subtests: pytest.Subtests) -> None:
    for places in [1, 3]:
        with subtests.test(places=places):
            values = [number << 150 | number for number in range(50)]
            dofn = TagReleased(Report(SEALED), places, KEYS.ciphertexts)
            for _ in range(2):
                dofn.start_bundle()
                for part in (values[:20], values[20:]):
                    main, _ = outputs(dofn.process(b"".join(number.to_bytes(SEALED, "little") for number in part)))
                    begins = [(at, b"") for at in range(places)] if part == values[:20] else []
                    assert main[: len(begins)] == begins
                    tagged = {number: plain_tag(number.to_bytes(SEALED, "little"), KEYS.ciphertexts) for number in part}
                    assert records(b"".join(block for _, block in main), TAG_BYTES) == sorted(tagged.values())
                    copies = passed([envelopes(range(len(part)), part)], 1, places, KEYS).sealed
                    for place, block in main[len(begins) :]:
                        of_place = [tagged[number] for each in copies[place] for number in numbers(each)]
                        assert records(block, TAG_BYTES) == sorted(of_place)
