"""Faults planted into the lanes' code are caught before its first use: the generator refuses it, or the self-test."""

from __future__ import annotations

import sys

import pytest

from sealed_lanes import Lanes, compiled, words
from tests.sealed_lanes.faults import FAILING, REFUSED, Fault, generated, planted, started

FAULTS = (*REFUSED, *FAILING)
OFTEN = ("two lanes swapped in a product",)


def test_the_list_has_faults_of_every_kind() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) > 30
    assert {fault.module for fault in FAULTS} == {"field", "ladder", "hashes", "emit", "boxes"}
    assert len({(fault.module, fault.old, fault.new) for fault in FAULTS}) == len(FAULTS)


def test_the_generator_refuses_what_may_overflow(subtests: pytest.Subtests) -> None:
    """On every machine: nothing runs."""
    for fault in REFUSED:
        with subtests.test(fault=fault):
            assert generated(fault)


@pytest.mark.parametrize("fault", FAILING, ids=lambda fault: fault.name)
@pytest.mark.long(but=OFTEN)
def test_the_self_test_refuses_what_computes_otherwise(lanes: Lanes, fault: Fault) -> None:
    """Code that the bounds refuse would raise ProofError here."""
    assert started(fault).startswith("the code failed its test: ")


def test_code_without_a_fault_is_made_and_starts(lanes: Lanes) -> None:
    """Made anew in the same way: what is caught above is the fault."""
    assert started(None) == ""


def test_after_a_fault_the_right_code_is_back() -> None:
    with planted(REFUSED[0]) as modules:
        assert sys.modules["sealed_lanes.words"] is modules["words"] is not words
    assert sys.modules["sealed_lanes.words"] is words
    assert sys.modules["sealed_lanes.compiled"] is compiled


def test_a_fault_of_a_line_that_is_gone_is_told() -> None:
    gone = Fault("gone", "field", "no such line", "")
    with pytest.raises(ValueError, match=r"gone: field.py has 'no such line' 0 times"), planted(gone):
        pass
