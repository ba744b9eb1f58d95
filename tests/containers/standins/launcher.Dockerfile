# Stands for Google's launcher of flex templates, whose source is not published: it launches nothing, and says so.
FROM hushcount-standin-python:3.13
RUN mkdir -p /opt/google/dataflow \
    && printf '%s\n' '#!/bin/sh' 'echo "STAND-IN, not the launcher of Google: no template can be launched" >&2; exit 1' \
       > /opt/google/dataflow/python_template_launcher \
    && chmod 0755 /opt/google/dataflow/python_template_launcher
