"""The mathematics that all mechanisms share."""
