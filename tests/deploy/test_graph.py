"""hushcount graph: what a job would send is clean, and a planted key, a lambda or a stranger's function is found."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest

from hushcount.errors import HushcountError
from keys.store import campaign_key, private_keys
from pipelines.graph.check import PROJECT, Checked, check
from tests.deploy.conftest import ROOT
from tests.support.jobs import Chain, done, files_under, new_keys, refused


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """The client's wheel and the parties', built outside the checkout so that nothing is left in it."""
    root = tmp_path_factory.mktemp("wheels")
    (root / "tree").mkdir()
    for name in (*PROJECT, "setup.py", "pyproject.toml", "README.md", "LICENSE"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, root / "tree" / name)
    for folder in (root / "tree" / "hushcount", root / "tree"):
        command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(root), str(folder)]
        built = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # our own packages
        assert built.returncode == 0, built.stdout + built.stderr
    client, parties = sorted(root.glob("*.whl"))
    return client, parties


def given(wheels: tuple[Path, ...]) -> list[object]:
    return [word for wheel in wheels for word in ("--wheel", wheel)]


def asked(chain: Chain, job: str, *more: object) -> tuple[object, ...]:
    source = {"shuffle": "encoded", "analyze": "shuffled", "discover": "shuffled"}[job]
    keys = () if job == "shuffle" else ("--keys", chain.keys)
    return ("graph", job, "--campaign", chain.campaign_path, "--input", chain.path(source), *keys, *more)


JOBS: dict[str, Callable[[Chain], tuple[object, ...]]] = {
    "shuffle": lambda chain: asked(chain, "shuffle"),
    "analyze": lambda chain: asked(chain, "analyze"),
    "release": lambda chain: asked(chain, "discover", "--party", "aux-server"),
    "reveal": lambda chain: asked(chain, "discover", "--party", "analyzer", "--input", chain.path("released")),
}
LOADED = {
    "shuffle": ["hushcount", "pipelines", "shuffler"],
    "analyze": ["analyzer", "hushcount", "keys", "pipelines"],
    "release": ["aux_server", "hushcount", "keys", "pipelines"],
    "reveal": ["analyzer", "hushcount", "keys", "pipelines"],
}
CARRIED = {
    "shuffle": "shuffler.separate.Separate",
    "analyze": "analyzer.open_reports.OpenReports",
    "release": "aux_server.open_pairs.OpenPairs",
    "reveal": "analyzer.reveal.Reveal",
}


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.long
def test_every_step_opens_with_the_wheels_alone_holds_no_key_and_loads_what_its_party_has(
    chain: Chain, wheels: tuple[Path, ...], job: str
) -> None:
    told = done(*JOBS[job](chain), *given(wheels), "--json").json
    assert told["problems"] == []
    assert [step for step in told["steps"] if step["problems"]] == []
    assert CARRIED[job] in [name for step in told["steps"] for name in step["carries"]]
    assert told["opened_with"] == ", ".join(map(str, wheels))
    assert told["pickles_opened"] > 20
    assert told["packages_loaded"] == LOADED[job]


@pytest.mark.long
def test_building_a_graph_writes_nothing_and_names_steps_and_keys(chain: Chain) -> None:
    before = files_under(chain.campaign_path.parent)
    run = done(*JOBS["analyze"](chain), "--out", chain.path("never"))
    assert files_under(chain.campaign_path.parent) == before
    assert not chain.path("never").exists()
    assert "OpenReports" in run.out.replace("\n", "")
    assert all(key.id in run.out for key in private_keys(chain.keys))


@pytest.mark.long
def test_a_wheel_without_a_module_that_a_step_needs_is_refused_by_the_steps_name(
    chain: Chain, wheels: tuple[Path, ...], tmp_path: Path
) -> None:
    client, parties = wheels
    poorer = tmp_path / parties.name
    with zipfile.ZipFile(parties) as full, zipfile.ZipFile(poorer, "w") as less:
        for name in full.namelist():
            if name != "analyzer/open_reports.py":
                less.writestr(name, full.read(name))
    run = refused(*JOBS["analyze"](chain), *given((client, poorer)), status=1, says=["'open/ParDo(OpenReports)'"])
    assert "analyzer.open_reports" in run.err


@pytest.mark.parametrize(("index", "lacking"), [(0, "pipelines"), (1, "hushcount")])
@pytest.mark.long
def test_one_of_the_two_wheels_is_not_enough_for_a_worker(
    chain: Chain, wheels: tuple[Path, ...], index: int, lacking: str
) -> None:
    says = [lacking]
    refused(*JOBS["analyze"](chain), "--wheel", wheels[index], status=1, says=says)


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
    holders = [step.name for step in checked.steps if "holds a private key" in step.problems]
    assert holders == [f"step {index + 1}" for index in range(len(FORMS))]
    with pytest.raises(HushcountError, match="step 'step 1': holds a private key") as caught:
        checked.require()
    assert secret.hex()[:16] not in str(caught.value)


@pytest.mark.long
def test_a_graph_without_the_key_is_not_suspected(chain: Chain, tmp_path: Path) -> None:
    other = secret_of(new_keys(tmp_path / "other"), "analyzer")
    checked = looked_into(beam.ParDo(Leaks(other)), keys=chain.keys)
    assert not [step for step in checked.steps if "holds a private key" in step.problems]


@pytest.mark.long
def test_a_key_among_the_elements_is_found_too(chain: Chain) -> None:
    secret = secret_of(chain.keys, "analyzer")
    checked = looked_into(beam.Map(str), keys=chain.keys, elements=[secret])
    assert "holds a private key" in {problem for step in checked.steps for problem in step.problems}


@pytest.mark.long
def test_a_lambda_a_local_function_and_a_function_of_a_test_are_named() -> None:
    def local(element: bytes) -> bytes:
        return element

    checked = looked_into(beam.Map(lambda element: element), beam.Map(local), beam.ParDo(Leaks("nothing")))
    problems = {step.name: " ".join(step.problems) for step in checked.steps if step.problems}
    assert set(problems) == {"step 0", "step 1", "step 2"}
    assert "lambda" in problems["step 0"]
    assert "local" in problems["step 1"]
    assert "tests.deploy.test_graph.Leaks" in problems["step 2"]


SCRIPT = """
import apache_beam as beam
from pipelines.graph.check import check

def mine(element):
    return element

pipeline = beam.Pipeline()
pipeline | beam.Create([1]) | "the step" >> beam.Map(mine)
print([one.name for one in check(pipeline.to_runner_api()).steps if one.problems])
"""


@pytest.mark.long
def test_a_function_of_a_script_is_refused(tmp_path: Path) -> None:
    """A script's functions are those of __main__: they work where the script runs and nowhere else."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    ran = subprocess.run(  # noqa: S603  # our own script
        [sys.executable, str(script)], check=False, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert ran.stdout.strip() == "['the step']", ran.stderr


@pytest.mark.long
def test_a_shuffler_that_loads_keys_is_refused(chain: Chain) -> None:
    reference = campaign_key(chain.keys, "analyzer", chain.campaign.keys.analyzer)
    checked = looked_into(beam.Map(str, reference), forbidden=("keys",))
    assert checked.problems == ("a step loads keys, which this party must not have",)


def test_refusals_say_what_is_missing(chain: Chain, tmp_path: Path) -> None:
    common = ("--campaign", chain.campaign_path, "--input", chain.path("shuffled"))
    refused("graph", "analyze", *common, says=["--keys is missing"])
    refused("graph", "shuffle", *common, "--keys", chain.keys, says=["--keys", "shuffle"])
    refused("graph", "discover", *common, "--keys", chain.keys, says=["aux-server or analyzer"])
    refused("graph", "analyze", *common, "--keys", tmp_path, says=["key"])
    refused(*JOBS["analyze"](chain), "--wheel", tmp_path / "none.whl", says=["wheel", "No such file"])
