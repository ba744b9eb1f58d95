"""An app that reports meets no exception of a person's, a device's or an operator's making: it gets one word."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from threading import Thread

import pytest

from hushcount.budget import Budget
from hushcount.delivery import Delivery, Reported, Sender
from hushcount.delivery.queue import Queue
from hushcount.errors import HushcountError, UsageError
from tests.hushcount.campaigns.vouched import NOW, STRANGER, signed
from tests.hushcount.delivery.fake_collector import FakeCollector, campaign, policy, sender, wait_for
from tests.support.clocks import Hands

WORDS = {
    "queued", "not_asked", "over_cap", "budget_spent", "opted_out", "queue_full", "not_yet", "untrusted", "storage"
}  # fmt: skip
"""The words of docs/adr/0048-the-first-hour.md, which the client in TypeScript returns too."""


def lenient(collector: FakeCollector, folder: Path | None = None, **options: object) -> Sender:
    return sender(collector, folder, **{"strict": False, **options})


def capped(collector: FakeCollector) -> None:
    collector.epochs[:] = [campaign(shuffle={"cap": 1, "minimum_batch": 10, "delta": 1e-7})]


def stopped(one: Sender) -> list[str]:
    return [event.reason for event in one.log if event.what == "not_queued"]


def test_the_words_are_a_closed_list_of_strings() -> None:
    assert {str(word) for word in Reported} == WORDS
    assert json.loads(json.dumps([Reported.OVER_CAP, f"{Reported.QUEUED!s}"])) == ["over_cap", "queued"]
    assert Reported("storage") is Reported.STORAGE


def test_what_a_person_does_is_one_word_and_is_counted(collector: FakeCollector) -> None:
    capped(collector)
    one = lenient(collector)
    assert [one.report("one") for _ in range(3)] == ["queued", "over_cap", "over_cap"]
    assert (one.dropped, one.waiting) == ({Reported.OVER_CAP: 2}, 2)
    one.forget()
    assert one.report("one") is Reported.OPTED_OUT
    assert one.dropped == {Reported.OVER_CAP: 2, Reported.OPTED_OUT: 1}
    assert [len(one.log), len(stopped(one))] == [6, 3]
    assert one.deliver() == Delivery()


def test_a_spent_budget_is_one_word_and_a_charged_report_is_sent(collector: FakeCollector) -> None:
    one = lenient(collector, budget=Budget(lifetime=1.5, when_spent="nothing"))
    assert one.report("one") is Reported.BUDGET_SPENT
    assert one.deliver() == Delivery(sent=1)
    blank = lenient(collector, budget=Budget(lifetime=1.5, when_spent="other"))
    assert [blank.report("one") for _ in range(2)] == [Reported.QUEUED] * 2
    assert blank.dropped == {}


def test_a_full_queue_is_one_word(collector: FakeCollector) -> None:
    one = lenient(collector, most_queued=3)
    assert [one.report("one"), one.report("x" * 100)] == [Reported.QUEUED, Reported.QUEUE_FULL]


def test_what_an_operator_does_is_one_word(collector: FakeCollector, tmp_path: Path) -> None:
    collector.down = True
    early = lenient(collector, tmp_path / "early")
    assert early.report("one") is Reported.NOT_YET
    assert lenient(collector, keep_values=True).report("one") is Reported.QUEUED
    collector.down = False
    collector.signature = signed(collector.campaign, STRANGER)
    assert lenient(collector).report("one") is Reported.UNTRUSTED


def test_keys_that_end_while_the_app_runs_are_no_fault_of_the_device(collector: FakeCollector) -> None:
    hands = Hands(NOW.timestamp())
    one = lenient(collector, clock=hands.clock)
    assert one.report("one") is Reported.QUEUED
    hands.now = max(key.not_after for key in collector.campaign.keys.analyzer).timestamp() + 1.0
    assert one.report("one") in {Reported.NOT_YET, Reported.UNTRUSTED}


@pytest.mark.parametrize("file", ["queue.sqlite", "budget.json", "allowance.json"])
def test_a_damaged_file_is_one_word_and_no_call_of_an_app_raises(
    collector: FakeCollector, tmp_path: Path, file: str
) -> None:
    home = tmp_path / "own"
    with lenient(collector, home) as one:
        assert one.report("one") is Reported.QUEUED
    (home / file).write_bytes(b"damaged" * 1000)
    with lenient(collector, home) as one:
        assert [one.report("one") for _ in range(2)] == [Reported.STORAGE] * 2
        assert one.dropped == {Reported.STORAGE: 2}
    assert all(file in reason for reason in stopped(one))
    # What answers a question, or keeps a promise to the person, says that it could not.
    if file == "budget.json":
        for asks in (one.spent, one.forget):
            with pytest.raises(HushcountError, match=file):
                asks()
    if file == "queue.sqlite":
        assert one.waiting is None
        with pytest.raises(HushcountError, match=file):
            one.deliver()
    with pytest.raises(HushcountError, match=file), sender(collector, home) as strict:
        strict.report("one")


def test_a_disk_that_is_full_is_one_word(
    collector: FakeCollector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    one = lenient(collector, tmp_path / "own")
    with monkeypatch.context() as patched:
        patched.setattr(Queue, "put", full)
        assert one.report("one") is Reported.STORAGE
    assert one.report("one") is Reported.QUEUED


def test_a_folder_that_cannot_be_made_does_not_stop_an_app(collector: FakeCollector, tmp_path: Path) -> None:
    below = tmp_path / "file"
    below.write_text("")
    folder = below / "own"
    with lenient(collector, folder) as one:
        assert one.report("one") is Reported.STORAGE
    with pytest.raises(HushcountError, match="cannot make folder"):
        sender(collector, folder)
    with pytest.raises(UsageError, match="is a file"):
        lenient(collector, below)


def test_a_folder_that_somebody_makes_later_is_used_only_if_others_cannot_change_it(
    collector: FakeCollector, tmp_path: Path
) -> None:
    below = tmp_path / "file"
    below.write_text("")
    one = lenient(collector, below / "own")
    below.unlink()
    (below / "own").mkdir(parents=True)
    (below / "own").chmod(0o777)
    assert one.report("one") is Reported.STORAGE
    assert [*(below / "own").iterdir()] == []
    (below / "own").chmod(0o700)
    assert one.report("one") is Reported.QUEUED


def test_a_mistake_in_the_program_always_raises(collector: FakeCollector, subtests: pytest.Subtests) -> None:
    for strict in (False, True):
        with subtests.test(strict=strict):
            one = sender(collector, strict=strict)
            for wrong in (True, None, b"one"):
                with pytest.raises(UsageError, match="must be a str"):
                    one.report(wrong)  # type: ignore[arg-type]
            assert one.dropped == {}
            for options in ({"policy": "none.json"}, {"site": "collector"}, {"most_queued": 0}):
                with pytest.raises(UsageError):
                    sender(collector, strict=strict, **options)


def test_threads_count_each_value_once(collector: FakeCollector) -> None:
    capped(collector)
    one, told = lenient(collector), Counter[str]()

    def reports() -> None:
        told.update([one.report("one") for _ in range(20)])

    one.report("one")
    threads = [Thread(target=reports) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told["over_cap"] == one.dropped[Reported.OVER_CAP] == 160


def test_a_short_script_sends_what_an_earlier_run_left(collector: FakeCollector, tmp_path: Path) -> None:
    sender(collector, tmp_path).report("one")
    for _ in range(20):
        with lenient(collector, tmp_path):
            pass
        assert len(collector.posts) == 2, "the thread makes its first round, however early the block ends"


def test_a_script_that_reports_twice_ends_without_a_traceback(collector: FakeCollector, tmp_path: Path) -> None:
    capped(collector)
    (tmp_path / "policy.json").write_text(policy().text())
    script = (
        "from hushcount.delivery import Sender\n"
        f"with Sender({collector.address!r}, 'policy.json', folder='state') as sender:\n"
        "    print(sender.report('one'), sender.report('one'), sender.waiting)\n"
    )
    run = subprocess.run(  # noqa: S603  # our own script
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )  # fmt: skip
    assert (run.returncode, run.stdout, run.stderr) == (0, "queued over_cap 2\n", "")


def test_a_thread_outlives_a_disk_that_fails(
    collector: FakeCollector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(Queue, "claim", fails)
        one = lenient(collector, tmp_path).start()
        wait_for(lambda: any(event.what == "again" for event in one.log))
        assert one._background.is_running
    one.report("one")
    wait_for(lambda: len(collector.posts) == 2)
    one.close()
