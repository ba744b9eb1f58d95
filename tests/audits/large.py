"""The audit of all clients on demand, `make audit`: millions of reports of each mechanism, bounds close to epsilon."""

from __future__ import annotations

import argparse
import sys

from hushcount.many_clients import ManyClients
from hushcount.oracles.catalogue import CATALOGUE
from tests.audits.auditor import Bound, audit
from tests.audits.campaigns import DICTIONARY, EPSILON, VALUES, campaign_of
from tests.audits.looks import audited
from tests.audits.planted import BiasedSubset, FloatingPoint, FunctionOfValue, Overspending
from tests.support.statistics import FAILURE


def clients() -> dict[str, tuple[ManyClients, bool]]:
    """Return every client by name, and whether it has a bug that must be found."""
    made: dict[str, tuple[ManyClients, bool]] = {}
    for name in CATALOGUE:
        made[name] = ManyClients(campaign_of(name), dictionary=DICTIONARY), False
    for name in CATALOGUE:
        made[f"{name} at 1.3 epsilon"] = Overspending(campaign_of(name), dictionary=DICTIONARY), True
    unlisted = campaign_of("ais", listed=False)
    made["ais, open domain"] = ManyClients(unlisted), False
    made["ais, open domain, floating point"] = FloatingPoint(unlisted), True
    made["ais, function of the value"] = FunctionOfValue(campaign_of("ais"), dictionary=DICTIONARY), True
    made["ss, biased subset"] = BiasedSubset(campaign_of("ss"), dictionary=DICTIONARY), True
    return made


def main() -> int:
    """Print a line for each client; the status is 1 when one is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=4_000_000, help="of each client, half of them for each input")
    reports = parser.parse_args().reports
    everyone, wrong = clients(), 0
    failure = FAILURE / len(everyone)
    print(f"{'client':34} {'stated':>7} {'at least':>9} {'reports':>10}  by look")
    for name, (client, planted) in everyone.items():
        bound: Bound = audit(*audited(client, VALUES, reports // 2), failure)
        as_it_must = (bound.epsilon > EPSILON) == planted
        wrong += not as_it_must
        mark = ("CAUGHT" if planted else "") if as_it_must else "WRONG"
        stated = client.campaign.require_frequency().epsilon
        print(f"{name:34} {stated:7.4f} {bound.epsilon:9.4f} {bound.reports:10}  {bound.look:13} {mark}", flush=True)
    print(f"probability that any bound is above the true loss: at most {FAILURE:g}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
