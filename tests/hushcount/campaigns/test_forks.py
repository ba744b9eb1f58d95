"""Forks between what two places were shown: found whenever the histories cannot be one, and only then."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcount.campaigns.campaign import Campaign, head_of
from hushcount.campaigns.forks import Seen, fork_of, forks, other_restarts, seen_in_file, seen_in_log
from hushcount.campaigns.log import CampaignLog, LogEntry
from tests.hushcount.campaigns.test_campaign_file import data
from tests.hushcount.campaigns.vouched import restart_at, signed


def log_of(*files: tuple[int, int]) -> CampaignLog:
    """Return the log of these files: epoch, and a number that stands for the content."""
    entries = tuple(LogEntry(epoch=epoch, fingerprint=f"{content:064x}") for epoch, content in files)
    return CampaignLog(campaign="words", entries=entries)


def seen(*files: tuple[int, int], place: str = "a") -> Seen:
    return seen_in_log(place, log_of(*files))


HISTORY = ((1, 10), (2, 20), (4, 40))


def test_two_logs_are_one_history_if_one_begins_with_the_other(subtests: pytest.Subtests) -> None:
    for other, epoch in [
        (HISTORY, None),
        (HISTORY[:2], None),
        ((), None),
        ((*HISTORY, (9, 90)), None),
        (((1, 11), (2, 20), (4, 40)), 1),
        (((1, 10), (2, 21), (4, 40)), 2),
        (((1, 10), (2, 20), (4, 41)), 4),
        (((2, 20), (4, 40)), 1),
        (((1, 10), (4, 40)), 2),
        (((1, 10), (2, 20), (3, 30), (4, 40)), 3),
        (((1, 10), (2, 20), (5, 50)), 4),
    ]:
        with subtests.test(other=other):
            for one, two in ((HISTORY, other), (other, HISTORY)):
                fork = fork_of(seen(*one), seen(*two, place="b"))
                assert (None if fork is None else fork.epoch) == epoch


def test_a_campaign_file_stands_for_all_before_it() -> None:
    first = Campaign.model_validate(data())
    log = CampaignLog(campaign=first.id, entries=(LogEntry(epoch=first.epoch, fingerprint=first.fingerprint.hex()),))
    following = Campaign.model_validate({**data(), "epoch": first.epoch + 2, "previous": first.head.hex()})
    whole = CampaignLog(
        campaign=first.id,
        entries=(*log.entries, LogEntry(epoch=following.epoch, fingerprint=following.fingerprint.hex())),
    )
    for shown in (first, following):
        assert fork_of(seen_in_file("app", shown), seen_in_log("site", whole)) is None
    # A place that was shown less than the file is behind, and no fork.
    assert fork_of(seen_in_file("app", following), seen_in_log("site", log)) is None
    # The same file after another one before it.
    strange = Campaign.model_validate({**data(), "epoch": following.epoch, "previous": "0" * 64})
    between = Campaign.model_validate({**data(), "epoch": first.epoch + 1, "previous": first.head.hex()})
    for shown in (strange, between):
        fork = fork_of(seen_in_file("app", shown), seen_in_log("site", whole))
        assert fork is not None
        assert fork.epoch == shown.epoch


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=6), st.data())
def test_forks_are_found_by_heads_alone(history: list[tuple[bool, int]], choice: st.DataObject) -> None:
    files = [(epoch, content) for epoch, (there, content) in enumerate(history, start=1) if there]
    cut = choice.draw(st.integers(0, len(files)))
    assert fork_of(seen(*files), seen(*files[:cut], place="b")) is None
    if cut < len(files):
        epoch, content = files[cut]
        changed = [*files[:cut], (epoch, content + 1), *files[cut + 1 :]]
        fork = fork_of(seen(*files), seen(*changed, place="b"))
        assert fork is not None
        assert fork.epoch == epoch


def test_every_pair_of_places_is_compared() -> None:
    found = forks([seen(*HISTORY), seen(*HISTORY, place="b"), seen((1, 11), place="c")])
    assert [(fork.epoch, fork.places) for fork in found] == [(1, ("a", "c")), (1, ("b", "c"))]
    assert str(found[0]) == "epoch 1 of a is not that of c"
    assert seen(*HISTORY).heads[1] == head_of(None, bytes.fromhex(f"{10:064x}"))


def test_two_places_with_one_history_show_one_restart_for_each_epoch(subtests: pytest.Subtests) -> None:
    first = Campaign.model_validate(data())
    one, two = restart_at(first, 1), restart_at(first, 2)
    # The same serial, signed twice: which epoch a client goes on from depends on what it was shown.
    strange = restart_at(first, 1, head="0" * 64)
    for mine, theirs, serials in [
        (None, None, None),
        (one, one, None),
        (one, None, (1, None)),
        (one, two, (1, 2)),
        (one, strange, (1, 1)),
    ]:
        with subtests.test(mine=mine, theirs=theirs):
            seen = [
                seen_in_file(place, first, signed(first, restart=restart))
                for place, restart in (("a", mine), ("b", theirs))
            ]
            assert forks(seen) == []
            found = [(one.epoch, one.places, one.serials) for one in other_restarts(seen)]
            assert found == ([] if serials is None else [(first.epoch, ("a", "b"), serials)])
            if serials == (1, 1):
                assert str(other_restarts(seen)[0]).endswith("with restart 1 at a, and with another restart 1 at b")
    # A file that was saved without its signature shows no restart, and so none that differs.
    assert other_restarts([seen_in_file("a", first), seen_in_file("b", first, signed(first, restart=one))]) == []
