"""Frequency oracles: encoders, responders, the mechanisms that combine them, tallies and estimates."""
