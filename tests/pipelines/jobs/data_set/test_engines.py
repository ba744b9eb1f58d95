"""DuckDB, Polars, pandas and pyarrow read what run wrote, and every example of docs/data.md and examples/dbt works."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import yaml

from hushcount.results import COLUMNS, FOLDER, read, schema
from pipelines.jobs.table_files import csv_bytes
from tests.pipelines.jobs.data_set.conftest import HALF
from tests.support.collecting import window_name
from tests.support.site import Site

ROOT = Path(__file__).parents[4]
DBT = ROOT / "examples" / "dbt"
ORDER = [(name, "ascending") for name in ("campaign", "window", "fingerprint", "other", "item")]


def blocks(kind: str) -> list[str]:
    page = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


# These are imported where they are used: they start threads, which must not be there when workers are forked.


def query(text: str) -> Any:
    import duckdb

    return duckdb.sql(text)


def rows(relation: Any) -> list[dict[str, Any]]:
    return list(relation.to_arrow_table().to_pylist())


def listed(column: Any) -> list[Any]:
    """Return the values of a column of pandas."""
    return [None if missing else value for value, missing in zip(column, column.isna(), strict=True)]


def test_every_engine_reads_the_same_rows(made: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    import pandas as pd
    import polars as pl

    monkeypatch.chdir(made.root)
    known = read(made.store / FOLDER).sort_by(ORDER)
    every = "store/estimates/**/*.parquet"
    frame = pd.read_parquet("store/estimates")
    found = {
        "DuckDB": query(f"FROM '{every}'").to_arrow_table(),
        "DuckDB, by folders": query(f"FROM read_parquet('{every}', hive_partitioning = true)").to_arrow_table(),
        "Polars": pl.read_parquet(every).to_arrow(),
        "Polars, a folder": pl.scan_parquet("store/estimates").collect().to_arrow(),
        "pandas": pa.table({name: listed(frame[name]) for name in frame.columns}),
        "pyarrow": pq.read_table("store/estimates"),
        "a data set of pyarrow": ds.dataset("store/estimates").to_table(),
    }
    plain = pa.schema([field.with_nullable(True) for field in schema()])
    for engine, table in found.items():
        assert {*table.column_names} == {column.name for column in COLUMNS}, engine
        same = table.select(plain.names).cast(plain).sort_by(ORDER)
        assert same.equals(known.cast(plain)), engine


def test_a_campaign_whose_id_is_a_number_or_a_date_is_read_as_the_page_says(
    made: Site, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    import pandas as pd

    for name in ["2026", "2026-11-21", "007"]:
        with subtests.test(name=name):
            path = next((made.store / FOLDER).rglob("*.parquet"))
            table = pq.read_table(path, partitioning=None)
            column = pa.array([name] * len(table)).dictionary_encode()
            root = tmp_path / name / FOLDER
            here = root / f"campaign={name}" / path.parent.name / path.name
            here.parent.mkdir(parents=True)
            pq.write_table(table.set_column(table.schema.get_field_index("campaign"), "campaign", column), here)
            option = "hive_partitioning = false"
            found = {
                "DuckDB": query(f"FROM read_parquet('{root}/**/*.parquet', {option})").to_arrow_table(),
                "pandas": pa.table({"campaign": listed(pd.read_parquet(root, partitioning=None)["campaign"])}),
                "pyarrow": pq.read_table(root, partitioning=None),
                "ours": read(root),
            }
            for engine, one in found.items():
                assert one["campaign"].to_pylist() == [name] * len(table), engine
            page = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
            assert "`partitioning=None`" in page
            assert option in page


def test_every_example_in_python_runs(made: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(made.root)
    names: dict[str, Any] = {}
    first, second, csv = blocks("python")
    exec(first, names)  # noqa: S102  # the page's own lines
    assert names["table"].num_rows == len(names["frame"]) == 5
    assert {"dark-mode", "new"} <= {*names["detected"]["item"]}
    exec(second, names)  # noqa: S102
    assert names["largest"]["item"].to_list()[0] in ("dark-mode", "new")
    assert len(names["frame"]) == 5
    items = ["NA", "null", "None", "nan", "007", "1e5", "=1+1", "'=x", "a;=cmd|'", 'a|"@b', "x, -1", "it's"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    table = pa.table({"item": items, "count": [1.234] * len(items)})
    (tmp_path / "results" / "estimates.csv").write_bytes(csv_bytes(table))
    exec(csv, names)  # noqa: S102
    assert [*names["estimates"]["item"]] == items
    assert [*names["estimates"]["count"]] == [1.234] * len(items)
    assert names["table"].num_rows == read(made.store / FOLDER).num_rows


def test_every_example_in_sql_runs_and_adds_up_what_may_be_added(made: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made.root)
    by_item, bigquery, grafana, mean, volume = blocks("sql")
    (row,) = rows(query(by_item))
    assert row["low"] < row["share"] < row["high"]
    assert abs(row["share"] - 0.5) < 0.3
    assert bigquery.startswith("-- BigQuery\n")
    assert "'gs://bucket/store/estimates/*.parquet'" in bigquery
    macro = re.sub(r"\$__timeFilter\((\w+)\)", r"\1 BETWEEN '1970-01-01' AND '8999-01-01'", grafana)
    (row,) = rows(query(macro))
    assert list(row) == ["time", "metric", "share", "low", "high"]
    assert row["metric"] == "dark-mode"
    # The campaign with a memory, and both with pools, are not in a mean over windows.
    means = rows(query(mean))
    assert {(row["campaign"], row["item"]) for row in means} == {("words", item) for item in ("alpha", "beta", "gamma")}
    table = read(made.store / FOLDER, "words", items=["alpha"]).to_pylist()
    assert len(table) == 3
    reports = sum(row["reports"] for row in table)
    assert means[0]["share"] == pytest.approx(sum(row["count"] for row in table) / reports)
    error = math.sqrt(sum(row["standard_error"] ** 2 for row in table)) / reports
    assert means[0]["share_error"] == pytest.approx(error)
    # Six standard errors: it fails with a probability of 2e-9.
    assert abs(means[0]["share"] - (3 * HALF + 70) / (3 * HALF + 130)) < 6 * error
    counted = rows(query(volume))
    volumes = {(row["campaign"], f"{row['window_start']:%Y%m%dT%H%M%SZ}"): row["reports"] for row in counted}
    assert volumes["words", window_name(0)] == HALF + 60
    assert volumes["words", window_name(1)] == 2 * HALF + 70
    assert volumes["settings", window_name(0)] == 2 * HALF


def test_the_models_of_dbt_run_and_their_descriptions_fit(made: Site) -> None:
    described = yaml.safe_load((DBT / "models" / "estimates.yml").read_text())
    (source,) = described["sources"]
    assert source["config"]["meta"]["external_location"] == "{{ env_var('HUSHCOUNT_ESTIMATES') }}/**/*.parquet"
    (table,) = source["tables"]
    assert {column["name"] for column in table["columns"]} <= {column.name for column in COLUMNS}
    project, profile = (yaml.safe_load((DBT / f"{name}.yml").read_text()) for name in ("dbt_project", "profiles"))
    assert project["profile"] in profile
    models = {path.stem: path.read_text() for path in (DBT / "models").glob("*.sql")}
    named = {model["name"]: [column["name"] for column in model["columns"]] for model in described["models"]}
    assert named.keys() == models.keys()
    made_of = {"source": f"read_parquet('{made.store / FOLDER}/**/*.parquet')"}
    import duckdb

    with duckdb.connect() as connection:
        for name in ("windows", "weeks"):
            text = models[name].replace("{{ source('hushcount', 'estimates') }}", made_of["source"])
            text = re.sub(r"{{ ref\('(\w+)'\) }}", r"\1", text)
            connection.sql(f"CREATE TABLE {name} AS {text}")
            for column in named[name]:
                assert None not in connection.table(name).to_arrow_table()[column].to_pylist()
        alpha = "campaign = 'words' AND item = 'alpha'"
        (_, second) = rows(connection.sql(f"FROM windows WHERE {alpha} ORDER BY window_start"))
        epochs = read(made.store / FOLDER, "words", [window_name(1)], ["alpha"]).to_pylist()
        assert second["reports"] == sum(row["reports"] for row in epochs) == 2 * HALF + 70
        assert second["count"] == pytest.approx(sum(row["count"] for row in epochs))
        assert second["standard_error"] == pytest.approx(math.sqrt(sum(row["variance"] for row in epochs)))
        weeks = rows(connection.sql("FROM weeks"))
        assert {row["campaign"] for row in weeks} == {"words"}
        assert sum(row["reports"] for row in weeks if row["item"] == "alpha") == 3 * HALF + 130
