"""Searches a job's graph before it is sent: the graph must hold no key, and nothing that a worker cannot load."""

from __future__ import annotations

import base64
import binascii
import bz2
import json
import re
import subprocess
import sys
import sysconfig
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apache_beam.portability.api import beam_runner_api_pb2

import hushcount
import pipelines
from hushcount.errors import HushcountError
from hushcount.formats.reading import parse_object

if TYPE_CHECKING:
    # Imported for types only: the shuffler searches its own graph too, but the shuffler's image lacks the package
    # `keys`.
    from keys.private import Guarded

PROJECT = ("hushcount", "keys", "service", "shuffler", "evaluator", "issuer", "analyzer", "aux_server", "pipelines")
# The first bytes of bz2 and zlib data in base64, because Beam compresses with bz2 or zlib.
_PACKED = re.compile(rb"(?:QlpoO[A-Za-z0-9+/]|eN[opqr])[A-Za-z0-9+/]{16,}")
_DEPTH = 4
_HOLDS = "holds a private key"
_PIECE = 8
_LOAD_SECONDS = 300


@dataclass(frozen=True)
class Checked:
    """A searched graph.

    Attributes:
        problems: one sentence for each problem; problems with keys come first.
        packages: the project's packages that a worker loads for the graph.
    """

    problems: tuple[str, ...]
    packages: tuple[str, ...]

    def require(self) -> None:
        """Raise HushcountError if there is a problem; the message has the first problem and the number of others."""
        if self.problems:
            more = f" (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
            raise HushcountError(f"the graph must not be sent: {self.problems[0]}{more}")


def check(
    graph: beam_runner_api_pb2.Pipeline, keys: tuple[Guarded, ...] = (), forbidden: tuple[str, ...] = ()
) -> Checked:
    """Search a graph in the form in which it is sent.

    Args:
        graph: in Beam's portable form.
        keys: private keys that the graph must not hold: raw, in hexadecimal, in base64, or as a Python literal.
        forbidden: packages of the project that no step may load.
    """
    whole = graph.SerializeToString()
    parts = graph.components
    # Coders have no name, so a coder is named by its key in the graph, which says what the coder encodes.
    owners = {one.unique_name or key: one.SerializeToString() for key, one in parts.transforms.items()}
    owners.update({key: one.SerializeToString() for key, one in parts.coders.items()})
    owners.update({key: one.SerializeToString() for key, one in parts.windowing_strategies.items()})
    unpacked = {name: list(_unpacked(content, _DEPTH)) for name, content in sorted(owners.items())}
    pickles = [(name, content) for name, found in unpacked.items() for content in found if content[:1] == b"\x80"]
    with _packages() as home:
        answer = _load(home, [content for _, content in pickles])
    of_step: dict[str, list[dict[str, Any]]] = {}
    for (name, _), one in zip(pickles, answer["looked"], strict=True):
        of_step.setdefault(name, []).append(one)
    leaks, wrong = [], []
    for name, content in sorted(owners.items()):
        if any(_tells(piece, key) for piece in (content, *unpacked[name]) for key in keys):
            leaks.append(f"step {name!r} {_HOLDS}")
        problems = dict.fromkeys(problem for one in of_step.get(name, []) for problem in _problems(one))
        wrong += [f"step {name!r}: {problem}" for problem in problems]
        if _unread(parts.transforms.values(), name) and name not in of_step:
            wrong.append(f"step {name!r} holds a function in a form that cannot be searched")
    packages = sorted({module.partition(".")[0] for module in answer["ours"]})
    wrong += [f"a step loads {name}, which this party must not have" for name in packages if name in forbidden]
    wrong += [f"module {name} is not the project's own" for name in answer["strangers"]]
    if not leaks and any(_tells(whole, key) for key in keys):
        leaks.append(f"it {_HOLDS} outside its steps")
    return Checked((*leaks, *wrong), tuple(packages))


def _problems(one: dict[str, Any]) -> Iterator[str]:
    """Yield a sentence for each problem of one pickle."""
    if "fails" in one:
        yield f"cannot be unpickled with the project's packages alone: {one['fails']}"
    for name in one.get("by_value", ()):
        yield f"{name} is pickled with its code: move this lambda, local function or script function into a module"
    for module, name in one["names"]:
        if module.partition(".")[0] in ("__main__", "tests"):
            yield f"refers to {module}.{name}, which no worker has"


def _unread(transforms: Any, name: str) -> bool:
    """Return whether a step holds a pickled DoFn."""
    for one in transforms:
        if one.unique_name == name and one.spec.urn == "beam:transform:pardo:v1":
            function = beam_runner_api_pb2.ParDoPayload.FromString(one.spec.payload).do_fn
            return bool(function.urn == "beam:dofn:pickled_python_info:v1")
    return False


def _unpacked(content: bytes, depth: int) -> Iterator[bytes]:
    """Decompress what content holds compressed and in base64, as Beam stores functions, to a nesting of `depth`."""
    for found in _PACKED.findall(content) if depth else ():
        try:
            raw = base64.b64decode(found[: len(found) // 4 * 4])
            # Decompressors stop at the end of the compressed data; the bytes after it may look like base64 too.
            inner = (bz2.BZ2Decompressor() if raw[:3] == b"BZh" else zlib.decompressobj()).decompress(raw)
        except (binascii.Error, OSError, zlib.error):
            continue
        yield inner
        yield from _unpacked(inner, depth - 1)


def _tells(content: bytes, key: Guarded) -> bool:
    """Return whether content holds 8 consecutive bytes of a private key, in one of the usual forms."""
    secret = key.secret_for_storage()
    lowered, plain = content.lower(), content.replace(b"-", b"+").replace(b"_", b"/")
    for start in range(len(secret) - _PIECE + 1):
        piece = secret[start : start + _PIECE]
        if piece in content or piece.hex().encode() in lowered or repr(piece)[2:-1].encode() in content:
            return True
    return any(base64.b64encode(secret[shift:])[:12] in plain for shift in range(3))


@contextmanager
def _packages() -> Iterator[Path]:
    """Yield a directory with links to the running versions of the project's packages, and nothing else."""
    with tempfile.TemporaryDirectory(prefix="hushcount-graph-") as made:
        home = Path(made)
        # The client package is a separate distribution, and may be installed elsewhere.
        running = [Path(pipelines.__file__).parents[1] / name for name in PROJECT if name != hushcount.__name__]
        for source in (Path(hushcount.__file__).parent, *running):
            if source.is_dir():
                (home / source.name).symlink_to(source)
        yield home


def _load(home: Path, pickles: list[bytes]) -> dict[str, Any]:
    """Unpickle in a fresh Python that sees the project's and the installed packages, but no checkout and no tests."""
    paths = [str(home), *dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))]
    encoded = [base64.b64encode(content).decode() for content in pickles]
    asked = {"paths": paths, "project": PROJECT, "pickles": encoded}
    done = subprocess.run(  # noqa: S603  # our own interpreter and file
        [sys.executable, "-I", "-S", str(Path(__file__).with_name("graph_pickles.py"))],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=_LOAD_SECONDS,
        check=False,
        cwd=home,
    )
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or "it printed no reason"
        raise HushcountError(f"the graph could not be searched: {reason}")
    return parse_object(done.stdout.encode(), "the output of graph_pickles.py")
