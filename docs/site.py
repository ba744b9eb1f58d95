"""Put the pages together as a site: `make docs`. The pages keep their folders, so that links lead where they lead here.

python docs/site.py prepare     write build/docs: the pages, and mkdocs.json for mkdocs
python docs/site.py check       fail if a page of build/site loads anything from another host
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES, SITE = ROOT / "build" / "docs", ROOT / "build" / "site"
NAV = [
    ("Hushcount", "README.md"),
    ("Get started", "docs/get-started.md"),
    ("From an app", "docs/app-developers.md"),
    ("For operators", "docs/operators.md"),
    ("Back up and restore", "docs/backup.md"),
    ("The log", "docs/log.md"),
    ("Every key of the deployment file", "docs/deployment-file.md"),
    ("Each party apart", "deploy/README.md"),
    ("For analysts", "docs/analysts.md"),
    ("Estimates as data", "docs/data.md"),
    ("For privacy reviewers", "docs/privacy-reviewers.md"),
    ("Threat model", "docs/threat-model.md"),
    ("Mathematics", "docs/mathematics.md"),
    ("For contributors", "docs/contributors.md"),
    ("Wire format", "docs/wire-format.md"),
    ("Test vectors", "vectors/README.md"),
    ("Glossary", "docs/glossary.md"),
    ("Performance", "docs/performance.md"),
    ("At scale", "docs/scaling.md"),
    ("Benchmarks", "benchmarks/RESULTS.md"),
    ("Experiments", "experiments/README.md"),
    ("Example data", "examples/data/README.md"),
    ("Changelog", "CHANGELOG.md"),
]
"""Title and file of each page but the decisions, in the order of the menu."""
DECISIONS = "docs/adr"
INDEX = "README.md"
"""Of the decisions."""
SHOWN = {".md", ".png", ".svg", ".json"}
_LOADED = re.compile(r"""<(?:script|img|link|iframe)\b[^>]*?\b(?:src|href)=["']?((?:https?:)?//[^"'\s>]+)""")


def prepare() -> None:
    """Copy what the site shows into build/docs and write mkdocs.json."""
    shutil.rmtree(PAGES, ignore_errors=True)
    decisions = sorted((ROOT / DECISIONS).glob("0*.md"))
    folders = {(ROOT / page).parent for _, page in NAV} - {ROOT}
    shown = [ROOT / page for _, page in NAV if "/" not in page]
    shown += [path for folder in folders for path in folder.rglob("*") if path.suffix in SHOWN and path.is_file()]
    for path in shown:
        copy = PAGES / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        if path.suffix == ".md":
            # A site has no listing of a folder: its index stands for it.
            text = path.read_text("utf-8")
            copy.write_text(re.sub(r"(\]\((?:docs/)?adr/)\)", rf"\g<1>{INDEX})", text), "utf-8")
    listed = [f"{DECISIONS}/{name}" for name in (INDEX, *(path.name for path in decisions))]
    menu = [*({title: page} for title, page in NAV), {"Decisions": listed}]
    (PAGES.parent / "mkdocs.json").write_text(json.dumps(settings(menu), indent=1))


def settings(menu: list[object]) -> dict[str, object]:
    """Return the settings of mkdocs: nothing that a page loads is on another host."""
    return {
        "site_name": "Hushcount",
        "docs_dir": str(PAGES),
        "site_dir": str(SITE),
        "use_directory_urls": False,
        "theme": {"name": "material", "font": False, "features": ["navigation.indexes", "toc.follow"]},
        "plugins": ["search"],
        "extra": {"generator": False},
        "markdown_extensions": ["tables", "toc", "attr_list", "pymdownx.superfences", "pymdownx.highlight"],
        "validation": {"links": {"not_found": "warn", "anchors": "warn", "unrecognized_links": "warn"}},
        "nav": menu,
    }


def check() -> None:
    """Fail if a page of the site loads anything from another host."""
    pages = sorted(SITE.rglob("*.html"))
    loaded = {f"{page.relative_to(SITE)}: {url}" for page in pages for url in _LOADED.findall(page.read_text("utf-8"))}
    if loaded or not pages:
        sys.exit("\n".join(sorted(loaded)) or f"{SITE} has no page: run make docs")


if __name__ == "__main__":
    {"prepare": prepare, "check": check}[sys.argv[1]]()
