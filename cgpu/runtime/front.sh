#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cgpu-runtime: an OCI runtime that gives containers their slice of a GPU and leaves the rest to runc or crun.
# A container is created once but asked about often: only what makes or ends an instance starts Python.
runtime=runc
config=${CGPU_CONFIG:-/etc/cgpu/config.toml}
if [ -r "$config" ]; then
	while IFS=' 	=' read -r key value; do
		[ "$key" = runtime ] || continue
		value=${value%%#*}
		value=${value#[\"\']}
		runtime=${value%%[\"\']*}
	done < "$config"
fi

think() {
	here=$0
	[ -L "$here" ] && here=$(readlink -f "$here")
	exec "${here%/*}/python3" -I -m cgpu.runtime "$runtime" "$@"
}

command= container= skip=
for word in "$@"; do
	if [ "$skip" ]; then
		skip=
		continue
	fi
	case $word in
	--root | --log | --log-format | --log-level | --criu | --rootless | --cgroup-manager) [ "$command" ] || skip=1 ;;
	-*) ;;
	*) if [ "$command" ]; then container=$word; break; else command=$word; fi ;;
	esac
	case $command in create | run | restore) think "$@" ;; delete | "") ;; *) break ;; esac
done

if [ "$command" = delete ]; then
	case $container in
	*[!0-9a-f]*) think "$@" ;;
	*) [ -e "/run/cgpu/${container%"${container#????????????}"}.json" ] && think "$@" ;;
	esac
fi
exec "$runtime" "$@"
