"""From hushcount init to an estimate, by what it prints: collect, send, run and ask on the deployment as it is."""

from __future__ import annotations

import runpy
import shlex
import time
from collections.abc import Sequence
from http.client import HTTPConnection
from pathlib import Path

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.many_clients import ManyClients
from tests.support.collecting import collect
from tests.support.jobs import cli, done, write_lines
from tests.support.ports import free_port
from tests.support.processes import process

FLOOR = 200
CLIENTS = 3 * FLOOR
"""However a window's end parts them, one side of it has a batch."""
ITEMS = [f"item-{number}" for number in range(20)]
PATIENCE = 180.0


def commands(shown: str) -> list[list[str]]:
    """Return the words of the commands that an answer prints, each in a line of its own, or in one with the next."""
    whole = shown.replace("\\\n", "")
    return [shlex.split(line)[1:] for line in whole.splitlines() if line.startswith("  hushcount ")]


def send(home: Path, port: int, values: Sequence[str]) -> None:
    """Send each value as another client."""
    campaign = Campaign.read(home / "campaign.json")
    path = f"/v1/campaigns/{campaign.id}/reports?fingerprint={campaign.fingerprint.hex()}&window=19700101T000000Z"
    kind = {"Content-Type": "application/octet-stream"}
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    for number, row in enumerate(ManyClients(campaign).reports(values)):
        connection.request("POST", path, row.tobytes(), {**kind, "Client-Token": f"{number:032x}"})
        answer = connection.getresponse()
        assert answer.status == 202, answer.read()
        answer.read()
    connection.close()


@pytest.mark.parametrize("kind", ["items", "numbers"])
@pytest.mark.long
def test_what_init_prints_leads_to_an_estimate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    home, port = tmp_path / "usage", free_port()
    listed: tuple[object, ...] = ("--dictionary", write_lines(tmp_path / "settings.txt", ITEMS))
    question, values = "top", ("item-7", "item-1")
    if kind == "numbers":
        listed = ("--number", "0:1000", "--unit", "ms", "--bins", "linear:11")
        question, values = "quantile", ("450", "950")
    options = ("--min-batch", FLOOR, "--clients", CLIENTS, "--window", "5s", "--epsilon", 4, "--port", port)
    shown = done("init", home, *listed, *options).out
    collecting, running, simulating, asking, sending, status = commands(shown)
    assert (collecting[0], running[0], running[-1], asking, sending[0], status[0]) == (
        "collect", "run", "--watch", ["ask", question], "send", "status",
    )  # fmt: skip
    assert simulating == [
        "simulate", "--send", "--site", f"http://127.0.0.1:{port}", "--policy", "policy.json", "--people",
        f"{CLIENTS}",
    ]  # fmt: skip
    monkeypatch.chdir(home)
    with process(collecting, lambda said: '"event": "started"' in said, tmp_path / "collect.log"):
        assert done(*sending, "--json").json["sent"] == 1
        runpy.run_path(str(home / "app.py"))
        told = done(*simulating[:-1], 20, "--json").json
        assert (sum(row["count"] for row in told["truth"]), told["question"]) == (20, question)
        send(home, port, [values[number % 3 == 0] for number in range(CLIENTS)])
        deadline = time.monotonic() + PATIENCE
        while not list(home.glob("store/results/*/*/summary.json")):
            # A part of the reports may be in a window that has not ended.
            time.sleep(1)
            assert time.monotonic() < deadline, done(*status).out
            done("run", "--config", home / "deployment.toml")
    row = done(*asking, "--json").json["rows"][0]
    # Two thirds have this value, which is seven standard errors more than a half.
    assert row.get("item", row.get("bin")) == ("item-7" if kind == "items" else "400 to 500 ms")


@pytest.mark.long
def test_the_watching_run_that_init_prints_looks_and_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = done("init", tmp_path / "usage", "--open-domain").out
    monkeypatch.chdir(tmp_path / "usage")
    (running,) = (words for words in commands(shown) if words[0] == "run")
    looked = tmp_path / "usage" / "run.prom"
    with process(running, lambda _: looked.exists(), tmp_path / "run.log"):
        pass
    (said,) = (tmp_path / "run.log").read_text().splitlines()
    assert "looks every 30 s; usage: the open window ends " in said
    assert "a result then needs 1,000 reports, and 0 are here" in said


@pytest.mark.parametrize("sent", [100, 3], ids=["found", "nothing"])
@pytest.mark.long
def test_in_an_open_domain_a_batch_is_counted_whether_or_not_a_value_was_found(tmp_path: Path, sent: int) -> None:
    home = tmp_path / "usage"
    done("init", home, "--open-domain", "--min-batch", FLOOR)
    values = [f"rare-{number}" for number in range(FLOOR)] + ["dark-mode"] * sent
    collect(home / "store", home / "campaign.json", values, day=-2)
    assert "error" not in done("run", "--config", home / "deployment.toml").err
    top = cli("ask", "top", "--config", home / "deployment.toml", "--campaign", "usage", "--json")
    # 100 clients are missed with a chance of 1e-8, and 3 found with one of 1e-7.
    if sent == 100:
        assert [row["item"] for row in top.json["rows"]] == ["dark-mode"]
    else:
        assert "no item is known yet" in top.err
    (result,) = home.glob("store/results/usage/*")
    asked = write_lines(tmp_path / "asked.txt", ["dark-mode", "rare-1"])
    where = ("--tally", result / "tally.npz", "--items", asked, "--out", tmp_path / "more")
    done("job", "estimate", "--campaign", home / "campaign.json", *where)
    verdicts = {check["verdict"] for check in cli("doctor", "--config", home / "deployment.toml", "--json").json}
    assert "bad" not in verdicts
