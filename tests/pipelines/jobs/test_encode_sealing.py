"""What seals the lines of `encode`: lanes where there are enough boxes, libsodium else."""

from __future__ import annotations

from pathlib import Path

import pytest

from keys.opening_engines import VARIABLE
from tests.pipelines.conftest import ON_BEAM
from tests.support.jobs import Chain, done, new_campaign, new_keys, refused, summary, write_lines
from tests.support.opening import FakeLanes, put_lanes

LINES = ["alpha"] * 60 + ["beta"] * 40 + [f"new {number % 10}" for number in range(20)]


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "values.txt", LINES)


def chain(root: Path, *options: object) -> Chain:
    """A campaign of both streams."""
    words = write_lines(root / "words.txt", ["alpha", "beta"])
    keys = new_keys(root / "keys")
    path = new_campaign(root / "campaign.json", keys, *options, dictionary=words, discovery=1.0)
    return Chain(path, keys)


@pytest.mark.parametrize(
    "options",
    [(), pytest.param((), marks=ON_BEAM), ("--memory",)],
    ids=["of any clients", "on Beam", "of clients that remember"],
)
def test_enough_boxes_are_sealed_in_lanes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lines: Path, options: tuple[str, ...]
) -> None:
    lanes, made = FakeLanes(), chain(tmp_path, *options)
    put_lanes(monkeypatch, lambda: lanes, 2 * len(LINES))
    done("job", "encode", "--campaign", made.campaign_path, "--values", lines, "--out", made.path("encoded"))
    # A report of each stream for each line. The boxes in the second: ten new values, and 100 of no value.
    assert sum(lanes.sealed) == 2 * len(LINES) + 10 + 100
    made.shuffle()
    assert summary(made.analyze())["accepted"] == len(LINES)


def test_nothing_is_made_for_few_boxes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lines: Path) -> None:
    made = chain(tmp_path)
    put_lanes(monkeypatch, lambda: pytest.fail("the lanes were made"), 2 * len(LINES) + 1)
    made.encode(lines)


def test_an_unknown_engine_is_refused_before_any_work(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lines: Path
) -> None:
    made = chain(tmp_path)
    monkeypatch.setenv(VARIABLE, "lanes")
    arguments = ("--campaign", made.campaign_path, "--values", lines, "--out", tmp_path / "encoded")
    refused("job", "encode", *arguments, says=["HUSHCOUNT_OPENING is 'lanes'", "libsodium"])
    assert not (tmp_path / "encoded").exists()


def test_an_evaluator_is_left_alone_where_nothing_is_discovered(tmp_path: Path, lines: Path) -> None:
    words, keys = write_lines(tmp_path / "words.txt", ["alpha", "beta"]), new_keys(tmp_path / "keys")
    path = new_campaign(tmp_path / "counts.json", keys, dictionary=words)
    out = tmp_path / "encoded"
    done("job", "encode", "--campaign", path, "--values", lines, "--out", out, "--evaluator", tmp_path / "no-such-keys")
    assert summary(out)["accepted"] == len(LINES)
