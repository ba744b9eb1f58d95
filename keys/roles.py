"""The roles that have keys: two roles open reports, one evaluates, five sign.

A party that opens reports has a second key, under another role, to sign with.
"""

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
