"""The key of the auxiliary server, for the tests of its steps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hushcount.campaigns.campaign import Campaign
from keys.directories import KeyReference


@pytest.fixture
def key(tmp_path: Path, campaign: Campaign) -> KeyReference:
    """The auxiliary server's key file, which is that of the module's campaign."""
    record = {"role": "aux_server", "id": campaign.keys.aux_server[0].id, "secret": (bytes([2]) * 32).hex()}
    path = tmp_path / f"aux_server-{record['id']}.key"
    path.write_text(json.dumps(record))
    path.chmod(0o600)
    return KeyReference(str(tmp_path), "aux_server", record["id"])
