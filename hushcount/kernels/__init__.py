"""Compiled inner loops of the servers, each with a plain numpy twin that the tests hold it against."""
