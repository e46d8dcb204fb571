# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
# The cases of scripts/test. Each is a command that ends with 0 (ok), 77 (skip, the reason on a line
# 'skip: ...') or something else.
# shellcheck disable=SC2154 # top, build, jobs, temporary and mode are the caller's

# The builds. gcc has no sanitizer, has the flags and directories of the package, and is built from
# the files of `make dist` alone; --quick optimizes less. clang has a prefix of its own and builds
# the fuzz targets as they are used; only --long runs its unit tests, so only --long optimizes. asan
# (with UBSan) and tsan are gcc with a sanitizer. What takes a third of the time to compile without
# optimizing is not optimized: tests/unit in each build, and all of asan in the core.
set_options() {
	case $1 in
	gcc)
		options=(CC=gcc --prefix=/usr --sysconfdir=/etc --localstatedir=/var --runstatedir=/run)
		if [ "$mode" = quick ]; then options+=(CFLAGS=-O1); else options+=("${package_flags[@]}"); fi
		;;
	clang)
		options=(CC=clang --enable-werror --enable-fuzzing --prefix=/opt/opd)
		if [ "$mode" = long ]; then options+=(CFLAGS=-O1); else options+=(CFLAGS=-O0); fi
		;;
	asan)
		options=(CC=gcc --enable-werror --enable-sanitizers)
		if [ "$mode" = core ]; then options+=(CFLAGS=-O0); else options+=(CFLAGS=-O1); fi
		;;
	tsan) options=(CC=gcc CFLAGS=-O1 --enable-werror --enable-tsan) ;;
	esac
}

# The gcc build, the demo and the package have the same flags and lie one directory below their
# source. Then ccache compiles each file once for all three. A file that has a warning fails the gcc
# build by its log, since -Werror would be another flag.
package_flags=()
! command -v dpkg-buildflags >/dev/null 2>&1 || for flags in CFLAGS CPPFLAGS LDFLAGS; do
	package_flags+=("$flags=$(DEB_BUILD_MAINT_OPTIONS="hardening=+all reproducible=-fixfilepath" dpkg-buildflags --get $flags)")
done

# mold links the programs of the tests in a third of the time. What is installed has the linker of
# the package.
test_linker() {
	! command -v mold >/dev/null 2>&1 || echo -fuse-ld=mold
}

# What each build is built from, and its tests run from.
source_of() {
	if [ "$1" = gcc ]; then echo "$build/dist"; else echo "$top"; fi
}

# The directory of each build.
dir_of() {
	if [ "$1" = gcc ]; then echo "$build/dist/build"; else echo "$build/$1"; fi
}

# The files of `make dist`, in build-test/dist.
make_dist() {
	local options
	set_options gcc
	make_configure || return 1
	as_owner mkdir -p "$build/make-dist" || return 1
	(cd "$build/make-dist" && as_owner "$top/configure" --quiet --cache-file="$build/gcc.cache" "${options[@]}" &&
		as_owner make --no-print-directory distdir distdir="$build/dist") || return 1
}

# The system tests that opd as a user runs here, since they go where permissions matter.
USER_SYSTEM="control errors fault_space kernel restart"

is_built() {
	[ -e "$temporary/built-$1" ]
}

# Builds a variant once; whoever needs it calls this first, several at a time too.
need_build() {
	(
		flock 9
		build_once "$1"
	) 9>"$temporary/lock-$1"
}

# All wait for the gcc build. The others have half of the CPUs each.
jobs_of() {
	if [ "$1" = gcc ]; then echo "$jobs"; else echo $(((jobs + 1) / 2)); fi
}

# The programs of a build beside those of `make all`. The core runs only some unit tests under ASan.
programs_of() {
	case $mode:$1 in
	core:asan)
		printf '%s\n' "${ASAN_CORE[@]}" | sed -n 's,^test_[a-z0-9_]*$,tests/unit/&,p'
		echo fuzz-programs
		;;
	*:tsan)
		# shellcheck disable=SC2086
		printf 'tests/unit/%s\n' $THREADS
		echo tests/ring/torture tests/ring/litmus fuzz-programs system-programs
		# scripts use them
		echo tests/unit/test_stacks tests/unit/print_when tests/unit/test_timeline tests/unit/make_timeline
		;;
	*) echo check-programs ;;
	esac
}

build_once() {
	[ ! -e "$temporary/built-$1" ] || return 0
	if [ -e "$temporary/broken-$1" ]; then
		echo "there is no $1 build, see the case $1/build"
		return 1
	fi
	if make_variant "$1" 2>&1 | tee "$temporary/$1.log" && ! warns "$1"; then
		touch "$temporary/built-$1"
	else
		touch "$temporary/broken-$1"
		return 1
	fi
}

make_variant() {
	local dir options
	dir=$(dir_of "$1")
	set_options "$1"
	[ "$1" != gcc ] || make_dist || return 1
	build_tree "$(source_of "$1")" "$dir" "$(jobs_of "$1")" --cache-file="$build/$1.cache" "${options[@]}" || return 1
	# shellcheck disable=SC2046
	as_owner make -C "$dir" -j"$(jobs_of "$1")" --no-print-directory TEST_LDFLAGS="$(test_linker)" \
		UNIT_CFLAGS="-O0 -U_FORTIFY_SOURCE" $(programs_of "$1")
}

# The compilers of the other builds have -Werror.
warns() {
	[ "$1" = gcc ] && grep -E '^[^ ]+:[0-9]+:[0-9]+: warning: ' "$temporary/$1.log"
}

# Runs a command with a build to test. ThreadSanitizer does not know every layout of addresses that
# new kernels randomize to; and where threads still run at the end it watches them for a second, of
# each child, too: a tenth is enough for a race at exit.
run_built() {
	local variant=$1 prefix=() source dir
	shift
	source=$(source_of "$variant")
	dir=$(dir_of "$variant")
	need_build "$variant" || return 1
	[ "$variant" != tsan ] || prefix=(setarch "$(uname -m)" -R)
	cd "$dir" || return 1
	env OPD_BUILD="$dir" OPD_SOURCE="$source" OPD_VARIANT="$variant" srcdir="$source" \
		ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1 \
		TSAN_OPTIONS=second_deadlock_stack=1:atexit_sleep_ms=100 "${prefix[@]}" "$@"
}

# System tests that want the machine for themselves: they compare rates and times, count what the
# kernel counts in all, change a setting of the kernel, take a CPU away, use up what any opd keeps
# (images, room for JIT code, time for file systems that hang), leave no CPU to others (full_host),
# or have a limit of sample files, which programs of other tests would take as well. And
# jit_runtimes: perf inject gives up where the test jit has damaged a jitdump.
ALONE_SYSTEM="callgraph full_host hanging hotplug jit_runtimes jit_storm kernel limits ocount opener operf operf_limits
	page_faults processes waits_limits"

# Those that count page faults: the kernel mixes up such samples when two profilers take them at
# once. And privileges, restart: all processes of the user that opd becomes there share the memory
# that a user may lock.
FAULTS_SYSTEM="cgroup_storm clock control dcookies errors fault_dump fault_kill fault_pack fault_pages fault_rotate fault_space
	fault_tree import leftovers many_files opcheck operf_session packed privileges restart rotation shares span storm turns"

system_tests() {
	find "$top/tests/system" -name 'test_*.py' -printf '%f\n' | sed 's/^test_//; s/\.py$//' | sort
}

# Known before anything is built.
unit_tests() {
	echo tests/ring/torture # the longest: the others run beside it
	find "$top/tests/unit" -maxdepth 1 -regex '.*/test_[^.]*\.\(c\|py\|sh\)' -printf 'tests/unit/%f\n' | sed 's/\.c$//' | sort
	echo tests/ring/litmus
	echo tests/fuzz/test_corpus.sh
	echo tests/unwind/test_mutants.sh
}

# The unit tests of C that start threads; ThreadSanitizer has nothing to say of others. The case
# threads holds this list against the programs.
THREADS="test_arcs test_capture_loss test_child test_cookie_file test_drain test_file test_file_limit
	test_ibs_pipeline test_image_filter test_import test_jit_object test_ledger
	test_memory_limit test_minutes test_opd_exit test_pack test_parts
	test_perf_stacks test_put_off test_replaced_files test_report test_retain test_ring_loss
	test_rotate test_runtime_frames test_session test_session_close test_session_sizes test_sinks test_source test_sources
	test_stack_samples test_stack_session test_symbols test_syncer test_table_files test_tables
	test_threads test_timeline_days test_timeline_kill test_timeline_sink test_unwritten test_visit"

# Those that ThreadSanitizer does not run. Of what they run nothing that matters has threads: the
# mapping of row tables, files of other tools, lists of names. The file server of test_living forks
# with threads, which ThreadSanitizer does not follow.
NO_THREADS=" test_bad_images.py test_completion.py test_go_table.py test_inline.py test_libdwfl.py "
NO_THREADS+=" test_living.py test_mutants.sh test_oparchive.py test_row_tables.py "

# Builds with sanitizers have no filter of system calls. The others are of scripts and sources,
# which are the same in each build.
NO_SANITIZERS=" test_call_filter test_build_deb.py test_layers.py test_minify.py test_postrm.py "
NO_SANITIZERS+=" test_runner.py "

is_for() {
	local name=${2##*/}
	case $1:$name in
	gcc:* | clang:*) return 0 ;;
	tsan:*.*) [[ $NO_THREADS != *" $name "* && $NO_SANITIZERS != *" $name "* ]] ;;
	tsan:test_*) [[ " ${THREADS//[$'\n\t']/ } " == *" $name "* ]] ;;
	*) [[ $NO_SANITIZERS != *" $name "* ]] ;;
	esac
}

threads_listed() {
	local program bad=0
	need_build gcc || return 1
	for program in "$(dir_of gcc)"/tests/unit/test_*; do
		[[ -x $program && $program != *.* ]] || continue
		if nm "$program" | grep " pthread_create" >/dev/null; then
			is_for tsan "$program" || { echo "starts threads and is not in THREADS: ${program##*/}"; bad=1; }
		elif is_for tsan "$program"; then
			echo "starts no threads and is in THREADS: ${program##*/}"
			bad=1
		fi
	done
	return $bad
}

# A million records with gcc in --all; what a sanitizer sees needs fewer. ThreadSanitizer
# takes five times as long: its million is in --long.
#
# --quick sets OPD_QUICK: tests that try each step of a program try fewer.
#
# check_units VARIANT [NAME...]: all of them, or only those of the names.
check_units() {
	local variant=$1 program name source only=" ${*:2} "
	source=$(source_of "$1")
	for program in $(unit_tests); do
		case "$only" in "  " | *" ${program##*/} "*) ;; *) continue ;; esac
		is_for "$variant" "$program" || continue
		name=$variant/unit/${program##*/}
		case $program in
		*/test_inline.py) check compute "$variant" "$name" run_inline "$variant" "$source/$program" ;;
		*.sh) check compute "$variant" "$name" run_built "$variant" "$source/$program" ;;
		*.py) check compute "$variant" "$name" run_built "$variant" python3 "$source/$program" ;;
		*/torture | */litmus) check compute "$variant" "$name" run_ring_test "$variant" "$program" ;;
		*) check compute "$variant" "$name" run_built "$variant" "./$program" ;;
		esac
	done
}

run_ring_test() {
	local records=200000 rounds=100000
	[ "$1:$mode" != gcc:all ] || records=1000000
	[ "$mode" != quick ] || records=20000 rounds=10000
	case $2 in
	*/torture) run_built "$1" "./$2" --records=$records ;;
	*/litmus) run_built "$1" "./$2" --rounds=$rounds ;;
	esac
}

# The compilers take most of its time. All addresses with gcc in --all, ten times as many by hand.
run_inline() {
	[ "$1:$mode" = gcc:all ] || export OPD_QUICK=1
	run_built "$1" python3 "$2"
}

run_system() {
	run_built "$1" python3 "$(source_of "$1")/tests/system/test_$2.py"
}

check_systems() {
	local kind=$1 variant=$2 name
	shift 2
	for name in "$@"; do
		check "$kind" "$variant" "$variant/system/$name" run_system "$variant" "$name"
	done
}

# kind_of SYSTEM-TEST: as it is with gcc.
kind_of() {
	# shellcheck disable=SC2086
	if printf '%s\n' $ALONE_SYSTEM | grep -qx "$1"; then
		echo alone
	elif printf '%s\n' $FAULTS_SYSTEM | grep -qx "$1"; then
		echo faults
	else
		echo system
	fi
}

# With sanitizers run the system tests that do not compare shares of time.
check_sanitized() {
	local variant=$1 name
	shift
	for name in "$@"; do
		check_systems "$(kind_of "$name")" "$variant" "$name"
	done
}

# The daemon as the unit runs it: a user of its own, with the unit's capabilities. All of them: make
# check-user.
check_users() {
	local name
	for name in "$@"; do
		check "$(kind_of "$name")" gcc "user/system/$name" as_user "$name"
	done
}

as_user() {
	OPD_RUN_AS=user run_system gcc "$1"
}

other_systems() {
	# shellcheck disable=SC2086
	system_tests | grep -vxFf <(printf '%s\n' apply $FAULTS_SYSTEM $ALONE_SYSTEM)
}

check_golden() {
	local label
	while IFS= read -r label; do
		check compute gcc "golden/${label//[ \/]/_}" run_built gcc python3 "$top/tests/golden/run.py" "$label"
	done < <(python3 "$top/tests/golden/run.py" --list)
}

sources() {
	find "$top" \( -name .git -o -name 'build*' -o -name autom4te.cache -o -name aclocal.m4 \) -prune -o -type f "$@" -print
}

# Every header must compile with nothing before it but what the build gives every file.
# What a bench includes of a peer is looked at where the peer's package is.
# What make gives the compiler beside a build directory: the directories of an installation.
DIRECTORIES=(-DOPD_SYSCONFDIR='"/etc"' -DOPD_SBINDIR='"/usr/sbin"' -DOPD_DATADIR='"/usr/share"'
	-DOPD_LOCALSTATEDIR='"/var"' -DOPD_RUNSTATEDIR='"/run"')

headers_alone() {
	local header bad=0 without=config.h
	need_build gcc || return 1
	pkg-config --exists lttng-ust || without=lttng_events.h
	while IFS= read -r header; do
		echo "#include \"${header#"$top/"}\"" | "$1" -std=gnu11 -fsyntax-only -Wall -Wextra -Werror -include config.h \
			-include "$top/libop/base/banned.h" -I"$(dir_of gcc)" -I"$top" "${DIRECTORIES[@]}" \
			-x c - || bad=1
	done < <(sources -name '*.h' -not -name config.h -not -name '*.bpf.h' -not -name "$without")
	return $bad
}

static_analysis() {
	need_build gcc || return 1
	cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 -j"$jobs" \
		--suppressions-list="$top/tests/cppcheck.txt" --include="$(dir_of gcc)/config.h" -I"$top" -I"$(dir_of gcc)" \
		-i "$top/pipeline/waits/program.bpf.c" -i "$top/tools/opd-waits/object.c" \
		"${DIRECTORIES[@]}" \
		"$top/libop" "$top/pipeline" "$top/daemon" "$top/tools"
}

# SPDX line, length of files and functions, marks of unfinished work and of merges, and scripts that
# parse.
house_style() {
	sources -regex '.*\.\([ch1-8]\|sh\|py\|mk\|md\|am\|ac\|m4\|js\|css\|html\)' >"$temporary/sources"
	python3 "$top/tests/style.py" "$temporary/sources"
}

scripts_sane() {
	local scripts
	mapfile -t scripts < <(sources -name '*.sh')
	scripts+=("$top/scripts/test" "$top/scripts/demo" "$top/scripts/machines" "$top/scripts/foreign")
	scripts+=("$top/.ci/run" "$top/packaging/build-deb")
	(cd "$top" && shellcheck -x "${scripts[@]}") && all_run
}

# Tests that make runs by their names.
all_run() {
	local left
	left=$(find "$top/tests/unit" \( -name 'test_*.py' -o -name 'test_*.sh' \) -not -perm -u=x)
	[ -z "$left" ] || { echo "not executable: $left"; return 1; }
}

# What `make distcheck` looks at beside building and testing what is distributed: distclean leaves
# nothing of a build.
dist_clean() {
	local left
	need_build gcc || return 1
	rm -rf "$temporary/distclean"
	cp -a "$(dir_of gcc)" "$temporary/distclean" && make -C "$temporary/distclean" --no-print-directory distclean || return 1
	left=$(find "$temporary/distclean" -type f)
	[ -z "$left" ] || { echo "distclean leaves: $left"; return 1; }
}

# Installs below a DESTDIR with another prefix, uses it from there, and takes it away again.
install_elsewhere() {
	local dest=$temporary/destdir left
	need_build clang || return 1
	rm -rf "$dest"
	make -C "$build/clang" --no-print-directory install DESTDIR="$dest" || return 1
	(cd "$dest" && find . -type f | sort)
	OPD_BINDIR=$dest/opt/opd/bin OPD_SBINDIR=$dest/opt/opd/sbin run_system clang control || return 1
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
	flock -o "$temporary/lock-demo" "$top/scripts/demo" "${package_flags[@]/#/--configure=}" "$@" && left_by "$top/build-demo/"
}

demo_works_twice() {
	demo_works && demo_works -- sh -c 'gzip -9 < /bin/bash | sha256sum'
}

# As a user without privileges, in a tree of that user's own. ccache has what the demo compiled.
demo_without_root() {
	local tree=$temporary/demo-tree rc=0
	need_build gcc && flock "$temporary/lock-demo" true || return 1
	rm -rf "$tree"
	mkdir "$tree" && tar -C "$build/dist" --exclude=./build -cf - . | tar -C "$tree" -xf - || return 1
	chown -hR nobody:nogroup "$tree" && chmod 755 "$temporary" || return 1
	setpriv --reuid=nobody --regid=nogroup --clear-groups env CCACHE_BASEDIR="$tree" CCACHE_READONLY=1 \
		CCACHE_TEMPDIR="$tree" HOME=/nonexistent "$tree/scripts/demo" "${package_flags[@]/#/--configure=}" |
		tee "$temporary/demo-out" || rc=1
	grep -q 'checksum_block' "$temporary/demo-out" || { echo "no functions"; rc=1; }
	rm -rf "$tree"
	return $rc
}

# A machine with another kernel, under emulation.
other_machine() {
	need_build gcc || return 1
	"$(source_of gcc)/scripts/machines" --build="$(dir_of gcc)" --logs="$logs/machine" "$1"
}

# Without spin nothing is proved. It is skipped only where need_packages could not see to it that
# spin is there.
model_holds() {
	local rc=0
	"$top/tests/model/run.sh" || rc=$?
	[ "$rc" -ne 77 ] || ! command -v dpkg-query >/dev/null 2>&1 || { echo "spin is not there"; return 1; }
	return "$rc"
}

check_static() {
	[ "$mode" != all ] || check compute - model model_holds
	check compute gcc cppcheck static_analysis
	check compute gcc headers/gcc headers_alone gcc
	[ "$mode" != all ] || check compute gcc headers/clang headers_alone clang
	check compute - style house_style
	check compute - shellcheck scripts_sane
	check compute gcc dist/clean dist_clean
	check compute gcc threads threads_listed
}

# Last, so that they hold up nobody.
check_alone() {
	# shellcheck disable=SC2086
	check_systems alone gcc $ALONE_SYSTEM
	check alone gcc hardware run_built gcc python3 "$(source_of gcc)/tests/hardware/check"
	check_sanitized asan shares page_faults turns
	check_sanitized tsan shares page_faults turns
}

# What another compiler makes of the unit tests, a million records under TSan, many damaged images
# under ASan, and distcheck itself.
list_long_checks() {
	check alone gcc distcheck distcheck
	check_units clang
	check compute tsan tsan/unit/torture run_built tsan ./tests/ring/torture --records=1000000
	check compute asan asan/unwind/mutants run_built asan "$top/tests/unwind/test_mutants.sh" 10000
}

# The main promises: start, stop, mappings, stacks, kill -9, full disk, rotation, control, operf,
# import, the page, privileges.
CORE_SYSTEM="fault_kill fault_space control rotation restart mappings stack_shares operf_session import page privileges"

# What reads bytes of strangers: records of the kernel, sample files, perf.data, ELF files, JIT
# dumps, the control socket.
ASAN_CORE=(test_record test_stack_record test_perf_data test_perf_stacks test_odb_read test_dcookie_file test_stacks test_symbols
	test_symbol_pack test_object_look test_mangle test_jit test_jit_pieces test_spans test_kernel_map test_config test_control
	test_server test_session test_ledger test_profile_spec test_module_file test_walk test_tables test_ibs test_ring_hostile
	test_build_ids test_process test_text test_damaged_sessions.py test_bad_images.py test_corpus.sh)

list_core() {
	local name
	for name in $CORE_SYSTEM; do check_systems "$(kind_of "$name")" gcc "$name"; done
	check build asan asan/build need_build asan
	check build - demo demo_works
	check_static
	check_units gcc
	check_units asan "${ASAN_CORE[@]}"
	check_golden
}

# The faults come first: only one of them runs at a time.
list_all() {
	# shellcheck disable=SC2086
	check_systems faults gcc $FAULTS_SYSTEM
	check wait gcc gcc/system/apply run_system gcc apply
	check build - demo demo_works_twice
	check build asan asan/build need_build asan
	check build tsan tsan/build need_build tsan
	check build clang clang/build need_build clang
	check build gcc demo-user demo_without_root
	check system gcc container run_built gcc python3 "$top/tests/systemd/test_container.py"
	check compute gcc machines/demo other_machine demo
	# shellcheck disable=SC2046,SC2086
	check_systems system gcc $(other_systems)
	check_static
	check_units gcc
	check_golden
	# shellcheck disable=SC2086
	check_users $USER_SYSTEM
	check_units asan
	check_units tsan
	check_sanitized asan control errors restart
	check_sanitized tsan control errors restart
	check system clang install install_elsewhere
	check_alone
}

list_checks() {
	[ "$mode" != long ] || { list_long_checks && return; }
	check first gcc gcc/build need_build gcc
	case $mode in
	core) list_core ;;
	all) list_all ;;
	quick) check_static && check_units gcc && check_golden ;;
	esac
}
