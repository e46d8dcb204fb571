# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash disable=SC2154 # top is the caller's
# The work that scripts/demo profiles: real programs on data made here, two at a time.

LANE_SECONDS=24

# A C file with some hundred functions, different enough that the compiler has work.
generate_source() {
	local i
	echo '#include <stdint.h>'
	for ((i = 0; i < 400; i++)); do
		cat <<-EOF
			static uint64_t mix_$i(const uint64_t *data, unsigned long n, uint64_t seed)
			{
				uint64_t a = seed + $i, b = ${i}u * 40503u, c = 1;

				for (unsigned long k = 0; k < n; k++) {
					a = (a ^ data[k]) * 0x100000001b3u + (b << ($i % 13 + 1));
					if (a & $((1 << (i % 9))))
						b += c ^ (a >> 7);
					else
						c = c * 3 + (b & data[(k + $i) % n]);
					switch (a % 5) {
					case 0: c ^= b; break;
					case 1: b -= a; break;
					case 2: a += $i; break;
					default: c = a ^ c; break;
					}
				}
				return a ^ b ^ c;
			}
		EOF
	done
	echo 'uint64_t mix(const uint64_t *data, unsigned long n);'
	echo 'uint64_t mix(const uint64_t *data, unsigned long n) { uint64_t x = n;'
	for ((i = 0; i < 400; i++)); do
		echo "x ^= mix_$i(data, n, x);"
	done
	echo 'return x; }'
}

# repeat UNTIL COMMAND...: again and again while the clock (SECONDS) is below UNTIL.
repeat() {
	local until=$1
	shift
	while [ "$SECONDS" -lt "$until" ]; do
		"$@" || return 1
	done
}

squeeze() { xz -3 -c "$1/numbers" >"$1/numbers.xz"; }
order() { sort -R --random-source="$1/numbers" "$1/some" | sort -n >"$1/sorted"; }
serve() {
	command -v python3 >/dev/null || { say "  python3 is not installed"; return; }
	python3 "$top/scripts/demo-service.py" "$2" >"$1/service"
}
translate() { gcc -O2 -c "$1/mix.c" -o "$1/mix.o"; }
own_program() {
	gcc -O2 -g "$top/scripts/demo-program.c" -o "$1/demo-program" &&
		"$1/demo-program" "$1/numbers" "$2" >"$1/program.out"
}

# The lane of the first CPU: compiling, then what was compiled.
compile_and_run() {
	repeat $(($2 + LANE_SECONDS / 3)) translate "$1" && own_program "$1" $((2 * LANE_SECONDS / 3))
}

mixed_work() {
	local dir=$1 start lane
	mkdir -p "$dir"
	seq 1 3000000 >"$dir/numbers"
	seq 1 7 2000000 >"$dir/some"
	generate_source >"$dir/mix.c"
	start=$SECONDS
	compile_and_run "$dir" "$start" &
	lane=$!
	say "  compiling on one CPU, then running what was compiled; on the other: compressing"
	repeat $((start + LANE_SECONDS / 3)) squeeze "$dir"
	say "  sorting"
	repeat $((start + 2 * LANE_SECONDS / 3)) order "$dir"
	say "  a service in Python"
	serve "$dir" $((LANE_SECONDS / 3)) || die "the service failed"
	wait "$lane" || die "compiling failed"
}
