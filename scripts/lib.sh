# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash disable=SC2034,SC2154 # variables are for the caller, who sets self
# What scripts/demo and scripts/test share: root, packages, builds, and an end that leaves nothing
# behind. The caller sets `self` (its own path), sources this file and calls begin "$@".

# Debian packages, in one place. BUILD: needed for ./configure && make, the LIBRARY packages for the
# machine that opd is built for; TEST: what scripts/test needs more; DEMO: scripts/demo.
LIBRARY_PACKAGES="libc6-dev linux-libc-dev libpopt-dev libsystemd-dev libcap-dev libseccomp-dev
	binutils-dev libiberty-dev libmd-dev libelf-dev libdw-dev libzstd-dev liblzma-dev zlib1g-dev libpfm4-dev libdebuginfod-dev
	libncurses-dev"
BUILD_PACKAGES="gcc make autoconf automake pkg-config $LIBRARY_PACKAGES"
TEST_PACKAGES="ccache g++ libbpf-dev libcmocka-dev libxml2-utils less clang libclang-rt-dev cppcheck shellcheck python3 git xz-utils
	coreutils util-linux binutils mmdebstrap systemd-container dpkg-dev debhelper spin linux-perf zsh debuginfod nodejs
	protobuf-compiler golang-go rustc llvm dwz valgrind bolt-19 mold tmux chromium openjdk-17-jdk-headless
	perl libperl-dev php-cli php-dev ruby musl-tools python3-venv libpython3-dev"
DEMO_PACKAGES="xz-utils gzip coreutils python3 clang libbpf-dev"
BENCH_PACKAGES="python3 linux-perf libck-dev liburcu-dev
	liblttng-ust-dev liblttng-ctl-dev lttng-tools"

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
jobs=$(nproc)
temporary=""
children=()
groups=()

say() { printf '== %s\n' "$*"; }
die() {
	printf '%s: %s\n' "$(basename "$self")" "$*" >&2
	exit 1
}

# Goes on as root: is root already, or starts itself again through sudo.
need_root() {
	[ "$(id -u)" -eq 0 ] && return
	command -v sudo >/dev/null 2>&1 || die "must run as root, and sudo is not installed"
	sudo -n true 2>/dev/null || [ -t 0 ] || die "must run as root: start it with sudo"
	exec sudo -- "$self" "$@"
}

# What of the environment could steer opd, the tools or the build somewhere else.
clean_environment() {
	unset OPD_CONFIG OPD_DAEMON OPD_TABLES OPD_WAITS OPD_BUILD OPD_SOURCE OPD_BINDIR OPD_SBINDIR OPD_QUICK
	unset NOTIFY_SOCKET WATCHDOG_USEC LISTEN_FDS
	unset CC CFLAGS CPPFLAGS LDFLAGS LIBS MAKEFLAGS MFLAGS DESTDIR CONFIG_SITE ASAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS
	unset CMOCKA_TEST_ABORT CMOCKA_MESSAGE_OUTPUT CMOCKA_XML_FILE LD_PRELOAD LD_LIBRARY_PATH PYTHONPATH
	export LC_ALL=C TZ=UTC DEBIAN_FRONTEND=noninteractive PYTHONDONTWRITEBYTECODE=1
	export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
	umask 022
}

# Ends what start_child and start_group started, newest first, and removes the temporary directory.
# Runs on every way out.
finish() {
	local rc=$? i
	trap - EXIT INT TERM HUP
	for i in "${groups[@]}"; do
		kill -TERM -- "-$i" 2>/dev/null || continue
		wait "$i" 2>/dev/null || :
	done
	for ((i = ${#children[@]} - 1; i >= 0; i--)); do
		end_process "${children[i]}"
	done
	if declare -F at_end >/dev/null; then at_end; fi
	[ -z "$temporary" ] || rm -rf -- "$temporary"
	exit "$rc"
}

# TERM, then KILL after 10 s.
end_process() {
	local pid=$1 i
	kill -TERM "$pid" 2>/dev/null || return 0
	for ((i = 0; i < 100; i++)); do
		is_alive "$pid" || break
		sleep 0.1
	done
	kill -KILL "$pid" 2>/dev/null || :
	wait "$pid" 2>/dev/null || :
}

# A zombie is not alive: its end is only not yet noticed.
is_alive() {
	local state
	state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null) || return 1
	[ -n "$state" ] && [ "$state" != Z ]
}

start_child() {
	"$@" <&0 &
	children+=($!)
}

# The same for a command with children of its own: all of them are ended.
start_group() {
	set -m
	"$@" </dev/null &
	groups+=($!)
	set +m
}

make_temporary() {
	temporary=$(mktemp -d "${TMPDIR:-/tmp}/opd-$1.XXXXXX")
	chmod 0755 "$temporary"
}

begin() {
	set -uo pipefail
	need_root "$@"
	prepare
}

# The rest of begin, for a script that goes on as whoever calls it.
prepare() {
	set -uo pipefail
	clean_environment
	trap finish EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	trap 'exit 129' HUP
}

# Sets `missing` to those of the named packages that are missing. False: there is no dpkg to ask.
find_missing() {
	local package
	missing=()
	command -v dpkg-query >/dev/null 2>&1 || {
		say "no dpkg here: these Debian packages, or what is the same, must be installed: $*"
		return 1
	}
	for package in "$@"; do
		dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
	done
}

# Installs those of the named packages that are missing, and says every 10 s how far it is.
need_packages() {
	local log pid waited=0
	find_missing "$@" || return 0
	[ ${#missing[@]} -gt 0 ] || return 0
	say "installing ${#missing[@]} Debian packages and what they need, which may take minutes: ${missing[*]}"
	log=$(mktemp)
	{ apt-get -q update && apt-get -q -y --no-install-recommends install "${missing[@]}"; } >"$log" 2>&1 </dev/null &
	pid=$!
	children+=("$pid")
	while is_alive "$pid"; do
		sleep 1
		[ $((++waited % 10)) -ne 0 ] || tell_packages "$log"
	done
	if ! wait "$pid"; then
		tail -n 20 "$log" >&2
		rm -f "$log"
		die "cannot install ${missing[*]}"
	fi
	rm -f "$log"
}

# tell_packages LOG: one line from the log of apt-get.
tell_packages() {
	local all
	all=$(sed -n 's/.* \([0-9]*\) newly installed.*/\1/p' "$1")
	[ -n "$all" ] || { echo "     ... reading the lists of packages" && return; }
	printf '     ... %d packages: %d unpacked, %d set up\n' "$all" "$(grep -c '^Unpacking ' "$1")" \
		"$(grep -c '^Setting up ' "$1")"
}

# with_progress DIR LOG COMMAND...: runs a build of opd in DIR, and says every 10 s how far it is.
with_progress() {
	local dir=$1 log=$2 pid since=$SECONDS waited=0
	shift 2
	start_group "$@" >"$log" 2>&1
	pid=${groups[-1]}
	while is_alive "$pid"; do
		sleep 1
		[ $((++waited % 10)) -ne 0 ] || tell_build "$dir" $((SECONDS - since))
	done
	wait "$pid"
}

# tell_build DIR SECONDS: one line from the objects that are there.
tell_build() {
	local made all
	made=$(cd "$1" && find libop pipeline daemon tools -name '*.o' 2>/dev/null | wc -l)
	all=$(cd "$top" && find libop pipeline daemon tools -name '*.c' | wc -l)
	[ "$made" -gt 0 ] || { echo "     ... $2 s: making and running ./configure" && return; }
	echo "     ... $2 s: $made of about $all files compiled"
}

# Root runs a command as the owner of the source tree, so that no file of root is left in a user's
# clone. Others run it as they are.
as_owner() {
	local uid gid path=$PATH
	[ -z "${CCACHE_DIR-}" ] || path=/usr/lib/ccache:$PATH
	uid=$(stat -c %u "$top")
	gid=$(stat -c %g "$top")
	if [ "$uid" -eq 0 ] || [ "$(id -u)" -ne 0 ]; then
		env PATH="$path" "$@"
	else
		setpriv --reuid="$uid" --regid="$gid" --clear-groups env HOME=/nonexistent PATH="$path" "$@"
	fi
}

# True when ./configure is missing or older than what it is made from.
configure_is_stale() {
	[ -x "$top/configure" ] || return 0
	[ -n "$(find "$top/configure.ac" "$top/Makefile.am" "$top"/m4/opd.m4 "$top"/*/local.mk "$top"/*/*/*.mk "$top"/*/*/local.mk \
		-newer "$top/configure" -print -quit 2>/dev/null)" ]
}

make_configure() {
	if configure_is_stale; then
		(cd "$top" && as_owner ./autogen.sh) || return 1
	fi
}

# build_tree SOURCE DIR JOBS CONFIGURE-OPTION...: configure and make in DIR; autogen when it is
# needed.
build_tree() {
	local source=$1 dir=$2 jobs=$3
	shift 3
	[ ! -e "$top/config.status" ] ||
		die "the source tree itself is configured; run 'make distclean' there, this script builds beside it"
	make_configure || return 1
	as_owner mkdir -p "$dir" || return 1
	[ -e "$dir/config.status" ] || (cd "$dir" && as_owner "$source/configure" --quiet "$@") || return 1
	as_owner make -C "$dir" -j"$jobs" --no-print-directory all
}
