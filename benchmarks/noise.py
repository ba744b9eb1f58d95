"""Noise of the mixes at (1, 1e-8): `python -m benchmarks.noise`, or with the names of some parts.

jobs: errors of the counts of one window that went through sealed boxes and the real jobs.
counts: the same from the law and counts alone.
dummies: CPU time to make one mix's dummies, by engine and by number of layers.
table: errors beside today's best plan and discovery with counts, predicted and simulated.
"""

from __future__ import annotations

import csv
import math
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.behind import leave
from benchmarks.inputs import names, zipf
from hushcount.arrays import Counts, FloatArray
from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary
from hushcount.campaigns.parts import NoisePart
from hushcount.clock import Clock
from hushcount.collection.envelopes import client_token, envelope_dtype
from hushcount.discovery.keep_rules import KeepRule
from hushcount.dummies import DummyForm, Layer, dummies_of
from hushcount.many_clients import ManyClients
from hushcount.maths.drawn_noise import count_noise
from hushcount.oracles.catalogue import build
from hushcount.oracles.noisy_counts import MixNoise
from hushcount.oracles.tally import Tally
from hushcount.planning.planner import Task
from hushcount.planning.shuffled import Limits, shuffled_plan
from hushcount.randomness import SystemWords
from hushcount.threads import available_threads
from hushcount.wire.sealing import SealRows, seal_rows
from keys.directories import create
from keys.opening_engines import ENOUGH, lanes_for, sealing_for
from pipelines.deployment.settings import Deployment
from pipelines.jobs.new_campaign import create_campaign
from pipelines.schedule.run import run
from pipelines.schedule.work import Vouched

EPSILON, DELTA = 1.0, 1e-8
DAY = timedelta(days=1)
BLOCK = 1 << 11
"""Items for which the dummies are made at once, as in jobs."""
RARE = 20
"""An item that so many people hold is rare."""
_FEW = 500
_TAIL = 0.025
_RUNS = 20_000
_SETTINGS = """store = "store"
ledger = "ledger.db"
sign_with = "signing"
shuffler_keys = "signing/public.json"
aux_server_keys = "signing/public.json"
[windows]
length = "1d"
grace = "2d"
patience = "1h"
"""


@dataclass(frozen=True)
class Errors:
    """How far the counts of all items are from the truth.

    Attributes:
        rms: root mean square error, in users.
        held: share of the 95 % intervals that hold the truth.
    """

    rms: float
    held: float

    @classmethod
    def of(cls, truth: FloatArray, count: FloatArray, low: FloatArray, high: FloatArray) -> Errors:
        return cls(float(np.sqrt(np.mean((count - truth) ** 2))), float(np.mean((low <= truth) & (truth <= high))))


def through_jobs(reports: int, items: int) -> Errors:
    """Return the errors of a window with values by Zipf's law, from sealed boxes to the file of estimates."""
    begins = datetime.now(timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0)
    with tempfile.TemporaryDirectory(prefix="hushcount-noise-") as made:
        deployment, campaign = _deployment(Path(made), items, begins)
        held, words = zipf(items - 1, reports), names(items - 1)
        client = ManyClients(campaign, seal_rows=sealing_for(2 * reports), clock=Clock(begins.timestamp))
        rows = np.zeros(reports, dtype=envelope_dtype(campaign.sealed_bytes("reports")))
        rows["client_token"] = [client_token(str(one), campaign.fingerprint) for one in range(reports)]
        boxes = client.reports([words[number] for number in held.tolist()], available_threads())
        rows["sealed"] = boxes.view(rows.dtype["sealed"]).reshape(-1)
        leave(deployment, campaign, begins, DAY, rows)
        done = run(deployment, clock=Clock((begins + 1.1 * DAY).timestamp), vouched=Vouched(clock_is_right=True))
        if len(done.hops) != 3 or done.problems:
            raise SystemExit(f"{len(done.hops)} of 3 hops are done: {done.problems[:3]}")
        (path,) = Path(deployment.folder("results")).rglob("estimates.csv")
        with path.open(newline="") as stream:
            found = {line["item"].strip('"'): line for line in csv.DictReader(stream)}
    columns = (np.array([float(found[word][name]) for word in words]) for name in ("count", "low", "high"))
    return Errors.of(np.bincount(held, minlength=items - 1).astype(np.float64), *columns)


def _deployment(folder: Path, items: int, begins: datetime) -> tuple[Deployment, Campaign]:
    home = folder / "campaigns" / "words"
    home.mkdir(parents=True)
    create(folder / "signing", 30, ("shuffler", "aux_signer", "analyzer_signer"))
    campaign = create_campaign(
        "words", create(folder / "keys", 30, ("analyzer", "aux_server")), home,
        noise=NoisePart(epsilon=EPSILON, delta=DELTA, seconds=int(DAY.total_seconds())),
        dictionary=Dictionary(tuple(names(items - 1))), shuffle={"minimum_batch": 1},
    )  # fmt: skip
    campaign.write(home / "epoch-000001.json")
    (home / "collection.json").write_text(
        f'{{"epochs": [{{"epoch": 1, "file": "epoch-000001.json", "begins": "{begins.isoformat()}"}}]}}'
    )
    (folder / "deployment.toml").write_text(_SETTINGS)
    return Deployment.read(folder / "deployment.toml"), Campaign.read(home / "epoch-000001.json")


def from_counts(reports: int, items: int) -> Errors:
    """Return the errors of reports by Zipf's law, from the law of the dummies and the counts."""
    mechanism = NoisePart(epsilon=EPSILON, delta=DELTA).mechanism(items, 1)
    truth, noise = np.bincount(zipf(items, reports), minlength=items), mechanism.encoder.noise
    assert noise is not None  # noqa: S101  # as the part says
    counts = truth + _dummies(noise, items)
    columns = np.arange(items, dtype=np.uint64)
    found = mechanism.estimate(Tally(counts[np.newaxis], reports, columns), columns)
    return Errors.of(truth.astype(np.float64), found.count, *found.limits(_TAIL))


def _dummies(noise: MixNoise, number: int) -> Counts:
    """Return int64[number]: how many dummies all mixes add to an item."""
    drawn = (noise.law.most - count_noise(noise.law, number, SystemWords()) for _ in range(noise.mixes))
    return np.sum([*drawn], axis=0, dtype=np.int64)


def dummy_seconds(items: int, repeats: int) -> Iterator[tuple[str, int, int, float]]:
    """Yield (engine, layers, dummies, CPU seconds, the least of some runs) for one mix's dummies.

    libsodium makes those of a few items alone, and its time is scaled up.
    """
    mechanism = NoisePart(epsilon=EPSILON, delta=DELTA).mechanism(items, 1)
    with tempfile.TemporaryDirectory(prefix="hushcount-noise-") as made:
        keys = create(Path(made) / "keys", 1, ("analyzer", "aux_server"))
    inner, outer = (bytes.fromhex(key.key) for (key,) in (keys.analyzer, keys.aux_server))
    layers = (Layer(bytes(16), inner), Layer(bytes(24), outer))
    lanes = lanes_for(ENOUGH)
    engines: dict[str, SealRows] = {"libsodium": seal_rows}
    if not isinstance(lanes, str):
        engines["lanes"] = lanes.seal_rows
    for name, engine in engines.items():
        some = items if name == "lanes" else min(items, _FEW)
        for number in (1, 2):
            form, best, made_of = DummyForm(mechanism, layers[:number]), math.inf, 0
            for _ in range(repeats):
                began, made_of = time.process_time(), 0
                for first in range(0, some, BLOCK):
                    span = range(first, min(first + BLOCK, some))
                    made_of += len(dummies_of(form, span, bytes(32), engine))
                best = min(best, time.process_time() - began)
            yield name, number, made_of * items // some, best * items / some


def table(runs: int = _RUNS) -> Iterator[str]:
    """Yield errors in users, predicted and simulated: of an item that RARE people hold, and of one of 10 %."""
    yield f"| items | reports | way | item of {RARE}: predicted | measured | item of 10 %: predicted | measured |"
    yield "|---|---|---|---|---|---|---|"
    rng, rule = np.random.default_rng(), KeepRule("optimal", EPSILON, DELTA, counts=True).count_law
    found = rule.standard_deviation, _rms(count_noise(rule, runs, SystemWords()) - rule.mean)
    for items in (100, 26_000):
        noise = NoisePart(epsilon=EPSILON, delta=DELTA).dummies(items, 1)
        mixed = math.sqrt(noise.variance), _rms(_dummies(noise, runs) - noise.mean)
        for reports in (10_000, 1_000_000):
            made = shuffled_plan(Task(items), Limits(EPSILON, DELTA), reports).plan
            best = build(made.chosen.mechanism, made.epsilon, items, made.chosen.parameters)
            p, q, cells = best.p_star, best.q_star, []
            for held in (RARE, reports // 10):
                supports = rng.binomial(held, p, runs) + rng.binomial(reports - held, q, runs)
                cells += [math.sqrt(best.variance(reports, held / reports))]
                cells += [_rms((supports - reports * q) / (p - q) - held)]
            start = f"| {items:,} | {reports:,} |"
            yield f"{start} {made.chosen.mechanism}, local epsilon {made.epsilon:g} | {_row(cells)} |"
            yield f"{start} discovery with counts | hidden | hidden | {_row(found)} |"
            yield f"{start} noise of the mixes | {_row((*mixed, *mixed))} |"


def _rms(errors: npt.NDArray[np.floating[Any]]) -> float:
    return float(np.sqrt(np.mean(errors**2)))


def _row(cells: list[float] | tuple[float, ...]) -> str:
    return " | ".join(f"{cell:.2f}" if cell < 10 else f"{cell:.1f}" for cell in cells)


def lines(part: str) -> Iterator[str]:
    """Yield what a part prints."""
    if part in ("jobs", "counts"):
        reports, items = (100_000, 2600) if part == "jobs" else (1_000_000, 26_000)
        found = through_jobs(reports, items) if part == "jobs" else from_counts(reports, items)
        held = f"{found.held:.1%} of the 95 % intervals hold"
        yield f"{part}: {reports:,} reports, {items:,} items: error {found.rms:.2f}, {held}"
    elif part == "dummies":
        for engine, layers, number, seconds in dummy_seconds(26_000, 2):
            each = seconds / number * 1e6
            yield f"dummies: {number:,} of {layers} layers, {engine}: {seconds:.1f} CPU s, {each:.1f} us each"
    else:
        yield from table()


def main() -> None:
    for part in sys.argv[1:] or ("jobs", "counts", "dummies", "table"):
        for line in lines(part):
            print(line, flush=True)


if __name__ == "__main__":
    main()
