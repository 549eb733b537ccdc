#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sh install.sh [--dry-run] [--no-module]: cgpu on this host, for its Docker.
#
# --dry-run    say what would be done
# --no-module  leave the kernel module to somebody else (a DaemonSet, an image)
set -eu
program=install.sh
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"

options "--dry-run --no-module" "$@"
need_root
check_system
find_python
install_commands
if [ "$module" ]; then
	install_module
	load_module
fi
register_docker
say "installed. Try: docker run --rm --gpus all -e ALIYUN_COM_GPU_MEM_CONTAINER=6 -e ALIYUN_COM_GPU_MEM_DEV=15 IMAGE nvidia-smi"
