"""Build a job's graph as it would be sent to an engine, offline, and leave the job before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import apache_beam as beam
from apache_beam.io.filesystem import FileMetadata, FileSystem
from apache_beam.portability.api import beam_runner_api_pb2

from hushcount.errors import HushcountError, UsageError
from pipelines.engine.runner import Engine, made
from pipelines.files.storage_errors import line

NOWHERE = "nowhere://output"
"""An output in a store that holds nothing and takes nothing, so that a graph can be built without credentials."""


class _Built(BaseException):
    """The graph is there; nothing is to be run. No Exception: nothing on the way may take it for a failure."""


@dataclass(frozen=True)
class GraphOnly(Engine):
    """An engine that keeps the graph of the first job that it is given, and runs none."""

    graphs: list[beam_runner_api_pb2.Pipeline] = field(default_factory=list)

    @contextmanager
    def pipeline(self, job: str) -> Iterator[beam.Pipeline]:
        """Yield a pipeline and, when the block ends, keep its graph and leave the job."""
        dataflow = self.translates
        runner = self.runner if dataflow else "apache_beam.runners.portability.fn_api_runner.FnApiRunner"
        options = [*self.options, *(["--dry_run=True"] if dataflow else [])]
        pipeline = made(self.runner, runner, options)
        yield pipeline
        if dataflow:
            try:
                pipeline.run()
            except ImportError:
                raise UsageError(
                    f"runner {self.runner} translates with Google's libraries, which are not installed: "
                    "pip install 'apache-beam[gcp]', or leave --runner out for the portable form"
                ) from None
            except Exception as error:
                raise HushcountError(f"runner {self.runner} cannot translate the job: {line(error)}") from error
            self.graphs.append(pipeline.runner.proto_pipeline)
        else:
            self.graphs.append(pipeline.to_runner_api())
        raise _Built

    @property
    def translates(self) -> bool:
        """Whether the runner makes a graph of its own from the portable one, and does so offline: Dataflow's."""
        return self.runner.rpartition(".")[2] == "DataflowRunner"


def build(job: Callable[[Engine], Any], engine: GraphOnly) -> beam_runner_api_pb2.Pipeline:
    """Return the graph that a job would send, from a call of the job with this engine."""
    try:
        job(engine)
    except _Built:
        return engine.graphs[0]
    raise HushcountError("the job ended before it had a graph: report this bug")


class _Nowhere(FileSystem):  # type: ignore[misc]  # apache_beam ships no types
    """A store in which nothing is, for `NOWHERE`: a job looks into its output before it builds its graph."""

    @classmethod
    def scheme(cls) -> str:
        return "nowhere"

    def join(self, basepath: str, *paths: str) -> str:
        return "/".join([basepath.rstrip("/"), *(path.strip("/") for path in paths)])

    def split(self, path: str) -> tuple[str, str]:
        head, _, tail = path.rpartition("/")
        return head, tail

    def has_dirs(self) -> bool:
        return False

    def _list(self, dir_or_prefix: str) -> Iterator[FileMetadata]:
        yield from ()

    def exists(self, path: str) -> bool:
        return False

    def delete(self, paths: list[str]) -> None:
        return None

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise OSError(30, "Read-only file system", NOWHERE)

    mkdirs = create = open = copy = rename = size = last_updated = checksum = metadata = _refuse
