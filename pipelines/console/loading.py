"""Load a command; during loading a signal ends the process at once, and one sentence reports a missing library."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def loading() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the process silently in a block that imports and parses, before any work begins.

    A process that a shell started in the background still ignores Ctrl-C.

    Raises:
        SystemExit: a library is not installed; the exit's message names the library.
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
