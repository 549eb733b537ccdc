# SPDX-License-Identifier: Apache-2.0
# One image for the device plugin, the extender and the tools. BASE needs Python 3.11 or newer with venv.
ARG BASE=docker.io/library/python:3.12-slim-bookworm

# the locked dependencies: built again only when the lock file changes
FROM ${BASE} AS dependencies
COPY requirements.lock /src/
RUN python3 -m venv /opt/cgpu \
 && /opt/cgpu/bin/pip install --no-cache-dir --quiet --require-hashes --requirement /src/requirements.lock

FROM dependencies AS wheel
RUN /opt/cgpu/bin/pip install --no-cache-dir --quiet "hatchling>=1.27"
COPY pyproject.toml README.md /src/
COPY cgpu /src/cgpu
COPY deviceplugin /src/deviceplugin
COPY extender /src/extender
RUN /opt/cgpu/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir /dist /src

FROM ${BASE}
COPY --from=dependencies /opt/cgpu /opt/cgpu
COPY --from=wheel /dist /dist
RUN /opt/cgpu/bin/pip install --quiet --no-deps --no-index /dist/*.whl && rm -r /dist
ENV PATH=/opt/cgpu/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin \
    PYTHONUNBUFFERED=1
# the kernel module's sources: the device plugin builds them on nodes that have none built
COPY kmod/abi /usr/src/cgpu_km/abi
COPY kmod/COPYING kmod/Kbuild kmod/*.c kmod/*.h kmod/*.sh /usr/src/cgpu_km/
LABEL org.opencontainers.image.title="cgpu" \
      org.opencontainers.image.licenses="Apache-2.0 AND GPL-2.0-only"
CMD ["cgpu", "--help"]
