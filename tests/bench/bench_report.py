#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Measures reports. Usage: bench_report.py [SECONDS], default 20.

First it makes a session of 10^8 samples in 2,000 images. The images are programs and libraries of
this machine that have a .symtab, and others that it links from objects of static libraries. The
report must show functions for each image. It measures opreport's summary and its list of symbols,
once with an empty symbol cache and once with a full one (aims: 1 s, 200 MB, the second run three
times faster).

Then opd and perf record profile the same load at the same time and rate. It compares the CPU time of
each from recording to report (aim: 20 times less CPU; the full run is with 300 SECONDS).
"""
import itertools
import json
import mmap
import multiprocessing
import os
import resource
import shutil
import struct
import subprocess
import sys
import time

import bench
import bench_disk
from bench import opdtest
from opdtest import Skip, require

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "unit"))
import elfsyms  # noqa: E402
import sample_files  # noqa: E402

NR_SAMPLES = 100000000
NR_IMAGES = 2000
ADDRESSES = 500  # of an image at most
PLACES = ("/usr/lib", "/usr/bin", "/usr/sbin", "/usr/libexec", "/usr/local", "/opt")
ET_EXEC, ET_DYN, SHT_PROGBITS = 2, 3, 1
ARCHIVE_BYTES, NR_OBJECTS = 8 << 20, 6000  # of static libraries
OBJECTS_OF_ONE, OBJECTS_STEP = 12, 2  # of a linked image, and how far it is from the next
SECONDS_AIM, MEMORY_AIM, CACHE_AIM, PERF_AIM = 1.0, 200 << 20, 3.0, 20.0
PERIOD_NS = 100000
REPEATS = 3


def functions(path):
    """File offsets at which functions of a program or library begin, from its .symtab. None for any
    other file, a debug file, or a stripped one.
    """
    try:
        with open(path, "rb") as stream:
            head = stream.read(64)
            if len(head) < 64 or head[:6] != b"\x7fELF\2\1" or int.from_bytes(head[16:18], "little") not in (ET_EXEC, ET_DYN):
                return []
            data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        sections = elfsyms.sections_of(data)
        places = set()
        for _, kind, _, _, offset, size, _, _, _, _ in sections:
            if kind != elfsyms.SHT_SYMTAB:
                continue
            for name, info, _, index, value, _ in elfsyms.SYMBOL.iter_unpack(data[offset:offset + size]):
                if name and info & 15 == elfsyms.STT_FUNC and 0 < index < len(sections) and sections[index][1] == SHT_PROGBITS:
                    places.add(value - sections[index][3] + sections[index][4])
        return sorted(places)
    except (OSError, ValueError, struct.error):
        return []


def find_images(wanted):
    """{path: offsets} of so many different files of the machine that have functions in .symtab, the
    same ones each time.
    """
    found, seen = {}, set()
    for where, _, names in itertools.chain.from_iterable(map(os.walk, PLACES)):
        for name in sorted(names):
            path = os.path.join(where, name)
            if len(found) == wanted:
                return found
            if os.path.islink(path) or not os.path.isfile(path):
                continue
            st = os.stat(path)
            places = [] if (st.st_dev, st.st_ino) in seen else functions(path)
            seen.add((st.st_dev, st.st_ino))
            if places:
                found[path] = places
    return found


def unpack_objects(directory):
    """The objects in the machine's static libraries, from which programs are linked, with their
    names.
    """
    objects = []
    archives = [os.path.join(at, name) for at, _, names in os.walk("/usr/lib") for name in names if name.endswith(".a")]
    for archive in sorted(archives):
        if os.path.islink(archive) or os.path.getsize(archive) > ARCHIVE_BYTES or len(objects) > NR_OBJECTS:
            continue
        where = os.path.join(directory, "%d" % len(objects))
        os.mkdir(where)
        subprocess.run(["ar", "x", archive], cwd=where, capture_output=True, check=False)
        objects += [os.path.join(where, name) for name in sorted(os.listdir(where))]
    return objects


def link(output, objects, shared):
    kind = ["-shared"] if shared else ["-e", "0"]
    done = subprocess.run(["ld", *kind, "--build-id", "-z", "muldefs", "--unresolved-symbols=ignore-all", "-o", output, *objects],
                          capture_output=True, check=False)
    return done.returncode == 0


def link_images(directory, wanted):
    """Makes the missing images: programs and libraries of different objects, some of which two
    neighbours share.
    """
    made, objects = {}, unpack_objects(directory)
    for first in range(0, len(objects) - OBJECTS_OF_ONE, OBJECTS_STEP):
        if len(made) >= wanted:
            break
        output = os.path.join(directory, "linked%d" % len(made))
        chosen = objects[first:first + OBJECTS_OF_ONE]
        if link(output, chosen, len(made) % 2) or link(output, chosen, False):
            places = functions(output)
            made.update({output: places} if places else {})
    return made


def make_session(top, session):
    """The paths of the images."""
    images = find_images(NR_IMAGES)
    nr_found = len(images)
    directory = os.path.join(top, "linked")
    os.mkdir(directory)
    images.update(link_images(directory, NR_IMAGES - nr_found))
    require(len(images) == NR_IMAGES, "%d of %d images with symbols: the machine has too few objects to "
                                      "link" % (len(images), NR_IMAGES))
    per_image, made = NR_SAMPLES // NR_IMAGES, 0
    for path, places in images.items():
        step = max(1, len(places) // ADDRESSES)
        chosen = places[::step][:ADDRESSES]
        share, rest = divmod(per_image, len(chosen))
        counts = [share + (i < rest) for i in range(len(chosen))]
        sample_files.put_image(session, path, list(zip(chosen, counts)), event="TIMER.1000000.0." + sample_files.ALL)
        made += sum(counts)
    sizes = sorted(map(len, images.values()))
    print("a session of %d samples over %d images, %d of the machine and %d linked, with %d functions, %d in the median one" %
          (made, len(images), nr_found, len(images) - nr_found, sum(sizes), sizes[len(sizes) // 2]), flush=True)
    return sorted(images)


def check_symbols(opreport, session, env, images):
    """Every image has functions in the report, and all samples are in functions."""
    out = subprocess.run([opreport, "--session-dir=" + session, "-l", "--format=json"], check=True, capture_output=True,
                         env={**env, "OPD_CACHE_DIR": ""}).stdout
    rows = json.loads(out)["symbols"]
    shown = {row["image"] for row in rows if row.get("symbol") and row["symbol"] != row["image"]}
    whole = [row["image"] for row in rows if not row.get("symbol") or row["symbol"] == row["image"]]
    missing = set(images) - shown
    require(not whole and not missing, "%d images are shown as a whole and %d not by function: %s" % (len(whole),
            len(missing), (whole + sorted(missing))[:5]))


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
    # ru_maxrss has what a process had before its exec: the memory of this process must stay small.
    with multiprocessing.Pool(1) as pool:
        images = pool.apply(make_session, (box.dir, box.session))
        pool.apply(check_symbols, (opreport, box.session, box.env, images))
    base = (opreport, "--session-dir=" + box.session)
    run_measured(box, "", *base)  # the page cache
    summary = best(box, "", *base)
    cold = best(box, cache, *base, "-l", fresh=True)
    warm = best(box, cache, *base, "-l")
    print("%-44s %8s   %8s %17s" % ("opreport of %d images" % len(images), "wall", "CPU", "most memory"))
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
    opd_cpu, perf_cpu = opdtest.cpu_of_threads(box.daemon.pid), opdtest.cpu_of_threads(perf.pid)
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
    return aim("perf's CPU by opd's, from sample to report", perf_all / opd_all if opd_all else 0, PERF_AIM,
               perf_all >= PERF_AIM * opd_all, stored > 0 and opd_all > 0)


def bench_report(seconds):
    def test(box):
        if not shutil.which("perf"):
            raise Skip("perf is not installed (Debian package linux-perf)")
        met = large_session(box)
        require(beside_perf(box, seconds) and met, "not all aims are met and shown")
    return test


if __name__ == "__main__":
    opdtest.run(bench_report(int(sys.argv[1]) if len(sys.argv) > 1 else 20))
