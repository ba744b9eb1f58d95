"""Runs a pool of Python workers for all TaskManagers of one machine; each worker is a process.

    python deploy/flink/pool.py PORT

Beam's own pool stops a worker by its number, and every TaskManager numbers its workers from one. With two TaskManagers,
the TaskManager that finishes first also stops the other TaskManager's worker, so the job waits for the stopped worker
until the job fails. In this pool a worker ends when its TaskManager closes the connection.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

from apache_beam.portability.api import beam_fn_api_pb2
from apache_beam.runners.worker.worker_pool_main import BeamFnExternalWorkerPoolServicer

WORKER = Path(__file__).parent.absolute() / "worker.py"


class Pool(BeamFnExternalWorkerPoolServicer):
    """Beam's pool, but requests to stop a worker do nothing, because workers end by themselves."""

    def StopWorker(self, *_: Any) -> beam_fn_api_pb2.StopWorkerResponse:  # noqa: N802  # gRPC's name
        return beam_fn_api_pb2.StopWorkerResponse()


def main() -> None:
    """Serve until a signal comes; the process that started the pool then ends the workers, which are in its group."""
    _, server = Pool.start(use_process=True, port=int(sys.argv[1]), container_executable=str(WORKER))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        signal.pause()
    except KeyboardInterrupt:
        server.stop(0)


if __name__ == "__main__":
    main()
