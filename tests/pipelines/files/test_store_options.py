"""Where a store is, is known before the first look at input and output; that it is away is told in one sentence."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest
from apache_beam.io.filesystem import FileSystem
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions, S3Options

from hushcount.wire.blocks import Kind
from pipelines.engine.runner import Engine
from pipelines.files import storage, stores
from pipelines.files.block_files import find_files
from pipelines.files.storage import write_whole
from pipelines.files.storage_errors import StorageError, silent_clients
from pipelines.outputs.staging import staged
from tests.support.jobs import Chain, files_under, new_campaign, new_keys, refused, write_lines
from tests.support.stub_store import StubStore


def test_an_engine_tells_its_options_to_the_file_systems_at_once() -> None:
    before = FileSystems._pipeline_options
    try:
        Engine(options=("--s3_endpoint_url=http://store.example:9000",))
        told = FileSystems._pipeline_options
        assert isinstance(told, PipelineOptions)
        assert told.view_as(S3Options).s3_endpoint_url == "http://store.example:9000"
        Engine()
        assert FileSystems._pipeline_options.view_as(S3Options).s3_endpoint_url is None
    finally:
        FileSystems.set_options(before)


@pytest.mark.long
def test_commands_without_an_engine_have_options_and_a_workers_own_are_left_alone() -> None:
    """In a process of its own, where no other test has told any."""
    look = "print(FileSystems._pipeline_options.view_as(S3Options).s3_endpoint_url)"
    imports = (
        "from apache_beam.io.filesystems import FileSystems; "
        "from apache_beam.options.pipeline_options import PipelineOptions, S3Options; "
    )
    tell = "FileSystems.set_options(PipelineOptions(['--s3_endpoint_url=http://store.example:9000'])); "
    for before, told in (("", "None"), (tell, "http://store.example:9000")):
        program = f"{imports}{before}from pipelines.files import storage; storage.join('s3://store', 'file'); {look}"
        ended = subprocess.run(  # noqa: S603  # our own program
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
        assert ended.stdout.strip() == told


@pytest.mark.parametrize("cut", ["put", "open"])
def test_what_a_client_raises_when_its_connection_is_cut_becomes_a_sentence(
    monkeypatch: pytest.MonkeyPatch, cut: str
) -> None:
    """Not an OSError: that of the s3 client fails in looking for a status that no answer has."""

    def away(*_: object) -> None:
        raise AttributeError("'NoneType' object has no attribute 'get'")

    StubStore.clear()
    if cut == "put":
        with pytest.raises(StorageError, match="stub://b/out"), staged("stub://b/out", overwrite=False) as directory:
            # Tidying up fails as well.
            for name in ("create", "exists", "delete", "match"):
                monkeypatch.setattr(StubStore, name, away)
            write_whole(f"{directory}/summary.json", [b"{}"])
    else:
        StubStore.put("stub://b/in/one.blocks", b"")
        monkeypatch.setattr(StubStore, "open", away)
        with pytest.raises(StorageError, match="stub://b/in/one"):
            find_files("stub://b/in", Kind.SEALED_REPORTS)
    StubStore.clear()


def test_what_clients_of_stores_log_stays_silent_in_a_block_and_after_one_within_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Beam's client of s3:// gives whole stacks to the root logger."""
    root = logging.getLogger()
    record = root.makeRecord(root.name, logging.ERROR, "lib/apache_beam/io/aws/s3io.py", 1, "stack", (), None)
    with silent_clients():
        with silent_clients():
            root.handle(record)
        root.handle(record)
    assert not caplog.records
    root.handle(record)
    assert caplog.records == [record]


# Stores that cannot be reached from here.


@pytest.fixture
def chain(tmp_path: Path) -> Chain:
    keys, dictionary = new_keys(tmp_path / "keys"), write_lines(tmp_path / "d", ["a"])
    return Chain(new_campaign(tmp_path / "c.json", keys, dictionary=dictionary, discovery=1.0), keys)


@pytest.fixture
def no_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Beam that was installed without the extras of any cloud."""
    there = [system for system in FileSystem.get_all_subclasses() if system.scheme() != "gs"]
    monkeypatch.setattr(FileSystem, "get_all_subclasses", lambda: there)
    monkeypatch.setattr(stores, "find_spec", lambda name: None)


COMMANDS = {
    "shuffle to it": ("job", "shuffle", "--input", "{here}", "--out", "{there}"),
    "shuffle from it": ("job", "shuffle", "--input", "{there}", "--out", "{here}/out"),
    "analyze from it": ("job", "analyze", "--input", "{there}", "--keys", "{here}/keys", "--out", "{here}/out"),
    "discover from it": ("job", "discover", "--input", "{there}", "--keys", "{here}/keys", "--out", "{here}/out"),
    "encode to it": ("job", "encode", "--values", "{here}/d", "--out", "{there}"),
}


@pytest.mark.usefixtures("no_clients")
def test_a_store_that_cannot_be_reached_is_refused_in_one_sentence(
    subtests: pytest.Subtests, chain: Chain, tmp_path: Path
) -> None:
    for command, line in COMMANDS.items():
        for there, says in (
            ("gs://bucket/way", "pip install 'apache-beam[gcp]'"),
            ("s3://bucket/way", "pip install 'apache-beam[aws]'"),
            (
                "elsewhere://way",
                "elsewhere://",
            ),
            ("file:///tmp/way", "file://"),
        ):
            with subtests.test(command=command, there=there):
                before = files_under(tmp_path)
                name, *arguments = (part.format(here=tmp_path, there=there) for part in line)
                told = refused(name, *arguments, "--campaign", chain.campaign_path, says=[says])
                assert told.err.count("\n") == 1
                assert files_under(tmp_path) == before


def test_whatever_a_client_raises_when_it_is_asked_what_is_there_becomes_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def away(*_: object, **__: object) -> None:
        raise RuntimeError("nobody may see this\nnot without credentials")

    for name, ask in (
        ("exists", storage.exists),
        ("match", storage.holds_objects),
        ("match", storage.list_objects),
        ("join", storage.join),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(StubStore, name, away)
            with pytest.raises(StorageError, match=r"stub://b/out: not without credentials$"):
                ask("stub://b/out")


def test_a_local_name_with_a_colon_and_slashes_within_is_local(tmp_path: Path) -> None:
    assert not storage.is_remote(f"{tmp_path}/a://b")
    assert storage.is_remote("s3://b")
