"""Draw cases that nobody chose, for a client in another language: `python -m tests.vectors.drawn --into FOLDER`.

The folder gets all vectors, but `reports.json` with fresh items and words for every mechanism, and `mutated.json`:
campaign files with a few random changes, each with its fingerprint. It is null if Python refuses the file, or would
write it in another way: a client in another language hashes what it reads. The same seed draws the same cases.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hushcount.campaigns.campaign import Campaign
from hushcount.errors import UsageError
from hushcount.formats.canonical_json import canonical_json
from tests.vectors.make import FOLDER, text
from tests.vectors.subjects import reports
from tests.vectors.subjects.script import Recorder

_MOST_WORDS = 5000
_LEAVES: tuple[Any, ...] = (
    *(0, 1, -1, 2, 1.0, 0.5, 1e-9, 1e300, (1 << 53) - 1, 1 << 53, -0.0, 40, 41, 1000, 4096),
    *("", "a", "0", "other", "one", "13.0", "grr", "line", "rappor", "é", "x" * 65, "0" * 64, "f" * 64, "5eed" * 16),
    *("2026-02-30T00:00:00Z", "2026-12-01T00:00:00+01:00", "2026-12-01T00:00:00.120000Z", "optimal", "site", "day"),
    *(True, False, None, [], {}, [0], ["a"], {"a": 1}),
)


def main() -> None:
    """Write the cases."""
    parser = argparse.ArgumentParser(prog="python -m tests.vectors.drawn", description=__doc__)
    parser.add_argument("--into", type=Path, required=True, help="a folder, which is made")
    parser.add_argument("--seed", type=int, default=0, help="of all draws (default 0)")
    parser.add_argument("--reports", type=int, default=300, help="number of reports (default 300)")
    parser.add_argument("--campaigns", type=int, default=2000, help="number of mutated campaign files (default 2000)")
    given = parser.parse_args()
    shutil.copytree(FOLDER, given.into, dirs_exist_ok=True)
    for name, content in (
        ("reports", drawn_reports(given.seed, given.reports)),
        ("mutated", mutated(given.seed, given.campaigns)),
    ):
        (given.into / f"{name}.json").write_text(text(content), encoding="ascii")


def drawn_reports(seed: int, number: int) -> dict[str, Any]:
    """Return `reports.json` with so many reports of items and words that are drawn, the mechanisms in turn."""
    chooser, cases = random.Random(seed), reports.cases()  # chooses cases of a test
    entries = []
    for place in range(number):
        case = cases[place % len(cases)]
        item, words = int(chooser.choice(case.items)), Recorder(seed, place)
        packed = case.mechanism.pack(case.mechanism.encode(case.items[case.items == item][:1], words)).tobytes()
        if len(words.taken) <= _MOST_WORDS:
            drawn = [f"{word:016x}" for word in words.taken]
            entries.append({"mechanism": case.name, "item": str(item), "words": drawn, "report": packed.hex()})
    return {**reports.data(), "accept": entries}


def mutated(seed: int, number: int) -> dict[str, Any]:
    """Return so many campaign files with one to three random changes, and what Python says of each."""
    chooser = random.Random(seed)  # chooses cases of a test
    files = [entry["file"] for entry in json.loads((FOLDER / "campaigns.json").read_text("utf-8"))["accept"]]
    entries = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(number):
            file = json.loads(json.dumps(chooser.choice(files)))
            for _ in range(chooser.choice((1, 1, 1, 2, 3))):
                _spoil(file, files, chooser)
            raw = json.dumps(file, ensure_ascii=chooser.random() < 0.5).encode()
            if chooser.random() < 0.1:
                raw = _garbled(raw, chooser)
            entries.append({"file": raw.hex(), "fingerprint": _fingerprint(raw, Path(folder) / "campaign.json")})
    return {"subject": "mutated", "accept": entries}


def _fingerprint(raw: bytes, path: Path) -> str | None:
    path.write_bytes(raw)
    try:
        campaign = Campaign.read(path)
    except UsageError:
        return None
    return campaign.fingerprint.hex() if _canonical(campaign.text()) == _canonical(raw) else None


def _canonical(text: str | bytes) -> bytes:
    return canonical_json(json.loads(text))


def _spoil(file: dict[str, Any], files: list[dict[str, Any]], chooser: random.Random) -> None:
    """Change, remove, add or take from another file one field at a random place."""
    places = list(_places(file))
    parent, key = chooser.choice(places)
    kind = chooser.randrange(8)
    numbers = [place for place in places if type(place[0][place[1]]) in (int, float)]
    if kind >= 5:
        parent, key = chooser.choice(numbers)
        parent[key] = chooser.choice((1, 2, 3, 7, 0.25, 1.5, 1e-7, round(parent[key] * 1.3, 9), parent[key] + 1))
    elif kind == 0:
        del parent[key]
    elif kind == 1:
        other, taken = chooser.choice(list(_places(chooser.choice(files))))
        parent[key] = other[taken]
    elif kind == 2 and isinstance(parent, dict):
        parent[chooser.choice(("a", "path", "format", "seed", "k", "windows", "noise", "sample", "passes", "p"))] = (
            chooser.choice(_LEAVES)
        )
    elif kind == 3 and isinstance(parent[key], int | float) and not isinstance(parent[key], bool):
        parent[key] = chooser.choice((parent[key] + 1, parent[key] - 1, -parent[key], parent[key] * 2, parent[key] / 2))
    else:
        parent[key] = chooser.choice(_LEAVES)


def _places(data: Any) -> list[tuple[Any, Any]]:
    """Return all pairs of an object or list and a key or place in it."""
    keys = list(data) if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else []
    return [(data, key) for key in keys] + [pair for key in keys for pair in _places(data[key])]


def _garbled(raw: bytes, chooser: random.Random) -> bytes:
    """Return the text with one byte changed, removed or repeated."""
    place = chooser.randrange(len(raw))
    middle = chooser.choice((b"", raw[place : place + 1] * 2, bytes([chooser.randrange(256)])))
    return raw[:place] + middle + raw[place + 1 :]


if __name__ == "__main__":
    main()
