"""An engine may run again the step that draws: what it drew before gets out neither without a ledger nor with one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aux_server import keep
from hushcount.arrays import BoolArray
from tests.support.jobs import Chain, done, files_under, new_campaign, new_keys, values_of, write_lines
from tests.support.plain_engine import PlainPipeline
from tests.support.records import as_set, read_rows

DRAW = "release/keep"
BINS = 60


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Chain:
    """Return a collection of bins that are each kept with 0.3 to 0.7: two draws are equal below 1e-14."""
    root = tmp_path_factory.mktemp("twice")
    keys = new_keys(root / "keys")
    chain = Chain(new_campaign(root / "twice.json", keys, mechanism=None, discovery=1.0), keys)
    rule = chain.campaign.require_keep_rule()
    middle = min(range(1, 500), key=lambda count: abs(rule.keep_probability(count) - 0.5))
    assert 0.3 < rule.keep_probability(middle) < 0.7
    chain.encode(write_lines(root / "values.txt", values_of({f"value {index}": middle for index in range(BINS)})))
    chain.shuffle()
    return chain


@pytest.fixture
def draws(monkeypatch: pytest.MonkeyPatch) -> list[BoolArray]:
    """Let an engine run all from the draw on a second time, when the first is written, and note each draw."""
    noted: list[BoolArray] = []
    draw, run = keep.draw_kept, PlainPipeline.run

    def noting(*arguments: Any) -> BoolArray:
        noted.append(draw(*arguments))
        return noted[-1]

    def run_twice(pipeline: PlainPipeline) -> PlainPipeline:
        run(pipeline)
        names = [name for name, _ in pipeline._steps]
        if DRAW in names:
            pipeline._steps = pipeline._steps[names.index(DRAW) :]
            run(pipeline)
        return pipeline

    monkeypatch.setattr(keep, "draw_kept", noting)
    monkeypatch.setattr(PlainPipeline, "run", run_twice)
    return noted


def test_a_draw_that_was_made_again_is_the_only_one_that_gets_out(chain: Chain, draws: list[BoolArray]) -> None:
    out = chain.discover("--party", "aux-server", out="again")
    first, second = (int(draw.sum()) for draw in draws)
    assert (draws[0] != draws[1]).any()
    rows = read_rows(out / "bins")
    assert len(rows) == len(as_set(rows)) == second
    # No other file has records of the first draw, nor has a hidden folder.
    (file,) = (out / "bins").iterdir()
    assert [name for name in files_under(out) if name.endswith(".blocks")] == [f"bins/{file.name}"]
    assert not [path for path in out.parent.iterdir() if path.name.startswith(".")]
    assert first > 0


def test_with_a_ledger_a_job_that_runs_again_hands_out_the_first_draw_that_was_kept(
    chain: Chain, draws: list[BoolArray], tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger.db"
    name = chain.campaign.id
    done("ledger", "set", "--ledger", ledger, "--campaign", name, "--epsilon", 2.5, "--delta", 1e-6)
    kept = []
    for out in ("charged", "retried"):
        made = chain.discover("--party", "aux-server", "--ledger", ledger, out=out)
        kept.append(as_set(read_rows(made / "bins")))
    assert len(draws) == 4
    assert kept[0] == kept[1]
    assert len(kept[0]) == int(draws[1].sum())
