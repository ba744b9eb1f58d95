"""The random draw for each order of a release.

The auxiliary server's workers load this module, and none of the analyzer's modules.
"""

from __future__ import annotations

from dataclasses import dataclass

from apache_beam.transforms.window import BoundedWindow

from hushcount.draws import Draw
from keys.directories import KeyReference
from pipelines.files.orders import Orders, number_of


@dataclass(frozen=True)
class DrawOf:
    """Returns the random draw for the order in a window."""

    key: KeyReference
    orders: Orders

    def __call__(self, window: BoundedWindow) -> Draw | None:
        order = self.orders(number_of(window))
        return None if order is None else Draw(self.key, order.draw)
