"""`make unit` and `make test-rest` together are `make test-all`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_TESTS = """
import os

import apache_beam as beam
import pytest

from pipelines.engine.runner import Engine


def run_a_job():
    with Engine().pipeline("analyze") as pipeline:
        pipeline | beam.Create([1])


@pytest.fixture(scope="module")
def made():
    run_a_job()


@pytest.fixture
def from_made(made):
    return made


def test_no_job(): pass
def test_job(): run_a_job()
def test_first_to_use_a_fixture(made): pass
def test_second_to_use_a_fixture(made): pass
def test_third_by_another_fixture(from_made): pass


def test_forked():
    child = os.fork()
    if child == 0:
        run_a_job()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.beam
def test_on_beam_in_both(): run_a_job()


@pytest.mark.parametrize("case", ["plain", "other"])
@pytest.mark.long(but=["other"])
def test_long(case): pass


def test_skipped(): pytest.skip("here")


@pytest.mark.xfail
def test_expected_to_fail(): assert False
"""


def run(folder: Path, *options: object) -> list[str]:
    """Return the lines that pytest prints about the tests above."""
    done = subprocess.run(  # noqa: S603  # this interpreter, with the tests above
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider", "-W", "ignore",
         "--rootdir", folder, *map(str, options), folder / "test_some.py"],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.mark.long
def test_the_rest_is_what_did_not_run_or_would_run_on_another_engine(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(_TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    long(but)\n    beam\n")
    covered, options = tmp_path / "build" / "covered", ["-c", tmp_path / "pytest.ini", "--collect-only"]
    run(tmp_path, *options[:2], "-n", 2, "-m", "not long", "--covered-to", covered)

    everything = {line for line in run(tmp_path, *options) if "::" in line}
    rest = {line for line in run(tmp_path, *options, "--engine", "beam", "--but", covered) if "::" in line}
    assert {line.rpartition("::")[2] for line in everything - rest} == {
        "test_no_job", "test_on_beam_in_both", "test_long[other]",
    }  # fmt: skip
    assert rest | set(covered.read_text().splitlines()) == everything
