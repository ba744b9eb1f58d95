"""What one asker may ask in a window, over restarts too, and what the manifest of the window says of it."""

from __future__ import annotations

import asyncio
import json
import os
import resource
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from hushcount.collection.windows import is_window
from tests.evaluator.running import (
    TOKEN,
    VERIFIER,
    ask,
    evaluating,
    make_asked_site,
    manifests,
    reason,
    some,
)
from tests.shuffler.collector.running import LENGTH, STREAM, Running, Site, limit_files, wait_for
from tests.support import patient

OTHER = {"client-token": "b" * 16}


def counts_of(site: Site) -> Path:
    return site.base / "evaluator"


def asked_file(site: Site) -> Path:
    (path,) = counts_of(site).glob("*/words/*/asked")
    return path


def test_a_client_that_has_asked_all_is_told_to_wait_and_others_are_not(tmp_path: Path) -> None:
    with evaluating(make_asked_site(tmp_path)) as evaluator:
        assert ask(evaluator, some(19)).status_code == 200
        refused = ask(evaluator, some(2))
        assert reason(refused) == (429, "too_many_evaluations")
        assert refused.json()["most_evaluations"] == 20
        assert "A client may ask 20 evaluations in a window" in refused.json()["detail"]
        assert 0 < int(refused.headers["retry-after"]) <= LENGTH.total_seconds()
        assert ask(evaluator, some(1)).status_code == 200
        assert ask(evaluator, some(1)).status_code == 429
        assert ask(evaluator, some(20), OTHER).status_code == 200
        at_once = ask(evaluator, some(21), {"client-token": "c" * 16})
        assert reason(at_once) == (413, "too_many_evaluations_at_once")


def test_a_client_may_ask_about_every_report_that_the_cap_admits(tmp_path: Path) -> None:
    site = make_asked_site(tmp_path, evaluator={"most_evaluations_a_client": 3})
    path = site.campaign_file("words", 1)
    data = json.loads(path.read_text())
    data["shuffle"]["cap"] = 25
    path.write_text(json.dumps(data))
    with evaluating(site) as evaluator:
        assert ask(evaluator, some(25)).status_code == 200
        refused = ask(evaluator, some(1))
        assert reason(refused) == (429, "too_many_evaluations")
        assert refused.json()["most_evaluations"] == 25
        assert reason(ask(evaluator, some(26), OTHER)) == (413, "too_many_evaluations_at_once")


def test_the_verifier_has_a_limit_of_its_own(tmp_path: Path) -> None:
    with evaluating(make_asked_site(tmp_path, evaluator={"most_evaluations_verifier": 310})) as evaluator:
        assert ask(evaluator, some(300), VERIFIER).status_code == 200
        assert reason(ask(evaluator, some(11), VERIFIER)) == (429, "too_many_evaluations")
        assert ask(evaluator, some(10), VERIFIER).status_code == 200
        assert ask(evaluator, some(20)).status_code == 200


def test_requests_at_the_same_time_pass_no_more_than_the_most(tmp_path: Path) -> None:
    site = make_asked_site(tmp_path)
    with evaluating(site) as evaluator:

        async def ask_all() -> list[int]:
            async with patient.AsyncClient() as client:
                url = evaluator.url + evaluator.path("evaluations")
                posts = (client.post(url, content=some(5), headers={**STREAM, **TOKEN}) for _ in range(40))
                return [answer.status_code for answer in await asyncio.gather(*posts)]

        assert Counter(asyncio.run(ask_all())) == {200: 4, 429: 36}


@pytest.mark.parametrize("end", [Running.kill, Running.stop])
def test_a_restart_renews_no_limit_and_loses_no_answer(tmp_path: Path, end: Callable[[Running], object]) -> None:
    site = make_asked_site(tmp_path, evaluator={"most_evaluations_verifier": 100})
    with evaluating(site) as evaluator:
        assert ask(evaluator, some(15)).status_code == 200
        assert ask(evaluator, some(90), VERIFIER).status_code == 200
        end(evaluator)
    # A part of a record, which a crash may leave.
    with asked_file(site).open("ab") as stream:
        stream.write(b"torn")
    with evaluating(site) as evaluator:
        assert ask(evaluator, some(6)).status_code == 429
        assert ask(evaluator, some(11), VERIFIER).status_code == 429
        assert ask(evaluator, some(5)).status_code == 200
        assert ask(evaluator, some(20), OTHER).status_code == 200
        evaluator.pass_by(LENGTH)
        wait_for(lambda: manifests(site))
        assert ask(evaluator, some(20)).status_code == 200
    (manifest,) = manifests(site)
    assert manifest.clients.evaluations == 40
    assert manifest.verifier.evaluations == 90


def test_a_window_leaves_one_manifest_of_numbers_and_takes_its_key_along(tmp_path: Path) -> None:
    site = make_asked_site(tmp_path)
    with evaluating(site) as evaluator:
        for _ in range(3):
            ask(evaluator, some(10))
        ask(evaluator, bytes(32), OTHER)
        ask(evaluator, some(7), VERIFIER)
        ask(evaluator, bytes(32), VERIFIER)
        evaluator.post(some(1), "evaluations", epoch=9)
        evaluator.pass_by(LENGTH)
        wait_for(lambda: manifests(site))
        (first,) = manifests(site)
        wait_for(lambda: len([path for path in counts_of(site).iterdir() if is_window(path.name)]) == 1)
        ask(evaluator, some(3))
        evaluator.pass_by(LENGTH)
        wait_for(lambda: len(manifests(site)) == 2)
    (key,) = site.campaign().keys.evaluator
    assert (first.evaluator, first.campaign, first.epoch, first.key) == ("one", "words", 1, key.id)
    assert (first.fingerprint, first.seconds) == (site.fingerprint(), LENGTH.total_seconds())
    assert first.authentication == "client-token"
    assert first.clients.evaluations == 20
    assert first.clients.refused == {"too_many_evaluations": 1, "bad_element": 1, "unknown_fingerprint": 1}
    assert first.verifier.evaluations == 7
    assert first.verifier.refused == {"bad_element": 1}
    second = next(one for one in manifests(site) if one.window != first.window)
    assert second.clients.evaluations == 3
    assert second.clients.refused == {}
    assert not list(counts_of(site).glob(f"{first.window}*"))


def test_refusals_are_on_the_disk_soon_and_a_kill_keeps_them(tmp_path: Path) -> None:
    site = make_asked_site(tmp_path)
    with evaluating(site) as evaluator:
        for _ in range(4):
            ask(evaluator, bytes(32))

        def counted() -> bool:
            found = list(counts_of(site).glob("*/words/*/refused.json"))
            return bool(found) and json.loads(found[0].read_text())["clients"] == {"bad_element": 4}

        wait_for(counted)
        evaluator.kill()
    with evaluating(site) as evaluator:
        ask(evaluator, bytes(32))
        evaluator.pass_by(LENGTH)
        wait_for(lambda: manifests(site))
    assert manifests(site)[0].clients.refused == {"bad_element": 5}


def test_an_answer_that_cannot_be_counted_is_not_sent_and_counts_for_nobody(tmp_path: Path) -> None:
    site = make_asked_site(tmp_path)
    with evaluating(site) as evaluator:
        assert ask(evaluator, some(10)).status_code == 200
        # The file ends in the middle of the next record.
        limit_files(evaluator, asked_file(site).stat().st_size + 5)
        assert reason(ask(evaluator, some(10))) == (503, "storage_failing")
        limit_files(evaluator, resource.RLIM_INFINITY)
        assert ask(evaluator, some(10)).status_code == 200
        assert ask(evaluator, some(1)).status_code == 429
        evaluator.pass_by(LENGTH)
        wait_for(lambda: manifests(site))
    assert manifests(site)[0].clients.evaluations == 20


def test_a_store_that_fails_is_told_and_gets_the_window_later(tmp_path: Path) -> None:
    site = make_asked_site(tmp_path)
    store = site.base / "store"
    with evaluating(site) as evaluator:
        ask(evaluator, some(10))
        store.write_text("not a directory")
        evaluator.pass_by(LENGTH)
        wait_for(lambda: "store cannot be written" in evaluator.get("/readyz").text)
        # The next window begins at most a tick later; until then these are too many.
        wait_for(lambda: ask(evaluator, some(20)).status_code == 200)
        store.unlink()
        wait_for(lambda: manifests(site))
        wait_for(lambda: evaluator.get("/readyz").status_code == 200)


def test_an_ended_window_is_not_opened_again_when_the_clock_goes_back(tmp_path: Path) -> None:
    site = make_asked_site(tmp_path)
    with evaluating(site, LENGTH) as evaluator:
        assert ask(evaluator, some(20)).status_code == 200
    with evaluating(site) as evaluator:
        wait_for(lambda: manifests(site))
        assert "the clock went back" in evaluator.get("/readyz").text
        assert ask(evaluator, some(20)).status_code == 200
        assert ask(evaluator, some(1)).status_code == 429


def test_one_evaluator_works_on_a_directory_of_counts(tmp_path: Path) -> None:
    site = make_asked_site(tmp_path)
    with evaluating(site), pytest.raises(AssertionError, match="in use"), evaluating(site):
        pass


def test_nothing_of_an_evaluation_a_client_or_its_address_is_written(tmp_path: Path) -> None:
    site = make_asked_site(tmp_path)
    token, elements, agent = "t" * 20, some(8), "a-curious-agent"
    with evaluating(site) as evaluator:
        answer = ask(evaluator, elements, {"client-token": token, "user-agent": agent})
        assert answer.status_code == 200
        ask(evaluator, elements[:32] + bytes(32), {"client-token": token, "user-agent": agent})
        wait_for(lambda: list(counts_of(site).glob("*/words/*/refused.json")))
        kept = [path.read_bytes() for path in counts_of(site).rglob("*") if path.is_file()]
        evaluator.pass_by(LENGTH)
        wait_for(lambda: manifests(site))
        metrics = evaluator.get("/metrics").content
    stored = [path.read_bytes() for path in (site.base / "store").rglob("*") if path.is_file()]
    logged = [path.read_bytes() for path in site.base.glob("log-*")]
    needles = [token.encode(), agent.encode(), b"127.0.0.1:"]
    texts = (elements, answer.content)
    blocks = [text[at : at + 32] for text in texts for at in range(0, len(text), 32)]
    needles += [part for block in blocks for part in (block, block.hex().encode())]
    for content in (*kept, *stored, *logged, metrics):
        assert not any(needle in content for needle in needles)
    assert os.stat(counts_of(site)).st_mode & 0o077 == 0
