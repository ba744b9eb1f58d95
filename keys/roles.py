"""The roles that have keys: two parties open, three sign. The auxiliary server does both, with a key for each."""

from __future__ import annotations

from typing import Literal

OpeningRole = Literal["analyzer", "aux_server"]
SigningRole = Literal["operator", "shuffler", "aux_signer"]
Role = Literal["analyzer", "aux_server", "operator", "shuffler", "aux_signer"]
OPENING_ROLES: tuple[OpeningRole, ...] = ("analyzer", "aux_server")
SIGNING_ROLES: tuple[SigningRole, ...] = ("operator", "shuffler", "aux_signer")
ROLES: tuple[Role, ...] = (*OPENING_ROLES, *SIGNING_ROLES)
