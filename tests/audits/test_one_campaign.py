"""One campaign for everybody, end to end: 400 clients with a file of their own report to a real, honest collector.

Whoever hands out the files wants to know whose report is whose. Before posts named the fingerprint, the collector took
all 400, and the analyzer named each sender by the binding in its report. What clients refuse is in test_handed_out.py.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import httpx
import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.delegation import read_campaign_signature
from hushcount.campaigns.signatures import signature_path
from hushcount.many_clients import ManyClients
from hushcount.newest import Newest, Untrusted
from hushcount.policy import Policy, terms_of
from keys.directories import verify_keys
from tests.shuffler.collector.running import (
    LENGTH,
    STREAM,
    Running,
    Site,
    add_campaign,
    make_site,
    running,
    wait_for,
    write_collection,
)
from tests.shuffler.collector.test_refusals import counts
from tests.support import patient
from tests.support.jobs import cli, done

CLIENTS = 400
BEGINS = "2020-01-01T00:00:00Z"


def file_of(campaign: Campaign, client: int) -> Campaign:
    """Return a client's own file: the analyzer's key is valid for some seconds less."""
    data = campaign.model_dump(mode="json", exclude_none=True)
    (key,) = data["keys"]["analyzer"]
    ends = datetime.fromisoformat(key["not_after"].replace("Z", "+00:00"))
    key["not_after"] = (ends - timedelta(seconds=client + 1)).isoformat()
    return Campaign.model_validate(data)


def sent(collector: Running, http: httpx.Client, client: ManyClients, fingerprint: str | None = None) -> str:
    """Post a client's report as the client does, and return the collector's word for it."""
    named = fingerprint or client.campaign.fingerprint.hex()
    path = f"{collector.url}/v1/campaigns/words/reports?fingerprint={named}&window=19700101T000000Z"
    answer = http.post(path, content=client.report("word-3"), headers=STREAM)
    return "taken" if answer.status_code == 202 else str(answer.json()["type"]).rpartition(":")[2]


def deceived(campaign: Campaign, honest: Campaign) -> ManyClients:
    """Return a client that believes any file."""
    return ManyClients(campaign, dictionary=honest.read_dictionary())


def test_an_honest_collector_takes_no_report_of_400_files_that_name_their_clients(tmp_path: Path) -> None:
    site = make_site(tmp_path / "site")
    honest = site.campaign()
    clients = [deceived(file_of(honest, number), honest) for number in range(CLIENTS)]
    # Each would be named.
    assert len({client.campaign.binding("reports") for client in clients}) == CLIENTS
    with running(site) as collector, patient.Client() as http:
        answers = Counter(sent(collector, http, client) for client in clients)
        assert sent(collector, http, deceived(honest, honest)) == "taken"
        # The collector notes refusals once a second, in the window of that second.
        wait_for(lambda: counts(site) == {"unknown_fingerprint": CLIENTS}, what="counting all refusals")
        collector.pass_by(LENGTH)
        wait_for(site.manifests, what="the manifest")
        assert collector.stop() == 0
    assert answers == {"unknown_fingerprint": CLIENTS}
    assert len(site.sealed()) == 1
    assert site.manifests()[0].refused == {"unknown_fingerprint": CLIENTS}


def test_a_client_with_a_kept_head_refuses_each_of_the_400_files(tmp_path: Path) -> None:
    site = make_site(tmp_path / "site")
    done("keys", "new", "--role", "operator", "--out", tmp_path / "operator")
    done("campaign", "sign", "--campaign", site.campaign_file(), "--keys", tmp_path / "operator")
    honest, path = site.campaign(), tmp_path / "newest.json"
    signature = read_campaign_signature(signature_path(site.campaign_file()))
    terms = dict(terms_of(honest, verify_keys(tmp_path / "operator", "operator")))
    Policy(**terms, newest=Newest(path)).accept(honest, signature)
    kept = path.read_bytes()
    for number in range(CLIENTS):
        with pytest.raises(Untrusted):
            Policy(**terms, newest=Newest(path)).accept(file_of(honest, number), signature)
        # Nor if the operator's own key signed it.
        with pytest.raises(Untrusted, match="another file"):
            Newest(path).keep(file_of(honest, number))
    assert path.read_bytes() == kept


@pytest.fixture
def two(tmp_path: Path) -> tuple[Site, Site]:
    """Two collectors' sites of one campaign; each has a second epoch of its own."""
    one = make_site(tmp_path / "one")
    other = make_site(tmp_path / "other")
    for site in (one, other):
        add_campaign(site, "words", 2)
    return one, other


def publish(site: Site, last: int) -> None:
    epochs = [{"epoch": 1, "begins": BEGINS}, {"epoch": 2, "begins": "2021-01-01T00:00:00Z"}][:last]
    if last == 2:
        epochs[0] |= {"ends": "2021-01-01T00:00:00Z", "grace_ends": "2021-02-01T00:00:00Z"}
    write_collection(site, "words", epochs)


def test_an_audit_names_the_epoch_that_two_collectors_show_differently(two: tuple[Site, Site], tmp_path: Path) -> None:
    one, other = two
    with running(one) as first, running(other) as second:
        places = (first.url, second.url)
        assert done("campaign", "audit", "--campaign", "words", *places, "--json").json["forks"] == []
        saved = tmp_path / "log.json"
        saved.write_bytes(first.get("/v1/campaigns/words/log").content)
        assert "one place alone cannot show a fork" in done("campaign", "audit", "--campaign", "words", saved).err
        publish(one, 2)
        wait_for(lambda: len(first.get("/v1/campaigns/words/log").json()["entries"]) == 2)
        # A place that was shown less is no fork.
        done("campaign", "audit", "--campaign", "words", *places, saved, one.campaign_file(epoch=2))
        publish(other, 2)
        wait_for(lambda: len(second.get("/v1/campaigns/words/log").json()["entries"]) == 2)
        audit = cli("campaign", "audit", "--campaign", "words", *places, saved)
        assert audit.status == 1
        assert f"epoch 2 of campaign file of {first.url} is not that of campaign file of {second.url}" in audit.err
        forks = cli("campaign", "audit", "--campaign", "words", *places, saved, "--json").json["forks"]
        pairs = [fork["places"] for fork in forks]
        assert {fork["epoch"] for fork in forks} == {2}
        assert [f"log of {url}" for url in places] in pairs
        # Each fork is between the two collectors.
        assert len(pairs) == 4
        assert all(one.endswith(first.url) and another.endswith(second.url) for one, another in pairs)
        # The file that an app got is a place too.
        got = cli("campaign", "audit", "--campaign", "words", first.url, other.campaign_file(epoch=2))
        assert got.status == 1
        assert "epoch 2" in got.err
        assert all(site.campaign(epoch=2).head.hex() in got.out for site in two)


def test_an_audit_names_the_restarts_that_two_collectors_show_differently(tmp_path: Path) -> None:
    """One history, but some clients are told to go on from another epoch than the rest."""
    sites = [make_site(tmp_path / name) for name in ("one", "other")]
    keys = tmp_path / "operator"
    done("keys", "new", "--role", "operator", "--out", keys)
    file = sites[0].campaign_file()
    for serial in (1, 2):
        restart = ("restart", "--campaign", file, "--keys", keys, "--serial", serial)
        done("campaign", *restart, "--out", tmp_path / f"{serial}.json")

    def audited(*serials: int | None) -> tuple[int, list[object], str]:
        """Sign epoch 1 at each collector with its restart, and audit both collectors."""
        for site, serial in zip(sites, serials, strict=True):
            signature_path(site.campaign_file()).unlink(missing_ok=True)
            options = () if serial is None else ("--restart", tmp_path / f"{serial}.json")
            done("campaign", "sign", "--campaign", site.campaign_file(), "--keys", keys, *options)
        with running(sites[0]) as first, running(sites[1]) as second:
            audit = ("campaign", "audit", "--campaign", "words", first.url, second.url, "--keys", keys)
            shown, data = cli(*audit), cli(*audit, "--json").json
            assert data["forks"] == []
            ends = {first.url: "first", second.url: "second"}
            found = [
                (one["epoch"], *(ends[place.split()[-1]] for place in one["places"]), *one["serials"])
                for one in data["restarts"]
            ]
            return shown.status, found, shown.err

    assert audited(1, 1)[:2] == (0, [])
    assert audited(None, None)[:2] == (0, [])
    for serials, said in (
        ((1, 2), "epoch 1 is signed with restart 1 at "),
        ((None, 2), "epoch 1 is signed with no restart at "),
    ):
        status, found, err = audited(*serials)
        # Each collector shows a campaign file and a log.
        assert (status, found) == (1, [(1, "first", "second", *serials)] * 4)
        assert said in " ".join(err.split())


def test_an_audit_says_which_campaign_file_nobody_vouches_for(tmp_path: Path) -> None:
    site = make_site(tmp_path / "site")
    for name in ("operator", "stranger"):
        done("keys", "new", "--role", "operator", "--out", tmp_path / name)
    audit = ("campaign", "audit", "--campaign", "words", site.campaign_file(), "--keys")
    unsigned = cli(*audit, tmp_path / "operator")
    assert (unsigned.status, "is unsigned" in unsigned.err) == (1, True)
    done("campaign", "sign", "--campaign", site.campaign_file(), "--keys", tmp_path / "operator")
    done(*audit, tmp_path / "operator")
    assert "was signed with key" in cli(*audit, tmp_path / "stranger").err
    with running(site) as collector:
        done("campaign", "audit", "--campaign", "words", collector.url, "--keys", tmp_path / "operator")


def test_an_audit_of_another_campaign_or_of_no_log_is_refused_in_a_sentence(tmp_path: Path) -> None:
    site = make_site(tmp_path / "site")
    audit = ("campaign", "audit", "--campaign")
    other = cli(*audit, "other", site.campaign_file())
    assert (other.status, "is not of campaign other" in other.err) == (2, True)
    strange = tmp_path / "strange.json"
    strange.write_text(json.dumps({"entries": [{"epoch": 2}], "campaign": "words"}))
    assert "strange.json" in cli(*audit, "words", strange).err
    gone = cli(*audit, "words", "http://127.0.0.1:1")
    assert (gone.status, "no answer of 127.0.0.1" in gone.err) == (1, True)
