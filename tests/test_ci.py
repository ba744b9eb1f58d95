"""What CI runs, and what it need not run again: held against a repository and a record of their own."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.ci import programs

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def ci() -> Iterator[tuple[ModuleType, ModuleType]]:
    with programs("steps", "records") as (steps, records):
        yield steps, records


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    for path in (
        "keys/opening.py", "sealed_lanes/field.py", "requirements.lock", "docs/a.md", "tests/keys/test_a.py",
        "tests/sealed_lanes/test_a.py", "tests/engines/on_a.py",
    ):  # fmt: skip
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("one\n")
    git(root, "init", "--quiet")
    git(root, "add", ".")
    return root


def git(root: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *who, *words], cwd=root, check=True, stdin=subprocess.DEVNULL)  # noqa: S603, S607


def commit(root: Path, path: str = "") -> None:
    if path:
        (root / path).write_text("two\n")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--allow-empty", "--message", "a")


def test_after_a_green_run_only_a_change_of_what_it_tests_runs_a_suite_again(
    ci: tuple[ModuleType, ModuleType], repository: Path, tmp_path: Path
) -> None:
    records, cache = ci[1], tmp_path / "cache"
    commit(repository)
    assert records.unchanged(repository, cache) == {}
    suites = {"engines", "containers", "lanes"}
    records.write(repository, cache, ["", *suites], {})
    assert set(records.unchanged(repository, cache)) == suites
    for path, left in {
        "docs/a.md": suites,
        "tests/keys/test_a.py": suites,
        "tests/engines/on_a.py": {"lanes"},
        "keys/opening.py": {"lanes"},
        "tests/sealed_lanes/test_a.py": {"engines", "containers"},
        "sealed_lanes/field.py": set(),
        "requirements.lock": set(),
    }.items():
        commit(repository, path)
        assert set(records.unchanged(repository, cache)) == left, path
        records.write(repository, cache, suites, {})


def test_a_week_after_a_damaged_record_and_files_that_are_not_committed_everything_runs(
    ci: tuple[ModuleType, ModuleType], repository: Path, tmp_path: Path
) -> None:
    records, cache = ci[1], tmp_path / "cache"
    commit(repository)
    for wrong in ("", "[]", "{", '{"engines": {"digest": 1}}', '{"engines": 1}'):
        cache.mkdir(exist_ok=True)
        (cache / "green.json").write_text(wrong)
        assert records.unchanged(repository, cache) == {}
    records.write(repository, cache, ["engines"], {})
    kept = json.loads((cache / "green.json").read_text())
    for days, runs_again in ((6.9, False), (7.1, True), (-1, True)):
        kept["engines"]["at"] = time.time() - days * 86_400
        (cache / "green.json").write_text(json.dumps(kept))
        assert (records.unchanged(repository, cache) == {}) == runs_again, days
        # A suite that did not run keeps its day.
        if not runs_again:
            records.write(repository, cache, ["containers"], records.unchanged(repository, cache))
            assert json.loads((cache / "green.json").read_text())["engines"] == kept["engines"]
    records.write(repository, cache, ["engines"], {})
    (repository / "keys" / "opening.py").write_text("three\n")
    assert records.unchanged(repository, cache) == {}
    records.write(repository, cache, ["containers"], {})
    assert "containers" not in json.loads((cache / "green.json").read_text())


@pytest.mark.parametrize("suite", ["containers", "engines"])
def test_a_suite_has_every_file_that_its_tests_import(ci: tuple[ModuleType, ModuleType], suite: str) -> None:
    imported = reached(sorted((ROOT / "tests" / suite).rglob("*.py")))
    assert {f"tests/{suite}/conftest.py", "tests/support/jobs.py", "tests/conftest.py"} <= imported
    assert [path for path in sorted(imported) if not ci[1].SUITES[suite].has(path)] == []


def test_the_suite_of_the_bundlers_has_the_collector_of_its_pages(ci: tuple[ModuleType, ModuleType]) -> None:
    imported = reached([ROOT / "clients" / "typescript" / "tests" / "real" / "serve.py"])
    assert "tests/shuffler/collector/running.py" in imported
    assert [path for path in sorted(imported) if not ci[1].SUITES["bundlers"].has(path)] == []


def test_tests_of_the_lanes_import_nothing_else_of_the_project() -> None:
    """A change of another file cannot change what they say. A contract holds the same for the library."""
    for path in (ROOT / "tests" / "sealed_lanes").glob("*.py"):
        imported = re.findall(r"^ *(?:from|import) ([\w.]+)", path.read_text("utf-8"), re.MULTILINE)
        ours = {name for name in imported if (ROOT / name.partition(".")[0]).is_dir()}
        assert not {name for name in ours if not re.match(r"(tests\.)?sealed_lanes\b", name)}, path


def reached(files: list[Path]) -> set[str]:
    """Return these modules of tests and examples, and all that they import of those."""
    found: set[Path] = set()
    while files:
        path = files.pop()
        if path in found or not path.exists():
            continue
        found.add(path)
        files += [folder / "conftest.py" for folder in path.parents if ROOT in (folder, *folder.parents)]
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{name.name}" for name in node.names)]
            else:
                names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                if name.partition(".")[0] in ("tests", "examples"):
                    files.append(ROOT / f"{name.replace('.', '/')}.py")
    return {path.relative_to(ROOT).as_posix() for path in found}


def test_a_step_that_fails_ends_the_run_and_what_is_missing_is_said(
    ci: tuple[ModuleType, ModuleType],
    repository: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    steps = ci[0]
    commit(repository)
    step = steps.Step
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(steps, "ROOT", repository)
    monkeypatch.setattr(steps, "LOGS", tmp_path / "logs")
    monkeypatch.setattr(steps, "FIRST", (step("first", "echo one; exit 0", 1),))
    fetching = (
        step("lost", "exit 1", 1, may_fail=True, unless="nothing was built"),
        step("twice", "test -e $XDG_CACHE_HOME/twice || { touch $XDG_CACHE_HOME/twice; exit 1; }", 1, tries=2),
    )
    monkeypatch.setattr(steps, "BESIDE", fetching)
    checks = (
        step("no program", "exit 1", 1, needs=("no-such-program",)),
        step("no fetched", "exit 1", 1, after="lost"),
        step("suite", "echo suite ran", 1, after="twice", suite="engines"),
    )
    monkeypatch.setattr(steps, "CHECKS", checks)
    assert steps.main() == 0
    said = capfd.readouterr().out
    for words in ("no-such-program", "nothing was built", "no fetched: without lost", "AGAIN: twice", "suite ran"):
        assert words in said
    assert set(json.loads((tmp_path / "hushcount-ci" / "green.json").read_text())) == {"engines"}
    commit(repository, "keys/opening.py")
    monkeypatch.setattr(steps, "CHECKS", (*checks, step("red", "exit 3", 1), step("later", "echo later ran", 1)))
    assert steps.main() == 1
    said = capfd.readouterr().out
    assert "FAILED: red: exit 3" in said
    assert "later ran" not in said
    # What was green in a run that was not is no record.
    assert ci[1].unchanged(repository, tmp_path / "hushcount-ci") == {}


def test_what_waits_runs_beside_the_checks_and_a_red_one_of_it_is_no_green_run(
    ci: tuple[ModuleType, ModuleType],
    repository: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = ci[0]
    commit(repository)
    step = steps.Step
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(steps, "ROOT", repository)
    monkeypatch.setattr(steps, "LOGS", tmp_path / "logs")
    monkeypatch.setattr(steps, "FIRST", ())
    # Each waits until the other has begun.
    until = "touch $XDG_CACHE_HOME/{}; until test -e $XDG_CACHE_HOME/{}; do sleep 0.05; done"
    images = step("images", 'test -z "$PYTEST_DEBUG_TEMPROOT"', 1)
    containers = step("containers", until.format("one", "two"), 1, 1, after="images", suite="containers")
    # And its tests write in a folder that goes with the run.
    where = "test -d $PYTEST_DEBUG_TEMPROOT || exit 1; echo $PYTEST_DEBUG_TEMPROOT >> $XDG_CACHE_HOME/where; "
    check = step("check", f"{where}{until.format('two', 'one')}", 1, 1, in_memory=True)
    monkeypatch.setattr(steps, "CHECKS", (check,))
    record = tmp_path / "hushcount-ci" / "green.json"
    for beside, status in (
        ((images, replace(containers, line="exit 1")), 1),
        ((replace(images, line="exit 1"), containers), 1),
        ((images, containers), 0),
    ):
        monkeypatch.setattr(steps, "BESIDE", beside)
        if status:
            (tmp_path / "one").touch()
        else:
            (tmp_path / "one").unlink()
        (tmp_path / "two").unlink(missing_ok=True)
        assert steps.main() == status
        assert record.exists() == (not status)
    assert set(json.loads(record.read_text())) == {"containers"}
    folders = {Path(line) for line in (tmp_path / "where").read_text().splitlines()}
    assert {folder.parent for folder in folders} == {steps.memory() or Path(tempfile.gettempdir())}
    assert not [folder for folder in folders if folder.exists()]
    # What has not begun when a check is red never does.
    slow = step("slow", "touch $XDG_CACHE_HOME/slow; sleep 2", 1)
    late = step("late", "touch $XDG_CACHE_HOME/late", 1)
    monkeypatch.setattr(steps, "BESIDE", (slow, late))
    monkeypatch.setattr(
        steps, "CHECKS", (replace(check, line="until test -e $XDG_CACHE_HOME/slow; do :; done; exit 1"),)
    )
    assert steps.main() == 1
    assert not (tmp_path / "late").exists()


def test_a_step_that_hangs_is_ended_with_all_its_processes(ci: tuple[ModuleType, ModuleType]) -> None:
    ran = ci[0].run(ci[0].Step("hangs", "sleep 600 & sleep 600", 1, minutes=0.005), {})
    assert ran.outcome == "red"
    assert ran.wall < 600


def test_contributors_read_the_sum_of_all_budgets(ci: tuple[ModuleType, ModuleType]) -> None:
    page = " ".join((ROOT / "docs" / "contributors.md").read_text("utf-8").split())
    assert f"{ci[0].budget():,} CPU seconds" in page
