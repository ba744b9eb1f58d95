"""Public axes from clients' lines to answers: whole atoms of single batches, and nothing of fewer reports."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushcount.arrays import Octets
from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import known_items
from hushcount.client import Client
from hushcount.collection.envelopes import ENVELOPES, client_token, envelope_dtype
from hushcount.errors import FormatError, TooFewOpened
from hushcount.many_clients import ManyClients
from hushcount.memory import ClientMemory
from hushcount.oracles import tally as tally_files
from hushcount.oracles.tally import Tally
from hushcount.policy import Policy
from hushcount.privacy.statement import statement, window_of
from hushcount.randomness import SystemWords
from hushcount.report_making import sealed, strata_for
from hushcount.senders import Senders
from hushcount.strata import STRATUM_BYTES, stratum_numbers
from hushcount.wire.sealing import Sealer
from keys.opening import Outcome, open_bound
from pipelines.audit.view import View
from pipelines.deployment.campaigns import read_epochs
from pipelines.deployment.parts import AlertsPart
from pipelines.files.block_files import find_files, read_records, write_file
from pipelines.jobs.results import TALLY, read_tally
from pipelines.monitoring.alert import alert_of
from pipelines.monitoring.dashboard import panel_of
from pipelines.outputs.counts import SEALED
from pipelines.pages.figures import Choice, Figure, Trend
from pipelines.questions.sources import from_store
from pipelines.questions.spans import Span
from tests.support.breakdowns import FAR, ask, is_near
from tests.support.collecting import add_copies, collect
from tests.support.jobs import done, new_campaign, new_keys, refused, write_lines
from tests.support.records import key_reference
from tests.support.site import Site, at

DAYS, MINIMUM = 2, 200
PLATFORMS = ("linux", "mac")


def people(day: int) -> Counter[tuple[str, str, str]]:
    """Return how many people have each value, version and platform.

    On the first day, mac and other platforms are small, and have the minimum together; on the second, 40 people have
    other platforms, which are in no answer.
    """
    return Counter(
        {
            ("alpha", "2.1", "linux"): 900, ("beta", "2.0", "linux"): 600, ("beta", "2.1", "linux"): 400 + 500 * day,
            ("alpha", "2.0", "mac"): 100 + 600 * day, ("gamma", "2.1", "mac"): 50 + 450 * day,
            ("gamma", "2.0", "bsd"): 100 - 60 * day,
        }
    )  # fmt: skip


def truth(day: int, **where: str) -> Counter[str]:
    found = Counter[str]()
    for (value, version, platform), many in people(day).items():
        if platform == "bsd" and day:
            continue
        by = {"version": version, "platform": platform if platform in PLATFORMS else "other"}
        found[value] += many * all(by[axis] == one for axis, one in where.items())
    return found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    site = Site(tmp_path_factory.mktemp("public"))
    by = (
        "--public-by", f"platform={write_lines(site.root / 'platforms.txt', PLATFORMS)}",
        "--by", f"version={write_lines(site.root / 'versions.txt', ['2.1', '2.0'])}",
    )  # fmt: skip
    path = site.add("parts", *by, mechanism="ais", epsilon=5.0, dictionary=site.words, min_batch=MINIMUM)
    for day in range(DAYS):
        lines = ["\t".join(cell) for cell in people(day).elements()]
        collect(site.store, path, lines, day=day)
    assert site.run(DAYS + 0.1).problems == []
    return site


def shuffled(site: Site, day: int) -> tuple[Path, dict[str, Any]]:
    (out,) = sorted((site.store / "shuffled" / "parts").iterdir())[day : day + 1]
    summary = json.loads((out / "summary.json").read_text())
    return out / summary["folder"] / "reports", summary


def test_the_shuffler_hands_on_atoms_in_place_of_strata(site: Site) -> None:
    campaign = Campaign.read(site.root / "campaigns" / "parts" / "parts.json")
    for day, atoms in enumerate(([([0], 1900), ([1, 2], 250)], [([0], 2400), ([1], 1200)])):
        folder, summary = shuffled(site, day)
        assert summary["streams"]["reports"]["rejected"] == ({"small_atom": 40} if day else {})
        assert [(atom["strata"], atom["reports"]) for atom in summary["atoms"]] == atoms
        records = b"".join(read_records(file) for file in find_files(str(folder), SEALED["reports"]))
        octets = np.frombuffer(records, np.uint8).reshape(-1, campaign.sealed_bytes("reports"))
        told = octets[:, :STRATUM_BYTES].copy().view("<u2").reshape(-1)
        assert np.bincount(told).tolist() == [reports for _, reports in atoms]
        # In random order: neighbours are of one atom about as often as any two reports.
        alike = sum((reports / len(told)) ** 2 for _, reports in atoms)
        assert abs((told[1:] == told[:-1]).mean() - alike) < FAR / len(told) ** 0.5


def test_answers_are_of_whole_atoms_and_name_what_they_leave_out(site: Site) -> None:
    first, second = (ask(site, "sum", "--window", day, "--by", "platform") for day in days(site))
    assert [(row["by.platform"], row["reports"]) for row in first["rows"]] == [("linux", 1900)]
    assert any("250 reports are in no row" in said for said in first["says"])
    assert [(row["by.platform"], row["reports"]) for row in second["rows"]] == [
        ("linux", 2400), ("mac", 1200)
    ]  # fmt: skip
    assert not any("in no row" in said for said in second["says"])
    assert all(is_near(row, row["reports"]) for row in (*first["rows"], *second["rows"]))
    refused("ask", "sum", "--config", site.config, "--campaign", "parts", "--window", days(site)[0], "--where",
            "platform=mac", says=["minimum batch"])  # fmt: skip


def days(site: Site) -> list[str]:
    return [place.window for place in from_store(site.deployment, "parts").places]


def test_items_are_counted_by_public_and_private_coordinates(site: Site) -> None:
    rows = ask(site, "item", "--last", 1, "--by", "platform", "--by", "version")["rows"]
    assert len(rows) == 3 * 2 * 3
    for row in rows:
        held = truth(1, version=row["by.version"], platform=row["by.platform"])
        assert is_near(row, held[row["item"]])
        assert row["reports"] == truth(1, platform=row["by.platform"]).total()
        assert row["share"] == pytest.approx(min(max(row["count"] / row["reports"], 0.0), 1.0))
        if row["stratum_share"] is not None and held.total():
            true = held[row["item"]] / held.total()
            assert abs(row["stratum_share"] - true) < FAR * max(row["stratum_share_error"], 0.01)
    whole = ask(site, "item", "--last", 1, "--item", "alpha")["rows"][0]
    assert (whole["reports"], is_near(whole, 1600)) == (3600, True)


def test_a_range_adds_up_the_atoms_of_each_window(site: Site) -> None:
    rows = ask(site, "total", "--item", "gamma", "--last", 2, "--by", "platform")["rows"]
    counts = {row["by.platform"]: row for row in rows}
    assert {name: row["reports"] for name, row in counts.items()} == {"linux": 4300, "mac": 1200}
    for name, row in counts.items():
        held = [truth(day, platform=name)["gamma"] for day in range(DAYS) if name == "linux" or day]
        assert is_near(row, sum(held))
    (whole,) = ask(site, "total", "--item", "gamma", "--last", 2)["rows"]
    assert whole["reports"] == sum(truth(day).total() for day in range(DAYS))
    assert is_near(whole, sum(truth(day)["gamma"] for day in range(DAYS)))


def test_changes_and_comparisons_are_of_strata_that_both_sides_have(site: Site) -> None:
    rows = ask(site, "change", "--by", "platform")["rows"]
    assert {(row["by.platform"], row["reports_before"], row["reports_after"]) for row in rows} == {
        ("linux", 1900, 2400)
    }
    for row in rows:
        old, new = (truth(day, platform="linux") for day in range(DAYS))
        true = new[row["group"]] / new.total() - old[row["group"]] / old.total()
        assert abs(row["difference"] - true) < FAR * row["standard_error"]
    compared = ask(site, "compare", "--where", "platform=linux", "--against", "platform=mac")["rows"]
    linux, mac = (truth(1, platform=one) for one in PLATFORMS)
    for row in compared:
        true = linux[row["group"]] / linux.total() - mac[row["group"]] / mac.total()
        assert abs(row["difference"] - true) < FAR * row["standard_error"]
        assert (row["reports_before"], row["reports_after"]) == (1200, 2400)
    # Only of windows that both sides have.
    both = ask(site, "compare", "--where", "platform=linux", "--against", "platform=mac", "--last", 2)["rows"]
    assert {(row["reports_before"], row["reports_after"]) for row in both} == {(1200, 2400)}
    refused("ask", "change", "--config", site.config, "--campaign", "parts", "--where", "platform=mac",
            says=["both sides"])  # fmt: skip
    private = ask(site, "compare", "--where", "version=2.1", "--against", "version=2.0", "--where", "platform=linux")
    for row in private["rows"]:
        one, other = (truth(1, version=version, platform="linux") for version in ("2.1", "2.0"))
        true = one[row["group"]] / one.total() - other[row["group"]] / other.total()
        assert abs(row["difference"] - true) < FAR * row["standard_error"]


def view_of(site: Site) -> View:
    campaigns, _ = read_epochs(site.deployment.campaigns)
    return next(one for one in View(site.deployment, at(DAYS + 0.2), campaigns).each() if one.campaign == "parts")


def test_limits_are_corrected_for_all_strata_that_are_looked_at(tmp_path: Path) -> None:
    """Of five strata one rises: its level is that of one significant row among five, and so is that of the others."""
    site, names = Site(tmp_path), ("a", "b", "c", "d")
    axis = ("--public-by", f"part={write_lines(tmp_path / 'parts.txt', names)}")
    path = site.add("parts", *axis, mechanism="ais", epsilon=5.0, dictionary=site.words)
    for day in range(DAYS):
        lines = [f"{'alpha' if number < 80 + 60 * day * (name == 'a') else 'beta'}\t{name}"
                 for name in (*names, "e") for number in range(300)]  # fmt: skip
        collect(site.store, path, lines, day=day)
    assert site.run(DAYS + 0.1).problems == []
    rows = ask(site, "change", "--by", "part", "--item", "alpha")["rows"]
    significant = sum(row["significant"] for row in rows)
    assert (len(rows), rows[0]["by.part"], rows[0]["significant"]) == (5, "a", True)
    for row in rows:
        # The level is significant / 5 of the level alone, so the limits are wider, unless the test moves an end to 0.
        assert row["low_all"] < row["low"] or significant == len(rows) or row["low_all"] == 0.0
        assert row["high_all"] > row["high"] or significant == len(rows)
        assert row["p_bonferroni"] == pytest.approx(min(5 * row["p_value"], 1.0))


def test_the_page_and_alerts_are_of_whole_atoms(site: Site) -> None:
    panel, _ = panel_of(view_of(site), "parts", Span(100))
    (choice,) = (block for block in panel.blocks if isinstance(block, Choice) and block.label == "Broken down by")
    figures = {figure.heading: figure for figure in choice.figures}
    assert [(row.name, row.facts["reports"]) for row in figures["platform"].rows] == [
        ("linux", 2400), ("mac", 1200)
    ]  # fmt: skip
    # The share of what has a public coordinate is of these reports already.
    assert "in stratum" not in figures["platform=linux"].heads
    config, before = site.config, site.config.read_text()
    config.write_text(
        f'{before}\n[analyzer.groups]\nbetas = {{items = ["beta"], where = {{platform = "linux"}}}}\n'
        'macs = {items = ["alpha"], where = {platform = "mac"}}\n'
    )
    try:
        total = ask(site, "total", "--group", "macs", "--last", 2)
        assert total["rows"][0]["reports"] == 1200
        assert any("250 reports are in no row" in said for said in total["says"])
        part = AlertsPart(command=("true",), groups=("betas", "macs"), least_change=0.1)
        alert = alert_of(from_store(site.deployment, "parts"), part, {})
        panel, _ = panel_of(view_of(site), "parts", Span(100))
    finally:
        config.write_text(before)
    assert alert is not None
    assert [(one.group, one.reports_before, one.reports_after) for one in alert.changes] == [("betas", 1900, 2400)]
    (groups,) = (block for block in panel.blocks if isinstance(block, Figure) and block.heading == "Groups")
    assert {row.name: row.facts["reports"] for row in groups.rows} == {"betas": 2400, "macs": 1200}
    # The first day has no atom of mac alone.
    (trend,) = (block for block in panel.blocks if isinstance(block, Trend))
    drawn = trend.series["window"]
    there = {name: np.isfinite(drawn.count[place]).tolist() for place, name in enumerate(drawn.items)}
    assert (there["group betas"], there["group macs"]) == ([True, True], [False, True])


# Padding.

VICTIMS, FORGED = 1, 49


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    root = tmp_path_factory.mktemp("padded")
    words, files = write_lines(root / "words.txt", ["alpha", "beta"]), write_lines(root / "p.txt", PLATFORMS)
    options = ("--public-by", f"platform={files}")
    path = new_campaign(root / "padded.json", new_keys(root / "keys"), *options, dictionary=words, epsilon=4.0)
    return Campaign.read(path)


def analyzed(campaign: Campaign, name: str, reports: list[bytes], each: int = 1) -> tuple[Path, Tally]:
    """Return the output of the analyzer, and its tally, if so many of these reports in turn are of one client."""
    assert campaign.path is not None
    root = campaign.path.parent / name
    rows = np.zeros(len(reports), dtype=envelope_dtype(campaign.sealed_bytes("reports")))
    rows["client_token"] = [client_token(str(number // each), campaign.fingerprint) for number in range(len(reports))]
    made = np.frombuffer(b"".join(reports), np.uint8).reshape(len(reports), campaign.sealed_bytes("reports"))
    rows.view(np.uint8).reshape(len(reports), -1)[:, -made.shape[1] :] = made
    (root / "collected" / "reports").mkdir(parents=True)
    write_file(
        str(root / "collected" / "reports" / "one.blocks"), ENVELOPES["reports"], rows.itemsize, rows.tobytes(),
        campaign.fingerprint, campaign.id,
    )  # fmt: skip
    done("job", "shuffle", "--campaign", campaign.path, "--input", root / "collected", "--out", root / "shuffled")
    keys, out = campaign.path.parent / "keys", root / "results"
    done("job", "analyze", "--campaign", campaign.path, "--input", root / "shuffled", "--keys", keys, "--out", out)
    return out, read_tally(str(out / TALLY), campaign)


def honest(campaign: Campaign, number: int, platform: str) -> list[bytes]:
    made = ManyClients(campaign).reports(["alpha"] * number, by=[{"platform": platform}] * number)
    return [row.tobytes() for row in made]


def test_whoever_invents_the_other_reports_of_an_atom_sees_the_one_that_is_left(campaign: Campaign) -> None:
    """So no gain by mixing is stated: the shuffled epsilon of 50 reports is not that of one among 49 known ones."""
    mechanism = campaign.require_frequency()
    known = mechanism.encode(known_items(mechanism, campaign.read_dictionary(), ["beta"] * FORGED), SystemWords())
    analyzer, where = Sealer(bytes.fromhex(campaign.keys.analyzer[0].key)), [{"platform": "mac"}] * FORGED
    forged = sealed(campaign, mechanism.pack(known), strata_for(campaign, FORGED, where), analyzer, 1)
    others = honest(campaign, 60, "linux")
    out, tally = analyzed(
        campaign, "padded", [*(row.tobytes() for row in forged), *honest(campaign, 1, "mac"), *others]
    )
    (atom,) = (atom for atom in tally.atoms if atom.strata == (1,))
    assert atom.reports == VICTIMS + FORGED
    ours = mechanism.new_tally(tally.items)
    mechanism.accumulate(ours, known, tally.items)
    assert (atom.counts - ours).sum() == VICTIMS, "the victim's own answer"
    said = json.loads((out / "summary.json").read_text())["privacy"]
    assert (said["shuffled"], said["local"]["epsilon"]) == (None, 4.0)


def test_reports_that_cannot_be_opened_hide_no_others(campaign: Campaign) -> None:
    """With one such report, each stratum has the minimum of 50 at the shuffler, and 49 reports at the analyzer."""
    reports = [one for platform in (*PLATFORMS, "bsd") for one in honest(campaign, 49, platform)]
    broken = [one[:-1] + bytes([one[-1] ^ 1]) for one in reports[::49]]
    out, tally = analyzed(campaign, "broken", [*reports, *broken])
    assert [(atom.strata, atom.reports) for atom in tally.atoms] == [((0, 1, 2), 147)]
    counted = json.loads((out / "summary.json").read_text())["streams"]["reports"]
    assert counted == {"received": 150, "accepted": 147, "rejected": {"not_opened": 3}}


def test_batches_of_one_graph_give_what_they_give_one_after_the_other(tmp_path: Path) -> None:
    """The second day has copies of the first, 40 of which the first left out, as there were too few of mac."""
    told = []
    for together in (False, True):
        (tmp_path / str(together)).mkdir()
        site = Site(tmp_path / str(together))
        site.config.write_text(site.config.read_text().replace('grace = "2d"', 'grace = "9d"'))
        by = ("--public-by", f"platform={write_lines(site.root / 'platforms.txt', PLATFORMS)}")
        path = site.add("parts", *by, epsilon=5.0, dictionary=site.words, min_batch=MINIMUM)
        (first,) = collect(site.store, path, ["alpha\tlinux"] * 300 + ["beta\tmac"] * 40, day=0)
        if not together:
            assert site.run(9.2, sure=True).problems == []
        (second,) = collect(site.store, path, ["alpha\tlinux"] * 300 + ["beta\tmac"] * 170, day=1)
        add_copies(first, second)
        assert site.run(11.5, sure=True).problems == []
        assert site.run(11.6, sure=True).problems == []
        told.append([shuffled(site, day)[1]["streams"]["reports"] for day in range(2)])
    assert told[0] == told[1]
    assert [one["rejected"] for one in told[0]] == [{"small_atom": 40}, {"duplicate": 300}]


def test_a_client_that_moves_repeats_its_answer_and_counts_once(campaign: Campaign) -> None:
    """Its memory knows items and not public strata; the cap draws which of its strata it counts in."""
    assert campaign.path is not None
    path = campaign.path.with_name("remembering.json")
    content = campaign.model_dump(mode="json", exclude_none=True)
    remembering = Campaign.model_validate({**content, "id": "remembering", "memory": True})
    remembering.write(path)
    remembering = Campaign.read(path)
    clients, made = 300, list[bytes]()
    for _ in range(clients):
        memory = ClientMemory()
        for platform in PLATFORMS:
            # Another window each time, as no window takes two reports of a client.
            one = Client(remembering, policy=Policy.trusting(), memory=memory)
            made.append(one.report("alpha", {"platform": platform}))
    answers, told = opened_answers(remembering, made)
    assert (answers[::2] == answers[1::2]).all()
    assert (told[::2].tolist(), told[1::2].tolist()) == ([0] * clients, [1] * clients)
    out, tally = analyzed(remembering, "moved", made, each=2)
    # An atom of fewer than 50 of 300 comes by chance with a probability below 1e-30.
    assert [atom.strata for atom in tally.atoms] == [(0,), (1,)]
    said = json.loads((out / "summary.json").read_text())
    assert (said["accepted"], said["privacy"]["shuffled"]) == (clients, None)
    assert said["privacy"]["local"]["epoch_epsilon"] == 4.0
    assert any("platform" in line and "links the reports of a person" in line for line in said["privacy"]["plain"])


def opened_answers(campaign: Campaign, reports: list[bytes]) -> tuple[Octets, Octets]:
    """Return the answers in reports, uint8[n, L], and the numbers of their public strata."""
    assert campaign.path is not None
    rows = np.frombuffer(b"".join(reports), np.uint8).reshape(len(reports), -1)
    key = key_reference(campaign.path.parent / "keys", "analyzer").read()
    answers, outcomes, _ = open_bound(key, rows[:, STRATUM_BYTES:].copy(), campaign.binding("reports"))
    assert (outcomes == Outcome.ACCEPTED).all()
    return answers, stratum_numbers(rows)


def test_an_atom_of_which_too_few_can_be_opened_is_left_out_whole(campaign: Campaign) -> None:
    junk = [report[:STRATUM_BYTES] + bytes(len(report) - STRATUM_BYTES) for report in honest(campaign, 20, "mac")]
    # Bytes that differ, because equal ones are copies.
    junk = [report[:-1] + bytes([number]) for number, report in enumerate(junk)]
    out, tally = analyzed(campaign, "small", [*honest(campaign, 35, "mac"), *junk, *honest(campaign, 60, "linux")])
    assert [(atom.strata, atom.reports) for atom in tally.atoms] == [((0,), 60)]
    assert tally.reports == 60
    counted = json.loads((out / "summary.json").read_text())["streams"]["reports"]
    assert counted == {"received": 115, "accepted": 60, "rejected": {"not_opened": 20, "small_atom": 35}}
    refused(
        "repair", "replay", "--campaign", campaign.path, "--input", out, "--stream", "reports", "--reason",
        "not_opened", "--out", out.parent / "again", says=["public axes"],
    )  # fmt: skip


def parted_otherwise(tally: Tally, reports: int) -> Tally:
    """Return a tally in which an atom has so many reports, and the other one the rest."""
    first, second = tally.atoms
    small = replace(second, reports=reports, counts=np.minimum(second.counts, reports))
    rest = replace(first, reports=tally.reports - reports, counts=tally.counts - small.counts)
    return replace(tally, atoms=(rest, small))


def test_a_tally_of_other_atoms_or_of_too_many_cells_is_refused(
    campaign: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, tally = analyzed(campaign, "sound", [*honest(campaign, 50, "mac"), *honest(campaign, 60, "linux")])
    assert [atom.reports for atom in tally.atoms] == [60, 50]
    for number, wrong in enumerate(
        (
            replace(tally, counts=tally.counts + 1),
            replace(tally, atoms=(tally.atoms[0], replace(tally.atoms[1], strata=(7,)))),
            replace(tally, atoms=(tally.atoms[0], replace(tally.atoms[1], reports=51))),
            replace(tally, atoms=()),
            # An atom below the minimum, and counts above an atom's reports, whose sums are right.
            parted_otherwise(tally, 1),
            parted_otherwise(tally, 0),
        )
    ):
        path = tmp_path / f"{number}.npz"
        with path.open("wb") as stream:
            tally_files.save(wrong, campaign.fingerprint, stream)
        with pytest.raises((FormatError, TooFewOpened)):
            read_tally(str(path), campaign)
    monkeypatch.setattr(tally_files, "MOST_CELLS", sum(atom.counts.size for atom in tally.atoms) - 1)
    with pytest.raises(FormatError):
        read_tally(str(out / TALLY), campaign)
    summary = json.loads((out.parent / "shuffled" / "summary.json").read_text())
    first = {"strata": [0], "reports": 60}
    for atoms in ([], [first, first], [first, {"strata": [3], "reports": 50}]):
        (out.parent / "shuffled" / "summary.json").write_text(json.dumps({**summary, "atoms": atoms}))
        refused(
            "job", "analyze", "--campaign", campaign.path, "--input", out.parent / "shuffled", "--keys",
            campaign.path.parent / "keys" if campaign.path else "", "--out", tmp_path / "results", says=["atom"],
        )  # fmt: skip


def test_a_gain_by_mixing_is_stated_only_of_the_minimum_batch_and_where_senders_are_authenticated(
    campaign: Campaign,
) -> None:
    shuffle = campaign.shuffle.model_copy(update={"minimum_batch": 5000})
    campaign = campaign.model_copy(update={"shuffle": shuffle})
    anybody, passes = (statement(campaign, 1_000_000, Senders(way)) for way in ("client-token", "privacy-pass"))
    assert anybody.shuffled is None
    assert passes.shuffled is not None
    assert passes.shuffled.reports == 5000
    # Nor do the ledger and joint composition count more.
    window = window_of(campaign, Senders("privacy-pass"), 1_000_000)
    assert window is not None
    assert 4_800 <= window.reports <= 5_000
    assert window_of(campaign, Senders("client-token"), 1_000_000) is None
    assert campaign.path is not None
    (campaign.path.parent / "large.json").write_text(campaign.model_dump_json(exclude_none=True))
    said = done("privacy", "--campaign", campaign.path.parent / "large.json", "--reports", 10**6, "--json")
    # This campaign asks for no passes.
    assert (said.json["reports"], said.json["shuffled_epsilon"]) == (1, said.json["local_epsilon"])
    assert "issuer" in said.err
    for one in (anybody, passes):
        for sentences in (one.plain, one.sentences):
            assert any(said.startswith("Not protected: the sender's platform") for said in sentences)
