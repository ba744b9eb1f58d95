"""Packages by name: --setup_file sends this to workers, and a wildcard could send more (docs/adr/0001)."""

from setuptools import setup

setup(
    packages=[
        "hushcount",
        "hushcount.designs.files",
        "hushcount.oracles.encoders",
        "hushcount.kernels",
        "hushcount.privacy",
        "hushcount.oracles.responders",
        "keys",
        "shuffler",
        "shuffler.collector",
        "shuffler.collector.admission",
        "shuffler.collector.http",
        "shuffler.collector.journals",
        "shuffler.collector.uploads",
        "shuffler.collector.windows",
        "analyzer",
        "aux_server",
        "pipelines",
        "pipelines.commands",
        "experiments",
        "benchmarks",
    ],
    package_data={
        "hushcount": ["py.typed", "unassigned-13.0.txt"],
        "hushcount.designs.files": [
            "10.json",
            "16.json",
            "20.json",
            "21.json",
            "32.json",
            "33.json",
            "50.json",
            "51.json",
            "64.json",
            "65.json",
            "100.json",
            "128.json",
            "129.json",
            "200.json",
            "201.json",
            "256.json",
        ],
    },
)
