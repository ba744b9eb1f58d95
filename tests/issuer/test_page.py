"""What docs/operators.md tells people to paste about an issuer, in one directory."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hushcount.delivery.test_real_collector import policy
from tests.issuer.running import ask_for_passes, authorization, issuing, make_issuer
from tests.shuffler.collector.running import make_site, running
from tests.support.jobs import done
from tests.test_pasted import ROOT, blocks, commands


def test_the_secret_makes_a_header_with_which_a_report_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = [one for one in blocks(ROOT / "docs" / "operators.md") if "ann.txt" in one.text]
    *made, sent = commands(block)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    for line in made:
        subprocess.run(["sh", "-c", line], check=True)  # noqa: S603, S607  # the page's own lines
    secret = Path("secret.txt")
    assert Path("ann.txt").read_text() == authorization("ann", secret.read_text().strip()) + "\n"
    assert {path.stat().st_mode & 0o777 for path in (secret, Path("ann.txt"))} == {0o600}
    issuer_site = make_issuer(tmp_path / "issuer", secret=str(secret.absolute()))
    site = make_site(tmp_path / "site", window="1d", collector={"authentication": "privacy-pass"})
    ask_for_passes(site, issuer_site)
    Path("pages-policy.json").write_text(policy(site).model_dump_json())
    with issuing(issuer_site) as issuer, running(site) as collector:
        for name, url in (("collector", collector.url), ("issuer", issuer.url)):
            sent = sent.replace(f"https://{name}.example.com", url)
        said = done(*shlex.split(sent)[1:], "--json").json
    assert (said["sent"], said["waiting"]) == (2, 0)
