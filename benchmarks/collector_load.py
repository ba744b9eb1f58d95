"""Send posts to a collector at a fixed rate, and time each post. The process is light: the collector shares its cores.

A request's time begins when the request was due. So if the collector stalls, all requests that waited count as slow.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sys
import time
from typing import cast

import numpy as np
import uvloop

_POOL = 64
_TICK = 0.001
_PATIENCE = 30.0


class _Connection(asyncio.Protocol):
    """One keep-alive connection: the requests without an answer yet, and the times of the answered ones."""

    def __init__(self, seconds: list[float], statuses: dict[str, int]) -> None:
        self._due: list[float] = []
        self._rest = b""
        self._seconds = seconds
        self._statuses = statuses
        self._transport = asyncio.Transport()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def send(self, request: bytes, due: float) -> None:
        self._due.append(due)
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        # An acknowledgement has no body. A refusal has a body, which is read here as a part of the next head.
        *heads, self._rest = (self._rest + data).split(b"\r\n\r\n")
        now = time.perf_counter()
        for head in heads:
            start = head.find(b"HTTP/1.1 ")
            if start >= 0:
                status = head[start + 9 : start + 12].decode()
                self._statuses[status] = self._statuses.get(status, 0) + 1
                self._seconds.append(now - self._due.pop(0))


async def load(
    port: int, path: str, body_bytes: int, rate: float, seconds: float, connections: int
) -> dict[str, float]:
    """Send `rate * seconds` posts of random bytes and return the figures."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/octet-stream\r\nContent-Length: {body_bytes}"
    )
    pool = [
        f"{head}\r\nClient-Token: {secrets.token_hex()}\r\n\r\n".encode() + os.urandom(body_bytes) for _ in range(_POOL)
    ]
    times: list[float] = []
    statuses: dict[str, int] = {}
    loop = asyncio.get_running_loop()
    opened = [
        (await loop.create_connection(lambda: _Connection(times, statuses), "127.0.0.1", port))[1]
        for _ in range(connections)
    ]
    total, sent = int(rate * seconds), 0
    cpu, began = time.process_time(), time.perf_counter()
    while sent < total:
        due = min(total, int((time.perf_counter() - began) * rate))
        for number in range(sent, due):
            opened[number % connections].send(pool[number % _POOL], began + number / rate)
        sent = due
        await asyncio.sleep(_TICK)
    ends = time.perf_counter() + _PATIENCE
    while len(times) < total and time.perf_counter() < ends:
        await asyncio.sleep(_TICK)
    wall = time.perf_counter() - began
    middle, high, highest = np.percentile(times, [50, 99, 100]) if times else (0.0, 0.0, 0.0)
    return {
        "sent": total,
        "accepted": statuses.get("202", 0),
        "refused": len(times) - statuses.get("202", 0),
        "per_second": statuses.get("202", 0) / wall,
        "p50_ms": 1e3 * middle,
        "p99_ms": 1e3 * high,
        "longest_ms": 1e3 * highest,
        "client_cpu_us": 1e6 * (time.process_time() - cpu) / total,
    }


if __name__ == "__main__":
    port, path, body_bytes, rate, seconds, connections = sys.argv[1:]
    result = uvloop.run(load(int(port), path, int(body_bytes), float(rate), float(seconds), int(connections)))
    sys.stdout.write(json.dumps(result) + "\n")
