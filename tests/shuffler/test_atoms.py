"""Atoms: no answer, and no difference of answers, is of fewer reports than the minimum batch; simpler rules fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hushcount.strata import STRATUM_BYTES, Axis, Strata
from shuffler.atoms import Atom, in_atoms, partition
from shuffler.separate import Report

MINIMUM = 1000
PLATFORMS = Axis("platform", ("linux", "mac"))
STRATA = Strata((PLATFORMS, Axis("version", ("2.1", "2.0"))))
AXES = st.lists(st.integers(1, 4), min_size=1, max_size=3)
"""How many coordinates each axis lists."""
NUMBERS = st.sampled_from([0, 1, 39, 40, 500, 960, 999, 1000, 1001, 2500, 60_000])


def strata_of(sizes: Sequence[int]) -> Strata:
    return Strata(tuple(Axis(f"a{number}", tuple(map(str, range(size)))) for number, size in enumerate(sizes)))


@st.composite
def batches(draw: st.DrawFn) -> tuple[Strata, dict[int, int]]:
    strata = strata_of(draw(AXES))
    return strata, {stratum: draw(NUMBERS) for stratum in range(len(strata))}


def plain(counts: Mapping[int, int], strata: Strata, minimum: int) -> set[frozenset[int]]:
    """The rule as docs/adr/0059 writes it."""

    def n(some: set[int]) -> int:
        return sum(counts[one] for one in some)

    atoms, pool = [{one} for one in range(len(strata)) if counts[one] >= minimum], set[int]()
    for value in strata.by_first:
        rest = {one for one in value if counts[one] < minimum}
        if n(rest) >= minimum:
            atoms.append(rest)
        else:
            pool |= rest
    return {frozenset(atom) for atom in (*atoms, pool) if n(atom) >= minimum}


@given(batches(), st.sampled_from([1, 40, MINIMUM]))
def test_atoms_are_a_partition_by_the_written_rule_and_each_has_the_minimum(
    batch: tuple[Strata, dict[int, int]], minimum: int
) -> None:
    strata, counts = batch
    atoms = partition(counts, strata, minimum)
    assert {frozenset(atom) for atom in atoms} == plain(counts, strata, minimum)
    members = [stratum for atom in atoms for stratum in atom]
    assert len(set(members)) == len(members)
    assert all(sum(counts[stratum] for stratum in atom) >= minimum for atom in atoms)
    # Fewer reports than the minimum are of no atom; and none are, if the batch lacks it.
    lost = sum(number for stratum, number in counts.items() if stratum not in members)
    assert lost < minimum
    assert sum(counts.values()) >= minimum or not members
    # Who has no report has no say.
    assert partition({stratum: number for stratum, number in counts.items() if number}, strata, minimum) == atoms


@given(batches(), st.data())
def test_odd_reports_hide_no_large_stratum(batch: tuple[Strata, dict[int, int]], data: st.DataObject) -> None:
    """Whoever sends fewer reports of each stratum than the minimum leaves the atoms of large strata as they are.

    Of smaller strata, fewer reports than the minimum are in no answer.

    Under a rule that fills small strata up with the least large one, a single report hides it.
    """
    strata, counts = batch
    odd = {stratum: data.draw(st.integers(0, MINIMUM - 1)) for stratum in range(len(strata))}
    before, after = (
        partition(one, strata, MINIMUM)
        for one in (counts, {stratum: counts[stratum] + odd[stratum] for stratum in counts})
    )
    alone = {(stratum,) for stratum, number in counts.items() if number >= MINIMUM}
    assert alone <= {*before}
    assert alone <= {*after}
    counted = {stratum for atom in after for stratum in atom}
    assert sum(counts[stratum] + odd[stratum] for stratum in counts if stratum not in counted) < MINIMUM


# Attacks. An answer is a set of strata whose reports are added up; attackers subtract answers from each other.


def answers(atoms: Sequence[Atom], strata: Strata) -> list[frozenset[int]]:
    """Return what each question shows: of the total, of each marginal and of each cell, the atoms that lie within."""
    chosen = product(*((None, *axis.coordinates) for axis in strata.axes))
    names = [axis.name for axis in strata.axes]
    wheres = [{name: one for name, one in zip(names, some, strict=True) if one is not None} for some in chosen]
    return [
        frozenset(stratum for atom in atoms if {*atom} <= {*strata.places(where).tolist()} for stratum in atom)
        for where in wheres
    ]


def least_difference(shown: Sequence[frozenset[int]], counts: Mapping[int, int]) -> int:
    """Return how few reports two answers differ by, if one contains the other."""
    differences = [one - other for one in shown for other in (*shown, frozenset[int]()) if other < one]
    return min((held for some in differences if (held := sum(counts.get(stratum, 0) for stratum in some))), default=0)


@given(batches())
def test_no_combination_of_answers_tells_strata_of_an_atom_apart(batch: tuple[Strata, dict[int, int]]) -> None:
    """Whatever answers are added and subtracted, all reports of an atom have the same weight."""
    strata, counts = batch
    atoms = partition(counts, strata, MINIMUM)
    shown = answers(atoms, strata)
    for atom in atoms:
        assert len({tuple(stratum in answer for answer in shown) for stratum in atom}) == 1
    assert sum(counts.values()) < MINIMUM or least_difference(shown, counts) >= MINIMUM


COUNTS = {0: 5000, 1: 40, 2: 3000, 3: 2000, 4: 2500, 5: 4000, 6: 1500, 7: 1200, 8: 1100}
"""Of 9 strata, 40 people have version 2.0 on linux."""


def test_hiding_a_small_stratum_beside_the_total_does_not_hide_it() -> None:
    hidden = [(stratum,) for stratum in COUNTS if COUNTS[stratum] >= MINIMUM]
    everything = frozenset(COUNTS)
    shown = [everything, *answers(hidden, STRATA)]
    assert least_difference(shown, COUNTS) == 40
    assert least_difference(answers(partition(COUNTS, STRATA, MINIMUM), STRATA), COUNTS) >= MINIMUM


def test_a_marginal_less_its_shown_cells_is_the_small_one() -> None:
    marginal = frozenset(STRATA.by_first[0])
    cells = [frozenset({stratum}) for stratum in COUNTS if COUNTS[stratum] >= MINIMUM]
    assert sum(COUNTS[one] for one in marginal.difference(*cells)) == 40
    atoms = partition(COUNTS, STRATA, MINIMUM)
    inside = [{*atom} for atom in atoms if {*atom} <= marginal]
    assert sorted(map(sorted, inside)) == [[0], [2]]


def test_a_rule_that_is_applied_again_to_a_range_of_windows_tells_what_one_window_hid() -> None:
    """Complementary suppression by window: 40 people of one window are the range less the other window."""
    first, second = COUNTS, {**COUNTS, 1: 1160}
    both = {stratum: first[stratum] + second[stratum] for stratum in COUNTS}
    one, two, again = (partition(counts, STRATA, MINIMUM) for counts in (first, second, both))
    assert ((1,) in one, (1,) in two, (1,) in again) == (False, True, True)
    assert both[1] - second[1] == 40
    # So a range adds up each window's own atoms: in it, too, the 40 are only with others.
    assert sum(second[stratum] for atom in two if {*atom} <= {1} for stratum in atom) == 1160
    assert not [atom for atom in one if {*atom} <= {1}]


@given(batches())
def test_records_tell_their_atom_in_place_of_their_stratum(batch: tuple[Strata, dict[int, int]]) -> None:
    strata, counts = batch
    atoms = partition(counts, strata, MINIMUM)
    report = Report(10, len(strata))
    members = [stratum for atom in atoms for stratum in atom]
    lost = [stratum for stratum in range(len(strata)) if stratum not in members]
    sent = [*members[:1], *lost, *members[1:]]
    records = b"".join(stratum.to_bytes(STRATUM_BYTES, "little") + stratum.to_bytes(8, "big") for stratum in sent)
    told = np.frombuffer(in_atoms(records, report, atoms), np.uint8).reshape(-1, 10)
    assert [int.from_bytes(row[:2].tobytes(), "little") for row in told] == [
        number for number, atom in enumerate(atoms) for _ in atom
    ]
    assert [int.from_bytes(row[2:].tobytes(), "big") for row in told] == members
