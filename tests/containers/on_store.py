"""A run whose store is a real S3 server: names are taken once, and all numbers agree."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from pipelines.audit.doctor import examine
from tests.containers.build import S3
from tests.containers.engine import NoEngineError, docker, ensure_engine
from tests.containers.standins import base
from tests.support.collecting import collect
from tests.support.jobs import done
from tests.support.noise import NoiseSite
from tests.support.ports import free_port
from tests.support.site import Site, at, values

BUCKET = "hushcount"
ACCOUNT = {"AWS_ACCESS_KEY_ID": "root", "AWS_SECRET_ACCESS_KEY": "root-secret", "AWS_DEFAULT_REGION": "us-east-1"}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Any]]:
    """Yield the address of the server, and boto3's client."""
    try:
        ensure_engine()
        image = base("s3", S3)
    except NoEngineError as error:
        pytest.skip(f"{error}: NO server of S3 was asked")
    for name, value in ACCOUNT.items():
        monkeypatch.setenv(name, value)
    name, port = f"hushcount-s3-{os.getpid()}", free_port()
    account = ("--env=ROOT_ACCESS_KEY=root", "--env=ROOT_SECRET_KEY=root-secret")
    options = ("--detach", "--rm", f"--name={name}", f"--publish=127.0.0.1:{port}:7070", "--volume=/data")
    docker("run", *options, *account, image, "--quiet", "--health", "/health", "posix", "/data")
    try:
        while docker("exec", name, "wget", "-q", "-O", "-", "http://127.0.0.1:7070/health", check=False).returncode:
            time.sleep(0.2)
        address = f"http://127.0.0.1:{port}"
        client = boto3.client("s3", endpoint_url=address)
        client.create_bucket(Bucket=BUCKET)
        yield address, client
    finally:
        docker("rm", "--force", "--volumes", name, check=False)


@pytest.mark.parametrize("kind", [Site, NoiseSite])
def test_a_window_is_closed_and_accounted_for_in_it(server: tuple[str, Any], tmp_path: Path, kind: type[Site]) -> None:
    address, client = server
    site = kind(tmp_path, discovery=True)
    text = site.config.read_text().replace('store = "store"', f'store = "s3://{BUCKET}/store"')
    site.config.write_text(f'{text}[engine]\noptions = ["--s3_endpoint_url={address}", "--s3_region_name=us-east-1"]\n')
    collect(site.store, site.campaign, values(200), day=0)
    for path in site.store.rglob("*"):
        if path.is_file():
            client.upload_file(str(path), BUCKET, f"store/{path.relative_to(site.store)}")
    # The server's clock decides what time it is, and windows of the test are years away from it.
    ran = site.run(1.1, sure=True)
    assert ran.problems == []
    assert [name.rpartition(" ")[2] for name in ran.hops] == [
        "shuffle", "release", "discover", *(["mix"] if kind is NoiseSite else []), "analyze"
    ]  # fmt: skip
    assert site.run(1.2, sure=True).is_quiet
    assert "all numbers agree" in done("status", "--config", site.config, "--digests").out
    checks = {check.name: check for check in examine(site.deployment, at(1.2))}
    assert checks["puts"].verdict == "good"
    tables = [one["Key"] for one in client.list_objects_v2(Bucket=BUCKET, Prefix="store/estimates/")["Contents"]]
    assert len(tables) == 1
