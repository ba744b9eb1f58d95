"""What the collector answers: files, acknowledgements, and refusals that say what to change."""

from __future__ import annotations

import base64
import gzip
import json
import os
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.log import parse_log
from tests.shuffler.collector.running import (
    STREAM,
    Running,
    Site,
    add_campaign,
    make_site,
    now_text,
    running,
    wait_for,
    write_collection,
)
from tests.support import patient

SIGNED = json.dumps({"key_id": "0" * 16, "signature": "0" * 128})
"""A signature as a file has it; the collector does not know who may sign."""


def problem(answer: httpx.Response, status: int, name: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body["type"] == f"urn:hushcount:problem:{name}"
    assert body["status"] == status
    assert body["title"]
    assert body["detail"].endswith(".")
    return dict(body)


@pytest.fixture(scope="module")
def length(site: Site) -> int:
    return site.campaign().sealed_bytes("reports")


def test_one_report_and_many_are_acknowledged(subtests: pytest.Subtests, collector: Running, site: Site) -> None:
    for stream in ["reports", "discovery"]:
        with subtests.test(stream=stream):
            bytes_each = site.campaign().sealed_bytes(stream)
            for number in (1, 2, 500):
                answer = collector.post(os.urandom(number * bytes_each), stream)
                assert (answer.status_code, answer.content) == (202, b"")


def test_a_wrong_length_is_told_the_right_one(subtests: pytest.Subtests, collector: Running, length: int) -> None:
    for bytes_too_many in [-1, 1]:
        with subtests.test(bytes_too_many=bytes_too_many):
            body = problem(collector.post(os.urandom(length + bytes_too_many)), 400, "wrong_length")
            assert body["report_bytes"] == length
            assert str(length) in body["detail"]


def test_an_empty_body_is_refused(collector: Running) -> None:
    problem(collector.post(b""), 400, "wrong_length")


def test_a_body_in_chunks_is_judged_by_its_whole_length(collector: Running, length: int) -> None:
    def chunks(number: int) -> Iterator[bytes]:
        yield from (os.urandom(1) for _ in range(number))

    url = collector.url + collector.path()
    assert patient.post(url, content=chunks(length), headers=STREAM).status_code == 202
    problem(patient.post(url, content=chunks(length + 1), headers=STREAM), 400, "wrong_length")


def test_a_missing_fingerprint_is_asked_for(subtests: pytest.Subtests, collector: Running, length: int) -> None:
    for query in [
        "",
        "?epoch=1",
        "?fingerprint=",
        f"?fingerprint={'0' * 63}",
        f"?fingerprint={'0' * 65}",
        f"?fingerprint={'A' * 64}",
    ]:
        with subtests.test(query=query):
            url = f"{collector.url}/v1/campaigns/words/reports{query}"
            problem(patient.post(url, content=os.urandom(length), headers=STREAM), 400, "missing_fingerprint")


WINDOW = "window=19700101T000000Z"


def test_a_window_is_asked_for(subtests: pytest.Subtests, collector: Running, length: int) -> None:
    place = collector.url + collector.path().partition("&")[0]
    wrong = (
        "20261121",
        "20261121T000000",
        "20261321T000000Z",
        "20261121T240000Z",
        "00010101T000000Z",
        "2026112\u0661T000000Z",
    )
    for query in (
        "",
        "&window=",
        *(f"&window={name}" for name in wrong),
        *(f"&{WINDOW}&until={name}" for name in wrong),
    ):
        with subtests.test(query=query):
            problem(patient.post(place + query, content=os.urandom(length), headers=STREAM), 400, "missing_window")


def test_no_report_is_taken_before_its_window(site: Site, collector: Running, length: int) -> None:
    place, taken = collector.url + collector.path().partition("&")[0], len(site.sealed())
    for ahead, most in ((60.0, 60), (1e8, 86_400)):
        begins = datetime.fromtimestamp(time.time() + ahead, timezone.utc)
        body = os.urandom(length)
        answer = patient.post(f"{place}&window={begins:%Y%m%dT%H%M%SZ}", content=body, headers=STREAM)
        problem(answer, 425, "window_not_begun")
        assert most - 2 <= int(answer.headers["retry-after"]) <= most
        assert abs(parsedate_to_datetime(answer.headers["date"]).timestamp() - time.time()) < 2.0
    assert len(site.sealed()) == taken


def test_a_report_is_taken_until_it_says(collector: Running, length: int) -> None:
    place = f"{collector.url}{collector.path().partition('&')[0]}&{WINDOW}"
    for ahead, status in ((-60.0, 409), (1.0, 409), (60.0, 202)):
        ends = datetime.fromtimestamp(time.time() + ahead, timezone.utc)
        answer = patient.post(f"{place}&until={ends:%Y%m%dT%H%M%SZ}", content=os.urandom(length), headers=STREAM)
        assert answer.status_code == status
    problem(
        patient.post(f"{place}&until=20200101T000000Z", content=os.urandom(length), headers=STREAM), 409, "window_over"
    )


def test_an_unknown_campaign_is_not_found(collector: Running, length: int) -> None:
    problem(collector.post(os.urandom(length), campaign="nothing"), 404, "unknown_campaign")
    problem(collector.get("/v1/campaigns/nothing"), 404, "unknown_campaign")
    problem(collector.get("/v1/campaigns/../../etc/passwd"), 404, "not_found")


def test_other_paths_are_not_found(subtests: pytest.Subtests, collector: Running) -> None:
    for path in ["/", "/v1", "/v1/campaigns/words/else", "/v1/campaigns/words/reports/1"]:
        with subtests.test(path=path):
            problem(collector.get(path), 404, "not_found")


def test_a_wrong_method_is_told_the_right_one(collector: Running) -> None:
    assert collector.get(collector.path()).headers["allow"] == "POST"
    answer = httpx.delete(collector.url + "/v1/campaigns/words")
    problem(answer, 405, "wrong_method")
    assert answer.headers["allow"] == "GET, HEAD"


def test_a_wrong_type_is_refused(subtests: pytest.Subtests, collector: Running, length: int) -> None:
    for headers in [{"content-type": "text/plain"}, {"content-type": ""}, {"content-encoding": "gzip"}]:
        with subtests.test(headers=headers):
            problem(collector.post(os.urandom(length), headers=headers), 415, "wrong_type")


def test_the_campaign_file_is_served_byte_for_byte(collector: Running, site: Site) -> None:
    answer = collector.get("/v1/campaigns/words")
    assert answer.status_code == 200
    assert answer.content == site.campaign_file().read_bytes()
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"].startswith("public, max-age=")
    again = collector.get("/v1/campaigns/words", headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    other = collector.get("/v1/campaigns/words", headers={"if-none-match": '"another"'})
    assert other.status_code == 200
    head = httpx.head(collector.url + "/v1/campaigns/words")
    assert (head.status_code, head.content) == (200, b"")


def test_the_dictionary_is_served_packed_however_it_lies_in_its_folder(collector: Running, site: Site) -> None:
    answer = collector.get("/v1/campaigns/words/dictionary")
    dictionary = Campaign.read(site.campaign_file()).read_dictionary()
    assert dictionary is not None
    assert gzip.decompress(answer.content) == dictionary.text
    assert answer.headers["content-type"] == "application/gzip"
    assert collector.get("/v1/campaigns/words").headers["etag"] != answer.headers["etag"]


def test_metrics_count_reports_and_refusals(collector: Running, site: Site, length: int) -> None:
    def value(start: str) -> float:
        lines = collector.get("/metrics").text.splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"hushcount_collector_{start}"))

    before = value('reports_total{campaign="words",epoch="1",stream="reports"'), value("requests_refused_total")
    collector.post(os.urandom(7 * length))
    collector.post(b"x")
    after = value('reports_total{campaign="words",epoch="1",stream="reports"'), value("requests_refused_total")
    assert (after[0] - before[0], after[1] - before[1]) == (7, 1)


def test_it_is_alive_and_ready(collector: Running) -> None:
    assert collector.get("/healthz").json() == {"alive": True}
    assert collector.get("/readyz").json() == {"ready": True, "faults": []}


@pytest.fixture(scope="module")
def epochs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Running]]:
    site = make_site(tmp_path_factory.mktemp("epochs"))
    for epoch in (2, 3, 4):
        add_campaign(site, "words", epoch, discovery=epoch != 3, dictionary=epoch != 3)
    site.campaign_file(epoch=3).with_name("epoch-000003.json.sig").write_text(SIGNED)
    write_collection(site, "words", three_epochs())
    with running(site) as started:
        yield site, started


def three_epochs() -> list[dict[str, Any]]:
    past, future = now_text(-60), now_text(3600)
    return [
        {"epoch": 1, "begins": now_text(-300), "ends": now_text(-120), "grace_ends": now_text(-90)},
        {"epoch": 2, "begins": now_text(-120), "ends": past, "grace_ends": future},
        {"epoch": 3, "begins": past, "ends": future, "grace_ends": None},
        {"epoch": 4, "begins": future},
    ]


def test_only_reports_of_epochs_that_are_open_are_taken(
    subtests: pytest.Subtests, epochs: tuple[Site, Running]
) -> None:
    for epoch, answer in [
        (1, "epoch_closed"),
        (2, None),
        (3, None),
        (4, "epoch_not_begun"),
        (9, "unknown_fingerprint"),
    ]:
        with subtests.test(epoch=epoch):
            site, collector = epochs
            sent = collector.post(os.urandom(site.campaign(epoch=min(epoch, 4)).sealed_bytes("reports")), epoch=epoch)
            if answer is None:
                assert sent.status_code == 202
            else:
                assert problem(sent, 409, answer)["current_epoch"] == 3


def test_a_stream_that_the_campaign_has_not_is_not_found(epochs: tuple[Site, Running]) -> None:
    body = problem(epochs[1].post(b"x", "discovery", epoch=3), 404, "unknown_stream")
    assert "reports" in body["detail"]


def test_the_current_epoch_is_served_with_its_signature(epochs: tuple[Site, Running]) -> None:
    site, collector = epochs
    answer = collector.get("/v1/campaigns/words")
    assert answer.content == site.campaign_file(epoch=3).read_bytes()
    assert answer.headers["campaign-signature"] == f":{base64.b64encode(SIGNED.encode()).decode()}:"
    problem(collector.get("/v1/campaigns/words/dictionary"), 404, "not_found")


def test_the_log_lists_every_epoch_with_its_signature(epochs: tuple[Site, Running]) -> None:
    site, collector = epochs
    answer = collector.get("/v1/campaigns/words/log")
    log = parse_log(answer.content, "log")
    # Also the one that is closed, and the one that has not begun.
    assert [entry.fingerprint for entry in log.entries] == [site.fingerprint(epoch=epoch) for epoch in (1, 2, 3, 4)]
    assert log.heads[-1] == site.campaign(epoch=4).head
    signatures = [entry.signature for entry in log.entries]
    assert signatures[2] is not None
    assert json.loads(signatures[2].text()) == json.loads(SIGNED)
    assert signatures[:2] == [None, None]
    again = collector.get("/v1/campaigns/words/log", headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    # Whoever asks after an epoch was published sees it.
    assert answer.headers["cache-control"] == "public, max-age=0"


def test_the_dictionary_of_an_epoch_is_served_while_its_reports_are_accepted(epochs: tuple[Site, Running]) -> None:
    site, collector = epochs

    def asked(fingerprint: str) -> httpx.Response:
        return collector.get(f"/v1/campaigns/words/dictionary?fingerprint={fingerprint}")

    answer = asked(site.fingerprint(epoch=2))
    dictionary = site.campaign(epoch=2).read_dictionary()
    assert dictionary is not None
    assert (answer.status_code, gzip.decompress(answer.content)) == (200, dictionary.text)
    problem(asked(site.fingerprint(epoch=3)), 404, "not_found")
    for fingerprint, name in ((site.fingerprint(), "closed"), (site.fingerprint(epoch=4), "not_begun")):
        assert problem(asked(fingerprint), 409, f"epoch_{name}")["current_epoch"] == 3
    problem(asked("0" * 64), 409, "unknown_fingerprint")


def test_a_renewed_signature_is_served_to_whoever_has_the_file(epochs: tuple[Site, Running]) -> None:
    site, collector = epochs
    before = collector.get("/v1/campaigns/words")
    signature = site.campaign_file(epoch=3).with_name("epoch-000003.json.sig")
    for text in (SIGNED.replace("0", "1"), SIGNED):
        signature.write_text(text)
        write_collection(site, "words", three_epochs())
        told = f":{base64.b64encode(text.encode()).decode()}:"
        wait_for(lambda: collector.get("/v1/campaigns/words").headers["campaign-signature"] == told)  # noqa: B023  # called at once
        again = collector.get("/v1/campaigns/words", headers={"if-none-match": before.headers["etag"]})
        assert again.status_code == (304 if text == SIGNED else 200)


def test_a_new_collection_file_is_noticed_and_a_damaged_one_leaves_the_last(epochs: tuple[Site, Running]) -> None:
    site, collector = epochs
    path: Path = site.base / "campaigns" / "words" / "collection.json"
    length = site.campaign(epoch=2).sealed_bytes("reports")
    path.write_text("{")
    wait_for(lambda: collector.get("/readyz").status_code == 503)
    # Whoever reaches the proxy reads the reason, and only the log has the path.
    (fault,) = collector.get("/readyz").json()["faults"]
    assert fault.startswith("campaign words: collection file collection.json is not JSON")
    assert "/" not in fault
    wait_for(lambda: any(str(path) in line.get("fault", "") for line in collector.events()))
    assert [line["event"] for line in collector.events() if str(path) in line.get("fault", "")] == ["not ready"]
    assert collector.post(os.urandom(length), epoch=2).status_code == 202
    closed = three_epochs()
    closed[1]["grace_ends"] = closed[1]["ends"]
    write_collection(site, "words", closed)
    wait_for(lambda: collector.get("/readyz").status_code == 200)
    problem(collector.post(os.urandom(length), epoch=2), 409, "epoch_closed")


def test_a_campaign_that_could_never_be_read_asks_to_try_again(epochs: tuple[Site, Running]) -> None:
    site, collector = epochs
    folder = site.base / "campaigns" / "broken"
    folder.mkdir()
    (folder / "collection.json").write_text("{}")
    wait_for(lambda: collector.get("/readyz").status_code == 503)
    answer = collector.post(b"x", campaign="broken")
    problem(answer, 503, "campaign_unreadable")
    assert int(answer.headers["retry-after"]) > 0
    (folder / "collection.json").unlink()
    wait_for(lambda: collector.get("/readyz").status_code == 200)
