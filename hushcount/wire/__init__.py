"""The wire format: fields of a report, blocks, sealing, and equality of ciphertexts."""
