"""Load a command: meanwhile a signal ends the process at once, and a missing library is reported in one sentence."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def loading() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the process silently while a block imports and parses: no work has begun yet.

    A process that a shell started in the background still ignores Ctrl-C.

    Raises:
        SystemExit: a library is not installed; one sentence names it.
    """
    main = threading.current_thread() is threading.main_thread()
    heard = [number for number in _SIGNALS if main and signal.getsignal(number) is signal.default_int_handler]
    for number in heard:
        signal.signal(number, signal.SIG_DFL)
    try:
        yield
    except ModuleNotFoundError as error:
        sys.exit(
            f"error: the hushcount command needs {error.name}: in a checkout, pip install ./hushcount ./sealed_lanes ."
        )
    finally:
        for number in heard:
            signal.signal(number, signal.default_int_handler)
