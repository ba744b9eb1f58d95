"""An oblivious campaign through the jobs: what is found, what the evaluator must answer, and what nobody answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hushcount.discovery.oblivious import ELEMENT_BYTES
from hushcount.errors import RetiredKey
from keys.directories import campaign_key
from keys.rotation import retire
from pipelines.handover.evaluator_address import Evaluator
from tests.support.jobs import Chain, done, found, new_campaign, refused, summary, write_lines

LINES = ["alpha"] * 60 + ["beta"] * 40 + ["unlisted"] * 80 + ["größer"] * 80 + ["seldom"]
TOKEN = "a token of 20 and more letters".replace(" ", "-")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Chain:
    """A collection of an oblivious campaign: encoded, shuffled and released."""
    root = tmp_path_factory.mktemp("oblivious")
    done("keys", "new", "--out", root / "keys")
    done("keys", "new", "--role", "evaluator", "--out", root / "evaluator")
    words, values = write_lines(root / "words.txt", ["alpha", "beta"]), write_lines(root / "v.txt", LINES)
    options = ("--keys", root / "evaluator", "--hash", "oblivious")
    path = new_campaign(root / "o.json", root / "keys", *options, dictionary=words, discovery=2.0)
    chain = Chain(path, root / "keys")
    chain.encode(values, "--evaluator", root / "evaluator")
    chain.shuffle()
    chain.discover("--party", "aux-server", out="released")
    return chain


def arguments(made: Chain, out: Path) -> tuple[object, ...]:
    """Return the arguments of the analyzer's step into another output."""
    return (
        "job", "discover", "--campaign", made.campaign_path, "--input", made.path("released"), "--keys", made.keys,
        "--party", "analyzer", "--out", out,
    )  # fmt: skip


def key_of(made: Chain) -> Path:
    return made.keys.parent / "evaluator"


class Site:
    """An evaluator over HTTP, with one key; it notes what it was asked.

    Attributes:
        answer: status, media type and body of every answer; None: what its key makes of the evaluation.
    """

    def __init__(self, made: Chain) -> None:
        key = campaign_key(key_of(made), "evaluator", made.campaign.keys.evaluator).read_evaluator()
        self.asked: list[tuple[str, dict[str, str], bytes]] = []
        self.answer: tuple[int, str, bytes] | None = None
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                site.asked.append((self.path, dict(self.headers), body))
                status, kind, reply = site.answer or (200, "application/octet-stream", key.evaluate(body))
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"

    def refuse(self, status: int, problem: str) -> None:
        body = json.dumps({"type": f"urn:hushcount:problem:{problem}"}).encode()
        self.answer = (status, "application/problem+json", body)


@pytest.fixture
def site(made: Chain) -> Iterator[Site]:
    site = Site(made)
    thread = threading.Thread(target=site.server.serve_forever, args=(0.01,))
    thread.start()
    yield site
    site.server.shutdown()
    thread.join()
    site.server.server_close()


@pytest.mark.usefixtures("either_engine")
def test_it_finds_what_many_sent(made: Chain, tmp_path: Path) -> None:
    done(*arguments(made, tmp_path / "found"), "--evaluator", key_of(made))
    assert found(tmp_path / "found") == ["größer", "unlisted"]
    bins = summary(tmp_path / "found")["bins"]
    assert bins["found"] == 2
    assert bins["kept"] == 2 + sum(bins["rejected"].values())
    assert sorted(path.name for path in (tmp_path / "found").iterdir()) == ["found.csv", "summary.json"]


def test_one_machine_with_all_keys_does_both_steps(made: Chain, tmp_path: Path) -> None:
    both = ("job", "discover", *made.analyze_arguments()[2:-1], tmp_path / "both", "--evaluator", key_of(made))
    done(*both)
    assert found(tmp_path / "both") == ["größer", "unlisted"]


def test_without_an_evaluator_nothing_is_made(made: Chain, tmp_path: Path) -> None:
    refused(*arguments(made, tmp_path / "found"), says=["campaign o", "evaluator"])
    refused(
        "job", "encode", "--campaign", made.campaign_path, "--values", made.campaign_path, "--out", tmp_path / "e",
        says=["evaluator"],
    )  # fmt: skip
    assert list(tmp_path.iterdir()) == []


def test_the_evaluator_is_asked_over_http_for_what_was_opened_and_sees_none_of_it(
    made: Chain, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VERIFIER", TOKEN)
    asks = ("--evaluator", site.address, "--evaluator-token", "env:VERIFIER")
    done(*arguments(made, tmp_path / "found"), *asks)
    assert found(tmp_path / "found") == ["größer", "unlisted"]
    campaign = made.campaign
    opened = summary(tmp_path / "found")["bins"]["found"]
    # One random evaluation before anything is opened, then all of it at once.
    assert [len(body) // ELEMENT_BYTES for _, _, body in site.asked] == [1, opened]
    for path, headers, _ in site.asked:
        assert path == f"/v1/campaigns/o/evaluations?fingerprint={campaign.fingerprint.hex()}"
        assert headers["Authorization"] == f"Bearer {TOKEN}"


def test_an_evaluator_that_refuses_is_asked_again_by_the_next_run(
    subtests: pytest.Subtests, made: Chain, site: Site, tmp_path: Path
) -> None:
    for status, problem, says in (
        (429, "too_many", "status 429, too_many"),
        (503, "unavailable", "status 503"),
        (401, "unauthorised", "401"),
    ):
        with subtests.test(status=status):
            here = tmp_path / str(status)
            here.mkdir()
            site.refuse(status, problem)
            job = (*arguments(made, here / "found"), "--evaluator", site.address)
            refused(*job, status=1, says=[says])
            assert list(here.iterdir()) == []
            site.answer = None
            done(*job)
            assert found(here / "found") == ["größer", "unlisted"]


def test_an_evaluator_that_is_not_there_writes_nothing(
    made: Chain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = "http://127.0.0.1:1"
    for _ in range(2):
        refused(*arguments(made, tmp_path / "found"), "--evaluator", away, status=1, says=[away])
        assert list(tmp_path.iterdir()) == []
        # Nor one that is gone after the first evaluation.
        monkeypatch.setattr(Evaluator, "require", lambda *_: None)


def test_an_answer_with_another_key_is_believed_by_nobody(made: Chain, site: Site, tmp_path: Path) -> None:
    other = tmp_path / "other"
    done("keys", "new", "--role", "evaluator", "--out", other)
    (listed,) = json.loads((other / "public.json").read_text())["keys"]
    for answer in (b"", b"no answer", bytes(ELEMENT_BYTES + 64)):
        site.answer = (200, "application/octet-stream", answer)
        refused(*arguments(made, tmp_path / "found"), "--evaluator", site.address, status=1, says=["answer"])
    refused(*arguments(made, tmp_path / "found"), "--evaluator", other, says=[made.campaign.keys.evaluator[0].id])
    assert listed["id"] != made.campaign.keys.evaluator[0].id
    assert not (tmp_path / "found").exists()


def test_what_a_destroyed_key_named_is_counted_and_never_found(made: Chain, site: Site, tmp_path: Path) -> None:
    site.refuse(410, "key_destroyed")
    refused(
        *arguments(made, tmp_path / "found"), "--evaluator", site.address, status=1,
        says=["retired_key"],
    )  # fmt: skip
    assert [path.name for path in (tmp_path / "found").iterdir()] == ["summary.json"]
    bins = summary(tmp_path / "found")["bins"]
    assert (bins["found"], bins["rejected"]) == (0, {"retired_key": bins["kept"]})


def test_nothing_is_released_that_a_destroyed_key_must_verify(made: Chain, tmp_path: Path) -> None:
    keys = tmp_path / "evaluator"
    keys.mkdir()
    for path in key_of(made).iterdir():
        (keys / path.name).write_bytes(path.read_bytes())
        (keys / path.name).chmod(0o600)
    retire(keys, made.campaign.keys.evaluator[0].id, early=True)
    both = ("job", "discover", *made.analyze_arguments()[2:-1], tmp_path / "both", "--evaluator", keys)
    refused(*both, status=1, says=[str(len(LINES)), "retired_key"])
    assert [path.name for path in (tmp_path / "both").iterdir()] == ["summary.json"]
    with pytest.raises(RetiredKey):
        Evaluator(str(keys)).ask(made.campaign)
    refused(
        "job", "encode", "--campaign", made.campaign_path, "--values", made.path("clients.txt"), "--out",
        tmp_path / "e", "--evaluator", keys, status=1, says=[made.campaign.keys.evaluator[0].id],
    )  # fmt: skip


def test_tokens_and_addresses_are_checked_before_anything_is_read(made: Chain, tmp_path: Path) -> None:
    job = arguments(made, tmp_path / "found")
    refused(*job, "--evaluator-token", "env:NONE", says=["give the evaluator's address"])
    refused(*job, "--evaluator", key_of(made), "--evaluator-token", "env:NONE", says=[str(key_of(made)), "no token"])
    refused(*job, "--evaluator", "http://example.com", says=["https://"])
    refused(*job, "--evaluator", "https://localhost", "--evaluator-token", "env:NONE", says=["holds no token"])
    shared = tmp_path / "token"
    shared.write_text(TOKEN)
    shared.chmod(0o644)
    refused(*job, "--evaluator", "https://localhost", "--evaluator-token", shared, says=["0600"])
    refused(
        "job", "encode", "--campaign", made.campaign_path, "--values", made.path("clients.txt"), "--out",
        tmp_path / "e", "--evaluator", "https://localhost", says=["give a directory with the evaluator's key"],
    )  # fmt: skip


def test_a_campaign_file_is_redacted_as_it_is_and_says_what_it_needs(made: Chain, tmp_path: Path) -> None:
    done("campaign", "redact", "--campaign", made.campaign_path, "--out", tmp_path / "r.json")
    assert (tmp_path / "r.json").read_text() == made.campaign_path.read_text()
    shown = done("campaign", "show", "--campaign", made.campaign_path, "--json").json
    assert shown["discovery_hash"] == "oblivious"
    assert shown["evaluator_keys"].startswith(made.campaign.keys.evaluator[0].id)


def test_the_keys_of_the_parties_are_rehearsed_with_a_key_that_stands_for_the_evaluators(made: Chain) -> None:
    done("keys", "rehearse", "--campaign", made.campaign_path, "--keys", made.keys)
