"""Functions of the encoders: primes, pools, affine functions, Hadamard columns; and mechanisms that must be refused."""

from __future__ import annotations

from typing import Any

import numpy as np

from hushcount.errors import UsageError
from hushcount.maths.field61 import PRIME
from hushcount.maths.primes import prime_at_least
from hushcount.oracles.catalogue import build
from hushcount.oracles.encoders.affine import Affine
from hushcount.oracles.encoders.base import Encoder
from hushcount.oracles.encoders.hadamard import Hadamard
from hushcount.oracles.encoders.pool import Pool, coefficients
from hushcount.wire.fields import report_dtype
from tests.hushcount.oracles.cases import SEED
from tests.vectors.subjects.script import octets, require_refused, word

_DOMAINS = (2, 3, 4, 11, 12, 100, 1000, 65_536, 70_000, 1 << 20, 2_147_483_629, 2_147_483_630, (1 << 31) - 1)


def _cell(encoder: Encoder, item: int, **fields: int) -> str:
    function = np.zeros(1, dtype=report_dtype(encoder.fields))
    for name, value in fields.items():
        function[name] = value
    return str(int(encoder.cell(function, np.array([item], dtype=np.uint64))[0]))


def _pools() -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for seed, k, m, row in (
        (SEED, 3, 4, 0),
        (SEED, 3, 4, 2),
        (SEED, 4, 1024, 2),
        (octets(32, "seed").hex(), 65_536, 1 << 24, 65_535),
    ):
        pool = Pool(k, m, seed)
        for item in (0, PRIME - 1, word("item", m, row) % (PRIME - 1)):
            table = [str(int(one)) for one in coefficients(k, seed)[:, row]]
            given = {"encoder": "pool", "seed": seed, "k": k, "m": m, "row": row, "coefficients": table}
            made.append({**given, "item": str(item), "cell": _cell(pool, item, row=row)})
    return made


def _affine() -> list[dict[str, Any]]:
    made = []
    for domain, buckets in ((5, 2), (5, 5), (1000, 21), (70_000, 4), ((1 << 31) - 1, 1000), (None, 8), (None, PRIME)):
        prime = PRIME if domain is None else prime_at_least(domain)
        encoder = Affine(domain, prime, buckets)
        given = {"encoder": "affine", "domain": domain, "prime": str(prime), "buckets": str(buckets)}
        for slope, shift, item in ((1, 0, 0), (encoder.slopes, prime - 1, (domain or prime) - 1)):
            fields = {"slope": slope, "shift": shift} if encoder.folded else {"slope": slope}
            written = {name: str(value) for name, value in fields.items()}
            made.append({**given, **written, "item": str(item), "cell": _cell(encoder, item, **fields)})
    return made


def _hadamard() -> list[dict[str, Any]]:
    made = []
    for domain, blocks in ((2, 1), (5, 1), (8, 1), (9, 1), (7, 2), (6, 4), (100, 4), (1 << 31, 1)):
        encoder = Hadamard(domain, blocks)
        given = {"encoder": "hadamard", "domain": domain, "blocks": blocks, "order": encoder.order}
        chosen = (word(domain) % encoder.order, domain // 2)
        for column, item in dict.fromkeys(((0, domain - 1), (encoder.order - 1, domain - 1), chosen)):
            made.append({**given, "column": column, "item": str(item), "cell": _cell(encoder, item, column=column)})
    return made


_POOL = {"k": 4, "m": 8, "seed": SEED}
_WRONG: tuple[tuple[str, str, float, int | None, dict[str, Any]], ...] = (
    ("unknown_mechanism", "GRR", 1.0, 5, {}),
    ("unknown_mechanism", "", 1.0, 5, {}),
    ("unknown_mechanism", "constructor", 1.0, 5, {}),
    ("unknown_mechanism", "__proto__", 1.0, 5, {}),
    *(("epsilon_out_of_range", "grr", epsilon, 5, {}) for epsilon in (0.0, 9.9e-5, 40.5, -1.0)),
    *(("domain_out_of_range", "grr", 1.0, domain, {}) for domain in (1, 0, -1, 1 << 31)),
    *(
        ("needs_dictionary", name, 1.0, None, given)
        for name, given in (
            ("grr", {}), ("ss", {"s": 2}), ("sue", {}), ("oue", {}), ("he", {}), ("hr", {}), ("rhr", {"b": 1}),
            ("wss", {"design": "7"}),
        )
    ),
    *(
        ("missing_parameter", name, 1.0, 100, given)
        for name, given in (
            ("ss", {}), ("ais", {}), ("olh", {}), ("rhr", {}), ("wss", {}),
            ("gcms", {"k": 4, "m": 8, "seed": SEED}), ("gcms", {"k": 4, "s": 2, "seed": SEED}),
            ("rappor", {"k": 4, "m": 8}), ("hcms", {"m": 8, "seed": SEED}), ("gcms-target", {**_POOL, "s": 2}),
            ("ocms-mse", {"B": 3}),
        )
    ),
    *(
        ("unknown_parameter", name, 1.0, 100, given)
        for name, given in (
            ("grr", {"s": 1}), ("ss", {"s": 1, "S": 1}), ("ais", {"s": 3, "seed": SEED}),
            ("olh", {"B": 3, "__proto__": 1}), ("rappor", {**_POOL, "s": 2}),
        )
    ),
    *(
        ("parameter_out_of_range", name, 1.0, 100, given)
        for name, given in (
            ("ss", {"s": 0}), ("ss", {"s": 100}), ("ss", {"s": -1}), ("ais", {"s": 0}), ("ais", {"s": 101}),
            ("olh", {"B": 1}), ("olh", {"B": 102}), ("rhr", {"b": 0}), ("rhr", {"b": 8}),
            ("rappor", {**_POOL, "k": 0}), ("rappor", {**_POOL, "m": 1}),
            ("rappor", {**_POOL, "k": (1 << 18) + 1}), ("rappor", {**_POOL, "m": (1 << 24) + 1}),
            ("rappor", {**_POOL, "seed": SEED[1:]}), ("rappor", {**_POOL, "seed": SEED.upper()}),
            ("rappor", {**_POOL, "seed": "g" * 64}), ("gcms", {**_POOL, "s": 8}), ("gcms", {**_POOL, "s": 0}),
            ("gcms", {**_POOL, "s": 2, "p": 0.25}), ("gcms", {**_POOL, "s": 2, "p": 1.0}),
            ("gcms", {**_POOL, "s": 2, "p": 1.5}), ("gcms-target", {**_POOL, "s": 2, "f": 1.5}),
        )
    ),
    ("parameter_out_of_range", "ss", 1.0, (1 << 24), {"s": 1025}),
    ("spends_more", "gcms", 1.0, 100, {**_POOL, "s": 2, "p": 0.9}),
    *(
        ("wrong_type", name, 1.0, 100, given)
        for name, given in (
            ("ss", {"s": True}), ("ss", {"s": 2.5}), ("olh", {"B": "three"}), ("ais", {"s": "03"}),
            ("ais", {"s": ""}), ("gcms", {**_POOL, "s": 2, "p": True}),
        )
    ),
    *(
        ("unknown_design", "wss", 1.0, domain, {"design": name})
        for domain, name in (
            (7, "7-2-" + "0" * 64),
            (7, ""),
            (7, "../7-2"),
            (7, "7-2-" + "A" * 64),
        )
    ),
)  # fmt: skip


def _refused() -> list[dict[str, Any]]:
    made = []
    for reason, name, epsilon, domain, parameters in _WRONG:
        require_refused((ValueError, UsageError), build, name, epsilon, domain, parameters)
        mechanism = {"name": name, "epsilon": epsilon, "parameters": parameters}
        made.append({"mechanism": mechanism, "domain": domain, "reason": reason})
    return made


def data() -> dict[str, Any]:
    """Return the file's content."""
    primes = [{"encoder": "prime", "domain": domain, "prime": str(prime_at_least(domain))} for domain in _DOMAINS]
    return {
        "subject": "encoders",
        "about": "Cells of items under named functions; primes of domains; coefficients of pools; wrong mechanisms",
        "accept": [*primes, *_pools(), *_affine(), *_hadamard()],
        "refuse": _refused(),
    }
