#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Proves the swap of the memory pair with spin: the model as it is holds in every state, and each
# way to break it is found. Which kind of assertion (ring_pair.pml) a broken one must violate stands
# in its case, and is the only one that is looked at. usage: run.sh; the exit code is 0 when all is
# as it must be, 77 when there is no spin. Cases run as many at a time as there are CPUs.
# OPD_MODEL=quick, for who runs all of it elsewhere: without the swapping thread and the ways to
# break it.
self=$(cd "$(dirname "$0")" && pwd -P)/$(basename "$0")
here=$(dirname "$self")

# make_verifier OPTIONS DEFINE...: the compiler's and the model's. What is found at once is not
# worth being optimized.
make_verifier() {
	options=$1
	shift
	spin -a "$@" "$here/ring_pair.pml" >spin.log 2>&1 || {
		cat spin.log
		return 1
	}
	# shellcheck disable=SC2086 # a list of options
	"${CC:-gcc}" -w -DSAFETY -DCOLLAPSE $options -o pan pan.c
}

# verify OPTIONS DEFINE...: leaves the verifier's report in the current directory, which says
# whether the search was complete.
verify() { make_verifier "$@" && ./pan -m100000 >report 2>&1; }

# number PATTERN: the number in front of it in the report.
number() { sed -n "s/^ *\([0-9.e+]*\) $1.*/\1/p" report | head -n 1; }
errors() { sed -n 's/.*errors: \([0-9]*\).*/\1/p' report; }

searched_all() { ! grep -Eq 'max search depth too small|Search not completed|out of memory' report; }

# All of the processes of the protocol has been run; the memory has no end to reach.
nothing_unreached() {
	sed -n '/^unreached in proctype \(writer\|reader\|swapper\)/,/states)/p' report | grep 'states)' >reached
	[ "$(grep -c '(0 of' reached)" = "$1" ]
}

holds() {
	processes=2
	case " $* " in *" -DSWAPPER "*) processes=3 ;; esac
	if verify '-O1 -DMEMLIM=2048' "$@" && [ "$(errors)" = 0 ] && searched_all && nothing_unreached $processes; then
		printf 'ok   %-28s holds in all %s states\n' "${*:-as it is}" "$(number 'states, stored')"
	else
		printf 'FAIL %-28s must hold\n' "${*:-as it is}"
		cat report
		return 1
	fi
}

is_violated() { grep -q 'assertion violated' report && [ "$(errors)" = 1 ]; }

# say_fails KIND DEFINE...
say_fails() {
	kind=$1
	shift
	if is_violated; then
		printf 'ok   %-28s fails: %s, %s\n' "$*" "$kind" \
			"$(sed -n 's/^pan:1: .*(\(at depth [0-9]*\)).*/\1/p' report | head -n 1)"
	else
		printf 'FAIL %-28s must fail with the assertion of kind %s\n' "$*" "$kind"
		cat report
		return 1
	fi
}

# fails KIND DEFINE...: the assertion must be violated; a verifier that stops for another reason has
# shown nothing.
fails() {
	only=$1
	shift
	verify '-O0 -DMEMLIM=2048' "-DONLY=$only" "$@"
	say_fails "$only" "$@"
}

# The same by going wide: the shortest way to what is wrong.
fails_wide() {
	only=$1
	shift
	make_verifier '-O1 -DMEMLIM=2048 -DBFS' "-DONLY=$only" "$@" && ./pan >report 2>&1
	say_fails "$only" "$@"
}

# The same by short searches in a random order, the same ones each time: with a third process the
# first branch may be a long way round.
fails_soon() {
	only=$1
	shift
	make_verifier '-O0 -DMEMLIM=64 -DT_RAND -DP_RAND' "-DONLY=$only" "$@" || return 1
	for seed in $(seq 200); do
		./pan -m1000 -w16 "-RS$seed" >report 2>&1
		is_violated && break
	done
	say_fails "$only" "$@"
}

quick_cases() {
	echo holds
	echo holds -DTSO
	echo holds -DLIGHT -DTSO
	for broken in NO_WRITER_FENCE NO_SWAPPER_FENCE; do
		echo fails LOST -D$broken
	done
	echo fails LOST -DLIGHT -DNO_WRITER_FENCE
}

cases() {
	# The longest first.
	echo holds -DSWAPPER -DLIGHT -DNR_RECORDS=3
	echo holds -DSWAPPER -DLIGHT -DNR_RECORDS=3 -DTSO
	echo holds -DSWAPPER -DNR_RECORDS=4
	echo holds -DSWAPPER -DNR_RECORDS=4 -DTSO
	for variant in '' -DLIGHT; do
		echo holds $variant
		echo holds $variant -DTSO
		for broken in NO_WRITER_FENCE NO_SWAPPER_FENCE NO_LOOK NO_WAIT NO_WAIT_ACQUIRE; do
			# The barrier of the light variant fences for the swapper too.
			[ "$variant$broken" = -DLIGHTNO_SWAPPER_FENCE ] && continue
			echo fails LOST $variant -D$broken
			echo fails LOST $variant -D$broken -DTSO
		done
		echo fails LOST $variant -DNO_LEAVE_RELEASE
		# I orders what B does not, so it takes both to tear a record.
		echo fails TORN $variant -DNO_LEAVE_RELEASE -DNO_COMMIT_RELEASE
		echo fails WILD $variant -DNO_TAIL
		echo holds $variant -DNO_LEAVE_RELEASE -DTSO
	done
	for broken in EARLY_BARRIER NO_EPOCHS; do
		echo fails LOST -DLIGHT -D$broken
		echo fails LOST -DLIGHT -D$broken -DTSO
	done
	# Handing over is the same with a fence and without.
	for broken in NO_TAKE_ACQUIRE NO_BACK_ACQUIRE; do
		echo fails_soon LOST -DSWAPPER -DNR_RECORDS=3 -D$broken
		echo fails_soon LOST -DSWAPPER -DNR_RECORDS=3 -D$broken -DTSO
	done
	# Two have it, and a record is lost by it, even where a store is seen at once.
	echo holds -DSC -DSWAPPER -DNR_RECORDS=3
	for broken in NO_BACK NO_CLAIM; do
		echo fails_wide LOST -DSC -DSWAPPER -DNR_RECORDS=2 -D$broken
		echo fails_soon HANDS -DSWAPPER -DNR_RECORDS=3 -D$broken
		echo fails_soon HANDS -DSWAPPER -DNR_RECORDS=3 -D$broken -DTSO
	done
	for broken in NO_LEND_RELEASE NO_GIVE_RELEASE; do
		echo fails_wide FROZEN -DSWAPPER -DNR_RECORDS=2 -D$broken
		echo holds -DSWAPPER -DNR_RECORDS=2 -D$broken -DTSO
	done
}

if [ $# -gt 0 ]; then
	work=$(mktemp -d "${TMPDIR:-/tmp}/opd-model.XXXXXX") || exit 1
	trap 'rm -rf -- "$work"' EXIT
	trap 'exit 130' INT TERM HUP
	cd "$work" || exit 1
	"$@"
	exit
fi
command -v spin >/dev/null 2>&1 || {
	echo "skip: spin is not installed (Debian package spin)"
	exit 77
}
# One line of output for a case that is right, so that two at a time do not mix.
list=cases
[ "${OPD_MODEL:-}" = quick ] && list=quick_cases
$list | xargs -P "$(nproc)" -L 1 "$self"
