"""Print what a served page of many items and windows costs: at the server, on the way, and in Chromium.

    python -m tests.browser.measure_page --items 10000 --windows 365

To make the results takes some minutes.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from tests.browser.chromium import chromium
from tests.support.collecting import collect
from tests.support.jobs import done, write_lines
from tests.support.plain_engine import instead_of_beam
from tests.support.served import serving
from tests.support.site import FLOOR, Site

_PAINTED = """async () => {
  while (performance.getEntriesByName("drawn").length === 0) await new Promise((done) => setTimeout(done, 5));
  const [paint] = performance.getEntriesByName("first-contentful-paint");
  return [paint.startTime, performance.getEntriesByName("drawn")[0].startTime];
}"""
_SEARCHED = """async (item) => {
  const box = document.querySelector(".search"), list = document.querySelector(".matches");
  const began = performance.now();
  box.value = item;
  box.dispatchEvent(new Event("input"));
  const searched = performance.now() - began;
  box.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
  const there = () => [...document.querySelectorAll(".chosen bdi")].some((one) => one.textContent === item);
  while (!there()) await new Promise((done) => setTimeout(done, 1));
  return [searched, performance.now() - began];
}"""


def main() -> None:
    """Make the deployment, serve it, and look at it cold and warm."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--windows", type=int, default=365)
    asked = parser.parse_args()
    instead_of_beam(setattr)
    with TemporaryDirectory() as folder:
        site = Site(Path(folder))
        items = [f"part-{number % 97}/feature-{number}" for number in range(asked.items)]
        words = write_lines(site.root / "features.txt", items)
        path = site.add("many", mechanism="ss", epsilon=4.0, dictionary=words, min_batch=FLOOR)
        for day in range(asked.windows):
            collect(site.store, path, [items[number % 20] for number in range(400)], day=day)
            site.run(day + 1.1, sure=True)
        out = site.root / "page.html"
        began = time.process_time()
        done("dashboard", "--config", site.config, "--out", out, "--last", asked.windows)
        print(f"file: {time.process_time() - began:.1f} s of CPU, {out.stat().st_size / 1e6:.2f} MB")
        with serving(site.config, site.root / "log", "--last", str(asked.windows)) as address, chromium() as browser:
            page = f"{address}campaigns/many"
            for state in ("cold", "warm"):
                began = time.monotonic()
                answer = httpx.get(page, timeout=600)
                took = time.monotonic() - began
                print(f"{state}: {took:.2f} s to {len(answer.content) / 1e6:.2f} MB")
            tab = browser.device(page)
            painted, drawn = tab.run(_PAINTED)
            searched, chosen = tab.run(_SEARCHED, items[-1])
            print(f"first paint {painted:.0f} ms, first chart {drawn:.0f} ms, search {searched:.1f} ms, ", end="")
            print(f"the item fetched and drawn {chosen:.0f} ms after")


if __name__ == "__main__":
    sys.exit(main())
