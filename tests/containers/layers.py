"""What must be in no layer of an image: private keys, tokens, and files of the checkout that git does not track.

A file that a later layer deletes is still in its own layer, so each layer is read by itself.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.containers.engine import docker

ROOT = Path(__file__).parents[2]
SEEN = ROOT / "build" / "containers" / "layers.json"
"""The layers that were searched, so that a second run reads new ones only."""
PREFIX = "opt/hushcount/"
RENAMED = {"shuffler_command.py", "evaluator_command.py", "issuer_command.py", "hand_on.py", "launch.py", "worker.py"}
"""Scripts of deploy/, which lie beside the packages."""
NAMES = re.compile(r"(\.key|/\.env|/\.netrc|/\.pypirc|/\.npmrc|/\.git|/id_(rsa|ecdsa|ed25519)|/\.docker/config\.json)$")
CONTENT = re.compile(
    rb"-----BEGIN [A-Z ]*PRIVATE KEY-----\s+[A-Za-z0-9+/=\s]{64}"
    # Our own key files.
    rb'|"role": *"[a-z_]+", *"id": *"[0-9a-f]+", *"secret": *"'
    rb"|\bAKIA(?![A-Z0-9]{9}EXAMPLE)[A-Z0-9]{16}\b"
    rb"|\bgh[pousr]_[A-Za-z0-9]{36}\b"
    rb"|\bAIza[A-Za-z0-9_-]{35}\b"
    rb"|\bxox[baprs]-[A-Za-z0-9-]{20,}"
    rb"|\bpypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50}"
)
_MOST_BYTES = 4 << 20
"""Keys and tokens lie in small files; larger ones are libraries."""


def search(tags: Iterable[str]) -> list[str]:
    """Return what is found in the layers of images, as `image: path: why`, and remember layers without findings."""
    rules = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    seen = json.loads(SEEN.read_text("utf-8")) if SEEN.exists() else {}
    clean = set(seen.get("layers", ())) if seen.get("rules") == rules else set()
    findings = []
    for tag in tags:
        layers = json.loads(docker("image", "inspect", "--format", "{{json .RootFS.Layers}}", tag).stdout)
        if clean.issuperset(layers):
            continue
        for layer, found in _searched(tag, layers, clean):
            findings += [f"{tag}: {line}" for line in found]
            if not found:
                clean.add(layer)
    SEEN.parent.mkdir(parents=True, exist_ok=True)
    SEEN.write_text(json.dumps({"rules": rules, "layers": sorted(clean)}), "utf-8")
    return findings


def _searched(tag: str, layers: list[str], clean: set[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each layer that is not clean, and what is found in it."""
    ours = _tracked()
    with tempfile.NamedTemporaryFile(suffix=".tar") as saved:
        docker("save", "--output", saved.name, tag)
        with tarfile.open(saved.name) as image:
            manifest = image.extractfile("manifest.json")
            assert manifest is not None
            (described,) = json.load(manifest)
            for layer, path in zip(layers, described["Layers"], strict=True):
                if layer in clean:
                    continue
                packed = image.extractfile(path)
                assert packed is not None
                with tarfile.open(fileobj=packed) as files:
                    yield layer, list(_findings(files, ours))


def _findings(files: tarfile.TarFile, ours: frozenset[str]) -> Iterator[str]:
    for member in files:
        if member.isdir():
            continue
        name = member.name.removeprefix("./")
        if NAMES.search(f"/{name}"):
            yield f"{name}: the name of a secret"
        if name.startswith(PREFIX) and not name.endswith(".pyc") and name.removeprefix(PREFIX) not in ours:
            yield f"{name}: a file that git does not track"
        if member.isfile() and member.size <= _MOST_BYTES:
            content = files.extractfile(member)
            text = content.read() if content is not None else b""
            # Libraries of cryptography carry the published keys of their self-tests.
            if not text.startswith(b"\x7fELF") and (found := CONTENT.search(text)):
                yield f"{name}: a private key or a token at byte {found.start()}"


def _tracked() -> frozenset[str]:
    """Return the files that git tracks or would, by their paths below /opt/hushcount."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")  # noqa: S603
    return frozenset(listed) | RENAMED
