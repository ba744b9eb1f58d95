"""hushcount ask quantile --edges: the next epoch has narrow bins around quantiles, and its intervals are true."""

from __future__ import annotations

import math
import random
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.parts import NumberPart
from hushcount.errors import UsageError
from hushcount.numbers import Bins, count_edges, edges_between
from pipelines.jobs.number_bins import edges_near
from pipelines.monitoring.dashboard import page_of
from pipelines.questions.spans import Span
from tests.support.collecting import DAY, START, collect
from tests.support.jobs import done, refused
from tests.support.site import Site, at

REPORTS = 4_000
RANGES = [(0, 60_000, "log"), (0.5, 3.3, "log"), (-10, 10, "linear"), (0, 1, "linear")]


@given(st.sampled_from(RANGES), st.integers(3, 200), st.data())
def test_each_interval_is_cut_into_four_and_the_range_stays(
    spread: tuple[float, float, str], many: int, data: st.DataObject
) -> None:
    low, high, scale = spread
    bins = Bins(edges_between(low, high, many, scale))
    places = st.integers(1, many - 2)
    first, last = sorted((data.draw(places), data.draw(places)))
    made = NumberPart(edges=edges_near(bins, [(first, last)]), unit="", mean=False).edges
    inside = [edge for edge in made if float(bins.edges[first - 1]) < float(edge) < float(bins.edges[last])]
    assert {*made} == {bins.edges[0], bins.edges[first - 1], *inside, bins.edges[last], bins.edges[-1]}
    assert len(inside) == 3
    # Parts are of equal ratio or width, but for the rounding of their ends.
    ends = [float(edge) for edge in (bins.edges[first - 1], *inside, bins.edges[last])]
    sizes = [math.log(to / since) if ends[0] > 0 else to - since for since, to in pairwise(ends)]
    assert max(sizes) < 4.0 * min(sizes)


def test_an_interval_without_an_end_reaches_to_the_last_edge() -> None:
    bins = Bins(("1", "10", "100"))
    assert edges_near(bins, [(2, 3)])[:2] == ("1", "10")
    assert edges_near(bins, [(2, 3)])[-1] == "100"
    # Where nothing can be cut, nothing is: the other quantile's interval is.
    assert len(edges_near(bins, [(3, 3), (1, 1)])) == 6
    for lost in (bins, [(0, 0), (3, 3)]), (Bins(count_edges(3)), [(1, 2)]):
        with pytest.raises(UsageError, match="another range"):
            edges_near(*lost)


def test_no_two_edges_of_intervals_that_overlap_are_close_together() -> None:
    bins = Bins(edges_between(0, 60_000, 32, "log"), "ms")
    edges = [float(edge) for edge in edges_near(bins, [(14, 17), (17, 19), (18, 31)])]
    assert min(to / since for since, to in pairwise(edges)) > 1.15


def test_the_next_epoch_has_narrower_intervals_that_hold_the_truth(tmp_path: Path) -> None:
    site, drawn = Site(tmp_path), random.Random(11)
    first = site.add("times", "--number", "0:10000", "--unit", "ms", "--bins", "log:16", epsilon=6.0)
    durations = [[drawn.lognormvariate(5.0, 1.0) for _ in range(REPORTS)] for _ in range(2)]
    collect(site.store, first, [*map(str, durations[0])], day=0)
    assert site.run(1.1).problems == []
    asked = ("ask", "quantile", "--config", site.config, "--campaign", "times")
    edges = tmp_path / "edges.txt"
    says = done(*asked, "--edges", edges, "--json").json["says"]
    assert f"--bins {edges}" in says[-1]
    assert "exists" in refused(*asked, "--edges", edges).err
    second = tmp_path / "times-2.json"
    done(
        "campaign", "new", "--after", first, "--bins", edges, "--keys", site.keys, "--out", second, "--min-batch", "50"
    )  # fmt: skip
    number = Campaign.read(second).number
    assert number is not None
    assert (number.unit, list(number.edges)) == ("ms", edges.read_text().split())
    done("keys", "new", "--role", "operator", "--out", tmp_path / "operator-keys")
    done("campaign", "sign", "--campaign", second, "--keys", tmp_path / "operator-keys")
    begins = (START + DAY).isoformat()
    done("campaign", "publish", "--config", site.config, "--campaign", second, "--begins", begins)
    collect(site.store, second, [*map(str, durations[1])], day=1)
    assert site.run(2.1).problems == []
    rows = done(*asked, "--at", "50%,90%", "--json").json["rows"]
    before, after = rows[:2], rows[2:]
    for held, found in zip(durations, (before, after), strict=True):
        for row in found:
            truth = sorted(held)[math.ceil(row["at"] * REPORTS) - 1]
            # All hold together with 95 %; far more than 1 - 1e-6 at half and at twice their ends.
            assert row["low_all"] / 2.0 < truth < row["high_all"] * 2.0
    for old, new in zip(before, after, strict=True):
        assert new["high"] / new["low"] < 0.8 * old["high"] / old["low"]
        # The same law on both days; the change is of bins of two epochs.
        assert new["change_low_all"] == new["low_all"] - old["high_all"] or new["change_low_all"] < 0.0
        assert new["change_low_all"] < 0.0 < new["change_high_all"]
    # The next edges are those of the windows with the newest bins.
    done(*asked, "--edges", tmp_path / "of-both.txt")
    done(*asked, "--last", "1", "--edges", tmp_path / "of-newest.txt")
    assert (tmp_path / "of-both.txt").read_text() == (tmp_path / "of-newest.txt").read_text()
    page = page_of(site.deployment, at(2.2), Span(100))
    assert page.count(">Median<") >= 1
    assert after[0]["bin"] in page
