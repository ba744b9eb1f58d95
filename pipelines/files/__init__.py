"""Files: paths in any store, block files, permissions."""
