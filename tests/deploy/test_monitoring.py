"""deploy/monitoring: each rule fires on its fault and on nothing else, and names only what the services print."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from evaluator.metrics import Metrics as EvaluatorMetrics
from pipelines.alerts.telling import tell
from pipelines.metrics.looks import Looks
from shuffler.collector.metrics import Metrics as CollectorMetrics
from tests.deploy.conftest import DEPLOY, TOOLS
from tests.support.collecting import collect
from tests.support.jobs import done
from tests.support.site import FLOOR, Site, at, values

RULES = DEPLOY / "monitoring" / "rules.yaml"
DASHBOARD = json.loads((DEPLOY / "monitoring" / "dashboard.json").read_text())
HOURS = 8
"""What the series of a case last; each alert is looked for at their end."""
STEP = 5
"""Minutes between two values, and between two looks at the rules."""
DAY = 86_400
Series = Mapping[str, str]
"""Values by series, in promtool's notation: 0+2x3 is 0 2 4 6, and 1x3 is 1 1 1 1."""


def lasting(value: float | str) -> str:
    return f"{value}x{HOURS * 60 // STEP}"


def since(minutes: int, before: float | str, after: float | str) -> str:
    """Return values that change so long before the end."""
    return f"{before}x{(HOURS * 60 - minutes) // STEP - 1} {after}x{minutes // STEP}"


COLLECTOR, EVALUATOR, RUN, CAMPAIGN = (
    '{instance="c:8080", job="hushcount-collector"}',
    '{instance="e:8081", job="hushcount-evaluator"}',
    '{run="shuffler"}',
    '{run="shuffler", campaign="words"}',
)
STREAM = '{run="shuffler", campaign="words", stream="reports"}'
LATE = 'hushcount_run_collected_reports{run="shuffler", campaign="words", stream="reports", state="too_late"}'
GOOD: Series = {
    f"up{COLLECTOR}": since(0, 1, 0),
    f"up{EVALUATOR}": since(0, 1, 0),
    f"hushcount_collector_ready{COLLECTOR}": since(0, 1, 0),
    f"hushcount_collector_free_bytes{COLLECTOR}": lasting(5e10),
    f"hushcount_collector_journal_failures_total{COLLECTOR}": since(30, 0, 1),
    f"hushcount_collector_reports_waiting{COLLECTOR}": lasting(40_000),
    f"hushcount_collector_store_failures_total{COLLECTOR}": since(5, 0, 1),
    f"hushcount_collector_local_upload_failures_total{COLLECTOR}": lasting(0),
    f"hushcount_collector_pending_uploads{COLLECTOR}": since(50, 0, 2),
    f"hushcount_collector_damaged_frames_total{COLLECTOR}": lasting(0),
    f"hushcount_collector_damaged_counts_total{COLLECTOR}": lasting(0),
    f"hushcount_evaluator_ready{EVALUATOR}": since(0, 1, 0),
    f"hushcount_evaluator_failed_writes_total{EVALUATOR}": lasting(0),
    f"hushcount_evaluator_store_failures_total{EVALUATOR}": since(40, 0, 1),
    f"hushcount_run_last_look_timestamp_seconds{RUN}": lasting(HOURS * 3600 - 3000),
    f"hushcount_run_problems{RUN}": since(20, 0, 1),
    f"hushcount_run_oldest_undone_window_end_timestamp_seconds{CAMPAIGN}": lasting((HOURS - 5) * 3600),
    f"hushcount_run_differences{CAMPAIGN}": since(20, 0, 1),
    f"hushcount_run_last_chance_reports{STREAM}": lasting(0),
    # What was too late yesterday is no news.
    LATE: since(400, 0, 60),
    # The budget renews before it is used up.
    f"hushcount_run_ledger_windows_left{CAMPAIGN}": lasting(5),
    f"hushcount_run_ledger_windows_until_renewal{CAMPAIGN}": lasting(5),
    'hushcount_run_ledger_windows_left{run="shuffler", campaign="other"}': lasting(7),
    'hushcount_run_key_expires_timestamp_seconds{run="shuffler", campaign="words", role="analyzer"}': lasting(15 * DAY),
    f"hushcount_run_alerts_unsent{RUN}": since(50, 0, 1),
    f"hushcount_run_alerts_given_up{RUN}": lasting(0),
}
"""Nothing is wrong, or not for long enough to tell anybody."""
GONE = "_"
"""In place of values: the series is not there."""
FAULTS: tuple[tuple[str, Series], ...] = (
    ("HushcountCollectorAbsent", {f"up{COLLECTOR}": since(10, 1, 0)}),
    ("HushcountCollectorAbsent", {f"up{COLLECTOR}": GONE}),
    ("HushcountCollectorNotReady", {f"hushcount_collector_ready{COLLECTOR}": since(10, 1, 0)}),
    ("HushcountCollectorDiskLow", {f"hushcount_collector_free_bytes{COLLECTOR}": since(10, 5e10, 9e8)}),
    ("HushcountCollectorJournalFails", {f"hushcount_collector_journal_failures_total{COLLECTOR}": since(5, 3, 4)}),
    ("HushcountCollectorJournalBehind", {f"hushcount_collector_reports_waiting{COLLECTOR}": since(5, 0, 60_000)}),
    ("HushcountCollectorStoreFails", {f"hushcount_collector_store_failures_total{COLLECTOR}": since(30, 0, "0+1")}),
    (
        "HushcountCollectorStoreFails",
        {f"hushcount_collector_local_upload_failures_total{COLLECTOR}": since(30, 0, "0+1")},
    ),
    ("HushcountCollectorUploadsWait", {f"hushcount_collector_pending_uploads{COLLECTOR}": since(70, 0, 2)}),
    ("HushcountCollectorJournalDamaged", {f"hushcount_collector_damaged_frames_total{COLLECTOR}": lasting(1)}),
    ("HushcountCollectorJournalDamaged", {f"hushcount_collector_damaged_counts_total{COLLECTOR}": lasting(1)}),
    ("HushcountEvaluatorAbsent", {f"up{EVALUATOR}": since(10, 1, 0)}),
    ("HushcountEvaluatorNotReady", {f"hushcount_evaluator_ready{EVALUATOR}": since(10, 1, 0)}),
    ("HushcountEvaluatorWritesFail", {f"hushcount_evaluator_failed_writes_total{EVALUATOR}": since(30, 0, "0+1")}),
    ("HushcountEvaluatorWritesFail", {f"hushcount_evaluator_store_failures_total{EVALUATOR}": since(30, 0, "0+1")}),
    ("HushcountRunDoesNotLook", {f"hushcount_run_last_look_timestamp_seconds{RUN}": lasting((HOURS - 1) * 3600 - 60)}),
    ("HushcountRunUnknown", {f"hushcount_run_last_look_timestamp_seconds{RUN}": GONE}),
    ("HushcountRunHasProblems", {f"hushcount_run_problems{RUN}": since(40, 0, 2)}),
    (
        "HushcountWindowNotDone",
        {f"hushcount_run_oldest_undone_window_end_timestamp_seconds{CAMPAIGN}": lasting((HOURS - 6) * 3600 - 60)},
    ),
    ("HushcountNumbersDiffer", {f"hushcount_run_differences{CAMPAIGN}": since(40, 0, 1)}),
    ("HushcountReportsTooLateSoon", {f"hushcount_run_last_chance_reports{STREAM}": since(5, 0, 49)}),
    ("HushcountReportsTooLate", {LATE: since(300, 0, 60)}),
    ("HushcountBudgetLow", {f"hushcount_run_ledger_windows_until_renewal{CAMPAIGN}": lasting(6)}),
    ("HushcountBudgetLow", {'hushcount_run_ledger_windows_left{run="shuffler", campaign="other"}': lasting(6)}),
    (
        "HushcountKeyEndsSoon",
        {
            'hushcount_run_key_expires_timestamp_seconds{run="shuffler", campaign="words", role="analyzer"}': lasting(
                14 * DAY
            )
        },
    ),
    ("HushcountAlertsUnsent", {f"hushcount_run_alerts_unsent{RUN}": since(70, 0, 1)}),
    ("HushcountAlertsUnsent", {f"hushcount_run_alerts_given_up{RUN}": since(70, 0, 1)}),
)


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def promtool(*arguments: object, text: str | None = None) -> subprocess.CompletedProcess[str]:
    tool = shutil.which("promtool") or shutil.which("promtool", path=TOOLS)
    if tool is None:
        pytest.skip("promtool is not installed: rules and metrics were NOT checked by it; make deploy-tools fetches it")
    return subprocess.run(  # noqa: S603  # a checker
        [tool, *map(str, arguments)], input=text, capture_output=True, text=True, check=False
    )


def test_promtool_takes_the_rules_and_every_expression_of_the_dashboard(tmp_path: Path) -> None:
    checked = promtool("check", "rules", RULES)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{len(rules())} rules found" in checked.stdout
    recorded = [{"record": f"panel:{at}", "expr": expression} for at, expression in enumerate(expressions())]
    file = tmp_path / "panels.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": recorded}]}))
    checked = promtool("check", "rules", file)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_each_rule_fires_on_its_fault_and_no_other_does(tmp_path: Path) -> None:
    assert {name for name, _ in FAULTS} == {rule["alert"] for rule in rules()}
    cases = [case("nothing is wrong", GOOD)]
    cases += [case(f"{name} {number}", {**GOOD, **worse}, name) for number, (name, worse) in enumerate(FAULTS)]
    tested = unit_test(tmp_path, cases)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    # The harness itself: a fault that nobody expects fails.
    wrong = unit_test(tmp_path, [case("unexpected", {**GOOD, **FAULTS[0][1]})])
    assert wrong.returncode != 0


def case(name: str, series: Series, *fires: str) -> dict[str, Any]:
    """Return a test in promtool's format: which alerts fire at the end."""
    return {
        "name": name,
        "interval": f"{STEP}m",
        "input_series": [{"series": one, "values": said} for one, said in series.items()],
        "promql_expr_test": [
            {
                "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                "eval_time": f"{HOURS}h",
                "exp_samples": [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in fires],
            }
        ],
    }


def unit_test(tmp_path: Path, cases: list[dict[str, Any]]) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "cases.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": f"{STEP}m", "tests": cases}))
    return promtool("test", "rules", file)


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The labels of each metric that a collector, an evaluator and runs print, by name."""
    collector, evaluator = CollectorMetrics(), EvaluatorMetrics()
    collector.reports.labels("words", "1", "reports")
    collector.refused.labels("over_cap")
    evaluator.questions.labels("words", "1", "client")
    texts = [generate_latest(one.registry).decode() for one in (collector, evaluator)]
    found: dict[str, set[str]] = {"up": set()}
    for text in (*texts, *texts_of_runs(tmp_path_factory.mktemp("site"))):
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                found.setdefault(sample.name, set()).update(sample.labels)
    return found


def texts_of_runs(root: Path) -> Iterator[str]:
    """Yield what runs write: one with alerts, one with reports that wait, one with a window that is not done."""
    tail = '[metrics]\ntextfile = "run.prom"\n[alerts]\ncommand = ["false"]\n'
    site = Site(root, tail=tail)
    limit = ("--epsilon", 42, "--delta", 1e-6, "--renew-days", 30)
    done("ledger", "set", "--ledger", root / "ledger.db", "--campaign", "words", *limit)
    collect(site.store, site.campaign, values(150), day=0)
    collect(site.store, site.campaign, values(FLOOR - 1), day=1)
    collect(site.store, site.campaign, values(150), day=2)
    for day in (1.1, 2.1, 3.1):
        if day > 3:
            site.keys.rename(root / "away")
        found = site.run(day)
        tell(site.deployment, found, now=at(day))
        Looks().record(site.deployment, found, now=at(day))
        yield (root / "run.prom").read_text()


def expressions() -> list[str]:
    """Return the expressions of the dashboard, with values in place of Grafana's variables."""
    found = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    return [one.replace("$__rate_interval", "5m").replace("$campaign", ".*") for one in found]


def labels_in(expression: str) -> set[str]:
    """Return the labels that an expression selects or groups by."""
    selected = re.findall(r"[{,]\s*(\w+)\s*(?:=~|!=|!~|=)", expression)
    grouped = [name for names in re.findall(r"\bby\s*\(([^)]*)\)", expression) for name in names.split(",")]
    return {*selected, *(name.strip() for name in grouped)}


def metrics_in(expression: str) -> list[str]:
    """Return the metrics of an expression."""
    return re.findall(r"\b(?:hushcount_\w+|up)\b", expression)


def test_rules_name_what_is_printed(printed: dict[str, set[str]]) -> None:
    for rule in rules():
        names = metrics_in(rule["expr"])
        assert names
        assert set(names) <= printed.keys(), rule["alert"]
        # Prometheus adds these two.
        known = set.intersection(*(printed[name] for name in names)) | {"instance", "job"}
        assert labels_in(rule["expr"]) <= set().union(*(printed[name] for name in names)) | known, rule["alert"]
        assert set(re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"]))) <= known, rule["alert"]


def test_the_dashboard_names_what_is_printed(printed: dict[str, set[str]]) -> None:
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            names = metrics_in(target["expr"])
            assert names
            assert set(names) <= printed.keys(), panel["title"]
            known = set().union(*(printed[name] for name in names)) | {"instance", "job"}
            assert labels_in(target["expr"]) <= known, panel["title"]
            shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            grouped = re.search(r"\bby\s*\(([^)]*)\)", target["expr"])
            left = known if grouped is None else {name.strip() for name in grouped[1].split(",")} - {"le"}
            assert shown <= left, panel["title"]
    for variable in DASHBOARD["templating"]["list"][1:]:
        (asked,) = re.findall(r"label_values\((\w+), (\w+)\)", variable["query"]["query"])
        assert asked[1] in printed[asked[0]]


def test_what_is_printed_is_as_promtool_wants_it(tmp_path: Path) -> None:
    *_, text = texts_of_runs(tmp_path)
    for one in (
        text,
        *(generate_latest(metrics().registry).decode() for metrics in (CollectorMetrics, EvaluatorMetrics)),
    ):
        checked = promtool("check", "metrics", text=one)
        assert checked.returncode == 0, checked.stdout + checked.stderr


def test_panels_lie_beside_each_other_and_ask_the_data_source_that_is_chosen() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [panel["gridPos"] for panel in panels]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for one, other in combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        assert beside or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    assert all(one["datasource"] == chosen for panel in panels for one in (panel, *panel["targets"]))
    assert [variable["name"] for variable in DASHBOARD["templating"]["list"]] == ["datasource", "campaign"]
    assert {panel["type"] for panel in panels} == {"stat", "timeseries"}
