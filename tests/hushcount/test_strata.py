"""Strata: cells are numbered one by one and at random, groups of cells are counted with their error, clients agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushcount.budget import Budget
from hushcount.campaigns.axes import AxesPart
from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import tally_items
from hushcount.client import Client
from hushcount.errors import FormatError, UsageError
from hushcount.formats.reading import validated
from hushcount.many_clients import ManyClients
from hushcount.maths.objectives import Objective
from hushcount.newest import Untrusted
from hushcount.oracles.catalogue import build, plan
from hushcount.oracles.group_estimates import Rows, SupportSums
from hushcount.oracles.simulation import SeededWords
from hushcount.oracles.tally import Tally
from hushcount.policy import Policy, terms_of
from hushcount.privacy.statement import statement
from hushcount.questions.counted import Counted, Group
from hushcount.report_making import Measurement, items_for, measured
from hushcount.senders import Senders
from hushcount.strata import STRATUM_BYTES, Axis, Cells, Strata
from tests.support.jobs import new_campaign, new_keys, refused, write_lines
from tests.vectors.subjects.campaigns import campaign as named_campaign
from tests.vectors.subjects.signing import AT, OPERATOR, moment, part, signed

KEY = bytes(range(32))
STRATA = Strata((Axis("version", ("2.1", "2.0")), Axis("platform", ("linux",))))
ITEMS = tuple(f"item {number:02d}" for number in range(20))
FAR = 6.0
"""Standard errors that a normal deviate strays with a probability below 1e-8."""


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    root = tmp_path_factory.mktemp("strata")
    keys, words = new_keys(root / "keys"), write_lines(root / "words.txt", ITEMS)
    axes = [write_lines(root / f"{axis.name}.txt", axis.values) for axis in STRATA.axes]
    by = [option for axis, file in zip(STRATA.axes, axes, strict=True) for option in ("--by", f"{axis.name}={file}")]
    return Campaign.read(
        new_campaign(root / "campaign.json", keys, *by, mechanism="ais", epsilon=3.0, dictionary=words)
    )


def numbers(cells: Cells) -> np.ndarray[Any, Any]:
    items, strata = np.divmod(np.arange(len(cells), dtype=np.uint64), np.uint64(cells.strata))
    return cells.number(items, strata)


@given(st.integers(1, 40), st.integers(2, 40), st.binary(min_size=32, max_size=32))
@settings(max_examples=60)
def test_every_cell_has_a_number_of_its_own_and_the_last_keeps_its_place(items: int, strata: int, key: bytes) -> None:
    cells = Cells(items, strata, key)
    found = numbers(cells)
    assert np.array_equal(np.sort(found), np.arange(len(cells)))
    assert found[-1] == len(cells) - 1


def test_another_key_gives_another_order_without_neighbours() -> None:
    one, other = (numbers(Cells(200, 8, key)) for key in (KEY, KEY[::-1]))
    assert (one == other).mean() < 0.02
    steps = np.diff(one.astype(np.int64))
    # Of 1,607 steps of a random order, each difference occurs 2 times at most on average.
    assert np.unique(steps, return_counts=True)[1].max() <= 12


def test_a_missing_or_unlisted_coordinate_is_other() -> None:
    assert STRATA.place({}) == STRATA.place({"version": "9", "channel": "beta"}) == len(STRATA) - 1
    assert STRATA.place({"version": "2.1", "platform": "linux"}) == 0
    each = [STRATA.places({"platform": platform}) for platform in ("linux", "other")]
    assert np.array_equal(np.sort(np.concatenate(each)), np.arange(len(STRATA)))
    for wrong in ({"channel": "beta"}, {"version": "9"}):
        with pytest.raises(UsageError, match="must be one"):
            STRATA.places(wrong)


@pytest.mark.parametrize("order", ["random", "natural"])
def test_only_a_random_order_has_the_variance_of_the_formula(order: str) -> None:
    """8,000 reports measure a ratio to 1.6 %, so 10 % are FAR. Of cells in natural order it is .65."""
    items, strata, reports = 40, 500, 8_000
    cells = Cells(items, strata, KEY)
    mechanism = build("ais", 2.0, len(cells), plan("ais", 2.0, len(cells), {}, Objective(), ""))
    group = np.arange(strata, dtype=np.uint64) + np.uint64(7 * strata)
    if order == "random":
        group = cells.number(np.full(strata, 7, dtype=np.uint64), np.arange(strata, dtype=np.uint64))
    outside = np.setdiff1d(np.arange(len(cells), dtype=np.uint64), group)[:1]
    made = mechanism.encode(np.repeat(outside, reports), SeededWords(5, 0))
    each = [mechanism.supports(made, np.full(reports, cell, dtype=np.uint64)) for cell in group]
    counts = mechanism.new_tally(columns := tally_items(mechanism))
    mechanism.accumulate(counts, made, columns)
    rows = mechanism.sums(Tally(counts, reports, columns), [group])
    assert isinstance(rows, Rows)
    ((_, law),) = rows.parts
    assert isinstance(law, SupportSums)
    ratio = np.sum(each, axis=0).var() / law.other_spread[0]
    assert (0.9 < ratio < 1.1) == (order == "random")


def test_items_cells_and_strata_are_counted_with_their_stated_errors(campaign: Campaign) -> None:
    drawn, reports, runs = np.random.default_rng(1), 6_000, 40
    values = [f"item {min(int(number), 24):02d}" for number in drawn.geometric(0.2, reports) - 1]
    by = [
        {"version": str(one), "platform": "linux"} if one != "2.2" else {}
        for one in drawn.choice(["2.1", "2.2"], reports)
    ]
    listed = campaign.read_dictionary()
    mechanism, items = campaign.require_frequency(), items_for(campaign, listed, values, by=by)
    columns = tally_items(mechanism)
    groups = [
        Group("item", ITEMS[:1]), Group("rest", ITEMS[1:]), Group("cell", ITEMS[:1], (("version", "2.1"),)),
        Group("stratum", ITEMS, (("version", "2.1"), ("platform", "linux"))),
        Group("nobody", ITEMS, (("version", "2.0"),)), Group("others", ITEMS, (("platform", "other"),)),
    ]  # fmt: skip
    pairs = list(zip(values, by, strict=True))
    truth = [
        sum(
            value in group.items and all(one.get(axis, "other") == at for axis, at in group.where)
            for value, one in pairs
        )
        for group in groups
    ]
    deviations = []
    for run in range(runs):
        counts = mechanism.new_tally(columns)
        mechanism.accumulate(counts, mechanism.encode(items, SeededWords(3, run)), columns)
        found = Counted(campaign, Tally(counts, reports, columns)).sums(groups)
        deviations.append((found.count - truth) / found.standard_error)
    z = np.array(deviations)
    assert (np.abs(z.mean(axis=0)) * runs**0.5 < FAR).all()
    # The variance of 40 normal deviates is within 0.2..2.6 with probability 1 - 1e-7.
    assert ((z.var(axis=0) > 0.2) & (z.var(axis=0) < 2.6)).all()


def test_one_report_tells_value_and_coordinates_and_other_values_are_other(campaign: Campaign) -> None:
    def client() -> Client:
        return Client(campaign, policy=Policy.trusting())

    several = (None, {}, {"version": 2.1}, {"version": "ä", "platform": "linux"})
    sizes = {len(client().report("item 03", by)) for by in several}
    assert sizes == {campaign.sealed_bytes("reports")}
    listed = campaign.read_dictionary()
    number = items_for(campaign, listed, ["item 03"], by=[{"version": 2.1}])
    assert number.tolist() == items_for(campaign, listed, ["item 03"], by=[{"version": "2.1"}]).tolist()
    assert items_for(campaign, listed, ["nobody"]).tolist() == [len(campaign.require_cells()) - 1]
    for by in (7, {"version": None}, {7: "linux"}):
        with pytest.raises(UsageError, match="must be"):
            client().report("item 03", by)  # type: ignore[arg-type]  # what an app may give
    with pytest.raises(UsageError, match="2 values, must be of 1"):
        client().reports(["item 03"], by=[{}, {}])


def test_a_policy_names_the_axes_of_a_campaign(campaign: Campaign) -> None:
    made = named_campaign("axes")
    terms = terms_of(made, (part(OPERATOR),))
    assert terms.axes == ("version", "platform")
    assert Policy(**dict(terms)).check(made, signed(made), moment(AT)) is not None
    for axes in ((), ("version",)):
        with pytest.raises(Untrusted, match="platform"):
            Policy(**dict(terms) | {"axes": axes}).check(made, signed(made), moment(AT))
    (said,) = (one for one in statement(campaign, 10_000, Senders("client-token")).plain if "version, platform" in one)
    assert "at the same figures" in said


def test_a_policy_names_the_public_axes_and_bounds_their_strata() -> None:
    made = named_campaign("public-axes")
    terms = terms_of(made, (part(OPERATOR),))
    assert (terms.axes, terms.public_axes, terms.public_strata) == (("platform",), ("version", "channel"), 64)
    assert Policy(**dict(terms)).check(made, signed(made), moment(AT)) is not None
    for wrong, said in (
        ({"public_axes": ("version",)}, "channel"),
        ({"public_axes": (), "axes": ("version", "platform", "channel")}, "openly by version and channel"),
        ({"axes": (), "public_axes": ("version", "platform", "channel")}, "down by platform"),
        ({"public_strata": 5}, "public strata of campaign .* is 6"),
    ):
        with pytest.raises(Untrusted, match=said):
            Policy(**dict(terms) | wrong).check(made, signed(made), moment(AT))


def test_a_report_tells_its_public_stratum_whatever_its_value_and_however_much_budget_is_left(tmp_path: Path) -> None:
    axes = [write_lines(tmp_path / f"{axis.name}.txt", axis.values) for axis in STRATA.axes]
    options = ("--public-by", f"version={axes[0]}", "--public-by", f"platform={axes[1]}")
    words, keys = write_lines(tmp_path / "words.txt", ITEMS), new_keys(tmp_path / "keys")
    campaign = Campaign.read(new_campaign(tmp_path / "told.json", keys, *options, dictionary=words))
    assert campaign.sealed_bytes("reports") == STRATUM_BYTES + 64 + campaign.require_frequency().report_bytes
    # The budget is spent before the first report.
    client = Client(campaign, policy=Policy.trusting(), budget=Budget(lifetime=0.0))
    told = {"version": "2.0", "platform": "linux"}
    made = [client.report("item 00", told)]
    made += [ManyClients(campaign).reports([value], by=[told]).tobytes() for value in ("nobody's", "", "item 01")]
    assert {report[:STRATUM_BYTES] for report in made} == {(2).to_bytes(STRATUM_BYTES, "little")}
    assert {len(report) for report in made} == {campaign.sealed_bytes("reports")}
    assert client.campaign.domain == len(ITEMS) + 1


def test_a_line_has_a_value_and_coordinates_in_the_order_of_the_axes(campaign: Campaign) -> None:
    assert measured(campaign, "a\t2.1") == Measurement("a", (("version", "2.1"),))
    assert dict(measured(campaign, "a\t2.1\tlinux\tx").by) == {"version": "2.1", "platform": "linux\tx"}
    assert Measurement.of("a", {"version": " 2", "Platform": "linux", "platform": "mac os"}).by == (
        ("platform", "mac os"),
    )


def test_too_many_strata_are_refused_with_their_product() -> None:
    axes = [{"name": name, "public": False, "values": [str(number) for number in range(15)]} for name in "abcd"]
    with pytest.raises(FormatError, match="16 x 16 x 16 x 16 = 65,536 strata, must be at most 4,096"):
        validated(AxesPart, {"listed": axes, "key": "0" * 64}, "it")


def test_what_cannot_be_broken_down_is_refused_before_a_file_is_written(tmp_path: Path) -> None:
    keys, words = new_keys(tmp_path / "keys"), write_lines(tmp_path / "words.txt", ITEMS)
    platforms, many = write_lines(tmp_path / "p.txt", ["linux"]), write_lines(tmp_path / "m.txt", map(str, range(5000)))
    long = write_lines(tmp_path / "l.txt", ["x" * 10_000_000])
    new = ("campaign", "new", "--id", "x", "--epsilon", 1, "--keys", keys, "--out", tmp_path / "x.json")
    grr = (*new, "--mechanism", "grr", "--dictionary", words)
    for by in ("platform", "=", f"Platform={platforms}", f"a={many}"):
        for option in ("--by", "--public-by"):
            refused(*grr, option, by, says=[option])
    refused(*grr, "--by", f"a={long}", says=["must be 1 to 64"])
    refused(*grr, "--by", f"a={write_lines(tmp_path / 'o.txt', ['other'])}", says=["o.txt", "beside other"])
    twice = write_lines(tmp_path / "twice.txt", ["x", "y", "other", "x"])
    refused(*grr, "--by", f"a={twice}", says=["coordinates 1 and 4", "'x'"])
    refused(*grr, "--by", f"a={write_lines(tmp_path / 'c.txt', ['x', 'a=b'])}", says=["coordinate 2", "'a=b'"])
    refused(
        "plan", "--epsilon", 1, "--reports", 1000, "--dictionary-size", 10**7, "--public-by", f"a={platforms}",
        says=["20,000,000 cells", "list fewer items"],
    )  # fmt: skip
    refused(*grr, "--by", f"a={tmp_path / 'none.txt'}", says=["none.txt"])
    refused(*grr, "--by", f"a={platforms}", "--by", f"a={platforms}", says=["different"])
    refused(*new, "--mechanism", "ais", "--open-domain", "--by", f"a={platforms}", says=["axes", "dictionary"])
    refused(*new, "--mechanism", "gcms", "--dictionary", words, "--by", f"a={platforms}", says=["sketch"])
    refused(*new, "--mean", "--number", "0:1", "--by", f"a={platforms}", says=["axes", "mean"])
    assert not (tmp_path / "x.json").exists()
