#!/usr/bin/env python3
"""Starts one Beam worker in this Python when an engine asks for it, like the entry point of a container image.

This script is the command for `--environment_type=PROCESS`, and the `--container_executable` of a worker pool.
"""

from __future__ import annotations

import argparse
import os
import sys

import grpc
from apache_beam.portability.api import (
    beam_provision_api_pb2,
    beam_provision_api_pb2_grpc,
    endpoints_pb2,
)
from google.protobuf import json_format, text_format

_SECONDS = 60


def main() -> None:
    """Ask the engine what to run, and become the worker that runs it."""
    parser = argparse.ArgumentParser(description="Start one Beam worker.")
    parser.add_argument("--id", required=True, help="Id of this worker.")
    parser.add_argument("--provision_endpoint", required=True, help="Address at which to ask what to run.")
    asked, _ = parser.parse_known_args()
    told = _provision(asked.provision_endpoint, asked.id)
    environment = {
        **os.environ,
        "WORKER_ID": asked.id,
        "PIPELINE_OPTIONS": json_format.MessageToJson(told.pipeline_options),
        "CONTROL_API_SERVICE_DESCRIPTOR": _text(told.control_endpoint),
        "LOGGING_API_SERVICE_DESCRIPTOR": _text(told.logging_endpoint),
        "RUNNER_CAPABILITIES": " ".join(told.runner_capabilities),
    }
    command = [sys.executable, "-m", "apache_beam.runners.worker.sdk_worker_main"]
    # The worker replaces this process, so that the engine's stop signal reaches it.
    os.execve(sys.executable, command, environment)  # noqa: S606  # our own interpreter


def _provision(endpoint: str, worker: str) -> beam_provision_api_pb2.ProvisionInfo:
    with grpc.insecure_channel(endpoint) as channel:
        service = beam_provision_api_pb2_grpc.ProvisionServiceStub(channel)
        request = beam_provision_api_pb2.GetProvisionInfoRequest()
        return service.GetProvisionInfo(request, metadata=[("worker_id", worker)], timeout=_SECONDS).info


def _text(endpoint: endpoints_pb2.ApiServiceDescriptor) -> str:
    return text_format.MessageToString(endpoint)


if __name__ == "__main__":
    main()
