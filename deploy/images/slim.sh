#!/bin/sh
# Remove files that no party loads from an environment: slim.sh ENVIRONMENT. deploy/README.md lists what stays.
set -eu
cd "$1"/lib/python3*/site-packages
# Beam requires pillow for pictures, but only its examples import it.
"$1/bin/pip" uninstall --yes --quiet pillow
# Tests, sources of compiled extensions, and symbols for debuggers.
find . -depth -type d \( -name tests -o -name test \) -exec rm -rf {} +
find apache_beam -type f -name '*_test.py' -delete
find . -type f \( -name '*.pyx' -o -name '*.pxd' -o -name '*.pxi' -o -name '*.pyi' \
    -o -name '*.h' -o -name '*.hpp' -o -name '*.c' -o -name '*.cc' -o -name '*.cpp' \) -delete
# Libraries that wheels bundle in NAME.libs are patched files, which binutils before 2.41 would break.
find . -type f \( -name '*.so' -o -name '*.so.*' \) -not -path './*.libs/*' -exec strip --strip-unneeded {} +
# Arrow's headers, sources and remote calls (Flight).
rm -rf pyarrow/include pyarrow/src
rm -f pyarrow/*flight*
# Compile only the modules that each start loads: without their bytecode a start takes 3 s more of CPU.
"$1/bin/python" -c 'import apache_beam, pyarrow.parquet, uvloop
from apache_beam.runners.portability import fn_api_runner, local_job_service, portable_runner
from apache_beam.runners.worker import sdk_worker_main, worker_pool_main
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import load_der_public_key'
"$1/bin/python" -m compileall -q annotated_doc annotated_types click httptools nacl numpy prometheus_client pydantic \
    pydantic_core rich shellingham typer typing_inspection uvicorn
