"""Collection: windows, segments, manifests and envelopes of a collector."""
