# SPDX-License-Identifier: Apache-2.0
"""Log lines and metrics of the services, one way for all."""

import json
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, TextIO

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest

METRICS_CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
FAST_BUCKETS: Final = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class LogFormat(StrEnum):
    """How a log line looks."""

    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    """What is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = f"{_stamp(record)} {record.levelname.lower():7} {record.name}: {record.getMessage()}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        row = {
            "time": _stamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            row["exception"] = self.formatException(record.exc_info)
        return json.dumps(row, ensure_ascii=False)


def _stamp(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def set_up_logging(
    level: LogLevel = LogLevel.INFO, form: LogFormat = LogFormat.TEXT, stream: TextIO = sys.stderr
) -> None:
    """One line a record on `stream`; libraries speak only from warnings on."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Json() if form is LogFormat.JSON else _Text())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    for ours in ("cgpu", "extender", "deviceplugin"):
        logging.getLogger(ours).setLevel(level.upper())


def render_metrics(registry: CollectorRegistry) -> bytes:
    """The registry in OpenMetrics text."""
    rendered: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return rendered


@contextmanager
def timed(histogram: Histogram) -> Iterator[None]:
    """Observe the seconds that the block takes, also when it raises."""
    start = time.perf_counter()
    try:
        yield
    finally:
        histogram.observe(time.perf_counter() - start)
