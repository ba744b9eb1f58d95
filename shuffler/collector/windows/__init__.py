"""The files of each window on the collector's disk until they are in the store. `window_files` shows their layout."""
