#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Stands for DKMS in the virtual machine, where a compilation would take many minutes: what was built for the bench, and
# what a test put into /run/dkms, goes where DKMS puts its own.
modules=/lib/modules/$(uname -r)/updates/dkms
echo "dkms $*" >> /run/dkms/called
case $1 in
install) mkdir -p "$modules" && cp /opt/bench/modules/cgpu_*.ko $(ls /run/dkms/*.ko 2> /dev/null) "$modules/" ;;
remove)
	rm -f "$modules/cgpu_core_$(echo "$5" | tr . _).ko"
	ls "$modules"/cgpu_core_* > /dev/null 2>&1 || rm -f "$modules"/cgpu_*.ko
	;;
esac
