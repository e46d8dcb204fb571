#!/bin/busybox sh
# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=dash
# The first program of a machine of scripts/machines, in its initramfs: the disks, then what is on
# them. /modules has the modules that the disks need, in the order in which they depend.
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
while read -r module; do
	/bin/busybox insmod "/lib/$module"
done </modules
/bin/busybox mount -t ext4 /dev/vda /root || echo "machine: no root"
/bin/busybox tar -xf /dev/vdb -C /root || echo "machine: no payload"
for system in dev proc sys; do
	/bin/busybox mount --move "/$system" "/root/$system"
done
exec /bin/busybox switch_root /root /bin/sh /opd/guest.sh
