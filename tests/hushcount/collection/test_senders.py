"""How senders were told apart decides whose guarantee is stated; what says nothing of it counts as the weakest."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.manifests import Manifest
from hushcount.errors import UsageError
from hushcount.privacy.statement import statement
from hushcount.senders import KEY, UNBOUND, Authentication, Senders, require_told_apart, told_in, weakest
from keys.directories import create
from pipelines.handover.batch_file import BatchFile, BatchSegment, collected
from pipelines.handover.upstream import senders_of
from pipelines.jobs.new_campaign import create_campaign
from pipelines.ledger.charging import charging, cost_of
from pipelines.ledger.overview import describe
from pipelines.outputs.account import Charged
from pipelines.outputs.counts import StreamCounts
from pipelines.outputs.summary import make_summary
from service.window_notes import authentication_of as noted_of
from service.window_notes import note_authentication
from shuffler.collector.settings import CollectorPart
from tests.shuffler.collector.test_manifests import MANIFEST, SEGMENT


def test_of_several_ways_the_weakest_counts_and_of_none_the_weakest_that_there_is() -> None:
    assert weakest(["client-token", "bearer"]) == "bearer"
    assert weakest(["bearer", "none", "client-token"]) == "none"
    assert weakest(["client-token", "client-token"]) == "client-token"
    assert weakest([]) == "none"


def test_a_summary_that_does_not_say_it_counts_as_the_weakest(subtests: pytest.Subtests) -> None:
    for said in [{KEY: wrong} for wrong in ("CLIENT-TOKEN", None, ["client-token"], 1)] + [{}]:
        with subtests.test(said=said):
            once = {"allotments": {"reports": 1, "discovery": 1}}
            assert told_in(said) == told_in({**once, **said}) == UNBOUND
            with pytest.raises(UsageError, match="--uncapped"):
                require_told_apart(told_in(said), uncapped=False)
            require_told_apart(told_in(said), uncapped=True)


def test_clients_are_told_apart_by_default() -> None:
    assert CollectorPart(name="one").authentication == "client-token"


def test_a_window_keeps_the_weakest_way_over_restarts(tmp_path: Path) -> None:
    window = "20261121T000000Z"
    assert noted_of(tmp_path, window) == "none"
    for way, kept in (("client-token", "client-token"), ("bearer", "bearer"), ("client-token", "bearer")):
        note_authentication(tmp_path, window, way)  # type: ignore[arg-type]
        assert noted_of(tmp_path, window) == kept
    (tmp_path / window / KEY).write_bytes(b"\xff\x00")
    note_authentication(tmp_path, window, "client-token")
    assert noted_of(tmp_path, window) == "none"


def test_the_segments_of_a_window_are_what_their_manifests_say_and_the_weakest_where_none_names_one(
    tmp_path: Path,
) -> None:
    def put(collector: str, way: Authentication, name: str) -> None:
        segments = {"reports": [{**SEGMENT, "name": name}]}
        manifest = Manifest.model_validate({**MANIFEST, "collector": collector, "segments": segments, KEY: way})
        (tmp_path / f"{collector}.manifest.json").write_text(manifest.model_dump_json())

    put("one", "client-token", "one-1.blocks")
    assert senders_of(str(tmp_path), ["reports/one-1.blocks"]).way == "client-token"
    assert senders_of(str(tmp_path), ["reports/one-1.blocks", "reports/one-2.blocks"]).way == "none"
    assert senders_of(str(tmp_path), ["discovery/one-1.blocks"]).way == "none"
    for keys, names in ((1, ["one-1.blocks"]), (2, ["one-1.blocks", "one-2.blocks"])):
        assert senders_of(str(tmp_path), [f"reports/{name}" for name in names]).reports == keys
    put("two", "bearer", "two-1.blocks")
    assert senders_of(str(tmp_path), ["reports/one-1.blocks", "reports/two-1.blocks"]).way == "bearer"
    (tmp_path / "two.manifest.json").write_text("no manifest")
    assert senders_of(str(tmp_path), ["reports/one-1.blocks"]).way == "none"


def test_where_no_client_is_told_from_another_nothing_speaks_of_a_client(
    subtests: pytest.Subtests, tmp_path: Path
) -> None:
    homes = (tmp_path / str(number) for number in count())
    for way in ["none", "bearer"]:
        for mechanism, relation in [
            ("grr", "replace-one"),
            ("grr", "add-remove"),
            ("grr", None),
            (None, "replace-one"),
            (None, "add-remove"),
        ]:
            home = next(homes)
            home.mkdir()
            with subtests.test(way=way, mechanism=mechanism, relation=relation):
                campaign = made(home, mechanism, relation)
                for reports in (None, 100_000) if mechanism else (None,):
                    stated = statement(campaign, reports, Senders(way)).data()
                    said = [*stated["plain"], *stated["sentences"][1:], stated["unit"]]
                    said += [part["unit"] for part in stated.values() if isinstance(part, dict)]
                    assert not any("one client" in text or "a client that" in text.lower() for text in said)
                    assert all("(nothing enforces this limit)" in text for text in said if "person who" in text)
                    assert f"authentication {way}" in stated["sentences"][0]
                    if mechanism:
                        assert stated["local"]["epsilon"] == stated["local"]["epsilon_per_report"]


def made(directory: Path, mechanism: str | None, relation: str | None) -> Campaign:
    words = directory / "words.txt"
    words.write_text("".join(f"word-{number}\n" for number in range(20)))
    oracle = {"mechanism": mechanism, "epsilon": 2.0, "dictionary": words} if mechanism else {}
    discovery = None if relation is None else {"epsilon": 0.5, "delta": 1e-7, "relation": relation}
    keys = create(directory / "keys", days=30)
    return create_campaign("told", keys, directory, shuffle={"cap": 3}, discovery=discovery, **oracle)


def test_a_batch_is_as_weak_as_its_weakest_segment() -> None:
    window = str(MANIFEST["window"])
    said: tuple[tuple[str, Authentication], ...] = (("one", "client-token"), ("two", "bearer"))
    segments = [
        BatchSegment(f"words/000001-{'0' * 16}/{window}/reports/{collector}-1.blocks", 5, 100, "0" * 64, way)
        for collector, way in said
    ]
    both = BatchFile("words", 1, "0" * 64, window, "s", {"reports": tuple(segments)})
    assert collected(both).senders == Senders("bearer", reports=2)
    assert collected(replace(both, segments={"reports": (segments[0],)})).senders == Senders("client-token")


def test_a_charge_of_one_report_is_not_one_of_a_client(tmp_path: Path) -> None:
    campaign = made(tmp_path, "grr", None)
    ledger = tmp_path / "ledger.db"

    def charged(name: str, way: Authentication) -> dict[str, Any]:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "00000.blocks").write_text(name)
        counts = StreamCounts(100_000, 100_000, {})
        upstream = make_summary("shuffle", campaign, {"reports": counts}, None, senders=Senders(way))
        with charging(ledger, campaign, "analyze", upstream, str(folder)) as charge:
            made = charge.commit(cost_of(statement(campaign, 100_000, Senders(way)), "analyze"), 100_000)
            assert isinstance(made, Charged)
            return made.data()

    first = charged("first", "client-token")
    assert (first["charged"]["per"], first["spent"]["per"]) == ("client", "client")
    second = charged("second", "bearer")
    # One release that speaks of reports, and the sum speaks of no client any more.
    assert (second["charged"]["per"], second["spent"]["per"]) == ("report", "report")
    assert second["charged"]["epsilon"] == pytest.approx(first["charged"]["epsilon"] / 3)
    assert sorted(charge["per"] for charge in describe(ledger).data()["charges"]) == ["client", "report"]
