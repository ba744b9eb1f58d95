"""Before a job is sent to an engine outside this process, check that Java, the jar or the job server is there."""

from __future__ import annotations

import os
import shutil
import socket
import zipfile
from urllib.parse import urlparse

import apache_beam as beam
from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    JobServerOptions,
    PipelineOptions,
    PortableOptions,
    PrismRunnerOptions,
)

from hushcount.errors import UsageError

_SECONDS = 5
_MAKE_JAR = "deploy/flink/fetch.py makes it, see deploy/README.md"
_MAKE_PRISM = f"go install github.com/apache/beam/sdks/v2/go/cmd/prism@v{beam.__version__} makes it"
REMEDIES = {
    "Google Cloud Dataflow runner not available": "pip install 'apache-beam[gcp]'",
    "Unable to fetch remote job server jar": f"give --flink_job_server_jar=JAR; {_MAKE_JAR}",
    "Unable to fetch remote prism binary": f"give --prism_location=PRISM; {_MAKE_PRISM}",
    "[Errno 8] Exec format error": f"--prism_location must name Prism; {_MAKE_PRISM}",
    "Service failed to start up": "the job server ended right after its start: it needs Java 11 or newer and free "
    "ports; or give another job server with --flink_job_server_jar or --prism_location",
}
"""What a user can do if a runner cannot send a job, by the first words of Beam's error."""


def ready(runner: str, options: PipelineOptions) -> tuple[str, ...]:
    """Check the job server of a runner, or what the runner needs to start one.

    Returns:
        Further Beam options, which name the Java that starts the job server; empty: no Java is needed.

    Raises:
        UsageError: Java, the jar or Prism is missing, or no job server listens at the endpoint.
    """
    short = runner.lower().removesuffix("runner")
    endpoint = options.view_as(PortableOptions).job_endpoint
    if short not in ("flink", "prism", "portable"):
        return ()
    if endpoint:
        _require_listener(endpoint)
    elif short == "portable":
        raise UsageError(
            f"runner {runner} needs --job_endpoint=HOST:PORT after --, the address of the job server for its jobs"
        )
    elif short == "prism":
        _require_prism(options.view_as(PrismRunnerOptions).prism_location)
    else:
        return _require_flink(runner, options)
    return ()


def remedy(reason: str) -> str:
    """Return what a user can do about the reason of a failed job, as the end of a sentence; "" if nothing is known."""
    cures = [cure for begins, cure in REMEDIES.items() if reason.startswith(begins)]
    return f" ({cures[0]})" if cures else ""


def _require_listener(endpoint: str) -> None:
    if endpoint == "embed":
        return
    host, _, port = endpoint.rpartition(":")
    if not host or not port.isdigit():
        raise UsageError(f"--job_endpoint={endpoint} is not HOST:PORT")
    try:
        with socket.create_connection((host, int(port)), _SECONDS):
            pass
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"no job server listens at --job_endpoint={endpoint} ({error}): start it, or correct the address"
        ) from None


def _require_prism(location: str | None) -> None:
    if location and not urlparse(location).scheme and not os.path.exists(location):
        raise UsageError(f"--prism_location={location} does not exist: {_MAKE_PRISM}")


def _require_flink(runner: str, options: PipelineOptions) -> tuple[str, ...]:
    server = options.view_as(JobServerOptions)
    launcher = _require_java(runner, server.job_server_java_launcher)
    jar = options.view_as(FlinkRunnerOptions).flink_job_server_jar
    if jar and not urlparse(jar).scheme:
        if not os.path.isfile(jar):
            raise UsageError(f"--flink_job_server_jar={jar} does not exist: {_MAKE_JAR}")
        if not zipfile.is_zipfile(jar):
            raise UsageError(f"--flink_job_server_jar={jar} is not a jar: {_MAKE_JAR}")
    return (f"--job_server_java_launcher={launcher}",)


def _require_java(runner: str, launcher: str) -> str:
    """Return the path of Java, which the option, JAVA_HOME or PATH names."""
    home = os.environ.get("JAVA_HOME") if launcher == "java" else None
    found = shutil.which(launcher if home is None else os.path.join(home, "bin", "java"))
    if found is None:
        where = f"no {launcher} on PATH" if home is None else f"no bin/java in JAVA_HOME={home}"
        raise UsageError(
            f"runner {runner} needs Java and there is {where}: install Java 11 or newer, and set JAVA_HOME or PATH"
        )
    return found
