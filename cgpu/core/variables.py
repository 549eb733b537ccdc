# SPDX-License-Identifier: Apache-2.0
"""The variables of a container; `names` has them too. Here for the runtime wrapper, which imports nothing that it can do without."""

from __future__ import annotations

from cgpu.core.light import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Final

ENV_CONTAINER: Final = "ALIYUN_COM_GPU_MEM_CONTAINER"
ENV_DEV: Final = "ALIYUN_COM_GPU_MEM_DEV"
ENV_IDX: Final = "ALIYUN_COM_GPU_MEM_IDX"
ENV_POD: Final = "ALIYUN_COM_GPU_MEM_POD"
ENV_WEIGHT: Final = "ALIYUN_COM_GPU_SCHD_WEIGHT"
ENV_HIGH_PRIO: Final = "ALIYUN_COM_GPU_HIGH_PRIO"
ENV_DISABLE: Final = "CGPU_DISABLE"
ENV_VISIBLE_DEVICES: Final = "NVIDIA_VISIBLE_DEVICES"

MAX_INSTANCES_DEFAULT: Final = 20
