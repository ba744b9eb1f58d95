"""The files that each window has on the collector's disk until they are uploaded. Start with `window_files`."""
