"""Half of all reports hold one value, or one client sends nearly all: what each place of an exchange receives then."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.pvalue import PCollection

from aux_server.bins import Bins
from aux_server.count_bins import CountBins
from hushcount.collection.envelopes import TOKEN_BYTES, envelope_dtype
from hushcount.randomness import SystemWords
from hushcount.wire.tags import TAG_BYTES, split, tag_keys, tags
from pipelines.engine.group_through_files import GroupThroughFiles
from pipelines.engine.runner import Engine
from shuffler.separate import CLAIM, NUMBER, Report
from shuffler.shuffle import Shuffle

REPORTS, OF_ONE = 1_000_000, 256_000
PLACES = 16
BLOCKS = 32
PAIR, SEALED = 60, 40
CAP = 3


class Measured(beam.PTransform):
    """`GroupThroughFiles` through files, which notes how many bytes of records each place received of each input."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._directory = str(directory)

    def expand(self, blocks: PCollection | dict[str, PCollection]) -> PCollection:
        met = blocks | "meet" >> GroupThroughFiles(self._directory)
        return met | "measure" >> beam.ParDo(
            _Measure(self._directory, "several" if isinstance(blocks, dict) else "one")
        )


class _Measure(beam.DoFn):
    def __init__(self, directory: str, exchange: str) -> None:
        self._directory, self._exchange = directory, exchange

    def process(self, element: tuple[int, Any]) -> Iterator[tuple[int, Any]]:
        place, met = element
        parts: Mapping[str, Iterable[bytes]] = met if isinstance(met, dict) else {"blocks": met}
        # Where batches meet, each block begins with the number of its own.
        head = NUMBER.size if isinstance(met, dict) else 0
        sizes = {name: sum(len(block) - head for block in found) for name, found in parts.items()}
        # Every exchange has each place once; whoever makes two of a kind gives them directories of their own.
        number = len(list(Path(self._directory).glob(f"{self._exchange}-{place}-*.sizes")))
        Path(self._directory, f"{self._exchange}-{place}-{number}.sizes").write_text(json.dumps(sizes))
        yield element


def received(directory: Path, exchange: str, name: str, number: int = 0) -> np.ndarray:
    """Return float64[places]: how many bytes each place of an exchange received."""
    found = (directory / f"{exchange}-{place}-{number}.sizes" for place in range(PLACES))
    return np.array([json.loads(path.read_text()).get(name, 0) if path.exists() else 0 for path in found], dtype=float)


def imbalance(sizes: np.ndarray) -> float:
    """Return the largest place as a multiple of the mean one."""
    return float(sizes.max() / sizes.mean())


def largest(bins: Bins) -> tuple[int, int]:
    return int(bins.counts.max()), int(bins.counts.sum())


def write(value: Any, path: str) -> None:
    Path(path).write_text(json.dumps(value))


def pairs(block: int) -> np.ndarray:
    """Return a block of tagged pairs, one in two of which is that of the popular value; all others are different."""
    rows = np.random.default_rng(block).integers(0, 256, (REPORTS // BLOCKS, TAG_BYTES + PAIR), dtype=np.uint8)
    rows[::2, TAG_BYTES:] = 7
    return rows


def placed(block: int) -> Iterator[tuple[int, bytes]]:
    """Spread a block as `OpenPairs` does, by the tags of the reports in which the pairs were."""
    rows = pairs(block)
    return split(rows.view(f"V{rows.shape[1]}").reshape(-1), rows[:, :TAG_BYTES].copy().view("<u4"), PLACES)


def test_half_of_a_million_reports_of_one_value_make_no_place_heavy(tmp_path: Path) -> None:
    """Places of 31,250 records on average vary by 177: one of twice the mean never comes by chance."""
    with Engine().pipeline("count bins") as pipeline:
        counted = (
            pipeline | beam.Create(range(BLOCKS)) | beam.FlatMap(placed) | CountBins(PAIR, PLACES, Measured(tmp_path))
        )
        counted["bins"] | beam.Map(largest) | beam.combiners.ToList() | beam.Map(write, str(tmp_path / "counts"))
    of_bins = np.array(json.loads((tmp_path / "counts").read_text()))
    assert of_bins[:, 0].max() == REPORTS // 2
    assert of_bins[:, 1].sum() == REPORTS
    for number in (0, 1):
        sizes = received(tmp_path, "one", "blocks", number)
        assert (sizes > 0).all()
        assert imbalance(sizes) < 2


def test_pairs_that_are_sent_on_uncounted_make_the_place_of_the_value_heavy() -> None:
    """So that the test above can fail: what it would measure of them is more than half of the number of places."""
    rows = pairs(0)
    sizes = np.zeros(PLACES)
    for place, block in split(rows, tags(rows[:, TAG_BYTES:][:, :32].copy(), tag_keys(32, SystemWords())), PLACES):
        sizes[place] += len(block)
    assert imbalance(sizes) > PLACES / 2


def envelopes_of_one(block: int) -> bytes:
    """Return a block of envelopes that one client sent, and one of each hundred another."""
    generator, number = np.random.default_rng(block), OF_ONE // BLOCKS
    envelopes = np.zeros(number, dtype=envelope_dtype(SEALED))
    envelopes["sealed"] = generator.integers(1, 256, (number, SEALED), dtype=np.uint8).view(f"S{SEALED}").reshape(-1)
    tokens = generator.integers(1, 256, (number, TOKEN_BYTES), dtype=np.uint8)
    tokens[np.arange(number) % 100 > 0] = ord("c")
    envelopes["client_token"] = tokens.view(f"S{TOKEN_BYTES}").reshape(-1)
    return envelopes.tobytes()


@pytest.mark.long
def test_a_client_with_nearly_all_reports_makes_only_the_place_of_its_claims_heavy(tmp_path: Path) -> None:
    """Claims of 32 bytes: all of a client's must meet, because its cap is over all of them. All else is spread."""
    with Engine().pipeline("shuffle") as pipeline:
        mixed = (
            pipeline
            | beam.Create(range(BLOCKS))
            | beam.Map(envelopes_of_one)
            | Shuffle(Report(SEALED), CAP, PLACES, Measured(tmp_path))
        )
        counts = (mixed["counts"], mixed["mixed"] | beam.Map(itemgetter(1))) | beam.Flatten()
        counts | beam.CombinePerKey(sum) | beam.combiners.ToDict() | beam.Map(write, str(tmp_path / "counts"))
    others = BLOCKS * -(-OF_ONE // BLOCKS // 100)
    counts = json.loads((tmp_path / "counts").read_text())
    assert counts == {"over_cap": OF_ONE - others - CAP, "accepted": others + CAP}
    claims = received(tmp_path, "one", "blocks")
    assert claims.sum() == OF_ONE * CLAIM.itemsize
    assert claims.max() >= (OF_ONE - others) * CLAIM.itemsize
    for name, size in (("sealed", OF_ONE * SEALED), ("refused", counts["over_cap"] * TAG_BYTES)):
        sizes = received(tmp_path, "several", name)
        assert sizes.sum() == size
        assert imbalance(sizes) < 2
