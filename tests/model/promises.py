"""What the README promises, as sentences and checks; each says how it was broken, or nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hushcount.errors import HushcountError
from pipelines.files import storage
from tests.model import window_promises
from tests.model.memory import Broken, Memory, is_forgotten, is_old, require
from tests.model.seen import Fate, Output, accounts, charges, fates, folded, note_ends, outputs, unread
from tests.model.world import World

BUG = "report this bug"
"""What a run says of an error that it does not know."""
LOST = "was lost, or is an older copy"
"""What a run says of a log that lacks entries."""


def look(world: World, memory: Memory) -> None:
    """Look at a world, as anybody may at any moment.

    Raises:
        Broken: a promise is.
    """
    with world.points.outside(), _every_log_can_be_read():
        note_ends(world)
        fold = folded(world)
        # A run that slept may write a summary of what retention deleted, until the next run.
        there = [
            one for one in outputs(world) if not (is_old(world, one.place) and fold.is_deleting(one.folder, one.batch))
        ]
        for one in there:
            note_receipts(world, one)
            for check in OF_AN_OUTPUT:
                check(world, memory, one)
            memory.outputs.setdefault(one.place, one)
        for check_all in ALWAYS:
            check_all(world, memory, there)


def remember(world: World, memory: Memory) -> None:
    """Look before something is deleted; whether it should be is for later."""
    note_ends(world)
    fold = folded(world)
    for one in outputs(world):
        note_receipts(world, one)
        if not fold.is_deleting(one.folder, one.batch):
            _outputs_are_whole(world, memory, one)
        if one.place not in memory.outputs:
            _each_report_is_forwarded_once(world, memory, one)
            memory.outputs[one.place] = one


def note_receipts(world: World, one: Output) -> None:
    """Note who left no receipt of what the shuffler handed on: it may be deleted when all did."""
    if world.kind.apart and one.folder == "shuffled":
        # A receipt that was there once counts, wherever it is now.
        missing = unread(world, one)
        world.unread[one.place] = world.unread.get(one.place, missing) & missing


def look_after_a_run(world: World, memory: Memory) -> None:
    """Look at a world in which a run has come to its end, and its clock was right."""
    with _every_log_can_be_read():
        for check in AFTER_A_RUN:
            check(world, memory)


@contextmanager
def _every_log_can_be_read() -> Iterator[None]:
    try:
        yield
    except (HushcountError, KeyError) as error:
        raise Broken(f"a log cannot be read: {error}") from None


def _outputs_are_whole(world: World, memory: Memory, one: Output) -> None:
    """Outputs appear whole or not at all."""
    for stream, counts in one.summary["streams"].items():
        if one.folder == "shuffled":
            records = len(one.records(stream))
            require(records == counts["accepted"], f"{one.place}: {records} of {counts['accepted']} {stream} are there")
        damaged = {"corrupt_block", "truncated"} & counts["rejected"].keys()
        require(not damaged, f"{one.place}: {counts['rejected']} though nobody damaged what was handed on")


def _what_is_published_stays(world: World, memory: Memory, one: Output) -> None:
    """No result changes after it was published."""
    before = memory.outputs.get(one.place)
    require(before is None or before.digest == one.digest, f"{one.place}: its files changed after it was published")


def _each_report_is_forwarded_once(world: World, memory: Memory, one: Output) -> None:
    """Every report is counted once."""
    if one.folder == "shuffled" and one.place not in memory.outputs:
        for stream in one.summary["streams"]:
            for record in one.records(stream):
                first = memory.forwarded.setdefault(record, one.batch)
                require(first == one.batch, f"a report of {first} was forwarded again in {one.batch}")


def _nothing_is_released_uncharged(world: World, memory: Memory, one: Output) -> None:
    """Nothing is handed out that was not charged."""
    if one.folder == "shuffled" or not one.summary["accepted"]:
        return
    key = one.key
    require(key is not None, f"{one.place}: it is charged nowhere")
    if world.old_ledger:
        return
    require(key in {charge.key for charge in charges(world)}, f"{one.place}: the ledger has no charge of it")
    memory.keys[one.place] = key or ""


def _one_input_has_one_draw(world: World, memory: Memory, one: Output) -> None:
    """Of one input one draw is handed out."""
    key = one.key
    if one.folder == "found" and key is not None:
        first = memory.draws.setdefault(key, one.values)
        require(first == one.values, f"{one.place}: another draw of the same reports was handed out before")


def _nothing_published_is_lost(world: World, memory: Memory, there: list[Output]) -> None:
    """What was published stays; what was handed on stays until retention lets it go."""
    places = {one.place for one in there}
    for place in memory.outputs:
        if place not in places and place not in world.gone and place not in world.unmarked:
            require(is_old(world, place), f"{place}: it was published, and is gone")


def _each_release_is_charged_once(world: World, memory: Memory, there: list[Output]) -> None:
    """Each release is charged once."""
    charged = {charge.key: "found" if charge.hop == "discover" else "results" for charge in charges(world)}
    for folder in ("found", "results"):
        number = sum(1 for of in charged.values() if of == folder)
        batches = {one.batch for one in memory.outputs.values()}
        require(number <= len(batches), f"{number} charges for {folder} of {len(batches)} batches")


def _no_limit_is_passed(world: World, memory: Memory, there: list[Output]) -> None:
    """What is released within a period stays within the limit."""
    if world.limited is None:
        return
    epsilon, since = world.limited
    spent = sum(charge.epsilon for charge in charges(world) if charge.committed_at and charge.committed_at >= since)
    require(spent <= epsilon * (1 + 1e-9), f"{spent:.3g} were spent under a limit of {epsilon:.3g}")


def _nothing_is_a_bug(world: World, memory: Memory, there: list[Output]) -> None:
    """Whatever happens, a run says it in a sentence of ours."""
    bugs = [said for said in world.said if BUG in said]
    require(not bugs, f"a run said: {bugs[:1]}")


def _no_log_is_called_lost(world: World, memory: Memory) -> None:
    """A run refuses to go on without entries of its log only if it lacks some."""
    is_said = any(LOST in one for one in world.said)
    require(world.log_restored or not is_said, "a run said that the log was lost, and it is not")


def _what_is_deleted_stays_so(world: World, memory: Memory) -> None:
    """What retention deleted is not there again."""
    fold = folded(world)
    for one in outputs(world):
        require(not fold.is_deleting(one.folder, one.batch), f"{one.place}: it was deleted, and is there again")


def _every_report_has_one_state(world: World, memory: Memory) -> None:
    """Every acknowledged report is batched once, waits, is said to be too late or put aside, or is not looked at."""
    told, root = fates(world), world.deployment.folder("segments")
    for sent in world.sent:
        for stream, path in sent.paths.items():
            if is_forgotten(world, path, told):
                continue
            fate = told.get(storage.relative(path, root), Fate("stored"))
            forwarded = sum(record in memory.forwarded for record in sent.sealed[stream])
            if fate.shuffled:
                missing = len(sent.sealed[stream]) - forwarded
                require(not missing, f"{missing} {stream} are in batch {fate.batch} by the log, and in no output")
            elif not sent.copied and fate.state != "given_up":
                # Of what is given up nobody knows whether it was counted, least the log.
                require(not forwarded, f"{forwarded} {stream} were forwarded, and are {fate.state} by the log")


def _the_account_agrees(world: World, memory: Memory) -> None:
    """Status says of every acknowledged report what became of it, and counts none twice."""
    told, root = fates(world), world.deployment.folder("segments")
    own: dict[tuple[str, str], Counter[str]] = {}
    for path, one in world.acknowledged.items():
        if not is_forgotten(world, path, told):
            state = told.get(storage.relative(path, root), Fate("stored")).state
            own.setdefault((one.window.name, one.stream), Counter())[state] += one.reports
    said = {(one.window, one.stream): Counter(one.states) for one in accounts(world)[0].windows}
    for place, states in own.items():
        require(said.get(place) == states, f"{place}: status says {dict(said.get(place, {}))}, must be {dict(states)}")


def _what_is_wrong_is_said(world: World, memory: Memory) -> None:
    """Status has a difference for each file that is not as it was, and no other."""
    differences = [one for account in accounts(world) for one in account.differences]
    # It is shown for ever, however well runs end.
    shown = [one.batch for one in window_promises.lost(world, memory)]
    differences = [one for one in differences if not ("without a receipt" in one and one.partition(":")[0] in shown)]
    if world.log_restored:
        # A log of before retention deleted an output takes that for lost, until it is old by that log too.
        lost = memory.outputs.keys() - {one.place for one in outputs(world)}
        old = [world.deployment.folder(*_parts_of(place)) for place in lost if is_old(world, place)]
        differences = [one for one in differences if not any(where in one for where in old)]
    if not world.harmed and not world.gone and not window_promises.has_problems(world):
        require(not differences, f"a run ended well, and status has differences: {differences[:1]}")
    told, root = fates(world), world.deployment.folder("segments")
    for path, how in world.harmed.items():
        fate = told.get(storage.relative(path, root), Fate("stored"))
        # What has its length is read when a batch would take it.
        needed = fate.state in ("stored", "waiting", "quarantined") and (
            how != "replace" or fate.state == "quarantined"
        )
        require(not needed or any(path in one for one in differences), f"{path}: {how}, and status does not say so")
    for place in world.gone:
        where = world.deployment.folder(*_parts_of(place))
        is_said = is_old(world, place) or any(where in one for one in differences)
        require(is_said, f"{place} is deleted, and status does not say so")


def _parts_of(place: str) -> tuple[str, str, str]:
    folder, _, batch = place.partition("/")
    return folder, "words", batch


OF_AN_OUTPUT: tuple[Callable[[World, Memory, Output], None], ...] = (
    _outputs_are_whole,
    _what_is_published_stays,
    _each_report_is_forwarded_once,
    _nothing_is_released_uncharged,
    _one_input_has_one_draw,
)
ALWAYS: tuple[Callable[[World, Memory, list[Output]], None], ...] = (
    _nothing_published_is_lost,
    _each_release_is_charged_once,
    _no_limit_is_passed,
    _nothing_is_a_bug,
    window_promises.windows_follow_each_other,
    window_promises.nothing_is_closed_ahead,
    window_promises.segments_stay,
    window_promises.what_is_dropped_had_its_grace,
    window_promises.collectors_have_the_windows_of_the_log,
)
AFTER_A_RUN: tuple[Callable[[World, Memory], None], ...] = (
    _no_log_is_called_lost,
    _what_is_deleted_stays_so,
    _every_report_has_one_state,
    _the_account_agrees,
    _what_is_wrong_is_said,
    window_promises.every_window_closes,
    window_promises.what_goes_unreceived_is_shown,
)
