"""Opens and seals arrays of libsodium's sealed boxes: eight products at once, in code that it generates and proves.

Read in this order: `words`, with the bounds that are the proof; `field`, `ladder` and `hashes`, which compute with
words; `emit`, which writes LLVM IR; `boxes`, the loop over boxes; `compiled`, which checks the processor and
compiles; and `self_test`.
"""

from sealed_lanes.compiled import FaultyLanes, Lanes, NoLanes, make_lanes

__all__ = ["FaultyLanes", "Lanes", "NoLanes", "make_lanes"]
