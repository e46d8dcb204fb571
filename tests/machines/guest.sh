#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=dash # ulimit -H
# Process 1 of a machine of scripts/machines: runs what /opd/tests lists, one line for each test:
# seconds that it may take, its name, its command. The log and the exit code of each go to the host
# as a tar archive, as soon as the test ends.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C TZ=UTC PYTHONDONTWRITEBYTECODE=1
export OPD_EMULATED=yes OPD_BUILD=/opd/build OPD_SOURCE=/opd/source OPD_BINDIR=/usr/bin OPD_SBINDIR=/usr/sbin

# With /opd/systemd, systemd is process 1 and runs this script once more.
if [ -e /opd/systemd ] && [ $$ -eq 1 ]; then
	mount -o remount,rw /
	printf '[Service]\nType=oneshot\nExecStart=/bin/sh -c "exec /bin/sh /opd/guest.sh >/dev/console 2>&1"\n%s' \
		'[Install]
WantedBy=multi-user.target
' >/etc/systemd/system/opd-tests.service
	systemctl enable opd-tests.service
	exec /lib/systemd/systemd
fi
if [ ! -e /opd/systemd ]; then
	mount -o remount,rw /
	mount -t tmpfs -o mode=755 run /run
	mkdir -p /dev/shm /dev/pts /run/lock
	mount -t tmpfs shm /dev/shm
	mount -t devpts devpts /dev/pts
	mount -t tracefs tracefs /sys/kernel/tracing
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
	# As systemd does. Linux 5.10 gives each sample the root's cgroup until a controller is on.
	echo +pids >/sys/fs/cgroup/cgroup.subtree_control
	ulimit -H -n 524288
	ln -sf /proc/self/fd /dev/fd
	ip link set lo up 2>/dev/null
fi

# Logs travel over a virtio port, whose number differs from machine to machine.
port=""
for name in /sys/class/virtio-ports/*/name; do
	[ "$(cat "$name" 2>/dev/null)" != opd.results ] || port=/dev/$(basename "$(dirname "$name")")
done
mkdir -p /opd/results
cd /opd/results || exit 1

send() {
	tar -cf "$port" "$@" || echo "machine: cannot send $*"
}

uname -r >kernel
nproc >cpus
send kernel cpus
while read -r seconds name command; do
	echo "machine: begin $name"
	since=$(cut -d. -f1 /proc/uptime)
	timeout -k 20 "$seconds" sh -c "$command" >"$name.log" 2>&1 </dev/null
	rc=$?
	echo "$rc $(($(cut -d. -f1 /proc/uptime) - since))" >"$name.rc"
	send "$name.log" "$name.rc"
	echo "machine: end $name $(cat "$name.rc")"
done </opd/tests
dmesg >dmesg.log
send dmesg.log
echo "machine: done"
sync
echo b >/proc/sysrq-trigger
sleep 60
