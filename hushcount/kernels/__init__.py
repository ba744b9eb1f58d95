"""Compiled inner loops of the servers; the tests compare each with a plain numpy twin."""
