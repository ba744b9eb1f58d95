"""The interface as an OpenAPI document; its refusals come from the list that the collector uses."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping
from typing import Any

from hushcount.senders import Authentication
from shuffler.collector.admission.refusals import MEDIA_TYPE, REASONS

Json = dict[str, Any]
_CAMPAIGN = "/v1/campaigns/{id}"
_TEXT: Json = {"type": "string"}
_FILE: Json = {"type": "string", "format": "binary"}
_ID_SCHEMA = {**_TEXT, "pattern": "^[a-z0-9][a-z0-9._-]{0,63}$"}
_ID = {"name": "id", "in": "path", "required": True, "description": "The campaign's id.", "schema": _ID_SCHEMA}
_FINGERPRINT: Json = {
    "name": "fingerprint",
    "in": "query",
    "required": True,
    "description": "Fingerprint of the campaign file that the reports were made with.",
    "schema": {**_TEXT, "pattern": "^[0-9a-f]{64}$"},
}
_OF_EPOCH: Json = {
    **_FINGERPRINT,
    "required": False,
    "description": "Fingerprint of the campaign file whose dictionary it is; by default the current one.",
}
_TAG = "The ETag of the client's copy."
_IF_NONE_MATCH = {"name": "If-None-Match", "in": "header", "description": _TAG, "schema": _TEXT}
_SIGNATURE = "Detached signature of the file, a byte sequence of RFC 8941, if the operator signed it."
_FILE_HEADERS: Json = {
    "ETag": {"schema": _TEXT},
    "Cache-Control": {"schema": _TEXT},
    "Campaign-Signature": {"schema": _TEXT, "description": _SIGNATURE},
}
_PROBLEM: Json = {
    "type": "object",
    "description": "Problem details of RFC 9457. detail says what to change.",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": _TEXT,
        "title": _TEXT,
        "status": {"type": "integer"},
        "detail": _TEXT,
        "current_epoch": {"type": ["integer", "null"], "description": "with 409"},
        "report_bytes": {"type": "integer", "description": "with 400: length of a sealed report"},
        "most_bytes": {"type": "integer", "description": "with 413"},
        "most_reports": {"type": "integer", "description": "with 413 or 429: reports of one client in a window"},
    },
}
_SECURITY: Mapping[Authentication, Json] = {"none": {}, "bearer": {"bearer": []}, "client-token": {"client": []}}
_EVERYWHERE = ("malformed_request", "wrong_method", "too_slow", "head_too_long", "too_many_connections")
_OF_CAMPAIGN = (*_EVERYWHERE, "unknown_campaign", "not_found", "epoch_not_begun", "campaign_unreadable")
_DICTIONARY = ("unknown_fingerprint", "epoch_closed")
_OBJECT: Json = {"application/json": {"type": "object"}}


def openapi(*ways: Authentication) -> Json:
    """Return the document with some ways to authorise a request: the collector's own, or for docs/openapi.json all."""
    security = [_SECURITY[way] for way in ways or _SECURITY]
    dictionary = {"text/plain": _TEXT, "application/gzip": _FILE}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Hushcount collector",
            "version": "1",
            "description": "Takes sealed reports and stores them. It cannot open a report, and records neither address "
            "nor user agent. The operator chooses the header that authorises a request.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": {
            f"{_CAMPAIGN}/reports": {"parameters": [_ID, _FINGERPRINT], "post": _post("reports", security)},
            f"{_CAMPAIGN}/discovery": {"parameters": [_ID, _FINGERPRINT], "post": _post("discovery", security)},
            _CAMPAIGN: {"parameters": [_ID], "get": _file("campaign", "The campaign file.", _OBJECT)},
            f"{_CAMPAIGN}/dictionary": {
                "parameters": [_ID, _OF_EPOCH],
                "get": _file("dictionary", "The dictionary of a campaign file.", dictionary, *_DICTIONARY),
            },
            f"{_CAMPAIGN}/log": {
                "parameters": [_ID],
                "get": _file("log", "Every epoch ever published, the oldest first.", _OBJECT, signed=False),
            },
            "/healthz": {"get": _get("healthz", "The process runs.", _object(alive={"type": "boolean"}))},
            "/readyz": {"get": _readiness()},
            "/metrics": {"get": _get("metrics", "Metrics for Prometheus.", {"text/plain": _TEXT})},
            "/openapi.json": {"get": _get("openapi", "This document.", _OBJECT)},
        },
        "components": {
            "schemas": {"Problem": _PROBLEM},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "A token of the app."},
                "client": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Client-Token",
                    "description": "A random secret of this client, 16 to 256 visible ASCII characters.",
                },
            },
        },
    }


def _post(stream: str, security: list[Json]) -> Json:
    return {
        "operationId": f"send_{stream}",
        "summary": f"Send sealed reports of the stream {stream}.",
        "security": security,
        "requestBody": {
            "required": True,
            "description": "One sealed report, or several in a row; each has the campaign's length.",
            "content": {"application/octet-stream": {"schema": {**_FILE, "minLength": 1}}},
        },
        "responses": {
            "202": {"description": "All reports are on the collector's disk. If they are sent again, they count once."},
            **_refusals(REASONS),
        },
    }


def _file(name: str, description: str, content: Json, *reasons: str, signed: bool = True) -> Json:
    described = _get(name, description, content, (*_OF_CAMPAIGN, *reasons))
    headers = {key: value for key, value in _FILE_HEADERS.items() if signed or key != "Campaign-Signature"}
    described["responses"]["200"]["headers"] = headers
    described["responses"]["304"] = {"description": "The client's copy is up to date.", "headers": headers}
    return {**described, "parameters": [_IF_NONE_MATCH]}


def _readiness() -> Json:
    content = _object(ready={"type": "boolean"}, faults={"type": "array", "items": _TEXT})
    described = _get("readyz", "The collector takes reports and reaches the store.", content)
    refused = described["responses"]["503"]
    refused["description"] = f"Not ready, or: {refused['description']}"
    refused["content"] |= described["responses"]["200"]["content"]
    return described


def _get(name: str, description: str, content: Json, reasons: Collection[str] = _EVERYWHERE) -> Json:
    """Describe a route; `content` has the schema of each media type."""
    schemas = {media_type: {"schema": schema} for media_type, schema in content.items()}
    return {
        "operationId": f"get_{name}",
        "summary": description,
        "responses": {"200": {"description": description, "content": schemas}, **_refusals(reasons)},
    }


def _object(**properties: Json) -> Json:
    return {"application/json": {"type": "object", "required": list(properties), "properties": properties}}


def _refusals(names: Collection[str]) -> Json:
    reasons = [reason for reason in REASONS.values() if reason.name in names]
    answers: Json = {}
    for status in sorted({reason.status for reason in reasons}):
        told = "; ".join(f"{reason.title} ({reason.name})" for reason in reasons if reason.status == status)
        content = {MEDIA_TYPE.decode(): {"schema": {"$ref": "#/components/schemas/Problem"}}}
        answers[str(status)] = {"description": told, "content": content}
        if status in (429, 503):
            answers[str(status)]["headers"] = {"Retry-After": {"schema": {"type": "integer"}}}
    return answers


if __name__ == "__main__":
    sys.stdout.write(json.dumps(openapi(), indent=2) + "\n")
