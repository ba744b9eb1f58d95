"""The interface as an OpenAPI document; the refusals come from their list, so that none is missing."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from hushcount.campaigns.campaign import GREATEST_EPOCH
from hushcount.senders import Authentication
from shuffler.collector.admission.refusals import MEDIA_TYPE, REASONS

Json = dict[str, Any]
_CAMPAIGN = "/v1/campaigns/{id}"
_ID: Json = {
    "name": "id",
    "in": "path",
    "required": True,
    "description": "The campaign's id.",
    "schema": {"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]{0,63}$"},
}
_EPOCH: Json = {
    "name": "epoch",
    "in": "query",
    "required": True,
    "description": "Epoch of the campaign file that the reports were made with.",
    "schema": {"type": "integer", "minimum": 1, "maximum": GREATEST_EPOCH},
}
_CONDITION: Json = {
    "name": "If-None-Match",
    "in": "header",
    "description": "The ETag of the copy that the client has.",
    "schema": {"type": "string"},
}
_SECURITY: Mapping[Authentication, Json] = {"none": {}, "bearer": {"bearer": []}, "client-token": {"client": []}}
_TEXT: Json = {"schema": {"type": "string"}}
_FILE_HEADERS: Json = {
    "ETag": _TEXT,
    "Cache-Control": _TEXT,
    "Campaign-Signature": {
        **_TEXT,
        "description": "Detached signature of the file, a byte sequence of RFC 8941, if the operator made one.",
    },
}
_EVERYWHERE = ("malformed_request", "wrong_method", "too_slow", "head_too_long", "too_many_connections")
_OF_CAMPAIGN = (*_EVERYWHERE, "unknown_campaign", "not_found", "epoch_not_begun", "campaign_unreadable")


def openapi(*ways: Authentication) -> Json:
    """Return the document, for /openapi.json with the way to authorise a request, for docs/openapi.json with each."""
    security = [_SECURITY[way] for way in ways or _SECURITY]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Hushcount collector",
            "version": "1",
            "description": "Takes sealed reports and keeps them. It cannot open a report, and writes neither address "
            "nor user agent. Which header authorises a request is the operator's choice.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": {
            f"{_CAMPAIGN}/reports": {"parameters": [_ID, _EPOCH], "post": _post("reports", security)},
            f"{_CAMPAIGN}/discovery": {"parameters": [_ID, _EPOCH], "post": _post("discovery", security)},
            _CAMPAIGN: {
                "parameters": [_ID],
                "get": _file("campaign", "The campaign file.", "application/json"),
            },
            f"{_CAMPAIGN}/dictionary": {
                "parameters": [_ID],
                "get": _file("dictionary", "The dictionary of the current campaign file.", "text/plain"),
            },
            "/healthz": {"get": _told("healthz", "The process runs.", "application/json", _facts(alive="boolean"))},
            "/readyz": {"get": _readiness()},
            "/metrics": {"get": _told("metrics", "Metrics for Prometheus.", "text/plain", {"type": "string"})},
            "/openapi.json": {
                "get": _told("openapi", "This document.", "application/json", {"type": "object"}),
            },
        },
        "components": {
            "schemas": {"Problem": _problem()},
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
    apart = ("malformed_request", "too_slow", "head_too_long", "not_found")
    return {
        "operationId": f"send_{stream}",
        "summary": f"Send sealed reports of the stream {stream}.",
        "security": security,
        "requestBody": {
            "required": True,
            "description": "One sealed report, or several one after another; all of the campaign's length.",
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary", "minLength": 1}}},
        },
        "responses": {
            "202": {"description": "All of the reports are on the collector's disk. Sent again, they count once."},
            **_refusals(*(name for name in REASONS if name not in apart), *apart),
        },
    }


def _file(name: str, description: str, media_type: str) -> Json:
    content = {media_type: {"schema": {"type": "string" if media_type == "text/plain" else "object"}}}
    if name == "campaign":
        content["application/toml"] = {"schema": {"type": "string"}}
    else:
        content["application/gzip"] = {"schema": {"type": "string", "format": "binary"}}
    return {
        "operationId": f"get_{name}",
        "summary": description,
        "parameters": [_CONDITION],
        "responses": {
            "200": {"description": description, "headers": _FILE_HEADERS, "content": content},
            "304": {"description": "The client's copy is current.", "headers": _FILE_HEADERS},
            **_refusals(*_OF_CAMPAIGN),
        },
    }


def _told(name: str, description: str, media_type: str, schema: Json) -> Json:
    return {
        "operationId": f"get_{name}",
        "summary": description,
        "responses": {
            "200": {"description": description, "content": {media_type: {"schema": schema}}},
            **_refusals(*_EVERYWHERE),
        },
    }


def _readiness() -> Json:
    told = _told("readyz", "Reports are taken and reach the store.", "application/json", _readiness_schema())
    answers = told["responses"]
    answers["503"]["description"] = f"Not ready, or: {answers['503']['description']}"
    answers["503"]["content"]["application/json"] = {"schema": _readiness_schema()}
    return told


def _readiness_schema() -> Json:
    return {
        "type": "object",
        "required": ["ready", "faults"],
        "properties": {"ready": {"type": "boolean"}, "faults": {"type": "array", "items": {"type": "string"}}},
    }


def _facts(**types: str) -> Json:
    return {
        "type": "object",
        "required": list(types),
        "properties": {name: {"type": kind} for name, kind in types.items()},
    }


def _refusals(*names: str) -> Json:
    by_status = defaultdict(list)
    for name in names:
        by_status[REASONS[name].status].append(REASONS[name])
    answers: Json = {}
    for status, reasons in sorted(by_status.items()):
        answers[str(status)] = {
            "description": "; ".join(f"{reason.title} ({reason.name})" for reason in reasons),
            "content": {MEDIA_TYPE.decode(): {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        if status in (429, 503):
            answers[str(status)]["headers"] = {"Retry-After": {"schema": {"type": "integer"}}}
    return answers


def _problem() -> Json:
    return {
        "type": "object",
        "description": "Problem details of RFC 9457. detail says what to change.",
        "required": ["type", "title", "status", "detail"],
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "current_epoch": {"type": ["integer", "null"], "description": "with 409"},
            "report_bytes": {"type": "integer", "description": "with 400: length of a sealed report"},
            "most_bytes": {"type": "integer", "description": "with 413"},
            "most_reports": {"type": "integer", "description": "with 413 or 429: of one client in a window"},
        },
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(openapi(), indent=2) + "\n")
