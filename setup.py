"""Packages by name: --setup_file sends this to workers, and a wildcard could send more (docs/adr/0001)."""

from setuptools import setup

setup(
    packages=[
        "hushcount",
        "hushcount.encoders",
        "hushcount.kernels",
        "hushcount.privacy",
        "hushcount.responders",
        "keys",
        "shuffler",
        "analyzer",
        "aux_server",
        "pipelines",
        "pipelines.commands",
    ],
    package_data={"hushcount": ["py.typed"]},
)
