"""Run the real evaluator as a process of its own, on a real deployment, and ask it over real sockets."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import httpx

from evaluator.manifests import EvaluationManifest, read_evaluation_manifest
from hushcount.collection.epochs import epoch_folder
from hushcount.discovery.oblivious import Evaluations, evaluations_of
from keys.directories import create, read_public
from keys.rotation import retire, rotate
from tests.shuffler.collector.running import (
    LONG,
    Running,
    Site,
    add_campaign,
    make_site,
    metrics_reader,
    running,
    write_collection,
)

TOKEN = {"client-token": "a" * 16}
VERIFIER = {"authorization": "Bearer " + "v" * 32}
BEGUN = [{"epoch": 1, "begins": "2020-01-01T00:00:00Z"}]


def make_asked_site(base: Path, *, window: str = LONG, evaluator: dict[str, Any] | None = None) -> Site:
    """Make a deployment with one oblivious campaign, `words`, whose epoch 1 has begun, and its evaluator's key."""
    site = make_site(base)
    # Older than this second, so that it can be followed by the next one.
    create(keys_of(site), 365, ("evaluator",), datetime.now(timezone.utc) - timedelta(days=1))
    make_oblivious(site)
    token = base / "verifier"
    token.write_text(f"analyzer sha256:{hashlib.sha256(b'v' * 32).hexdigest()}\n")
    token.chmod(0o600)
    write_evaluator(site, window, evaluator or {})
    return site


def write_evaluator(site: Site, window: str, evaluator: dict[str, Any]) -> None:
    """Write the deployment file."""
    table = {"name": "one", "port": 0, "verifier_token": "verifier", "metrics_token": metrics_reader(site), **evaluator}
    lines = ['store = "store"', "[windows]", f'length = "{window}"', 'grace = "1h"', "[evaluator]"]
    site.config.write_text(
        "\n".join([*lines, *(f"{name} = {json.dumps(value)}" for name, value in table.items() if value is not None)])
    )


def make_oblivious(site: Site, campaign: str = "words", epoch: int = 1) -> None:
    """Let a campaign file name the evaluator's active key, in place of its hash key."""
    path = site.campaign_file(campaign, epoch)
    data = json.loads(path.read_text())
    (key,) = read_public([keys_of(site)]).evaluator
    data["discovery"]["hash"] = "oblivious"
    del data["discovery"]["hash_key"]
    data["keys"]["evaluator"] = [json.loads(key.model_dump_json())]
    path.write_text(json.dumps(data))


def add_keyed(site: Site) -> None:
    """Add a campaign that asks nobody."""
    add_campaign(site, "asks-nobody", 1)
    write_collection(site, "asks-nobody", BEGUN)


def keys_of(site: Site) -> Path:
    return site.base / "evaluator-keys"


def public_key(site: Site) -> bytes:
    return site.campaign().require_evaluator_key()


def asked(*values: str) -> Evaluations:
    return evaluations_of([value.encode() for value in values])


def some(number: int) -> bytes:
    """Return so many evaluations."""
    return evaluations_of([None] * number).blinded


def ask(evaluator: Running, body: bytes, headers: dict[str, str] | None = None, **options: Any) -> httpx.Response:
    return evaluator.post(body, "evaluations", headers=TOKEN if headers is None else headers, **options)


def reason(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["type"].rpartition(":")[2]


def manifests(site: Site, epoch: int = 1) -> list[EvaluationManifest]:
    home = site.base / "store" / "evaluations" / "words" / epoch_folder(site.campaign(epoch=epoch))
    return [read_evaluation_manifest(path.read_bytes(), path.name) for path in sorted(home.glob("*/*.json"))]


@contextmanager
def evaluating(site: Site, ahead: timedelta = timedelta()) -> Iterator[Running]:
    with running(site, ahead, "evaluate") as started:
        yield started


def destroy_evaluator_key(site: Site) -> None:
    """Retire the key of the first epoch; there must be a next one for that."""
    (key,) = site.campaign().keys.evaluator
    rotate(keys_of(site), overlap=timedelta(days=1))
    retire(keys_of(site), key.id, early=True)
