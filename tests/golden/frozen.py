"""Files of a release, frozen: every later state must read them (SECURITY.md says which formats that promises).

    python -m tests.golden.frozen release-1     freeze the files of this state, once, when it is released

An archive is never written again: where test_frozen.py fails, the state that reads it is wrong, not the archive. It has
what `make.py` keeps of a deployment, and a client's folder with its policy.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

from hushcount.campaigns.campaign import Campaign
from tests.golden.site import KEPT
from tests.hushcount.delivery.fake_collector import campaign, collecting, policy, sender
from tests.support.clocks import Hands
from tests.support.jobs import files_under

FROZEN = Path(__file__).parent
FIGURES = "figures.json"
VALUES = ("one", "four", "never listed")


def freeze(name: str) -> None:
    """Write the archive of a release."""
    files = {f"kept/{path}": data for path, data in files_under(KEPT).items()}
    figures: dict[str, Any] = {
        "fingerprints": {path.name: Campaign.read(path).fingerprint.hex() for path in campaign_files(KEPT)},
    }
    with tempfile.TemporaryDirectory() as scratch:
        files |= _client(Path(scratch) / "client", figures)
    files[FIGURES] = json.dumps(figures, indent=1).encode()
    with zipfile.ZipFile(FROZEN / f"{name}.zip", "x", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, data in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(path), data, zipfile.ZIP_DEFLATED)


def campaign_files(kept: Path) -> list[Path]:
    """Return the campaign files of a stored deployment: one of each family, and the deployment's."""
    return [*sorted((kept / "campaigns").glob("*.json")), kept / "before" / "campaigns" / "words" / "words.json"]


def _client(home: Path, figures: dict[str, Any]) -> dict[str, bytes]:
    """Let an app report, and end before it sends; return its folder and policy, and note what it must send."""
    now = time.time()
    with collecting() as collector:
        one = sender(collector, home, clock=Hands(now).clock)
        # The first delivery draws the client's token.
        one.report(VALUES[0])
        one.deliver()
        collector.posts.clear()
        for value in VALUES:
            one.report(value)
        files = {f"client/{path}": data for path, data in files_under(home).items()}
        one.deliver()
        streams = ("reports", "discovery")
        sent = {stream: [hashlib.sha256(data).hexdigest() for data in collector.received(stream)] for stream in streams}
        (token,) = {post.token for post in collector.posts}
    content = campaign().model_dump(mode="json", exclude_none=True)
    figures |= {"now": now, "sent": sent, "token": token, "reports": 1 + len(VALUES)}
    return files | {"policy.json": policy().text().encode(), "campaign.json": json.dumps(content).encode()}


if __name__ == "__main__":
    freeze(sys.argv[1])
