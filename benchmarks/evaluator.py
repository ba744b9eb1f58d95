"""How many evaluations an evaluator answers, beside the library alone: `python -m benchmarks.evaluator --seconds 20`.

The real command runs in its own process, and gets requests over HTTP on one connection, with many elements or with one.
Before and after, the library answers the same requests in this process. All rates are for a second of CPU time, so that
they hold on a busy machine too; an evaluator uses one core.
"""

from __future__ import annotations

import argparse
import http.client
import json
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path

from benchmarks.collector import cpu_seconds, serving
from benchmarks.inputs import Setting, make_place
from hushcount.campaigns.campaign import Campaign
from hushcount.discovery.oblivious import ELEMENT_BYTES, MOST_EVALUATIONS, PROOF_BYTES, evaluations_of
from hushcount.formats.reading import parse_object
from keys.directories import KeyReference, create, read_public
from keys.evaluating import EvaluatorKey

_SETTING = Setting(None, None)
_POOL = 20
BATCHES = (MOST_EVALUATIONS, 20, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="duration for each number of elements")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".", prefix=".evaluator-") as directory:
        found = measure(Path(directory).absolute(), given.seconds)
    if given.json:
        print(json.dumps(found, indent=2))
        return
    for row in found:
        print(", ".join(f"{name} {value:,.0f}" for name, value in row.items()))


def measure(base: Path, seconds: float, batches: tuple[int, ...] = BATCHES) -> list[dict[str, float]]:
    """Start an evaluator, send it requests, and return the figures for each number of elements in a request."""
    campaign = _deploy(base)
    (public,) = campaign.keys.evaluator
    key = KeyReference(str(base / "evaluator-keys"), "evaluator", public.id).read_evaluator()
    path = f"/v1/campaigns/bench/evaluations?fingerprint={campaign.fingerprint.hex()}"
    with serving(base, "evaluate") as (pid, port):
        return [_row(pid, port, path, key, batch, seconds) for batch in batches]


def _row(pid: int, port: int, path: str, key: EvaluatorKey, batch: int, seconds: float) -> dict[str, float]:
    pool = [evaluations_of([None] * batch).blinded for _ in range(_POOL)]
    before = _bare(key, pool, seconds / 2)
    used, began = cpu_seconds(pid), time.perf_counter()
    answered = _ask(port, path, pool, seconds)
    wall = time.perf_counter() - began
    used = cpu_seconds(pid) - used
    after = _bare(key, pool, seconds / 2)
    bare = 2 / (1 / before + 1 / after)
    return {
        "batch": batch,
        "over HTTP, a second of CPU": answered / used,
        "library alone, a second of CPU": bare,
        "% of the library": 100 * answered / used / bare,
        "over HTTP, a second": answered / wall,
    }


def _bare(key: EvaluatorKey, pool: list[bytes], seconds: float) -> float:
    """Return the evaluations that the library answers in a second of CPU time."""
    answered, began, ends = 0, time.process_time(), time.perf_counter() + seconds
    while time.perf_counter() < ends:
        for blinded in pool:
            key.evaluate(blinded)
            answered += len(blinded) // ELEMENT_BYTES
    return answered / (time.process_time() - began)


def _ask(port: int, path: str, pool: list[bytes], seconds: float) -> int:
    """Send one request after another on one connection, and return the number of evaluations."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    answered, number, ends = 0, 0, time.perf_counter() + seconds
    while time.perf_counter() < ends:
        blinded = pool[number % len(pool)]
        # Each request has a new token: so no client reaches its limit, and each request makes a new client.
        headers = {"Content-Type": "application/octet-stream", "Client-Token": f"{len(blinded):010d}-{number:020d}"}
        connection.request("POST", path, blinded, headers)
        answer = connection.getresponse()
        if len(answer.read()) != len(blinded) + PROOF_BYTES:
            raise SystemExit(f"the evaluator answered {answer.status}")
        answered += len(blinded) // ELEMENT_BYTES
        number += 1
    connection.close()
    return answered


def _deploy(base: Path) -> Campaign:
    """Write a deployment with one oblivious campaign, and return the campaign."""
    folder = base / "campaigns" / "bench"
    place = make_place(folder, _SETTING)
    create(base / "evaluator-keys", 1, ("evaluator",))
    data = parse_object(place.campaign_path.read_bytes(), "campaign")
    data["discovery"] |= {"hash": "oblivious", "hash_key": None}
    part = read_public([base / "evaluator-keys"], datetime.now(timezone.utc)).evaluator[0]
    data["keys"]["evaluator"] = [json.loads(part.model_dump_json())]
    (folder / "epoch-000001.json").write_text(json.dumps(data))
    epoch = {"epoch": 1, "file": "epoch-000001.json", "begins": "2020-01-01T00:00:00Z"}
    (folder / "collection.json").write_text(json.dumps({"epochs": [epoch]}))
    (base / "deployment.toml").write_text(
        'store = "store"\n[windows]\nlength = "365d"\ngrace = "1d"\n[evaluator]\nname = "bench"\nport = 0\n'
        f"most_evaluations_a_client = {MOST_EVALUATIONS}\n"
    )
    return Campaign.read(folder / "epoch-000001.json")


if __name__ == "__main__":
    main()
