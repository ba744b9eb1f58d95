"""Make the secrets of stores.yaml in the directory `secrets`: the credentials of buckets.

    python stores/new_secrets.py

Each party's container gets its own file and no other. A second call ends with an error: what exists is in use.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from pathlib import Path

PARTIES = ("shuffler", "aux-server", "analyzer")
FOLDER = Path("secrets")


def main() -> None:
    """Write all files, for their owner alone."""
    if FOLDER.exists():
        sys.exit("secrets exists, and what is in it may be in use: move it away to make other secrets")
    FOLDER.mkdir(mode=0o700)
    accounts = {}
    for party in PARTIES:
        key = secrets.token_hex(32)
        accounts[party] = {"access": party, "secret": key, "role": "user"}
        _write(f"{party}.aws", f"[default]\naws_access_key_id = {party}\naws_secret_access_key = {key}")
    _write("store-root", secrets.token_hex(32))
    _write("users.json", json.dumps({"accessAccounts": accounts}, indent=2))


def _write(name: str, text: str) -> None:
    descriptor = os.open(FOLDER / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(f"{text}\n")


if __name__ == "__main__":
    main()
