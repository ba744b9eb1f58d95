"""Test that a store refuses to replace a file, even if many writers put one name at once: a log relies on that.

One known gateway answers such requests with refusals, but lets several of them write. The gateway's answers do not show
that it wrote several times.
"""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from threading import Barrier

from hushcount.errors import HushcountError
from pipelines.files import storage
from pipelines.files.storage_errors import told

WRITERS = 16


def fault(folder: str) -> str:
    """Let many writers put one name in a folder at once, then one more writer; return the fault, or an empty text.

    The file that the writers put is removed.
    """
    path = storage.join(folder, f".probe-{uuid.uuid4().hex}")
    start = Barrier(WRITERS)

    def put(number: int) -> bool | Exception:
        start.wait()
        try:
            return storage.put_absent(path, _content(number))
        except (HushcountError, OSError) as error:
            return error

    try:
        with ThreadPoolExecutor(WRITERS) as pool:
            answers = list(pool.map(put, range(WRITERS)))
        for answer in answers:
            if isinstance(answer, Exception):
                return told(answer)
        winners = [number for number, answer in enumerate(answers) if answer]
        if len(winners) != 1:
            return f"{WRITERS} writers put one file at once, and {len(winners)} were told that they did, must be 1"
        (winner,) = winners
        if storage.put_absent(path, _content(WRITERS)):
            return "a second file of one name was accepted, must be refused"
        if storage.read_if_there(path) != _content(winner):
            return f"{WRITERS} writers put one file at once, and the file is not from the writer that was told so"
        return ""
    except (HushcountError, OSError) as error:
        return told(error)
    finally:
        with suppress(HushcountError, OSError):
            storage.remove(path)


@cache
def require(folder: str) -> None:
    """Raise HushcountError if a folder is unfit for a log; a folder that passed the test is not tested again."""
    if wrong := fault(folder):
        raise HushcountError(
            f"no log can be kept in {folder}: {wrong}; put the store on another file system or service"
        )


def _content(number: int) -> bytes:
    return b"%d\n" % number
