"""Build a job's graph as it would be sent to an engine, offline; nothing runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apache_beam.io.filesystem import FileMetadata, FileSystem
from apache_beam.portability.api import beam_runner_api_pb2

from hushcount.errors import HushcountError, UsageError
from pipelines.engine.runner import EMBEDDED, Engine, made
from pipelines.files import storage
from pipelines.files.storage_errors import line
from pipelines.handover.retired import RetiredBatch
from pipelines.jobs.job import Job, Place

NOWHERE = "nowhere://output"
"""An output in an empty store that takes nothing, so that a graph can be built without credentials."""


def build(job: Job | RetiredBatch, engine: Engine) -> beam_runner_api_pb2.Pipeline:
    """Return the graph of a planned job as the engine would send it.

    Raises:
        RetiredKey: the key that opens the input was destroyed.
        UsageError: Dataflow's runner lacks Google's libraries.
        HushcountError: Dataflow's runner cannot translate the graph.
    """
    if isinstance(job, RetiredBatch):
        raise job.retired
    out = job.to.out
    remote = storage.is_remote(out)
    directory = storage.join(out, job.to.writer.new_folder()) if remote else out
    spill = None if remote and not engine.embedded else storage.join(directory, ".spill")
    dataflow = translates(engine)
    runner = engine.runner if dataflow else EMBEDDED
    pipeline = made(engine.runner, runner, (*engine.options, *(["--dry_run=True"] if dataflow else [])))
    job.graph(pipeline, Place(directory, spill))
    if not dataflow:
        return pipeline.to_runner_api()
    try:
        pipeline.run()
    except ImportError:
        raise UsageError(
            f"runner {engine.runner} translates with Google's libraries, which are not installed: "
            "pip install 'apache-beam[gcp]', or leave --runner out for the portable form"
        ) from None
    except Exception as error:
        raise HushcountError(f"runner {engine.runner} cannot translate the job: {line(error)}") from error
    return pipeline.runner.proto_pipeline


def translates(engine: Engine) -> bool:
    """Return whether the runner makes a graph of its own from the portable one, offline: Dataflow's does."""
    return engine.runner.rpartition(".")[2] == "DataflowRunner"


class _Nowhere(FileSystem):  # type: ignore[misc]  # apache_beam ships no types
    """An empty store, for `NOWHERE`: a plan looks into its output."""

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

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise OSError(30, "Read-only file system", NOWHERE)

    delete = mkdirs = create = open = copy = rename = size = last_updated = checksum = metadata = _refuse
