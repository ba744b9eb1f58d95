"""Collections have types: a graph whose steps do not fit together is refused when it is made."""

from __future__ import annotations

import re
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.typehints.decorators import TypeCheckError

from analyzer.tally_reports import TallyReports
from aux_server.count_bins import CountOnce
from aux_server.keep import InDrawnOrder
from hushcount.campaigns.campaign import Campaign
from hushcount.oracles.catalogue import build
from hushcount.wire.blocks import Kind
from pipelines.files.blocks import WriteShards
from pipelines.files.orders import OneFolder
from shuffler.mix import MixShard
from shuffler.separate import Numbered, Report
from shuffler.shuffle import Shuffle
from tests.hushcount.campaigns.test_campaign_file import data

SHUFFLE = Shuffle(Report(100), cap=1, places=2)
MECHANISM = build("grr", 1.0, 3, {})
KEYS = np.zeros((4, 4), dtype=np.uint64)
WRONG: dict[str, tuple[list[Any], Any]] = {
    "texts for envelopes": (["text"], SHUFFLE),
    "blocks without a place": ([b"block"], beam.ParDo(Numbered())),
    "one block for many": ([(0, b"block")], beam.ParDo(CountOnce(100, 2, KEYS))),
    "blocks for what was grouped by kind": ([(0, [b"block"])], beam.ParDo(MixShard(Report(100), KEYS))),
    "sealed reports for opened ones": ([b"block"], TallyReports(MECHANISM, np.arange(3, dtype=np.uint64))),
    "records of no place": ([b"record"], beam.ParDo(InDrawnOrder(lambda _: None))),
    "shards of no batch": (
        [(0, b"block")],
        WriteShards(OneFolder("none"), Kind.SEALED_REPORTS, Campaign.model_validate(data()), 100, 1),
    ),
}


def test_a_graph_whose_steps_do_not_fit_is_refused_when_it_is_made(subtests: pytest.Subtests) -> None:
    for name, (elements, step) in WRONG.items():
        with subtests.test(name), pytest.raises(TypeCheckError, match=re.escape("requires PCollections of type")):
            beam.Pipeline() | beam.Create(elements) | step


def test_what_a_shuffle_gives_is_typed() -> None:
    found = beam.Pipeline() | beam.Create([b"envelopes"]) | SHUFFLE
    count = beam.typehints.Tuple[str, int]
    assert {name: one.element_type for name, one in found.items()} == {
        "shards": beam.typehints.Tuple[beam.typehints.Tuple[int, int], bytes],
        "counts": count,
        "mixed": beam.typehints.Tuple[int, count],
    }
