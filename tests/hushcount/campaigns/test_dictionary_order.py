"""The order of a dictionary is one for a set of items, and not that of their names."""

from __future__ import annotations

import itertools
import random

from hushcount.campaigns.dictionary import Dictionary, in_random_order

ITEMS = tuple(sorted(f"item {number:04d}" for number in range(1000)))


def test_the_order_is_one_for_a_set() -> None:
    order = in_random_order(ITEMS)
    assert sorted(order) == list(ITEMS)
    shuffled = random.Random(1).sample(ITEMS, len(ITEMS))
    assert in_random_order(shuffled) == order == in_random_order(order)
    # Fixed for ever: it is in the digest of every dictionary.
    assert in_random_order(["a", "b", "c", "d", "caf\u00e9"]) == ("caf\u00e9", "c", "b", "d", "a")


def test_items_that_are_neighbours_by_name_are_none_in_the_order() -> None:
    """Of 1000 items in random order 2 steps are by one, on the mean; more than 15 have a probability below 1e-8."""
    places = {item: place for place, item in enumerate(in_random_order(ITEMS))}
    steps = [abs(places[item] - places[following]) for item, following in itertools.pairwise(ITEMS)]
    assert sum(step == 1 for step in steps) <= 15
    # The mean distance of two places is a third of 1000; its standard deviation over these is 8.
    assert abs(sum(steps) / len(steps) - 1001 / 3) < 50


def test_a_dictionary_tells_whether_it_is_in_that_order() -> None:
    assert not Dictionary(ITEMS).is_in_random_order
    assert Dictionary(in_random_order(ITEMS)).is_in_random_order
    assert Dictionary(("alone",)).is_in_random_order
