"""Use one S3 client for many calls. Beam makes a client for each call, and a new client reads 1 MB of JSON (60 ms)."""

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
"""How many seconds a client is used before a new client is made.

A new client is needed, because the credentials may have changed.
"""


@lru_cache(maxsize=2)
def _made(options: PipelineOptions, process: int, period: float) -> Client:
    # Process and period are only keys of the cache, by which a forked process and each new period get a new client.
    del process, period
    return Client(options)


def _shared(options: PipelineOptions) -> Client:
    """Return a copy of Beam's client.

    Each copy caches its own last read, and all copies share one boto3 client, which several threads may use.
    """
    return copy(_made(options, os.getpid(), MACHINE.steady() // SECONDS))


def boto3_client_of(options: PipelineOptions) -> Any:
    """Return the boto3 client inside Beam's client."""
    return _made(options, os.getpid(), MACHINE.steady() // SECONDS).client


def share() -> None:
    """Make Beam use one client for many calls."""
    # Hide urllib3's harmless warning that there are more calls at the same time than connections in its pool.
    logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
    boto3_client.Client = _shared
