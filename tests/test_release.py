"""What `make release` builds from, refuses and says, and the workflows of a public forge."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from hushcount import __version__
from hushcount.formats.reading import read_mapping
from tests.support.ci import programs

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TOOLS = ROOT / "build" / "tools"


@pytest.fixture(scope="module")
def ci() -> Iterator[tuple[ModuleType, ModuleType]]:
    with programs("release", "versions") as (release, versions):
        yield release, versions


# Versions.


def test_every_file_has_the_version_that_the_client_says(ci: tuple[ModuleType, ModuleType]) -> None:
    _, versions = ci
    assert versions.version(ROOT) == __version__
    assert versions.faults(ROOT) == []


def test_a_version_is_written_into_every_file_and_one_that_lacks_it_is_named(
    ci: tuple[ModuleType, ModuleType], tmp_path: Path
) -> None:
    _, versions = ci
    for name in versions.places(ROOT):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for words in (("init", "--quiet"), ("add", ".")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)  # noqa: S603, S607
    versions.write(tmp_path, "7.8.9rc1")
    assert versions.faults(tmp_path) == []
    assert 'version = "7.8.9rc1"' in (tmp_path / "pyproject.toml").read_text()
    assert "hushcount-shuffler:${VERSION:-7.8.9rc1}" in (tmp_path / "deploy/compose/compose.yaml").read_text()
    left = [path for path in tmp_path.rglob("*") if path.is_file() and ".git" not in path.parts]
    named = [path for path in left if re.search(rf"hushcount\S*\b{re.escape(__version__)}\b", path.read_text())]
    assert named == []
    package = tmp_path / "clients/typescript/package.json"
    package.write_text(package.read_text().replace("7.8.9rc1", "7.8.8"))
    assert versions.faults(tmp_path) == ["clients/typescript/package.json has the version 7.8.8, must have 7.8.9rc1"]
    with pytest.raises(SystemExit, match=r"version is 1\.2, must be as"):
        versions.write(tmp_path, "1.2")


def test_an_extra_that_a_document_names_exists_and_is_installed_from_the_checkout() -> None:
    pages = [
        ROOT / "README.md",
        ROOT / "hushcount" / "README.md",
        *(ROOT / "docs").glob("*.md"),
        *ROOT.glob("deploy/*.md"),
    ]
    named = [match for page in pages for match in re.findall(r"pip install '([^'\[]*)\[(\w+)\]'", page.read_text())]
    assert {("./hushcount", "results"), ("./hushcount", "oblivious")} <= set(named)
    for place, extra in named:
        if place != "apache-beam":
            # Nothing is on an index yet.
            assert place.startswith(".")
            project = read_mapping(ROOT / place / "pyproject.toml", "project file")["project"]
            assert extra in project["optional-dependencies"]


# Building.


def packed(names: tuple[str, ...], moment: int, user: str) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.uname = len(name), moment, user
            archive.addfile(member, io.BytesIO(name.encode()))
    return made.getvalue()


def test_an_sdist_of_another_day_machine_and_order_is_made_the_same(ci: tuple[ModuleType, ModuleType]) -> None:
    release, _ = ci
    one, other = packed(("a/b", "a/c"), 1, "me"), packed(("a/c", "a/b"), 2, "you")
    assert one != other
    assert release.normal(one, 9) == release.normal(other, 9)
    assert release.normal(one, 9) != release.normal(packed(("a/b", "a/d"), 1, "me"), 9)
    with tarfile.open(fileobj=io.BytesIO(release.normal(other, 9))) as archive:
        assert [(member.name, member.mtime) for member in archive.getmembers()] == [("a/b", 9), ("a/c", 9)]
        content = archive.extractfile("a/c")
        assert content is not None
        assert content.read() == b"a/c"


def test_two_builds_that_differ_are_not_released(ci: tuple[ModuleType, ModuleType]) -> None:
    release, _ = ci
    release.same({"a": "1"}, {"a": "1"})
    for other in ({"a": "2"}, {}, {"a": "1", "b": "1"}):
        with pytest.raises(SystemExit, match=r"two builds of one commit differ in [ab]"):
            release.same({"a": "1"}, other)


def test_the_notes_of_a_release_fit_on_a_screen(ci: tuple[ModuleType, ModuleType]) -> None:
    release, _ = ci
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    notes = release.notes(changelog, __version__)
    assert notes.startswith(f"# Hushcount {__version__}\n")
    assert 10 <= notes.count("\n") <= release.MOST_LINES
    assert "### " not in notes
    with pytest.raises(SystemExit, match='no "### In short"'):
        release.notes(changelog, "9.9.9")
    long = "## 1.0.0, today\n\n### In short\n\n" + "- more\n" * release.MOST_LINES
    with pytest.raises(SystemExit, match="must be at most 40"):
        release.notes(long, "1.0.0")


# Scanning.


@pytest.mark.parametrize(
    ("report", "found", "missed"),
    [
        ('{"dependencies": [{"name": "a", "version": "1", "vulns": []}]}', [], ""),
        ('{"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "CVE-1"}]}]}', ["a 1: CVE-1"], ""),
        (
            '{"dependencies": [{"name": "a", "skip_reason": "not found"}, {"name": "b", "version": "1", "vulns": []}]}',
            [],
            "1 of 2 packages were NOT scanned",
        ),
        ("", [], "the database of vulnerabilities is out of reach: NOTHING was scanned"),
    ],
)
def test_a_scan_of_python_says_what_it_found_and_what_it_missed(
    ci: tuple[ModuleType, ModuleType], report: str, found: list[str], missed: str
) -> None:
    assert ci[0].scanned_python(report) == (found, missed)


def test_a_scan_of_npm_says_what_it_found_and_what_it_missed(ci: tuple[ModuleType, ModuleType]) -> None:
    scanned = ci[0].scanned_npm
    assert scanned('{"vulnerabilities": {}}') == ([], "")
    assert scanned('{"vulnerabilities": {"a": {"severity": "high"}}}') == (["a: high"], "")
    for report in ('{"message": "405 Method Not Allowed"}', ""):
        assert scanned(report) == ([], "the registry gives no answer: NOTHING was scanned")


def test_a_found_vulnerability_ends_the_release_and_a_skipped_scan_is_said(
    ci: tuple[ModuleType, ModuleType], capsys: pytest.CaptureFixture[str]
) -> None:
    told = ci[0].told
    with pytest.raises(SystemExit, match="npm audit found known vulnerabilities: a: high"):
        told("npm audit", ["a: high"], "")
    told("npm audit", [], "NOTHING was scanned")
    assert capsys.readouterr().out == "SKIPPED: npm audit: NOTHING was scanned\n"


# Workflows of a public forge.


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_workflows_run_what_ci_and_releases_run_here() -> None:
    lines = {path.stem: [step.get("run") for step in steps(yaml.safe_load(path.read_text()))] for path in WORKFLOWS}
    assert lines.keys() == {"ci", "release"}
    assert "bash .ci/run" in lines["ci"]
    assert "make release" in lines["release"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_has_the_least_permissions_and_one_action(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert job.get("permissions", {}) == (
            {"contents": "write"} if (path.stem, name) == ("release", "build") else {}
        )
        assert job["timeout-minutes"] <= 120
    used = [step for step in steps(workflow) if "uses" in step]
    assert [step["uses"] for step in used] == ["actions/checkout@v4"]
    assert all(step["with"] == {"persist-credentials": False} for step in used)
    # YAML reads the key `on` as true.
    assert "pull_request_target" not in workflow[True]


def test_actionlint_finds_nothing() -> None:
    tool = shutil.which("actionlint") or shutil.which("actionlint", path=TOOLS)
    if tool is None:
        pytest.skip("actionlint is not installed: workflows were NOT linted; make deploy-tools fetches it")
    linted = subprocess.run([tool, *WORKFLOWS], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    assert linted.returncode == 0, linted.stdout
