#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# opreport itself: what it refuses, in one line on stderr, with exit code 1 and nothing on stdout.
# Run from the build directory.
set -u
opreport=$(pwd)/${OPREPORT:-bin/opreport}
[ -x "$opreport" ] || { echo "SKIP: $opreport is not built"; exit 77; }
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 99
failed=0

# refuses WHAT-STDERR-MUST-HOLD ARGUMENT...
refuses() {
	wanted=$1
	shift
	"$opreport" "$@" >out 2>err
	rc=$?
	lines=$(grep -cv '^Using ' err)
	if [ "$rc" -ne 1 ] || [ -s out ] || [ "$lines" -ne 1 ] || ! grep -qF -e "$wanted" err; then
		echo "FAIL: opreport $*: exit $rc, $lines lines, wanted '$wanted'"
		cat out err
		failed=$((failed + 1))
	fi
}

# leaves_out WHAT-A-WARNING-MUST-HOLD ARGUMENT...: no other file is there
leaves_out() {
	wanted=$1
	shift
	"$opreport" "$@" >out 2>err
	rc=$?
	if [ "$rc" -ne 1 ] || [ -s out ] || [ "$(grep -cF -e "$wanted" err)" -ne 1 ] ||
			[ "$(grep -c '^opreport: No sample found' err)" -ne 1 ] ||
			grep -qv -e '^warning: .*: it is left out' -e '^opreport: No sample found' err; then
		echo "FAIL: opreport $*: exit $rc, wanted '$wanted'"
		cat out err
		failed=$((failed + 1))
	fi
}

# put_empty FILE: a sample file without samples
put_empty() {
	{ printf 'DAE\n\023\0\0\0\004\0\0\0'; head -c 60 /dev/zero; printf '\200\0\0\0\001\0\0\0'
		head -c $((24 + 128 * 20)) /dev/zero; } >"$1"
}

# gives TEXT ARGUMENT...
gives() {
	wanted=$1
	shift
	if ! "$opreport" "$@" >out 2>err || ! grep -qF -e "$wanted" out || [ -s err ]; then
		echo "FAIL: opreport $*: wanted '$wanted'"
		cat out err
		failed=$((failed + 1))
	fi
}

current=s/samples/current
file="$current/{root}/x/{dep}/{root}/x/TIMER.0.0.all.all.all"

gives 'opreport: opd ' --version
gives '--session-dir' --help
gives '--symbols' --usage
gives '--images' --usage
refuses '--images and --symbols do not go together' --images -l --session-dir=s
refuses "$dir/none/samples/current" --session-dir="$dir/none"
mkdir configured elsewhere
printf 'SessionDir=%s\n' "$dir/configured" >opd.conf
export OPD_CONFIG="$dir/opd.conf"
refuses "$dir/configured/samples/current does not exist. --session-dir=DIR"
printf 'SESSION_DIR=%s\nNR_CHOSEN=0\n' "$dir/elsewhere" >configured/daemonrc
refuses "$dir/elsewhere/samples/current does not exist"
refuses "$dir/none/samples/current" --session-dir="$dir/none"
echo nonsense >configured/daemonrc
"$opreport" >out 2>err
if ! grep -q "^warning: $dir/configured/daemonrc:1: " err || ! grep -qF "$dir/configured/samples/current does" err; then
	echo 'FAIL: a damaged daemonrc'
	cat err
	failed=$((failed + 1))
fi
OPD_CONFIG="$dir/no.conf" refuses "$dir/no.conf: No such file or directory (OPD_CONFIG names it)"
mkdir -p oprofile_data/samples
refuses 'oprofile_data/samples/current'
mkdir -p "$current"
refuses 'No sample found: Please specify a session containing sample data. ' --session-dir=s
refuses 'in s/samples/current. ' --session-dir=s
refuses 'opcontrol --dump' --session-dir=s
refuses 'not excluded' --session-dir=s session-exclude:current
refuses "there is no session 'monday': s/samples/monday does not exist. --session-dir=DIR" --session-dir=s session:monday
grep -q 'The sessions there: current\.$' err || { echo 'FAIL: the sessions are not told'; cat err; failed=$((failed + 1)); }
mkdir -p kept/var/lib/oprofile/samples other/samples s/samples/tuesday
refuses 'kept is an archive: archive:kept reads it.' --session-dir=s session:kept
refuses 'kept is an archive: archive:kept reads it.' --session-dir=kept
refuses 'other is a session directory: --session-dir=other reads it.' --session-dir=s session:other
refuses 'The sessions there: current, tuesday.' --session-dir=s session:monday
i=1
while [ $i -le 11 ]; do mkdir "s/samples/x$i"; i=$((i + 1)); done
refuses 'The sessions there: current, tuesday, x1, x10, x11, x2, x3, x4, x5, x6 and 3 more.' --session-dir=s session:monday
rmdir s/samples/x*
mkdir -p "$(dirname "$file")"
printf 'DAE\n' >"$file"
leaves_out "$file" --session-dir=s
leaves_out "$file" --session-dir=s -l
printf '%0100d' 0 >"$file"
leaves_out "bad magic number: $file" --session-dir=s
leaves_out "at byte 0): it is left out: opcheck --repair repairs" --session-dir=s
refuses 'selects no samples' --session-dir=s /y
grep -q '?$' err || { echo 'FAIL: a hint at nothing'; failed=$((failed + 1)); }
refuses 'selects no samples: kept is an archive: archive:kept reads it.' --session-dir=s kept
refuses 'selects no samples: other is a session directory: --session-dir=other reads it.' --session-dir=s other
refuses 'selects no samples: tuesday is a session: session:tuesday reads it.' --session-dir=s tuesday
refuses 'tag specified more than once' --session-dir=s event:A event:A
echo foreign >"$current/{root}/notes.txt"
leaves_out "$current/{root}/notes.txt" --session-dir=s
leaves_out "name of a sample file: it is left out: opcheck --repair repairs" --session-dir=s
rm "$current/{root}/notes.txt"
strange="$current/{root}/$(printf 'a\033[2J\nwarning: b')"
: >"$strange"
leaves_out '{root}/a\x1b[2J\x0awarning: b: not the name' --session-dir=s
rm "$strange"
for class in 10.0 9.0 9.1 10.1 9.2; do
	put_empty "$current/{root}/x/{dep}/{root}/x/TIMER.0.0.all.$class"
done
refuses 'for parameter tid with values: tid:9,tid:10 which conflicts with parameter cpu' --session-dir=s tid:9,10
rm "$current/{root}/x/{dep}/{root}/x/TIMER.0.0.all."?*.?
refuses '--no-such-option' --no-such-option
refuses '--no-such' -X --no-such
refuses 'invalid profile specification { x' '{' x
refuses 'threshold' -t 101
refuses 'threshold' -t 5x
refuses 'threshold' -t nan
refuses 'sort' -s nothing
refuses 'merge' -m nothing
refuses 'demangle' -D nothing
refuses 'verbose' -V nothing
refuses 'no-such-dir' --root=no-such-dir
refuses 'no-such-dir' -p no-such-dir
refuses '--show-address' -w
refuses '--debug-info' -g
refuses '--accumulated' -a
refuses '--exclude-symbols' -e main
refuses '--include-symbols' -i main
refuses '--sort=vma' -s vma
refuses '--global-percent' -l -%
refuses '--merge=lib' -x -m lib
refuses '--merge=lib' -x -m cpu,library

[ "$failed" -eq 0 ] || echo "$failed failed"
[ "$failed" -eq 0 ]
