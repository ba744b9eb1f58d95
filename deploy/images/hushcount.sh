#!/bin/sh
# What `hushcount` is in an image: the program that its HUSHCOUNT_PROGRAM names.
exec python -m "$HUSHCOUNT_PROGRAM" "$@"
