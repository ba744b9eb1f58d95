"""Watch the embedded runner's worker processes.

If a worker process ends early, the job fails. Without this watch, Beam would wait for ever for a worker process that
ended. Workers do not print the exceptions of steps, because the text of an exception may hold a report's value.
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
    """Keep workers that are threads of this process from printing the exceptions of steps."""
    # Beam prints the exceptions of steps at any log level. A function `print` in Beam's module replaces the built-in
    # function in this module.
    vars(sdk_worker)["print"] = _silent
    try:
        yield
    finally:
        vars(sdk_worker).pop("print", None)


def _silent(*_: object, **__: object) -> None:
    """Print nothing."""


def watch_workers() -> None:
    """Make Beam, in this process, start `WatchedWorker` for `--direct_running_mode=multi_processing`."""
    WorkerHandler.register_environment(python_urns.SUBPROCESS_SDK, bytes)(WatchedWorker)


class WatchedWorker(SubprocessSdkWorkerHandler):  # type: ignore[misc]  # Beam is not typed
    """A worker process. If the process ends, requests that wait for its answer get an error."""

    def start_worker(self) -> None:
        self._stopped = threading.Event()
        silent = self._worker_command_line + f" >{os.devnull} 2>&1".encode()
        self.worker = SubprocessSdkWorker(silent, self.control_address, self.provision_info, self.worker_id)
        # If Beam fails to stop one worker, the other workers keep running. The threads of workers are daemons, so that
        # the command can end even if a worker keeps running.
        self.worker_thread = threading.Thread(name="run_worker", target=self._run, daemon=True)
        self.worker_thread.start()

    def stop_worker(self) -> None:
        self._stopped.set()
        self.worker_thread.join()

    def _run(self) -> None:
        with suppress(RuntimeError):
            self.worker.run()
        # Look for waiting requests repeatedly, because other threads of the job send further requests until the job has
        # failed.
        while not self._stopped.wait(_SECONDS):
            for name, future in list(self.control_conn._futures_by_id.items()):
                if not future.is_done():
                    future.set(beam_fn_api_pb2.InstructionResponse(instruction_id=name, error=LOST))
