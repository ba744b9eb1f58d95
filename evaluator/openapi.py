"""The interface as an OpenAPI document; its refusals come from the list that the evaluator uses."""

from __future__ import annotations

import json
import sys

from evaluator.refusals import REASONS
from hushcount.discovery.oblivious import ELEMENT_BYTES, MOST_EVALUATIONS, PROOF_BYTES
from hushcount.senders import Authentication
from service.openapi import CAMPAIGN, FILE, ID, Json, about_itself, document, fingerprint, refusals, security_of

_MEMBERS: Json = {
    "element_bytes": {"type": "integer", "description": "with 400: length of an element"},
    "most_evaluations": {"type": "integer", "description": "with 400: of one request; with 413 or 429: in a window"},
}


def openapi(*ways: Authentication, verifier: bool = True) -> Json:
    """Return the document with some ways to authorise a request: the evaluator's own, or for docs/ all.

    Args:
        verifier: whether a bearer token of the analyzer is taken too.
    """
    security = security_of(*ways)
    if verifier and {"bearer": []} not in security:
        security.append({"bearer": []})
    paths = {
        f"{CAMPAIGN}/evaluations": {"parameters": [ID, fingerprint("evaluations")], "post": _post(security)},
        **about_itself(REASONS, "The evaluator has the keys that clients need, and reaches the store."),
    }
    description = (
        "Evaluates blinded elements with the key of a campaign file (RFC 9497, mode VOPRF, ristretto255-SHA512). It "
        "cannot read what is asked, and records neither an element nor an address. The operator chooses the header "
        "that authorises a request; the analyzer shows a bearer token of its own."
    )
    return document("Hushcount evaluator", description, paths, _MEMBERS)


def _post(security: list[Json]) -> Json:
    length = MOST_EVALUATIONS * ELEMENT_BYTES
    elements = {**FILE, "minLength": ELEMENT_BYTES, "maxLength": length}
    answer = {**FILE, "minLength": ELEMENT_BYTES + PROOF_BYTES, "maxLength": length + PROOF_BYTES}
    return {
        "operationId": "ask",
        "summary": "Ask for evaluations of blinded elements.",
        "security": security,
        "requestBody": {
            "required": True,
            "description": f"1 to {MOST_EVALUATIONS} blinded elements of {ELEMENT_BYTES} bytes, one after another.",
            "content": {"application/octet-stream": {"schema": elements}},
        },
        "responses": {
            "200": {
                "description": "As many evaluated elements in the same order, then one proof for all of "
                f"{PROOF_BYTES} bytes: c and s.",
                "content": {"application/octet-stream": {"schema": answer}},
            },
            **refusals(REASONS, REASONS),
        },
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(openapi(), indent=2) + "\n")
