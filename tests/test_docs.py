"""What the documents say is true: commands exist, files exist, the schema is current, the printed figures hold."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

from typer.testing import CliRunner

from evaluator.settings import EvaluatorPart
from hushcount.campaigns.campaign import Campaign
from hushcount.discovery.keep_rules import KeepRule
from pipelines.cli import app
from pipelines.deployment.parts import AlertsPart, AnalyzerPart, NextEpochPart
from pipelines.deployment.settings import DeploymentFile, EnginePart, RetentionPart, WindowsPart
from shuffler.collector.settings import CollectorPart
from tests.support.commands import COMMANDS

ROOT = Path(__file__).parents[1]
PACKAGES = ("hushcount", "keys", "service", "shuffler", "evaluator", "issuer", "analyzer", "aux_server", "pipelines")
PAGES = [
    ROOT / "README.md",
    ROOT / "SECURITY.md",
    ROOT / "deploy" / "README.md",
    ROOT / "deploy" / "second-party" / "README.md",
    ROOT / "vectors" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]


GROUPS = f"(?:{'|'.join(sorted({command[0] for command in COMMANDS if len(command) > 1}))})"


NO_COMMAND = {"import", "from", "client", "command", "wrote", "bins", "design", "draw", "order", "signature"}
"""What follows the name of the product in the code and is no command: modules, tags of hashes, and two sentences."""


def test_every_command_has_help_with_an_example() -> None:
    for command in COMMANDS:
        shown = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "200"})
        assert shown.exit_code == 0
        assert f"Example: hushcount {' '.join(command)}" in shown.output
        # docs/get-started.md: services log JSON, the schema is printed as JSON, and a stream answers nothing.
        no_answer = (("collect",), ("evaluate",), ("issue",), ("job", "stream"), ("campaign", "schema"))
        assert ("--json" in shown.output) == (command not in no_answer)


def test_every_command_in_the_documents_exists_with_its_options() -> None:
    known = {" ".join(command): _options(command) for command in COMMANDS}
    for page in PAGES:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        for name, rest in re.findall(rf"hushcount ((?:{GROUPS} )?[a-z]+)((?: +--[a-z-]+(?: [^-\s`]\S*)?)+)", text):
            assert name in known, f"{page}: no command {name}"
            for option in re.findall(r"--[a-z-]+", rest):
                assert option in known[name], f"{page}: {name} has no {option}"


def test_every_command_that_the_product_names_exists_with_its_options() -> None:
    """In errors, cures, help, comments: what is printed is pasted."""
    known = {" ".join(command): _options(command) for command in COMMANDS}
    groups = {command[0] for command in COMMANDS if len(command) > 1}
    found = 0
    for path in [path for name in (*PACKAGES, "deploy", "examples") for path in sorted((ROOT / name).rglob("*.py"))]:
        # A sentence goes on in the next line of the code.
        text = re.sub(r'"\s*\n\s*f?"|\n\s*(?:# )?', " ", path.read_text(encoding="utf-8"))
        text = re.sub(r" +", " ", text)
        words = r"\bhushcount ([a-z][a-z-]*(?: [a-z][a-z-]*)?)((?: --?[a-z-]+(?: [^-\s]\S*)?)*)"
        for name, options in re.findall(words, text):
            first, _, second = name.partition(" ")
            if first in NO_COMMAND:
                continue
            command = name if first in groups and second else first
            assert command in known or command in groups, f"{path}: no command {name}"
            for option in re.findall(r"--[a-z-]+", options):
                assert option in known[command], f"{path}: {command} has no {option}"
            found += 1
    assert found > 100


def _options(command: tuple[str, ...]) -> set[str]:
    shown = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "200"})
    return set(re.findall(r"--[a-z-]+", shown.output))


def test_every_file_that_the_documents_name_exists() -> None:
    named = re.compile(rf"`((?:{'|'.join(PACKAGES)}|tests|vectors|docs|examples)/[\w./]+)`")
    found = 0
    for page in PAGES:
        for path in named.findall(page.read_text(encoding="utf-8")):
            # An operator has a folder of this name too, beside its deployment file.
            assert (ROOT / path).exists() or path == "evaluator/public.json", f"{page} names {path}"
            found += 1
    assert found > 10


def test_every_link_leads_to_a_file_and_to_a_heading_in_it() -> None:
    followed = 0
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", _prose(page)):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = page if path == "" else (page.parent / path).resolve()
            assert file.exists(), f"{page} links to {target}"
            assert anchor == "" or anchor in _anchors(file), f"{page} links to {target}: no such heading"
            followed += 1
    assert followed > 100


def _prose(page: Path) -> str:
    """Return a page without its blocks."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def _anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", _prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\s-]", "", title).strip().lower().replace(" ", "-") for title in titles}


def test_the_reference_of_the_deployment_file_is_current() -> None:
    stored = (ROOT / "docs" / "deployment-file.md").read_text(encoding="utf-8")
    written = runpy.run_path(str(ROOT / "docs" / "reference.py"))["page"]()
    assert stored == written, "run: python docs/reference.py > docs/deployment-file.md"


def test_the_map_of_rooms_is_current_and_says_one_sentence_of_each() -> None:
    map_ = runpy.run_path(str(ROOT / "docs" / "rooms.py"))
    listed = list(map_["rooms"]())
    assert [str(file) for _, _, file in listed if not file.exists() or not map_["sentence"](file)] == []
    assert len(listed) == len({file for _, _, file in listed})
    assert map_["DECISION"].read_text(encoding="utf-8") == map_["page"](), "run: python docs/rooms.py"


def test_the_reference_names_every_key() -> None:
    stored = (ROOT / "docs" / "deployment-file.md").read_text(encoding="utf-8")
    tables = (
        WindowsPart, RetentionPart, EnginePart, NextEpochPart, AnalyzerPart, CollectorPart, EvaluatorPart, AlertsPart,
    )  # fmt: skip
    for part in (DeploymentFile, *tables):
        for key in part.model_fields:
            assert f"| `{key}` |" in stored or f"`[{key}" in stored or f".{key}]`" in stored


def test_the_site_shows_every_page_in_one_of_four_groups() -> None:
    site = runpy.run_path(str(ROOT / "docs" / "site.py"))
    assert len(site["NAV"]) == 4
    listed = [ROOT / page for group in site["NAV"].values() for page in group.values()]
    assert len(set(listed)) == len(listed)
    shown = {*listed, *(ROOT / site["DECISIONS"]).glob("*.md")}
    assert set(PAGES) <= shown
    assert all(page.exists() for page in shown)


def test_the_index_of_decisions_names_each_with_its_title() -> None:
    folder = ROOT / "docs" / "adr"
    index = (folder / "README.md").read_text("utf-8")
    listed = re.findall(r"^\| (\d+) \| \[(.*)\]\((.*)\) \|$", index, re.MULTILINE)
    titles = {path.name: path.read_text("utf-8").splitlines()[0] for path in folder.glob("0*.md")}
    assert sorted(name for _, _, name in listed) == sorted(titles)
    assert all(titles[name] == f"# {number}. {title}" for number, title, name in listed)


def test_a_page_of_the_site_that_loads_from_another_host_is_found() -> None:
    loaded = runpy.run_path(str(ROOT / "docs" / "site.py"))["_LOADED"]
    assert loaded.findall('<link rel="stylesheet" href="https://fonts.example.com/a.css">')
    assert loaded.findall('<script defer src="//cdn.example.com/a.js"></script>')
    assert not loaded.findall('<a href="https://example.com">a link</a><script src="assets/a.js"></script>')


def test_the_readme_stays_short_and_its_pictures_small() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 150
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", readme)
    assert sum((ROOT / picture).stat().st_size for picture in pictures) <= 150 << 10


def test_the_chances_that_analysts_are_told_are_those_of_the_keep_rule() -> None:
    page = (ROOT / "docs" / "analysts.md").read_text(encoding="utf-8")
    told = re.findall(r"(\d+)(?: reports)?(?: is revealed)? with (?:a probability of )?([\d.]+) %", page)
    rule = KeepRule("optimal", 1.0, 1e-8)
    assert [(int(count), float(chance)) for count, chance in told] == [
        (20, round(100 * rule.keep_probability(20), 1)),
        (25, round(100 * rule.keep_probability(25))),
        (34, round(100 * rule.keep_probability(34))),
    ]


def test_what_analysts_are_told_of_counts_is_so() -> None:
    page = " ".join((ROOT / "docs" / "analysts.md").read_text(encoding="utf-8").split())
    law = KeepRule("optimal", 1.0, 1e-8, counts=True).count_law
    far, near = 10**6, round(32 + law.mean)
    (low, high), (least, greatest) = (law.interval(shown, 0.95) for shown in (far, near))
    reach = {round(far - law.mean - low), round(high - far + law.mean)}
    for said in (
        f"the standard error is {law.standard_deviation:.1f}, and an interval reaches about {max(reach)}",
        f"reaches the threshold ({law.threshold} here)",
        f"{law.bias(30):.1f} for a value of 30 clients, {law.bias(36):.1f} for one of 36, nothing for one of 60",
        f"shown with a count of 32 may have any count from {least} to {greatest}",
    ):
        assert said in page
    assert law.bias(60) < 0.001


def test_every_section_of_the_mathematics_that_code_cites_exists() -> None:
    sections = set(re.findall(r"^## (\d)\.", (ROOT / "docs" / "mathematics.md").read_text(), re.MULTILINE))
    cited = set()
    for top in PACKAGES:
        for path in (ROOT / top).rglob("*.py"):
            cited |= set(re.findall(r"mathematics\.md(?: sections?)? (\d)", path.read_text(encoding="utf-8")))
    assert cited
    assert cited <= sections


def test_the_exported_json_schema_is_current() -> None:
    stored = json.loads((ROOT / "docs" / "campaign.schema.json").read_text(encoding="utf-8"))
    assert stored == Campaign.model_json_schema(), "run: hushcount campaign schema > docs/campaign.schema.json"
