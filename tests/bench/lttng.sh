#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs lttng_writer beside a session daemon of its own: usage: lttng.sh LTTNG-WRITER. The daemon's
# sockets, the shared memory and the traces are on a tmpfs that nobody else sees, so root is needed;
# whatever LTTng runs on this host is not touched.
if [ "$1" != --inside ]; then
	command -v lttng-sessiond >/dev/null || { echo "no lttng-sessiond (Debian package lttng-tools)" >&2; exit 1; }
	[ "$(id -u)" -eq 0 ] || { echo "needs root for a mount namespace of its own" >&2; exit 1; }
	exec unshare --mount --propagation private -- "$0" --inside "$@"
fi
mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /dev/shm && mkdir /run/home /run/traces || exit 1
ready=/run/ready
export LTTNG_HOME=/run/home HOME=/run/home LTTNG_UST_REGISTER_TIMEOUT=-1
trap ': >"$ready"' USR1
lttng-sessiond --no-kernel --sig-parent >/run/sessiond.log 2>&1 &
daemon=$!
tries=0
while [ ! -e "$ready" ] && kill -0 "$daemon" 2>/dev/null && [ "$tries" -lt 150 ]; do
	sleep 0.1
	tries=$((tries + 1))
done
rc=1
if [ -e "$ready" ]; then
	"$2" /run/traces
	rc=$?
else
	echo "lttng-sessiond does not start: $(tail -n 1 /run/sessiond.log)" >&2
fi
kill "$daemon" 2>/dev/null
wait "$daemon"
exit "$rc"
