"""The server of hushcount dashboard as a process of its own, on a free port."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.processes import process

PORT = re.compile(r"serving (?:https\S+ at )?(http://\S+);")


@contextmanager
def serving(config: Path, log: Path, *words: str) -> Iterator[str]:
    """Serve the pages of a deployment for a block; the address is yielded, and the log has all that the server says."""
    said = process(
        ["dashboard", "--config", str(config), "--serve", "--port", "0", *words],
        lambda text: PORT.search(" ".join(text.split())) is not None,
        log,
    )
    with said as text:
        found = PORT.search(" ".join(text.split()))
        assert found is not None
        yield found[1]
