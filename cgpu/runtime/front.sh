#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cgpu-runtime: an OCI runtime that gives containers their slice of a GPU and leaves the rest to runc or crun.
# Most containers have no GPU, and all are asked about often: only what may make or end an instance starts Python.
runtime=runc
home=/opt/cgpu/bin/cgpu-runtime # where install.sh puts it; to ask readlink would be one more program
config=${CGPU_CONFIG:-/etc/cgpu/config.toml}
if [ -r "$config" ]; then
	while IFS=' 	=' read -r key value; do
		[ "$key" = runtime ] || continue
		value=${value%%#*}
		value=${value#[\"\']}
		runtime=${value%%[\"\']*}
	done < "$config"
fi

# all modules from the one file of install.sh, if it is of this Python; no search for rubbish in a life this short
at_once='
import gc, marshal, sys, _frozen_importlib_external as imports
gc.disable()
with open(sys.argv[1] + "/cgpu/runtime/modules.bin", "rb") as file:
    if file.read(4) == imports.MAGIC_NUMBER:
        loader, modules = marshal.loads(file.read())
        exec(loader)
'
think() {
	here=$0
	[ "$here" -ef "$home" ] && here=$home
	[ -L "$here" ] && here=$(readlink -f "$here")
	bin=${here%/*}
	code='import sys; sys.path.append(sys.argv.pop(1)); from cgpu.runtime.__main__ import command; command()'
	for site in "$bin"/../lib/python3*/site-packages; do
		[ -e "$site/cgpu/runtime/modules.bin" ] && code=$at_once$code
		[ -e "$site/cgpu/runtime/__main__.py" ] && exec "$bin/python3" -I -S -c "$code" "$site" "$runtime" "$@"
	done
	exec "$bin/python3" -I -c "$code" "$bin" "$runtime" "$@" # a checkout, which only `site` finds
}

# a container whose document names neither GPUs nor shares is the runtime's alone
created() {
	bundle=. last=
	for word in "$@"; do
		case $last in --bundle | -b) bundle=$word ;; esac
		case $word in --bundle=* | -b=*) bundle=${word#*=} ;; esac
		last=$word
	done
	LC_ALL=C grep -q -e ALIYUN_COM_GPU_ -e CGPU_DISABLE -e NVIDIA_VISIBLE_DEVICES -e nvidia "$bundle/config.json" 2> /dev/null
	[ $? = 1 ] || think "$@"
	exec "$runtime" "$@"
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
	case $command in create | run | restore) created "$@" ;; delete | "") ;; *) break ;; esac
done

if [ "$command" = delete ]; then
	case $container in
	*[!0-9a-f]*) think "$@" ;;
	*) [ -e "/run/cgpu/${container%"${container#????????????}"}.json" ] && think "$@" ;;
	esac
fi
exec "$runtime" "$@"
