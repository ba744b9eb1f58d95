"""Whatever files and logs a client is shown, in whatever order: it accepts one history and never goes back."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.log import CampaignLog
from hushcount.newest import Newest, Untrusted
from tests.hushcount.campaigns.test_campaign_file import data
from tests.hushcount.campaigns.test_chain import log_of
from tests.hushcount.campaigns.vouched import restart_at, signed


def tree(draws: list[tuple[int, int]]) -> list[tuple[Campaign, ...]]:
    """Return every file of a campaign that was forked, each with those before it, itself last.

    A draw is the place of the file before, 0 for none, and how many epochs later the file is.
    """
    paths: list[tuple[Campaign, ...]] = []
    for number, (place, step) in enumerate(draws):
        before = paths[place % len(paths)] if paths and place else ()
        made = {
            **data(),
            "epoch": (before[-1].epoch if before else 0) + step,
            "previous": before[-1].head.hex() if before else None,
        }
        made["discovery"]["hash_key"] = f"{number:064x}"
        paths.append((*before, Campaign.model_validate(made)))
    return paths


trees = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 3)), min_size=1, max_size=9)
shown = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), st.booleans()), max_size=12)


@given(trees, shown)
def test_what_a_client_accepted_is_one_history(
    draws: list[tuple[int, int]], order: list[tuple[int, int, bool]]
) -> None:
    paths, newest, last = tree(draws), Newest(), -1
    for place, other, with_log in order:
        index, log_index = place % len(paths), other % len(paths)
        path, log = paths[index], log_of(list(paths[log_index])) if with_log else None
        try:
            newest.keep(path[-1], log)
        except Untrusted:
            # Refused although it goes on: only if the log does not lead there.
            if last >= 0 and paths[last] == path[: len(paths[last])]:
                assert not leads(log, paths[last], path)
                assert paths[last] not in (path, path[:-1])
            else:
                assert last >= 0
        else:
            assert last < 0 or paths[last] == path[: len(paths[last])]
            last = index


def leads(log: CampaignLog | None, known: tuple[Campaign, ...], path: tuple[Campaign, ...]) -> bool:
    """Return whether a log has the known head and the one before the path's last."""
    return log is not None and {known[-1].head, path[-2].head if len(path) > 1 else b""} <= set(log.heads)


def test_a_client_that_accepted_a_mechanism_never_accepts_noise_nor_the_reverse(tmp_path: Path) -> None:
    """Not by the operator's restart either: it names another history of the same campaign."""
    plain = data() | {"discovery": None, "shuffle": {"minimum_batch": 1}, "epoch": 1}
    noisy = plain | {"noise": {"epsilon": 1.0, "delta": 1e-8, "seconds": 3600}}
    del noisy["mechanism"]
    for number, (one, other) in enumerate(((plain, noisy), (noisy, plain))):
        first = Campaign.model_validate(one)
        newest = Newest(tmp_path / f"{number}.json")
        newest.keep(first)
        second = {"epoch": 2, "previous": first.head.hex()}
        for signature in (None, signed(first, restart=restart_at(first, 9))):
            with pytest.raises(Untrusted, match=r"noise of the mixes, unlike epoch 1"):
                Newest(tmp_path / f"{number}.json").keep(Campaign.model_validate(other | second), None, signature)
        newest.keep(Campaign.model_validate(one | second))
