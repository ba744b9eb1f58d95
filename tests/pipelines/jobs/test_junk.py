"""Junk costs a hop neither memory nor disk without bound, and is counted to the last report."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.junk import HONEST, make_campaign, make_input, peak
from hushcount.campaigns.campaign import Campaign
from pipelines.jobs.analyze import plan_analyze
from pipelines.jobs.dead_letters import list_dead_letters
from pipelines.jobs.job import run
from pipelines.outputs import dead_letter_files
from tests.support.jobs import done, summary

JUNK = 400_000
"""At 414 bytes each they took 160 MiB."""


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_campaign(tmp_path_factory.mktemp("junk"))


@pytest.mark.long
def test_much_junk_takes_no_more_memory_than_none_and_is_counted(
    campaign: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The same engine opens both: the lanes' code takes memory of its own, and is made for the larger one only.
    monkeypatch.setenv("HUSHCOUNT_OPENING", "libsodium")
    peaks = []
    for number in (0, JUNK):
        source = make_input(tmp_path / f"in {number}", Campaign.read(campaign), number, sealed=False)
        peaks.append(peak(campaign, source, tmp_path / f"out {number}"))
    assert peaks[1] - peaks[0] < 50
    told = summary(tmp_path / f"out {JUNK}")
    assert (told["received"], told["accepted"], told["rejected"]) == (HONEST + JUNK, HONEST, {"wrong_campaign": JUNK})
    kept = told["dead_letters"]["reports"]["wrong_campaign"]
    assert kept["kept"] + kept["not_kept"] == JUNK
    (letter,) = list_dead_letters(str(tmp_path / f"out {JUNK}"))
    assert letter.records == kept["kept"]
    length = Campaign.read(campaign).sealed_bytes("reports")
    assert dead_letter_files.MOST_DEAD_BYTES - length < kept["kept"] * length <= dead_letter_files.MOST_DEAD_BYTES


def test_what_cannot_be_opened_is_kept_up_to_the_bound_too(
    campaign: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    length = Campaign.read(campaign).sealed_bytes("reports")
    monkeypatch.setattr(dead_letter_files, "MOST_DEAD_BYTES", 100 * length + 1)
    source = make_input(tmp_path / "in", Campaign.read(campaign), 250, sealed=True)
    told = run(plan_analyze(campaign, str(source), campaign.parent / "keys", str(tmp_path / "out")))
    assert told.rejected == {"not_opened": 250}
    assert told.dead_letters is not None
    assert told.dead_letters["reports"] == {"not_opened": {"kept": 100, "not_kept": 150}}
    assert [(letter.records, letter.not_kept) for letter in list_dead_letters(str(tmp_path / "out"))] == [(100, 150)]
    shown = " ".join(done("repair", "dead-letters", "--input", tmp_path / "out").out.split())
    assert "replay the reports that were kept" in shown
    assert "250" not in shown
    assert "150 reports were not kept: summary.json counts them, and they cannot be replayed" in shown
