#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
opd's walk beside libdwfl's: recorded stacks of real programs, the same registers and copies.

usage: bench_libdwfl.py [SAMPLES [BYTES]]    default 100000 samples in all, copies of 8192 bytes

For each program of bench_stacks.py: how many samples have exactly libdwfl's frames, how many are
complete in both, and the CPU time of a walk, warm, first, and of libdwfl. Then which images end
walks.
"""
import os
import re
import subprocess
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system")]
import opdtest  # noqa: E402

SAMPLES = int(sys.argv[1]) if len(sys.argv) > 1 else 100000
BYTES = int(sys.argv[2]) if len(sys.argv) > 2 else 8192
del sys.argv[1:]
import bench_stacks  # noqa: E402

RATE, DELAY_MS, MAX_SECONDS, MAX_RECORDINGS = 3999, 3000, 30, 12
SAME, FRAME_NS, SAMPLE_NS = 0.995, 40, 2000
TABLES = os.path.join(os.environ.get("OPD_BUILD", ""), "tools", "opd-tables", "opd-tables")
ORACLE = os.path.join(os.environ.get("OPD_BUILD", ""), "tests", "unwind", "walk_oracle")
SUMS = re.compile(r": (\d+) samples, (\d+) the same \(.*?\), (\d+) complete, libdwfl (\d+), (\d+) of these not of opd, ([\d.]+) "
                  r"frames; warm (\d+) ns a sample, ([\d.]+) ns a frame, first (\d+) ns; libdwfl (\d+) ns$", re.M)


def record(data, command, seconds):
    subprocess.run(["perf", "record", "-q", "-D", str(DELAY_MS), "-e", "cpu-clock", "-F", str(RATE), "--call-graph",
                    "dwarf,%d" % BYTES, "-o", data, "--", "timeout", "-s", "KILL", str(DELAY_MS / 1000 + seconds), *command],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def measure(box, name, command, nr_wanted):
    """Sums of a program, as a list of numbers, and where walks end or differ."""
    data, seconds, sums, ends = os.path.join(box.dir, "perf.data"), 2, [0.0] * 10, []
    for _ in range(MAX_RECORDINGS):
        record(data, command, seconds)
        text = subprocess.run([ORACLE, "--time", TABLES, data], capture_output=True, check=False).stdout.decode()
        found = SUMS.search(text)
        if not found:
            break
        one = [float(number) for number in found.groups()]
        sums = [a + b * (one[0] if i > 4 else 1) for i, (a, b) in enumerate(zip(sums, one))]
        ends += text.splitlines()[:-1]
        if sums[0] >= nr_wanted:
            break
        seconds = min(MAX_SECONDS, 1 + (nr_wanted - sums[0]) * seconds / max(one[0], 1))
    nr = max(sums[0], 1)
    print("%-9s %7d %9.2f%% %9.2f%% %9.2f%% %7.1f %8.0f %7.1f %7.0f %8.0f" %
          (name, sums[0], 100 * sums[1] / nr, 100 * sums[2] / nr, 100 * sums[3] / nr, sums[5] / nr, sums[6] / nr,
           sums[6] / max(sums[5], 1), sums[8] / nr, sums[9] / nr), flush=True)
    return sums, ends


def test(box):
    if not os.path.exists(ORACLE):
        raise opdtest.Skip("libdw (libdw-dev) is missing when it is built")
    commands, all_sums, all_ends = bench_stacks.programs(box), {}, {}
    print("%-9s %7s %10s %10s %10s %7s %8s %7s %7s %8s" %
          ("program", "samples", "the same", "complete", "libdwfl's", "frames", "warm ns", "a frame", "first", "libdwfl"))
    for name, command in commands.items():
        all_sums[name], all_ends[name] = measure(box, name, command, SAMPLES / len(commands))
    for name, ends in all_ends.items():
        print("\n".join("%s: %s" % (name, " ".join(line.split())) for line in ends))
    nr, same = sum(sums[0] for sums in all_sums.values()), sum(sums[1] for sums in all_sums.values())
    walk = sum(sums[6] for sums in all_sums.values())
    frame_ns, sample_ns = walk / max(sum(sums[5] for sums in all_sums.values()), 1), walk / max(nr, 1)
    share = 100 * same / max(nr, 1)
    ok = [bench_stacks.verdict(None if nr < SAMPLES else share >= 100 * SAME,
                               "%d samples, %.3f %% with libdwfl's frames, aim %.1f %%" % (nr, share, 100 * SAME)),
          bench_stacks.verdict(frame_ns <= FRAME_NS and sample_ns <= SAMPLE_NS,
                               "warm walk %.0f ns a sample, %.1f ns a frame, aims %d and %d" %
                               (sample_ns, frame_ns, SAMPLE_NS, FRAME_NS))]
    ok += [bench_stacks.verdict(sums[2] >= sums[3] - sums[0] * (1 - SAME), "%s: complete as often as libdwfl's" % name)
           for name, sums in all_sums.items()]
    if not all(ok):
        sys.exit(1)


if __name__ == "__main__":
    opdtest.run(test)
