"""The streaming job: windows of a collector, each released once when it closes."""
