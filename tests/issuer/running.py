"""A real issuer with its deployment, its keys and a rule."""

from __future__ import annotations

import hashlib
import hmac
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import httpx

from hushcount.passes.pass_keys import read_pass_keys
from hushcount.passes.slots import TOKEN_TYPE
from hushcount.passes.tokens import REQUEST_BYTES, key_id_of
from keys.issuing import IssuingKey, private_file, read_private_keys
from tests.hushcount.delivery.test_real_collector import sign
from tests.shuffler.collector.running import Running, Site, metrics_reader, running
from tests.support import patient
from tests.support.jobs import done

SECRET = "a secret of the issuer"  # noqa: S105


def day_from_now(days: int) -> datetime:
    """Return a day, counted from today: a run of the tests may last over midnight."""
    return datetime.now(timezone.utc) + timedelta(days=days)


def authorization(account: str = "somebody", secret: str = SECRET) -> str:
    """Return the header of an account, as the rule of the secret demands it."""
    return f"Bearer {account}.{hmac.new(secret.encode(), account.encode(), hashlib.sha256).hexdigest()}"


def make_issuer(base: Path, days: int = 4, evaluator: bool = False, **table: Any) -> Site:
    """Make a deployment of an issuer only, with keys from yesterday on and a rule; by default that of a secret."""
    base.mkdir(parents=True)
    site, secret = Site(base), base / "secret"
    secret.write_text(SECRET + "\n")
    secret.chmod(0o600)
    first = day_from_now(-1).date()
    done(
        "keys", "passes", "--campaign-id", "words", "--out", base / "passes", "--days", days, "--first", first,
        *(["--evaluator", "--window", "12h"] if evaluator else []),
    )  # fmt: skip
    rule = {} if {"command", "hook"} & set(table) else {"secret": "secret"}
    settings = {
        "name": "issuer", "port": 0, "origins": ["*"], "metrics_token": metrics_reader(site), **rule, **table,
    }  # fmt: skip
    lines = ['store = "store"', "[windows]", 'length = "1d"', 'grace = "1h"', "[issuer]"]
    site.config.write_text("\n".join(lines + [f"{name} = {json.dumps(value)}" for name, value in settings.items()]))
    return site


def ask_for_passes(site: Site, issuer: Site) -> None:
    """Let the campaign of a site, signed, ask for the passes of an issuer."""
    public, path = issuer.base / "passes" / "words.passes.json", site.campaign_file()
    shutil.copy(public, path.with_name("passes.json"))
    part = read_pass_keys(public).part().model_dump(mode="json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "passes": part}))
    sign(site, 1)


@contextmanager
def issuing(site: Site, ahead: timedelta = timedelta()) -> Iterator[Running]:
    with running(site, ahead, "issue") as issuer:
        yield issuer


def place(days: int = 0, collector: str = "one", campaign: str = "words") -> str:
    return f"/v1/campaigns/{campaign}/passes?day={day_from_now(days):%Y%m%d}&collector={collector}"


def keys_of(site: Site, days: int = 0) -> list[IssuingKey]:
    """Return the keys of a day, opened here."""
    private = read_private_keys(private_file(site.base / "passes", "words"))
    return [IssuingKey(bytes.fromhex(primes)) for primes in private.days[1 + days]]


def requests(site: Site, days: int = 0, start: int = 1) -> bytes:
    """Return token requests of messages that begin at a number, one for each key of a day."""
    return b"".join(
        TOKEN_TYPE + key_id_of(key.public_key)[-1:] + (start + place).to_bytes(REQUEST_BYTES - 3, "big")
        for place, key in enumerate(keys_of(site, days))
    )


def ask(issuer: Running, body: bytes, where: str = "", shown: str | None = "", **headers: str) -> httpx.Response:
    """Post token requests; `shown` is the header Authorization, by default a good one, None for none."""
    sent = {"content-type": "application/octet-stream", **headers}
    if shown is not None:
        sent["authorization"] = shown or authorization()
    return patient.post(issuer.url + (where or place()), content=body, headers=sent)


def problem(reply: httpx.Response) -> str:
    """Return the name of a problem, or "signed"."""
    return "signed" if reply.status_code == 200 else str(reply.json()["type"].rpartition(":")[2])
