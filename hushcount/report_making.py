"""The steps of making reports, without counting or charging; `Client` and `ManyClients` share these steps."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from hushcount.arrays import UInt64Array
from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary, items_of
from hushcount.discovery.making import Making
from hushcount.discovery.oblivious import Ask, require_public_key
from hushcount.errors import UsageError
from hushcount.items import fault_of_text
from hushcount.numbers import position_of, text_of_number
from hushcount.randomness import SystemWords
from hushcount.strata import COORDINATE, Strata, stratum_octets
from hushcount.window_starts import window_octets
from hushcount.wire.sealing import Octets, Sealer, after


def checked_dictionary(campaign: Campaign, dictionary: Dictionary | None) -> Dictionary | None:
    """Return the campaign's dictionary, by default read from its file; check that reports can be made.

    Raises:
        UsageError: the dictionary is missing or not the campaign's dictionary; the campaign file is a redacted one,
            without the key of the discovery hash; or the evaluator's key is invalid.
    """
    if campaign.discovery is not None:
        campaign.require_whole()
    if campaign.is_oblivious:
        require_public_key(campaign.require_evaluator_key())
    if dictionary is None:
        return campaign.read_dictionary()
    if campaign.dictionary is None:
        raise UsageError("a dictionary was given, but the campaign's domain is open: give no dictionary")
    if not campaign.dictionary.is_of(dictionary):
        raise UsageError("the dictionary is not the campaign's: give the one that came with it")
    return dictionary


def plain_text(value: str | float) -> str:
    """Return a value as text; UsageError: it is neither a text nor a number."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UsageError(f"a value is a {type(value).__name__}, must be a str or a number")
    try:
        return text_of_number(float(value))
    except OverflowError:
        return "Infinity" if value > 0 else "-Infinity"


_MAY_BE_LISTED = re.compile(rf"[a-z0-9][a-z0-9._-]{{0,63}}={COORDINATE}").fullmatch


@dataclass(frozen=True)
class Measurement:
    """What an app reports: a value as text, and the client's coordinates by axis, those that a campaign may list."""

    value: str = field(repr=False)
    by: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, value: str | float, by: Mapping[str, str | float] | None = None) -> Measurement:
        """Return what an app gave; UsageError: a value is neither a str nor a number, or an axis is no str."""
        if by is not None and (not isinstance(by, Mapping) or not all(isinstance(name, str) for name in by)):
            raise UsageError(f"by is a {type(by).__name__}, must be a mapping from the names of axes to coordinates")
        texts = [(name, plain_text(one)) for name, one in (by or {}).items()]
        return cls(plain_text(value), tuple((name, one) for name, one in texts if _MAY_BE_LISTED(f"{name}={one}")))


def measured(campaign: Campaign, line: str) -> Measurement:
    """Return what a line of a file tells: a value, and after it, with tabs between, a coordinate on each axis.

    Coordinates that are missing at the end are "other". Without axes the whole line is the value.
    """
    if campaign.axes is None:
        return Measurement(line)
    names = campaign.axis_names
    value, *coordinates = line.split("\t", len(names))
    return Measurement(value, tuple(zip(names, coordinates, strict=False)))


def items_for(
    campaign: Campaign,
    dictionary: Dictionary | None,
    values: Sequence[str | float],
    hosts: Collection[str] | None = None,
    by: Sequence[Mapping[str, str | float]] = (),
) -> UInt64Array:
    """Return uint64[n]: the item of each value (`Campaign.item_of`); for a mean, a point that is drawn; or the cell.

    Args:
        hosts: as in `Campaign.item_of`.
        by: coordinates of each value; none are "other" on all axes.
    """
    mechanism, texts = campaign.require_frequency(), [plain_text(value) for value in values]
    if campaign.number is not None and campaign.number.mean:
        low, high = campaign.number.bins.values
        positions = np.array([position_of(text, low, high) for text in texts], dtype=np.float64)
        return campaign.require_line().points(positions, SystemWords().words(len(texts)))
    items = items_of(mechanism, dictionary, [campaign.item_of(text, hosts) for text in texts])
    if not campaign.has_cells:
        return items
    return campaign.require_cells().number(items, _places(campaign.require_axes().private, len(texts), by))


def strata_for(campaign: Campaign, values: int, by: Sequence[Mapping[str, str | float]] = ()) -> Octets:
    """Return uint8[n, stratum_bytes]: the public stratum of each of n values, little-endian; no bytes without one.

    Args:
        by: as in `items_for`.
    """
    if not campaign.stratum_bytes("reports"):
        return np.empty((values, 0), dtype=np.uint8)
    return stratum_octets(_places(campaign.require_axes().public, values, by))


def _places(strata: Strata, values: int, by: Sequence[Mapping[str, str | float]]) -> UInt64Array:
    if by and len(by) != values:
        raise UsageError(f"by has the coordinates of {len(by)} values, must be of {values}")
    told = [dict(Measurement.of("", one).by) for one in by or [{}] * values]
    return np.array([strata.place(one) for one in told], dtype=np.uint64)


def drawn(campaign: Campaign, items: UInt64Array) -> Octets:
    """Return uint8[n, report_bytes]: a new answer to each item. Randomness: the operating system's generator."""
    mechanism = campaign.require_frequency()
    return mechanism.pack(mechanism.encode(items, SystemWords()))


def sealed(campaign: Campaign, answers: Octets, strata: Octets, analyzer: Sealer, threads: int) -> Octets:
    """Return uint8[n, L]: a report for each answer, with the campaign's binding before it, sealed to the analyzer.

    `strata`, as `strata_for` returns them, are before the boxes.
    """
    boxes = analyzer.seal_many(after(campaign.binding("reports"), answers), threads)
    return np.concatenate([strata, boxes], axis=1) if strata.size else boxes


def in_layers(campaign: Campaign, boxes: Octets, begins: int, aux_server: Sealer, threads: int) -> Octets:
    """Return uint8[n, L]: boxes for the analyzer, each with its window sealed to the auxiliary server, and the window.

    Args:
        begins: when the window of all reports begins, in seconds since 1970.
    """
    window = window_octets(begins)
    layers = aux_server.seal_many(after(campaign.binding("reports") + window, boxes), threads)
    return after(window, layers)


def new_values(
    campaign: Campaign,
    dictionary: Dictionary | None,
    values: Sequence[str | float | None],
    hosts: Collection[str] | None = None,
) -> list[str | None]:
    """Return the item of each value that is to be discovered, and None in place of each other value.

    Raises:
        UsageError: a value is longer than the campaign allows.
    """
    form = campaign.discovery_format
    texts = [None if value is None else campaign.item_of(plain_text(value), hosts) for value in values]
    new = [text if _is_new(text, dictionary) else None for text in texts]
    for text in new:
        form.require_length(text)
    return new


def _is_new(value: str | None, dictionary: Dictionary | None) -> bool:
    """Return whether a value is to be discovered; a value that is too long is refused by a later step."""
    if value is None or (dictionary is not None and value in dictionary):
        return False
    return fault_of_text(value) is None


def named(campaign: Campaign, making: Making, values: Sequence[str | None], ask: Ask | None, threads: int) -> Octets:
    """Return uint8[n, L]: a sealed discovery report for each value; the evaluator, if there is one, makes the names."""
    if ask is None:
        return making.keyed(values, threads)
    return making.asked(values, ask, campaign.require_evaluator_key(), threads)


def asked_by(campaign: Campaign, ask: Ask | None) -> Ask | None:
    """Return `ask` if the campaign has an evaluator; None if its names are keyed."""
    if not campaign.is_oblivious:
        return None
    if ask is None:
        raise UsageError(f"campaign {campaign.id} has an evaluator: give ask=..., or use Client.pending_discovery")
    return ask
