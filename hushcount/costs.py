"""What it costs to decode: operations and estimated seconds of one thread, for plans."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hushcount.encoders.affine import Affine
from hushcount.encoders.hadamard import Hadamard
from hushcount.encoders.nested import Nested
from hushcount.encoders.pool import Pool
from hushcount.mechanism import Mechanism
from hushcount.responders.unary import Unary

CELL_NS = 3.0
BIT_NS = 0.9
HASH_NS = 40.0
BUTTERFLY_NS = 2.0
"""Nanoseconds to count a supported cell, to count a bit, to hash an item into a row and look it up, and of one step of
the fast transform, as `hushcount simulate` measured them on one thread of a 2-core server. Estimates, no promises."""


@dataclass(frozen=True)
class Cost:
    """Operations, and how many seconds they are estimated to take."""

    operations: float
    seconds: float


def decode_cost(mechanism: Mechanism, n: int, candidates: int) -> Cost:
    """Return the cost of tallying n reports and estimating `candidates` items.

    Args:
        mechanism: the frequency oracle.
        n: reports.
        candidates: items that are asked for: the dictionary, or those of an open domain that one has in mind.
    """
    encoder, responder = mechanism.encoder, mechanism.responder
    if isinstance(encoder, Affine):
        return _affine(encoder, mechanism, n, candidates)
    if isinstance(responder, Unary):
        tally = Cost(n * responder.width, n * responder.width * BIT_NS * 1e-9)
    else:
        cells = n * (responder.p + (responder.width - 1) * responder.q)
        tally = Cost(cells, cells * CELL_NS * 1e-9)
    answers = _answers(mechanism, candidates)
    return Cost(tally.operations + answers.operations, tally.seconds + answers.seconds)


def _answers(mechanism: Mechanism, candidates: int) -> Cost:
    encoder = mechanism.encoder
    transform = hashes = 0.0
    if isinstance(encoder, Hadamard):
        transform = encoder.order * encoder.blocks * math.log2(max(2, encoder.order))
    if isinstance(encoder, Nested):
        transform = encoder.outer.rows * encoder.inner.order * math.log2(max(2, encoder.inner.order))
    if isinstance(encoder, (Nested, Pool)):
        hashes = float(candidates * (encoder.pool or 1))
    operations = transform + hashes + candidates
    return Cost(operations, (transform * BUTTERFLY_NS + hashes * HASH_NS + candidates) * 1e-9)


def _affine(encoder: Affine, mechanism: Mechanism, n: int, candidates: int) -> Cost:
    from hushcount.decoding import decode_cost as affine_cost

    cost = affine_cost(encoder, mechanism.responder, n, candidates)
    return Cost(cost.operations, cost.seconds)
