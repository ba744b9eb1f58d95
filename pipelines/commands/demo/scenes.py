"""The scenes of the demo: which data are collected, by which mechanism, at which epsilon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Scene:
    """One collection of the demo.

    Attributes:
        name: id of the campaign, and folder of the scene's files.
        title: what is counted.
        values: file of the data directory with one value a line, each of another client.
        dictionary: file of the data directory with the known items; None: nobody listed any value.
        thing: noun for one value, and `things` for several.
        mechanism: name in the catalogue of frequency oracles; "noise": the mixes add noise.
        epsilon: local budget of one report; with noise, that of a client in a window.
        discovery: settings of discovery; None: unlisted values are not looked for.
    """

    name: str
    title: str
    values: str
    dictionary: str | None
    thing: str
    mechanism: str
    epsilon: float
    discovery: dict[str, Any] | None = None

    @property
    def things(self) -> str:
        """Return the noun for several values."""
        return f"{self.thing}{'es' if self.thing.endswith('s') else 's'}"

    @property
    def files(self) -> tuple[str, ...]:
        """Return the names of the scene's files in the data directory."""
        return (self.values,) if self.dictionary is None else (self.values, self.dictionary)


_ADULT = "Education of 48,842 people (Adult census), 16 listed values"
_WORDS = "200,000 words typed, 20,000 known ones, the others to be discovered (Norvig's counts)"
_ADDRESSES = "40,000 visits to addresses, none of them listed (made up: examples/data/README.md)"
_DISCOVERY = {"epsilon": 1.0, "delta": 1e-8}
SCENES = (
    Scene("adult", _ADULT, "education.txt.gz", "education_dictionary.txt", "level", "ss", 1.0),
    Scene(
        "words", _WORDS, "words.txt.gz", "words_dictionary.txt.gz", "word", "ais", 4.0,
        {**_DISCOVERY, "max_value_bytes": 32, "counts": True},
    ),
    # Without counts of its own, discovery reveals only values: their counts come from the sketch.
    Scene(
        "addresses", _ADDRESSES, "addresses.txt.gz", None, "address", "gcms", 4.0,
        {**_DISCOVERY, "max_value_bytes": 40},
    ),
)  # fmt: skip
NOISE = Scene(
    "noise", "200,000 words typed, sealed and not randomised; the mixes add noise to every tenth known word",
    "words.txt.gz", "words_dictionary.txt.gz", "word", "noise", 1.0,
)  # fmt: skip
GLOSSARY = (
    ("stream", "one kind of reports: frequency reports are counted, discovery reports find unlisted values"),
    ("bin", "all discovery reports of one value: equal hashes with equal sealed values"),
    ("replace-one", "compared are the same reports with one client's value replaced by any other value"),
    ("z", "error of an estimate (estimate minus truth), in standard errors"),
    (
        "odds",
        "in (epsilon, delta), delta is not the chance that the odds change by more than a factor of e^epsilon: this "
        "can happen more often. So the sentences on odds state a larger factor, which is exceeded only with the stated "
        "chance (docs/mathematics.md, section 7)",
    ),
    ("other", "the item that every value outside the dictionary is counted as"),
    ("found.csv", "the values found, in words/results; column bias: by how much a count is too high on average"),
    ("withheld", "on purpose: a value that few clients sent could tell who they are, so nobody gets to see it"),
)
"""Words of the demo's output, explained at its end."""
NOISE_GLOSSARY = (
    ("mixes", "shuffler and auxiliary server: each adds dummies, and permutes them with the reports"),
    ("dummies", "reports that a mix makes: nobody but this mix can tell them from clients' reports"),
    ("sealed", "only the party with the key can open a report, but whoever opens it reads the value itself"),
    *(word for word in GLOSSARY if word[0] == "other"),
)
