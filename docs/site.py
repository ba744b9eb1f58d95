"""Put the pages together as a site: `make docs`. The pages keep their folders, so that links lead where they lead here.

python docs/site.py prepare     write build/docs: the pages, and mkdocs.json for mkdocs
python docs/site.py check       fail if a page of build/site loads anything from another host
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES, SITE = ROOT / "build" / "docs", ROOT / "build" / "site"
NAV = {
    "Start": {
        "Hushcount": "README.md",
        "Get started": "docs/get-started.md",
        "Glossary": "docs/glossary.md",
        "Example data": "examples/data/README.md",
        "Changelog": "CHANGELOG.md",
    },
    "Collect": {
        "From an app": "docs/app-developers.md",
        "In TypeScript": "clients/typescript/README.md",
        "In Rust": "clients/rust/README.md",
        "In C and Go": "clients/rust/c/README.md",
        "In Kotlin and Swift": "clients/rust/bindings/README.md",
        "For operators": "docs/operators.md",
        "Every key of the deployment file": "docs/deployment-file.md",
        "Each party apart": "deploy/README.md",
        "For the second party": "deploy/second-party/README.md",
        "Back up and restore": "docs/backup.md",
        "The log": "docs/log.md",
        "Performance": "docs/performance.md",
        "At scale": "docs/scaling.md",
        "Benchmarks": "benchmarks/RESULTS.md",
    },
    "Results and privacy": {
        "For analysts": "docs/analysts.md",
        "Estimates as data": "docs/data.md",
        "For privacy reviewers": "docs/privacy-reviewers.md",
        "Threat model": "docs/threat-model.md",
        "Security": "SECURITY.md",
        "Mathematics": "docs/mathematics.md",
        "Experiments": "experiments/README.md",
    },
    "Develop": {
        "For contributors": "docs/contributors.md",
        "Wire format": "docs/wire-format.md",
        "Test vectors": "vectors/README.md",
    },
}
"""The menu: groups, and the title and file of each page. The decisions come after the last one."""
DECISIONS = "docs/adr"
ASSETS = "docs/assets"
PALETTE = [
    {
        "media": "(prefers-color-scheme: light)",
        "scheme": "default",
        "toggle": {"icon": "material/weather-night", "name": "Dark"},
    },
    {
        "media": "(prefers-color-scheme: dark)",
        "scheme": "slate",
        "toggle": {"icon": "material/weather-sunny", "name": "Light"},
    },
]
HIGHLIGHT = {"line_spans": "line", "pygments_lang_class": True}
"""Lines and languages that site.css names."""
INDEX = "README.md"
"""Of the decisions."""
SHOWN = {".md", ".png", ".svg", ".json", ".css", ".js"}
_TAB = re.compile(r"^\*\*In ([^*\n]+):\*\*\n\n(```.*?^```\n)", re.DOTALL | re.MULTILINE)
"""A block of one language; on the site, neighbours are tabs."""
_LOADED = re.compile(r"""<(?:script|img|link|iframe)\b[^>]*?\b(?:src|href)=["']?((?:https?:)?//[^"'\s>]+)""")


def prepare() -> None:
    """Copy what the site shows into build/docs and write mkdocs.json."""
    shutil.rmtree(PAGES, ignore_errors=True)
    decisions = sorted((ROOT / DECISIONS).glob("0*.md"))
    pages = [page for group in NAV.values() for page in group.values()]
    # Of the folders of code only their page: what is fetched and built there has pages too.
    alone = [page for page in pages if "/" not in page or page.startswith("clients/")]
    folders = {(ROOT / page).parent for page in pages if page not in alone}
    shown = [ROOT / page for page in alone]
    shown += [path for folder in folders for path in folder.rglob("*") if path.suffix in SHOWN and path.is_file()]
    for path in shown:
        copy = PAGES / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        if path.suffix == ".md":
            # A site has no listing of a folder: its index stands for it.
            text = re.sub(r"(\]\((?:docs/)?adr/)\)", rf"\g<1>{INDEX})", path.read_text("utf-8"))
            copy.write_text(_TAB.sub(tab, text), "utf-8")
    listed = [f"{DECISIONS}/{name}" for name in (INDEX, *(path.name for path in decisions))]
    menu: dict[str, list[object]]
    menu = {name: [{title: page} for title, page in group.items()] for name, group in NAV.items()}
    menu["Develop"].append({"Decisions": listed})
    (PAGES.parent / "mkdocs.json").write_text(json.dumps(settings([{name: of} for name, of in menu.items()]), indent=1))


def tab(found: re.Match[str]) -> str:
    """Return a block of one language as a tab."""
    return f'=== "{found[1]}"\n\n{textwrap.indent(found[2], "    ")}'


def settings(menu: list[object]) -> dict[str, object]:
    """Return the settings of mkdocs: nothing that a page loads is on another host, and the search needs no server."""
    return {
        "site_name": "Hushcount",
        "docs_dir": str(PAGES),
        "site_dir": str(SITE),
        "theme": {
            "name": "material",
            "font": False,
            "features": ["navigation.tabs", "toc.integrate", "search.highlight", "content.tabs.link"],
            "palette": PALETTE,
        },
        "plugins": ["search", "offline"],
        "extra": {"generator": False, "polyfills": [f"{ASSETS}/iframe-worker.js"]},
        "extra_css": [f"{ASSETS}/site.css"],
        "markdown_extensions": [
            "attr_list",
            "pymdownx.superfences",
            {"pymdownx.highlight": HIGHLIGHT},
            {"pymdownx.tabbed": {"alternate_style": True}},
        ],
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
