"""What the documents say of alerts: the example is a valid table, and the receiver takes what is genuine, once."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from pipelines.alerts.sending import Undelivered, Webhook
from pipelines.alerts.signing import Secret
from pipelines.deployment.alerting import AlertsPart, site_of
from pipelines.deployment.settings import Deployment
from tests.pipelines.alerts.receiver import KEY, SECRET

ROOT = Path(__file__).parents[3]
BODY = json.dumps({"type": "hushcount.alert.test", "data": {"says": "gr\u00f6\u00dfe \u202e \x1b[31m"}}).encode()


def test_the_example_of_the_operators_page_is_a_valid_table(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```\n(\[alerts\]\n.*?)^```", page, re.DOTALL | re.MULTILINE)
    path = tmp_path / "deployment.toml"
    head = 'store = "store"\n[windows]\nlength = "1d"\ngrace = "2d"\n'
    groups = '[analyzer.groups]\nplayback = {items = ["a", "b"]}\n'
    path.write_text(head + groups + block)
    part = Deployment.read(path).file.alerts
    assert part is not None
    assert set(re.findall(r"^(\w+) =", block, re.MULTILINE)) <= AlertsPart.model_fields.keys()
    # What the comments say are the defaults.
    assert (part.false_alarms, part.least_change, part.windows_before) == (0.01, 0.2, 7)
    assert (part.budget_windows, part.least_volume, part.give_up_after) == (7, 0.5, timedelta(days=3))


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    words = [sys.executable, str(ROOT / "examples" / "receive_alerts.py"), "--port", "0", "--seen", "seen.txt"]
    child = subprocess.Popen(  # noqa: S603  # our own example
        words, cwd=tmp_path, env={**os.environ, "WEBHOOK_SECRET": SECRET}, stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        port = child.stdout.readline().split()[-1]
        yield child, f"http://127.0.0.1:{port}/"
    finally:
        child.kill()
        child.wait()


def webhook(address: str, key: bytes = KEY) -> Webhook:
    site, path = site_of(address, False, timedelta(seconds=10))
    return Webhook(site, path, Secret(key))


def test_the_receiver_prints_what_is_genuine_once(
    receiver: tuple[subprocess.Popen[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    child, address = receiver
    for _ in range(2):
        webhook(address).send("alert_1", BODY)
    with pytest.raises(Undelivered, match="status 401"):
        webhook(address, b"k" * 32).send("alert_2", BODY)
    with monkeypatch.context() as clock, pytest.raises(Undelivered, match="status 401"):
        past = time.time() - 400
        clock.setattr(time, "time", lambda: past)
        webhook(address).send("alert_3", BODY)
    # Its answer may be lost with what it did not read.
    with pytest.raises(Undelivered, match=r"status 413|no answer"):
        webhook(address).send("alert_4", b" " * (1 << 21))
    webhook(address).send("alert_5", BODY)
    child.terminate()
    assert child.stdout is not None
    lines = child.stdout.read().splitlines()
    assert [json.loads(line) for line in lines] == [json.loads(BODY)["data"]] * 2
    assert all(line.isascii() and line.isprintable() for line in lines)
