"""docs/log.md: what it shows of a log is so."""

from __future__ import annotations

import re
from pathlib import Path

from pipelines.deployment.settings import FOLDERS
from pipelines.log.entries import Finished
from pipelines.log.entry_files import _KINDS, read_entry
from tests.support.collecting import collect
from tests.support.noise import NoiseSite
from tests.support.site import values

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "log.md").read_text(encoding="utf-8")


def test_the_entry_on_the_page_is_one() -> None:
    (text,) = re.findall(r"^```\n(\{.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    entry = read_entry(text.encode(), "the page", lambda digest: b"")
    assert isinstance(entry.decision, Finished)
    assert (entry.number, entry.decision.hop, entry.decision.folder) == (4, "shuffle", "4f0c62d1a7b3e895")


def test_the_page_explains_every_kind_of_entry() -> None:
    (table,) = re.findall(r"^\| kind \|.*?\n\n", PAGE, re.DOTALL | re.MULTILINE)
    explained = [
        kind for cell in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for kind in re.findall("`(.*?)`", cell)
    ]
    assert sorted(explained) == sorted(_KINDS)


def test_a_run_leaves_the_folders_that_the_page_draws_and_no_others(tmp_path: Path) -> None:
    # With noise and discovery every hop runs.
    site = NoiseSite(tmp_path, discovery=True)
    collect(site.store, site.campaign, values(200), day=0)
    assert site.run(1.1).problems == []
    (drawing,) = re.findall(r"^```\nSTORE/\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    folders = {path.name for path in site.store.iterdir() if path.is_dir()}
    assert {name for name in folders if f"{name}/" not in drawing} == set()
    assert {name for name in re.findall(r"\b([a-z]+)/", drawing) if name in FOLDERS} == folders
    batch = site.batch(0)
    shuffled = site.store / "shuffled" / "words" / batch
    (folder,) = (path for path in shuffled.iterdir() if path.is_dir())
    assert (shuffled / "summary.json").is_file()
    assert {path.name for path in folder.iterdir() if path.is_dir()} >= {"reports", "discovery"}
    for party in ("shuffler", "aux-server", "analyzer"):
        entries = sorted(path.name for path in (site.store / "log" / party / "words" / "000001").glob("*.json"))
        assert entries[0] == "0000000001.json"
    assert not any((site.store / "attempts").rglob("*.blocks"))
