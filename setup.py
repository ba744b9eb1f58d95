"""The parties' packages by name: --setup_file sends them to workers, and a wildcard could send more (docs/adr/0001)."""

from setuptools import setup

setup(
    packages=[
        "keys",
        "keys.lanes",
        "service",
        "shuffler",
        "shuffler.collector",
        "shuffler.collector.http",
        "shuffler.collector.journals",
        "shuffler.collector.uploads",
        "shuffler.collector.windows",
        "evaluator",
        "analyzer",
        "aux_server",
        "pipelines",
        "pipelines.audit",
        "pipelines.batches",
        "pipelines.commands",
        "pipelines.console",
        "pipelines.deployment",
        "pipelines.engine",
        "pipelines.epochs",
        "pipelines.files",
        "pipelines.graph",
        "pipelines.handover",
        "pipelines.jobs",
        "pipelines.ledger",
        "pipelines.outputs",
        "pipelines.schedule",
        "pipelines.streaming",
        "experiments",
        "benchmarks",
    ],
)
