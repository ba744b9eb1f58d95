"""A site whose campaign has noise of the mixes."""

from __future__ import annotations

from pathlib import Path

from tests.support.collecting import START, machine_at
from tests.support.jobs import done
from tests.support.site import Site

SIGNED = """sign_with = "signing"
shuffler_keys = "signing/public.json"
aux_server_keys = "signing/public.json"
"""


class NoiseSite(Site):
    """One operator with all keys, whose campaign has noise of the mixes."""

    mechanism = None
    floor = 1
    options = ("--noise", "--epsilon", 1, "--window", "1d")

    def __init__(self, root: Path, *, settings: str = "", tail: str = "", **more: bool) -> None:
        done("keys", "new", "--role", "handing-on", "--out", root / "signing")
        # Reports name their window, so keys must be valid in the first one, also if midnight passes meanwhile.
        with machine_at(START):
            super().__init__(root, settings=SIGNED + settings, tail=tail, **more)
