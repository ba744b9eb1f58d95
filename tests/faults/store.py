"""An object store over HTTP on this machine, behind a connection that can be cut and restored."""

from __future__ import annotations

import select
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from deploy.flink.cluster import free_port, listens, process, wait_for

BUCKET = "hushcount"
_ACCOUNT = {"aws_access_key_id": "none", "aws_secret_access_key": "none", "region_name": "us-east-1"}
_PIECE = 1 << 16


@dataclass
class Connection:
    """A relay to a port of this machine.

    Attributes:
        port: where it listens.
        target: the port that it relays to.
        is_cut: set while it is cut: what was connected is closed, and what connects is closed at once.
        passed: how many bytes went either way.
    """

    port: int
    target: int
    is_cut: threading.Event = field(default_factory=threading.Event)
    stopped: threading.Event = field(default_factory=threading.Event)
    passed: int = 0

    def cut(self) -> None:
        self.is_cut.set()

    def restore(self) -> None:
        self.is_cut.clear()

    def serve(self) -> None:
        """Relay until it is stopped."""
        with socket.create_server(("127.0.0.1", self.port)) as listener:
            listener.settimeout(0.1)
            while not self.stopped.is_set():
                with suppress(TimeoutError):
                    near, _ = listener.accept()
                    threading.Thread(target=self._relay, args=(near,), daemon=True).start()

    def _relay(self, near: socket.socket) -> None:
        with near, suppress(OSError):
            if self.is_cut.is_set():
                return
            with socket.create_connection(("127.0.0.1", self.target)) as far:
                ends = {near: far, far: near}
                while not (self.is_cut.is_set() or self.stopped.is_set()):
                    for ready in select.select(list(ends), [], [], 0.05)[0]:
                        piece = ready.recv(_PIECE)
                        if not piece:
                            return
                        self.passed += len(piece)
                        ends[ready].sendall(piece)


@dataclass(frozen=True)
class Store:
    """A running store.

    Attributes:
        connection: the way to it that jobs are given.
        client: of the store itself, whether or not the connection is cut.
        options: what a job needs to reach it, behind a bare `--`.
    """

    connection: Connection
    client: Any
    options: tuple[str, ...]

    def put(self, source: Path, prefix: str) -> str:
        """Copy a directory, and return its address in the store."""
        for path in sorted(source.rglob("*")):
            if path.is_file():
                key = f"{prefix}/{path.relative_to(source)}"
                self.client.put_object(Bucket=BUCKET, Key=key, Body=path.read_bytes())
        return f"s3://{BUCKET}/{prefix}"

    def get(self, prefix: str, target: Path) -> Path:
        """Copy a directory of the store to a local one, and return that."""
        for key, data in self.objects(prefix).items():
            path = target / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return target

    def names(self, prefix: str) -> list[str]:
        """Return the names of the objects of a directory."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"{prefix}/")
        return [item["Key"].removeprefix(f"{prefix}/") for page in pages for item in page.get("Contents", ())]

    def objects(self, prefix: str) -> dict[str, bytes]:
        """Return the objects of a directory by name."""
        return {
            name: self.client.get_object(Bucket=BUCKET, Key=f"{prefix}/{name}")["Body"].read()
            for name in self.names(prefix)
        }


@contextmanager
def store(directory: Path) -> Iterator[Store]:
    """Start an empty store and a relay to it."""
    connection = Connection(free_port(), free_port())
    command = [sys.executable, "-m", "tests.faults.s3_server", str(connection.target)]
    with process(command, directory / "store.log") as server:
        wait_for(lambda: listens(connection.target), "the store", directory, [server])
        own = Config(retries={"total_max_attempts": 1})
        client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{connection.target}", config=own, **_ACCOUNT)
        client.create_bucket(Bucket=BUCKET)
        relay = threading.Thread(target=connection.serve)
        relay.start()
        try:
            yield Store(
                connection,
                client,
                (
                    f"--s3_endpoint_url=http://127.0.0.1:{connection.port}",
                    "--s3_access_key_id=none",
                    "--s3_secret_access_key=none",
                    "--s3_region_name=us-east-1",
                ),
            )
        finally:
            connection.stopped.set()
            relay.join()
