"""The roles with keys: two parties open, four sign. The auxiliary server does both, with a key for each."""

from __future__ import annotations

from typing import Literal

OpeningRole = Literal["analyzer", "aux_server"]
SigningRole = Literal["operator", "publisher", "shuffler", "aux_signer"]
Role = Literal[OpeningRole, SigningRole]
OPENING_ROLES: tuple[OpeningRole, ...] = ("analyzer", "aux_server")
SIGNING_ROLES: tuple[SigningRole, ...] = ("operator", "publisher", "shuffler", "aux_signer")
ROLES: tuple[Role, ...] = (*OPENING_ROLES, *SIGNING_ROLES)
