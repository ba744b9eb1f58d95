"""Reasons for which only an issuer refuses a request; the reasons of all services are in `service/refusals.py`."""

from __future__ import annotations

from service.refusals import Reason

WRONG_REQUESTS = Reason("wrong_requests", 400, "The body is not one request for each pass of the day")
NOT_ENTITLED = Reason("not_entitled", 401, "The issuer's rule gives this request no passes")
NO_KEYS = Reason("no_keys", 404, "There are no passes of this day")
ALREADY_ISSUED = Reason("already_issued", 409, "The account has its passes of this day")
RULE_FAILING = Reason("rule_failing", 503, "The issuer's rule cannot be asked")
