#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
From samples to a report: usage: bench_report.py [SECONDS], default 20.

A session of 10^8 samples over 2,000 images is made of this machine's programs and libraries, at functions that they have. opreport's summary and its list of symbols
are timed, with the symbols read anew, and again with those that it has kept (aims: 1 s, 200 MB, the second run three times faster). Then opd and perf record profile
the same load at the same time and rate, and what each takes from sample to report, recording included, is compared (aim: 20 times less CPU; with 300 SECONDS as the issue has it).
"""
import os
import resource
import shutil
import subprocess
import sys
import time

import bench
import bench_disk
from bench import opdtest
from opdtest import Skip, require

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "unit"))
import sample_files  # noqa: E402

NR_SAMPLES = 100000000
NR_IMAGES = 2000
ADDRESSES = 500  # of an image at most
PLACES = ("/usr/lib", "/usr/bin", "/usr/sbin", "/usr/libexec", "/usr/local", "/opt", "/root", "/home")
SECONDS_AIM, MEMORY_AIM, CACHE_AIM, PERF_AIM = 1.0, 200 << 20, 3.0, 20.0
PERIOD_NS = 100000
REPEATS = 3


def is_elf(path):
    try:
        with open(path, "rb") as stream:
            return stream.read(4) == b"\x7fELF"
    except OSError:
        return False


def find_images(wanted):
    """So many different files with code, the same ones each time."""
    found = {}
    for place in PLACES:
        for where, _, names in os.walk(place):
            for name in sorted(names):
                path = os.path.join(where, name)
                if os.path.islink(path) or not is_elf(path):
                    continue
                st = os.stat(path)
                found.setdefault((st.st_dev, st.st_ino), path)
                if len(found) == wanted:
                    return sorted(found.values())
    return sorted(found.values())


def functions(path):
    """File offsets at which functions begin: `nm` of the symbol table, of the dynamic one when it was stripped."""
    segments = []
    for line in subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=False).stdout.splitlines():
        words = line.split()
        if len(words) > 6 and words[0] == "LOAD" and "E" in "".join(words[6:-1]):
            segments.append((int(words[2], 16), int(words[2], 16) + int(words[4], 16), int(words[1], 16)))
    offsets = set()
    for option in ("", "-D"):
        out = subprocess.run(["nm", "--defined-only", path] + [option] * bool(option), capture_output=True, text=True, check=False).stdout
        for line in out.splitlines():
            words = line.split()
            if len(words) < 3 or words[1] not in "tTwWi":
                continue
            address = int(words[0], 16)
            offsets.update(address - start + at for start, end, at in segments if start <= address < end)
        if offsets:
            break
    return sorted(offsets)


def make_session(box):
    images = find_images(NR_IMAGES)
    per_image, made, nr_functions = NR_SAMPLES // max(len(images), 1), 0, 0
    for path in images:
        places = functions(path)
        if not places:
            places = [0x1000]
        nr_functions += len(places)
        step = max(1, len(places) // ADDRESSES)
        chosen = places[::step][:ADDRESSES]
        share, rest = divmod(per_image, len(chosen))
        counts = [share + (i < rest) for i in range(len(chosen))]
        sample_files.put_image(box.session, path, list(zip(chosen, counts)), event="TIMER.1000000.0." + sample_files.ALL)
        made += sum(counts)
    print("a session of %d samples over %d images with %d functions" % (made, len(images), nr_functions), flush=True)
    return made, len(images)


def run_measured(box, cache, *args):
    """Wall and CPU seconds, and the most memory that a process of it had."""
    env = {**box.env, "OPD_CACHE_DIR": cache}
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with open(os.path.join(box.dir, "report.out"), "wb") as out:
        child = subprocess.Popen(args, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL)
        _, status, own = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    wall, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    require(child.returncode == 0, "%s ended with %d" % (" ".join(args), child.returncode))
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, own.ru_maxrss << 10


def best(box, cache, *args, fresh=False):
    rows = []
    for _ in range(REPEATS):
        if fresh:
            shutil.rmtree(cache, ignore_errors=True)
        rows.append(run_measured(box, cache, *args))
    return min(rows)


def show(what, row, more=""):
    print("%-44s %8.2f s %8.2f s of CPU %7.0f MB %s" % (what, row[0], row[1], row[2] / 1e6, more), flush=True)


def aim(what, figure, limit, is_met, shown=True):
    print("aim (%s: %s): %.2f, %s" % (what, limit, figure, bench.verdict(shown, is_met)), flush=True)
    return shown and is_met


def large_session(box):
    opreport, cache = os.path.join(box.bin, "opreport"), os.path.join(box.dir, "cache")
    _, nr_images = make_session(box)
    base = (opreport, "--session-dir=" + box.session)
    run_measured(box, "", *base)  # the page cache
    summary = best(box, "", *base)
    cold = best(box, cache, *base, "-l", fresh=True)
    warm = best(box, cache, *base, "-l")
    print("%-44s %8s   %8s %17s" % ("opreport of %d images" % nr_images, "wall", "CPU", "most memory"))
    show("summary", summary)
    show("symbols, read anew", cold)
    show("symbols, kept", warm, "%.1f times faster" % (cold[0] / warm[0]))
    met = [aim("summary, seconds", summary[0], SECONDS_AIM, summary[0] < SECONDS_AIM),
           aim("symbols kept, seconds", warm[0], SECONDS_AIM, warm[0] < SECONDS_AIM),
           aim("symbols read anew, seconds", cold[0], SECONDS_AIM, cold[0] < SECONDS_AIM),
           aim("most memory, MB", max(row[2] for row in (summary, cold, warm)) / 1e6, MEMORY_AIM / 1e6,
               max(row[2] for row in (summary, cold, warm)) < MEMORY_AIM),
           aim("second run, times faster", cold[0] / warm[0], CACHE_AIM, cold[0] >= CACHE_AIM * warm[0])]
    shutil.rmtree(box.session)
    return all(met)


def beside_perf(box, seconds):
    """Both at once: the same load, the same samples, the same machine."""
    with open(os.path.join(box.dir, "bench.c"), "w", encoding="ascii") as stream:
        stream.write(bench.source_text())
    load = bench.Load(box, "compile")
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS)
    perf, output = bench_disk.start_perf(box, PERIOD_NS)
    time.sleep(seconds)
    box.opcontrol("--dump")
    opd_cpu, perf_cpu = bench.cpu_seconds(box.daemon.pid), bench.cpu_seconds(perf.pid)
    bench_disk.stop_perf(box, perf)
    load.stop()
    box.opcontrol("--stop")
    stored = box.check_ledger()["events"][0]["stored"]
    box.shutdown()
    opd_report = best(box, "", os.path.join(box.bin, "opreport"), "--session-dir=" + box.session, "-l")
    perf_report = run_measured(box, "", "perf", "report", "--stdio", "-i", output, "--sort", "dso,symbol")
    opd_all, perf_all = opd_cpu + opd_report[1], perf_cpu + perf_report[1]
    print("\nfrom sample to report, %d samples in %d s at %d Hz" % (stored, seconds, 1000000000 // PERIOD_NS))
    print("%-44s %8.2f s of CPU to record, %8.2f to report, %8.2f in all" % ("opd", opd_cpu, opd_report[1], opd_all))
    print("%-44s %8.2f s of CPU to record, %8.2f to report, %8.2f in all" % ("perf", perf_cpu, perf_report[1], perf_all))
    print("to report alone: perf's CPU by opd's %.1f" % (perf_report[1] / opd_report[1] if opd_report[1] else 0))
    return aim("perf's CPU by opd's, from sample to report", perf_all / opd_all if opd_all else 0, PERF_AIM, perf_all >= PERF_AIM * opd_all, stored > 0 and opd_all > 0)


def bench_report(seconds):
    def test(box):
        if not shutil.which("perf"):
            raise Skip("perf is not installed (Debian package linux-perf)")
        met = large_session(box)
        require(beside_perf(box, seconds) and met, "not all aims are met and shown")
    return test


if __name__ == "__main__":
    opdtest.run(bench_report(int(sys.argv[1]) if len(sys.argv) > 1 else 20))
