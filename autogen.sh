#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Makes ./configure from a git checkout. Debian: apt-get install autoconf automake pkg-config
set -eu
cd "$(dirname "$0")"
for tool in autoreconf:autoconf automake:automake pkg-config:pkg-config; do
	command -v "${tool%%:*}" >/dev/null 2>&1 || {
		echo "autogen.sh: ${tool%%:*} is missing: install the Debian package ${tool#*:}" >&2
		exit 1
	}
done
exec autoreconf --install --force
