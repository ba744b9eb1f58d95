"""The campaign file without the hash key: the same campaign to all who need no key, and no help in testing a guess."""

from __future__ import annotations

import json
from pathlib import Path

import apache_beam as beam

from hushcount.campaigns.campaign import Campaign
from keys.directories import KeyReference
from pipelines.jobs.job import Place
from tests.hushcount.campaigns.test_campaign_file import changed, data
from tests.pipelines.jobs.test_secrets import unfolded
from tests.support.jobs import Chain, done, found, new_campaign, new_keys, summary, values_of, write_lines
from tests.support.records import release_job

KEY = "ab" * 32


def test_it_is_the_same_campaign_without_the_key(tmp_path: Path) -> None:
    whole = Campaign.model_validate(data())
    whole.redacted().write(tmp_path / "aux.json")
    assert KEY in json.dumps(data())
    assert KEY not in (tmp_path / "aux.json").read_text()
    again = Campaign.read(tmp_path / "aux.json")
    assert again.fingerprint == whole.fingerprint
    for stream in whole.streams:
        assert again.binding(stream) == whole.binding(stream)
        assert again.sealed_bytes(stream) == whole.sealed_bytes(stream)
    assert again.require_keep_rule() == whole.require_keep_rule()
    assert again.redacted().model_dump() == again.model_dump()
    assert again.discovery_format.pair_bytes == whole.discovery_format.pair_bytes


def test_a_commitment_to_another_key_is_another_campaign() -> None:
    other = Campaign.model_validate(changed("discovery.hash_key", "ac" * 32))
    whole = Campaign.model_validate(data())
    assert other.redacted().fingerprint == other.fingerprint != whole.fingerprint
    assert other.redacted().discovery != whole.redacted().discovery


def test_every_campaign_file_has_a_key_of_its_own(tmp_path: Path) -> None:
    """Of the same collection in another epoch too; two equal keys have probability 2**-256."""
    keys = new_keys(tmp_path / "keys")
    made = [
        Campaign.read(new_campaign(tmp_path / f"c{epoch}.json", keys, "--epoch", epoch, mechanism=None, discovery=1.0))
        for epoch in (1, 2)
    ]
    assert len({campaign.discovery_format.hash_key for campaign in made}) == 2


def test_without_discovery_there_is_nothing_to_withhold() -> None:
    plain = data()
    del plain["discovery"]
    campaign = Campaign.model_validate(plain)
    assert campaign.redacted() == campaign


def test_it_does_not_give_the_hash_of_a_guess() -> None:
    """Whoever has the whole file hashes a guess and looks for it; whoever has this one gets another hash."""
    whole = Campaign.model_validate(data())
    sent = whole.discovery_format.hash("guess")
    assert whole.discovery_format.hash("guess") == sent
    assert whole.redacted().discovery_format.hash("guess") != sent


def test_no_graph_of_the_auxiliary_server_holds_the_key_if_its_file_does_not(tmp_path: Path) -> None:
    graphs = []
    for campaign in (Campaign.model_validate(data()), Campaign.model_validate(data()).redacted()):
        pipeline = beam.Pipeline()
        key = KeyReference(str(tmp_path), "aux_server", "0" * 16)
        release_job(campaign, key).graph(pipeline, Place(str(tmp_path)))
        graphs.append(unfolded(pipeline.to_runner_api().SerializeToString()))
    assert [bytes.fromhex(KEY) in graph or KEY.encode() in graph for graph in graphs] == [True, False]


def test_shuffler_and_auxiliary_server_work_by_it_and_find_the_same(tmp_path: Path) -> None:
    """The whole way: clients and analyzer have the whole file, the two parties between them the other one."""
    keys = new_keys(tmp_path / "keys")
    values = write_lines(tmp_path / "values.txt", values_of({"hidden treasure": 200, "one of a kind": 1}))
    whole = new_campaign(tmp_path / "whole.json", keys, mechanism=None, discovery=2.0)
    Campaign.read(whole).redacted().write(tmp_path / "aux.json")
    Chain(whole, keys).encode(values)
    common = ("--campaign", tmp_path / "aux.json")
    done("job", "shuffle", *common, "--input", tmp_path / "whole-encoded", "--out", tmp_path / "shuffled")
    source = ("--input", tmp_path / "shuffled", "--keys", keys)
    done("job", "discover", "--party", "aux-server", *common, *source, "--out", tmp_path / "released")
    released = ("--input", tmp_path / "released", "--keys", keys)
    done("job", "discover", "--party", "analyzer", "--campaign", whole, *released, "--out", tmp_path / "found")
    assert found(tmp_path / "found") == ["hidden treasure"]
    assert summary(tmp_path / "released")["streams"]["discovery"]["accepted"] == 201
