#!/bin/bash
# The published image's first words, as far as tests need them: jobmanager or taskmanager, on settings that are mounted. Flink's
# operator mounts them too, so FLINK_PROPERTIES is not read here.
case "$1" in
    jobmanager | taskmanager) exec "$FLINK_HOME/bin/$1.sh" start-foreground "${@:2}" ;;
    *) exec "$@" ;;
esac
