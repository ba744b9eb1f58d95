"""The parts that the OpenAPI document of each service has; its refusals come from the list that the service uses."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from hushcount.senders import Authentication
from service.refusals import MEDIA_TYPE, Reason

Json = dict[str, Any]
CAMPAIGN = "/v1/campaigns/{id}"
TEXT: Json = {"type": "string"}
FILE: Json = {"type": "string", "format": "binary"}
OBJECT: Json = {"application/json": {"type": "object"}}
_ID_SCHEMA = {**TEXT, "pattern": "^[a-z0-9][a-z0-9._-]{0,63}$"}
ID = {"name": "id", "in": "path", "required": True, "description": "The campaign's id.", "schema": _ID_SCHEMA}
EVERYWHERE = ("malformed_request", "wrong_method", "too_slow", "head_too_long", "too_many_connections")
_PROBLEM: Json = {
    "type": "object",
    "description": "Problem details of RFC 9457. detail says what to change.",
    "required": ["type", "title", "status", "detail"],
}
_PROPERTIES: Json = {
    "type": TEXT,
    "title": TEXT,
    "status": {"type": "integer"},
    "detail": TEXT,
    "current_epoch": {"type": ["integer", "null"], "description": "with 409"},
    "most_bytes": {"type": "integer", "description": "with 413"},
}
_SECURITY: Mapping[Authentication, Json] = {"none": {}, "bearer": {"bearer": []}, "client-token": {"client": []}}


def security_of(*ways: Authentication) -> list[Json]:
    """Return what a request must show: one of these ways, or without one, one of all."""
    return [_SECURITY[way] for way in ways or _SECURITY]


def document(title: str, description: str, paths: Json, members: Json) -> Json:
    """Return a document; `members` are those that a problem may have besides those of all services."""
    problem = {**_PROBLEM, "properties": {**_PROPERTIES, **members}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": title,
            "version": "1",
            "description": description,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": {"Problem": problem},
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token of the app, or the operator's for /metrics.",
                },
                "client": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Client-Token",
                    "description": "A random secret of this client, 16 to 256 visible ASCII characters.",
                },
            },
        },
    }


def fingerprint(made: str) -> Json:
    """Return the parameter that names a campaign file; `made` is what was made with it."""
    return {
        "name": "fingerprint",
        "in": "query",
        "required": True,
        "description": f"Fingerprint of the campaign file that the {made} were made with.",
        "schema": {**TEXT, "pattern": "^[0-9a-f]{64}$"},
    }


def about_itself(reasons: Mapping[str, Reason], ready: str) -> Json:
    """Return the paths at which a service tells about itself; `ready` says when it is ready."""
    return {
        "/healthz": {"get": get("healthz", "The process runs.", _fields(alive={"type": "boolean"}), reasons)},
        "/readyz": {"get": _readiness(reasons, ready)},
        "/metrics": {"get": {**_metrics(reasons), "security": security_of("bearer")}},
        "/openapi.json": {"get": get("openapi", "This document.", OBJECT, reasons)},
    }


def _metrics(reasons: Mapping[str, Reason]) -> Json:
    told = "Metrics for Prometheus, if the operator set a token for them, and to whoever shows it."
    return get("metrics", told, {"text/plain": TEXT}, reasons, (*EVERYWHERE, "unauthorised", "not_found"))


def get(
    name: str, description: str, content: Json, reasons: Mapping[str, Reason], refused: Collection[str] = EVERYWHERE
) -> Json:
    """Describe a route; `content` has the schema of each media type, `refused` the names of its refusals."""
    schemas = {media_type: {"schema": schema} for media_type, schema in content.items()}
    found = {"200": {"description": description, "content": schemas}, **refusals(reasons, refused)}
    return {"operationId": f"get_{name}", "summary": description, "responses": found}


def _fields(**properties: Json) -> Json:
    """Describe a JSON object with these members."""
    return {"application/json": {"type": "object", "required": list(properties), "properties": properties}}


def refusals(reasons: Mapping[str, Reason], names: Collection[str]) -> Json:
    """Describe the answers with these refusals, by status."""
    named = [reason for reason in reasons.values() if reason.name in names]
    answers: Json = {}
    for status in sorted({reason.status for reason in named}):
        told = "; ".join(f"{reason.title} ({reason.name})" for reason in named if reason.status == status)
        content = {MEDIA_TYPE.decode(): {"schema": {"$ref": "#/components/schemas/Problem"}}}
        answers[str(status)] = {"description": told, "content": content}
        if status in (429, 503):
            answers[str(status)]["headers"] = {"Retry-After": {"schema": {"type": "integer"}}}
    return answers


def _readiness(reasons: Mapping[str, Reason], ready: str) -> Json:
    content = _fields(ready={"type": "boolean"}, faults={"type": "array", "items": TEXT})
    described = get("readyz", ready, content, reasons)
    refused = described["responses"]["503"]
    refused["description"] = f"Not ready, or: {refused['description']}"
    refused["content"] |= described["responses"]["200"]["content"]
    return described
