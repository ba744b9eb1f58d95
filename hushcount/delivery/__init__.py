"""Delivery: reports from an app to a collector, with a queue on the device. Start with `Sender`.

`import hushcount` does not import this package, because the package needs SQLite and TLS.
"""

from hushcount.delivery.events import Delivery, Event
from hushcount.delivery.passes import Issuer
from hushcount.delivery.queue import QueueFull
from hushcount.delivery.reported import Reported
from hushcount.delivery.sender import Sender
from hushcount.delivery.site import Site

__all__ = ["Delivery", "Event", "Issuer", "QueueFull", "Reported", "Sender", "Site"]
