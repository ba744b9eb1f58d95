"""The client's memory: the averaging attack with it and without it, and a file that never forgets by accident."""

from __future__ import annotations

import json
import math
import os
import stat
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary
from hushcount.client import Client
from hushcount.errors import FormatError, HushcountError, UsageError
from hushcount.many_clients import ManyClients
from hushcount.memory import ClientMemory, Memory
from hushcount.oracles.catalogue import build
from hushcount.policy import Policy
from hushcount.randomness import uniform
from hushcount.remembering import remembered
from hushcount.report_making import drawn
from tests.hushcount.campaigns.test_campaign_file import changed
from tests.hushcount.test_client import ANALYZER
from tests.support.allowances import Boundless
from tests.support.enumeration import all_reports, laws
from tests.support.statistics import FAILURE
from tests.support.words import SeededWords

ITEMS = tuple(f"item {number}" for number in range(100))
DICTIONARY = Dictionary(ITEMS)
EPSILON, SIZE = 2.0, 12
REPORTS, CLIENTS = 112, 20


def campaign_of(epoch: int = 1, values: int = 0) -> Campaign:
    """Return a campaign whose clients answer so many values in an epoch; 0: they do not remember."""
    data = changed("mechanism", {"name": "ais", "epsilon": EPSILON, "parameters": {"s": SIZE}})
    data["dictionary"] = {"path": "items.txt", "items": len(ITEMS), "digest": DICTIONARY.digest}
    remembering = {"memory": True, "memory_values": values} if values else {}
    return Campaign.model_validate({**data, "epoch": epoch, **remembering})


def client_of(memory: Memory | None, epoch: int = 1, values: int = 20) -> Client:
    return Client(
        campaign_of(epoch, 0 if memory is None else values),
        policy=Policy.trusting(),
        dictionary=DICTIONARY,
        memory=memory,
        allowance=Boundless(),
    )


def plain(client: Client | ManyClients, values: list[str]) -> list[bytes]:
    """Return what the analyzer opens: the wire bytes of each report."""
    opened = [ANALYZER.open(row.tobytes()) for row in client.reports(values)]
    assert all(each is not None for each in opened)
    return [each[16:] for each in opened if each is not None]


# The averaging attack: many reports of one client with one value, and the most likely value by the exact law.


def guesses(client: Client, value: str, reports: int) -> np.ndarray:
    """Return the items that explain all the client's reports best, by the mechanism's own log_prob."""
    mechanism = client.campaign.require_frequency()
    # One at a time, as over weeks: together they would be answered together.
    sent = b"".join(plain(client, [value])[0] for _ in range(reports))
    octets = np.frombuffer(sent, dtype=np.uint8).reshape(reports, -1)
    opened, valid = mechanism.unpack(octets)
    assert valid.all()
    likelihood = np.array([mechanism.log_prob(opened, item).sum() for item in range(len(ITEMS) + 1)])
    return np.flatnonzero(likelihood > likelihood.max() - 1e-6)


def successes(memory_of: Callable[[], Memory | None], reports: int) -> int:
    """Count the clients, of CLIENTS with a value each, whose value the attack names; of equal guesses it draws one."""
    named = 0
    for number in range(CLIENTS):
        best = guesses(client_of(memory_of()), ITEMS[number], reports)
        named += int(best[int(uniform(len(best), 1, SeededWords(number))[0])] == number)
    return named


def chance_of_one_report() -> float:
    """What one report is worth to the attack: it supports s items alike, the client's own among them with p."""
    mechanism = campaign_of().require_frequency()
    return mechanism.p_star / SIZE


def test_without_a_memory_averaging_names_every_client() -> None:
    """Fails with probability below 1e-6.

    A report tells the value from one other item by (a, b), how often it supports either alone; that the other looks as
    likely after n reports has probability at most (1 - (sqrt a - sqrt b)^2)^n, by Chernoff.
    """
    mechanism = campaign_of().require_frequency()
    p, s, cells = mechanism.p_star, SIZE, mechanism.encoder.cells
    own, other = p * (1 - (s - 1) / (cells - 1)), (1 - p) * s / (cells - 1)
    mistaken = (1.0 - (math.sqrt(own) - math.sqrt(other)) ** 2) ** REPORTS
    assert CLIENTS * len(ITEMS) * mistaken < FAILURE
    assert successes(lambda: None, REPORTS) == CLIENTS


def test_with_a_memory_many_reports_tell_what_one_tells() -> None:
    """Fails with probability below 1e-6: a client is named with the probability of one report, p/s, by itself.

    The test would notice a memory that does nothing: then all are named, far above the bound.
    """
    highest = int(stats.binom.isf(FAILURE, CLIENTS, chance_of_one_report()))
    assert highest < CLIENTS / 2
    assert successes(ClientMemory, REPORTS) <= highest


def test_one_report_alone_names_as_few() -> None:
    """Fails with probability below 1e-6; so the bound above is that of the attack, not of a weak attack."""
    assert successes(lambda: None, 1) <= int(stats.binom.isf(FAILURE, CLIENTS, chance_of_one_report()))


# What is repeated, and what is not.


def test_an_answer_is_repeated_under_a_fresh_seal() -> None:
    client = client_of(ClientMemory())
    sealed = [client.report("item 1") for _ in range(50)]
    assert len(set(sealed)) == 50
    assert len({plain(client, ["item 1"])[0] for _ in range(50)} | set(plain(client, ["item 1"] * 50))) == 1


def test_each_value_has_an_answer_of_its_own_whatever_the_order(subtests: pytest.Subtests) -> None:
    """Three values and 300 reports: the answers of the first three, again and again."""
    for batch in [True, False]:
        with subtests.test(batch=batch):
            memory = ClientMemory()
            client = client_of(memory)
            values = ["item 1", "item 2", "item 3"] * 100
            sent = plain(client, values) if batch else [plain(client, [value])[0] for value in values]
            assert sent == sent[:3] * 100
            assert len(memory._kept.read().answers) == 3
            assert plain(client, ["item 2", "item 1"]) == [sent[1], sent[0]]
            assert plain(client, []) == []


def test_a_value_beyond_those_of_the_campaign_is_answered_as_the_last_of_them(subtests: pytest.Subtests) -> None:
    """So that an epoch never costs more than is stated, and no client falls silent over it."""
    for values in [1, 3]:
        with subtests.test(values=values):
            memory = ClientMemory()
            client = client_of(memory, values=values)
            first = plain(client, ["item 1", "item 2", "item 3"][:values])
            later = [plain(client, [f"item {number}"])[0] for number in range(10, 30)]
            assert set(later) == {first[-1]}
            assert plain(client, ["item 1", "item 2", "item 3"][:values]) == first
            assert len(memory._kept.read().answers) == values


def test_client_and_campaign_agree_on_whether_clients_remember() -> None:
    with pytest.raises(UsageError, match=r"ClientMemory"):
        Client(campaign_of(values=1), policy=Policy.trusting(), dictionary=DICTIONARY)
    with pytest.raises(UsageError, match="do not remember"):
        Client(campaign_of(), policy=Policy.trusting(), dictionary=DICTIONARY, memory=ClientMemory())


def test_who_makes_many_clients_reports_needs_no_memory() -> None:
    """Each is of a client that remembers nothing yet; that all 50 are alike has probability far below 1e-6."""
    client = ManyClients(campaign_of(values=1), dictionary=DICTIONARY)
    assert len(set(plain(client, ["item 1"] * 50))) > 1


def test_all_values_outside_the_dictionary_have_one_answer() -> None:
    memory = ClientMemory()
    assert len(set(plain(client_of(memory), [f"unlisted {number}" for number in range(50)]))) == 1
    assert len(memory._kept.read().answers) == 1


def test_another_epoch_is_answered_afresh() -> None:
    """20 values: that all 20 answers are alike in both epochs has probability far below 1e-6, 5050 reports a value."""
    memory = ClientMemory()
    first, second = (plain(client_of(memory, epoch=epoch), list(ITEMS[:20])) for epoch in (1, 2))
    assert first != second
    assert len(memory._kept.read().answers) == 40


def test_answers_have_the_law_of_fresh_reports() -> None:
    """A report of a client with an empty memory supports its item with p; fails with probability below 1e-6."""
    number = 1500
    campaign = campaign_of()
    mechanism, draw = campaign.require_frequency(), partial(drawn, campaign)
    items = np.full(1, 7, dtype=np.uint64)
    octets = np.concatenate([remembered(campaign, items, ClientMemory(), draw) for _ in range(number)])
    reports, _ = mechanism.unpack(octets)
    supported = int(mechanism.supports(reports, np.repeat(items, number)).sum())
    assert stats.binomtest(supported, number, mechanism.p_star).pvalue > FAILURE
    assert stats.binomtest(supported, number, mechanism.p_star * 0.7).pvalue < FAILURE


def test_two_histories_of_answers_are_told_apart_by_no_more_than_the_long_run_epsilon() -> None:
    """Exact, by enumeration: any number of reports of k values against any other k, answers kept.

    What is sent is a function of k independent answers; the worst ratio of their joint probabilities is the product.
    """
    mechanism = build("grr", 1.0, 4, {})
    logs = np.log(laws(mechanism, all_reports(mechanism), np.arange(4, dtype=np.uint64)))
    worst = (logs.max(axis=0) - logs.min(axis=0)).max()
    joint = (logs[:, None, :, None] + logs[None, :, None, :]).reshape(16, -1)
    assert (joint.max(axis=0) - joint.min(axis=0)).max() == pytest.approx(2 * worst, rel=1e-12)
    assert worst <= mechanism.epsilon * (1 + 1e-12)


# The memory itself.


@pytest.fixture
def memories(tmp_path: Path) -> dict[str, Memory]:
    return {"process": ClientMemory(limit=3), "file": ClientMemory(tmp_path / "memory", 3)}


def test_what_is_kept_first_stays(subtests: pytest.Subtests, memories: dict[str, Memory]) -> None:
    for kind, memory in memories.items():
        with subtests.test(kind=kind):
            assert memory.get(b"k" * 32) is None
            assert memory.keep(b"k" * 32, b"first") == b"first"
            assert memory.keep(b"k" * 32, b"second") == b"first"
            assert memory.get(b"k" * 32) == b"first"
            assert memory.get(b"l" * 32) is None


def test_a_full_memory_takes_no_further_value_and_forgets_none(
    subtests: pytest.Subtests, memories: dict[str, Memory]
) -> None:
    for kind, memory in memories.items():
        with subtests.test(kind=kind):
            for number in range(3):
                memory.keep(bytes([number]) * 32, bytes([number]))
            with pytest.raises(HushcountError, match=" 3 answers"):
                memory.keep(b"n" * 32, b"n")
            assert memory.keep(bytes(32), b"other") == b"\0"
            assert [memory.get(bytes([number]) * 32) for number in range(3)] == [b"\0", b"\1", b"\2"]
            assert memory.get(b"n" * 32) is None


def test_a_full_memory_silences_a_client_for_every_value_or_for_none(subtests: pytest.Subtests, tmp_path: Path) -> None:
    """At every fill level: who fell silent over some values only would tell which ones it has answered before."""
    for free in range(4):
        for memory in (ClientMemory(limit=3), ClientMemory(tmp_path / str(free), 3)):
            with subtests.test(free=free, memory=type(memory).__name__):
                for number in range(3 - free):
                    memory.keep(bytes([number]) * 32, b"of another epoch")
                client = client_of(memory, values=4)
                if free > 1:
                    plain(client, ["item 1"])
                asked = ("item 1", "item 2", "item 3", "item 4", "item 5", "unlisted")
                assert [falls_silent(client, value) for value in asked] == [free == 0] * 6


def test_a_memory_that_cannot_be_written_answers_a_further_value_as_the_last(tmp_path: Path) -> None:
    client = client_of(ClientMemory(tmp_path / "memory"))
    first = plain(client, ["item 1", "item 2"])
    lock = tmp_path / ".memory.lock"
    lock.unlink()
    lock.mkdir()
    assert plain(client, ["item 1", "item 2", "item 3", "unlisted"]) == [*first, first[1], first[1]]
    another = client_of(ClientMemory(tmp_path / "memory"), epoch=2)
    assert falls_silent(another, "item 1")
    assert falls_silent(another, "item 3")
    lock.rmdir()
    assert plain(client, ["item 3"])[0] not in first


def falls_silent(client: Client, value: str) -> bool:
    try:
        client.report(value)
    except HushcountError:
        return True
    return False


def test_of_many_threads_all_send_the_first_answer(subtests: pytest.Subtests, memories: dict[str, Memory]) -> None:
    """And no more than one answer is drawn for good, whoever comes first."""
    for kind, memory in memories.items():
        with subtests.test(kind=kind):
            client = client_of(memory)
            barrier = threading.Barrier(8)

            def send(client: Client, barrier: threading.Barrier) -> bytes:
                barrier.wait(60)
                return plain(client, ["item 5"])[0]

            with ThreadPoolExecutor(8) as threads:
                sent = list(threads.map(send, [client] * 8, [barrier] * 8))
            assert len(set(sent)) == 1


def test_a_limit_below_one_is_refused(tmp_path: Path) -> None:
    for make in (lambda: ClientMemory(limit=0), lambda: ClientMemory(tmp_path / "m", 0)):
        with pytest.raises(ValueError, match=r"^limit is 0.* 1$"):
            make()


def test_the_file_outlives_the_client_and_names_no_value(tmp_path: Path) -> None:
    path = tmp_path / "memory"
    values = ["item 1", "item 77", "unlisted value"]
    sent = plain(client_of(ClientMemory(path)), values)
    assert plain(client_of(ClientMemory(path)), values) == sent
    content = path.read_text()
    assert not any(value in content or value.encode().hex() in content for value in values)
    # Nor by a hash that anyone could make: the same values lie under other names in another device's file.
    other = tmp_path / "other"
    plain(client_of(ClientMemory(other)), values)
    names = [set(json.loads(each.read_text().splitlines()[0])["answers"]) for each in (path, other)]
    assert [len(each) for each in names] == [3, 3]
    assert not names[0] & names[1]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(each.name for each in tmp_path.iterdir()) == [".memory.lock", ".other.lock", "memory", "other"]


def test_a_damaged_file_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    """Every single byte changed, and every cut: never another answer, never a new file in its place."""
    path = tmp_path / "memory"
    (sent,) = plain(client_of(ClientMemory(path)), ["item 1"])
    whole = path.read_bytes()
    damaged = [whole[:length] for length in range(0, len(whole) - 1, 7)]
    damaged += [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(len(whole) - 1)]
    damaged += [whole.replace(b'"format":1,', b""), whole.replace(b'"format":1,', b'"format":2,')]
    damaged += [b"[]", b"{}", b"null", b'{"format": 1, "key": 5, "answers": [], "digest": ""}', b"\xff\xfe"]
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(FormatError, match=r"memory file .*/memory") as caught:
            client_of(ClientMemory(path)).report("item 1")
        assert sent.hex() not in str(caught.value)
        assert path.read_bytes() == content
    path.write_bytes(whole)
    assert plain(client_of(ClientMemory(path)), ["item 1"]) == [sent]


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "memory"
    client = client_of(ClientMemory(path))
    client.report("item 1")
    path.chmod(0o640)
    with pytest.raises(UsageError, match=r"0640.*0600"):
        client.report("item 1")


def test_where_nothing_can_be_kept_nothing_is_sent(tmp_path: Path) -> None:
    with pytest.raises(HushcountError, match="memory file"):
        client_of(ClientMemory(tmp_path / "absent" / "memory")).report("item 1")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match="memory file"):
        client_of(ClientMemory(tmp_path / "folder")).report("item 1")


def test_an_answer_of_another_length_is_refused() -> None:
    class Wrong(ClientMemory):
        def get(self, key: bytes) -> bytes | None:
            return b"short"

    with pytest.raises(UsageError, match=" 0 bytes"):
        client_of(Wrong()).report("item 1")


def test_a_path_may_be_a_text_and_what_is_no_path_is_one_sentence(tmp_path: Path) -> None:
    memory = ClientMemory(str(tmp_path / "memory.bin"))  # type: ignore[arg-type]
    assert memory.keep(bytes(32), b"answer") == ClientMemory(tmp_path / "memory.bin").get(bytes(32)) == b"answer"
    for wrong in (7, ""):
        with pytest.raises(UsageError, match=r"^path is "):
            ClientMemory(wrong)  # type: ignore[arg-type]
