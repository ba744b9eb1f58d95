"""The roles that have keys: two open, one evaluates, five sign. A party that opens signs with another key."""

from __future__ import annotations

from typing import Literal

OpeningRole = Literal["analyzer", "aux_server"]
EvaluatingRole = Literal["evaluator"]
SigningRole = Literal["operator", "publisher", "shuffler", "aux_signer", "analyzer_signer"]
Role = Literal[OpeningRole, EvaluatingRole, SigningRole]
OPENING_ROLES: tuple[OpeningRole, ...] = ("analyzer", "aux_server")
EVALUATING_ROLES: tuple[EvaluatingRole, ...] = ("evaluator",)
SIGNING_ROLES: tuple[SigningRole, ...] = ("operator", "publisher", "shuffler", "aux_signer", "analyzer_signer")
ROLES: tuple[Role, ...] = (*OPENING_ROLES, *EVALUATING_ROLES, *SIGNING_ROLES)
