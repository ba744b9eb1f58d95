"""Every command and file of the documents is run as it would be pasted, in order, in one directory for each page.

tests/test_readme.py runs those of README.md.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from hushcount.campaigns.campaign import Campaign
from hushcount.formats.reading import read_mapping
from pipelines.deployment.settings import DeploymentFile
from tests.support.collecting import collect
from tests.support.jobs import cli, done, each_a_client, files_under, write_lines
from tests.support.processes import process

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
CLIENT = ROOT / "hushcount" / "README.md"
"""The page of the client's distribution."""
PAGES = [
    README,
    CLIENT,
    *sorted(
        path
        for top in ("deploy", "docs", "experiments", "benchmarks", "examples")
        for path in (ROOT / top).rglob("*.md")
    ),
]
ELSEWHERE: Mapping[str, str] = {
    "make demo": "tests/test_demo.py runs it on a cut of its data",
    "make test": "runs this test",
    "make unit": "runs this test",
    "make docs": "fetches the site's packages: tests/test_docs.py checks pages and links",
    "pip install ./hushcount": "tests/package/check.py installs what was built",
    "hushcount job shuffle --campaign redacted.json --input encoded --out shuffled --r": "needs Flink: tests/engines",
    "python deploy/flink/": "needs mvn, go and Java: tests/deploy/test_flink_containers.py",
    "java -jar": "needs Java and Flink: tests/engines",
    "python -m apache_beam.runners.worker": "needs Flink: tests/engines",
    "python -m build": "tests/package/check.py builds the wheels",
    "python deploy/hand_on.py": "tests/deploy/test_documented.py, tests/deploy/test_hand_on.py",
    "cp -r deploy/compose": "needs Docker: tests/containers runs all of that section",
    "cd site": "needs Docker: tests/containers runs all of that section",
    "cd try": "needs Docker: tests/containers/on_try_out.py runs the block",
    "./try-out.sh": "needs Docker: tests/containers/on_try_out.py runs the block",
    "until docker": "needs Docker: tests/containers/on_try_out.py runs the block",
    "cd aux-server": "needs Docker: tests/containers/on_second_party.py runs the page",
    "echo COMPOSE_FILE": "needs Docker: tests/containers/on_second_party.py runs the page",
    "mkdir -p received": "needs Docker: tests/containers/on_second_party.py runs the page",
    "mkdir -p exchange": "needs Docker: tests/containers/on_second_party.py runs the page",
    "mkdir -p aux-server-keys": "needs Docker: tests/containers/on_second_party.py runs the page",
    "sudo chown": "needs Docker: tests/containers runs all of that section",
    "printf 'COMPOSE_FILE": "needs Docker: tests/containers runs all of that section",
    "export SSL_CERT_FILE": "needs Docker: tests/containers runs all of that section",
    "for person": "needs Docker: tests/containers runs all of that section",
    "mkdir -p verifier": "needs Docker: tests/containers runs all of that section",
    "(umask 077": "needs Docker: tests/containers runs all of that section",
    "hushcount campaign publish --config whole.toml": "tests/deploy/test_documented.py runs the block",
    "hushcount campaign publish --config redacted.toml": "tests/deploy/test_documented.py runs the block",
    "hushcount keys rehearse --campaign next.json": "needs a next campaign file: tests/keys/test_rehearsal.py",
    "hushcount send --site https://collector.example.com --policy pages-policy.json": (
        "needs an issuer: tests/issuer/test_page.py runs the block"
    ),
    "hushcount ask mean": "needs a campaign for a mean: tests/pipelines/questions/test_means.py",
    "hushcount ask quantile": "needs a campaign of numbers: tests/pipelines/questions/test_numbers.py",
    "hushcount ask histogram": "needs a campaign of numbers: tests/pipelines/questions/test_numbers.py",
    **dict.fromkeys(
        (
            "hushcount campaign new --after loading.json",
            "hushcount campaign sign --campaign loading-2.json",
            "hushcount campaign publish --campaign loading-2.json",
        ),
        "needs results of numbers: tests/pipelines/questions/test_edges_of_next_epoch.py",
    ),
    "hushcount ask compare": "needs a second campaign: tests/pipelines/questions/test_ask.py",
    "docker ": "needs Docker: tests/containers; tests/deploy/test_images.py without",
    "kubectl ": "needs a cluster: tests/deploy/test_kubernetes.py checks the manifests",
    "tar -cf - ": "needs a cluster: tests/deploy/test_kubernetes.py checks the manifests",
    "gcloud ": "needs a project at Google Cloud: tests/deploy/test_dataflow.py checks the templates",
}
"""What is not run here, by how it begins, and why, or where it is."""
LANGUAGES = {
    "js": ROOT / "clients" / "typescript" / "README.md",
    "rust": ROOT / "clients" / "rust" / "README.md",
    "c": ROOT / "clients" / "rust" / "c" / "README.md",
    "go": ROOT / "clients" / "rust" / "c" / "README.md",
    "kotlin": ROOT / "clients" / "rust" / "bindings" / "README.md",
    "swift": ROOT / "clients" / "rust" / "bindings" / "README.md",
}
"""Languages of other clients, whose own tests compile what stands in their pages."""
KINDS = {"sh", "python", "toml", "dockerfile", "yaml", "sql", "", *LANGUAGES}
"""Kinds of blocks: commands, an app, a file, a recipe that tests/deploy/test_documented.py runs, a configuration that
tests/deploy/test_monitoring.py runs, SQL, a picture, and apps of other clients."""
DATA = ROOT / "docs" / "data.md"
"""Its SQL and Python are run by tests/pipelines/jobs/data_set/test_engines.py."""
ANALYSTS = ROOT / "docs" / "analysts.md"
"""Its Python reads results, and is run when they are there."""
CONTRIBUTORS = ROOT / "docs" / "contributors.md"
"""Its Python is examples/run_esa.py, which tests/test_run_esa.py runs."""
STORY = [ROOT / "docs" / f"{name}.md" for name in ("get-started", "app-developers", "operators", "analysts")]
"""Pages that are read one after the other, in one directory: each goes on where the one before ended."""
COLLECTOR = "https://collector.example.com"
"""In the apps of the pages, and where `hushcount send` goes."""
HERE = "http://127.0.0.1:8080"
"""Where `hushcount simulate --send` goes."""
SERVED = "http://127.0.0.1:8765/"
"""Where the page's `hushcount dashboard --serve` is asked."""
SEND = re.compile(r"hushcount (send|simulate --send) ")
"""Commands that need the page's collector: they are run while it is."""
DAYS = (-3, -2)
"""Windows that are over: a change is between two."""
VALUES = [f"item-{number % 40}" for number in range(1100)] + ["dark-mode"] * 300


@dataclass(frozen=True)
class Block:
    """What stands in a page between two rows of backticks, or a command within a sentence."""

    page: Path
    kind: str
    text: str


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page, and commands of two options and more in its sentences, in their order."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^```(\w*)\n(.*?)^```|`((?:hushcount|python)\s[^`]*)`", text, re.DOTALL | re.MULTILINE)
    made = []
    for match in found:
        if match[3] is None:
            made.append(Block(page, match[1], match[2]))
        elif len(re.findall(r"\s--[a-z]", match[3])) > 1:
            made.append(Block(page, "sh", " ".join(match[3].split())))
    return made


def commands(block: Block) -> list[str]:
    """Return the commands of a block of sh, one a line, without comments."""
    text = re.sub(r"<<END\n.*?\nEND\n", "<<END\n", block.text, flags=re.DOTALL).replace("\\\n", " ")
    lines = (re.sub(r"\s{2,}#.*", "", line).strip() for line in text.splitlines())
    return [re.sub(r"\s+", " ", line) for line in lines if line and not line.startswith("#")]


def is_elsewhere(command: str) -> bool:
    return any(command.startswith(begin) for begin in ELSEWHERE)


def test_every_block_is_of_a_kind_that_is_run_and_what_is_not_run_is_listed_with_its_reason() -> None:
    every = [block for page in PAGES for block in blocks(page)]
    assert {block.kind for block in every} <= KINDS
    shell = [(block.page, command) for block in every if block.kind == "sh" for command in commands(block)]
    left = {page for page, command in shell if not is_elsewhere(command)}
    # tests/test_backup.py runs the page of copies, all but its lines for Docker.
    assert left == {README, ROOT / "deploy" / "README.md", ROOT / "docs" / "backup.md", *STORY}
    # Apps and files are of the pages that are run; the dockerfile is of one page.
    pages = {README, CLIENT, DATA, CONTRIBUTORS, *STORY}
    assert {block.page for block in every if block.kind in ("python", "toml")} <= pages
    assert {block.page for block in every if block.kind == "sql"} == {DATA}
    for begin in ELSEWHERE:
        assert any(command.startswith(begin) for _, command in shell), f"{begin!r} stands in no document any more"


def test_a_block_in_the_language_of_another_client_stands_in_its_page() -> None:
    every = [block for page in PAGES for block in blocks(page) if block.kind in LANGUAGES]
    assert {block.kind for block in every} == set(LANGUAGES)
    for block in every:
        assert block.text in LANGUAGES[block.kind].read_text("utf-8"), block


def run(command: str) -> None:
    """Run a pasted command that ends."""
    name, *words = shlex.split(command)
    if name in ("mkdir", "cp"):
        subprocess.run([name, *words], check=True)  # noqa: S603  # the page's own words, in the test's directory
        return
    assert name == "hushcount", f"{command!r} is neither run nor listed in ELSEWHERE"
    shown = done(*words)
    assert "not yet" not in shown.err


LISTS = {
    "words.txt": ["dark-mode", "night-mode"],
    "durations.txt": [str(number) for number in range(1, 101)],
    "versions.txt": ["2.1", "2.0"],
    "platforms.txt": ["linux", "mac os"],
}
"""Files of the reader's own that pages name."""


def write_lists() -> None:
    for name, lines in LISTS.items():
        write_lines(Path(name), lines)


def live_through(directory: Path, pages: list[Path]) -> None:
    """Type all of some pages; their apps run while the collector does; days ago another collector was there."""
    write_lines(directory / "settings.txt", [f"item-{number}" for number in range(40)])
    page = [block for one in pages for block in blocks(one)]
    parts = [block.text for block in page if block.kind == "toml"]
    unsent = [block for block in page if block.page != ANALYSTS]
    assert any(COLLECTOR in block.text for block in unsent)
    for block, command in ((one, line) for one in page if one.kind == "sh" for line in commands(one)):
        words = shlex.split(command)[1:]
        if is_elsewhere(command) or SEND.match(command) or SERVED in command:
            continue
        if command.startswith("cd "):
            os.chdir(words[0])
            write_lists()
        elif words[0] == "init":
            run(command)
            begin(Path(words[1]) / "deployment.toml", parts)
        elif words[0] == "collect":
            with process(words, lambda said: '"event": "started"' in said, directory / "collect.log") as said:
                (port,) = set(re.findall(r'"port": ([0-9]+)', said))
                # Pages before this one that have no collector of their own send to this one.
                read = pages[: pages.index(block.page) + 1]
                report(f"http://127.0.0.1:{port}", [one for one in unsent if one.page in read])
                unsent = [one for one in unsent if one.page not in read]
        elif words[0] == "run":
            for day in DAYS:
                collect(Path("store").absolute(), Path("campaign.json"), VALUES, day=day, collector="earlier")
            with process(words, has_results, directory / "run.log"):
                pass
            assert "error" not in (directory / "run.log").read_text()
        elif "--serve" in words:
            with process([*words, "--port", "0"], lambda said: "serving http" in said, directory / "page.log") as said:
                (address,) = re.findall(r"http://127\.0\.0\.1:[0-9]+/", said)
                asked = [line for one in page if one.kind == "sh" for line in commands(one) if SERVED in line]
                for line in asked:
                    curl = [*shlex.split(line.replace(SERVED, address)), "--fail", "--silent"]
                    told = subprocess.run(curl, check=True, capture_output=True).stdout  # noqa: S603  # the page's words
                    assert json.loads(told)
        elif words[0] == "doctor":
            checks = cli(*words, "--json").json
            assert [check for check in checks if check["verdict"] == "bad"] == []
            assert budget()["verdict"] == "good", budget()
        else:
            run(command)
        if words[:2] == ["ledger", "set"]:
            assert budget()["verdict"] == "good", budget()


def begin(path: Path, parts: list[str]) -> None:
    """Let the collector of a new deployment listen at any port, because 8080 may be somebody's.

    `parts` are tables that the pages add to its file.
    """
    file = read_mapping(path, "deployment file")
    file["collector"] |= {"port": 0, "least_free_bytes": 0}
    path.write_text(tomli_w.dumps(file))
    for part in parts:
        added = read_mapping(write_lines(path.with_name("part.toml"), [part]), "part")
        DeploymentFile.model_validate({**file, **added})


def report(here: str, senders: list[Block]) -> None:
    """Run the apps of the pages, and then what they send from a shell."""
    for app in (block.text for block in senders if block.kind == "python"):
        ran: dict[str, Any] = {}
        exec(app.replace(COLLECTOR, here), ran)  # noqa: S102  # the pages' own lines
        if "sender" in ran:
            assert ran["sender"].dropped == {}, ran["sender"].log
    for line in (line for block in senders if block.kind == "sh" for line in commands(block)):
        if not (match := SEND.match(line)) or is_elsewhere(line):
            continue
        sent = done(*shlex.split(line.replace(COLLECTOR, here).replace(HERE, here))[1:], "--json").json
        if match[1] == "send":
            assert (sent["sent"], sent["waiting"], sent["dropped"]) == (2, 0, {})
        else:
            assert (sent["accepted"], sent["given_up"]) == (sent["people"], {})


def budget() -> Mapping[str, str]:
    """Return what doctor says of the budget."""
    checks = cli("doctor", "--config", "deployment.toml", "--json").json
    (check,) = (check for check in checks if check["name"] == "budget of settings")
    return check


@pytest.mark.long
def test_the_pages_for_each_reader_as_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    live_through(tmp_path, STORY)
    # 219 of 5,000 simulated people have this value: it is missed with a probability below 1e-9.
    assert "unlisted-1" in Path("found", "found.csv").read_text()
    dictionary = Campaign.read("campaign.json").read_dictionary()
    assert dictionary is not None
    for block in blocks(ANALYSTS):
        if block.kind == "python":
            read: dict[str, Any] = {}
            exec(block.text, read)  # noqa: S102  # the page's own lines
            assert read["adjusted"].sum() == pytest.approx(read["listed"])
            # Each listed item has a count, and "other" has none among them.
            assert len(read["adjusted"]) == len(dictionary.items)
    assert Path("items.csv").exists()


def has_results(_said: str) -> bool:
    return len(list(Path("store", "results").glob("*/*/summary.json"))) >= len(DAYS)


def test_the_page_of_three_parties_as_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "settings.txt", [f"item-{number}" for number in range(40)])
    page = blocks(ROOT / "deploy" / "README.md")
    for command in (line for block in page if block.kind == "sh" for line in commands(block)):
        if is_elsewhere(command):
            continue
        if command.startswith("hushcount job shuffle") and not (tmp_path / "encoded").exists():
            # Stands in for clients and collector.
            values = each_a_client(write_lines(tmp_path / "values.txt", VALUES), tmp_path / "sent.tsv")
            done("job", "encode", "--campaign", "campaign.json", "--values", values, "--clients", "--out", "encoded")
        run(command)
    assert "dark-mode" in files_under(tmp_path / "found")["found.csv"].decode()
    for handed_on in ("shuffled", "released"):
        assert (tmp_path / handed_on / "summary.json.sig").exists()
