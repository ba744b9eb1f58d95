"""No private key and no value where it must not be: job graphs, logs, messages, files."""

from __future__ import annotations

import base64
import binascii
import bz2
import json
import logging
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from keys.roles import OPENING_ROLES
from pipelines.engine.runner import Engine
from pipelines.jobs.analyze import plan_analyze
from pipelines.jobs.discover import plan_discover
from pipelines.jobs.encode import plan_encode
from pipelines.jobs.job import run
from pipelines.jobs.shuffle import plan_shuffle
from tests.pipelines.conftest import World
from tests.support.jobs import Chain, cli, done, files_under, found, new_campaign, new_keys, write_lines
from tests.support.records import key_file, private_key

pytestmark = pytest.mark.beam

CANARIES = ["canary-common", "canary-zweiß", "canary-rare-1", "canary-rare-2"]
LINES = ["alpha"] * 40 + [CANARIES[0]] * 60 + [CANARIES[1]] * 60 + CANARIES[2:]


@pytest.fixture(scope="session")
def chain(world: World) -> Chain:
    """Keys of its own, so that their bytes are known to be nowhere else."""
    keys = new_keys(world.root / "secret keys")
    path = new_campaign(world.root / "secrets.json", keys, dictionary=world.dictionary, discovery=2.0)
    write_lines(world.root / "secrets.txt", LINES)
    return Chain(path, keys)


def secrets(keys: Path) -> list[bytes]:
    return [bytes.fromhex(json.loads(key_file(keys, role).read_text())["secret"]) for role in OPENING_ROLES]


def tells(content: bytes, keys: Path) -> bool:
    """Return whether content holds 8 bytes of a private key: raw, in hexadecimal, base64 or as Python writes them."""
    lowered = content.lower()
    for secret in secrets(keys):
        for start in range(32 - 8):
            piece = secret[start : start + 8]
            if piece in content or piece.hex().encode() in lowered or repr(piece)[2:-1].encode() in content:
                return True
        if any(base64.b64encode(secret[shift:])[:12] in content for shift in range(3)):
            return True
    return False


def unfolded(content: bytes, depth: int = 3) -> bytes:
    """Return content with all that is base64 and compressed in it, as Beam stores functions in a graph."""
    parts = [content]
    for found_text in re.findall(rb"[A-Za-z0-9+/]{40,}={0,2}", content) if depth else []:
        for cut in range(4):
            try:
                raw = base64.b64decode(found_text[cut:][: (len(found_text) - cut) // 4 * 4])
            except (binascii.Error, ValueError):
                continue
            for unpack in (bz2.decompress, zlib.decompress):
                try:
                    parts.append(unfolded(unpack(raw), depth - 1))
                except (OSError, ValueError, zlib.error):
                    continue
    return b"\n".join(parts)


@dataclass(frozen=True)
class Recorder(Engine):
    """The embedded engine, which keeps the serialised graph of every job that it runs."""

    graphs: list[bytes] = field(default_factory=list)

    @contextmanager
    def pipeline(self, job: str) -> Iterator[beam.Pipeline]:
        with super().pipeline(job) as pipeline:
            yield pipeline
            self.graphs.append(pipeline.to_runner_api().SerializeToString())


@pytest.mark.long
def test_no_job_graph_holds_a_secret_or_a_value(chain: Chain, tmp_path: Path) -> None:
    engine = Recorder()
    path, keys = chain.campaign_path, chain.keys
    run(plan_encode(path, path.with_name("secrets.txt"), str(tmp_path / "encoded")), engine)
    run(plan_shuffle(path, str(tmp_path / "encoded"), str(tmp_path / "shuffled")), engine)
    run(plan_analyze(path, str(tmp_path / "shuffled"), keys, str(tmp_path / "results")), engine)
    run(plan_discover(path, str(tmp_path / "shuffled"), keys, str(tmp_path / "found"), uncapped=True), engine)
    assert len(engine.graphs) == 5
    graphs = [unfolded(graph) for graph in engine.graphs]
    for graph in graphs:
        assert not tells(graph, keys)
        assert not any(canary.encode() in graph for canary in CANARIES)
    # The search sees what functions hold: references to keys, in the three jobs that open something and no other.
    assert [b"KeyReference" in graph for graph in graphs] == [False, False, True, True, True]
    for graph in graphs[2:]:
        assert str(keys).encode() in graph
    assert b"RefuseOverCap" in graphs[1]
    assert b"nacl" not in graphs[1]


def leak(element: bytes, secret: bytes) -> bytes:
    return element + secret


def test_the_search_finds_a_secret_in_a_graph(chain: Chain) -> None:
    secret = secrets(chain.keys)[1]
    for form in (secret, secret.hex(), repr(secret), base64.b64encode(secret)):
        pipeline = beam.Pipeline(options=PipelineOptions([]))
        _ = pipeline | beam.Create([b"x"]) | beam.Map(leak, form)
        assert tells(unfolded(pipeline.to_runner_api().SerializeToString()), chain.keys)


def test_a_key_that_was_opened_cannot_get_into_a_graph(chain: Chain) -> None:
    key = private_key(chain.keys, "analyzer")
    with pytest.raises(Exception, match="pickled") as caught:
        beam.Map(leak, key)
    assert not tells(str(caught.value).encode(), chain.keys)


def test_neither_logs_nor_output_nor_files_tell(
    chain: Chain, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Before the analysis no canary is anywhere; after it only those that enough clients sent; a key never."""
    common = ("--campaign", chain.campaign_path)
    held = ("--input", tmp_path / "shuffled", "--keys", chain.keys)
    said = []
    with caplog.at_level(logging.DEBUG):
        for job, more in {
            "encode": ("--values", chain.campaign_path.with_name("secrets.txt"), "--out", tmp_path / "encoded"),
            "shuffle": ("--input", tmp_path / "encoded", "--out", tmp_path / "shuffled"),
            "analyze": (*held, "--out", tmp_path / "results"),
            "discover": (*held, "--uncapped", "--party", "aux-server", "--out", tmp_path / "released"),
        }.items():
            run = done("job", job, *common, *more)
            said += [run.out, run.err]
    shown = capfd.readouterr()
    everything = {
        **files_under(tmp_path),
        "log": caplog.text.encode(),
        "output": "".join([*said, shown.out, shown.err]).encode(),
    }
    assert len(everything) > 10
    assert len(everything["log"]) > 1000
    for name, content in everything.items():
        readable = content
        assert not tells(readable, chain.keys), name
        assert not any(canary.encode() in readable for canary in CANARIES), name
    # Only the file that was given holds them.
    assert all(canary.encode() in chain.campaign_path.with_name("secrets.txt").read_bytes() for canary in CANARIES)
    source = ("--input", tmp_path / "released", "--keys", chain.keys, "--party", "analyzer", "--uncapped")
    done("job", "discover", *common, *source, "--out", tmp_path / "found")
    assert found(tmp_path / "found") == CANARIES[:2]
    assert not any(tells(content, chain.keys) for content in files_under(tmp_path).values())


def test_errors_tell_neither(chain: Chain, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Values where clients or a campaign should be, a damaged key, a key in a campaign's place: nothing is quoted."""
    broken = tmp_path / "keys"
    broken.mkdir()
    whole = key_file(chain.keys, "analyzer")
    record = json.loads(whole.read_text())
    (broken / whole.name).write_text(json.dumps({**record, "secret": record["secret"][:-2] + "zz"}))
    (broken / whole.name).chmod(0o600)
    # A private key where the public ones should be.
    (broken / "public.json").write_text(whole.read_text())
    common = ("--campaign", chain.campaign_path)
    values = chain.campaign_path.with_name("secrets.txt")
    done("job", "encode", *common, "--values", values, "--out", tmp_path / "encoded")
    done("job", "shuffle", *common, "--input", tmp_path / "encoded", "--out", tmp_path / "shuffled")
    with caplog.at_level(logging.DEBUG):
        runs = [
            cli("job", "encode", *common, "--values", values, "--clients", "--out", tmp_path / "a"),
            cli("job", "encode", "--campaign", values, "--values", values, "--out", tmp_path / "b"),
            cli("job", "analyze", *common, "--input", tmp_path / "shuffled", "--keys", broken, "--out", tmp_path / "c"),
            cli("campaign", "show", "--campaign", broken / whole.name),
            cli("keys", "list", "--keys", broken),
        ]
    assert [run.status for run in runs] == [2, 2, 2, 2, 2]
    text = "".join(run.out + run.err for run in runs) + caplog.text
    assert not any(canary in text for canary in CANARIES)
    assert not tells(text.encode(), chain.keys)
