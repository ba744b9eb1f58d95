"""`make unit` and `make test-rest` together are `make test-all`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.covered import BESIDE_JOBS

ROOT = Path(__file__).parents[2]
_TESTS = """
import os

import apache_beam as beam
import pytest

from pipelines.engine.runner import Engine


def run_a_job():
    with Engine().pipeline("analyze") as pipeline:
        pipeline | beam.Create([1])
    assert os.environ.get("ON") in (None, type(pipeline).__name__)


@pytest.fixture(scope="module")
def made():
    run_a_job()


@pytest.fixture
def from_made(made):
    return made


def test_no_job(subtests):
    with subtests.test(part="of it"):
        pass
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
_BESIDE_JOBS = """
import apache_beam as beam
import pytest

from pipelines.engine.runner import Engine


def is_on_beam():
    with Engine().pipeline("analyze") as pipeline:
        pipeline | beam.Create([1])
    return isinstance(pipeline, beam.Pipeline)


def test_beside(): assert not is_on_beam()


@pytest.mark.long
def test_long_beside(): assert not is_on_beam()


@pytest.mark.beam
@pytest.mark.long
def test_long_beside_on_beam(): assert is_on_beam()
"""
ONCE = {"test_no_job", "test_on_beam_in_both", "test_long[other]", "test_beside"}
AGAIN = {
    "test_job", "test_first_to_use_a_fixture", "test_second_to_use_a_fixture", "test_third_by_another_fixture",
    "test_forked", "test_long[plain]", "test_skipped", "test_expected_to_fail", "test_long_beside",
    "test_long_beside_on_beam",
}  # fmt: skip


def run(folder: Path, *options: object, **environment: str) -> set[str]:
    """Run tests of those above, and return their names."""
    done = subprocess.run(  # noqa: S603  # this interpreter, with the tests above
        [sys.executable, "-m", "pytest", "-v", "-c", folder / "pytest.ini", "-p", "tests.conftest",
         "-p", "no:cacheprovider", "-W", "ignore", "--rootdir", folder, *map(str, options), folder],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT), **environment}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return set(re.findall(r"::(\S+) (?!SUB)[A-Z]+ ", done.stdout))


@pytest.mark.long
def test_the_rest_is_what_did_not_run_or_would_run_on_another_engine(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(_TESTS)
    room = tmp_path / "tests" / "pipelines" / "monitoring"
    room.mkdir(parents=True)
    (room / "test_beside.py").write_text(_BESIDE_JOBS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    long(but)\n    beam\n")
    covered = tmp_path / "build" / "covered"
    run(tmp_path, "--workers", 2, "-m", "not long", "--covered-to", covered)
    assert {line.rpartition("::")[2] for line in covered.read_text().splitlines()} == ONCE
    assert run(tmp_path, "--engine", "beam", "--but", covered, ON="Pipeline") == AGAIN


def test_every_room_beside_the_jobs_is_there() -> None:
    assert all((ROOT / room).exists() for room in BESIDE_JOBS)
