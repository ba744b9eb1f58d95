"""The stages that are measured, each on input of its own making, beside its limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import limits
from benchmarks.inputs import (
    FILE_RECORDS,
    Place,
    Setting,
    as_shuffled,
    as_uploaded,
    counts,
    drawn,
    make_place,
    names,
    sealed,
)
from benchmarks.measure import Run, between
from hushcount.blocks import Kind
from hushcount.domain import tally_items
from hushcount.fingerprints import fingerprints
from hushcount.randomness import SystemWords, uniform
from hushcount.sealing import SEAL_BYTES
from hushcount.tally import Tally
from pipelines.analyze import analyze
from pipelines.discover import discover
from pipelines.encode import encode
from pipelines.shuffle import shuffle

ITEMS = 26_000
AIS = Setting("ais", ITEMS)
GCMS = Setting("gcms", ITEMS, 1.0, {"k": 1024, "m": 1024, "s": 19})
LARGE_GCMS = Setting("gcms", None, 4.0, {"k": 65_536, "m": 1024})
BITS = Setting("oue", 672)
"""84 bytes of bits: reports of 100 plain bytes, binding included, 164 with box and client token."""
SKETCH = Setting("gcms", None, 4.0, {"k": 1024, "m": 1024})
DISCOVERY = Setting(None, ITEMS)
_OPENED_AFRESH = 100_000


Measure = Callable[[Path, int, int], Run]
"""Measures a stage in a new directory, with so many reports over so many items."""


@dataclass(frozen=True)
class Stage:
    """Something to measure.

    Attributes:
        name: for the command line.
        what: for people.
        reports: how many, where nothing else is asked for.
        run: measures it.
        target: what it is to reach, for people.
        items: of the dictionary, or how many values there are.
    """

    name: str
    what: str
    reports: int
    run: Measure
    target: str = ""
    items: int = ITEMS


def _encode(setting: Setting, layers: int) -> Measure:
    def run(directory: Path, reports: int, items: int) -> Run:
        place = make_place(directory / "place", setting.over(items))
        values = directory / "values.txt"
        # For discovery, values that the dictionary lacks.
        sent = names(items - 1) if layers == 1 else names(2 * items)[items:]
        values.write_text("".join(f"{value}\n" for value in drawn(sent, reports)))
        plain = _plain(place)
        return between(
            lambda: encode(place.campaign_path, values, str(directory / "encoded")),
            reports,
            lambda: limits.sealing(plain, layers * reports),
        )

    return run


def _shuffle(each: int) -> Measure:
    def run(directory: Path, reports: int, items: int) -> Run:
        place = make_place(directory / "place", BITS, cap=2)
        source = as_uploaded(place, reports, each)
        return between(
            lambda: shuffle(place.campaign_path, source, str(directory / "shuffled")),
            reports,
            lambda: limits.copying(f"{source}/reports", Kind.REPORT_ENVELOPES, directory),
        )

    return run


def _analyze(setting: Setting) -> Measure:
    def run(directory: Path, reports: int, items: int) -> Run:
        place = make_place(directory / "place", setting.over(items))
        boxes = sealed(place, "reports", drawn(names(items - 1), min(reports, _OPENED_AFRESH)))
        # Opening a box costs the same each time, and nothing here looks for copies.
        source = as_shuffled(place, "reports", (boxes[:count] for count in counts(reports, _OPENED_AFRESH)))
        return between(
            lambda: analyze(place.campaign_path, source, place.keys, str(directory / "results")),
            reports,
            lambda: limits.opening(_plain(place), reports),
        )

    return run


def _discover(directory: Path, reports: int, items: int) -> Run:
    values = [f"new{number}" for number in range(items)]
    place = make_place(directory / "place", DISCOVERY)
    parts = (sealed(place, "discovery", drawn(values, count)) for count in counts(reports, FILE_RECORDS))
    source = as_shuffled(place, "discovery", parts)
    return between(
        lambda: discover(place.campaign_path, source, place.keys, str(directory / "found")),
        reports,
        lambda: limits.opening(_plain(place), reports),
    )


def _end_to_end(directory: Path, reports: int, items: int) -> Run:
    """From what a collector stored to estimates.csv."""
    place = make_place(directory / "place", AIS.over(items))
    values = directory / "values.txt"
    values.write_text("".join(f"{value}\n" for value in drawn(names(items - 1), reports)))
    encode(place.campaign_path, values, str(directory / "encoded"))

    def both() -> None:
        shuffle(place.campaign_path, str(directory / "encoded"), str(directory / "shuffled"))
        analyze(place.campaign_path, str(directory / "shuffled"), place.keys, str(directory / "results"))

    return between(both, reports, lambda: limits.opening(_plain(place), reports))


def _decode(setting: Setting) -> Measure:
    """From reports in memory to the estimates of all items; loading the compiled loops is part of it."""

    def run(directory: Path, reports: int, items: int) -> Run:
        mechanism = make_place(directory / "place", setting.over(items)).campaign.require_frequency()
        words = SystemWords()
        domain = mechanism.encoder.domain
        wanted = np.arange(domain, dtype=np.uint64) if domain else fingerprints(names(items))
        made = mechanism.encode(wanted[uniform(len(wanted), reports, words).astype(np.intp)], words)
        columns = tally_items(mechanism, wanted)

        def decode() -> None:
            counts = mechanism.new_tally(columns)
            mechanism.accumulate(counts, made, columns)
            mechanism.estimate(Tally(counts, reports, columns), wanted)

        return between(decode, reports, None)

    return run


def _plain(place: Place) -> int:
    (stream,) = place.campaign.streams
    return place.campaign.sealed_bytes(stream) - SEAL_BYTES


STAGES = {
    stage.name: stage
    for stage in (
        Stage("encode", "privatise and seal, AIS over 26,000 items", 500_000, _encode(AIS, 1), "ratio >= 0.90"),
        Stage("encode-discovery", "seal twice", 250_000, _encode(DISCOVERY, 2), "ratio >= 0.90"),
        Stage("shuffle", "reports of 164 bytes, one a client", 2_000_000, _shuffle(1), "<= 4 us, <= 600 B"),
        Stage("shuffle-crowded", "the same, five reports a client, cap 2", 2_000_000, _shuffle(5)),
        Stage("analyze", "AIS over 26,000 items", 2_000_000, _analyze(AIS), "ratio >= 0.90, <= 3 us beyond"),
        Stage("analyze-gcms", "GCMS, 1024 x 1024, s = 19", 2_000_000, _analyze(GCMS), "ratio >= 0.90, <= 3 us beyond"),
        Stage(
            "analyze-large",
            "GCMS, 65,536 x 1024, a tally of 512 MiB",
            2_000_000,
            _analyze(LARGE_GCMS),
            "ratio >= 0.90, <= 3 us beyond",
        ),
        Stage("discover", "open both layers, count, keep, reveal", 1_000_000, _discover, "ratio >= 0.85", 100_000),
        Stage("end-to-end", "shuffle, open, tally, estimate 26,000 items", 1_000_000, _end_to_end, "<= 21 s"),
        Stage("decode", "AIS over 26,000 items, from memory", 2_000_000, _decode(AIS), "<= 1.5 s of one core"),
        Stage("decode-many", "the same", 10_000_000, _decode(AIS), "<= 3 s"),
        Stage(
            "decode-million",
            "1M items from GCMS, 1024 x 1024",
            1_000_000,
            _decode(SKETCH),
            "<= 10 s",
            1_000_000,
        ),
    )
}
