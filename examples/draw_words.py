"""Draw the demo's words from Norvig's counts: `python examples/draw_words.py COUNTS.tsv.gz examples/data`.

Every tenth word is left out of the dictionary, as if this word were newer than the dictionary. The dictionary has the
20,000 most frequent of the other words. The values are 200,000 words, drawn with replacement in proportion to all
333,333 counts. The seed makes the draw repeatable.
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np

SEED = 20_000
WORDS_IN_DICTIONARY = 20_000
DRAWS = 200_000
LEFT_OUT = 10


def main(counts_file: Path, directory: Path) -> None:
    """Write both files."""
    with gzip.open(counts_file, "rt", encoding="utf-8") as stream:
        rows = [line.rstrip("\n").split("\t") for line in stream]
    words = np.array([word for word, _ in rows])
    counts = np.array([int(count) for _, count in rows], dtype=np.float64)
    ranks = np.arange(1, len(words) + 1)
    dictionary = words[ranks % LEFT_OUT != 0][:WORDS_IN_DICTIONARY]
    # The example data are public, so an ordinary random generator is enough.
    drawn = np.random.default_rng(SEED).choice(words, size=DRAWS, p=counts / counts.sum())
    _write(directory / "words_dictionary.txt.gz", dictionary)
    _write(directory / "words.txt.gz", drawn)


def _write(path: Path, lines: np.ndarray) -> None:
    with path.open("wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as stream:
        stream.write("".join(f"{line}\n" for line in lines).encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
