"""Reasons for which only an evaluator refuses a request; the reasons of all services are in `service/refusals.py`."""

from __future__ import annotations

from service.refusals import Reason

WRONG_EVALUATIONS = Reason("wrong_evaluations", 400, "The body is not as many whole elements as one request may hold")
BAD_ELEMENT = Reason("bad_element", 400, "A part of the body is no element of the group")
NO_EVALUATOR = Reason("no_evaluator", 404, "The campaign asks no evaluator")
KEY_DESTROYED = Reason("key_destroyed", 410, "The key of the campaign file is destroyed")
TOO_MANY_EVALUATIONS_AT_ONCE = Reason(
    "too_many_evaluations_at_once", 413, "The body asks for more evaluations than a client may get"
)
TOO_MANY_EVALUATIONS = Reason("too_many_evaluations", 429, "The client has had all its evaluations of this window")
KEY_UNREADABLE = Reason("key_unreadable", 503, "The key of the campaign file is not here, or cannot be read")
