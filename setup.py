"""The parties' packages by name: --setup_file sends them to workers, and a wildcard could send more (docs/adr/0001)."""

from setuptools import setup

setup(
    packages=[
        "keys",
        "service",
        "shuffler",
        "shuffler.collector",
        "shuffler.collector.journals",
        "shuffler.collector.uploads",
        "shuffler.collector.windows",
        "evaluator",
        "analyzer",
        "aux_server",
        "pipelines",
        "pipelines.questions",
        "pipelines.audit",
        "pipelines.commands",
        "pipelines.commands.demo",
        "pipelines.commands.init",
        "pipelines.console",
        "pipelines.deployment",
        "pipelines.engine",
        "pipelines.epochs",
        "pipelines.files",
        "pipelines.handover",
        "pipelines.jobs",
        "pipelines.ledger",
        "pipelines.log",
        "pipelines.monitoring",
        "pipelines.outputs",
        "pipelines.pages",
        "pipelines.schedule",
        "pipelines.served",
        "pipelines.streaming",
        "pipelines.windows",
    ],
    package_data={
        "pipelines.commands.init": ["systemd/hushcount-*"],
        "pipelines.pages": ["static/*.css", "static/*.js"],
    },
)
