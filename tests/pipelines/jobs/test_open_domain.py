"""An open domain without a sketch: affine reports of 16 bytes, counted for the items that analyze is given."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from hushcount.oracles.tally import load
from tests.pipelines.conftest import LISTED, POPULAR, TOTAL, World
from tests.support.jobs import ALPHA, Chain, done, estimates, new_campaign, refused, summary, write_lines

ASKED = {**LISTED, **POPULAR, "never sent": 0}


@pytest.fixture(scope="module", params=["ais", "ocms"])
def chain(request: pytest.FixtureRequest, world: World, tmp_path_factory: pytest.TempPathFactory) -> Chain:
    # A folder for each time that a worker makes it: tests of other parameters may come between.
    folder = tmp_path_factory.mktemp("sketchless")
    path = new_campaign(folder / "campaign.json", world.keys, mechanism=request.param, discovery=1.0)
    made = Chain(path, world.keys)
    made.encode(world.values)
    made.shuffle()
    return made


@pytest.mark.long(but=("ocms",))
def test_estimates_hold_the_truth_for_listed_unlisted_and_never_sent_items(chain: Chain, world: World) -> None:
    """Bernstein's inequality for sums of independent bits, two sides, all items together: fails below ALPHA."""
    results = chain.analyze("--items", world.items, out="asked")
    mechanism, rows = chain.campaign.require_frequency(), estimates(results)
    assert list(rows) == list(ASKED)
    log = math.log(2.0 * len(ASKED) / ALPHA)
    step = 1.0 / (mechanism.p_star - mechanism.q_star)

    def agrees(truth: dict[str, int]) -> bool:
        bounds = {
            item: math.sqrt(2.0 * log * float(mechanism.variance(TOTAL, held / TOTAL)) + (log * step / 3.0) ** 2)
            + log * step / 3.0
            for item, held in truth.items()
        }
        return all(abs(rows[item]["count"] - held) <= bounds[item] for item, held in truth.items())

    assert agrees(ASKED)
    assert not agrees(dict(zip(ASKED, reversed(ASKED.values()), strict=True)))
    assert all(row["collision_error"] == 0.0 for row in rows.values())
    assert mechanism.report_bytes == 16
    assert summary(results)["detected"] >= 2


def test_the_same_reports_give_the_same_counts_whatever_else_is_asked(
    chain: Chain, world: World, tmp_path: Path
) -> None:
    fewer = write_lines(tmp_path / "fewer.txt", ["never sent", "alpha", "plantedsecret"])
    few = estimates(chain.analyze("--items", fewer, out="few"))
    many = estimates(chain.analyze("--items", world.items, out="many"))
    assert {item: row["count"] for item, row in few.items()} == {item: many[item]["count"] for item in few}
    with (chain.path("few") / "tally.npz").open("rb") as stream:
        tally = load(stream, chain.campaign.fingerprint)
    assert tally.counts.shape == (1, 3)
    assert np.all(np.diff(tally.items.astype(object)) > 0)


def test_analyze_without_items_says_what_to_give_and_writes_nothing(chain: Chain) -> None:
    refused(*chain.analyze_arguments(out="none"), says=["--items", "--found"])
    assert not chain.path("none").exists()


def test_what_discovery_found_can_be_counted(chain: Chain) -> None:
    found = chain.discover()
    rows = estimates(chain.analyze("--found", found, out="of-found"))
    assert set(POPULAR) <= set(rows)


def test_a_stored_tally_answers_for_what_was_counted_and_for_nothing_else(
    chain: Chain, world: World, tmp_path: Path
) -> None:
    counted = write_lines(tmp_path / "counted.txt", ["alpha", "beta"])
    first = estimates(chain.analyze("--items", counted, out="counted"))
    arguments = ("job", "estimate", "--campaign", chain.campaign_path, "--tally", chain.path("counted") / "tally.npz")
    again = tmp_path / "again"
    done(*arguments, "--items", write_lines(tmp_path / "one.txt", ["beta"]), "--out", again)
    assert estimates(again)["beta"]["count"] == first["beta"]["count"]
    refused(*arguments, "--items", world.items, "--out", tmp_path / "other", says=["'gamma'", "2 items"])
    assert not (tmp_path / "other").exists()
