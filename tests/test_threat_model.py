"""docs/threat-model.md: every claim names a test or an import contract, and all that are named exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "threat-model.md"
_NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
_CONTRACT = re.compile(r"`contract: ([^`]+)`")


def sections(text: str) -> dict[str, list[str]]:
    """Return the lines that are not blank below each heading of the second level."""
    found: dict[str, list[str]] = {}
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title, _, body = part.partition("\n")
        found[title] = [line for line in body.splitlines() if line.strip()]
    return found


def claims(text: str) -> list[str]:
    return [line for lines in sections(text).values() for line in lines if line.startswith("- ")]


def unbacked(text: str) -> list[str]:
    """Return the claims that name neither test nor contract."""
    return [line for line in claims(text) if not _NAMED.search(line) and not _CONTRACT.search(line)]


def unclaimed(text: str) -> list[str]:
    """Return the lines that say something without being a claim; only what is assumed may."""
    parts = {title: lines for title, lines in sections(text).items() if title != "Assumed"}
    return [line for lines in parts.values() for line in lines if not line.startswith(("- ", "### "))]


def missing(text: str) -> list[str]:
    """Return the tests and contracts that are named and do not exist."""
    contracts = re.findall(r'^name = "([^"]+)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    tests = [f"{path}::{name}" for path, name in _NAMED.findall(text) if name not in _tests(path)]
    return tests + [name for name in _CONTRACT.findall(text) if name not in contracts]


def late(text: str) -> list[str]:
    """Return the claims of which `make test` runs no test, not one case of one."""
    return [
        line
        for line in claims(text)
        if not _CONTRACT.search(line)
        and all(_tests(path).get(name) in (None, "long") for path, name in _NAMED.findall(line))
    ]


def uncollected(text: str) -> list[str]:
    """Return the files of named tests that neither `make test-all` collects nor `make test-containers`."""
    paths = [path for path, _ in _NAMED.findall(text) if not Path(path).name.startswith("test_")]
    return [path for path in paths if not re.fullmatch(r"tests/containers/(\w+/)?on_\w+\.py", path)]


@cache
def _tests(path: str) -> dict[str, str]:
    """Return the tests of a file, each with the marker `long` if no case of it is excepted."""
    if not (ROOT / path).exists():
        return {}
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {
        node.name: "long" if "pytest.mark.long" in map(ast.unparse, node.decorator_list) else "short"
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_every_claim_is_backed_and_every_line_is_a_claim() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert unbacked(text) == []
    assert unclaimed(text) == []
    assert len(claims(text)) > 30


def test_every_named_test_and_contract_exists() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert missing(text) == []
    # Nothing in backticks looks like a test without being read as one.
    assert text.count("::") == len(_NAMED.findall(text))


def test_the_tests_of_every_claim_run_in_make_test_or_make_test_all_and_one_in_make_test() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert late(text) == []
    assert uncollected(text) == []
    targets = (ROOT / "Makefile").read_text(encoding="utf-8").split("\n\n")
    (unit,) = (target for target in targets if target.startswith("unit:"))
    (everything,) = (target for target in targets if target.startswith("test-all:"))
    (rest,) = (target for target in targets if target.startswith("test-rest:"))
    called = re.findall(r'"(make [^"]+)"', (ROOT / ".ci" / "steps.py").read_text(encoding="utf-8"))
    # What `unit` writes `rest` leaves out, and nothing else; tests/support/test_covered.py tests both options. What
    # both leave out, `lanes` runs with every case.
    assert unit.endswith("pytest $(WORKERS) $(NO_LANES) -m 'not long' --covered-to=build/covered")
    (lanes,) = (target for target in targets if target.startswith("build/lanes:"))
    assert re.findall(r"pytest \$\(WORKERS\) (.*)", lanes) == ["tests/sealed_lanes"]
    assert "NO_LANES := --ignore=tests/sealed_lanes\n" in (ROOT / "Makefile").read_text(encoding="utf-8")
    for every in (everything, rest):
        (options,) = re.findall(r"pytest \$\(WORKERS\) (.*)", every)
        chosen = [one for one in options.split() if not one.startswith("--hypothesis-profile=")]
        without, but = (["$(NO_LANES)"], ["--but=build/covered"]) if every == rest else ([], [])
        assert chosen == [*without, "--engine", "beam", *but]
    assert {"make lint", "make package", "make unit", "make lanes", "make test-rest"} <= set(called)
    # An engine is not everywhere: what containers show is named beside a test that runs without one.
    (containers,) = (target for target in targets if target.startswith("test-containers:"))
    assert "-o python_files='on_*.py' tests/containers" in containers
    assert called.index("make unit") < called.index("make test-rest")


def test_every_party_has_its_section() -> None:
    for party in ["shuffler", "analyzer", "auxiliary server", "evaluator", "outsider"]:
        alone = sections(PAGE.read_text(encoding="utf-8"))["Each party alone"]
        assert any(line.startswith("### ") and party in line for line in alone)


def test_every_collusion_has_its_claim() -> None:
    for together in [
        "Shuffler and analyzer",
        "Analyzer and auxiliary server",
        "Shuffler and auxiliary server",
        "All three",
        "Clients",
    ]:
        lines = sections(PAGE.read_text(encoding="utf-8"))["Parties together"]
        assert any(line.startswith(f"- {together}") for line in lines)


def test_the_checks_find_what_is_wrong() -> None:
    good = "## Part\n\n- A claim. `tests/test_threat_model.py::test_the_checks_find_what_is_wrong`\n"
    assert not unbacked(good)
    assert not unclaimed(good)
    assert not missing(good)
    assert unbacked("## Part\n\n- A claim.\n") == ["- A claim."]
    assert unclaimed("## Part\n\nA claim in passing.\n") == ["A claim in passing."]
    assert missing(good.replace("wrong`", "right`")) == [
        "tests/test_threat_model.py::test_the_checks_find_what_is_right"
    ]
    assert not late(good)
    assert not uncollected(good)
    name = "test_intervals_of_all_items_hold_all_truths_together"
    alone = f"## Part\n\n- A claim. `tests/hushcount/oracles/test_estimates.py::{name}`\n"
    assert late(alone) == claims(alone)
    assert uncollected("- `tests/faults/on_store.py::test_it`") == ["tests/faults/on_store.py"]
    assert not uncollected("- `tests/containers/compose/on_reach.py::test_it`")
    assert missing("- `tests/test_absent.py::test_it`") == ["tests/test_absent.py::test_it"]
    assert missing("- `contract: none of this name`") == ["none of this name"]
