"""What an engine outside this process needs and is not there: one sentence before any work, and nothing written."""

from __future__ import annotations

import re
import socket
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.prism_runner import PrismJobServer

from hushcount.errors import UsageError
from pipelines.engine.job_server import ready
from pipelines.engine.runner import Engine, _run
from pipelines.files.storage_errors import StorageError
from tests.support.jobs import Chain, files_under, new_campaign, new_keys, refused, write_lines


def check(runner: str, *options: str) -> tuple[str, ...]:
    return ready(runner, PipelineOptions(list(options)))


def java(home: Path) -> Path:
    path = home / "bin" / "java"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty JAVA_HOME."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    return tmp_path / "java"


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens at."""
    with socket.socket() as one:
        one.bind(("", 0))
        one.listen()
        yield one.getsockname()[1]


def test_no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r"java on PATH.*Java 11"):
        check("FlinkRunner")
    with pytest.raises(UsageError, match="/none/java"):
        check("flink", "--job_server_java_launcher=/none/java")


def test_a_java_home_without_java(home: Path) -> None:
    with pytest.raises(UsageError, match=f"no bin/java in JAVA_HOME={home}"):
        check("FlinkRunner")


def test_the_java_of_java_home_is_the_one_that_is_used(home: Path) -> None:
    path = java(home)
    assert check("FlinkRunner") == (f"--job_server_java_launcher={path}",)


def test_no_jar(home: Path, tmp_path: Path) -> None:
    java(home)
    with pytest.raises(UsageError, match=f"--flink_job_server_jar={tmp_path / 'no.jar'} .*deploy/flink/fetch"):
        check("FlinkRunner", f"--flink_job_server_jar={tmp_path / 'no.jar'}")
    (tmp_path / "a.jar").write_bytes(b"no archive")
    with pytest.raises(
        UsageError, match=f"--flink_job_server_jar={tmp_path / 'a.jar'} is not a jar.*deploy/flink/fetch"
    ):
        check("FlinkRunner", f"--flink_job_server_jar={tmp_path / 'a.jar'}")
    with zipfile.ZipFile(tmp_path / "a.jar", "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "")
    assert check("FlinkRunner", f"--flink_job_server_jar={tmp_path / 'a.jar'}")
    assert check("FlinkRunner", "--flink_job_server_jar=https://example.org/a.jar")


def test_nobody_listens_where_the_job_server_should(taken: int) -> None:
    with socket.socket() as one:
        one.bind(("localhost", 0))
        free = one.getsockname()[1]
    for runner in ("PortableRunner", "FlinkRunner", "PrismRunner"):
        with pytest.raises(UsageError, match=rf"no job server.*--job_endpoint=localhost:{free} .*refused"):
            check(runner, f"--job_endpoint=localhost:{free}")
        assert check(runner, f"--job_endpoint=localhost:{taken}") == ()
    for address in ("8099", "localhost:", "localhost:http"):
        with pytest.raises(UsageError, match="HOST:PORT"):
            check("PortableRunner", f"--job_endpoint={address}")
    with pytest.raises(UsageError, match="--job_endpoint"):
        check("PortableRunner", "--job_endpoint=localhost:99999")
    with pytest.raises(UsageError, match="--job_endpoint=HOST:PORT"):
        check("PortableRunner")


def test_no_prism(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"--prism_location={tmp_path / 'prism'} .*go install"):
        check("PrismRunner", f"--prism_location={tmp_path / 'prism'}")
    assert check("PrismRunner", f"--prism_location={sys.executable}") == ()
    assert check("PrismRunner") == ()


def test_a_runner_in_this_process_needs_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert check("DirectRunner") == ()


@pytest.fixture
def encode(tmp_path: Path) -> tuple[object, ...]:
    """A command that is ready to run."""
    path = new_campaign(tmp_path / "c.json", new_keys(tmp_path / "keys"), dictionary=write_lines(tmp_path / "d", ["a"]))
    values = write_lines(tmp_path / "v", ["a"] * 60)
    out = Chain(path, tmp_path / "keys").path("encoded")
    return ("job", "encode", "--campaign", path, "--values", values, "--out", out)


def test_a_command_says_it_and_writes_nothing(tmp_path: Path, home: Path, encode: tuple[object, ...]) -> None:
    before = files_under(tmp_path)
    refused(*encode, "--runner", "FlinkRunner", says=[f"no bin/java in JAVA_HOME={home}"])
    refused(*encode, "--runner", "PortableRunner", says=["--job_endpoint=HOST:PORT"])
    refused(*encode, "--runner", "SparkleRunner", says=["SparkleRunner", "FlinkRunner"])
    assert files_under(tmp_path) == before


def test_what_cannot_be_fetched_is_told_with_what_to_do(
    tmp_path: Path, home: Path, taken: int, encode: tuple[object, ...]
) -> None:
    """As where Beam has no jar of this release for this Flink, or there is no internet."""
    java(home)
    with socket.socket() as one:
        one.bind(("localhost", 0))
        nowhere = f"http://localhost:{one.getsockname()[1]}"
    told = refused(
        *encode, "--runner", "FlinkRunner", "--", f"--flink_job_server_jar={nowhere}/{tmp_path.name}.jar",
        status=1, says=["--flink_job_server_jar=JAR", "deploy/flink"],
    )  # fmt: skip
    assert told.err.count("\n") == 1

    def fetch() -> None:
        # Of a location of one's own Prism's runner takes releases' addresses only, which a test must not ask.
        PrismJobServer._download_to_local_path(f"{nowhere}/prism.zip", str(tmp_path))

    with pytest.raises(StorageError, match=r"--prism_location=PRISM.*go install"):
        _run(fetch, "encode")  # type: ignore[arg-type]  # it never returns


def test_all_that_a_runner_misses_is_named_at_once(tmp_path: Path, encode: tuple[object, ...]) -> None:
    missing = ["Missing required option: project; Missing required option: region", "temp_location"]
    refused(*encode, "--runner", "DataflowRunner", says=missing)


def test_a_value_that_an_option_of_beam_does_not_take(
    subtests: pytest.Subtests, capfd: pytest.CaptureFixture[str], encode: tuple[object, ...]
) -> None:
    """One sentence, not how every option of Beam is used; the same where a deployment's file gives it."""
    for option, says in (
        ("--direct_num_workers=abc", "option --direct_num_workers: invalid int value: 'abc'"),
        ("--direct_running_mode=foo", "invalid choice: 'foo' (choose from 'in_memory', 'multi_threading'"),
        ("--flink_version=9.9", "option --flink_version: invalid choice: '9.9' (choose from "),
        ("--direct_num_workers", "option --direct_num_workers: expected one argument"),
    ):
        with subtests.test(option=option):
            told = refused(*encode, "--", option, says=[says])
            assert told.err.count("\n") == 1
            with pytest.raises(UsageError, match=re.escape(says)):
                Engine(options=(option,))
            assert capfd.readouterr() == ("", "")


def test_a_misspelt_option_of_a_deployments_engine_is_not_ignored() -> None:
    misspelt = Engine(options=("--direct_num_wrkers=2",))
    with (
        pytest.raises(UsageError, match="--direct_num_wrkers of runner FnApiRunner"),
        misspelt.pipeline("shuffle"),
    ):
        pytest.fail("a pipeline was made")
