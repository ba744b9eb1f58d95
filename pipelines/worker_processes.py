"""Worker processes of the embedded runner: if one is lost the job fails, where Beam by itself would wait for ever.

Importing this module puts the watched kind in the place of Beam's own, for `--direct_running_mode=multi_processing`.
"""

from __future__ import annotations

import threading
from contextlib import suppress

from apache_beam.portability import python_urns
from apache_beam.portability.api import beam_fn_api_pb2
from apache_beam.runners.portability.fn_api_runner.worker_handlers import SubprocessSdkWorkerHandler, WorkerHandler
from apache_beam.runners.portability.local_job_service import SubprocessSdkWorker

LOST = "a worker process ended in the middle of its work"
_SECONDS = 0.2


@WorkerHandler.register_environment(python_urns.SUBPROCESS_SDK, bytes)  # type: ignore[misc]  # Beam is not typed
class WatchedWorker(SubprocessSdkWorkerHandler):  # type: ignore[misc]
    """A worker process, watched: whatever it was asked for when it ended is answered with an error."""

    def start_worker(self) -> None:
        self._stopped = threading.Event()
        self.worker = SubprocessSdkWorker(
            self._worker_command_line, self.control_address, self.provision_info, self.worker_id
        )
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
