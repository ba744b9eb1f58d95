"""Atoms: the strata of public axes of one batch, merged until each has the minimum batch (docs/adr/0059).

Public coordinates are not protected, so neighbours share them and have the same partition. Answers are functions of
tallies of whole atoms, so no difference of answers is about fewer reports than the minimum batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hushcount.strata import STRATUM_BYTES, Strata, stratum_numbers, stratum_octets
from shuffler.separate import Report

Atom = tuple[int, ...]
"""The strata of an atom, ascending."""


def partition(counts: Mapping[int, int], strata: Strata, minimum: int) -> tuple[Atom, ...]:
    """Return the atoms of a batch; none if the batch has fewer reports than the minimum.

    Within each value of the first axis, strata below the minimum are merged with each other, and with the smallest
    other stratum if they lack it together. Values that cannot reach it are pooled likewise, with an atom of others.

    Args:
        counts: reports of each stratum, after cap and copies; a stratum without reports may be left out.
        minimum: the minimum batch, at least 1.
    """

    def reports(atom: Atom) -> int:
        return sum(counts.get(stratum, 0) for stratum in atom)

    def merged(small: Atom, large: Sequence[Atom]) -> list[Atom]:
        """Return the atoms, with the small one last, and joined with the least large one if it lacks the minimum."""
        least_first = sorted(large, key=lambda atom: (reports(atom), atom))
        if 0 < reports(small) < minimum and least_first:
            small = tuple(sorted(small + least_first.pop(0)))
        return [*least_first, small]

    atoms: list[Atom] = []
    poor: Atom = ()
    for of_value in strata.by_first:
        each = [(stratum,) for stratum in of_value]
        small = tuple(stratum for (stratum,) in each if reports((stratum,)) < minimum)
        *large, rest = merged(small, [one for one in each if reports(one) >= minimum])
        atoms += large
        if reports(rest) >= minimum:
            atoms.append(rest)
        elif reports(rest):
            poor += rest
    # Strata without a report are of no atom, unless they are merged with others.
    return tuple(sorted(atom for atom in merged(poor, atoms) if reports(atom) >= minimum))


def in_atoms(records: bytes, report: Report, atoms: Sequence[Atom]) -> bytes:
    """Return records with the number of their atom in place of that of their stratum; each is of one of the atoms."""
    octets = np.frombuffer(records, dtype=np.uint8).reshape(-1, report.bytes).copy()
    of_stratum = np.zeros(report.strata, dtype=np.uint16)
    for number, atom in enumerate(atoms):
        of_stratum[list(atom)] = number
    octets[:, :STRATUM_BYTES] = stratum_octets(of_stratum[stratum_numbers(octets)])
    return octets.tobytes()
