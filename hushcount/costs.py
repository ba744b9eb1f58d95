"""What it costs to decode: operations and estimated seconds of one thread, for plans."""

from __future__ import annotations

import math

from hushcount.decoding import DecodeCost, affine_cost
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


def decode_cost(mechanism: Mechanism, n: int, candidates: int) -> DecodeCost:
    """Return the cost of tallying n reports and estimating `candidates` items.

    Args:
        mechanism: the frequency oracle.
        n: reports.
        candidates: items that are asked for: the dictionary, or those of an open domain that one has in mind.
    """
    encoder, responder = mechanism.encoder, mechanism.responder
    if isinstance(encoder, Affine):
        return affine_cost(encoder, responder, n, candidates)
    if isinstance(responder, Unary):
        counted, each = float(n * responder.width), BIT_NS
    else:
        counted, each = n * (responder.p + (responder.width - 1) * responder.q), CELL_NS
    transform = hashes = 0.0
    if isinstance(encoder, Hadamard):
        transform = encoder.order * encoder.blocks * math.log2(max(2, encoder.order))
    if isinstance(encoder, Nested):
        transform = encoder.outer.rows * encoder.inner.order * math.log2(max(2, encoder.inner.order))
    if isinstance(encoder, (Nested, Pool)):
        hashes = float(candidates * (encoder.pool or 1))
    nanoseconds = counted * each + transform * BUTTERFLY_NS + hashes * HASH_NS + candidates
    return DecodeCost("cells", counted + transform + hashes + candidates, nanoseconds * 1e-9)
