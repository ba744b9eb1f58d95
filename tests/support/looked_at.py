"""A deployment to look at: two campaigns of paths over some days, a planted rise, discovered values, and a budget."""

from __future__ import annotations

from pathlib import Path

from tests.support.collecting import collect
from tests.support.jobs import done, write_lines
from tests.support.site import FLOOR, Site

ROOTS = {"editor": ("open", "save", "undo", "find"), "share": ("link", "mail"), "view": ("zoom", "grid", "dark")}
ITEMS = [f"{root}/{leaf}" for root, leaves in ROOTS.items() for leaf in leaves]
RISER = "view/dark"
FOUND = "<script>alert('found')</script>"
UNLISTED = "another feature"
CAMPAIGNS = ("desktop", "phone")
GROUPS = '[analyzer.groups]\nediting = {prefix = "editor/"}\nsharing = {items = ["share/link", "share/mail"]}\n'


def looked_at(root: Path, days: int, clients: int) -> Site:
    """Make it: on the last day RISER has three times its share in the first campaign, and no other listed item changed.

    Args:
        root: an empty directory.
        days: windows with results.
        clients: reports of each campaign each day, about.
    """
    site = Site(root, tail=GROUPS)
    listed = write_lines(root / "features.txt", ITEMS)
    for name in CAMPAIGNS:
        options = {"mechanism": "ss", "epsilon": 4.0, "dictionary": listed, "discovery": 1.0, "min_batch": FLOOR}
        path = site.add(name, "--discovery-counts", **options)
        for day in range(days):
            collect(site.store, path, values(clients, rise=name == CAMPAIGNS[0] and day == days - 1), day=day)
    for day in range(days):
        site.run(day + 1.1, sure=True)
    done(
        "ledger",
        "set",
        "--ledger",
        site.root / "ledger.db",
        "--campaign",
        CAMPAIGNS[0],
        "--epsilon",
        100,
        "--delta",
        1e-6,
    )
    return site


def values(clients: int, *, rise: bool) -> list[str]:
    """Return what the clients of a day send: shares fall from item to item, the riser's is that of the fourth."""
    weights = {item: 1.0 / (place + 2) for place, item in enumerate(ITEMS)}
    weights[RISER] = 0.15 if not rise else 0.45
    # So that no other share changes.
    weights[UNLISTED] = 0.6 - weights[RISER]
    unit = clients / sum(weights.values())
    sent = [item for item, weight in weights.items() for _ in range(round(weight * unit))]
    return [*sent, *[FOUND] * (clients // 12)]
