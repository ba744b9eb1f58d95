"""One client of an S3 store for many calls: Beam makes one for each, which reads a megabyte of JSON first (60 ms)."""

from __future__ import annotations

import logging
import os
from copy import copy
from functools import lru_cache
from typing import Any

from apache_beam.io.aws.clients.s3 import boto3_client
from apache_beam.io.aws.clients.s3.boto3_client import Client
from apache_beam.options.pipeline_options import PipelineOptions

from hushcount.clock import MACHINE

SECONDS = 60.0
"""For so long a client is used: after that, one with other credentials may be wanted."""


@lru_cache(maxsize=2)
def _made(options: PipelineOptions, process: int, period: float) -> Client:
    # Connections are not shared with a process that was forked.
    del process, period
    return Client(options)


def _shared(options: PipelineOptions) -> Client:
    """Return Beam's client, which remembers what it last read, around the one of boto3, which threads may share."""
    return copy(_made(options, os.getpid(), MACHINE.steady() // SECONDS))


def boto3_client_of(options: PipelineOptions) -> Any:
    """Return boto3's client around which Beam's is made."""
    return _made(options, os.getpid(), MACHINE.steady() // SECONDS).client


def share() -> None:
    """Let Beam use one client for many calls."""
    # More calls at once than it keeps connections are no fault of anybody.
    logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
    boto3_client.Client = _shared
