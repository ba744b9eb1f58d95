"""deploy/monitoring: each rule fires on its fault and on nothing else, and names only what the services print."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from evaluator.metrics import Metrics as EvaluatorMetrics
from pipelines.log.log import Logs
from pipelines.monitoring.run_metrics import Looks
from shuffler.collector.metrics import Metrics as CollectorMetrics
from tests.deploy.conftest import DEPLOY, ROOT, TOOLS
from tests.deploy.rule_cases import ARRIVED, FAULTS, GOOD, HOURS, STEP, Series
from tests.shuffler.collector.running import METRICS_TOKEN, make_site, running, wait_for
from tests.support import patient
from tests.support.collecting import collect
from tests.support.jobs import done
from tests.support.ports import free_port
from tests.support.site import FLOOR, Site, at, values

RULES = DEPLOY / "monitoring" / "rules.yaml"
DASHBOARD = json.loads((DEPLOY / "monitoring" / "dashboard.json").read_text())


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def tool(name: str) -> str:
    """Return the path of a program of Prometheus."""
    found = shutil.which(name) or shutil.which(name, path=TOOLS)
    if found is None:
        pytest.skip(f"{name} is not installed: rules and metrics were NOT checked by it; make deploy-tools fetches it")
    return found


def promtool(*arguments: object, text: str | None = None) -> subprocess.CompletedProcess[str]:
    words = [tool("promtool"), *map(str, arguments)]
    return subprocess.run(words, input=text, capture_output=True, text=True, check=False)  # noqa: S603  # a checker


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
    assert {name for name, _ in FAULTS} | {"HushcountFewReports"} == {rule["alert"] for rule in rules()}
    cases = [case("nothing is wrong", GOOD)]
    cases += [case(f"{name} {number}", {**GOOD, **worse}, name) for number, (name, worse) in enumerate(FAULTS)]
    tested = unit_test(tmp_path, cases)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    # The harness itself: a fault that nobody expects fails.
    wrong = unit_test(tmp_path, [case("unexpected", {**GOOD, **FAULTS[0][1]})])
    assert wrong.returncode != 0


def test_few_reports_are_told_by_what_came_a_week_before(tmp_path: Path) -> None:
    labels = '{campaign="words", epoch="1", stream="reports", job="hushcount-collector"}'
    cases = []
    for arrived, fires in ARRIVED:
        one = case(arrived, {f"hushcount_collector_reports_total{labels}": arrived})
        (test,) = one["promql_expr_test"]
        test |= {"expr": 'count(ALERTS{alertname="HushcountFewReports", alertstate="firing"})', "eval_time": "174h"}
        test["exp_samples"] = [{"labels": "{}", "value": 1}] if fires else []
        cases.append({**one, "interval": "1h"})
    tested = unit_test(tmp_path, cases)
    assert tested.returncode == 0, tested.stdout + tested.stderr


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
    evaluator.evaluations.labels("words", "1", "client")
    texts = [generate_latest(one.registry).decode() for one in (collector, evaluator)]
    found: dict[str, set[str]] = {"up": set()}
    for text in (*texts, *texts_of_runs(tmp_path_factory.mktemp("site"))):
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                found.setdefault(sample.name, set()).update(sample.labels)
    return found


def texts_of_runs(root: Path) -> Iterator[str]:
    """Yield what runs write: one with results, one with reports that wait, one with a window that is not done."""
    site = Site(root, tail='[metrics]\ntextfile = "run.prom"\n')
    limit = ("--epsilon", 42, "--delta", 1e-6, "--renew-days", 30)
    done("ledger", "set", "--ledger", root / "ledger.db", "--campaign", "words", *limit)
    collect(site.store, site.campaign, values(150), day=0)
    collect(site.store, site.campaign, values(FLOOR - 1), day=1)
    collect(site.store, site.campaign, values(150), day=2)
    logs = Logs(site.deployment)
    for day in (1.1, 2.1, 3.1):
        if day > 3:
            site.keys.rename(root / "away")
        found = site.run(day)
        Looks().record(site.deployment, found, logs=logs, now=at(day))
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


def test_panels_ask_the_data_source_that_is_chosen() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    assert all(one["datasource"] == chosen for panel in panels for one in (panel, *panel["targets"]))
    assert [variable["name"] for variable in DASHBOARD["templating"]["list"]] == ["datasource", "campaign"]
    assert {panel["type"] for panel in panels} == {"stat", "timeseries"}


def test_prometheus_collects_and_judges_what_the_operators_page_configures(tmp_path: Path) -> None:
    """The page's configuration, in which only addresses are others, and a real collector and two runs to look at."""
    page = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^```yaml\n(# prometheus\.yml\n.*?)^```", page, re.DOTALL | re.MULTILINE)
    deployed = (ROOT / "deploy" / "README.md").read_text(encoding="utf-8")
    (option,) = re.findall(r"(--collector\.textfile\.directory=)/metrics/\*", deployed)
    for party in ("shuffler", "analyzer"):
        (tmp_path / "metrics" / party).mkdir(parents=True)
        (tmp_path / party).mkdir()
        textfile = tmp_path / "metrics" / party / "run.prom"
        site = Site(tmp_path / party, settings=f'parties = ["{party}"]', tail=f'[metrics]\ntextfile = "{textfile}"\n')
        Looks().record(site.deployment, site.run(0.1), logs=Logs(site.deployment))
    node, server = free_port(), free_port()
    shutil.copy(RULES, tmp_path)
    programs = [
        [tool("prometheus-node-exporter"), f"{option}{tmp_path}/metrics/*", f"--web.listen-address=127.0.0.1:{node}"],
        [
            tool("prometheus"), f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data",
            f"--web.listen-address=127.0.0.1:{server}",
        ],
    ]  # fmt: skip
    with running(make_site(tmp_path / "collector")) as collector:
        ports = {"8080": collector.port, "8081": free_port(), "9100": node}
        for given, ours in ports.items():
            assert f'"127.0.0.1:{given}"' in text
            text = text.replace(f'"127.0.0.1:{given}"', f'"127.0.0.1:{ours}"')
        token = tmp_path / "token"
        token.write_text(METRICS_TOKEN)
        assert text.count("/etc/prometheus/hushcount-token") == 2
        text = text.replace("/etc/prometheus/hushcount-token", str(token))
        (tmp_path / "prometheus.yml").write_text(f"global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n{text}")
        with ended_after(programs, tmp_path / "log"):
            api = f"http://127.0.0.1:{server}/api/v1"
            wait_for(lambda: asked(f"{api}/query", "result", query="hushcount_collector_ready == 1"))
            wait_for(lambda: asked(f"{api}/query", "result", query="hushcount_run_problems"))
            found = asked(f"{api}/query", "result", query="hushcount_run_problems == 0")
            assert {one["metric"]["run"] for one in found} == {"shuffler", "analyzer"}
            assert asked(f"{api}/query", "result", query="node_textfile_scrape_error == 0")
            # What was absent before the first scrape is not any more; no evaluator listens here.
            wait_for(lambda: names(asked(f"{api}/alerts", "alerts")) == {"HushcountEvaluatorAbsent"})
            judged = [rule for group in asked(f"{api}/rules", "groups") for rule in group["rules"]]
            assert {rule["name"] for rule in judged} == {rule["alert"] for rule in rules()}
            assert {rule.get("lastError") for rule in judged} == {None}


@contextmanager
def ended_after(programs: list[list[str]], log: Path) -> Iterator[None]:
    """Run programs for as long as the block."""
    with ExitStack() as stack, log.open("wb") as stream:
        for words in programs:
            child = stack.enter_context(subprocess.Popen(words, stdout=stream, stderr=stream))  # noqa: S603  # checkers
            stack.callback(child.terminate)
        yield


def asked(address: str, what: str, **query: str) -> list[dict[str, Any]]:
    """Return what Prometheus answers; nothing as long as it does not."""
    try:
        answer = patient.get(address, params=query)
    except httpx.TransportError:
        return []
    return list(answer.json()["data"][what]) if answer.status_code == 200 else []


def names(alerts: list[dict[str, Any]]) -> set[str]:
    return {one["labels"]["alertname"] for one in alerts}
