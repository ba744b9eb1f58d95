"""What the README promises, as sentences and checks; each says how it was broken, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hushcount.collection.windows import window_start
from pipelines.batches.state import HOPS, opened, snapshot
from pipelines.files import storage
from tests.model.seen import Output, account, charges, outputs
from tests.model.world import World
from tests.support.collecting import DAY, START


class Broken(AssertionError):
    """A promise was broken."""


@dataclass
class Memory:
    """What was seen until now.

    Attributes:
        outputs: the first that was seen of each, by place.
        forwarded: the batch that each report was forwarded in.
        keys: of charges that an output names, by place.
        draws: the values that were handed out, by the key that their release was charged under.
    """

    outputs: dict[str, Output] = field(default_factory=dict)
    forwarded: dict[bytes, str] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    draws: dict[str, frozenset[str]] = field(default_factory=dict)


def look(world: World, memory: Memory) -> None:
    """Look at a world, as anybody may at any moment.

    Raises:
        Broken: a promise is.
    """
    there = list(outputs(world))
    for one in there:
        for check in OF_AN_OUTPUT:
            check(world, memory, one)
        memory.outputs.setdefault(one.place, one)
    for check_all in ALWAYS:
        check_all(world, memory, there)


def remember(world: World, memory: Memory) -> None:
    """Note what is there before something is deleted; whether it should be is for later."""
    for one in outputs(world):
        if one.place not in memory.outputs:
            _each_report_is_forwarded_once(world, memory, one)
            memory.outputs[one.place] = one


def look_after_a_run(world: World, memory: Memory) -> None:
    """Look at a world in which a run has come to its end, its clock right and nothing of the store harmed."""
    for check in AFTER_A_RUN:
        check(world, memory)


def _outputs_are_whole(world: World, memory: Memory, one: Output) -> None:
    """Outputs appear whole or not at all."""
    for stream, counts in one.summary["streams"].items():
        if one.folder == "shuffled":
            records = len(one.records(stream))
            _require(
                records == counts["accepted"], f"{one.place}: {records} of {counts['accepted']} {stream} are there"
            )
        damaged = {"corrupt_block", "truncated"} & counts["rejected"].keys()
        _require(not damaged, f"{one.place}: {counts['rejected']} though nobody damaged what was handed on")


def _what_is_published_stays(world: World, memory: Memory, one: Output) -> None:
    """No result changes after it was published."""
    before = memory.outputs.get(one.place)
    _require(before is None or before.digest == one.digest, f"{one.place}: its files changed after it was published")


def _each_report_is_forwarded_once(world: World, memory: Memory, one: Output) -> None:
    """Every report is counted once."""
    if one.folder == "shuffled" and one.place not in memory.outputs:
        for stream in one.summary["streams"]:
            for record in one.records(stream):
                first = memory.forwarded.setdefault(record, one.batch)
                _require(first == one.batch, f"a report of {first} was forwarded again in {one.batch}")


def _nothing_is_released_uncharged(world: World, memory: Memory, one: Output) -> None:
    """Nothing is handed out that was not charged."""
    if one.folder == "shuffled" or not one.summary["accepted"]:
        return
    key = one.key
    _require(key is not None, f"{one.place}: it is charged nowhere")
    _require(key in {charge.key for charge in charges(world)}, f"{one.place}: the ledger has no charge of it")
    memory.keys[one.place] = key or ""


def _one_input_has_one_draw(world: World, memory: Memory, one: Output) -> None:
    """Of one input one draw is handed out."""
    key = one.key
    if one.folder == "found" and key is not None:
        first = memory.draws.setdefault(key, one.values)
        _require(first == one.values, f"{one.place}: another draw of the same reports was handed out before")


def _nothing_published_is_lost(world: World, memory: Memory, there: list[Output]) -> None:
    """What was published stays; what was handed on stays until retention lets it go."""
    places = {one.place for one in there}
    for place, one in memory.outputs.items():
        if place in places:
            continue
        over = one.folder in ("shuffled", "released") and world.kind.retention and _age(world, one.batch) > 3
        _require(bool(over), f"{place}: it was published, and is gone")


def _each_release_is_charged_once(world: World, memory: Memory, there: list[Output]) -> None:
    """Each release is charged once."""
    charged = {charge.key: "found" if charge.hop == "discover" else "results" for charge in charges(world)}
    for folder in ("found", "results"):
        number = sum(1 for of in charged.values() if of == folder)
        batches = {one.batch for one in memory.outputs.values()}
        _require(number <= len(batches), f"{number} charges for {folder} of {len(batches)} batches")


def _no_limit_is_passed(world: World, memory: Memory, there: list[Output]) -> None:
    """What is released within a period stays within the limit."""
    if world.limited is None:
        return
    epsilon, since = world.limited
    spent = sum(charge.epsilon for charge in charges(world) if charge.committed_at and charge.committed_at >= since)
    _require(spent <= epsilon * (1 + 1e-9), f"{spent:.3g} were spent under a limit of {epsilon:.3g}")


def _nothing_is_dropped_unsaid(world: World, memory: Memory) -> None:
    """Every acknowledged report is in a batch, waits, or is said to be too late or put aside."""
    told, rows = account(world)
    state = {row.path: row for row in rows}
    _require(not told.differences, f"a run ended well, and status has differences: {told.differences[:1]}")
    with opened(world.deployment.state) as database, snapshot(database) as connection:
        shuffled = {row.batch for row in connection.execute(HOPS.select()) if row.hop == "shuffle"}
    for sent in world.sent:
        for stream, path in sent.paths.items():
            row = state.get(storage.relative(path, world.deployment.folder("segments")))
            if row is None:
                # Of a state that was lost after retention took the segment.
                gone = all(record in memory.forwarded for record in sent.sealed[stream])
                _require(gone, f"{stream} of {path} were acknowledged, and the state knows nothing of them")
            elif row.state == "batched" and row.batch in shuffled:
                missing = sum(record not in memory.forwarded for record in sent.sealed[stream])
                _require(not missing, f"{missing} {stream} are in batch {row.batch} by the state, and in no output")
            elif row.state != "batched":
                found = sum(record in memory.forwarded for record in sent.sealed[stream])
                _require(not found, f"{found} {stream} were forwarded, and {row.state} by the state")


def _age(world: World, batch: str) -> float:
    return (START + world.day * DAY - window_start(batch.partition("-")[0])) / DAY - 1


def _require(holds: bool, sentence: str) -> None:
    if not holds:
        raise Broken(sentence)


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
)
AFTER_A_RUN: tuple[Callable[[World, Memory], None], ...] = (_nothing_is_dropped_unsaid,)
