"""Run a job on an engine: Beam's embedded FnApiRunner unless another is named. Any Beam option may be given."""

from __future__ import annotations

import logging
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import apache_beam as beam
import grpc  # type: ignore[import-untyped]
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.runner import PipelineState

from hushcount.errors import HushcountError, UsageError
from pipelines.engine.errors import root
from pipelines.engine.job_server import ready, remedy
from pipelines.engine.worker_processes import silent_workers, watch_workers
from pipelines.files import storage
from pipelines.files.beam_options import reach_with, unknown_options
from pipelines.files.storage_errors import StorageError, silent_clients

EMBEDDED = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"
_EMBEDDED_NAMES = {"fnapirunner", "directrunner", "direct", EMBEDDED.lower()}
"""Names of the embedded runner in lower case; Beam too ignores case, and "Direct" stands for "DirectRunner".

If Beam gets the name "DirectRunner", it first tries to download another runner, so Beam gets the full name.
"""
_KEPT_CHARACTERS = 800
_WHOLLY = "failed and released nothing; the input is untouched"
_FAILED = {"stream": "failed; hushcount run does the remaining work without it"}
"""What a failed job's error says about the job's effect, for a job without which `hushcount run` can still work."""
# If a job server never started, a thread of grpc fails with an exception that has this text.
_CHANNEL_GONE = "Cannot monitor channel state"


@dataclass(frozen=True)
class Engine:
    """A Beam runner, which runs jobs, and its options.

    Attributes:
        runner: a Beam runner's name; "FnApiRunner" and "DirectRunner" are the embedded one.
        options: further Beam options, as on Beam's command line.
    """

    runner: str = "FnApiRunner"
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # A pipeline gives its options to Beam's file systems too, but jobs read files before they make a pipeline.
        reach_with(self.options)

    @property
    def embedded(self) -> bool:
        """Whether the job runs on this machine, in Beam's own runner, which keeps grouped data in memory."""
        return self.runner.lower() in _EMBEDDED_NAMES

    @contextmanager
    def spill(self, directory: str) -> Iterator[str | None]:
        """Yield a temporary local directory for blocks between steps; None: blocks go through the engine.

        If `directory` is local, the temporary directory is inside `directory`, because its disk has space for the
        output and all workers reach it. If `directory` is in a store, only the embedded engine gets a temporary
        directory, because the workers of other engines may share no disk.
        """
        remote = storage.is_remote(directory)
        if remote and not self.embedded:
            yield None
            return
        parent = None if remote else directory
        with tempfile.TemporaryDirectory(prefix=".spill-", dir=parent, ignore_cleanup_errors=True) as made:
            yield made

    @contextmanager
    def pipeline(self, job: str) -> Iterator[beam.Pipeline]:
        """Yield an empty pipeline; when the block ends, run the pipeline and wait until its job is finished.

        Raises:
            UsageError: the runner is unknown or lacks something that it needs, or Beam does not know an option.
            StorageError: the job failed and released nothing; the message says in one sentence why the job failed.
        """
        if unknown := unknown_options(self.options):
            raise UsageError(
                f"option --{unknown[0]} of runner {self.runner} is not one of Beam's: correct or remove it"
            )
        further = () if self.embedded else ready(self.runner, PipelineOptions(list(self.options)))
        pipeline = _made(self.runner, EMBEDDED if self.embedded else self.runner, (*self.options, *further))
        yield pipeline
        _run(pipeline.run, job, pipeline.applied_labels)


def _made(named: str, runner: str, options: Sequence[str]) -> beam.Pipeline:
    """Return an empty pipeline for the Beam runner `runner`; `named` is the user's name for the runner, for errors.

    Raises:
        UsageError: the runner is unknown, or its options are missing or wrong; the message names all faults.
    """
    try:
        return beam.Pipeline(runner=runner, options=PipelineOptions(list(options)))
    except (ValueError, ImportError, AttributeError) as error:
        first, *rest = [line.strip().rstrip(".") for line in str(error).splitlines() if line.strip()] or [
            type(error).__name__
        ]
        # Beam's first line says only that there are faults; each further line names a fault.
        reason = " ".join([first, "; ".join(rest)]).strip()[:_KEPT_CHARACTERS]
        raise UsageError(f"runner {named} cannot be used: {reason}") from None


def _run(run: Callable[[], beam.runners.runner.PipelineResult], job: str, steps: Collection[str] = ()) -> None:
    watch_workers()
    logger = logging.getLogger("apache_beam")
    level = logger.level
    # Beam logs the whole stack of a failing bundle. Hide Beam's log, because the error raised below says in one
    # sentence what failed.
    logger.setLevel(logging.CRITICAL)
    try:
        with _silent_readers(), silent_clients(), silent_workers():
            _finish(run())
    except HushcountError:
        raise
    except Exception as error:
        reason = root(error, steps)
        # `from None` keeps the text of the exception, which may quote a report, from being printed.
        raise StorageError(f"the {job} job {_FAILED.get(job, _WHOLLY)}: {reason}{remedy(reason)}") from None
    finally:
        logger.setLevel(level)


@contextmanager
def _silent_readers() -> Iterator[None]:
    """Print no stack if a thread fails because the process that it reads from has ended, which the job's error says."""
    before = threading.excepthook

    def tell(ended: threading.ExceptHookArgs) -> None:
        if not issubclass(ended.exc_type, grpc.RpcError) and _CHANNEL_GONE not in str(ended.exc_value):
            before(ended)

    threading.excepthook = tell
    try:
        yield
    finally:
        threading.excepthook = before


def _finish(result: beam.runners.runner.PipelineResult) -> None:
    """Wait for a job; if the wait is interrupted, cancel the job, so that it does not write after the command's end."""
    try:
        state = result.wait_until_finish()
    except BaseException:
        result.cancel()
        raise
    if state != PipelineState.DONE:
        raise StorageError(f"the job ended as {state}, not as {PipelineState.DONE}")
