# SPDX-License-Identifier: Apache-2.0
"""The rows of `usage` as OpenMetrics families; a value nobody knows has no sample."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from deviceplugin.usage import GpuRow, InstanceRow

_GPU_LABELS: Final = ("node", "gpu", "uuid")
_LABELS: Final = (*_GPU_LABELS, "namespace", "pod", "container")

_GPU_GAUGES: Final[Mapping[str, tuple[str, Callable[[GpuRow], float | None]]]] = {
    "cgpu_gpu_memory_total_bytes": ("Memory of the card.", lambda row: row.total_bytes),
    "cgpu_gpu_memory_allocated_bytes": ("Memory that pods on the card were given.", lambda row: row.allocated_bytes),
    "cgpu_gpu_memory_used_bytes": ("Memory that instances on the card use.", lambda row: row.used_bytes),
    "cgpu_gpu_memory_driver_used_bytes": (
        "Memory in use on the card by whomever, as the driver counts.",
        lambda row: row.driver_used_bytes,
    ),
    "cgpu_gpu_memory_outside_bytes": (
        "Limits of instances on the card that no pod stands behind, such as Docker's.",
        lambda row: row.outside_bytes,
    ),
    "cgpu_gpu_healthy": ("1 when the card may be used.", lambda row: float(row.healthy)),
}
_GAUGES: Final[Mapping[str, tuple[str, Callable[[InstanceRow], float | None]]]] = {
    "cgpu_instance_memory_limit_bytes": ("Most memory that the container may use.", lambda row: row.limit_bytes),
    "cgpu_instance_memory_used_bytes": ("Memory that the container uses.", lambda row: row.used_bytes),
    "cgpu_instance_utilization_ratio": ("Part of the time that the GPU worked for it.", lambda row: row.utilization),
    "cgpu_instance_weight": ("Its time slices.", lambda row: row.weight),
}


class UsageCollector(Collector):
    """Asks for fresh rows at every scrape."""

    def __init__(self, node: str, rows: Callable[[], tuple[Sequence[GpuRow], Sequence[InstanceRow]]]) -> None:
        """`rows`: cards and instances now."""
        self._node = node
        self._rows = rows

    def collect(self) -> Iterator[Metric]:
        """Every family, those without samples too."""
        gpus, instances = self._rows()
        for name, (meaning, gpu_value) in _GPU_GAUGES.items():
            gauge = GaugeMetricFamily(name, meaning, labels=_GPU_LABELS)
            self._fill(gauge, [(self._gpu(gpu), gpu_value(gpu)) for gpu in gpus])
            yield gauge
        for name, (meaning, value) in _GAUGES.items():
            gauge = GaugeMetricFamily(name, meaning, labels=_LABELS)
            self._fill(gauge, [(self._instance(row), value(row)) for row in instances])
            yield gauge
        yield from self._others(instances)

    def _others(self, instances: Sequence[InstanceRow]) -> Iterator[Metric]:
        counter = CounterMetricFamily("cgpu_instance_oom", "Allocations refused at the limit.", labels=_LABELS)
        self._fill(counter, [(self._instance(row), row.oom) for row in instances])
        yield counter
        info = InfoMetricFamily("cgpu_instance", "Which kernel instance a container has.", labels=_LABELS)
        for row in instances:
            info.add_metric(self._instance(row), {"instance": row.instance})
        yield info

    @staticmethod
    def _fill(
        family: GaugeMetricFamily | CounterMetricFamily, samples: Iterable[tuple[Sequence[str], float | None]]
    ) -> None:
        for labels, value in samples:
            if value is not None:
                family.add_metric(labels, value)

    def _gpu(self, row: GpuRow | InstanceRow) -> tuple[str, str, str]:
        return (self._node, str(row.gpu), row.uuid)

    def _instance(self, row: InstanceRow) -> tuple[str, ...]:
        return (*self._gpu(row), row.namespace, row.pod, row.container)
