"""The two hashes of a sealed box: its key is HSalsa20 of a product, its nonce BLAKE2b of two public keys."""

from __future__ import annotations

from collections.abc import Sequence

from sealed_lanes.words import WORD, Index, Word, constant, repeated

_WORD32 = (1 << 32) - 1
_SIGMA = [int.from_bytes(b"expand 32-byte k"[at : at + 4], "little") for at in range(0, 16, 4)]
_QUARTERS = [[(5 * column + 4 * step) % 16 for step in range(4)] for column in range(4)] + [
    [4 * row + (row + step) % 4 for step in range(4)] for row in range(4)
]
"""The words of each quarter round in a double round of Salsa20: first the columns, then the rows."""

# RFC 7693: the fractional parts of the square roots of the first eight primes, and the order of words by round.
_IV = [
    0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
    0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
]  # fmt: skip
_ORDERS = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
    [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
    [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
    [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
    [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
    [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
    [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
    [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
]
_ROUNDS = 12
_MIXED = [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15],
          [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]]  # fmt: skip
_NONCE_BYTES = 24


def box_key(product: Sequence[Word]) -> list[Word]:
    """Return HSalsa20 of a product of the curve and 16 zero bytes, as four words (crypto_box_beforenm of NaCl)."""
    machine = product[0].machine
    key = [half for word in product for half in (word & _WORD32, word >> 32)]
    sigma, zeros = [constant(machine, value) for value in _SIGMA], [constant(machine, 0)] * 4
    start = [sigma[0], *key[:4], sigma[1], *zeros, sigma[2], *key[4:], sigma[3]]
    ended = repeated(10, start, _WORD32, _double_round)
    low = [ended[at] for at in (0, 10, 6, 8)]
    high = [ended[at] for at in (5, 15, 7, 9)]
    return [one + (other << 32) for one, other in zip(low, high, strict=True)]


def _double_round(_: Index, state: list[Word]) -> list[Word]:
    for quarter in _QUARTERS:
        for step, bits in enumerate((7, 9, 13, 18)):
            changed, one, other = (quarter[(step + offset) % 4] for offset in (1, 0, 3))
            turned = ((state[one] + state[other]) & _WORD32) << bits
            state[changed] ^= (turned & _WORD32) ^ (turned >> 32)
    return state


def box_nonce(ephemeral: Sequence[Word], recipient: Sequence[Word]) -> list[Word]:
    """Return BLAKE2b of two public keys, 24 bytes as three words (crypto_box_seal of libsodium; RFC 7693)."""
    machine = ephemeral[0].machine
    zero = constant(machine, 0)
    message = [*ephemeral, *recipient, *[zero] * 8]
    first = [_IV[0] ^ 0x01010000 ^ _NONCE_BYTES, *_IV[1:]]
    # The first block is also the last block, so its 64 bytes are counted, and the flag of the last block is set.
    second = [*_IV[:4], _IV[4] ^ 64, _IV[5], _IV[6] ^ (WORD - 1), _IV[7]]
    state = [constant(machine, value) for value in (*first, *second)]
    for number in range(_ROUNDS):
        order = iter(_ORDERS[number % len(_ORDERS)])
        for mixed in _MIXED:
            _mix(state, mixed, message[next(order)], message[next(order)])
    return [constant(machine, first[at]) ^ state[at] ^ state[at + 8] for at in range(_NONCE_BYTES // 8)]


def _mix(state: list[Word], at: Sequence[int], first: Word, second: Word) -> None:
    a, b, c, d = at
    for word, turn, other in ((first, 32, 24), (second, 16, 63)):
        state[a] = state[a].wrapping_add(state[b]).wrapping_add(word)
        state[d] = (state[d] ^ state[a]).rotated(turn)
        state[c] = state[c].wrapping_add(state[d])
        state[b] = (state[b] ^ state[c]).rotated(other)
