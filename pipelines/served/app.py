"""The read-only server of a deployment's pages, as a plain ASGI application (docs/adr/0049)."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import cast

from hushcount.clock import Clock
from pipelines.files.storage_errors import told
from pipelines.pages.assets import policy
from pipelines.pages.series import Grain
from pipelines.served import answers, pages
from pipelines.served.kept import PATH, Campaigns, Made
from pipelines.served.login import Login, field_of
from service.exchange import App, IncomingBytes, Receive, Scope, Send, answer, read_body
from service.refusals import Headers, Refused

_MOST_FORM_BYTES = 4096
_HTML, _JSON, _TEXT = "text/html; charset=utf-8", "application/json", "text/plain; charset=utf-8"
_PIECE = re.compile(r"pieces/([0-9a-f]{16})/(window|day|week|month)/([0-9]{1,6})")
_IMMUTABLE = "private, max-age=31536000, immutable"


@dataclass(frozen=True)
class Answer:
    """What a request gets."""

    status: int
    kind: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    cache: str = "no-store"


_MISSING = Answer(404, _TEXT, b"there is nothing at this address\n")


def application(campaigns: Campaigns, login: Login, clock: Clock) -> App:
    """Return the ASGI application: GET and HEAD of pages and JSON, and POST of the login form."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            found = await _answer(campaigns, login, clock, scope, headers, receive)
        except Exception as error:
            # The reader sees any exception, because otherwise a failure would have no reason. What may fail comes after
            # the login.
            found = Answer(500, _TEXT, f"error: {told(error)}\n".encode())
        await answer(send, found.status, _fields(found), found.body)

    return app


async def _answer(
    campaigns: Campaigns, login: Login, clock: Clock, scope: Scope, headers: dict[str, str], receive: Receive
) -> Answer:
    path, method = scope["path"], scope["method"]
    if headers.get("host", "") not in login.hosts:
        return Answer(421, _TEXT, b"this host is not served: set address under [dashboard]\n")
    if login.token is not None and path == "/login":
        return await _login(login, method, receive)
    return _refusal(login, method, headers) or await _found(campaigns, clock, path, scope) or _MISSING


def _refusal(login: Login, method: str, headers: dict[str, str]) -> Answer | None:
    if method not in ("GET", "HEAD"):
        return Answer(405, _TEXT, b"only GET and HEAD are served\n", (("Allow", "GET, HEAD"),))
    if login.admits(headers):
        return None
    if login.token is not None and "text/html" in headers.get("accept", ""):
        return Answer(303, _TEXT, b"", (("Location", "/login"),))
    challenge = (("WWW-Authenticate", "Bearer"),) if login.token is not None else ()
    return Answer(401, _TEXT, b"log in first\n", challenge)


async def _found(campaigns: Campaigns, clock: Clock, path: str, scope: Scope) -> Answer | None:
    names = campaigns.names()
    if path == "/" and len(names) == 1:
        return Answer(303, _TEXT, b"", (("Location", f"{PATH}{names[0]}"),))
    if path == "/":
        return Answer(200, _HTML, await asyncio.to_thread(pages.index, campaigns, clock.now()))
    if path == "/v1/campaigns":
        return Answer(200, _JSON, answers.campaign_list(names))
    for prefix, answered in ((PATH, _page), ("/v1/campaigns/", _data)):
        name, _, rest = path.removeprefix(prefix).partition("/")
        if path.startswith(prefix) and name in names:
            return await answered(campaigns, name, rest, scope)
    return None


async def _login(login: Login, method: str, receive: Receive) -> Answer:
    if method != "POST":
        return Answer(200, _HTML, pages.login(failed=False))
    form = await _form(receive)
    cookie = None if form is None else login.cookie(form)
    if cookie is None:
        return Answer(403, _HTML, pages.login(failed=True))
    return Answer(303, _TEXT, b"", (("Location", "/"), ("Set-Cookie", cookie)))


async def _page(campaigns: Campaigns, name: str, rest: str, _: Scope) -> Answer | None:
    if rest == "version":
        return Answer(200, _TEXT, (await campaigns.version(name)).encode())
    if not rest:
        return Answer(200, _HTML, (await campaigns.made(name)).html)
    if (asked := _PIECE.fullmatch(rest)) is None:
        return None
    made = await campaigns.made(name)
    series = made.all_series.get(cast(Grain, asked[2]))
    if series is None or made.pieces != asked[1]:
        return None
    piece = await asyncio.to_thread(series.piece, int(asked[3]))
    return Answer(200, "application/octet-stream", piece, cache=_IMMUTABLE) if piece else None


async def _data(campaigns: Campaigns, name: str, rest: str, scope: Scope) -> Answer | None:
    made = await campaigns.made(name)
    return None if (found := _asked(name, made, rest, scope)) is None else Answer(200, _JSON, found)


def _asked(name: str, made: Made, rest: str, scope: Scope) -> bytes | None:
    match rest.split("/"):
        case [""]:
            return answers.campaign(name, made)
        case ["charts", key]:
            return answers.chart(made, key)
        case ["items"]:
            return answers.item(made, field_of(scope["query_string"], "item"))
    return None


async def _form(receive: Receive) -> bytes | None:
    """Return a submitted form; None: it is too long."""
    try:
        return await read_body(receive, _MOST_FORM_BYTES, IncomingBytes(_MOST_FORM_BYTES))
    except Refused:
        return None


def _fields(found: Answer) -> Headers:
    fields = (
        ("Content-Type", found.kind),
        ("Content-Security-Policy", f"{policy(served=True)}; frame-ancestors 'none'"),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("Cache-Control", found.cache),
        *found.headers,
    )
    return tuple((name.encode(), value.encode("latin-1")) for name, value in fields)
