"""An engine may run again the step that draws, and so may another run: each draws the same of the same input."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from aux_server import keep
from hushcount.arrays import BoolArray
from tests.support.jobs import Chain, files_under, new_campaign, new_keys, refused, values_of, write_lines
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


def test_a_draw_that_is_made_again_is_the_same(chain: Chain, draws: list[BoolArray]) -> None:
    out = chain.discover("--party", "aux-server", out="again")
    first, second = (int(draw.sum()) for draw in draws)
    assert 0 < first == second < BINS
    rows = read_rows(out / "bins")
    assert len(rows) == len(as_set(rows)) == second
    (file,) = (out / "bins").iterdir()
    assert [name for name in files_under(out) if name.endswith(".blocks")] == [f"bins/{file.name}"]
    # Another run, also beside another ledger or one that lost the draw, makes the same file, in the same order.
    released = file.read_bytes()
    ledger = out.parent / "ledger.db"
    for name in ("plain", "charged", "lost"):
        more = () if name == "plain" else ("--ledger", ledger)
        shutil.rmtree(ledger.with_name("ledger.db.draws"), ignore_errors=True)
        made = chain.discover("--party", "aux-server", *more, out=name)
        (other,) = (made / "bins").iterdir()
        assert other.read_bytes() == released, name


def test_a_kept_draw_that_is_another_one_is_refused(chain: Chain, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    chain.discover("--party", "aux-server", "--ledger", ledger, out="first")
    (kept,) = (tmp_path / "ledger.db.draws").iterdir()
    kept.write_bytes(kept.read_bytes()[:-1] + b"?")
    again = (*chain.discover_arguments(out="second"), "--party", "aux-server", "--ledger", ledger)
    refused(*again, status=1, says=["its draw", "is another one", "second release"])
    # Also where the ledger does not know of a charge any more.
    ledger.unlink()
    refused(*again, status=1, says=["is another one", "second release"])
    assert not chain.path("second").exists()


def test_another_input_draws_anew(chain: Chain) -> None:
    """The same reports shuffled again are another input. Fails on right code with a probability below 1e-14."""
    first = as_set(read_rows(chain.discover("--party", "aux-server", out="one") / "bins"))
    shutil.rmtree(chain.path("shuffled"))
    chain.shuffle()
    assert as_set(read_rows(chain.discover("--party", "aux-server", out="two") / "bins")) != first
