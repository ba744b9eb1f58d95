"""Counts of what accounts were given: durable, exact under threads, and without names."""

from __future__ import annotations

import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from multiprocessing import get_context
from pathlib import Path

from issuer.issued import FILE, Issued

DAY = date(2026, 11, 28)


def take(issued: Issued, request: bytes, most: int = 3) -> bool:
    return issued.may_have("somebody", "words", DAY, request, most, DAY)


def take_and_die(directory: Path) -> None:
    """Note a request, and end as by a power cut of the process: nothing is closed."""
    assert take(Issued(directory), b"first", 1)
    os._exit(0)


def test_a_process_killed_before_its_answer_answers_the_same_request_later(tmp_path: Path) -> None:
    process = get_context("spawn").Process(target=take_and_die, args=(tmp_path,))
    process.start()
    process.join(120)
    assert process.exitcode == 0
    later = Issued(tmp_path)
    assert take(later, b"first", 1)
    assert not take(later, b"second", 1)


def test_threads_on_two_connections_get_exactly_the_allowed_number(tmp_path: Path) -> None:
    several = (Issued(tmp_path), Issued(tmp_path))
    with ThreadPoolExecutor(16) as pool:
        said = list(pool.map(lambda number: take(several[number % 2], b"%d" % number), range(32)))
    assert sum(said) == 3


def test_every_connection_waits_for_the_disk_and_overwrites_what_it_deletes(tmp_path: Path) -> None:
    tables = Issued(tmp_path)._open()
    settings = [tables.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "secure_delete")]
    tables.close()
    assert settings == [2, 1]


def test_the_file_is_private_and_has_no_name(tmp_path: Path) -> None:
    assert take(Issued(tmp_path), b"first")
    for path in tmp_path.glob(f"{FILE}*"):
        assert path.stat().st_mode & 0o077 == 0
        assert b"somebody" not in path.read_bytes()
    tables = sqlite3.connect(tmp_path / FILE)
    assert tables.execute("SELECT count(*) FROM issued").fetchone() == (1,)
    tables.close()
