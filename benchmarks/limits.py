"""Limits: the time for the cryptography alone, or for reading and writing alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from pathlib import Path

from nacl.public import PrivateKey, PublicKey, SealedBox

from benchmarks.measure import Used, used
from hushcount.threads import available_threads, spans
from hushcount.wire.blocks import Kind, encode_blocks, read_block
from pipelines.files.block_files import find_files

_MOST, _FRESH = 40_000, 2000


def sealing(plain_bytes: int, reports: int) -> Used:
    """Seal boxes of this size with PyNaCl, on all cores, each thread in a plain loop; scale to `reports` boxes."""
    box = SealedBox(PublicKey(PrivateKey.generate().public_key.encode()))
    plain = [os.urandom(plain_bytes)] * min(reports, _MOST)
    return _scaled(used(lambda: _on_all_cores(box.encrypt, plain)), len(plain), reports)


def opening(plain_bytes: int, reports: int) -> Used:
    """Open boxes of this size with PyNaCl, on all cores, each thread in a plain loop; scale to `reports` boxes."""
    key = PrivateKey.generate()
    sealer, box = SealedBox(key.public_key), SealedBox(key)
    # Opening the same box again costs the same.
    few = [sealer.encrypt(os.urandom(plain_bytes)) for _ in range(_FRESH)]
    sealed = list(islice(cycle(few), min(reports, _MOST)))
    return _scaled(used(lambda: _on_all_cores(box.decrypt, sealed)), len(sealed), reports)


def copying(directory: str, kind: Kind, scratch: Path) -> Used:
    """Read a directory of block files with their checksums, and write it again: any shuffler must do that."""

    def copy() -> None:
        for number, file in enumerate(find_files(directory, kind)):
            with open(file.path, "rb") as source:
                blocks = [read_block(source, file.header, index) for index in range(file.header.blocks)]
            records = b"".join(block for block in blocks if block is not None)
            target = scratch / f"copy-{number}"
            with target.open("wb") as sink:
                sink.writelines(encode_blocks(file.header, records))
            target.unlink()

    return used(copy)


def _on_all_cores(work: Callable[[bytes], object], items: list[bytes]) -> None:
    threads = available_threads()

    def loop(part: list[bytes]) -> None:
        for item in part:
            work(item)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(loop, [items[span] for span in spans(len(items), threads)]))


def _scaled(took: Used, boxes: int, reports: int) -> Used:
    return Used(took.cpu * reports / boxes, took.wall * reports / boxes)
