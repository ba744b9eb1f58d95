"""Carries journals to the store. `uploader` has steps, `upload_queue` does them in order and repeats what failed."""
