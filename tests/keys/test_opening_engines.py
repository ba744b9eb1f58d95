"""Two engines open boxes with identical results, and one simple rule chooses between them."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from hushcount.arrays import Octets
from hushcount.errors import UsageError
from hushcount.wire.sealing import Sealer
from keys.opening import Opener, Outcome
from keys.opening_engines import ENOUGH, LIBSODIUM, VARIABLE, OpeningEngine, engine_for
from keys.private import PrivateKey
from sealed_lanes import FaultyLanes, Lanes, NoLanes
from tests.sealed_lanes.machine import of_this_machine
from tests.support.opening import FakeLanes, put_lanes

KEY = PrivateKey(bytes(range(1, 33)))
BINDING = b"sixteen bytes of"


def boxes(count: int) -> Octets:
    """Return reports of one campaign, some of which were altered, sealed to another key, or of another campaign."""
    plain = np.random.default_rng(count).integers(0, 256, (count, 60), dtype=np.uint8)
    plain[:, : len(BINDING)] = np.frombuffer(BINDING, dtype=np.uint8)
    plain[5::11, 3] ^= 1
    sealed = Sealer(KEY.public_key).seal_many(plain)
    sealed[7::13] = Sealer(PrivateKey.generate().public_key).seal_many(plain[7::13])
    rows = np.arange(1, count, 4)
    sealed[rows, rows % sealed.shape[1]] ^= 1 << (rows % 8).astype(np.uint8)
    return sealed


@pytest.fixture
def sealed() -> Octets:
    return boxes(500)


def test_the_lanes_of_this_machine_open_and_refuse_what_libsodium_does(subtests: pytest.Subtests) -> None:
    engine = OpeningEngine("lanes", of_this_machine().open_rows)
    for count in (0, 1, 7, 8, 9, 500):
        with subtests.test(count=count):
            rows = boxes(count)
            wanted, found = KEY.open_rows(rows), KEY.open_rows(rows, engine)
            assert np.array_equal(wanted.plain, found.plain)
            assert np.array_equal(wanted.opened, found.opened)
            assert count < 8 or 0 < wanted.opened.sum() < count
            assert found.rescued == 0


def test_what_the_lanes_refuse_libsodium_opens_and_it_is_counted(sealed: Octets) -> None:
    lanes = FakeLanes(faulty=True)
    wanted, found = KEY.open_rows(sealed), KEY.open_rows(sealed, OpeningEngine("lanes", lanes.open_rows))
    assert np.array_equal(wanted.plain, found.plain)
    assert np.array_equal(wanted.opened, found.opened)
    assert found.rescued == lanes.missed(wanted.opened) > 100
    assert lanes.calls == [500]


def test_what_neither_opens_is_not_counted_as_rescued(sealed: Octets) -> None:
    stranger = PrivateKey.generate()
    found = stranger.open_rows(sealed[:6], OpeningEngine("lanes", FakeLanes(faulty=True).open_rows))
    assert not found.opened.any()
    assert not found.plain.any()
    assert found.rescued == 0


def test_few_boxes_are_opened_by_libsodium_and_nothing_is_made(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    put_lanes(monkeypatch, lambda: pytest.fail("the lanes were made"), ENOUGH)
    with caplog.at_level(logging.INFO):
        assert [engine_for(count) for count in (0, 1, ENOUGH - 1)] == [LIBSODIUM] * 3
    (said,) = caplog.messages
    assert all(part in said for part in ("libsodium", "lanes", "32,768"))


def test_many_boxes_are_opened_in_lanes(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    lanes = FakeLanes()
    put_lanes(monkeypatch, lambda: lanes, ENOUGH)
    with caplog.at_level(logging.INFO):
        assert engine_for(ENOUGH) == engine_for(ENOUGH + 1) == OpeningEngine("lanes", lanes.open_rows)
    (said,) = caplog.messages
    assert "lanes" in said
    assert "libsodium" not in said


def test_a_machine_without_lanes_opens_by_libsodium_and_says_why_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked = []

    def none() -> Lanes:
        asked.append(1)
        raise NoLanes("this processor has no avx512ifma")

    put_lanes(monkeypatch, none)
    with caplog.at_level(logging.INFO):
        assert [engine_for(ENOUGH) for _ in range(3)] == [LIBSODIUM] * 3
    (said,) = caplog.messages
    assert "libsodium" in said
    assert "avx512ifma" in said
    assert len(asked) == 1


def test_lanes_that_fail_their_test_are_a_warning_that_a_command_shows(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def faulty() -> Lanes:
        raise FaultyLanes("the code failed its test: a product differs")

    put_lanes(monkeypatch, faulty)
    assert [engine_for(ENOUGH) for _ in range(3)] == [LIBSODIUM] * 3
    (said,) = (record.message for record in caplog.records if record.levelno == logging.WARNING)
    assert "the code failed its test: a product differs" in said


def test_the_environment_turns_the_lanes_off(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    put_lanes(monkeypatch, lambda: pytest.fail("the lanes were made"))
    monkeypatch.setenv(VARIABLE, "libsodium")
    with caplog.at_level(logging.INFO):
        assert engine_for(ENOUGH) == LIBSODIUM
    (said,) = caplog.messages
    assert "libsodium" in said
    assert "HUSHCOUNT_OPENING" in said


def test_an_empty_variable_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    put_lanes(monkeypatch, FakeLanes)
    monkeypatch.setenv(VARIABLE, "")
    assert engine_for(1).name == "lanes"


def test_no_other_value_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("lanes", "Libsodium", " ", "1"):
        put_lanes(monkeypatch, lambda: pytest.fail("the lanes were made"))
        monkeypatch.setenv(VARIABLE, value)
        with pytest.raises(UsageError, match=f"HUSHCOUNT_OPENING is {value!r}.*libsodium"):
            engine_for(0)


def test_several_threads_make_the_lanes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made, begin = [], threading.Barrier(8)

    def make() -> FakeLanes:
        # Long enough for the others to come.
        time.sleep(0.05)
        made.append(FakeLanes())
        return made[-1]

    def choose(_: int) -> OpeningEngine:
        begin.wait()
        return engine_for(1)

    put_lanes(monkeypatch, make)
    with ThreadPoolExecutor(8) as pool:
        chosen = list(pool.map(choose, range(8)))
    (lanes,) = made
    assert chosen == [OpeningEngine("lanes", lanes.open_rows)] * 8


_IN_CHILDREN = """
import os, sys, threading
import numpy as np
import sealed_lanes
from hushcount.wire.sealing import Sealer
from keys import opening_engines
from keys.private import PrivateKey

key = PrivateKey.generate()
sealed = Sealer(key.public_key).seal_many(np.zeros((100, 30), np.uint8))
began, forked, real = threading.Event(), threading.Event(), sealed_lanes.make_lanes

def make():
    began.set()
    assert forked.wait(60)
    return real()

def opens():
    found = key.open_rows(sealed, opening_engines.engine_for(opening_engines.ENOUGH))
    return found.opened.all() and not found.rescued

def child():
    if not (pid := os.fork()):
        forked.set()
        os._exit(0 if opens() else 1)
    return pid

sealed_lanes.make_lanes = make
children = [child()]                            # nothing is made yet
thread = threading.Thread(target=opens)
thread.start()
began.wait()
children.append(child())                        # another thread makes it
forked.set()
thread.join()
children += [child(), child()]                  # all inherit it, and work at once
assert opens()
assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 4
"""


@pytest.mark.long
def test_forks_open_whether_the_lanes_were_made_before_or_are_being_made() -> None:
    """A child that waited for its parent's lock for ever would not end."""
    ran = subprocess.run(  # noqa: S603
        [sys.executable, "-W", "ignore", "-c", _IN_CHILDREN], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr


def opened(opener: Opener, rows: Octets) -> tuple[Octets, list[tuple[str, tuple[str, int | bytes]]]]:
    def judge(chunk: Octets, content: Octets, outcomes: Octets) -> Octets:
        assert len(chunk) == len(content)
        return content[outcomes == Outcome.ACCEPTED]

    accepted, outputs = opener.open_block(rows.tobytes(), judge)
    return accepted, list(outputs)


def counted(outputs: list[tuple[str, tuple[str, int | bytes]]]) -> dict[str, int | bytes]:
    return dict(value for tag, value in outputs if tag == "opening")


def test_a_job_of_enough_boxes_begins_in_lanes(monkeypatch: pytest.MonkeyPatch, sealed: Octets) -> None:
    put_lanes(monkeypatch, FakeLanes, 1000)
    few, enough = (Opener(KEY, BINDING, sealed.shape[1], planned) for planned in (999, 1000))
    assert counted(opened(few, sealed)[1]) == {"libsodium": 500}
    assert counted(opened(enough, sealed[:3])[1]) == {"lanes": 3}


def test_a_stream_comes_to_the_lanes_when_it_has_opened_enough(monkeypatch: pytest.MonkeyPatch, sealed: Octets) -> None:
    put_lanes(monkeypatch, FakeLanes, 1000)
    opener = Opener(KEY, BINDING, sealed.shape[1], 0)
    counts = [counted(opened(opener, rows)[1]) for rows in (sealed[:499], sealed, sealed[:1], sealed[:1])]
    assert counts == [{"libsodium": 499}, {"libsodium": 500}, {"lanes": 1}, {"lanes": 1}]


@pytest.mark.parametrize("faulty", [False, True])
def test_a_block_has_the_same_outputs_by_either_engine(
    monkeypatch: pytest.MonkeyPatch, sealed: Octets, faulty: bool
) -> None:
    lanes = FakeLanes(faulty)
    put_lanes(monkeypatch, lambda: lanes, 400)
    (wanted, said), (found, says) = (
        opened(Opener(KEY, BINDING, sealed.shape[1], planned), sealed[:300]) for planned in (0, 400)
    )
    assert np.array_equal(wanted, found)
    assert [one for one in said if one[0] != "opening"] == [one for one in says if one[0] != "opening"]
    assert {reason for tag, (reason, _) in says if tag == "dead"} == {"not_opened", "wrong_campaign"}
    rescued = counted(says).pop("rescued", 0)
    assert counted(says)["lanes"] == sum(lanes.calls) == counted(said)["libsodium"] == 300
    assert (rescued > 50) == faulty
