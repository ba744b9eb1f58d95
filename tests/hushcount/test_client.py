"""The client: one length whatever the value, nothing shown by sending or not, and few dependencies."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary, other_item
from hushcount.client import Client
from hushcount.errors import UsageError
from hushcount.items import canonical, may_be_item
from hushcount.memory import ClientMemory
from hushcount.policy import Policy
from hushcount.wire.sealing import SEAL_BYTES
from keys.private import PrivateKey
from tests.hushcount.campaigns.test_campaign_file import WORDS, changed
from tests.support.allowances import Boundless

ANALYZER, AUX_SERVER = PrivateKey(bytes([1]) * 32), PrivateKey(bytes([2]) * 32)
LONGEST = 32
VALUES = [
    "", "one", "three", "four", "a" * LONGEST, "ü" * (LONGEST // 2), "\U0001f600" * (LONGEST // 4), "\0", "one\n",
    "ONE", "e\u0301", "\ud800", "\ufeffone", "\u202egpj",
]  # fmt: skip
SEED = {"seed": "5" * 64}
MECHANISMS = {
    "ss": {"name": "ss", "epsilon": 1.0, "parameters": {"s": 2}},
    "grr": {"name": "grr", "epsilon": 1.0},
    "ais": {"name": "ais", "epsilon": 1.0, "parameters": {"s": 2}},
    "ocms": {"name": "ocms", "epsilon": 1.0, "parameters": {"B": 3}},
    "gcms": {"name": "gcms", "epsilon": 1.0, "parameters": {"k": 300, "m": 16, "s": 4, **SEED}},
    "wide": {"name": "gcms", "epsilon": 1.0, "parameters": {"k": 3, "m": 1024, "s": 2, **SEED}},
}


def client_of(name: str) -> Client:
    return Client(
        Campaign.model_validate(changed("mechanism", MECHANISMS[name])),
        policy=Policy.trusting(),
        dictionary=WORDS,
        allowance=Boundless(),
    )


def test_every_value_gives_a_report_of_one_length(subtests: pytest.Subtests) -> None:
    for name in MECHANISMS:
        with subtests.test(name=name):
            client = client_of(name)
            campaign = client.campaign
            sealed = campaign.sealed_bytes("reports")
            assert sealed == 16 + campaign.require_frequency().report_bytes + SEAL_BYTES
            for values in (VALUES, ["x" * 5000]):
                assert {len(client.report(value)) for value in values} == {sealed}
            assert client.reports(VALUES).shape == (len(VALUES), sealed)
            assert client.reports(VALUES, threads=3).shape == (len(VALUES), sealed)
            for row in client.reports(VALUES * 3, threads=2):
                plain = ANALYZER.open(row.tobytes())
                assert plain is not None
                assert len(plain) == sealed - SEAL_BYTES
                assert plain[:16] == campaign.binding("reports")
                _, valid = campaign.require_frequency().unpack(np.frombuffer(plain[16:], np.uint8)[None])
                assert valid.all()


def test_every_value_gives_a_discovery_report_of_one_length() -> None:
    client = client_of("ss")
    form = client.campaign.discovery_format
    length = client.campaign.sealed_bytes("discovery")
    assert length == 16 + 32 + (16 + 2 + LONGEST + SEAL_BYTES) + SEAL_BYTES
    assert {len(client.discovery_report(value)) for value in VALUES} == {length}
    rows = client.discovery_reports(VALUES, threads=2)
    assert rows.shape == (len(VALUES), length)
    hashes = set()
    for value, row in zip(VALUES, rows, strict=True):
        outer = AUX_SERVER.open(row.tobytes())
        assert outer is not None
        assert ANALYZER.open(row.tobytes()) is None
        assert outer[:16] == client.campaign.binding("discovery")
        inner = ANALYZER.open(outer[48:])
        assert inner is not None
        assert AUX_SERVER.open(outer[48:]) is None
        assert inner[:16] == client.campaign.binding("discovery")
        assert len(inner) == 16 + 2 + LONGEST
        text = canonical(value)
        wanted = may_be_item(text) and text not in WORDS
        assert form.unpad(inner[16:]) == (text if wanted else None)
        assert (text != "\ud800" and outer[16:48] == form.hash(text)) == wanted
        hashes.add(outer[16:48])
    assert len(hashes) == len(VALUES)


def test_two_spellings_of_a_value_are_one_value_of_every_client() -> None:
    """The first is what a client on another system types; at epsilon 30 an answer is another item's below ALPHA."""
    part = {"name": "grr", "epsilon": 30.0}
    listed = changed("mechanism", part) | {"dictionary": {"path": "w.txt", "items": 2, "digest": TWO.digest}}
    client = Client(Campaign.model_validate(listed), policy=Policy.trusting(), dictionary=TWO, allowance=Boundless())
    mechanism = client.campaign.require_frequency()
    for value, item in (("cafe\u0301", 1), ("caf\u00e9", 1), ("cafe\u0300", 2), ("CAFE\u0301", 2)):
        plain = ANALYZER.open(client.report(value))
        assert plain is not None
        rows, _ = mechanism.unpack(np.frombuffer(plain[16:], np.uint8)[None])
        assert mechanism.log_prob(rows, item)[0] > math.log(0.5)
    outer = [
        AUX_SERVER.open(client.discovery_report(value))
        for value in ("Vie\u0323\u0302t", "Vi\u1ec7t", "Vie\u0302\u0323t")
    ]
    assert len({plain[:-SEAL_BYTES] for plain in outer if plain is not None}) == 1


TWO = Dictionary(("tea", "cafe\u0301"))


def test_a_value_is_measured_in_its_one_spelling(subtests: pytest.Subtests) -> None:
    """The first shrinks from 48 bytes to 32, the second grows from 32 to 96."""
    for value, fits in [("e\u0301" * (LONGEST // 2), True), ("\U0001d160" * (LONGEST // 4), False)]:
        with subtests.test(fits=fits):
            client = client_of("ss")
            if fits:
                assert len(client.discovery_report(value)) == client.campaign.sealed_bytes("discovery")
            else:
                with pytest.raises(UsageError, match=f" 96 .* {LONGEST}$"):
                    client.discovery_report(value)
            assert len(client.report(value)) == client.campaign.sealed_bytes("reports")


def test_listed_values_share_no_bin() -> None:
    """Their hashes are random: were they H(value) or one constant, the auxiliary server would count them."""
    client = client_of("ss")
    opened = [AUX_SERVER.open(row.tobytes()) for row in client.discovery_reports(["one"] * 50)]
    assert len({plain[16:48] for plain in opened if plain is not None}) == 50


def test_a_value_too_long_for_discovery_is_refused_and_not_named(subtests: pytest.Subtests) -> None:
    for value in ["a" * (LONGEST + 1), "ü" * (LONGEST // 2) + "b", "x" * 100_000]:
        with subtests.test(length=len(value)):
            client = client_of("ss")
            for make, asked in ((client.discovery_report, value), (client.discovery_reports, ["four", value])):
                with pytest.raises(UsageError, match=f" {len(value.encode())} .* {LONGEST}$") as caught:
                    make(asked)
                assert value[:20] not in str(caught.value)
                assert caught.value.__cause__ is None


def test_no_two_reports_are_equal() -> None:
    client = client_of("grr")
    rows = client.reports(["one"] * 200)
    assert len({row.tobytes() for row in rows}) == 200
    assert len({row.tobytes() for row in client.discovery_reports(["four"] * 50)}) == 50


def test_outside_the_dictionary_is_the_reserved_item(subtests: pytest.Subtests) -> None:
    """At epsilon 40 a report is the truth: `other` then explains every outside value, and no listed one."""
    for name, mechanism_part in MECHANISMS.items():
        with subtests.test(name=name):
            part = {**mechanism_part, "epsilon": 40.0}
            if name != "ocms":
                part["parameters"] = {**part.get("parameters", {}), **({"s": 1} if name != "grr" else {})}
            client = Client(
                Campaign.model_validate(changed("mechanism", part)),
                policy=Policy.trusting(),
                dictionary=WORDS,
                allowance=Boundless(),
            )
            mechanism = client.campaign.require_frequency()
            other = other_item(mechanism)
            own = np.array(
                [mechanism.log_prob(opened(client, value), other)[0] for value in ["four", "", "one ", "ONE"]]
            )
            listed = np.array([mechanism.log_prob(opened(client, value), other)[0] for value in ["one"] * 20])
            assert np.ptp(own) < 1e-6
            assert listed.min() < own.max() - 30.0


def opened(client: Client, value: str) -> np.ndarray:
    plain = ANALYZER.open(client.report(value))
    assert plain is not None
    reports, _ = client.campaign.require_frequency().unpack(np.frombuffer(plain[16:], np.uint8)[None])
    return reports


BLOCKER = """
import logging, sys
BLOCKED = {blocked}
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in BLOCKED:
            raise ImportError("blocked: " + name)
sys.meta_path.insert(0, Blocker())
from hushcount.campaigns.campaign import Campaign
from hushcount.client import Client
from hushcount.policy import Policy
logging.disable()  # that tests trust any campaign
for path in sys.argv[1:]:
    for value in ("one", "four", ""):
        client = Client(Campaign.read(path), policy=Policy.trusting())
        print(len(client.report(value)), len(client.discovery_report(value)))
print(sorted(set(BLOCKED) & {{name.split(".")[0] for name in sys.modules}}))
"""
SERVER_SIDE = [
    "apache_beam", "hypothesis", "keys", "matplotlib", "numba", "pipelines", "pyarrow", "rich", "scipy",
    "shuffler", "analyzer", "aux_server", "tomli_w", "typer",
]  # fmt: skip


def test_the_client_needs_numpy_pynacl_and_pydantic_only(tmp_path: Path) -> None:
    """In a process where all else that is installed cannot be imported: a client of each mechanism."""
    (tmp_path / "words.txt").write_text("".join(f"{item}\n" for item in WORDS.items))
    expected = []
    for name in MECHANISMS:
        campaign = client_of(name).campaign
        campaign.write(tmp_path / f"{name}.json")
        expected += [f"{campaign.sealed_bytes('reports')} {campaign.sealed_bytes('discovery')}"] * 3
    program = BLOCKER.format(blocked=SERVER_SIDE)
    files = [str(tmp_path / f"{name}.json") for name in MECHANISMS]
    run = subprocess.run([sys.executable, "-c", program, *files], capture_output=True, text=True, check=False)  # noqa: S603
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [*expected, "[]"]
    assert run.stderr == ""


def test_the_blocker_blocks() -> None:
    program = BLOCKER.format(blocked=SERVER_SIDE).replace("from hushcount", "import scipy.stats\nfrom hushcount", 1)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)  # noqa: S603
    assert "blocked: scipy" in run.stderr


def test_a_dictionary_may_be_given_instead_of_read_if_it_is_the_campaigns() -> None:
    """Another dictionary, even a longer one, would make reports name other items."""
    other = Dictionary(("one", "two", "four"))
    assert Client(client_of("ss").campaign, policy=Policy.trusting(), dictionary=WORDS).dictionary is WORDS
    with pytest.raises(UsageError, match="not the campaign's"):
        Client(client_of("ss").campaign, policy=Policy.trusting(), dictionary=other)


def test_what_is_no_campaign_or_no_memory_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    """A path in the place of what is read from it failed at the first report or later."""
    path = str(tmp_path / "campaign.json")
    with pytest.raises(UsageError, match=r"^campaign is a str.*Campaign\.read"):
        Client(path, policy=Policy.trusting())  # type: ignore[arg-type]
    campaign = Campaign.model_validate(changed("mechanism", MECHANISMS["grr"]))
    for memory in (path, tmp_path, {}):
        with pytest.raises(UsageError, match="ClientMemory"):
            Client(campaign, policy=Policy.trusting(), dictionary=WORDS, memory=memory)  # type: ignore[arg-type]
    for limit in (0, "5", 1.5):
        with pytest.raises(UsageError, match="at least 1"):
            ClientMemory(tmp_path, limit)  # type: ignore[arg-type]
