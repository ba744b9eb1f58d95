"""Atoms: strata of public axes of one batch that are counted together, the minimum batch each (docs/adr/0059).

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

    Each stratum of the minimum is an atom. Of each value of the first axis, all smaller strata are one atom if they
    have the minimum together. All other strata are one atom likewise. If they lack the minimum too, they are of no
    atom, and no answer has their reports: if a larger stratum joined them, one odd report could hide it.

    Args:
        counts: reports of each stratum, after cap and copies; a stratum without reports may be left out.
        minimum: the minimum batch, at least 1.
    """

    def reaches(atom: Atom) -> bool:
        return sum(counts.get(stratum, 0) for stratum in atom) >= minimum

    small = [tuple(stratum for stratum in of_value if not reaches((stratum,))) for of_value in strata.by_first]
    poor = tuple(stratum for atom in small if not reaches(atom) for stratum in atom)
    each = ((stratum,) for stratum in range(len(strata)))
    return tuple(sorted(atom for atom in {*each, *small, poor} if reaches(atom)))


def in_atoms(records: bytes, report: Report, atoms: Sequence[Atom]) -> bytes:
    """Return the records of the atoms, with the number of their atom in place of that of their stratum."""
    octets, of_stratum = np.frombuffer(records, dtype=np.uint8).reshape(-1, report.bytes), np.full(report.strata, -1)
    for number, atom in enumerate(atoms):
        of_stratum[list(atom)] = number
    numbers = of_stratum[stratum_numbers(octets)]
    octets, numbers = octets[numbers >= 0], numbers[numbers >= 0]
    octets[:, :STRATUM_BYTES] = stratum_octets(numbers)
    return octets.tobytes()
