"""What the model runs is what the engine runs: the same segments give the same outputs, all but what is drawn."""

from __future__ import annotations

import shutil
from pathlib import Path

from pipelines.deployment.settings import Deployment
from pipelines.schedule.run import run
from tests.model.actions import Collect, Pass
from tests.model.promises import Memory
from tests.model.seen import Output, outputs
from tests.model.world import Kind, world

_DRAWN = ("dead_letters", "released", "bins", "ledger", "folder", "made_from")


def test_jobs_that_run_at_once_put_out_what_the_engine_does(tmp_path: Path) -> None:
    with world(Kind()) as here:
        for action in (Collect(), Collect(0, True), Pass()):
            action.do(here, Memory())
        shutil.copytree(here.root, tmp_path / "other")
        assert here.run() is not None
        plain = {one.folder: one for one in outputs(here)}
        here.root, here.deployment = tmp_path / "other", Deployment.read(tmp_path / "other" / "deployment.toml")
    # From here on on the engine's own, which a world puts aside.
    assert run(here.deployment, now=here.now()).problems == []
    real = {one.folder: one for one in outputs(here)}
    assert plain.keys() == real.keys() == {"shuffled", "released", "found", "results"}
    for folder, one in plain.items():
        assert stated(one) == stated(real[folder])
        assert {name.split("/")[0] for name in one.files} == {name.split("/")[0] for name in real[folder].files}
    for stream in ("reports", "discovery"):
        assert sorted(plain["shuffled"].records(stream)) == sorted(real["shuffled"].records(stream))
    assert plain["shuffled"].summary["rejected"] == {"duplicate": 20}
    assert plain["results"].files["estimates.csv"] == real["results"].files["estimates.csv"]


def stated(one: Output) -> dict[str, object]:
    """Return what a summary says, without what is drawn or is of its time."""
    return {name: value for name, value in one.summary.items() if name not in _DRAWN and name != "upstream"}
