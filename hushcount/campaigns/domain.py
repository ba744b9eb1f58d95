"""From strings to the items of a mechanism: positions in the dictionary, or fingerprints if a pool hashes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hushcount.arrays import UInt64Array
from hushcount.campaigns.dictionary import Dictionary
from hushcount.errors import UsageError
from hushcount.items import may_be_item
from hushcount.maths.fingerprints import OTHER, fingerprints
from hushcount.oracles.mechanism import Mechanism


def items_of(mechanism: Mechanism, dictionary: Dictionary | None, values: Sequence[str]) -> UInt64Array:
    """Return uint64[n]: the item of each value; the reserved item "other" for one outside the dictionary.

    A dictionary of None is the open domain, where every string that may be an item is an item of its own.
    """
    if dictionary is not None and mechanism.encoder.domain is not None:
        return dictionary.positions(values)
    known = may_be_item if dictionary is None else dictionary.__contains__
    fit = np.fromiter(map(known, values), dtype=np.bool_, count=len(values))
    # The others may hold a lone surrogate, which has no fingerprint.
    named = fingerprints(value if listed else "" for value, listed in zip(values, fit, strict=True))
    return np.where(fit, named, np.uint64(OTHER))


def other_item(mechanism: Mechanism) -> int:
    """Return the reserved item "other": the last position, or a fingerprint that no string has."""
    return OTHER if mechanism.encoder.domain is None else mechanism.encoder.domain - 1


def known_items(mechanism: Mechanism, dictionary: Dictionary | None, values: Sequence[str]) -> UInt64Array:
    """Return the items of values to estimate; UsageError names the line of one that is not in the dictionary."""
    if dictionary is not None:
        for line, value in enumerate(values, start=1):
            if value not in dictionary:
                raise UsageError(
                    f"item {value!r} (line {line}) is not in the campaign's dictionary, where its reports count as "
                    "'other': ask for listed items, or collect with --open-domain"
                )
    return items_of(mechanism, dictionary, values)


def tally_items(mechanism: Mechanism, wanted: UInt64Array | None = None) -> UInt64Array:
    """Return the items that a tally has columns for, uint64[c], distinct and ascending.

    All of a dictionary with "other"; none if the tally counts cells; in an open domain without a sketch those `wanted`,
    because no other can be asked for later: UsageError if there are none.
    """
    encoder = mechanism.encoder
    if encoder.domain is not None or not encoder.by_item:
        return np.arange(encoder.domain or 0, dtype=np.uint64)
    if wanted is None or not len(wanted):
        raise UsageError(
            "this mechanism has no sketch of an open domain: say which items to count, by --items FILE or by --found "
            "with what hushcount discover found"
        )
    return np.unique(wanted)
