"""Frequency oracles: encoders, responders, the mechanism they make, tallies and estimates."""
