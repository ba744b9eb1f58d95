"""The measured stages: for each one a function that makes its input, and one that runs it beside its limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks import limits
from benchmarks.inputs import (
    FILE_RECORDS,
    NOISE,
    Place,
    Setting,
    as_shuffled,
    as_uploaded,
    counts,
    drawn,
    make_place,
    names,
    sealed,
    sealed_pairs,
    zipf,
)
from benchmarks.machine import has_ifma
from benchmarks.measure import Run, between
from hushcount.campaigns.dictionary import tally_items
from hushcount.errors import HushcountError
from hushcount.maths.fingerprints import fingerprints
from hushcount.oracles.tally import Tally
from hushcount.randomness import SystemWords, uniform
from hushcount.wire.blocks import Kind
from hushcount.wire.sealing import SEAL_BYTES
from pipelines.files import storage
from pipelines.jobs.analyze import plan_analyze
from pipelines.jobs.discover import plan_discover
from pipelines.jobs.encode import plan_encode
from pipelines.jobs.job import run as run_job
from pipelines.jobs.shuffle import plan_shuffle
from pipelines.outputs.staging import SUMMARY

ITEMS = 26_000
AIS = Setting("ais", ITEMS)
GCMS = Setting("gcms", ITEMS, 1.0, {"k": 1024, "m": 1024, "s": 19})
LARGE_GCMS = Setting("gcms", None, 4.0, {"k": 65_536, "m": 1024})
GRR = Setting("grr", ITEMS, 10.42)
"""The best plan at a shuffled epsilon of 1, for a million reports."""
BITS = Setting("oue", 672)
"""84 bytes of bits: a report has 100 plain bytes with the binding, and 164 bytes with box and client token."""
SKETCH = Setting("gcms", None, 4.0, {"k": 1024, "m": 1024})
STRATA = 40
DISCOVERY = Setting(None, ITEMS)
LIBSODIUM = "libsodium"
_OPENED_AFRESH = 100_000
_VALUES, _ITEMS, _REPORTS = "values.txt", "items.npy", "reports.npy"


Make = Callable[[Path, int, int], None]
"""Takes a directory, a number of reports and a number of items, and writes a stage's input into the directory."""
Measure = Callable[[Path, Path, int], Run]
"""Takes a directory with input, a directory for output and the number of reports, and measures a stage."""


@dataclass(frozen=True)
class Stage:
    """A stage to measure.

    Attributes:
        name: for the command line.
        what: a description for people.
        reports: default number of reports.
        make: makes the input, in its own process.
        run: measures the stage.
        target: the goal for the stage, for people.
        items: size of the dictionary, or number of values.
        engine: the value of HUSHCOUNT_OPENING; empty if the number of boxes decides the engine.
    """

    name: str
    what: str
    reports: int
    make: Make
    run: Measure
    target: str = ""
    items: int = ITEMS
    engine: str = ""


def _make_values(directory: Path, reports: int, items: int) -> None:
    make_place(_place(directory).directory, AIS.over(items))
    sent = names(items - 1)
    with (directory / _VALUES).open("w") as stream:
        for count in counts(reports, FILE_RECORDS):
            stream.writelines(f"{value}\n" for value in drawn(sent, count))


def _make_unknown_values(directory: Path, reports: int, items: int) -> None:
    """Write different values, because a client that seals many values at once makes one inner box for equal values."""
    make_place(_place(directory).directory, DISCOVERY.over(items))
    with (directory / _VALUES).open("w") as stream:
        stream.writelines(f"new{number}\n" for number in range(reports))


def _encode(layers: int) -> Measure:
    def run(directory: Path, out: Path, reports: int) -> Run:
        place = _place(directory)
        plain = _plain(place)
        return between(
            lambda: run_job(plan_encode(place.campaign_path, directory / _VALUES, str(out / "encoded"))),
            reports,
            lambda: limits.sealing(plain, layers * reports),
        )

    return run


def _make_uploads(each: int, setting: Setting = BITS) -> Make:
    def make(directory: Path, reports: int, _: int) -> None:
        as_uploaded(make_place(_place(directory).directory, setting, cap=2), reports, each)

    return make


def _shuffle(directory: Path, out: Path, reports: int) -> Run:
    place = _place(directory)
    return between(
        lambda: run_job(plan_shuffle(place.campaign_path, place.uploaded, str(out / "shuffled"))),
        reports,
        lambda: limits.copying(f"{place.uploaded}/reports", Kind.REPORT_ENVELOPES, out),
    )


def _make_shuffled(setting: Setting) -> Make:
    def make(directory: Path, reports: int, items: int) -> None:
        place = make_place(_place(directory).directory, setting.over(items))
        boxes = sealed(place, "reports", drawn(names(items - 1), min(reports, _OPENED_AFRESH)))
        # Opening a box costs the same each time, and this stage does not search for copies.
        as_shuffled(place, "reports", (boxes[:count] for count in counts(reports, _OPENED_AFRESH)))

    return make


def _analyze(directory: Path, out: Path, reports: int) -> Run:
    place = _place(directory)
    return between(
        lambda: run_job(plan_analyze(place.campaign_path, place.shuffled, place.keys, str(out / "results"))),
        reports,
        lambda: limits.opening(_plain(place), reports),
    )


def _make_pairs(directory: Path, reports: int, items: int) -> None:
    place = make_place(_place(directory).directory, DISCOVERY)
    as_shuffled(place, "discovery", sealed_pairs(place, zipf(items, reports)))


def _discover(directory: Path, out: Path, reports: int) -> Run:
    """Measure discovery; its limit is one box for each report, as inner boxes are opened once for each kept bin."""
    place, found = _place(directory), str(out / "found")
    run = between(
        lambda: run_job(plan_discover(place.campaign_path, place.shuffled, place.keys, found)),
        reports,
        lambda: limits.opening(_plain(place), reports),
    )
    bins = storage.read_json(storage.join(found, SUMMARY))["bins"]["found"]
    if not bins:
        raise HushcountError(f"no value of {reports:,} reports was revealed, so half of the stage was not measured")
    return replace(run, bins=bins)


def _make_encoded(directory: Path, reports: int, items: int) -> None:
    _make_values(directory, reports, items)
    run_job(plan_encode(_place(directory).campaign_path, directory / _VALUES, str(directory / "encoded")))


def _end_to_end(directory: Path, out: Path, reports: int) -> Run:
    """Measure the whole way from a collector's files to estimates."""
    place = _place(directory)

    def both() -> None:
        run_job(plan_shuffle(place.campaign_path, str(directory / "encoded"), str(out / "shuffled")))
        run_job(plan_analyze(place.campaign_path, str(out / "shuffled"), place.keys, str(out / "results")))

    return between(both, reports, lambda: limits.opening(_plain(place), reports))


def _make_reports(setting: Setting) -> Make:
    def make(directory: Path, reports: int, items: int) -> None:
        place = make_place(_place(directory).directory, setting.over(items))
        mechanism, words = place.campaign.require_frequency(), SystemWords()
        domain = mechanism.encoder.domain
        wanted = np.arange(domain, dtype=np.uint64) if domain else fingerprints(names(items))
        made = mechanism.encode(wanted[uniform(len(wanted), reports, words).astype(np.intp)], words)
        np.save(directory / _ITEMS, wanted)
        np.save(directory / _REPORTS, made)

    return make


def _decode(directory: Path, _: Path, reports: int) -> Run:
    """Measure the way from reports in memory to estimates of all items, including the loading of compiled loops."""
    mechanism = _place(directory).campaign.require_frequency()
    wanted, made = np.load(directory / _ITEMS), np.load(directory / _REPORTS)
    columns = tally_items(mechanism, wanted)

    def decode() -> None:
        tally = mechanism.new_tally(columns)
        mechanism.accumulate(tally, made, columns)
        mechanism.estimate(Tally(tally, reports, columns), wanted)

    return between(decode, reports, None)


def _place(directory: Path) -> Place:
    return Place(directory / "place")


def _plain(place: Place) -> int:
    campaign = place.campaign
    (stream,) = campaign.streams
    return (campaign.sealed_bytes(stream) if campaign.noise is None else campaign.box_bytes) - SEAL_BYTES


def _both_engines(stage: Stage) -> tuple[Stage, Stage]:
    """Return a stage with the default choice of the engine, and the same stage with libsodium alone."""
    return stage, replace(stage, name=f"{stage.name}-libsodium", what="the same", target="", engine=LIBSODIUM)


def _by_strata(name: str, epsilon: float) -> tuple[Stage, Stage]:
    """Return a stage, and the same with each report in one of 40 public strata."""
    whole = f"analyze{name}"
    setting = replace(AIS, epsilon=epsilon)
    return (
        Stage(whole, f"AIS over 26,000 items, epsilon {epsilon:g}", 1_000_000, _make_shuffled(setting), _analyze),
        Stage(
            f"analyze-public{name}",
            f"the same, in {STRATA} public strata",
            1_000_000,
            _make_shuffled(replace(setting, strata=STRATA)),
            _analyze,
            f"<= 1.5 times the CPU time of {whole}",
        ),
    )


_STAGES = (
    *_both_engines(
        Stage("encode", "privatise and seal, AIS over 26,000 items", 500_000, _make_values, _encode(1), "<= 20 us")
    ),
    *_both_engines(Stage("encode-discovery", "seal twice", 250_000, _make_unknown_values, _encode(2), "<= 40 us")),
    Stage("shuffle", "reports of 164 bytes, one a client", 2_000_000, _make_uploads(1), _shuffle, "<= 4 us"),
    Stage("shuffle-crowded", "the same, five reports a client, cap 2", 2_000_000, _make_uploads(5), _shuffle),
    Stage(
        "shuffle-public",
        "as shuffle, in 40 public strata",
        2_000_000,
        _make_uploads(1, replace(BITS, strata=STRATA)),
        _shuffle,
    ),
    *_both_engines(
        Stage(
            "analyze",
            "AIS over 26,000 items",
            2_000_000,
            _make_shuffled(AIS),
            _analyze,
            "<= 9 us, CPU ratio >= 3.5",
        )
    ),
    *_both_engines(
        Stage("analyze-few", "the same, a small job", 2000, _make_shuffled(AIS), _analyze, "as by libsodium")
    ),
    *_both_engines(
        Stage("analyze-gcms", "GCMS, 1024 x 1024, s = 19", 2_000_000, _make_shuffled(GCMS), _analyze, "<= 12 us")
    ),
    *_both_engines(
        Stage(
            "analyze-large",
            "GCMS, 65,536 x 1024, a tally of 512 MiB",
            2_000_000,
            _make_shuffled(LARGE_GCMS),
            _analyze,
        )
    ),
    Stage("analyze-grr", "GRR over 26,000 items", 1_000_000, _make_shuffled(GRR), _analyze),
    Stage(
        "analyze-noise",
        "the same with noise of the mixes",
        1_000_000,
        _make_shuffled(replace(GRR, mechanism=NOISE, epsilon=1.0)),
        _analyze,
        "as analyze-grr",
    ),
    *_by_strata("-4", 4.0),
    *_by_strata("-8", 8.0),
    *_both_engines(
        Stage(
            "discover",
            "open, count, keep, reveal 100,000 values of Zipf's law",
            1_000_000,
            _make_pairs,
            _discover,
            "<= 18 us",
            100_000,
        )
    ),
    *_both_engines(
        Stage(
            "end-to-end",
            "shuffle, open, tally, estimate 26,000 items",
            1_000_000,
            _make_encoded,
            _end_to_end,
            "<= 6 s, <= 9 s with start",
        )
    ),
    Stage(
        "decode", "AIS over 26,000 items, from memory", 2_000_000, _make_reports(AIS), _decode, "<= 1.5 s of one core"
    ),
    Stage("decode-many", "the same", 10_000_000, _make_reports(AIS), _decode, "<= 3 s"),
    Stage(
        "decode-million",
        "1M items from GCMS, 1024 x 1024",
        1_000_000,
        _make_reports(SKETCH),
        _decode,
        "<= 10 s",
        1_000_000,
    ),
)
STAGES = {stage.name: stage for stage in _STAGES}
"""All stages that a record may have, on any machine."""
BY_DEFAULT = tuple(name for name, stage in STAGES.items() if has_ifma() or stage.engine != LIBSODIUM)
"""On a processor without lanes, libsodium opens every box anyway, so no stage is measured twice."""
