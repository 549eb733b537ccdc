# SPDX-License-Identifier: Apache-2.0
"""Every name that a user or another program can type or see, once.

`docs/reference.md` explains each; `tests/test_docs.py` compares the two.
"""

# ruff: noqa: PLC0414 - the variables are names too
from enum import StrEnum
from typing import Final

from cgpu.core.variables import ENV_CONTAINER as ENV_CONTAINER
from cgpu.core.variables import ENV_DEV as ENV_DEV
from cgpu.core.variables import ENV_DISABLE as ENV_DISABLE
from cgpu.core.variables import ENV_HIGH_PRIO as ENV_HIGH_PRIO
from cgpu.core.variables import ENV_IDX as ENV_IDX
from cgpu.core.variables import ENV_POD as ENV_POD
from cgpu.core.variables import ENV_VISIBLE_DEVICES as ENV_VISIBLE_DEVICES
from cgpu.core.variables import ENV_WEIGHT as ENV_WEIGHT
from cgpu.core.variables import MAX_INSTANCES_DEFAULT as MAX_INSTANCES_DEFAULT

DOMAIN: Final = "cgpu.aliyun.com"

RESOURCE_MEM: Final = "aliyun.com/gpu-mem"
RESOURCE_CORE: Final = "aliyun.com/gpu-core.percentage"
RESOURCE_COUNT: Final = "aliyun.com/gpu-count"

LABEL_GPU_COUNT: Final = "aliyun.com/gpu-count"
LABEL_IGNORE: Final = "cgpu.aliyun.com/ignore"
LABEL_SCHEDULE: Final = "ack.node.gpu.schedule"
LABEL_PLACEMENT: Final = "ack.node.gpu.placement"
LABEL_SERVING: Final = "cgpu.aliyun.com/serving"
LABEL_LEGACY_GPUSHARE: Final = "gpushare"
LABEL_LEGACY_CGPU: Final = "cgpu"
LABEL_LEGACY_NO_ISOLATION: Final = "cgpu.disable.isolation"

ANNOTATION_DEVICES: Final = "cgpu.aliyun.com/devices"
ANNOTATION_CORDON: Final = "cgpu.aliyun.com/cordon"
ANNOTATION_ALLOCATION: Final = "cgpu.aliyun.com/allocation"
ANNOTATION_RESIZE_REQUEST: Final = "cgpu.aliyun.com/resize-request"
ANNOTATION_RESIZED: Final = "cgpu.aliyun.com/resized"
ANNOTATION_RESIZE_STATUS: Final = "cgpu.aliyun.com/resize-status"
ANNOTATION_GPUSHARE: Final = "scheduler.framework.gpushare.allocation"
ANNOTATION_IDX: Final = "ALIYUN_COM_GPU_MEM_IDX"
ANNOTATION_DEV: Final = "ALIYUN_COM_GPU_MEM_DEV"
ANNOTATION_POD: Final = "ALIYUN_COM_GPU_MEM_POD"
ANNOTATION_ASSUME_TIME: Final = "ALIYUN_COM_GPU_MEM_ASSUME_TIME"
ANNOTATION_ASSIGNED: Final = "ALIYUN_COM_GPU_MEM_ASSIGNED"

EVENT_UNSCHEDULABLE: Final = "GPUShareUnschedulable"
EVENT_ALLOCATED: Final = "GPUShareAllocated"
EVENT_ALLOCATE_FAILED: Final = "GPUShareAllocateFailed"
EVENT_UNHEALTHY: Final = "GPUUnhealthy"
EVENT_RECOVERED: Final = "GPURecovered"
EVENT_MODE_REFUSED: Final = "GPUShareModeRefused"
EVENT_MODULE_NOT_READY: Final = "GPUModuleNotReady"

CONDITION_ROOM: Final = "cgpu.aliyun.com/RoomAgain"

SCHEDULER_NAME: Final = "cgpu-scheduler"
EXTENDER_PREFIX: Final = "/gpushare-scheduler"
EXTENDER_VERB_PORT: Final = 12345
EXTENDER_READ_PORT: Final = 12346
PLUGIN_PORT: Final = 12347

CDI_KIND: Final = "aliyun.com/gpu-mem"

CORE_STEP: Final = 5
CORE_PER_CARD: Final = 100


class Mode(StrEnum):
    """What a node's cards are used for: values of the node label ack.node.gpu.schedule."""

    CGPU = "cgpu"
    CORE_MEM = "core_mem"
    SHARE = "share"
    DEFAULT = "default"


class Placement(StrEnum):
    """How cards and nodes are chosen: values of the node label ack.node.gpu.placement."""

    BINPACK = "binpack"
    SPREAD = "spread"
    FRAGMENTATION = "fragmentation"
