# SPDX-License-Identifier: Apache-2.0
"""The OCI runtime wrapper: between Docker, Podman or containerd and runc or crun, it gives a container its slice.

`arguments`, `request`, `choose` and `spec` are pure: command line, variables, GPUs and config.json. The rest touches
the machine: `config` (its file), `host` (cards and driver), `libraries`, `instances` (the kernel's side), `create`.
"""
