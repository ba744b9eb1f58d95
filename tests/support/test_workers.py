"""Tests that workers share: each is run once, and is reported as if one process had run all."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.workers import Shares

ROOT = Path(__file__).parents[2]
_TESTS = """
import os
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def made():
    (HERE / f"made-{os.getpid()}").touch()
    yield
    (HERE / f"gone-{os.getpid()}").touch()


@pytest.mark.parametrize("number", range(40))
def test_numbered(made, number, tmp_path, capfd, subtests):
    print("said by", number)
    with subtests.test(number=number):
        assert capfd.readouterr().out == f"said by {number}\\n"
    (HERE / f"ran-{number}-{os.getpid()}").touch()
    print("told by", number)
    assert number != 13


def test_skipped(): pytest.skip("here")


@pytest.mark.xfail
def test_expected_to_fail(): assert False


def test_of_a_fixture_that_fails(request): request.getfixturevalue("no_such_fixture")
"""


@settings(max_examples=25)
@given(tests=st.integers(0, 50), workers=st.integers(1, 5), data=st.data())
def test_in_any_order_of_work_each_test_is_taken_once(tests: int, workers: int, data: st.DataObject) -> None:
    shares, taken, idle = Shares(tests, workers), [], set()
    while len(idle) < workers:
        worker = data.draw(st.integers(0, workers - 1))
        number = shares.take(worker)
        if number is None:
            assert len(taken) == tests
            idle.add(worker)
        else:
            taken.append(number)
    assert sorted(taken) == list(range(tests))


def test_each_worker_begins_with_a_part_of_its_own_and_none_begins_after_a_stop() -> None:
    shares = Shares(30, 3)
    assert [shares.take(worker) for worker in (0, 1, 2, 0, 1, 2)] == [0, 10, 20, 1, 11, 21]
    shares.stop()
    assert [shares.take(worker) for worker in (0, 1, 2)] == [None, None, None]


def run(folder: Path, *options: str) -> tuple[int, dict[str, int], str]:
    """Return the status, how many tests came out how, and all that was printed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.support.workers"]
    done = subprocess.run(  # noqa: S603  # our own pytest
        [*command, "-c", os.devnull, "--rootdir", str(folder), *options, str(folder)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    counts = {name: int(number) for number, name in re.findall(r"(\d+) ([a-z ]+?)(?:,| in )", done.stdout)}
    return done.returncode, counts, done.stdout + done.stderr


def test_three_workers_report_what_one_process_does(tmp_path: Path) -> None:
    seen = {}
    for number in (1, 3):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "test_made.py").write_text(_TESTS)
        seen[number] = run(folder, "--workers", str(number))
        names = [path.name.split("-") for path in folder.glob("*-*")]
        workers = {name[-1] for name in names}
        assert len(workers) == number
        assert sorted(int(name[1]) for name in names if name[0] == "ran") == list(range(40))
        # What a module shares is made once in each worker, and ends there.
        assert {name[-1] for name in names if name[0] == "gone"} == workers
    assert seen[1][:2] == seen[3][:2]
    assert seen[3][1] == {"failed": 2, "passed": 39, "skipped": 1, "xfailed": 1, "subtests passed": 40}
    for _, _, printed in seen.values():
        assert "told by 13" in printed
        assert "told by 12" not in printed


@pytest.mark.parametrize(("dies", "ends"), [("os._exit(7)", "status 7"), ("time.sleep(600)", "status 1")])
def test_a_worker_that_dies_or_hangs_is_a_failure_of_its_test_and_others_go_on(
    tmp_path: Path, dies: str, ends: str
) -> None:
    (tmp_path / "test_dies.py").write_text(
        "import os, time, pytest\n"
        "@pytest.mark.parametrize('number', range(20))\n"
        f"def test_one(number): assert number != 3 or {dies}\n"
    )
    hangs = "-o", "faulthandler_timeout=2", "-o", "faulthandler_exit_on_timeout=true"
    status, counts, printed = run(tmp_path, "--workers", "2", *hangs)
    # The worker that dies takes its next test with it, if it had one: the other worker may have taken all before.
    assert (status, counts["failed"]) == (1, 1)
    assert counts["passed"] in (18, 19)
    assert re.search(rf"test_one\[3\] _+\n.*{ends}", printed)


@pytest.mark.long
def test_as_many_failures_as_asked_for_end_the_run(tmp_path: Path) -> None:
    (tmp_path / "test_fails.py").write_text(
        "import pytest\n@pytest.mark.parametrize('number', range(20))\ndef test_one(number): assert number != 3\n"
    )
    status, counts, printed = run(tmp_path, "--workers", "2", "--maxfail", "1")
    assert (status, counts["failed"]) == (1, 1)
    assert "stopping after 1 failures" in printed


@pytest.mark.long
def test_one_test_alone_needs_no_worker(tmp_path: Path) -> None:
    (tmp_path / "test_alone.py").write_text("def test_one(): pass\n")
    assert run(tmp_path, "--workers", "3")[:2] == (0, {"passed": 1})
