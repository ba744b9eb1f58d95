"""Print what reports cost a page in Chromium: time of one, and the longest stretch in which the page could do nothing.

    python -m tests.browser.measure

`make build/web/index.js` makes what it measures.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.browser.chromium import chromium
from tests.browser.deployment import prepared

_ONE_BY_ONE = """async ([where, number]) => {
  const sender = await people.person(where, { mostQueued: 100_000 });
  await sender.report("feature-0");
  const began = performance.now();
  for (let each = 0; each < number; each += 1) await sender.report("feature-0");
  return (performance.now() - began) / number;
}"""
_AT_ONCE = """async ([where, number]) => {
  // The cap of one person is a thousand at most.
  const senders = await Promise.all(
    Array.from({ length: number / 1000 }, (_, name) => people.person(where, { mostQueued: 100_000 }, `of ${name}`)),
  );
  for (const sender of senders) await sender.report("feature-0");
  let longest = 0;
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) longest = Math.max(longest, duration);
  }).observe({ type: "longtask" });
  // Long tasks begin at 50 ms; gaps between two turns of a timer show shorter ones.
  let last = performance.now(), gap = 0, gaps = [], over = false;
  const channel = new MessageChannel();
  channel.port1.onmessage = () => {
    const now = performance.now();
    gaps.push(now - last);
    last = now;
    if (!over) channel.port2.postMessage(0);
  };
  channel.port2.postMessage(0);
  const began = performance.now();
  await Promise.all(senders.flatMap((sender) => Array.from({ length: 999 }, () => sender.report("feature-0"))));
  const took = performance.now() - began;
  over = true;
  gaps.sort((one, other) => other - one);
  return { each: took / number, gap: gaps[0], often: gaps[Math.floor(gaps.length / 1000)], longest };
}"""


def main() -> None:
    """Measure in a fresh browser."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reports", type=int, default=10_000, help="at once, a multiple of 1000")
    reports = parser.parse_args().reports
    with TemporaryDirectory() as folder, chromium() as browser:
        measured = prepared(Path(folder), cap=1000)
        with measured.open():
            one = browser.device(measured.pages.origin).run(_ONE_BY_ONE, [measured.where, 200])
            many = browser.device(measured.pages.origin).run(_AT_ONCE, [measured.where, reports])
    print(f"one value, of both streams, kept on the disk: {one:.2f} ms")
    print(f"{reports} at once: {many['each']:.2f} ms each; longest stretch {many['gap']:.1f} ms", end="")
    print(f", one in a thousand over {many['often']:.1f} ms; longest task of 50 ms or more {many['longest']:.0f} ms")


if __name__ == "__main__":
    sys.exit(main())
