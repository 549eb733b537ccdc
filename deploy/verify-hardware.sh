#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sh deploy/verify-hardware.sh [REPORT]: what this project does on your card, in one file to attach to an issue.
#
# Root, a GPU that nobody uses for ten minutes, a checkout. It loads the kernel module (building it where that was not
# done), writes down what the driver says and which calls a CUDA program makes, tries a memory limit and a 1:2 share,
# and leaves the host as it was. Ends with 0: everything held; 1: something did not; 2: it could not be tried.
set -eu
program=verify-hardware.sh
deploy=$(cd "$(dirname "$0")" && pwd)
here=$deploy/docker
. "$here/common.sh"

[ $# -le 1 ] || { echo "usage: sh $program [REPORT]" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "$program: must be run as root: sudo sh $program" >&2; exit 2; }
packages="your system's package of Python 3.11 or newer"
(find_python) || exit 2
find_python
exec "$python" -I "$deploy/hardware/verify.py" "$@"
