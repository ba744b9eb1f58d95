"""The data files: their names, what they are, and where they come from."""

from __future__ import annotations

import csv
import gzip
import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hushcount.arrays import IntArray
from hushcount.campaigns.dictionary import read_items
from hushcount.errors import UsageError

SHIPPED = Path(__file__).parents[1] / "examples" / "data"


@dataclass(frozen=True)
class Source:
    """A data file.

    Attributes:
        names: possible names of the file; the first that exists is read.
        what: content and format of the file.
        origin: where it comes from.
    """

    names: tuple[str, ...]
    what: str
    origin: str


SOURCES: Mapping[str, Source] = {
    "education": Source(
        ("adult_education.txt.gz", "education.txt.gz"),
        "the education of the 48,842 people of the Adult census extract, one a line",
        "UCI Machine Learning Repository, DOI 10.24432/C5XW20, and shipped in examples/data",
    ),
    "kosarak": Source(
        ("mini_kosarak.csv",),
        "the click stream Kosarak at 1 %, separators counted as values as in the paper's code, columns value and count",
        "the Frequent Itemset Mining Dataset Repository, shrunk as github.com/mingen-pan/CountMeanSketch does",
    ),
    "urls": Source(
        ("url20_modelled_100000.txt.gz",),
        "the first 20 characters of 100,000 URLs, one a line, 30 % of them filled in by a model",
        "github.com/faizann24/Using-machine-learning-to-detect-malicious-URLs (Kaggle teseract/urldataset)",
    ),
    "tweets": Source(
        ("twitter_word_counts.tsv.gz",),
        "words of tweets with their counts, tab-separated",
        "the word clusters of github.com/brendano/ark-tweet-nlp",
    ),
}


def locate(source: str, directory: Path | None) -> Path | None:
    """Return the file in `directory`, or among the data that the project ships; None if it is in neither."""
    folders = [*([directory] if directory else []), SHIPPED]
    paths = (folder / name for folder in folders for name in SOURCES[source].names)
    return next((path for path in paths if path.is_file()), None)


def missing(source: str) -> str:
    """Return a sentence that says which file is missing, what it contains and where it comes from."""
    wanted = SOURCES[source]
    return f"{wanted.names[0]} is missing: {wanted.what}; from {wanted.origin}; give its directory with --data"


def digest(path: Path) -> str:
    """Return the file's SHA-256."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def line_counts(path: Path) -> IntArray:
    """Return int64[d], descending: how often each distinct line occurs."""
    return np.array(sorted(Counter(read_items(path)).values(), reverse=True), dtype=np.int64)


def held_by_value(path: Path, domain: int) -> IntArray:
    """Return int64[domain]: the count of each value 0..domain-1 from a CSV with the columns value and count.

    Raises:
        UsageError: the file is not such a table, or a value is outside the domain.
    """
    held = np.zeros(domain, dtype=np.int64)
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream):
                held[int(row["value"])] += int(row["count"])
    except (KeyError, ValueError, IndexError) as error:
        raise UsageError(f"{path} must have the columns value, in 0..{domain - 1}, and count: {error}") from None
    return held


def tabbed_counts(path: Path) -> IntArray:
    """Return int64[d]: the counts of a gzipped table of word, tab, count.

    Raises:
        UsageError: the file is not such a table.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            return np.array([int(line.rpartition("\t")[2]) for line in stream], dtype=np.int64)
    except (ValueError, OSError) as error:
        raise UsageError(f"{path} must be gzipped lines of word, tab, count: {error}") from None
