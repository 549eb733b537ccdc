#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sh uninstall.sh [--dry-run] [--no-module]: leaves the host as it was found. No container may have a share.
set -eu
program=uninstall.sh
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"

options "--dry-run --no-module" "$@"
need_root
[ -x "$home/bin/cgpu" ] || fail "cgpu is not installed"
[ -z "$(instances)" ] || fail "containers have shares: $(instances | tr '\n' ' '); end them first (docker ps, docker rm -f)"

say "dockerd's configuration as it was"
release_docker
edit_daemon unregister
[ "$(readlink "$bin/$hook" 2> /dev/null)" != "$home/bin/cgpu-gpus-hook" ] || run rm -f "$bin/$hook"
reload_docker
if [ "$module" ]; then
	say "the kernel module"
	run "$home/bin/cgpu" module unload
	if [ -e "$unit" ]; then
		systemd disable cgpu.service
		run rm -f "$unit"
		systemd daemon-reload
	fi
	remove_sources ""
	for built in "$root/lib/modules"/*/updates/dkms/cgpu_*.ko*; do [ ! -e "$built" ] || run rm -f "$built"; done
	for folder in "$root/lib/modules"/*/updates/dkms "$root/lib/modules"/*/updates; do
		if [ -d "$folder" ] && [ -z "$(ls -A "$folder")" ]; then run rmdir "$folder"; fi
	done
	[ "$dry" ] || depmod 2> /dev/null || :
fi
for name in cgpu cgpu-smi cgpu-runtime; do run rm -f "$bin/$name"; done
run rm -rf "$home" "$root/etc/cgpu" "$root/run/cgpu" "$root/var/log/cgpu-runtime.log"
say "uninstalled"
