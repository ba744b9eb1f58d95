"""Groups that somebody named beforehand, as the items of a tally that keeps their squares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hushcount.arrays import UInt64Array
from hushcount.campaigns.dictionary import Dictionary, known_items
from hushcount.errors import UsageError
from hushcount.formats.models import Part
from hushcount.formats.reading import read_mapping, validated
from hushcount.oracles.groups import NO_GROUPS, Groups
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.tally import group_digest
from hushcount.questions.selecting import Choice, Choices, select
from pipelines.jobs.results import read_names

_LEAST = 2
"""Items of a group with an error of its own."""


@dataclass(frozen=True)
class NamedGroups:
    """Choices of items by name.

    Attributes:
        base: the directory that their files are relative to.
        shared: whether campaigns share them that have no dictionary to choose from: a glob or prefix is none there.
    """

    choices: Mapping[str, Choice] = field(default_factory=dict)
    base: Path = Path()
    shared: bool = False

    @classmethod
    def read(cls, path: Path) -> NamedGroups:
        """Read a file with a table of groups by name, .toml or .json; UsageError, with every error, if it is none."""
        data = {"groups": read_mapping(path, "groups file")}
        return cls(validated(_GroupsFile, data, f"groups file {path}").groups, path.absolute().parent)

    def items_in(self, name: str) -> tuple[str, ...]:
        """Return the items in the file of a group, none if it has none; UsageError, with its name, if it is no list."""
        file = self.choices[name].file
        try:
            return () if file is None else tuple(read_names(self.base / file))
        except UsageError as error:
            raise UsageError(f"group {name}: {error}") from None


class _GroupsFile(Part):
    groups: Choices


def kept_groups(mechanism: Mechanism, dictionary: Dictionary | None, named: NamedGroups) -> Groups:
    """Return the groups with squares to keep, each once; none if the counts alone tell the error of a sum.

    Of items that the dictionary lacks, which count as "other", nothing is kept: groups outlive epochs, and items leave.

    Raises:
        UsageError: a file cannot be read, or a glob or prefix has no dictionary to choose from.
    """
    if not (named.choices and mechanism.keeps_squares):
        return NO_GROUPS
    found: dict[bytes, UInt64Array] = {}
    for name, choice in named.choices.items():
        if dictionary is None and named.shared and (choice.items, choice.file) == (None, None):
            continue
        read = {} if choice.file is None else {choice.file: named.items_in(name)}
        try:
            items = select(None if dictionary is None else dictionary.items, choice, read)
        except UsageError as error:
            raise UsageError(f"group {name}: {error}") from None
        if dictionary is not None:
            items = tuple(item for item in items if item in dictionary)
        numbers = known_items(mechanism, dictionary, items)
        if len(numbers) >= _LEAST:
            found[group_digest(numbers)] = numbers
    return Groups.of(list(found.values()))


def with_columns(wanted: UInt64Array | None, groups: Groups) -> UInt64Array | None:
    """Return the items to count in an open domain without a sketch: those wanted, and those of all groups."""
    if not len(groups):
        return wanted
    return np.unique(groups.items if wanted is None else np.concatenate([wanted, groups.items]))
