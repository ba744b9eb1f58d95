"""Documents of a collector: kept, bounded, and never believed before they are checked."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hushcount.delivery.database import Database
from hushcount.delivery.exchange import NoAnswer, Reply
from hushcount.delivery.publication import (
    Document,
    NotServed,
    Publication,
    _refresh_at,
    fetch,
    fetch_documents,
    keep_documents,
    kept_documents,
    read_publication,
)
from hushcount.delivery.queue import database
from hushcount.delivery.site import Site
from hushcount.errors import HushcountError, NotYet
from tests.hushcount.campaigns.test_campaign_file import WORDS
from tests.hushcount.campaigns.test_chain import log_of
from tests.hushcount.campaigns.vouched import signed
from tests.hushcount.delivery.fake_collector import campaign, collecting, policy, sender
from tests.hushcount.delivery.misbehaving import http, saying, serving

NOW = 1_800_000_000.0
PATH = "/v1/campaigns/words"
KEPT = Document(b"kept", b"{}", NOW)


def fetched(answer: bytes, most: int = 100) -> Document:
    with serving(saying(answer)) as heard:
        return fetch(heard.site, PATH, most, NOW)


def test_a_document_is_asked_for_again_after_an_hour_at_least_and_a_day_and_a_half_at_most(
    subtests: pytest.Subtests,
) -> None:
    odd = ("", "max-age=-1", "max-age=1e5", "s-maxage=7200", "max-age=", "max-age=9999999999")
    for cache, age in [
        ("max-age=3600", 3_600.0),
        ("PUBLIC,MAX-AGE=7200, immutable", 7_200.0),
        ("max-age=999999999", 86_400.0),
        ("public, max-age=0", 3_600.0),
        *[(text, 3_600.0) for text in odd],
    ]:
        with subtests.test(cache=cache):
            reply = Reply(200, {"cache-control": cache} if cache else {}, b"x")
            drawn = [(_refresh_at(reply, NOW) - NOW) / age for _ in range(64)]
            # 64 uniform draws fall into one half with probability 1.1e-19.
            assert 1.0 <= min(drawn) < 1.25 < max(drawn) <= 1.5
    assert fetched(http(200, b"x", "Cache-Control: max-age=86400")).refresh_at >= NOW + 86_400.0


def test_nothing_that_a_collector_gave_to_one_client_is_sent_back() -> None:
    answer = http(200, b"x", 'ETag: "who"', "Set-Cookie: who=me", "Last-Modified: Mon, 23 Nov 2026 01:02:03 GMT")
    with serving(saying(answer)) as heard:
        for now in (NOW, NOW + 1000):
            fetch(heard.site, PATH, 100, now)
    assert heard.requests[0] == heard.requests[1]
    assert b"who" not in heard.requests[1]


def test_any_other_answer_is_no_document(subtests: pytest.Subtests) -> None:
    for status in [201, 204, 206, 301, 302, 304, 403, 404, 409, 500, 503]:
        with (
            subtests.test(status=status),
            pytest.raises(NotServed, match=f" {status} .*/v1/campaigns/words$"),
        ):
            fetched(http(status, b"" if status == 304 else b"x", "Location: /elsewhere"))


def test_a_document_that_is_too_long_is_none() -> None:
    assert len(fetched(http(200, b"x" * 100)).data) == 100
    with pytest.raises(NoAnswer, match="too long"):
        fetched(http(200, b"x" * 101))


def test_documents_are_kept_as_they_came_by_campaign() -> None:
    tables: Database = database(None)
    keep_documents(tables, "words", {"campaign": KEPT, "log": replace(KEPT, signature=None)})
    keep_documents(tables, "others", {"campaign": KEPT})
    assert kept_documents(tables, "words") == {"campaign": KEPT, "log": replace(KEPT, signature=None)}
    keep_documents(tables, "words", {"campaign": KEPT})
    assert kept_documents(tables, "words") == kept_documents(tables, "others") == {"campaign": KEPT}


def served(change: Callable[[dict[str, Document]], Any], **options: Any) -> Publication:
    """Read what a collector serves, changed."""
    with collecting(**options) as collector:
        documents = fetch_documents(Site(collector.address), "words", {}, NOW)
        change(documents)
        return read_publication(documents, "words")


def text(name: str, data: bytes, signature: bytes | None = None) -> Callable[[dict[str, Document]], None]:
    def change(documents: dict[str, Document]) -> None:
        of = documents[name]
        documents[name] = Document(data or of.data, signature or of.signature, NOW)

    return change


def test_a_publication_is_read_as_it_was_served() -> None:
    of = campaign()
    whole = Publication(of, signed(of), log_of([of]), WORDS)
    assert served(lambda documents: documents) == whole
    assert served(lambda documents: documents.pop("log")) == replace(whole, log=None)


def test_what_does_not_belong_together_is_refused_in_a_sentence(subtests: pytest.Subtests) -> None:
    for change, says in [
        (text("campaign", b"<html>"), "campaign file .*JSON"),
        (text("campaign", b"{}"), "campaign file"),
        (text("campaign", b"[" * 10**5), "campaign file .*nested"),
        (text("campaign", b"", b"{" * 5000), "4,096"),
        (
            text("campaign", b"", b"{}"),
            "signature",
        ),
        (text("log", b"{}"), "log"),
        (text("log", b"\xff"), "log .*UTF-8"),
        (text("dictionary", gzip.compress(b"one\ntwo\n")), "not the campaign's"),
        (text("dictionary", gzip.compress(b"one\ntwo\nthree\nfour\n")), " 3"),
        (text("dictionary", gzip.compress(b"one\n\xff\n")), "UTF-8"),
        (text("dictionary", b"one\ntwo\n"), "not the campaign's"),
        (text("dictionary", WORDS.packed()[:-4]), "dictionary.* damaged"),
        (lambda documents: documents.pop("dictionary"), "dictionary is missing"),
    ]:
        with subtests.test(says=says), pytest.raises(HushcountError, match=says):
            served(change)


def test_a_signature_that_is_no_base64_counts_as_none() -> None:
    for header, signature in ((b":%%%:", None), (":é:".encode("latin-1"), None), (b":aGk=:", b"hi")):
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nCampaign-Signature: " + header + b"\r\n\r\nx"
        assert fetched(answer).signature == signature


def test_another_campaign_than_the_one_that_was_asked_for_is_refused() -> None:
    with pytest.raises(HushcountError, match=r"others.*words"):
        served(lambda documents: documents, epochs=[campaign(id="others")])


def test_of_an_unchanged_campaign_only_its_file_is_fetched() -> None:
    with collecting() as collector:
        first = fetch_documents(Site(collector.address), "words", {}, NOW)
        again = fetch_documents(Site(collector.address), "words", first, NOW + 1000)
        assert {name: one.data for name, one in again.items()} == {name: one.data for name, one in first.items()}
        assert again["campaign"].refresh_at >= NOW + 1000 + 3600 > first["campaign"].refresh_at - 1800
        assert len(collector.gets) == 4


def test_a_dictionary_is_fetched_anew_only_if_the_campaign_names_another() -> None:
    with collecting() as collector:
        first = fetch_documents(Site(collector.address), "words", {}, NOW)
        listed = collector.campaign.dictionary
        assert listed is not None
        # A published epoch's dictionary has a name of its own.
        renamed = {**listed.model_dump(), "path": "epoch-000002.dictionary.txt"}
        collector.epochs.append(campaign(collector.campaign, dictionary=renamed))
        second = fetch_documents(Site(collector.address), "words", first, NOW + 1000)
        assert [path.rpartition("/")[2] for path, _ in collector.gets[3:]] == ["words", "log"]
        assert read_publication(second, "words").campaign == collector.campaign
        part = collector.campaign.dictionary
        assert part is not None
        changed = {**part.model_dump(), "digest": "0" * 64}
        collector.epochs.append(campaign(collector.campaign, dictionary=changed))
        fetch_documents(Site(collector.address), "words", second, NOW + 2000)
        assert "/dictionary?" in collector.gets[-1][0]


def test_no_more_of_a_dictionary_is_fetched_or_unpacked_than_the_policy_allows(subtests: pytest.Subtests) -> None:
    packed, long = WORDS.packed(), "".join(f"{letter * 4000}\n" for letter in "abc").encode()
    for limit, data, refusal in [
        (len(packed), packed, None),
        (len(packed) - 1, packed, "too long"),
        (len(long) - 1, gzip.compress(long), "max_dictionary_bytes"),
        # All that is allowed is unpacked: it is another dictionary.
        (len(long), gzip.compress(long), "not the campaign's"),
    ]:
        with subtests.test(limit=limit), collecting() as collector:
            collector.dictionary = data, {"Content-Type": "application/gzip"}
            one = sender(collector, policy=policy(max_dictionary_bytes=limit))
            if refusal is None:
                one.report("one")
                assert one.deliver().sent > 0
            else:
                with pytest.raises(NotYet, match=refusal):
                    one.report("one")
