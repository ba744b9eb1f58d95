"""Batches of an open domain in which discovery finds nothing: they are counted and charged, and the next ones go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from hushcount.campaigns.campaign import Campaign
from pipelines.jobs.results import read_tally
from tests.support.collecting import collect, window_name
from tests.support.jobs import done, estimates
from tests.support.site import Site

REPORTS = 200
ALL_DIFFERENT = [f"only {number}" for number in range(REPORTS)]


class OpenSite(Site):
    """With a campaign that counts what discovery found, and nothing else."""

    open_domain = True

    def __init__(self, root: Path, mechanism: str) -> None:
        self.mechanism = mechanism
        super().__init__(root, discovery=True)

    def results(self, day: int) -> Path:
        return self.store / "results" / "words" / self.batch(day)


@pytest.mark.parametrize("mechanism", ["ais", "olh"])
@pytest.mark.long(but=("ais",))
def test_batches_without_a_found_value_are_counted_with_no_item_and_a_good_one_follows(
    tmp_path: Path, mechanism: str
) -> None:
    """The good batch fails with probability below 1e-6: 200 clients are far above the threshold."""
    site = OpenSite(tmp_path, mechanism)
    collect(site.store, site.campaign, ALL_DIFFERENT, day=0)
    # Nobody sent discovery reports in the second window.
    collect(site.store, site.campaign, ALL_DIFFERENT, day=1, streams=["reports"])
    collect(site.store, site.campaign, ["popular"] * REPORTS, day=2)
    for day in range(3):
        assert site.run(day + 1.1).problems == []
    costs = [site.result(day)["ledger"]["charged"]["epsilon"] for day in range(3)]
    assert costs == [costs[2]] * 3
    for day in range(2):
        assert (site.result(day)["received"], site.result(day)["accepted"]) == (REPORTS, REPORTS)
        tally = read_tally(str(site.files("results", day) / "tally.npz"), Campaign.read(site.campaign))
        assert (tally.reports, tally.counts.shape, len(tally.items)) == (REPORTS, (1, 0), 0)
        assert (site.files("results", day) / "report.html").exists()
        assert not (site.files("results", day) / "estimates.csv").exists()
    assert list(estimates(site.results(2))) == ["popular"]
    assert "all numbers agree" in done("status", "--config", site.config).out
    asked = ("ask", "item", "--item", "popular", "--config", site.config, "--campaign", "words", "--json")
    assert [row["window"] for row in done(*asked).json["rows"]] == [window_name(2)]
