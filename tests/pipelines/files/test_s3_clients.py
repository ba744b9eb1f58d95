"""Calls of a store share one client, as long as nothing that it was made of may have changed."""

from __future__ import annotations

import os

import pytest
from apache_beam.io.aws.s3io import S3IO
from apache_beam.options.pipeline_options import PipelineOptions

from hushcount.clock import MACHINE
from pipelines.files import s3_clients
from pipelines.files.stores import reached

OPTIONS = PipelineOptions(["--s3_region_name=eu-west-1", "--s3_endpoint_url=http://store.example"])


@pytest.fixture(autouse=True)
def moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the clock: between two moments a client may be made anew."""
    monkeypatch.setitem(vars(MACHINE), "steady", lambda: 1000.0)


def test_calls_share_a_client_and_none_what_it_last_read() -> None:
    reached("s3://store/file")
    one, other = (S3IO(options=OPTIONS).client for _ in "ab")
    assert one is not other
    assert one.client is other.client
    assert one.client.meta.endpoint_url == "http://store.example"
    elsewhere = PipelineOptions(["--s3_region_name=eu-west-1", "--s3_endpoint_url=http://other.example"])
    assert S3IO(options=elsewhere).client.client.meta.endpoint_url == "http://other.example"


def test_a_client_is_made_anew_for_other_credentials_and_in_a_process_that_was_forked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reached("s3://store/file")
    first = S3IO(options=OPTIONS).client.client
    with monkeypatch.context() as patch:
        patch.setitem(vars(MACHINE), "steady", lambda: 1000.0 + s3_clients.SECONDS)
        assert S3IO(options=OPTIONS).client.client is not first
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert S3IO(options=OPTIONS).client.client is not first
