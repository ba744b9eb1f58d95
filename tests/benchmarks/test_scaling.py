"""What reports of a day take is reckoned from what was measured, and the page says just that."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.pvalue import TaggedOutput

from benchmarks import cost, scaling
from benchmarks.inputs import Setting, make_place
from benchmarks.measure import Run, Used, summarise
from benchmarks.record import stored_record
from benchmarks.scaling import BEGIN, DISCOVERY, END, FREQUENCY, Way, with_table
from benchmarks.stages import BITS
from hushcount.collection.envelopes import envelope_dtype
from hushcount.randomness import SystemWords
from hushcount.wire.tags import TAG_BYTES, tag_keys
from pipelines.deployment.settings import Deployment
from pipelines.engine.runner import Engine
from shuffler.mix import MixShard
from shuffler.separate import NUMBER, Report
from shuffler.shuffle import Shuffle
from tests.shuffler.test_hot_keys import PLACES, Measured, received

ROOT = Path(__file__).parents[2]
# 3.6 us a report for the shuffler, as much for three of earlier days, and 28.8 for the other stages: 10 core-hours for
# 10^9 reports.
MEASURED = {
    stage: summarise([Run(1000, Used(us / 1000, 1.0), None, 100.0)])
    for stage, us in {"shuffle": 3.6, "analyze": 28.8, "discover": 28.8}.items()
}


def test_the_page_is_what_was_measured() -> None:
    text = (ROOT / "docs" / "scaling.md").read_text()
    assert with_table(text, scaling.scaling(stored_record(ROOT / "benchmarks").measured)) == text


def test_another_measurement_makes_another_page() -> None:
    text = (ROOT / "docs" / "scaling.md").read_text()
    assert with_table(text, scaling.scaling(MEASURED)) != text


def test_workers_and_hours_bytes_and_dollars_follow_from_the_figures() -> None:
    made = scaling.scaling(MEASURED)
    # Reports and claims of its own day; tags of the three before it.
    grouped = 1e9 * (148 + 32 + 3 * 16) / 2**30
    row = next(line for line in made.splitlines() if line.startswith("| 10^9 | frequency |"))
    assert [cell.strip() for cell in row.strip("|").split("|")] == [
        "10^9",
        "frequency",
        "10.0",
        "2 x 1.2",
        f"{1e9 * (40 + 148) / 2**30:,.0f}",
        f"{grouped:,.0f}",
        f"0.56 + {grouped * 0.011:.2f}",
        f"{4 * 1e9 * 148 / 1024 / 2**20:,.0f}",
    ]
    # 10 core-hours at 10^9: a tenth of that needs one worker, ten times as much 13 of four cores for two hours.
    assert "| 10^8 | frequency | 1.0 | 1 x 0.2 |" in made
    assert "| 10^10 | frequency | 100.0 | 13 x 1.9 |" in made
    assert f"{cost.CORE_HOUR * 10:.2f} + " in made


def test_a_batch_is_compared_with_as_many_as_all_deployment_files_name() -> None:
    files = [path for path in (ROOT / "deploy").rglob("*.toml") if "[windows]" in path.read_text()]
    assert len(files) >= 9
    for path in files:
        windows = Deployment.read(path).windows
        # Of those that end within the grace period before it begins, the last ends as it begins.
        assert 1 + windows.grace // windows.tiling.usual == scaling.EARLIER, path


def test_tags_confuse_no_reports_of_the_largest_day() -> None:
    """Each pair of different ciphertexts with probability 2**-128: those of the day, and with the days before."""
    reports = max(scaling.DAYS)
    pairs = reports * reports / 2 + reports * scaling.EARLIER * reports
    assert pairs / 2 ** (8 * TAG_BYTES) < 1.1e-18


class Block(beam.DoFn):
    """Makes a block of random reports, in envelopes of one client for each or sealed alone."""

    def __init__(self, way: Way, reports: int, enveloped: bool) -> None:
        self._dtype = envelope_dtype(way.sealed_bytes) if enveloped else np.dtype((np.bytes_, way.sealed_bytes))
        self._reports = reports

    def process(self, seed: int) -> Iterator[bytes]:
        yield np.random.default_rng(seed).bytes(self._dtype.itemsize * self._reports)


@pytest.mark.parametrize("way", [FREQUENCY, DISCOVERY], ids=lambda way: way.name)
def test_what_goes_through_the_groupings_is_what_is_reckoned(way: Way, tmp_path: Path) -> None:
    """Of the shuffler's own graph, with as many earlier reports of each day as of its own."""
    blocks, each = 4, 300
    with Engine().pipeline("shuffle") as pipeline:
        days = [
            pipeline
            | f"seeds {day}" >> beam.Create(range(day * blocks, (day + 1) * blocks))
            | f"blocks {day}" >> beam.ParDo(Block(way, each, enveloped=day == 0))
            for day in range(1 + scaling.EARLIER)
        ]
        given = {"envelopes": days[0], "released": days[1:] | "earlier" >> beam.Flatten()}
        _ = given | Shuffle(Report(way.sealed_bytes), 1, PLACES, Measured(tmp_path))
    sent = sum(received(tmp_path, "one", "blocks"))
    sent += sum(sum(received(tmp_path, "several", name)) for name in ("sealed", "refused", "released"))
    assert sent / (blocks * each) == way.grouped_bytes - cost.SHUFFLED_BYTES[way.then]
    assert sent / (blocks * each) < 260 + way.sealed_bytes - FREQUENCY.sealed_bytes


@pytest.mark.parametrize("way", [FREQUENCY, DISCOVERY], ids=lambda way: way.name)
def test_a_place_takes_the_memory_that_is_reckoned(way: Way) -> None:
    """Every block that the engine gives, and the most that is made of them at a time."""
    records, blocks = 50_000, 50
    size, reports = way.sealed_bytes * records, np.random.default_rng(1)
    number = NUMBER.pack(0)
    own = [number + reports.bytes(size // blocks) for _ in range(blocks)]
    earlier = [number + reports.bytes(TAG_BYTES * records // blocks) for _ in range(scaling.EARLIER * blocks)]
    mix = MixShard(Report(way.sealed_bytes), tag_keys(way.sealed_bytes, SystemWords()))
    met = {"sealed": own, "refused": [], "released": earlier}
    tracemalloc.start()
    try:
        forwarded = [len(shard[1]) for shard in mix.process((0, met)) if not isinstance(shard, TaggedOutput)]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert forwarded == [size]
    held = sum(map(len, own + earlier))
    assert math.ceil((peak + held) / size) == scaling.COPIES


def test_a_place_fits_up_to_the_most_reports_that_are_named() -> None:
    for way in (FREQUENCY, DISCOVERY):
        each = scaling.MEMORY_GIB * 2**30 / scaling.CORES
        assert way.place_bytes(round(way.most_reports)) == pytest.approx(each)
        assert f"{way.most_reports / 1e9:.1f} x 10^9 {way.name}" in scaling.scaling(MEASURED)


def test_reports_are_as_long_as_those_of_a_campaign(tmp_path: Path) -> None:
    frequency = make_place(tmp_path / "frequency", BITS).campaign
    discovery = make_place(tmp_path / "discovery", Setting(None, 20)).campaign
    assert FREQUENCY.sealed_bytes == frequency.sealed_bytes("reports")
    assert discovery.discovery_format.max_value_bytes == 64
    assert DISCOVERY.sealed_bytes == discovery.sealed_bytes("discovery")


def test_a_page_without_its_marks_is_refused() -> None:
    assert with_table(f"a {BEGIN} old {END} b", "new") == f"a {BEGIN}\n\nnew\n\n{END} b"
    for text in ("", BEGIN, f"{END} {BEGIN}"):
        with pytest.raises(ValueError, match="a mark is missing"):
            with_table(text, "new")
