"""Where balanced designs come from: constructed, shipped with the package, or a file in the user's cache."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from hushcount.designs.balanced import LARGEST_WIDTH, Design, constructed_design, require_balance
from hushcount.errors import FormatError, UsageError
from hushcount.formats.models import Hex32, Part
from hushcount.formats.reading import parse_model, read_file
from hushcount.formats.whole_files import write_new
from hushcount.maths.objectives import Objective
from hushcount.maths.primes import is_prime, prime_at_least
from hushcount.maths.probability import spending_probability
from hushcount.maths.variance import supporting

_NAME = re.compile(r"([1-9][0-9]{0,3})-([1-9][0-9]{0,3})-([0-9a-f]{64})", re.ASCII)
_FILE_BYTES = 1 << 26
_L2 = Objective()


class DesignPart(Part):
    """One design in a file."""

    width: int = Field(ge=2, le=LARGEST_WIDTH)
    size: int = Field(ge=1, le=LARGEST_WIDTH)
    turns: int = Field(ge=1, le=LARGEST_WIDTH)
    digest: Hex32
    blocks: list[str] = Field(
        description="cells of each block as a bitmap, hexadecimal, cell 0 the least bit of byte 0"
    )
    weights: list[int] = Field(description="of each block, and of each of its turns")

    def design(self) -> Design:
        """Return the design; UsageError if it is not balanced, not what its digest says, or no design at all."""
        octets = (self.width + 7) // 8
        if not all(re.fullmatch(f"[0-9a-f]{{{2 * octets}}}", block) for block in self.blocks):
            raise UsageError(f"every block must be {octets} bytes in hexadecimal digits for {self.width} cells")
        bitmaps = np.frombuffer(bytes.fromhex("".join(self.blocks)), dtype=np.uint8).reshape(-1, octets)
        bits = np.unpackbits(bitmaps, axis=1, bitorder="little")
        blocks = tuple(tuple(np.flatnonzero(row).tolist()) for row in bits)
        found = Design(self.width, self.size, self.turns, blocks, tuple(self.weights))
        if found.digest != self.digest:
            raise UsageError(f"digest of the design is {found.digest}, must be {self.digest}")
        return require_balance(found)


class DesignFile(Part):
    """A file of designs."""

    format: Literal[1] = 1
    designs: list[DesignPart]


def file_text(designs: Sequence[Design]) -> str:
    """Return the text of a file of designs, one a line."""
    parts = [
        {
            "width": design.width,
            "size": design.size,
            "turns": design.turns,
            "digest": design.digest,
            "blocks": [bitmap.tobytes().hex() for bitmap in np.packbits(design.members, axis=1, bitorder="little")],
            "weights": list(design.weights),
        }
        for design in designs
    ]
    lines = ",\n".join(map(json.dumps, parts))
    return f'{{"format": 1, "designs": [\n{lines}\n]}}\n'


def read_designs(path: Path) -> list[Design]:
    """Read a file of designs and verify every one.

    Raises:
        FormatError: it is not a file of designs, or one of them is not balanced or not what its digest says.
    """
    try:
        return [part.design() for part in _parts(read_file(path, "designs", _FILE_BYTES), str(path))]
    except UsageError as error:
        raise FormatError(f"cannot use the designs in {path}: {error}") from None


def cache_directory() -> Path:
    """Return where designs are kept: `designs` in HUSHCOUNT_CACHE, or in `hushcount` of the user's cache directory."""
    own = os.environ.get("HUSHCOUNT_CACHE")
    shared = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(own or Path(shared) / "hushcount") / "designs"


def cache_path(name: str) -> Path:
    """Return the file that holds the named design in the cache."""
    return cache_directory() / f"{name}.json"


def store_design(design: Design) -> Path:
    """Write a design into the cache and return its file; an existing file stays as it is."""
    path = cache_path(design.name)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        write_new(path, file_text([design]), 0o600)
    return path


def load_design(name: str) -> Design:
    """Return the design that a campaign names: constructed, shipped, or from the cache, and verified by its digest.

    Raises:
        UsageError: `name` is not width-size-digest, or the design is not on this machine: where to put it.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise UsageError(f"design is {name!r}, must be width-size-digest, as in 100-27-fb9b...")
    for design in _known(int(match[1]), int(match[2])):
        if design.name == name:
            return design
    raise UsageError(
        f"design {name} is not on this machine: ask whoever made the campaign for its file and put it at "
        f"{cache_path(name)}"
    )


def find_design(width: int, size: int) -> Design:
    """Return a design of this shape without a search: constructed, else shipped, else from the cache.

    Raises:
        UsageError: no design is known; the sentence says what to do.
    """
    for design in _known(width, size):
        return design
    raise UsageError(
        f"no design of width {width} and size {size} is known: search_design finds one and store_design keeps it, or "
        "use mechanism ais, which needs no design and is within 0.1 % of its precision at 100 items"
    )


def nearest_design(domain: int, epsilon: float, objective: Objective = _L2, size: int | None = None) -> Design:
    """Return the design of least loss that is at hand for a dictionary, which may be extended to a larger width.

    Widths up to the next prime are compared, because that has every size. The extension costs little: at epsilon 1,
    from 98 items to 100 cells 0.04 %, from 200 items to 211 cells 0.07 %.

    Raises:
        UsageError: the domain is outside 2..1021 items, or no design of this `size`, if it is fixed, is at hand.

    Reference: [P26] section 5.3, last paragraph.
    """
    last = prime_at_least(domain)
    if not 2 <= domain <= last <= LARGEST_WIDTH:
        raise UsageError(f"domain is {domain}, must be in 2..1021 items for a design: use mechanism ais for more")
    shapes = [(width, chosen) for width in range(domain, last + 1) for chosen in known_sizes(width)]
    fitting = [shape for shape in shapes if size in (None, shape[1])]
    if not fitting:
        raise UsageError(f"size is {size}, must be in 1..{last - 1} for {domain} items")

    def loss(shape: tuple[int, int]) -> float:
        width, chosen = shape
        p = spending_probability(epsilon, width, chosen)
        return float(objective.loss(supporting(p, (chosen - p) / (width - 1)), domain))

    return find_design(*min(fitting, key=loss))


def known_sizes(width: int) -> list[int]:
    """Return the sizes of the designs of this width that are at hand, ascending."""
    if is_prime(width):
        return list(range(1, width))
    named = {int(path.name.split("-")[1]) for path in _cached(width)}
    shipped = {part.size for part in _shipped() if part.width == width}
    return sorted({1, 2, width - 1} & set(range(1, width)) | shipped | named)


@lru_cache(maxsize=32)
def shipped_designs(width: int) -> tuple[Design, ...]:
    """Return the package's designs of this width, verified.

    Each is `search_design(width, size)`. Widths are those of small dictionaries, for which the spare cells up to the
    next prime would cost most; sizes are those of least l2 and of least worst-case error at epsilon 0.5, 1, 2, 3 and 4.
    """
    return tuple(part.design() for part in _shipped() if part.width == width)


@lru_cache(maxsize=1)
def _shipped() -> list[DesignPart]:
    file = resources.files("hushcount.designs") / "designs.json"
    return _parts(file.read_bytes(), file.name)


def _known(width: int, size: int) -> Iterator[Design]:
    """Yield the designs of a shape, those that everyone has first."""
    constructed = constructed_design(width, size)
    if constructed is not None:
        yield constructed
    yield from (design for design in shipped_designs(width) if design.size == size)
    for path in _cached(width, size):
        yield from read_designs(path)


def _cached(width: int | None = None, size: int | None = None) -> list[Path]:
    """Return the cache's files of that shape, by their names, sorted."""
    directory = cache_directory()
    if not directory.is_dir():
        return []
    pattern = f"{'*' if width is None else width}-{'*' if size is None else size}-*.json"
    return sorted(path for path in directory.glob(pattern) if _NAME.fullmatch(path.stem))


def _parts(raw: bytes, name: str) -> list[DesignPart]:
    return parse_model(DesignFile, raw, name, "is not a file of designs").designs
