# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
# The cases of scripts/test. Each is a command that ends with 0 (ok), 77 (skip, the reason on a line
# 'skip: ...') or something else.
# shellcheck disable=SC2154 # top, build, jobs, temporary, quick and long are the caller's

# The builds, each in build-test/NAME. The gcc one is configured as a distribution would, the clang
# one for a prefix of its own; with a sanitizer the compiler takes half again as long for -O2.
configure_options() {
	case $1 in
	gcc) echo "CC=gcc --enable-werror --prefix=/usr --sysconfdir=/etc --localstatedir=/var --runstatedir=/run" ;;
	clang) echo "CC=clang --enable-werror --prefix=/opt/opd" ;;
	asan) echo "CC=gcc CFLAGS=-O1 --enable-werror --enable-sanitizers" ;;
	tsan) echo "CC=gcc CFLAGS=-O1 --enable-werror --enable-tsan" ;;
	esac
}

# The system tests that a build with sanitizers runs: those that do not compare shares of time.
SANITIZED_SYSTEM="agreement attribution control errors page_faults restart turns"

# And those that opd as a user runs here, since they go where permissions matter.
USER_SYSTEM="control errors fault_space kernel restart"

# Builds a variant once; whoever needs it calls this first, several at a time too.
need_build() {
	(
		flock 9
		build_once "$1"
	) 9>"$temporary/lock-$1"
}

build_once() {
	[ ! -e "$temporary/built-$1" ] || return 0
	if [ -e "$temporary/broken-$1" ]; then
		echo "there is no $1 build, see the case $1/build"
		return 1
	fi
	# shellcheck disable=SC2046
	if build_tree "$build/$1" $(configure_options "$1") &&
		as_owner make -C "$build/$1" -j"$jobs" --no-print-directory check-programs; then
		touch "$temporary/built-$1"
	else
		touch "$temporary/broken-$1"
		return 1
	fi
}

# Runs a command with a build to test. ThreadSanitizer does not know every layout of addresses that
# new kernels randomize to; and where threads still run at the end it watches them for a second, of
# each child, too: a tenth is enough for a race at exit.
run_built() {
	local variant=$1 prefix=()
	shift
	need_build "$variant" || return 1
	[ "$variant" != tsan ] || prefix=(setarch "$(uname -m)" -R)
	cd "$build/$variant" || return 1
	env OPD_BUILD="$build/$variant" OPD_SOURCE="$top" OPD_VARIANT="$variant" srcdir="$top" \
		ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1 \
		TSAN_OPTIONS=second_deadlock_stack=1:atexit_sleep_ms=100 "${prefix[@]}" "$@"
}

# System tests that want the machine for themselves: they compare rates and times, count what the
# kernel counts in all, change a setting of the kernel, or make more images than any opd keeps.
ALONE_SYSTEM="agreement attribution bounds callgraph cgroup_storm hotplug import kernel overwrite page_faults processes shares storm swaps turns wakeup"

# Those that count page faults: the kernel mixes up such samples when two profilers take them at
# once.
FAULTS_SYSTEM="clock control dcookies errors fault_dump fault_kill fault_pages fault_rotate fault_space fault_tree limits leftovers many_files
	opcheck opcontrol rotation span"

system_tests() {
	find "$top/tests/system" -name 'test_*.py' -printf '%f\n' | sed 's/^test_//; s/\.py$//' | sort
}

# The names in the Makefile fragments of the unit tests; known before anything is built.
unit_tests() {
	echo tests/ring/torture # the longest: the others run beside it
	grep -ohE 'tests/unit/test_[A-Za-z0-9_]+(\.[a-z]+)?' "$top"/tests/unit/*.mk | sed -n '/\.sh$/p; /\.py$/p; /\./!p' | sort -u
	echo tests/ring/litmus
	echo tests/fuzz/test_corpus.sh
}

# Long ones in which nothing has threads: ThreadSanitizer has nothing to say of them.
NO_THREADS="test_bad_images test_jit test_mapset test_oparchive test_ring_differential test_ring_killed test_ring_killed_aux"

is_for() {
	local name=${2##*/}
	case $1:" $NO_THREADS " in
	tsan:*" ${name%.*} "*) return 1 ;;
	esac
}

# A million records with gcc and under ASan; what another compiler made of the same code shows with
# fewer. ThreadSanitizer takes five times as long: its million is in --long.
check_units() {
	local variant=$1 program records=1000000
	shift
	case $variant:$long in
	clang:* | tsan:no) records=200000 ;;
	esac
	for program in "$@"; do
		is_for "$variant" "$program" || continue
		case $program in
		*.sh) check "$variant/unit/${program##*/}" run_built "$variant" "$top/$program" ;;
		*.py) check "$variant/unit/${program##*/}" run_built "$variant" python3 "$top/$program" ;;
		*/torture) check "$variant/unit/torture" run_built "$variant" "./$program" --records=$records ;;
		*) check "$variant/unit/${program##*/}" run_built "$variant" "./$program" ;;
		esac
	done
}

all_units() {
	# shellcheck disable=SC2046
	check_units "$1" $(unit_tests)
}

check_systems() {
	local variant=$1 name
	shift
	for name in "$@"; do
		check "$variant/system/$name" run_built "$variant" python3 "$top/tests/system/test_$name.py"
	done
}

# The daemon as the unit runs it: a user of its own, with the unit's capabilities. All of them: make
# check-user.
check_users() {
	local name
	for name in "$@"; do
		check "user/system/$name" run_built gcc env OPD_RUN_AS=user python3 "$top/tests/system/test_$name.py"
	done
}

check_golden() {
	local line
	while IFS= read -r line; do
		case $line in '' | '#'*) continue ;; esac
		check "golden/${line//[ \/]/_}" run_built gcc python3 "$top/tests/golden/run.py" "$line"
	done <"$top/tests/golden/cases.txt"
}

sources() {
	find "$top" \( -name .git -o -name 'build*' -o -name autom4te.cache \) -prune -o -type f "$@" -print
}

# Every header must compile with nothing before it but what the build gives every file.
# What a bench includes of a peer is looked at where the peer's package is.
headers_alone() {
	local header bad=0 without=config.h
	need_build gcc || return 1
	pkg-config --exists lttng-ust || without=lttng_events.h
	while IFS= read -r header; do
		echo "#include \"${header#"$top/"}\"" | "$1" -std=gnu11 -fsyntax-only -Wall -Wextra -Werror -include config.h \
			-include "$top/libop/base/banned.h" -I"$build/gcc" -I"$top" -DOPD_SYSCONFDIR='"/etc"' -DOPD_SBINDIR='"/usr/sbin"' \
			-DOPD_DATADIR='"/usr/share"' -DOPD_LOCALSTATEDIR='"/var"' -DOPD_RUNSTATEDIR='"/run"' -x c - || bad=1
	done < <(sources -name '*.h' -not -name config.h -not -name "$without")
	return $bad
}

static_analysis() {
	need_build gcc || return 1
	cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 -j"$jobs" \
		--suppressions-list="$top/tests/cppcheck.txt" --include="$build/gcc/config.h" -I"$top" -I"$build/gcc" \
		-DOPD_SYSCONFDIR='"/etc"' -DOPD_SBINDIR='"/usr/sbin"' -DOPD_DATADIR='"/usr/share"' -DOPD_LOCALSTATEDIR='"/var"' -DOPD_RUNSTATEDIR='"/run"' \
		"$top/libop" "$top/daemon" "$top/tools"
}

# SPDX line, length of files and functions, marks of unfinished work and of merges, and scripts that
# parse.
house_style() {
	sources \( -name '*.[ch]' -o -name '*.sh' -o -name '*.py' -o -name '*.mk' -o -name '*.md' -o -name '*.[1-8]' -o -name '*.am' -o -name '*.ac' \) >"$temporary/sources"
	python3 "$top/tests/style.py" "$temporary/sources"
}

scripts_sane() {
	local scripts
	mapfile -t scripts < <(sources -name '*.sh'; printf '%s\n' "$top/scripts/test" "$top/scripts/demo" "$top/autogen.sh" "$top/.ci/run" "$top/packaging/build-deb")
	(cd "$top" && shellcheck -x "${scripts[@]}") && all_run
}

# Tests that make runs by their names.
all_run() {
	local left
	left=$(find "$top/tests/unit" \( -name 'test_*.py' -o -name 'test_*.sh' \) -not -perm -u=x)
	[ -z "$left" ] || { echo "not executable: $left"; return 1; }
}

# That the targets of `make fuzz` can be built, in their own way and with nothing of theirs missing.
# Where they are built for use, they are instrumented.
fuzz_targets() {
	need_build gcc || return 1
	make -C "$build/gcc" -j"$jobs" --no-print-directory fuzz-programs FUZZ_CFLAGS="-O0 -fsanitize=fuzzer" &&
		rm -f "$build"/gcc/tests/fuzz/fuzz_*[!.o]
}

distcheck() {
	need_build gcc || return 1
	as_owner env OPD_MODEL=quick OPD_TORTURE_RECORDS=200000 make -C "$build/gcc" -j"$jobs" --no-print-directory distcheck \
		AM_DISTCHECK_CONFIGURE_FLAGS=CFLAGS=-O1
}

# Installs below a DESTDIR with another prefix, uses it from there, and takes it away again.
install_elsewhere() {
	local dest=$temporary/destdir left
	need_build clang || return 1
	rm -rf "$dest"
	make -C "$build/clang" --no-print-directory install DESTDIR="$dest" || return 1
	(cd "$dest" && find . -type f | sort)
	OPD_BINDIR=$dest/opt/opd/bin OPD_SBINDIR=$dest/opt/opd/sbin run_built clang python3 "$top/tests/system/test_control.py" || return 1
	make -C "$build/clang" --no-print-directory uninstall DESTDIR="$dest" || return 1
	left=$(find "$dest" -type f)
	[ -z "$left" ] || { echo "uninstall leaves: $left"; return 1; }
}

# Nothing that a script started may be there after it.
left_by() {
	local left
	left=$(find /proc/[0-9]*/exe -maxdepth 0 -lname "$1*" 2>/dev/null)
	[ -z "$left" ] || { echo "still running: $left"; return 1; }
}

demo_works() {
	"$top/scripts/demo" "$@" && left_by "$top/build-demo/"
}

# Without spin nothing is proved. It is skipped only where need_packages could not see to it that
# spin is there.
model_holds() {
	local rc=0
	"$top/tests/model/run.sh" || rc=$?
	[ "$rc" -ne 77 ] || ! command -v dpkg-query >/dev/null 2>&1 || { echo "spin is not there"; return 1; }
	return "$rc"
}

static_checks() {
	check model model_holds
	check fuzz/build fuzz_targets
	check headers/gcc headers_alone gcc
	check headers/clang headers_alone clang
	check style house_style
	check shellcheck scripts_sane
	check cppcheck static_analysis
}

# ---- lanes: cases that do not disturb those of another lane ----

faults_lane() {
	# shellcheck disable=SC2086
	check_systems gcc $FAULTS_SYSTEM
}

others_lane() {
	# shellcheck disable=SC2046,SC2086
	check_systems gcc $(system_tests | grep -vxFf <(printf '%s\n' apply $FAULTS_SYSTEM $ALONE_SYSTEM))
}

# It takes a minute, all of which it waits for those that do not answer.
waiting_lane() {
	check_systems gcc apply
}

# It waits most of the time, for packages and for its services.
container_lane() {
	check container run_built gcc python3 "$top/tests/systemd/test_container.py"
	check_units tsan tests/ring/torture
}

builds_lane() {
	check clang/build need_build clang
	check asan/build need_build asan
	check tsan/build need_build tsan
}

asan_lane() {
	all_units asan
}

tsan_lane() {
	# shellcheck disable=SC2046
	check_units tsan $(unit_tests | grep -vx tests/ring/torture)
}

distcheck_lane() {
	check distcheck distcheck
}

# What has been seen to fail with clang alone, or after a million records under TSan alone, is rare,
# and takes five minutes.
run_long_checks() {
	together all_units clang
	check_units tsan tests/ring/torture
}

run_checks() {
	if [ "$long" = yes ]; then
		run_long_checks
		return
	fi
	check gcc/build need_build gcc
	together all_units gcc
	together check_golden
	together static_checks
	[ "$quick" = no ] || return 0
	# shellcheck disable=SC2086
	check_systems gcc $ALONE_SYSTEM
	lanes others_lane faults_lane builds_lane waiting_lane
	# shellcheck disable=SC2086
	check_users $USER_SYSTEM
	check install install_elsewhere
	lanes container_lane asan_lane
	# shellcheck disable=SC2086
	check_systems asan $SANITIZED_SYSTEM
	# shellcheck disable=SC2086
	check_systems tsan $SANITIZED_SYSTEM
	lanes tsan_lane distcheck_lane
	check demo demo_works
	check demo-again demo_works -- sh -c 'gzip -9 < /bin/bash | sha256sum'
}
