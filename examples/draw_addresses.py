"""Draw the demo's addresses: `python examples/draw_addresses.py examples/data`.

The 20,000 addresses are made up: each is a host, a section and two words. The address of rank r is visited with a
probability proportional to `1/(r + 2)`, and which address has which rank is drawn too. The values are 40,000 visits,
each of another person. The seed makes the draw repeatable.
"""

from __future__ import annotations

import gzip
import itertools
import sys
from pathlib import Path

import numpy as np

SEED = 20_001
DRAWS = 40_000
SHIFT = 2
HOSTS = ("maps", "news", "shop", "wiki")
SECTIONS = ("animals", "art", "coats", "food", "music", "sport", "toys", "travel")
FIRST = (
    "big", "blue", "calm", "cold", "dark", "early", "fast", "fine", "free", "green", "high", "late", "light",
    "long", "new", "north", "old", "quiet", "red", "round", "slow", "small", "south", "warm", "wide",
)  # fmt: skip
SECOND = (
    "bay", "bird", "boat", "bridge", "cloud", "day", "door", "field", "fish", "forest", "garden", "hill", "house",
    "island", "lake", "moon", "night", "path", "rain", "river", "road", "sea", "star", "stone", "wind",
)  # fmt: skip


def main(directory: Path) -> None:
    """Write the file."""
    parts = itertools.product(HOSTS, SECTIONS, FIRST, SECOND)
    addresses = np.array([f"{host}.example/{section}/{one}-{two}" for host, section, one, two in parts])
    # The example data are public, so an ordinary random generator is enough.
    generator = np.random.default_rng(SEED)
    generator.shuffle(addresses)
    weights = 1.0 / (np.arange(1, len(addresses) + 1) + SHIFT)
    drawn = generator.choice(addresses, size=DRAWS, p=weights / weights.sum())
    path = directory / "addresses.txt.gz"
    with path.open("wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as stream:
        stream.write("".join(f"{address}\n" for address in drawn).encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
