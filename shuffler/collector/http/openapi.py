"""The interface as an OpenAPI document; its refusals come from the list that the collector uses."""

from __future__ import annotations

import json
import sys

from hushcount.senders import Authentication
from service.openapi import (
    CAMPAIGN,
    EVERYWHERE,
    FILE,
    ID,
    OBJECT,
    TEXT,
    Json,
    about_itself,
    document,
    fingerprint,
    get,
    refusals,
    security_of,
)
from shuffler.collector.refusals import REASONS

_FINGERPRINT = fingerprint("reports")
_OF_EPOCH: Json = {
    **_FINGERPRINT,
    "required": False,
    "description": "Fingerprint of the campaign file whose dictionary it is; by default the current one.",
}
_TAG = "The ETag of the client's copy."
_IF_NONE_MATCH = {"name": "If-None-Match", "in": "header", "description": _TAG, "schema": TEXT}
_SIGNATURE = "Detached signature of the file, a byte sequence of RFC 8941, if the operator signed it."
_FILE_HEADERS: Json = {
    "ETag": {"schema": TEXT},
    "Cache-Control": {"schema": TEXT},
    "Campaign-Signature": {"schema": TEXT, "description": _SIGNATURE},
}
_MEMBERS: Json = {
    "report_bytes": {"type": "integer", "description": "with 400: length of a sealed report"},
    "most_reports": {"type": "integer", "description": "with 413 or 429: reports of one client in a window"},
}
_OF_CAMPAIGN = (*EVERYWHERE, "unknown_campaign", "not_found", "epoch_not_begun", "campaign_unreadable")
_DICTIONARY = ("unknown_fingerprint", "epoch_closed")


def openapi(*ways: Authentication) -> Json:
    """Return the document with some ways to authorise a request: the collector's own, or for docs/openapi.json all."""
    security = security_of(*ways)
    dictionary = {"application/gzip": FILE}
    paths = {
        f"{CAMPAIGN}/reports": {"parameters": [ID, _FINGERPRINT], "post": _post("reports", security)},
        f"{CAMPAIGN}/discovery": {"parameters": [ID, _FINGERPRINT], "post": _post("discovery", security)},
        CAMPAIGN: {"parameters": [ID], "get": _file("campaign", "The campaign file.", OBJECT)},
        f"{CAMPAIGN}/dictionary": {
            "parameters": [ID, _OF_EPOCH],
            "get": _file("dictionary", "The dictionary of a campaign file.", dictionary, *_DICTIONARY),
        },
        f"{CAMPAIGN}/log": {
            "parameters": [ID],
            "get": _file("log", "Every epoch ever published, the oldest first.", OBJECT, signed=False),
        },
        **about_itself(REASONS, "The collector takes reports and reaches the store."),
    }
    description = (
        "Takes sealed reports and stores them. It cannot open a report, and records neither address nor user agent. "
        "The operator chooses the header that authorises a request."
    )
    return document("Hushcount collector", description, paths, _MEMBERS)


def _post(stream: str, security: list[Json]) -> Json:
    return {
        "operationId": f"send_{stream}",
        "summary": f"Send sealed reports of the stream {stream}.",
        "security": security,
        "requestBody": {
            "required": True,
            "description": "One sealed report, or several in a row; each has the campaign's length.",
            "content": {"application/octet-stream": {"schema": {**FILE, "minLength": 1}}},
        },
        "responses": {
            "202": {"description": "All reports are on the collector's disk. If they are sent again, they count once."},
            **refusals(REASONS, REASONS),
        },
    }


def _file(name: str, description: str, content: Json, *reasons: str, signed: bool = True) -> Json:
    described = get(name, description, content, REASONS, (*_OF_CAMPAIGN, *reasons))
    headers = {key: value for key, value in _FILE_HEADERS.items() if signed or key != "Campaign-Signature"}
    described["responses"]["200"]["headers"] = headers
    described["responses"]["304"] = {"description": "The client's copy is up to date.", "headers": headers}
    return {**described, "parameters": [_IF_NONE_MATCH]}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(openapi(), indent=2) + "\n")
