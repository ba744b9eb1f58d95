"""Eight X25519 products at once, as machine code that this package writes and proves (docs/adr/0029).

Read in this order: `words`, whose bounds are the proof; `field`, `ladder` and `hashes`, which compute with them;
`emit`, which writes LLVM IR; `boxes`, the loop over boxes; `compiled`, which asks the processor and
compiles; and `self_test`.
"""
