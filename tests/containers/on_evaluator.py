"""The evaluator as its pod in deploy/kubernetes: it copies its keys and gets ready, and without a key it does not."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import ExecWaitStrategy

from hushcount.campaigns.campaign import Campaign
from tests.containers.pods import MANIFESTS, named, restricted, spec_of, volume
from tests.support.jobs import write_lines
from tests.support.site import Site

POD = spec_of("evaluator/evaluator.yaml")["template"]["spec"]
COPIES, SERVES = named(POD["initContainers"], "keys"), named(POD["containers"], "evaluator")
SECRET = {"owner": "0:10001", "mode": "u=rX,g=rX,o="}
"""Whose a Secret's files are in a pod."""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A redacted campaign that asks an evaluator, and the evaluator's keys with the digest of the analyzer's token."""
    site = Site(tmp_path, discovery=True, evaluator_keys=1)
    redacted = Campaign.read(site.campaign).redacted()
    site.campaign.unlink()
    redacted.write(site.campaign)
    write_lines(site.evaluator / "verifier", [f"analyzer sha256:{'0' * 64}"])
    (tmp_path / "etc").mkdir()
    text = (MANIFESTS / "evaluator" / "deployment.toml").read_text()
    # No bucket can be reached here.
    text = text.replace("gs://example-evaluator", "/var/lib/hushcount/counts/store")
    (tmp_path / "etc" / "deployment.toml").write_text(text)
    return site


def asking(probe: str) -> list[str]:
    """Return a command that ends with status 0 if a probe of the manifest is answered with 200."""
    asked: dict[str, Any] = SERVES[probe]["httpGet"]
    port = named(SERVES["ports"], asked["port"])["containerPort"]
    url = f"http://localhost:{port}{asked['path']}"
    return ["python", "-c", f"import urllib.request; urllib.request.urlopen('{url}', timeout=5)"]


@pytest.mark.parametrize("keys", ["there", "lost"])
def test_it_is_ready_if_and_only_if_it_has_the_keys_of_its_campaigns(
    images: dict[str, str], site: Site, keys: str
) -> None:
    if keys == "lost":
        for path in site.evaluator.glob("*.key"):
            path.unlink()
    image = images["evaluator"]
    with ExitStack() as stack:
        made = {
            name: stack.enter_context(volume(image)) for name in ("secret", "keys", "campaigns", "counts", "deployment")
        }
        made["secret"].put(site.evaluator, **SECRET)
        made["campaigns"].put(site.root / "campaigns")
        made["deployment"].put(site.root / "etc")
        volumes = {name: one.name for name, one in made.items()}
        copies = DockerContainer(image).with_kwargs(
            **restricted(POD, COPIES, volumes), entrypoint=COPIES["command"], network_mode="none"
        )
        with copies:
            assert copies.wait() == 0, copies.get_logs()
        serves = DockerContainer(image, command=SERVES["args"])
        serves.with_kwargs(**restricted(POD, SERVES, volumes), network_mode="none")
        started = ExecWaitStrategy(asking("startupProbe")).with_startup_timeout(180)
        stack.enter_context(serves.waiting_for(started))
        assert serves.exec(asking("livenessProbe")).exit_code == 0
        ready = serves.exec(asking("readinessProbe"))
        assert (ready.exit_code == 0) == (keys == "there"), serves.get_logs()
        assert (b"503" in ready.output) == (keys == "lost")
