"""Compare CPU time and error of Hushcount, pure-ldp and multi-freq-ldpy for the same values, epsilon and items.

Hushcount privatises all values in one call, as its jobs do, and then some of them in one call each, as a client does.
Peers have only the second way. Hushcount draws from the system's generator, as its client does; the peers draw from
predictable generators. Hushcount's estimates include standard errors. No library seals reports.
"""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import statistics
import subprocess
import time
import venv
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks import peer_worker
from benchmarks.peer_worker import Oracle, Told
from hushcount.arrays import FloatArray, Reports, UInt64Array
from hushcount.errors import HushcountError
from hushcount.maths.objectives import Objective
from hushcount.oracles.catalogue import build, plan
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.parameters import Parameters
from hushcount.oracles.tally import Tally
from hushcount.randomness import SystemWords

REQUIREMENTS = (
    "pure-ldp==1.2.0",
    "multi-freq-ldpy==0.2.5",
    "numpy==2.2.6",
    "scipy==1.15.3",
    "numba==0.61.2",
    "llvmlite==0.44.0",
    "xxhash==3.6.0",
    "bitarray==3.8.0",
)
"""The peers, and the last versions of their dependencies that they run with; wheels for Python 3.10 to 3.13."""
LARGE_ITEMS = 26_000
OWN, RECOMMENDED = "hushcount", "ais"
_POPULATION_SEED = 1
_ALONE = 1000
_POOL_SEED = "5eed" * 16
_STEPS = 10_000_000
"""Steps of half a microsecond or less: a peer does about as many in some seconds."""
_HIGH_PRIVACY = 1.0
"""Up to this epsilon pure-ldp uses Hadamard response with one bit; above it another one, which Hushcount lacks."""


class PeersMissing(HushcountError):
    """The peers could not be installed; the sentence says why and what to do."""


@dataclass(frozen=True)
class PeerRow:
    """The measurement of one implementation of one mechanism.

    Attributes:
        peer: "hushcount" or the peer's name on PyPI.
        version: the version of the implementation.
        mechanism: by Hushcount's name; "flh" is pure-ldp's local hashing by a pool, compared with `gcms` and s = 1.
        reports: number of reports that were made and counted.
        items: size of the dictionary; all items are estimated.
        epsilon: of one report.
        client_us: CPU microseconds for each report to privatise all reports, the median of the repeats.
        server_us: CPU microseconds for each report to aggregate all and estimate all items, the median of the repeats.
        server_seconds: CPU seconds of the server for all reports.
        mean_squared_error: of the estimated counts, in users squared, over items and repeats.
        mended: the mended faults of the peer, "" if none.
        spread: largest server time of the repeats over the least one.
        client_alone_us: CPU microseconds to privatise a value in its own call; for a peer, the same as `client_us`.
    """

    peer: str
    version: str
    mechanism: str
    reports: int
    items: int
    epsilon: float
    client_us: float
    server_us: float
    server_seconds: float
    mean_squared_error: float
    mended: str
    spread: float
    client_alone_us: float


@dataclass(frozen=True)
class Work:
    """A task for Hushcount and for each peer that has the mechanism; fields as in `PeerRow`."""

    mechanism: str
    reports: int
    items: int
    epsilon: float


def works(reports: int, items: int, epsilon: float) -> list[Work]:
    """Return the tasks: each with at most `reports` reports, and fewer if a peer would take minutes for them."""
    steps = {
        "olh": items,
        "flh": 100,
        "grr": 100,
        "ss": items,
        "oue": items,
        "apple-cms": 1000,
        "hcms": 100,
        "hr": 100,
    }
    if epsilon > _HIGH_PRIVACY:
        del steps["hr"]
    found = [Work(name, min(reports, max(1, _STEPS // each)), items, epsilon) for name, each in steps.items()]
    return [*found, Work("olh", min(reports, _STEPS // LARGE_ITEMS), LARGE_ITEMS, epsilon)]


def own_mechanism(work: Work) -> Mechanism:
    """Return Hushcount's mechanism for the task; for pure-ldp's fast local hashing, a mechanism of the same law."""
    name, settings = work.mechanism, _settings(work)
    name = "gcms" if name == "flh" else name
    complete = plan(name, work.epsilon, work.items, settings, Objective(), _POOL_SEED)
    return build(name, work.epsilon, work.items, complete)


def _settings(work: Work) -> Parameters:
    if work.mechanism == "flh":
        return {"k": peer_worker.FLH_FUNCTIONS, "m": round(math.exp(work.epsilon)) + 1, "s": 1}
    if work.mechanism in {"apple-cms", "hcms"}:
        return {"k": peer_worker.SKETCH_ROWS, "m": peer_worker.SKETCH_CELLS}
    return {}


def values_of(work: Work) -> npt.NDArray[np.int64]:
    """Return int64[reports]: the values of the clients, the same for all implementations."""
    return peer_worker.population(work.items, work.reports, _POPULATION_SEED)


def own_oracle(mechanism: Mechanism, count: int) -> Oracle:
    """Return Hushcount's oracle in the form that peers are measured in; it keeps no report, so it can be used again."""
    items = np.arange(count, dtype=np.uint64)

    def estimate(reports: Reports) -> FloatArray:
        counts = mechanism.new_tally(items)
        mechanism.accumulate(counts, reports, items)
        return mechanism.estimate(Tally(counts, len(reports), items), items).count

    return Oracle(lambda values: mechanism.encode(values, SystemWords()), estimate)


def own_row(work: Work, repeats: int) -> PeerRow:
    """Measure Hushcount in this process."""
    oracle, values = own_oracle(own_mechanism(work), work.items), values_of(work).astype(np.uint64)
    # Warm up with all values, because their number decides which of three ways of decoding is used.
    told = peer_worker.measure(lambda: oracle, values, repeats, work.reports)
    found = row(OWN, work, replace(told, version=importlib.metadata.version(OWN)))
    few = values[:_ALONE]
    seconds = statistics.median(_one_by_one(oracle, few) for _ in range(repeats))
    return replace(found, client_alone_us=seconds / len(few) * 1e6)


def _one_by_one(oracle: Oracle, values: UInt64Array) -> float:
    start = time.process_time()
    for place in range(len(values)):
        oracle.privatise(values[place : place + 1])
    return time.process_time() - start


def row(peer: str, work: Work, told: Told) -> PeerRow:
    """Return the measurements as figures for each report, and the error."""
    held = np.bincount(values_of(work), minlength=work.items)
    seconds = statistics.median(told.server_seconds)
    client_us = statistics.median(told.client_seconds) / work.reports * 1e6
    return PeerRow(
        peer=peer,
        version=told.version,
        mechanism=work.mechanism,
        reports=work.reports,
        items=work.items,
        epsilon=work.epsilon,
        client_us=client_us,
        server_us=seconds / work.reports * 1e6,
        server_seconds=seconds,
        mean_squared_error=float(np.mean((np.array(told.estimates) - held) ** 2)),
        mended=told.mended,
        spread=max(told.server_seconds) / min(told.server_seconds),
        client_alone_us=client_us,
    )


def parse(text: str, work: Work, repeats: int) -> Told:
    """Read the output of the worker.

    Raises:
        HushcountError: the output is no measurement, or has another number of items or repeats.
    """
    try:
        told = Told(**json.loads(text.splitlines()[-1]))
        estimates = np.array(told.estimates, dtype=np.float64)
        seconds = np.array([told.client_seconds, told.server_seconds], dtype=np.float64)
    except (IndexError, TypeError, ValueError) as error:
        raise HushcountError(f"the worker printed no measurement but {text[-80:]!r}") from error
    if estimates.shape != (repeats, work.items) or seconds.shape != (2, repeats):
        raise HushcountError(
            f"the worker printed {estimates.shape} estimates and {seconds.shape} times, "
            f"must be {(repeats, work.items)} and {(2, repeats)}"
        )
    if not np.isfinite(estimates).all() or not (np.isfinite(seconds) & (seconds > 0.0)).all():
        raise HushcountError("the worker printed an estimate that is no number, or a time that is not positive")
    return told


def install(scratch: Path, say: Callable[[str], None]) -> Path:
    """Install the peers in a new environment; return its interpreter.

    Raises:
        PeersMissing: pip is missing, or reaches no package index.
    """
    home = scratch / "peers"
    python = home / "bin" / "python"
    options = ("--quiet", "--disable-pip-version-check", "--no-input", "--no-deps", "--retries", "1")
    say(f"installing {', '.join(REQUIREMENTS)} in {home}")
    try:
        venv.create(home, with_pip=True)
        _run([str(python), "-m", "pip", "install", *options, *REQUIREMENTS])
    except (HushcountError, OSError, subprocess.CalledProcessError) as error:
        raise PeersMissing(
            f"the peers are not compared, as pip could not install {REQUIREMENTS[0]} and {REQUIREMENTS[1]} ({error}): "
            "run this on a machine that reaches a package index, or set PIP_INDEX_URL to an index"
        ) from error
    return python


def peer_row(python: Path, peer: str, work: Work, repeats: int) -> PeerRow:
    """Measure a peer in its environment.

    Raises:
        HushcountError: the peer failed; the message has the last line of its output.
    """
    task = {**asdict(work), "peer": peer, "seed": _POPULATION_SEED, "repeats": repeats}
    # -I: the peer does not see this checkout or the caller's settings.
    told = parse(_run([str(python), "-I", peer_worker.__file__], json.dumps(task)), work, repeats)
    return row(peer, work, told)


def compare(
    scratch: Path, reports: int, items: int, epsilon: float, repeats: int, say: Callable[[str], None]
) -> list[PeerRow]:
    """Measure Hushcount and then the peers, on the same machine one after the other.

    Args:
        scratch: an existing directory for the peers' environment, which takes 400 MiB.
        reports: the most reports for each mechanism, see `works`.
        items: size of the dictionary; local hashing is compared over LARGE_ITEMS as well.
        epsilon: of a report.
        repeats: number of measurements of each, at least 1.
        say: gets a line for each step, and for each peer that failed and is left out.

    Returns:
        Hushcount's rows, for the compared mechanisms and for the one that it recommends; then the peers' rows.

    Raises:
        PeersMissing: the peers could not be installed.
    """
    python, todo = install(scratch, say), works(reports, items, epsilon)
    advised = dict.fromkeys(replace(work, mechanism=RECOMMENDED) for work in todo)
    rows = []
    for work in (*todo, *advised):
        say(f"{OWN} {work.mechanism}: {work.reports} reports, {work.items} items")
        rows.append(own_row(work, repeats))
    for peer, oracles in peer_worker.PEERS.items():
        for work in todo:
            if work.mechanism not in oracles:
                continue
            say(f"{peer} {work.mechanism}: {work.reports} reports, {work.items} items")
            try:
                rows.append(peer_row(python, peer, work, repeats))
            except HushcountError as error:
                say(f"{peer} {work.mechanism} FAILED and is left out: {error}")
    return rows


def _run(command: list[str], given: str = "") -> str:
    # One thread, because CPU time is compared: threads that wait for work in a loop would count.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(  # noqa: S603  # our own words
        command, input=given, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise HushcountError(last[0])
    return done.stdout
