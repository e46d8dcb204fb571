#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Proves the swap of the memory pair with spin: the model as it is holds in every state, and each way to break it is found.
# usage: run.sh; the exit code is 0 when all is as it must be, 77 when there is no spin.
here=$(cd "$(dirname "$0")" && pwd -P)
command -v spin >/dev/null 2>&1 || {
	echo "skip: spin is not installed (Debian package spin)"
	exit 77
}
work=$(mktemp -d "${TMPDIR:-/tmp}/opd-model.XXXXXX") || exit 1
trap 'rm -rf -- "$work"' EXIT
trap 'exit 130' INT TERM HUP
cd "$work" || exit 1
bad=0

# verify DEFINE...: leaves the verifier's report in $work/report, which says whether the search was complete.
verify() {
	rm -f pan pan.* ./*.trail
	spin -a "$@" "$here/ring_pair.pml" >spin.log 2>&1 || {
		cat spin.log
		return 1
	}
	"${CC:-gcc}" -O1 -w -DSAFETY -DMEMLIM=2048 -DCOLLAPSE -o pan pan.c && ./pan -m100000 >report 2>&1
}

# number PATTERN: the number in front of it in the report.
number() { sed -n "s/^ *\([0-9.e+]*\) $1.*/\1/p" report | head -n 1; }
errors() { sed -n 's/.*errors: \([0-9]*\).*/\1/p' report; }

searched_all() { ! grep -Eq 'max search depth too small|Search not completed|out of memory' report; }

# All of writer and reader has been run; the memory has no end to reach.
nothing_unreached() {
	sed -n '/^unreached in proctype \(writer\|reader\)/,/states)/p' report | grep 'states)' >reached
	[ "$(grep -c '(0 of' reached)" = 2 ]
}

holds() {
	if verify "$@" && [ "$(errors)" = 0 ] && searched_all && nothing_unreached; then
		printf 'ok   %-28s holds in all %s states\n' "${*:-as it is}" "$(number 'states, stored')"
	else
		printf 'FAIL %-28s must hold\n' "${*:-as it is}"
		cat report
		bad=1
	fi
}

# fails DEFINE...: an assertion must be violated; a verifier that stops for another reason has shown nothing.
fails() {
	if verify "$@" && grep -q 'assertion violated' report && [ "$(errors)" = 1 ]; then
		printf 'ok   %-28s fails: %s\n' "$*" "$(sed -n 's/^pan:1: //p' report | head -n 1)"
	else
		printf 'FAIL %-28s must fail with an assertion\n' "$*"
		cat report
		bad=1
	fi
}

for variant in '' -DLIGHT; do
	holds $variant
	holds $variant -DTSO
	for broken in NO_WRITER_FENCE NO_SWAPPER_FENCE NO_LOOK NO_WAIT NO_WAIT_ACQUIRE; do
		# The barrier of the light variant fences for the swapper too.
		[ "$variant$broken" = -DLIGHTNO_SWAPPER_FENCE ] && continue
		fails $variant -D$broken
		fails $variant -D$broken -DTSO
	done
	fails $variant -DNO_LEAVE_RELEASE
	holds $variant -DNO_LEAVE_RELEASE -DTSO
done
for broken in EARLY_BARRIER NO_TURNS; do
	fails -DLIGHT -D$broken
	fails -DLIGHT -D$broken -DTSO
done
exit $bad
