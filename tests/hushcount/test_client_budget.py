"""A client and its budget: charged before it leaves, whatever the value is, also if the process is killed."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushcount.allowance import Allowance, OverCap
from hushcount.budget import Budget, BudgetSpent, OptedOut
from hushcount.campaigns.campaign import Campaign
from hushcount.client import Client
from hushcount.errors import FormatError, HushcountError, UsageError
from hushcount.memory import ClientMemory, Memory
from hushcount.policy import Policy
from tests.hushcount.campaigns.test_campaign_file import WORDS, data
from tests.hushcount.forked import fork
from tests.hushcount.test_client import ANALYZER, AUX_SERVER

CERTAIN = 40.0
"""An epsilon at which a report shows its value: it shows another one with probability below 1e-16."""
YEAR = timedelta(days=366)
VALUES = ["one", "one", "two", "no item of the list", "one", "", "\0", "another", "two"]
"""Listed or not, seen before or not, and no items."""


@dataclass(frozen=True)
class Waiting:
    """A queue of an app."""

    reports: list[bytes] = field(default_factory=list)

    def forget(self) -> None:
        self.reports.clear()


def client_of(budget: Budget, memory: Memory | None = None, values: int = 1, **fields: Any) -> Client:
    """Return a client whose reports cost CERTAIN, of either stream."""
    parts = data()
    parts["mechanism"]["epsilon"] = CERTAIN
    parts["shuffle"]["cap"] = 1000
    parts["discovery"] |= {"epsilon": CERTAIN, "delta": 1e-3}
    if memory is not None:
        parts |= {"memory": True, "memory_values": values}
    fields = {"allowance": Allowance(YEAR), **fields}
    campaign = Campaign.model_validate(parts)
    return Client(campaign, policy=Policy.trusting(), dictionary=WORDS, budget=budget, memory=memory, **fields)


def shown(client: Client, sealed: np.ndarray) -> list[str]:
    """Return the value that each frequency report shows at this epsilon."""
    plain = [ANALYZER.open(row.tobytes()) for row in sealed]
    octets = np.frombuffer(b"".join(each[16:] for each in plain if each is not None), np.uint8)
    mechanism = client.campaign.require_frequency()
    reports, valid = mechanism.unpack(octets.reshape(len(sealed), -1))
    assert valid.all()
    likelihood = [mechanism.log_prob(reports, item) for item in range(4)]
    return [(*WORDS.items, "other")[int(best)] for best in np.argmax(likelihood, axis=0)]


def found(client: Client, sealed: np.ndarray) -> list[str | None]:
    """Return what is in each discovery report, by the keys of both parties."""
    form, values = client.campaign.discovery_format, []
    for row in sealed:
        pair = AUX_SERVER.open(row.tobytes())
        assert pair is not None
        plain = ANALYZER.open(pair[16 + 32 :])
        assert plain is not None
        values.append(form.unpad(plain[16:]))
        assert values[-1] is None or pair[16:48] == form.hash(values[-1])
    return values


# What a spent budget says.


def test_of_a_batch_as_many_tell_as_fit_and_the_others_nothing() -> None:
    client = client_of(Budget(lifetime=2 * CERTAIN))
    assert shown(client, client.reports(["one", "two", "three", "one", "two"])) == ["one", "two", *["other"] * 3]
    assert shown(client, client.reports(["one"])) == ["other"]
    client = client_of(Budget(lifetime=2 * CERTAIN))
    assert found(client, client.discovery_reports(["x", None, "x", "y"])) == ["x", None, None, None]
    spent = client.spent()
    assert [(each.stream, each.reports, each.blank) for each in spent.streams] == [("discovery", 2, 2)]


def test_one_budget_is_of_both_streams_and_of_all_campaigns() -> None:
    budget = Budget(lifetime=3 * CERTAIN)
    client, remembering = client_of(budget), client_of(budget, ClientMemory())
    assert found(client, client.discovery_reports(["x"])) == ["x"]
    assert shown(client, client.reports(["one"])) == ["one"]
    assert shown(remembering, remembering.reports(["two", "two"])) == ["two", "two"]
    assert found(client, client.discovery_reports(["y"])) == [None]
    assert shown(client, client.reports(["one"])) == ["other"]
    # Answers that were charged go on, and a spent budget draws no new ones.
    assert shown(remembering, remembering.reports(["two"])) == ["two"]


def test_a_memory_is_not_touched_by_a_spent_budget_and_its_epoch_is_charged_whole() -> None:
    memory = ClientMemory()
    client = client_of(Budget(lifetime=3 * CERTAIN - 1e-9), memory, values=3)
    assert shown(client, client.reports(["one", "two"])) == ["other", "other"]
    assert memory._kept.read().answers == {}
    client = client_of(Budget(lifetime=3 * CERTAIN), memory, values=3)
    for value in ("one", "two", "three"):
        assert shown(client, client.reports([value])) == [value]
    assert (client.spent().epsilon, len(memory._kept.read().answers)) == (3 * CERTAIN, 3)
    # Whoever loses the memory draws anew, and so pays anew.
    again = client_of(client.budget, ClientMemory(), values=3)
    assert shown(again, again.reports(["one"])) == ["other"]


def test_an_epoch_that_was_paid_is_repeated_when_nothing_is_left_and_words_do_not_deny_it() -> None:
    for silent in (False, True):
        budget = Budget(lifetime=CERTAIN, when_spent="nothing" if silent else "other")
        client = client_of(budget, ClientMemory())
        assert len({shown(client, client.reports(["one"]))[0] for _ in range(20)}) == 1
        spent = client.spent()
        assert (spent.left, spent.streams[0].reports, spent.streams[0].blank) == (0.0, 20, 0)
        assert "tells more of you" in spent.words()[-1]


def test_if_the_app_wants_nothing_nothing_is_made_or_taken() -> None:
    allowance, memory = Allowance(YEAR), ClientMemory()
    budget = Budget(lifetime=CERTAIN - 1e-9, when_spent="nothing")
    for client in (client_of(budget, allowance=allowance), client_of(budget, memory, allowance=allowance)):
        for make in (client.report, client.discovery_report):
            with pytest.raises(BudgetSpent) as caught:
                make("very secret")
            assert "secret" not in str(caught.value)
    assert (memory._kept.read().answers, allowance._made.read().reports, budget.spent().streams) == ({}, {}, ())


def test_what_is_over_the_cap_or_wrong_is_not_charged() -> None:
    client = client_of(Budget())
    with pytest.raises(OverCap):
        client.reports(["one"] * 1001)
    with pytest.raises(UsageError):
        client.discovery_reports(["x", "x" * 1000])
    with pytest.raises(UsageError):
        client.reports(["one", None])  # type: ignore[list-item]
    assert len(client.reports([])) == len(client.discovery_reports([])) == 0
    assert client.spent().epsilon == 0.0


def test_a_value_too_long_is_refused_whether_or_not_the_budget_is_spent() -> None:
    for budget in (Budget(), Budget(lifetime=0.0)):
        with pytest.raises(UsageError, match=" 1000 "):
            client_of(budget).discovery_report("x" * 1000)


# What is charged does not depend on values.


def test_what_is_charged_and_when_it_is_spent_never_depends_on_a_value(subtests: pytest.Subtests) -> None:
    """People with any values, new ones and ones that were seen before, are charged alike after every single call."""
    for lifetime in [0.0, 3.5 * CERTAIN, 1000 * CERTAIN]:
        for values in [0, 1, 3]:
            with subtests.test(values=values, lifetime=lifetime):
                people = []
                for person in (
                    VALUES,
                    ["one"] * 9,
                    list(reversed(VALUES)),
                    [f"new {number}" for number in range(9)],
                    [""] * 9,
                ):
                    client = client_of(Budget(lifetime=lifetime), ClientMemory() if values else None, max(values, 1))
                    charges = []
                    for value in person:
                        client.report(value)
                        charges.append((client.spent(), client.allowance._made.read().reports))
                        client.discovery_report(value or None)
                        charges.append((client.spent(), client.allowance._made.read().reports))
                        client.reports([value, "one", value])
                        charges.append((client.spent(), client.allowance._made.read().reports))
                    people.append([(spent.streams, spent.left, made) for spent, made in charges])
                assert all(charges == people[0] for charges in people)


def test_a_memory_that_fails_has_charged_more_and_not_less(tmp_path: Path) -> None:
    """Each attempt to begin an epoch is charged: what was drawn might have been kept."""
    full = ClientMemory(limit=1)
    full.keep(bytes(32), b"of another campaign")
    client = client_of(Budget(lifetime=3 * CERTAIN), full)
    for _ in range(2):
        with pytest.raises(HushcountError, match=" 1 answers"):
            client.report("one")
    assert client.spent().epsilon == 2 * CERTAIN


# Killed at any point, charged at least what left.

POINTS = ("open", "fsync", "fchmod", "replace", "unlink", "close")


def of_folder(folder: Path, remembering: bool) -> Client:
    memory = ClientMemory(folder / "memory.json") if remembering else None
    return client_of(Budget(folder / "budget.json"), memory, allowance=Allowance(YEAR, folder / "allowance.json"))


def report_and_die(folder: Path, stream: str, remembering: bool, point: int, out: int) -> None:
    """Make a report and hand it out; be killed before the system call of this number."""
    calls = count()

    def counted(real: Any) -> Any:
        def called(*args: Any, **named: Any) -> Any:
            if next(calls) == point:
                os._exit(9)
            return real(*args, **named)

        return called

    client = of_folder(folder, remembering)
    write = os.write
    for name in POINTS:
        setattr(os, name, counted(getattr(os, name)))
    write(out, client.report("one") if stream == "reports" else client.discovery_report("x"))


def kill_everywhere(folder: Path, stream: str, remembering: bool) -> int:
    """Kill a client at every point, hold what left against what was charged, and return how many points there are."""
    for point in count():
        place = folder / f"{stream}-{remembering}-{point}"
        place.mkdir()
        # What was charged before, in the other stream, is not lost either.
        client = of_folder(place, remembering)
        client.discovery_report("x") if stream == "reports" else client.report("one")
        reading, writing = os.pipe()
        child = fork()
        if child == 0:
            report_and_die(place, stream, remembering, point, writing)
            os._exit(0)
        os.close(writing)
        left = bool(os.read(reading, 1))
        os.close(reading)
        _, status = os.waitpid(child, 0)
        spent = Budget(place / "budget.json").spent().epsilon - CERTAIN
        memory = place / "memory.json"
        kept = memory.exists() and bool(ClientMemory(memory)._kept.read().answers)
        assert left == (status == 0)
        assert spent == CERTAIN or (spent == 0.0 and not left and not kept), (point, spent, left, kept)
        # It goes on: no file is damaged, and what was charged once may be charged once more but not less.
        client = of_folder(place, remembering)
        sealed = client.reports(["one"]) if stream == "reports" else client.discovery_reports(["x"])
        told = shown(client, sealed) if stream == "reports" else found(client, sealed)
        assert told == ["one" if stream == "reports" else "x"]
        assert client.spent().epsilon == CERTAIN + (CERTAIN if kept else spent + CERTAIN)
        if status == 0:
            return point
    raise AssertionError


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
@pytest.mark.long(but=("reports-False",))
@pytest.mark.parametrize(("stream", "remembering"), [("reports", False), ("reports", True), ("discovery", False)])
def test_a_process_killed_at_any_point_has_charged_what_left_it(tmp_path: Path, stream: str, remembering: bool) -> None:
    """The decision, the allowance, the charge, the draw, the memory, the report: nothing leaves before the charge."""
    # Of each file: its lock, the new one, its mode, its sync, its name, the folder's sync, the temporary one.
    assert kill_everywhere(tmp_path, stream, remembering) > (30 if remembering else 20)


def test_a_charge_that_cannot_be_written_lets_nothing_out(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    budget = Budget(tmp_path / "there" / "budget.json")
    client = client_of(budget)
    client.report("one")
    (tmp_path / "there" / "budget.json").unlink()
    (tmp_path / "there" / "budget.json").mkdir()
    for make in (client.report, client.discovery_report):
        with pytest.raises(HushcountError, match="budget file"):
            make("one")


def test_one_file_for_two_uses_is_refused_and_hangs_nobody(tmp_path: Path) -> None:
    path = tmp_path / "all.json"
    client = client_of(Budget(path), allowance=Allowance(YEAR, path))
    with pytest.raises(FormatError, match=r"budget file .*all\.json"):
        for _ in range(2):
            client.report("one")


def test_threads_make_as_many_reports_as_the_budget_lets_them(tmp_path: Path) -> None:
    client = client_of(Budget(tmp_path / "budget.json", lifetime=5 * CERTAIN))
    with ThreadPoolExecutor(8) as threads:
        sealed = list(threads.map(lambda _: client.reports(["one"]), range(20)))
    assert sorted(shown(client, np.concatenate(sealed))) == ["one"] * 5 + ["other"] * 15


# Opting out.


def test_forgetting_stops_everything_and_deletes_what_is_of_values(subtests: pytest.Subtests, tmp_path: Path) -> None:
    for number, durable in enumerate([False, True]):
        home = tmp_path / str(number)
        home.mkdir()
        with subtests.test(durable=durable):
            path = home / "memory.json"
            memory = ClientMemory(path) if durable else ClientMemory()
            budget = Budget(home / "budget.json" if durable else None, lifetime=3 * CERTAIN)
            queue = Waiting()
            client = client_of(budget, memory, queue=queue)
            queue.reports.append(client.report("one"))
            client.forget()
            client.forget()
            assert queue.reports == []
            assert not path.exists()
            assert not memory._kept.read().answers
            # The allowance is not taken, so that it stays this error.
            others = [client, client_of(budget)]
            if durable:
                others.append(client_of(Budget(budget.path)))
            for other, _ in product(others, range(3)):
                for make in (other.report, other.discovery_report):
                    with pytest.raises(OptedOut):
                        make("one")
            assert client.allowance._made.read().reports.popitem()[1].popitem()[1] == 1
            assert "opted out" in client.spent().words()[0]
            # New answers in the same epoch are charged, and the budget is the old one.
            budget.opt_in()
            assert shown(client, client.reports(["two"])) == ["two"]
            assert client.spent().epsilon == 2 * CERTAIN
            client.forget()
            budget.opt_in()
            client.report("one")
            assert shown(client, client.reports(["one"])) == ["one"]
            client.forget()
            budget.opt_in()
            assert shown(client, client.reports(["one"])) == ["other"]


def test_forgetting_that_is_interrupted_has_stopped_everything_and_is_completed_by_another_call() -> None:
    class Stuck(Waiting):
        def forget(self) -> None:
            if self.reports == [b"stuck"]:
                self.reports.append(b"tried")
                raise HushcountError("the disk is busy")
            super().forget()

    queue, memory = Stuck([b"stuck"]), ClientMemory()
    client = client_of(Budget(), memory, queue=queue)
    client.report("one")
    with pytest.raises(HushcountError, match="busy"):
        client.forget()
    with pytest.raises(OptedOut):
        client.report("one")
    client.forget()
    assert (queue.reports, memory._kept.read().answers) == ([], {})


def test_a_memory_file_that_cannot_be_removed_is_said(tmp_path: Path) -> None:
    (tmp_path / "memory.json").mkdir()
    with pytest.raises(HushcountError, match="memory file"):
        ClientMemory(tmp_path / "memory.json").forget()
    ClientMemory(tmp_path / "none.json").forget()


# Arguments.


def test_a_client_without_limits_counts_what_it_spends() -> None:
    client = client_of(Budget())
    client.reports(["one"] * 3)
    assert client.spent().epsilon == 3 * CERTAIN


def test_a_memory_must_be_able_to_forget() -> None:
    class Old:
        get = keep = None

    with pytest.raises(UsageError, match=r"^memory is a Old"):
        client_of(Budget(), Old())  # type: ignore[arg-type]
