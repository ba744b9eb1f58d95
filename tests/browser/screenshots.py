"""Take the pictures of pages that docs/ shows: a deployment of 2 campaigns and 7 days, wide, narrow and dark; a result.

    python -m tests.browser.screenshots --demo demo-output

`make demo` makes the result. The deployment takes a minute.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.browser.chromium import Chromium, chromium
from tests.support.jobs import done
from tests.support.looked_at import looked_at
from tests.support.plain_engine import instead_of_beam

DOCS = Path(__file__).parents[2] / "docs"
DAYS, CLIENTS = 7, 6000
COLOURS = 256
READY = """async () => {
  while (document.documentElement.dataset.ready !== "yes") await new Promise((done) => setTimeout(done, 5));
}"""


def main() -> None:
    """Make the deployment and take all pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--demo", type=Path, required=True, help="what make demo wrote")
    demo = parser.parse_args().demo
    instead_of_beam(setattr)
    with TemporaryDirectory() as folder, chromium() as browser:
        root = Path(folder) / "features"
        root.mkdir()
        site = looked_at(root, DAYS, CLIENTS)
        page = site.root / "page.html"
        done("dashboard", "--config", site.config, "--out", page)
        take(browser, page, "dashboard-wide", 1000, 1400)
        take(browser, page, "dashboard-narrow", 380, 1000)
        take(browser, page, "dashboard-dark", 1000, 1000, scheme="dark")
        take(browser, demo / "adult" / "results" / "report.html", "result-page", 1000, 1100, full=True)


def take(
    browser: Chromium,
    page: Path,
    name: str,
    width: int,
    height: int,
    *,
    scheme: str = "light",
    full: bool = False,
) -> None:
    """Take a page from its top in few colours, so that the picture is small."""
    from PIL import Image  # matplotlib brings it

    tab = browser.device(page.resolve().as_uri(), viewport={"width": width, "height": height}, colorScheme=scheme)
    tab.run(READY)
    path = DOCS / f"{name}.png"
    tab.screenshot(path, full=full)
    with Image.open(path) as taken:
        taken.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    sys.exit(main())
