"""The evaluator's keys in order: each epoch of an oblivious campaign takes the next one, and none is taken twice.

A key that served two campaign files, of one campaign or of two, would let what one of them stored be tested by
evaluations that the other one allows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from pathlib import Path

from hushcount.campaigns.public_keys import EvaluatorKeyPart
from hushcount.errors import UsageError
from keys.listing import listing_directory, read_listing


def listed_keys(sources: Sequence[Path]) -> tuple[EvaluatorKeyPart, ...]:
    """Return the evaluator's keys that are not retired in public.json files or directories with one, oldest first.

    Raises:
        UsageError: a listing is missing or invalid.
    """
    found = [key for source in sources for key in read_listing(listing_directory(source)).kept("evaluator")]
    # A directory may be named twice.
    parts = {key.id: key.part for key in sorted(found, key=lambda key: key.not_before)}
    return tuple(part for part in parts.values() if isinstance(part, EvaluatorKeyPart))


def next_key(sources: Sequence[Path], at: datetime, used: Collection[str] = ()) -> EvaluatorKeyPart:
    """Return the evaluator's key for a campaign that begins at a time.

    Args:
        used: ids of the keys of other campaign files, of all campaigns; the next one stands after all of them.

    Raises:
        UsageError: a listing is missing or invalid, or no key is left that is valid then.
    """
    keys = listed_keys(sources)
    last = max((place for place, key in enumerate(keys) if key.id in used), default=-1)
    left = keys[last + 1 :]
    for key in left:
        if key.not_before <= at < key.not_after:
            return key
    where = ", ".join(map(str, sources)) or "no file"
    spans = ", ".join(f"{key.id} from {key.not_before.isoformat()} to {key.not_after.isoformat()}" for key in left)
    raise UsageError(
        f"no key of the evaluator is left that is valid at {at.isoformat()} and serves no other campaign file: "
        f"{where} holds {spans or 'none'}; hushcount keys new --role evaluator, or hushcount keys rotate, makes the "
        "next, on the evaluator's machine"
    )
