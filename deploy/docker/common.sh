# SPDX-License-Identifier: Apache-2.0
# What install.sh, upgrade.sh and uninstall.sh share; POSIX sh, read with `.` after $here and $program are set.
# CGPU_ROOT stands for / in tests.
root=${CGPU_ROOT:-}
home=$root/opt/cgpu
bin=$root/usr/local/bin
daemon=$root/etc/docker/daemon.json
unit=$root/etc/systemd/system/cgpu.service
hook=nvidia-container-runtime-hook
source_tree=$(cd "$here/../.." && pwd)
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' "$source_tree/kmod/dkms.conf")
sources=$root/usr/src/cgpu_km-$version
dry=
module=1
hot=

say() { echo "cgpu: $*"; }
fail() { echo "$program: $*" >&2; exit 1; }

# options "ALLOWED" WORD...: sets what the words say; a word that is not among the allowed ends the script
options() {
	allowed=$1
	shift
	for word in "$@"; do
		case " $allowed " in
		*" $word "*) ;;
		*) echo "usage: sh $program [$(echo "$allowed" | sed 's/ /] [/g')]" >&2; exit 2 ;;
		esac
		case $word in
		--dry-run) dry=1 ;;
		--no-module) module= ;;
		--hot) hot=1 ;;
		esac
	done
}

# run COMMAND...: does it, or with --dry-run says what it would do
run() {
	if [ "$dry" ]; then echo "would run: $*"; else "$@"; fi
}

# put FILE: writes standard input to it
put() {
	if [ "$dry" ]; then echo "would write: $1"; cat > /dev/null; else mkdir -p "$(dirname "$1")" && cat > "$1"; fi
}

need_root() {
	[ "$dry" ] || [ "$(id -u)" = 0 ] || fail "must be run as root: sudo sh $program"
}

# The product's systems: what is not in this list is refused by name.
check_system() {
	[ -r "$root/etc/os-release" ] || fail "no /etc/os-release: this system cannot be recognised"
	os=$(sed -n 's/^ID=//p' "$root/etc/os-release" | tr -d '"')
	release=$(sed -n 's/^VERSION_ID=//p' "$root/etc/os-release" | tr -d '"')
	case $os in
	debian | ubuntu) packages="apt-get install python3 make gcc linux-headers-$(uname -r)" ;;
	centos | rhel | almalinux | rocky | alinux | anolis)
		packages="dnf install python3.11 make gcc kernel-devel-$(uname -r)" ;;
	*) fail "$os $release is not supported: Debian, Ubuntu, CentOS, AlmaLinux, Rocky, RHEL, Anolis OS and Alibaba Cloud Linux are" ;;
	esac
	[ "$(uname -m)" = x86_64 ] || fail "$(uname -m) is not supported: x86_64 is"
	say "$os $release, Linux $(uname -r)"
}

find_python() {
	for python in python3 python3.14 python3.13 python3.12 python3.11; do
		"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null && return
	done
	fail "Python 3.11 or newer is needed: $packages"
}

# names of the instances that exist, one a line
instances() {
	[ -e "$root/proc/cgpu_km/inst_ctl" ] || return 0
	cut -d " " -f 1 "$root/proc/cgpu_km/inst_ctl" | sort -u
}

install_commands() {
	say "commands to $home"
	run "$python" -m venv --without-pip "$home"
	if [ -z "$dry" ]; then
		site=$("$home/bin/python3" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
		rm -rf "$site/cgpu.new" "$site/cgpu.old"
		cp -R "$source_tree/cgpu" "$site/cgpu.new"
		find "$site/cgpu.new" -name __pycache__ -prune -exec rm -rf {} +
		# containers may be created meanwhile
		[ ! -e "$site/cgpu" ] || mv "$site/cgpu" "$site/cgpu.old"
		mv "$site/cgpu.new" "$site/cgpu"
		rm -rf "$site/cgpu.old"
		# compiled now, not at the start of the first container
		"$home/bin/python3" -I -S "$here/onefile.py" "$site"
		cp "$source_tree/cgpu/runtime/front.sh" "$home/bin/cgpu-runtime.new"
		mv "$home/bin/cgpu-runtime.new" "$home/bin/cgpu-runtime"
	fi
	entry cgpu cgpu.cli.main
	entry cgpu-smi cgpu.cli.smi
	put "$home/bin/cgpu-gpus-hook" <<- 'END'
		#!/bin/sh
		# Stands where Docker looks for NVIDIA's hook, so that --gpus is accepted; cgpu-runtime takes it out again.
		echo "cgpu: --gpus needs cgpu-runtime: leave --runtime out, or say --runtime=nvidia" >&2
		exit 1
	END
	run chmod 755 "$home/bin/cgpu-runtime" "$home/bin/cgpu-gpus-hook" "$home/bin/cgpu" "$home/bin/cgpu-smi"
	run mkdir -p "$bin"
	for name in cgpu cgpu-smi cgpu-runtime; do run ln -sf "$home/bin/$name" "$bin/$name"; done
	put "$root/etc/cgpu/config.toml.example" < "$here/config.toml.example"
}

entry() {
	put "$home/bin/$1" <<- END
		#!$home/bin/python3 -I
		import sys
		from $2 import main
		sys.exit(main())
	END
}

# remove_sources VERSION: every version's but that one's, from DKMS too
remove_sources() {
	for folder in "$root/usr/src"/cgpu_km-*; do
		if [ ! -e "$folder" ] || [ "$folder" = "$root/usr/src/cgpu_km-$1" ]; then continue; fi
		if command -v dkms > /dev/null 2>&1; then run dkms remove -m cgpu_km -v "${folder##*-}" --all || :; fi
		run rm -rf "$folder"
	done
}

install_module() {
	say "sources of the kernel module to $sources"
	run rm -rf "$sources"
	run mkdir -p "$(dirname "$sources")"
	run cp -R "$source_tree/kmod" "$sources"
	if command -v dkms > /dev/null 2>&1; then
		say "DKMS builds the module for every kernel that comes"
		run dkms add -m cgpu_km -v "$version" --force
		run dkms install -m cgpu_km -v "$version" --force
	else
		say "there is no DKMS: the module is built for this kernel only, and again by this script after a new one"
		run "$home/bin/cgpu" module build --source "$sources"
	fi
	remove_sources "$version"
	put "$unit" <<- END
		[Unit]
		Description=cgpu kernel module
		Before=docker.service containerd.service
		After=systemd-modules-load.service
		[Service]
		Type=oneshot
		RemainAfterExit=yes
		ExecStartPre=-/sbin/modprobe nvidia
		ExecStartPre=-/sbin/modprobe nvidia-uvm
		ExecStart=/usr/local/bin/cgpu module load
		[Install]
		WantedBy=multi-user.target
	END
	systemd daemon-reload
	systemd enable cgpu.service
}

load_module() {
	run "$home/bin/cgpu" module load --source "$sources" && return
	if command -v mokutil > /dev/null && mokutil --sb-state 2> /dev/null | grep -q enabled; then
		say "Secure Boot is on: the kernel loads signed modules only. DKMS signs with a key of this machine; enrol it once:"
		say "    mokutil --import /var/lib/dkms/mok.pub     # choose a password, restart, 'Enroll MOK', then run this again"
	fi
	fail "the module does not load: $bin/cgpu module status says what is in the way"
}

systemd() {
	[ -d "$root/run/systemd/system" ] || return 0
	run systemctl "$@"
}

register_docker() {
	say "dockerd's configuration"
	edit_daemon register
	if ! command -v $hook > /dev/null; then
		run ln -sf "$home/bin/cgpu-gpus-hook" "$bin/$hook"
		say "docker run --gpus works after dockerd was started anew once (it looks for $hook only then)"
	fi
	reload_docker
}

edit_daemon() {
	if [ "$dry" ] && [ ! -x "$home/bin/python3" ]; then
		(cd "$source_tree" && "$python" -m cgpu.runtime.daemon "$1" "$daemon" "$bin/cgpu-runtime" --dry-run)
	else
		"$home/bin/python3" -I -m cgpu.runtime.daemon "$1" "$daemon" "$bin/cgpu-runtime" ${dry:+--dry-run}
	fi
}

# a dockerd that runs forgets us as its default runtime only when it is told another one
release_docker() {
	[ -e "$root/var/run/docker.pid" ] || return 0
	edit_daemon release
	reload_docker
	[ -z "$dry" ] || return 0
	tries=0
	while [ "$(docker info --format '{{.DefaultRuntime}}' 2> /dev/null)" = cgpu ]; do
		[ $tries -lt 100 ] || fail "dockerd keeps cgpu as its default runtime: start it anew with another one in $daemon, then run this again"
		tries=$((tries + 1))
		sleep 0.2
	done
}

# dockerd reads runtimes and the default runtime again at a SIGHUP; containers do not notice
reload_docker() {
	pid=$(cat "$root/var/run/docker.pid" 2> /dev/null) || return 0
	run kill -HUP "$pid"
}
