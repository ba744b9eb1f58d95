"""CPU time a report of each stage beside what the cryptography alone costs, in one run: `make bench`.

CPU seconds of the process and its threads, because wall times wander on shared machines. The embedded runner's start
is in the figures, so small runs look worse than large ones.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from nacl.bindings import crypto_box_seal, crypto_box_seal_open

from hushcount.campaign import Campaign
from hushcount.randomness import SystemWords, uniform
from hushcount.sealing import Sealer
from keys import store
from keys.private import PrivateKey
from pipelines.analyze import analyze
from pipelines.create import create_campaign
from pipelines.discover import discover
from pipelines.encode import encode
from pipelines.shuffle import shuffle

_RAW = 20_000


def cpu_us(work: Callable[[], object], reports: int) -> float:
    start = time.process_time()
    work()
    return (time.process_time() - start) / reports * 1e6


def raw(plain_bytes: int) -> dict[str, float]:
    """The limit: libsodium's sealed boxes in a plain loop."""
    key = PrivateKey.generate()
    sealer, secret = Sealer(key.public_key), key.secret_for_storage()
    plain = os.urandom(plain_bytes)
    sealed = [sealer.seal(plain) for _ in range(_RAW)]
    return {
        "raw seal": cpu_us(lambda: [crypto_box_seal(plain, key.public_key) for _ in range(_RAW)], _RAW),
        "raw open": cpu_us(lambda: [crypto_box_seal_open(box, key.public_key, secret) for box in sealed], _RAW),
    }


def stages(directory: Path, reports: int, mechanism: str, items: int, epsilon: float) -> dict[str, float]:
    dictionary = directory / "items.txt"
    dictionary.write_text("".join(f"item{number}\n" for number in range(items)))
    drawn = uniform(items, reports, SystemWords())
    (directory / "values.txt").write_text("".join(f"item{number}\n" for number in drawn))
    part = store.create(directory / "keys", days=1)
    campaign = create_campaign(
        "bench",
        part,
        directory,
        mechanism=mechanism,
        epsilon=epsilon,
        dictionary=dictionary,
        discovery={"epsilon": 1.0, "delta": 1e-8},
    )
    path = directory / "campaign.json"
    campaign.write(path)
    out = {name: str(directory / name) for name in ("encoded", "shuffled", "results", "found")}
    frequency = Campaign.read(path).require_frequency()
    chosen = np.arange(reports, dtype=np.uint64) % np.uint64(items)
    return {
        "privatise alone": cpu_us(lambda: frequency.encode(chosen, SystemWords()), reports),
        "encode, both streams": cpu_us(lambda: encode(path, directory / "values.txt", out["encoded"]), reports),
        "shuffle, a report of either": cpu_us(lambda: shuffle(path, out["encoded"], out["shuffled"]), 2 * reports),
        "analyze": cpu_us(lambda: analyze(path, out["shuffled"], directory / "keys", out["results"]), reports),
        "discover": cpu_us(lambda: discover(path, out["shuffled"], directory / "keys", out["found"]), reports),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=200_000)
    parser.add_argument("--mechanism", default="ais")
    parser.add_argument("--items", type=int, default=26_000)
    parser.add_argument("--epsilon", type=float, default=4.0)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        figures = raw(100) | stages(Path(scratch), chosen.reports, chosen.mechanism, chosen.items, chosen.epsilon)
    if chosen.json:
        print(json.dumps({name: round(value, 2) for name, value in figures.items()}, indent=2))
        return
    for name, value in figures.items():
        print(f"{name:<30} {value:8.2f} us CPU a report")


if __name__ == "__main__":
    main()
