"""Atoms: the strata of public axes of one batch, merged until each has the minimum batch (docs/adr/0059).

Public coordinates are not protected, so neighbours share them and have the same partition. Answers are functions of
tallies of whole atoms, so no difference of answers is about fewer reports than the minimum batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hushcount.strata import STRATUM_BYTES, Strata
from shuffler.separate import Report

Atom = tuple[int, ...]
"""The strata of an atom, ascending."""


def partition(counts: Mapping[int, int], strata: Strata, minimum: int) -> tuple[Atom, ...]:
    """Return the atoms of a batch; none if the batch has fewer reports than the minimum.

    Within each value of the first axis, strata below the minimum are merged with each other, and then with the smallest
    others until the minimum is reached. Values that cannot reach it are pooled likewise, with atoms of other values.

    Args:
        counts: reports of each stratum, after cap and copies; a stratum without reports may be left out.
        minimum: the minimum batch, at least 1.
    """

    def reports(strata: Sequence[int]) -> int:
        return sum(counts.get(stratum, 0) for stratum in strata)

    atoms: list[list[int]] = []
    poor: list[int] = []
    for of_value in strata.by_first:
        rest = [stratum for stratum in of_value if reports([stratum]) < minimum]
        large = [stratum for stratum in of_value if reports([stratum]) >= minimum]
        while 0 < reports(rest) < minimum and large:
            least = min(large, key=lambda stratum: (reports([stratum]), stratum))
            large.remove(least)
            rest.append(least)
        if 0 < reports(rest) < minimum:
            poor += rest
            continue
        atoms += [[stratum] for stratum in large]
        # Strata without a report are of no atom.
        atoms += [rest] if reports(rest) else []
    while 0 < reports(poor) < minimum and atoms:
        least_atom = min(atoms, key=lambda atom: (reports(atom), sorted(atom)))
        atoms.remove(least_atom)
        poor += least_atom
    if reports(poor) < minimum:
        poor = []
    return tuple(sorted(tuple(sorted(atom)) for atom in (*atoms, *([poor] if poor else []))))


def in_atoms(records: bytes, report: Report, atoms: Sequence[Atom]) -> bytes:
    """Return records with the number of their atom in place of that of their stratum; each is of one of the atoms."""
    octets = np.frombuffer(records, dtype=np.uint8).reshape(-1, report.bytes).copy()
    of_stratum = np.zeros(report.strata, dtype=np.uint16)
    for number, atom in enumerate(atoms):
        of_stratum[list(atom)] = number
    strata = octets[:, :STRATUM_BYTES].copy().view("<u2").reshape(-1)
    octets[:, :STRATUM_BYTES] = of_stratum[strata].astype("<u2").view(np.uint8).reshape(-1, STRATUM_BYTES)
    return octets.tobytes()
