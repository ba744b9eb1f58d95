#!/bin/sh
# Take out of an environment what no party loads: slim.sh ENVIRONMENT. deploy/README.md says what is left.
set -eu
cd "$1"/lib/python3*/site-packages
# Beam requires it for pictures, and imports it in examples only.
"$1/bin/pip" uninstall --yes --quiet pillow
# Tests, what extensions were compiled from, and symbols for debuggers.
find . -depth -type d \( -name tests -o -name test \) -exec rm -rf {} +
find apache_beam -type f -name '*_test.py' -delete
find . -type f \( -name '*.pyx' -o -name '*.pxd' -o -name '*.pxi' -o -name '*.pyi' \
    -o -name '*.h' -o -name '*.hpp' -o -name '*.c' -o -name '*.cc' -o -name '*.cpp' \) -delete
find . -type f \( -name '*.so' -o -name '*.so.*' \) -exec strip --strip-unneeded {} +
# Arrow's remote calls.
rm -rf pyarrow/include pyarrow/src
rm -f pyarrow/*flight*
