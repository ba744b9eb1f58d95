"""Measure a peer in an environment of its own: `python -I peer_worker.py < task.json` prints one line of JSON.

This module imports numpy and the wanted peer, never Hushcount. Peers are called as in their documentation: the client's
function once for each value, the server's function for all reports. Faults of peers are mended here, and reported.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import sys
import time
import types
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

FLH_FUNCTIONS = 1000
"""Hash functions of pure-ldp's fast local hashing."""
SKETCH_ROWS, SKETCH_CELLS = 128, 1024
"""Hash functions and cells of the Count Mean Sketches: with Apple's 65,536 functions, pure-ldp needs a gibibyte."""


@dataclass(frozen=True)
class Oracle:
    """A new, empty frequency oracle.

    Attributes:
        privatise: turns the values, 0..items-1, into reports, by the client's function.
        estimate: turns all reports into float64[items], estimated counts, by the server's function; called once.
    """

    privatise: Callable[[Any], Any]
    estimate: Callable[[Any], Any]


@dataclass(frozen=True)
class Told:
    """The measurements, one entry for each repeat.

    Attributes:
        client_seconds: CPU time to privatise all values.
        server_seconds: CPU time to aggregate all reports and estimate all items.
        estimates: counts by item.
        version: of the peer.
        mended: the mended faults of the peer, "" if none.
    """

    client_seconds: list[float] = field(default_factory=list)
    server_seconds: list[float] = field(default_factory=list)
    estimates: list[list[float]] = field(default_factory=list)
    version: str = ""
    mended: str = ""


def population(items: int, reports: int, seed: int) -> npt.NDArray[np.int64]:
    """Return int64[reports]: the value of each client, i with probability proportional to 1/(i+1)."""
    below = np.cumsum(1.0 / np.arange(1, items + 1))
    drawn = np.random.default_rng(seed).random(reports)
    return np.searchsorted(below / below[-1], drawn, side="right").astype(np.int64)


def measure(fresh: Callable[[], Oracle], values: Sequence[int] | npt.NDArray[Any], repeats: int, warm_up: int) -> Told:
    """Privatise, aggregate and estimate `repeats` times, with a new oracle each time; making it is not timed.

    Work on the first `warm_up` values comes before, so that functions compiled on their first call are compiled then.
    """
    warm = fresh()
    warm.estimate(warm.privatise(values[:warm_up]))
    told = Told()
    for _ in range(repeats):
        oracle = fresh()
        start = time.process_time()
        reports = oracle.privatise(values)
        sent = time.process_time()
        estimates = oracle.estimate(reports)
        told.server_seconds.append(time.process_time() - sent)
        told.client_seconds.append(sent - start)
        told.estimates.append([float(count) for count in estimates])
    return told


def _pure_module(name: str) -> Any:
    """Import a frequency oracle of pure-ldp without the others.

    Its package imports all oracles. One of them, RAPPOR, imports scikit-learn and statsmodels, which pure-ldp 1.2 does
    not declare. Python does not import a package again that is in `sys.modules`.
    """
    oracles = "pure_ldp.frequency_oracles"
    if oracles not in sys.modules:
        whole, package = importlib.import_module("pure_ldp"), types.ModuleType(oracles)
        package.__path__ = [f"{place}/frequency_oracles" for place in whole.__path__]
        sys.modules[oracles] = package
    return importlib.import_module(f"{oracles}.{name}")


def _pure(items: int, client: Any, server: Any) -> Oracle:
    """Return an oracle of pure-ldp, which numbers values from 1."""

    def estimate(reports: list[Any]) -> Any:
        for report in reports:
            server.aggregate(report)
        return server.estimate_all(range(1, items + 1), suppress_warnings=True)

    return Oracle(lambda values: [client.privatise(value + 1) for value in values], estimate)


def _pure_olh(items: int, epsilon: float) -> Oracle:
    module = _pure_module("local_hashing")
    return _pure(items, module.LHClient(epsilon, items, use_olh=True), module.LHServer(epsilon, items, use_olh=True))


def _pure_flh(items: int, epsilon: float) -> Oracle:
    module, k = _pure_module("local_hashing"), FLH_FUNCTIONS
    client = module.FastLHClient(epsilon, items, k, use_olh=True)
    return _pure(items, client, module.FastLHServer(epsilon, items, k, use_olh=True))


def _pure_grr(items: int, epsilon: float) -> Oracle:
    module = _pure_module("direct_encoding")
    return _pure(items, module.DEClient(epsilon, items), module.DEServer(epsilon, items))


def _pure_oue(items: int, epsilon: float) -> Oracle:
    module = _pure_module("unary_encoding")
    return _pure(items, module.UEClient(epsilon, items, use_oue=True), module.UEServer(epsilon, items, use_oue=True))


def _pure_sketch(hadamard: bool) -> Callable[[int, float], Oracle]:
    def make(items: int, epsilon: float) -> Oracle:
        module = _pure_module("apple_cms")
        server = module.CMSServer(epsilon, SKETCH_ROWS, SKETCH_CELLS, is_hadamard=hadamard)
        client = module.CMSClient(epsilon, server.get_hash_funcs(), SKETCH_CELLS, is_hadamard=hadamard)
        return _pure(items, client, server)

    return make


def _pure_hr(items: int, epsilon: float) -> Oracle:
    module = _pure_module("hadamard_response")
    server = module.HadamardResponseServer(epsilon, items)
    return _pure(items, module.HadamardResponseClient(epsilon, items, server.get_hash_funcs()), server)


def _multi(name: str) -> Callable[[int, float], Oracle]:
    """Return a maker of oracles of multi-freq-ldpy, which clips estimates at 0 and scales them to a sum of 1.

    Clipping and scaling make the estimates biased. Their time is counted, but errors are of the estimates before them.
    """

    def make(items: int, epsilon: float) -> Oracle:
        module = importlib.import_module(f"multi_freq_ldpy.pure_frequency_oracles.{name}")
        finish = importlib.import_module("multi_freq_ldpy.estimators.Histogram_estimator").MI
        client, server = getattr(module, f"{name}_Client"), getattr(module, f"{name}_Aggregator_MI")
        settings = (epsilon,) if name == "UE" else (items, epsilon)
        unbiased: list[Any] = []

        def keep(counts: Any, n: int, p: float, q: float) -> Any:
            unbiased.append((counts - n * q) / (p - q))
            return finish(counts, n, p, q)

        def estimate(reports: list[Any]) -> Any:
            module.MI = keep  # type: ignore[attr-defined]
            server(reports, *settings)
            return unbiased[-1]

        return Oracle(lambda values: [client(value, items, epsilon) for value in values], estimate)

    return make


_NOT_DECLARED = "imported in part: the whole package needs scikit-learn and statsmodels, which it does not declare"
_STRINGS = "xxhash is below 4.0, because 4.0 refuses strings"
_SHAPE = "numpy is below 2.3, because 2.3 refuses None as a shape"
_CLIPPED = "errors are of its counts before it clips them at 0 and scales them; the time includes clipping and scaling"


@dataclass(frozen=True)
class Peer:
    """A peer's frequency oracle.

    Attributes:
        make: makes a new oracle from (items, epsilon).
        mended: the mended faults of the peer, for people.
    """

    make: Callable[[int, float], Oracle]
    mended: tuple[str, ...]


PEERS: dict[str, dict[str, Peer]] = {
    "pure-ldp": {
        "olh": Peer(_pure_olh, (_NOT_DECLARED, _STRINGS)),
        "flh": Peer(_pure_flh, (_NOT_DECLARED, _STRINGS)),
        "grr": Peer(_pure_grr, (_NOT_DECLARED,)),
        "oue": Peer(_pure_oue, (_NOT_DECLARED,)),
        "apple-cms": Peer(_pure_sketch(hadamard=False), (_NOT_DECLARED, _STRINGS, _SHAPE)),
        "hcms": Peer(_pure_sketch(hadamard=True), (_NOT_DECLARED, _STRINGS, _SHAPE)),
        "hr": Peer(_pure_hr, (_NOT_DECLARED,)),
    },
    "multi-freq-ldpy": {
        "olh": Peer(_multi("LH"), (_STRINGS, _CLIPPED)),
        "grr": Peer(_multi("GRR"), (_CLIPPED,)),
        "ss": Peer(_multi("SS"), (_CLIPPED,)),
        "oue": Peer(_multi("UE"), (_CLIPPED,)),
    },
}
"""By the peer's name, then by Hushcount's name of the mechanism; flh is pure-ldp's own, local hashing by a pool."""


def main() -> None:
    task = json.load(sys.stdin)
    name, items, epsilon = task["peer"], task["items"], task["epsilon"]
    peer = PEERS[name][task["mechanism"]]
    values = population(items, task["reports"], task["seed"]).tolist()
    told = measure(lambda: peer.make(items, epsilon), values, task["repeats"], warm_up=3)
    told = replace(told, version=importlib.metadata.version(name), mended="; ".join(peer.mended))
    sys.stdout.write(json.dumps(asdict(told)) + "\n")


if __name__ == "__main__":
    main()
