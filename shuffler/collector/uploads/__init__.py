"""Carries journals to the store as segments and manifests. `upload_queue` repeats the steps of `uploader`."""
