"""The roles that have keys: two parties open, two sign."""

from __future__ import annotations

from typing import Literal

OpeningRole = Literal["analyzer", "aux_server"]
SigningRole = Literal["operator", "shuffler"]
Role = Literal["analyzer", "aux_server", "operator", "shuffler"]
OPENING_ROLES: tuple[OpeningRole, ...] = ("analyzer", "aux_server")
SIGNING_ROLES: tuple[SigningRole, ...] = ("operator", "shuffler")
ROLES: tuple[Role, ...] = (*OPENING_ROLES, *SIGNING_ROLES)
