"""Settings of all tests."""

from hypothesis import settings

# Shared machines pause: how long an example takes says nothing.
settings.register_profile("steady", deadline=None)
settings.load_profile("steady")
