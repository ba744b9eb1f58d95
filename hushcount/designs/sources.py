"""The sources of balanced designs: a design is constructed, or shipped with the package."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np

from hushcount.designs.balanced import LARGEST_WIDTH, Design, constructed_design
from hushcount.errors import UsageError
from hushcount.formats.reading import parse_object
from hushcount.maths.objectives import Objective
from hushcount.maths.primes import is_prime, prime_at_least
from hushcount.maths.probability import spending_probability
from hushcount.maths.variance import supporting

_NAME = re.compile(r"([1-9][0-9]{0,3})-([1-9][0-9]{0,3})-([0-9a-f]{64})", re.ASCII)
_L2 = Objective()


def load_design(name: str) -> Design:
    """Return the design that a campaign names; the design's name contains a digest of the whole design.

    Raises:
        UsageError: `name` is not width-size-digest, or this package does not know the design.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise UsageError(f"design is {name!r}, must be width-size-digest, as in 100-27-fb9b...")
    for design in _known(int(match[1]), int(match[2])):
        if design.name == name:
            return design
    raise UsageError(f"design {name} is unknown to this version: update to the version that made the campaign")


def find_design(width: int, size: int) -> Design:
    """Return a design of this shape, constructed or else shipped; UsageError says what to do if no design is known."""
    for design in _known(width, size):
        return design
    raise UsageError(
        f"no design of width {width} and size {size} is known: use mechanism ais, which needs no design and is within "
        "0.1 % of its precision at 100 items"
    )


def nearest_design(domain: int, epsilon: float, objective: Objective = _L2, size: int | None = None) -> Design:
    """Return the known design of least loss for `domain` items; a design may have more cells than there are items.

    Widths up to the next prime are compared, because a prime width has designs of every size. Spare cells increase the
    error only a little: at epsilon 1, by 0.04 % for 98 items in 100 cells, and by 0.07 % for 200 items in 211 cells.

    Raises:
        UsageError: the domain is outside 2..1021 items, or `size` is fixed and no design of this size is known.

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
    """Return the sizes of the known designs of this width, in ascending order."""
    if is_prime(width):
        return list(range(1, width))
    return sorted({1, 2, width - 1} & set(range(1, width)) | {size for of, size in _shipped() if of == width})


@lru_cache(maxsize=8)
def shipped_design(width: int, size: int) -> Design | None:
    """Return the design of this shape that is shipped with the package, or None.

    `experiments/designs.py` found these designs. The widths of the shipped designs are those of small dictionaries,
    because spare cells up to the next prime would increase the error of small dictionaries most. The sizes of the
    shipped designs have the least l2 or the least worst-case error at epsilon 0.5, 1, 2, 3 and 4.
    """
    part = _shipped().get((width, size))
    if part is None:
        return None
    # Each block is a bitmap of cells; cell 0 is the least significant bit of byte 0.
    bitmaps = np.frombuffer(bytes.fromhex("".join(part["blocks"])), dtype=np.uint8).reshape(-1, (width + 7) // 8)
    bits = np.unpackbits(bitmaps, axis=1, bitorder="little")
    blocks = tuple(tuple(np.flatnonzero(row).tolist()) for row in bits)
    return Design(width, size, part["turns"], blocks, tuple(part["weights"]))


@lru_cache(maxsize=1)
def _shipped() -> dict[tuple[int, int], dict[str, Any]]:
    raw = (resources.files("hushcount.designs") / "designs.json").read_bytes()
    return {(part["width"], part["size"]): part for part in parse_object(raw, "designs.json")["designs"]}


def _known(width: int, size: int) -> Iterator[Design]:
    yield from (design for design in (constructed_design(width, size), shipped_design(width, size)) if design)
