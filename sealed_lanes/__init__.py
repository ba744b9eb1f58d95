"""Opens and seals libsodium's sealed boxes by the array: eight products at once, in code that it writes and proves.

Read in this order: `words`, whose bounds are the proof; `field`, `ladder` and `hashes`, which compute with them;
`emit`, which writes LLVM IR; `boxes`, the loop over boxes; `compiled`, which asks the processor and
compiles; and `self_test`.
"""

from sealed_lanes.compiled import FaultyLanes, Lanes, NoLanes, make_lanes

__all__ = ["FaultyLanes", "Lanes", "NoLanes", "make_lanes"]
