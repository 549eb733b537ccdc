# SPDX-License-Identifier: Apache-2.0
"""Every error the project raises on purpose, as one tree.

CgpuError
├── InputError            a value somebody wrote breaks a rule; the text names value, rule and remedy
│   ├── QuantityError     a Kubernetes quantity that is no whole number
│   ├── ClaimError        a pod asks for something that can never be given
│   ├── AnnotationError   an annotation that cannot be read
│   ├── LabelError        a node or pod label outside its values
│   ├── MemoryRuleError   the variables ALIYUN_COM_GPU_MEM_* contradict each other
│   ├── ContainerError    a container asks for what the runtime wrapper may not or cannot give it
│   └── SettingError      a setting, flag or file of ours
├── PlacementError        no card takes the claim at this moment
└── UnavailableError      something outside does not answer or refuses
    ├── NotFoundError     it answers that the thing does not exist
    ├── ConflictError     it answers that the thing has changed or exists already: look again, then retry
    ├── ForbiddenError    it answers that we may not
    └── ExpiredError      it answers that our version is too old: list anew
"""


class CgpuError(Exception):
    """Base of all; its text is written for the person who has to act."""


class InputError(CgpuError):
    """A value breaks a rule."""


class QuantityError(InputError):
    """A Kubernetes quantity that is no whole number."""


class ClaimError(InputError):
    """A pod asks for something that can never be given."""


class AnnotationError(InputError):
    """An annotation that cannot be read or contradicts the pod."""


class LabelError(InputError):
    """A label outside its values."""


class MemoryRuleError(InputError):
    """The variables ALIYUN_COM_GPU_MEM_* of a container contradict each other."""


class ContainerError(InputError):
    """A container asks for what the runtime wrapper may not or cannot give it."""


class SettingError(InputError):
    """A setting, flag or file of ours."""


class PlacementError(CgpuError):
    """No card takes the claim at this moment."""


class UnavailableError(CgpuError):
    """Something outside does not answer or refuses."""


class NotFoundError(UnavailableError):
    """The other side answers that the thing does not exist."""


class ConflictError(UnavailableError):
    """The other side answers that the thing has changed or exists already."""


class ForbiddenError(UnavailableError):
    """The other side answers that we may not."""


class ExpiredError(UnavailableError):
    """The other side answers that our version of the world is too old."""
