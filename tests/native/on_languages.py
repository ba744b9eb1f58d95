"""Programs in C, Go and Kotlin report to a real collector, and the estimate is of what they reported.

`make test-bindings` builds the programs, which are the examples that the documentation shows.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.browser.deployment import Measured, prepared
from tests.support.jobs import done, write_lines

BUILT = Path(__file__).parents[2] / "build" / "bindings"
JAVA = ("java", f"-Djna.library.path={BUILT}", "-cp", BUILT / "report.jar")
PROGRAMS = {
    "c": [BUILT / "report-c"],
    "go": [BUILT / "report-go"],
    "kotlin": [*JAVA, "ReportKt"],
}
OWN, COMMON, CUT = 50, 30, 20
"""Reports of each person: of the item that only people of one program report, of the one that all report, and of texts
that begin with it, but are no items."""
PEOPLE = 2
EPSILON = 8.0
"""So an estimate errs by about one report."""


def ran(*command: object, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), input=given, capture_output=True, text=True, check=False)  # noqa: S603


def say(program: str, *arguments: object, values: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a program as one person who reports these values."""
    return ran(*PROGRAMS[program], *arguments, given="".join(f"{value}\n" for value in values))


@pytest.fixture
def asked(tmp_path: Path) -> Measured:
    measured = prepared(tmp_path, page=None, cap=OWN + COMMON + CUT, epsilon=EPSILON)
    write_lines(tmp_path / "policy.json", [json.dumps(measured.policy)])
    return measured


def test_the_estimate_is_of_what_the_programs_reported(tmp_path: Path, asked: Measured) -> None:
    with asked.open() as collector:
        for number, program in enumerate(PROGRAMS):
            for person in range(PEOPLE):
                values = [f"feature-{number}"] * OWN + ["feature-19"] * COMMON + ["feature-19\0"] * CUT
                store = tmp_path / f"{program}-{person}.sqlite"
                told = say(program, collector.url, tmp_path / "policy.json", store, values=values)
                print(f"{program}: {told.stdout}{told.stderr}")
                assert (told.returncode, told.stderr) == (0, "")
                # Each value is a report of each stream.
                assert told.stdout.splitlines()[:2] == [
                    f"queued {OWN + COMMON + CUT}",
                    f"sent {2 * (OWN + COMMON + CUT)}",
                ]
                assert f"{EPSILON * (OWN + COMMON + CUT):g}" in told.stdout
            # Another report would not count.
            over = say(program, collector.url, tmp_path / "policy.json", store, values=["feature-18"])
            assert over.stdout.splitlines()[:2] == ["over_cap 1", "sent 0"]
    asked.close_window()
    rows = done("ask", "top", "--config", asked.site.config, "--json").json["rows"]
    print(json.dumps(rows[:6], indent=1))
    counts = {row["item"]: row["count"] for row in rows}
    truth = {f"feature-{number}": PEOPLE * OWN for number in range(len(PROGRAMS))}
    truth["feature-19"] = PEOPLE * COMMON * len(PROGRAMS)
    # An error of 10 of these 600 reports has a chance below 1e-6: each is of another item with one of 0.6 %.
    for item, count in truth.items():
        assert counts[item] == pytest.approx(count, abs=10)


def test_the_c_interface_keeps_what_its_header_promises(tmp_path: Path, asked: Measured) -> None:
    files = ("words.json", "words.json.sig", "words-000001.dictionary.txt", "policy.json", "one.sqlite")
    told = ran(BUILT / "contract", *(tmp_path / name for name in files), OWN + COMMON + CUT)
    assert (told.returncode, told.stderr) == (0, "")


def test_kotlin_keeps_secrets_and_takes_any_text(tmp_path: Path, asked: Measured) -> None:
    with asked.open() as collector:
        told = ran(*JAVA, "Contract", collector.url, tmp_path / "policy.json")
    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_mistake_is_one_sentence(tmp_path: Path, asked: Measured, program: str) -> None:
    store = tmp_path / "one.sqlite"
    for collector, policy in (("http://example.com", "policy.json"), ("https://127.0.0.1", "words.json")):
        told = say(program, collector, tmp_path / policy, store, values=[])
        assert (told.returncode, told.stdout, len(told.stderr.splitlines())) == (1, "", 1)
    assert (
        "must begin with https://"
        in say(program, "http://example.com", tmp_path / "policy.json", store, values=[]).stderr
    )
