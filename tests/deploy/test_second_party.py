"""deploy/second-party/README.md: what it says that a month costs."""

from __future__ import annotations

import re

from benchmarks.record import stored_record
from benchmarks.scaling import DISCOVERY
from hushcount.campaigns.campaign import Campaign
from tests.deploy.conftest import DEPLOY, ROOT
from tests.support.jobs import Chain

PAGE = (DEPLOY / "second-party" / "README.md").read_text(encoding="utf-8")
CLIENTS = 1_000_000
_GIB, _MIB = 2**30, 2**20


def row(name: str) -> tuple[list[float], float]:
    """Return the numbers in the formula of a row of costs, and the first number of its example."""
    ((formula, example),) = re.findall(rf"^\| {re.escape(name)}[^|]*\| ([^|]*) \| ([\d.,]+)", PAGE, re.MULTILINE)
    return [float(number) for number in re.findall(r"[\d.]+", formula)], float(example)


def test_a_month_costs_what_was_measured(chain: Chain) -> None:
    measured = stored_record(ROOT / "benchmarks").measured
    lanes, libsodium = measured["discover"], measured["discover-libsodium"]
    for name, figures in (("CPU hours", lanes), ("the same, without", libsodium)):
        (days, each, looks, hour), hours = row(name)
        assert (days, each, hour) == (30, round(figures.cpu_us_per_report, 1), 3600)
        assert hours == round(days * (CLIENTS * each / 1e6 + looks) / hour, 1)
    form = Campaign.read(chain.campaign_path).discovery_format
    assert (form.sealed_bytes, form.pair_bytes) == (DISCOVERY.sealed_bytes, 162)
    (job, size), memory = row("memory")
    assert (job, size) == (round(lanes.peak_rss_mib), form.sealed_bytes)
    assert memory == round(job + CLIENTS * size / _MIB)
    (days, size), incoming = row("traffic in")
    assert (size, incoming) == (form.sealed_bytes, round(days * CLIENTS * size / _GIB, 1))
    (days, size), outgoing = row("traffic out")
    assert lanes.bins == 2182
    assert (size, outgoing) == (form.pair_bytes, round(days * lanes.bins * size / _MIB, 1))
    assert row("store")[1] == round(incoming + outgoing * _MIB / _GIB, 1)
