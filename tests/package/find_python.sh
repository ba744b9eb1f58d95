#!/bin/sh
# Print the path of a working Python of this version, or nothing: `find_python.sh 3.10`.
# A version manager's shim may be on the PATH without the version behind it, so every candidate is run.
for candidate in "python$1" "$HOME/.pyenv/versions/$1".*/bin/python; do
    if found=$("$candidate" -c 'import sys; print(sys.executable, "%d.%d" % sys.version_info[:2])' 2>/dev/null); then
        case "$found" in *" $1") echo "${found% *}"; exit 0 ;; esac
    fi
done
