"""The section of a campaign file on axes: what clients are broken down by (docs/adr/0058, 0059)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Annotated

import numpy as np
from pydantic import Field, StrictBool, field_validator, model_validator

from hushcount.arrays import UInt64Array
from hushcount.campaigns.parts import Identifier
from hushcount.formats.models import Hex32, Part, text_of
from hushcount.strata import COORDINATE, MOST_AXES, MOST_STRATA, OTHER, Axis, Cells, Strata, Where

_Coordinate = Annotated[
    str,
    text_of(
        f"^{COORDINATE}$",
        "must be 1 to 64 printable characters of ASCII without , = [ ] and without a space at an end",
    ),
]


class AxisPart(Part):
    """What clients are broken down by: each reports its coordinate together with its value (docs/adr/0058, 0059)."""

    name: Identifier
    public: StrictBool = Field(
        description="whether coordinates are told openly beside the sealed report; else each is randomised with the "
        "value",
    )
    values: tuple[_Coordinate, ...] = Field(
        min_length=1, max_length=MOST_STRATA - 1, description='the coordinates; another one counts as "other"'
    )

    @field_validator("values")
    @classmethod
    def _are_different(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        if OTHER in given:
            raise ValueError(f"holds {OTHER}, which stands for all that are not listed: leave it out")
        if twice := next((value for place, value in enumerate(given) if value in given[:place]), None):
            raise ValueError(f"must be different, but {twice!a} is there twice")
        return given


class AxesPart(Part):
    """The axes of a campaign, whose cells are numbered in a random order."""

    listed: tuple[AxisPart, ...] = Field(min_length=1, max_length=MOST_AXES)
    key: Hex32 = Field(description="key of the order of cells, drawn anew for each campaign")

    @model_validator(mode="after")
    def _check(self) -> AxesPart:
        if len({axis.name for axis in self.listed}) < len(self.listed):
            raise ValueError("listed: names must be different")
        if len(self.strata) > MOST_STRATA:
            sizes = " x ".join(str(len(axis.values) + 1) for axis in self.listed)
            raise ValueError(f"listed: {sizes} = {len(self.strata):,} strata, must be at most {MOST_STRATA:,}")
        return self

    @property
    def words(self) -> str:
        """What clients are broken down by, as people say it."""
        sizes = ", ".join(
            f"{axis.name} ({len(axis.values) + 1}{', public' if axis.public else ''})" for axis in self.listed
        )
        told = "coordinates of public axes told openly, all others in the report with the value"
        return f"{sizes}: {len(self.strata):,} strata, {told}"

    @cached_property
    def strata(self) -> Strata:
        """The strata of all axes."""
        return _strata_of(self.listed)

    @cached_property
    def private(self) -> Strata:
        """The strata of the private axes: one, if there are none."""
        return _strata_of(axis for axis in self.listed if not axis.public)

    @cached_property
    def public(self) -> Strata:
        """The strata of the public axes: one, if there are none."""
        return _strata_of(axis for axis in self.listed if axis.public)

    def named(self, *, public: bool | None = None) -> tuple[str, ...]:
        """Return the names of the public axes, of the private ones, or of all, in the order of the file."""
        return tuple(axis.name for axis in self.listed if public is None or axis.public == public)

    def cells(self, items: int) -> Cells:
        """Return the numbers of the cells of `items` items and the private strata."""
        return Cells(items, len(self.private), bytes.fromhex(self.key))

    def cells_of(self, items: int, groups: Sequence[UInt64Array], where: Sequence[Where]) -> list[UInt64Array]:
        """Return the cells of groups of the numbers of items, uint64[size] each: of `Campaign.cells_of`."""
        strata = {one: self.private.places(dict(one)) for one in {*where} or {()}}
        chosen = [strata[one] for one in where or [()] * len(groups)]
        numbers = np.concatenate([np.repeat(group, len(one)) for group, one in zip(groups, chosen, strict=True)])
        places = np.concatenate([np.tile(one, len(group)) for group, one in zip(groups, chosen, strict=True)])
        sizes = [len(group) * len(one) for group, one in zip(groups, chosen, strict=True)]
        # All at once, because the order of cells is computed for many of them as fast as for one.
        return np.split(self.cells(items).number(numbers, places), np.cumsum(sizes)[:-1])


def _strata_of(axes: Iterable[AxisPart]) -> Strata:
    return Strata(tuple(Axis(axis.name, axis.values) for axis in axes))
