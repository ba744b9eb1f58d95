"""Worker processes of the embedded runner: if one is lost the job fails, where Beam by itself would wait for ever.

Of what a step raises workers print nothing here. An engine calls `watch_workers` before it starts a job.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from apache_beam.portability import python_urns
from apache_beam.portability.api import beam_fn_api_pb2
from apache_beam.runners.portability.fn_api_runner.worker_handlers import SubprocessSdkWorkerHandler, WorkerHandler
from apache_beam.runners.portability.local_job_service import SubprocessSdkWorker
from apache_beam.runners.worker import sdk_worker

LOST = "a worker process ended in the middle of its work"
_SECONDS = 0.2


@contextmanager
def silent_workers() -> Iterator[None]:
    """Keep workers that are threads of this process from printing what a step raised: it may hold a report's value."""
    # Beam prints it whatever the level of its loggers is; in the module its name comes before the built-in one.
    vars(sdk_worker)["print"] = _silent
    try:
        yield
    finally:
        vars(sdk_worker).pop("print", None)


def _silent(*_: object, **__: object) -> None:
    """Print nothing."""


def watch_workers() -> None:
    """Put the watched kind in the place of Beam's own, for `--direct_running_mode=multi_processing`; it stays there."""
    WorkerHandler.register_environment(python_urns.SUBPROCESS_SDK, bytes)(WatchedWorker)


class WatchedWorker(SubprocessSdkWorkerHandler):  # type: ignore[misc]  # Beam is not typed
    """A worker process, watched: whatever it was asked for when it ended is answered with an error."""

    def start_worker(self) -> None:
        self._stopped = threading.Event()
        # A worker prints what a step raised, which may hold a value of a report.
        silent = self._worker_command_line + f" >{os.devnull} 2>&1".encode()
        self.worker = SubprocessSdkWorker(silent, self.control_address, self.provision_info, self.worker_id)
        # Beam stops no further worker if to stop one failed: a daemon does not keep the command from ending then.
        self.worker_thread = threading.Thread(name="run_worker", target=self._run, daemon=True)
        self.worker_thread.start()

    def stop_worker(self) -> None:
        self._stopped.set()
        self.worker_thread.join()

    def _run(self) -> None:
        with suppress(RuntimeError):
            self.worker.run()
        # The job's other threads go on to ask it until the job has failed.
        while not self._stopped.wait(_SECONDS):
            for name, future in list(self.control_conn._futures_by_id.items()):
                if not future.is_done():
                    future.set(beam_fn_api_pb2.InstructionResponse(instruction_id=name, error=LOST))
