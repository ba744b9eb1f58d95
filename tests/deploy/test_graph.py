"""What a job would send is clean, and a planted key, a lambda or a stranger's function is found."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest

from deploy.dataflow.graph_check import Checked, check
from hushcount.errors import HushcountError
from keys.directories import campaign_key, private_keys
from pipelines.handover.retired import RetiredBatch
from pipelines.jobs.analyze import plan_analyze
from pipelines.jobs.discover import plan_discover
from pipelines.jobs.job import Job, Place
from pipelines.jobs.shuffle import plan_shuffle
from tests.deploy.conftest import ROOT
from tests.support.jobs import Chain, new_keys

Planned = Job | RetiredBatch
JOBS: dict[str, Callable[[Chain, str], Planned]] = {
    "shuffle": lambda chain, out: plan_shuffle(chain.campaign_path, str(chain.path("encoded")), out),
    "analyze": lambda chain, out: plan_analyze(chain.campaign_path, str(chain.path("shuffled")), chain.keys, out),
    "release": lambda chain, out: plan_discover(
        chain.campaign_path, str(chain.path("shuffled")), chain.keys, out, party="aux-server"
    ),
    "reveal": lambda chain, out: plan_discover(
        chain.campaign_path, str(chain.path("released")), chain.keys, out, party="analyzer"
    ),
}
LOADED = {
    "shuffle": ("hushcount", "pipelines", "shuffler"),
    "analyze": ("analyzer", "hushcount", "keys", "pipelines"),
    "release": ("aux_server", "hushcount", "keys", "pipelines"),
    "reveal": ("analyzer", "hushcount", "keys", "pipelines"),
}


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.long
def test_every_step_opens_with_the_packages_alone_holds_no_key_and_loads_what_its_party_has(
    chain: Chain, tmp_path: Path, job: str
) -> None:
    planned = JOBS[job](chain, str(tmp_path / "out"))
    assert not isinstance(planned, RetiredBatch)
    pipeline = beam.Pipeline()
    planned.graph(pipeline, Place(str(tmp_path / "out")))
    assert check(pipeline.to_runner_api(), private_keys(chain.keys)) == Checked((), LOADED[job])


def secret_of(keys: Path, role: str) -> bytes:
    (path,) = keys.glob(f"{role}-*.key")
    return bytes.fromhex(json.loads(path.read_text())["secret"])


class Leaks(beam.DoFn):  # type: ignore[misc]  # apache_beam ships no types
    """Holds what it must not."""

    def __init__(self, held: object) -> None:
        self._held = held

    def process(self, element: bytes) -> list[bytes]:
        return [element]


def looked_into(
    *steps: Any, elements: Sequence[bytes] = (b"x",), keys: Path | None = None, forbidden: tuple[str, ...] = ()
) -> Checked:
    pipeline = beam.Pipeline()
    last = pipeline | beam.Create(elements)
    for index, step in enumerate(steps):
        last = last | f"step {index}" >> step
    return check(pipeline.to_runner_api(), private_keys(keys) if keys else (), forbidden=forbidden)


FORMS: dict[str, Callable[[bytes], object]] = {
    "raw": bytes,
    "part": lambda secret: secret[5:17],
    "hex": bytes.hex,
    "capital hex": lambda secret: secret.hex().upper(),
    "base64": base64.b64encode,
    "base64 of more": lambda secret: base64.urlsafe_b64encode(b"x" + secret),
    "written": repr,
}


def test_a_planted_key_is_found_in_every_form_and_its_step_named(chain: Chain) -> None:
    secret = secret_of(chain.keys, "aux_server")
    steps = [beam.Map(str, "nothing"), *(beam.Map(str, form(secret)) for form in FORMS.values())]
    checked = looked_into(*steps, keys=chain.keys)
    assert checked.problems == tuple(f"step 'step {index + 1}' holds a private key" for index in range(len(FORMS)))
    with pytest.raises(HushcountError, match=r"step 'step 1' holds a private key \(and 6 more\)") as caught:
        checked.require()
    assert secret.hex()[:16] not in str(caught.value)


@pytest.mark.long
def test_a_graph_without_the_key_is_not_suspected(chain: Chain, tmp_path: Path) -> None:
    other = secret_of(new_keys(tmp_path / "other"), "analyzer")
    checked = looked_into(beam.ParDo(Leaks(other)), keys=chain.keys)
    assert not [problem for problem in checked.problems if "private key" in problem]


@pytest.mark.long
def test_a_key_among_the_elements_is_found_too(chain: Chain) -> None:
    secret = secret_of(chain.keys, "analyzer")
    checked = looked_into(beam.Map(str), keys=chain.keys, elements=[secret])
    assert checked.problems[0].endswith(" holds a private key")


@pytest.mark.long
def test_a_lambda_a_local_function_and_a_function_of_a_test_are_named() -> None:
    def local(element: bytes) -> bytes:
        return element

    checked = looked_into(beam.Map(lambda element: element), beam.Map(local), beam.ParDo(Leaks("nothing")))
    named = {problem.split("'")[1] for problem in checked.problems}
    assert named == {"step 0", "step 1", "step 2"}
    for step, what in (
        ("step 0", "<lambda> is pickled with its code"),
        ("step 1", "local is pickled with its code"),
        ("step 2", "no module tests"),
        ("step 2", "refers to tests.deploy.test_graph.Leaks"),
    ):
        assert [problem for problem in checked.problems if step in problem and what in problem], (step, what)


SCRIPT = """
import apache_beam as beam
from deploy.dataflow.graph_check import check

def mine(element):
    return element

pipeline = beam.Pipeline()
pipeline | beam.Create([1]) | "the step" >> beam.Map(mine)
print(*check(pipeline.to_runner_api()).problems)
"""


@pytest.mark.long
def test_a_function_of_a_script_is_refused(tmp_path: Path) -> None:
    """A script's functions are those of __main__: they work where the script runs and nowhere else."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    ran = subprocess.run(  # noqa: S603  # our own script
        [sys.executable, str(script)], check=False, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert ran.stdout.startswith("step 'the step': "), ran.stderr
    assert "__main__.mine" in ran.stdout


@pytest.mark.long
def test_a_shuffler_that_loads_keys_is_refused(chain: Chain) -> None:
    reference = campaign_key(chain.keys, "analyzer", chain.campaign.keys.analyzer)
    checked = looked_into(beam.Map(str, reference), forbidden=("keys",))
    assert checked.problems == ("a step loads keys, which this party must not have",)
