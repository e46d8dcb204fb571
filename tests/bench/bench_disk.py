#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Measures the bytes of a sample on the disk, in opd's session and in perf.data. Usage: bench_disk.py
[SAMPLES [PERIOD-NS]], default 1000000 and 100000.

Both profile the same load at the same time and with the same period: the C compiler and an
interpreter again and again. The disk blocks of both are compared after 1/32, 1/16 ... of the
samples and at the end. An opd session grows with the number of addresses that run, perf.data with
the number of samples. perf.data is in the default form of perf record, without build-ids; `-z` is
the same file after zstd level 1. The aim, a fiftieth, is for 10^7 samples:

    make bench-disk BENCH_DISK_FLAGS=10000000      # 500 s on two CPUs, and 500 MB for perf.data
"""
import os
import shutil
import subprocess
import sys
import time

import bench
import disk_parts
from bench import opdtest
from opdtest import Skip, require

AIM = 50
AIM_SAMPLES = 10000000
NR_LOOKS = 6
NR_APPS = 6
POLL_SECONDS = 0.2


def start_perf(box, period_ns):
    output = os.path.join(box.dir, "perf.data")
    perf = box.start("perf", "record", "-q", "-a", "--no-buildid", "-e", "cpu-clock", "-c", period_ns, "-o", output,
                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    opdtest.wait_until(lambda: os.path.exists(output) and os.path.getsize(output) > 0, 60, "perf record does not begin")
    return perf, output


def stop_perf(box, perf):
    perf.send_signal(2)
    perf.wait(60)
    box.children.remove(perf)


def packed_bytes(path):
    """The size after zstd -1, None where there is no zstd."""
    if not shutil.which("zstd"):
        return None
    done = subprocess.run(["sh", "-c", 'zstd -1 -q -c "$1" | wc -c', "sh", path], stdout=subprocess.PIPE, check=True)
    return int(done.stdout)


def show(samples, opd_bytes, perf_bytes, nr_files):
    per_million = 1e6 / samples
    print("%12d %10d %12.0f %14.0f %14.0f %12.1f" % (samples, nr_files, opd_bytes / 1e3, opd_bytes / 1e3 * per_million,
                                                    perf_bytes / 1e3 * per_million, perf_bytes / opd_bytes), flush=True)


def nr_files(box):
    return sum(len(names) for _, _, names in os.walk(os.path.join(box.session, "samples", "current")))


def look(box, output):
    """Samples stored, and what both have on the disk just then."""
    samples = sum(e["stored"] for e in box.status()["events"])
    return samples, bench.disk_bytes(box.session), os.stat(output).st_size, nr_files(box)


def show_apps(parts, perf_bytes_per_sample):
    """The applications with the most samples: other programs of the machine have addresses, too,
    and at least one file for each image.
    """
    print("%12s %12s %12s %12s" % ("samples", "addresses", "kB", "perf / opd"))
    rows = sorted(((*numbers, app) for app, numbers in parts.apps.items()), reverse=True)
    rest = [sum(column) for column in zip(*(row[:3] for row in rows[NR_APPS:]))] or [0, 0, 0]
    for samples, nodes, nr_bytes, app in rows[:NR_APPS] + [(*rest, "%d others" % max(0, len(rows) - NR_APPS))]:
        print("%12d %12d %12.0f %12.1f %s" % (samples, nodes, nr_bytes / 1e3, samples * perf_bytes_per_sample / max(1,
                nr_bytes), app))


def show_parts(before, after, final):
    """The bytes of the session by their use, before it was closed and after; and the distance to
    the minimum that the format needs for each address.
    """
    samples, _, perf_bytes, _ = final
    for title, parts in (("the session that is counted in", before), ("the same, closed", after)):
        print("%s: perf / opd %.1f" % (title, perf_bytes / parts.total()))
        disk_parts.show(parts)
        show_apps(parts, perf_bytes / samples)
    require((before.samples, before.nodes) == (after.samples, after.nodes) and before.samples == samples,
            "closing a session has changed it")
    print("perf / opd were an address %d bytes, and nothing else there: %.1f" % (disk_parts.NODE_BYTES,
            perf_bytes / disk_parts.NODE_BYTES / before.nodes))


def measure(box, wanted, period_ns):
    load = bench.Load(box, "compile")
    more = box.start("sh", "-c", "while :; do python3 -c 'import json, email, asyncio, unittest'; done", start_new_session=True)
    box.start_daemon("--event=TIMER:%d" % period_ns)
    perf, output = start_perf(box, period_ns)
    marks = [wanted >> i for i in range(NR_LOOKS - 1, -1, -1)]
    print("%12s %10s %12s %14s %14s %12s" % ("samples", "files", "opd, kB", "opd, kB/10^6", "perf, kB/10^6", "perf / opd"))
    while marks:
        found = look(box, output)
        if found[0] >= marks[0]:
            show(*found)
            marks = [mark for mark in marks if mark > found[0]]
        time.sleep(POLL_SECONDS)
    box.opcontrol("--dump")
    found = look(box, output)
    stop_perf(box, perf)
    load.stop()
    os.killpg(more.pid, 9)
    box.opcontrol("--stop")
    event = box.check_ledger()["events"][0]
    final = (event["stored"], bench.disk_bytes(box.session), bench.disk_bytes(output), nr_files(box))
    show(*final)
    before = disk_parts.find(box.session)
    box.opcontrol("--save=closed")
    box.shutdown()
    show_parts(before, disk_parts.find(box.session), final)
    return final, output, event


def bench_disk(wanted, period_ns):
    def test(box):
        if not shutil.which("perf"):
            raise Skip("perf is not installed (Debian package linux-perf)")
        with open(os.path.join(box.dir, "bench.c"), "w", encoding="ascii") as stream:
            stream.write(bench.source_text())
        (samples, opd_bytes, perf_bytes, _), output, event = measure(box, wanted, period_ns)
        packed = packed_bytes(output)
        if packed:
            print("perf.data through zstd -1: %.1f x of opd" % (packed / opd_bytes))
        print("lost by the kernel: %d of %d" % (event["lost_kernel"], event["taken"]))
        shown, good = samples >= AIM_SAMPLES and opd_bytes > 0, perf_bytes >= AIM * opd_bytes
        print("aim (perf / opd: %d, for %d samples): %s" % (AIM, AIM_SAMPLES, bench.verdict(shown, good)))
        require(wanted < AIM_SAMPLES or (shown and good), "the aim, a fiftieth of perf.data, is not met, or not shown")
    return test


if __name__ == "__main__":
    opdtest.run(bench_disk(int(sys.argv[1]) if len(sys.argv) > 1 else 1000000, int(sys.argv[2]) if len(sys.argv) > 2 else 100000))
