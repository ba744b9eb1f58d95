"""httpx for tests: a shared machine pauses, so an answer may take a minute, not httpx's five seconds."""

from __future__ import annotations

from functools import partial

import httpx

_SECONDS = 60
Client = partial(httpx.Client, timeout=_SECONDS)
AsyncClient = partial(httpx.AsyncClient, timeout=_SECONDS)
get = partial(httpx.get, timeout=_SECONDS)
post = partial(httpx.post, timeout=_SECONDS)
