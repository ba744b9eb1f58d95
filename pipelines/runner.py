"""Which engine runs a job: Beam's embedded FnApiRunner unless another is named, with any Beam option passed through."""

from __future__ import annotations

import logging
import re
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import apache_beam as beam
import grpc  # type: ignore[import-untyped]
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.runner import PipelineState

from hushcount.errors import HushcountError, UsageError
from pipelines import storage
from pipelines.job_server import ready
from pipelines.storage import StorageError
from pipelines.worker_processes import LOST

# A bare DirectRunner first tries to download another runner; the embedded one is named in full instead.
_EMBEDDED = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"
_KEPT_LINES = 300
# What the embedded runner says of a worker process that was lost while it sent.
_CHANNEL_CLOSED = "Channel closed prematurely."
_JOB_NAME = re.compile(r"^Pipeline \S+ failed in state \w+: ")


@dataclass(frozen=True)
class Engine:
    """How a job is run.

    Attributes:
        runner: a Beam runner's name, or "FnApiRunner" for the embedded one.
        options: further Beam options, as on its command line.
    """

    runner: str = "FnApiRunner"
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # Jobs look at input and output before there is a pipeline, which would tell Beam's file systems only then where
        # a store is and as whom to reach it.
        FileSystems.set_options(PipelineOptions(list(self.options)))

    @property
    def embedded(self) -> bool:
        """Whether the job runs on this machine, in Beam's own runner, which keeps in memory what it groups."""
        return self.runner in ("FnApiRunner", _EMBEDDED)

    @contextmanager
    def spill(self, directory: str) -> Iterator[str | None]:
        """Yield a new local directory for blocks on their way, removed at the end; None: they go through the engine.

        Args:
            directory: the job's output. If it is a local one the new one lies in it, on the disk that has room, and
                workers reach both, wherever they are; workers that write to a store may share no disk.
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
        """Yield a pipeline that runs when the block ends, and wait for it.

        Raises:
            UsageError: no such runner, or what it needs is not there.
            StorageError: the job failed; one sentence says why. Nothing of it was released.
        """
        runner = _EMBEDDED if self.embedded else self.runner
        further = () if self.embedded else ready(self.runner, PipelineOptions(list(self.options)))
        try:
            pipeline = beam.Pipeline(runner=runner, options=PipelineOptions([*self.options, *further]))
        except (ValueError, ImportError, AttributeError) as error:
            reason = str(error).splitlines()[0][:_KEPT_LINES]
            raise UsageError(f"runner {self.runner} cannot be used: {reason}") from None
        yield pipeline
        _run(pipeline.run, job)


def _run(run: Callable[[], beam.runners.runner.PipelineResult], job: str) -> None:
    logger = logging.getLogger("apache_beam")
    level = logger.level
    # Beam logs a failing bundle's whole stack; the one sentence raised below says it all.
    logger.setLevel(logging.CRITICAL)
    try:
        with _silent_readers(), storage.silent_clients():
            _finish(run())
    except HushcountError:
        raise
    except Exception as error:
        raise StorageError(
            f"the {job} job failed and released nothing; the input is untouched: {root(error)}"
        ) from error
    finally:
        logger.setLevel(level)


@contextmanager
def _silent_readers() -> Iterator[None]:
    """Let threads that read from a worker which is gone end without printing a stack: the job's sentence says it."""
    before = threading.excepthook

    def tell(ended: threading.ExceptHookArgs) -> None:
        if not issubclass(ended.exc_type, grpc.RpcError):
            before(ended)

    threading.excepthook = tell
    try:
        yield
    finally:
        threading.excepthook = before


def _finish(result: beam.runners.runner.PipelineResult) -> None:
    """Wait for a job, and cancel it if the waiting is broken off: it must not go on writing behind its user's back."""
    try:
        state = result.wait_until_finish()
    except BaseException:
        result.cancel()
        raise
    if state != PipelineState.DONE:
        raise StorageError(f"the job ended as {state}, not as {PipelineState.DONE}")


def root(error: BaseException) -> str:
    """Return the one line that says why a pipeline failed, without the stack that Beam puts around it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines if "Error" in line.split(":")[0] or "[while running" in line]
    chosen = (named or lines or [type(error).__name__])[-1]
    if chosen == _CHANNEL_CLOSED:
        return LOST
    return _JOB_NAME.sub("", chosen).split(" [while running")[0][:_KEPT_LINES]


def unknown_options(options: Sequence[str]) -> list[str]:
    """Return the options that Beam knows nothing of: a misspelt one must not be ignored in silence."""
    parsed = PipelineOptions(list(options))
    # It warns of what it discards, which is what is asked here.
    logging.getLogger("apache_beam.options").setLevel(logging.ERROR)
    return sorted(set(parsed.get_all_options(retain_unknown_options=True)) - set(parsed.get_all_options()))
