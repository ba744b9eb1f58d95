"""The evaluator's private key, which applies a pseudorandom function to blinded elements (RFC 9497, mode VOPRF)."""

from __future__ import annotations

from collections.abc import Sequence

from hushcount.campaigns.public_keys import evaluator_key_id
from hushcount.discovery.oblivious import ELEMENT_BYTES, MOST_EVALUATIONS, PROOF_BYTES, library
from keys.private import Guarded


class EvaluatorKey(Guarded):
    """A key of the suite ristretto255-SHA512, made from 32 random bytes by DeriveKeyPair with an empty info."""

    __slots__ = ("__evaluator",)

    def __init__(self, secret: bytes) -> None:
        super().__init__(secret)
        self.__evaluator = library().Evaluator(secret)
        self.public_key = self.__evaluator.public_key.serialize()
        self.id = evaluator_key_id(self.public_key)

    def evaluate(self, blinded: bytes) -> bytes:
        """Return the evaluated elements, n x 32 bytes, and one proof for all elements, 64 bytes.

        Raises:
            ValueError: the number of elements of 32 bytes is not in 1..MOST_EVALUATIONS, or an element is not in the
                group, or is the group's identity. The error does not show the element.
        """
        count, rest = divmod(len(blinded), ELEMENT_BYTES)
        if rest or not 1 <= count <= MOST_EVALUATIONS:
            raise ValueError(
                f"the request has {len(blinded)} bytes, must have 1 to {MOST_EVALUATIONS} times {ELEMENT_BYTES}"
            )
        read = library().BlindedInput.deserialize
        try:
            elements = [read(blinded[start : start + ELEMENT_BYTES]) for start in range(0, len(blinded), ELEMENT_BYTES)]
        except ValueError:
            raise ValueError("a blinded element is not a valid element of ristretto255") from None
        # The library puts the proof before the elements; this method returns the proof after them.
        made = bytes(self.__evaluator.evaluate_batch(elements).serialize())
        return made[PROOF_BYTES:] + made[:PROOF_BYTES]

    def outputs(self, inputs: Sequence[bytes]) -> list[bytes]:
        """Return the 64-byte output of each input without blinding, for a caller that has both key and inputs."""
        return [bytes(self.__evaluator.evaluate_known_input(one)) for one in inputs]
