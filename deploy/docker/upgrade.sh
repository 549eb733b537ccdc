#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sh upgrade.sh [--dry-run] [--hot] [--no-module]: this version in place of the installed one.
#
# Cold, the default: no container may have a share; the module is taken out and the new one loaded.
# --hot        below running containers, through /proc/cgpu_km/upgrade; where that is impossible it says why
# --no-module  only the commands
set -eu
program=upgrade.sh
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"

options "--dry-run --hot --no-module" "$@"
need_root
[ -x "$home/bin/cgpu" ] || fail "cgpu is not installed: sh install.sh"
check_system
find_python
if [ "$module" ] && [ -z "$hot" ] && [ "$(instances)" ]; then
	fail "containers have shares: $(instances | tr '\n' ' '); stop them (docker ps, docker stop), or say --hot"
fi
if [ "$module" ] && [ -z "$hot" ]; then run "$home/bin/cgpu" module unload; fi
install_commands
if [ "$module" ]; then
	install_module
	if [ "$hot" ]; then run "$home/bin/cgpu" module upgrade --source "$sources"; else load_module; fi
fi
register_docker
say "upgraded to $version"
