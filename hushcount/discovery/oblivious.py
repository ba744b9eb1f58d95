"""Ask for the names of values: the client's side of a verifiable oblivious pseudorandom function (docs/adr/0034).

The client blinds an input. The evaluator applies its key to the blinded input, which it cannot read, and proves that it
used the key named in the campaign. RFC 9497, mode VOPRF, suite ristretto255-SHA512.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hushcount.discovery.proofs import holds
from hushcount.errors import HushcountError, UsageError
from hushcount.randomness import SystemWords

ELEMENT_BYTES = 32
PROOF_BYTES = 64
MOST_EVALUATIONS = 300
"""The most evaluations in one exchange; one proof covers all of them."""

Ask = Callable[[bytes], bytes]
"""Takes 32 n bytes of blinded elements, n in 1..MOST_EVALUATIONS; returns n evaluated elements and a 64-byte proof.

Raises Unanswered if the evaluator cannot be reached or refuses.
"""


class Unanswered(HushcountError):
    """The evaluator did not answer, or its answer has no valid proof."""


@dataclass(frozen=True, eq=False)
class Evaluations:
    """Blinded inputs that wait for one answer.

    Attributes:
        blinded: n x 32 bytes. Each element is uniform and fresh for every input, so the element tells nothing about the
            input.
    """

    blinded: bytes
    _asked: tuple[Any, ...] = field(repr=False)

    def finish(self, answer: bytes, public_key: bytes) -> list[bytes]:
        """Return the 64-byte output of each input, if the proof shows that the key of this public key made them.

        Raises:
            Unanswered: the answer's length, an element in the answer, or the proof is wrong.
        """
        wanted = len(self.blinded) + PROOF_BYTES
        if len(answer) != wanted:
            raise Unanswered(f"the evaluator's answer has {len(answer)} bytes, must have {wanted}")
        elements, proof = answer[:-PROOF_BYTES], answer[-PROOF_BYTES:]
        if not holds(public_key, _each(self.blinded), _each(elements), proof):
            raise Unanswered("the evaluator's answer was not made with the campaign's evaluator key")
        suite = library()
        # The library wants the proof first.
        evaluated = suite.VerifiableBatchOutput.deserialize(proof + elements)
        outputs = suite.Client.finalize_batch(list(self._asked), evaluated, suite.PublicKey.deserialize(public_key))
        return [bytes(output) for output in outputs]


def _each(elements: bytes) -> list[bytes]:
    return [elements[start : start + ELEMENT_BYTES] for start in range(0, len(elements), ELEMENT_BYTES)]


def evaluations_of(inputs: Sequence[bytes | None]) -> Evaluations:
    """Blind 1..MOST_EVALUATIONS inputs for one exchange.

    None stands for random bytes, which the evaluator cannot tell from an input.

    Randomness: the library draws the blinding factors from the operating system.
    """
    if not 1 <= len(inputs) <= MOST_EVALUATIONS:
        raise ValueError(f"inputs are {len(inputs)}, must be 1..{MOST_EVALUATIONS}")
    blind = library().Client.blind
    asked = [blind(SystemWords().words(4).tobytes() if one is None else one) for one in inputs]
    return Evaluations(b"".join(element.serialize() for _, element in asked), tuple(state for state, _ in asked))


def joined(evaluations: Sequence[Evaluations]) -> Evaluations:
    """Return several evaluations as one exchange, in this order."""
    asked = (state for one in evaluations for state in one._asked)
    return Evaluations(b"".join(one.blinded for one in evaluations), tuple(asked))


def require_public_key(public_key: bytes) -> None:
    """Raise UsageError if these 32 bytes are not a valid evaluator key, or if the library is not installed."""
    suite = library()
    try:
        suite.PublicKey.deserialize(public_key)
    except ValueError:
        raise UsageError("the campaign's evaluator key is not a valid public key: fetch the newest campaign") from None


def library() -> Any:
    """Return the library of the suite; UsageError if the library is not installed.

    The library ignores bytes after the end of a value, so the caller must check lengths first.
    """
    try:
        from voprf import ristretto
    except ImportError:
        raise UsageError(
            "the campaign's names come from an evaluator, and the package voprf is not installed: run pip install voprf"
        ) from None
    return ristretto
