#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
opimport: a system-wide recording of perf becomes a session whose counts are those of perf report,
image by image; so do the same records through a
pipe, compressed, and in the other byte order. A damaged file gives what could be read, an error
with the offset, and exit code 1.
"""
import collections
import os
import re
import shutil
import struct
import subprocess

import opdtest
import perf_swap
import reader
from opdtest import require

EVENTS = ("-e", "cpu-clock/period=50000,name=cpu-clock/", "-e", "page-faults/period=1,name=page-faults/")
WORK = "end=$(($(date +%s)+{})); while [ $(date +%s) -lt $end ]; do " \
       "ls -R /usr/lib >/dev/null; python3 -c 'sum(range(300000))'; done"
SAMPLES_WANTED = 100000
UNATTRIBUTED = ("no-mapping", "no-process", "no-vmlinux", "no-mode")
CUT_EVERY = 1000
CUT_RECORDING = ("-e", "cpu-clock/period=1000000,name=cpu-clock/", "-e", "page-faults/period=20,name=page-faults/")
EVENT_LINE = re.compile(r"# Samples: \S+ +of event '(.*)'")
COUNT_LINE = re.compile(r"\s*[\d.]+%\s+(\d+)\s+(\S.*?)\s*$")
LEDGER_LINE = re.compile(r"^(\S+):(\d+) received (\d+), stored (\d+)(.*)$", re.MULTILINE)
PERF_ENV = {"PERF_CONFIG": "/dev/null"}


def record(box, path, seconds, *more):
    box.good("perf", "record", "-q", "-B", "-a", *EVENTS, *more, "-o", path, "--", "sh", "-c", WORK.format(seconds), env=PERF_ENV)


def opimport(box, *args, stdin=None):
    command = [os.path.join(box.bin, "opimport"), *[str(a) for a in args]]
    done = subprocess.run(command, env=box.env, stdin=stdin or subprocess.DEVNULL, capture_output=True,
                          timeout=opdtest.CALL_SECONDS,
                          check=False)
    out, err = done.stdout.decode(), done.stderr.decode()
    require(not any(w in err for w in opdtest.SANITIZER_WORDS), err)
    return opdtest.Result(done.returncode, out, err)


def imported(box, name, *args, stdin=None):
    """An import that must succeed; what it printed."""
    result = opimport(box, "--session-dir=" + box.session, "-o", name, *args, stdin=stdin)
    require(result.rc == 0, "opimport %s: exit code %d: %s" % (name, result.rc, result.err))
    return result.out


def image_name(name):
    """As perf shows an image; what opd files under several names of one image is one."""
    kind, text = name[:2]
    text = re.sub(r" \((build-id|inode|deleted|tgid|range).*", "", os.path.basename(text))
    if kind == "kern" and text in UNATTRIBUTED:
        return "[unknown]"
    if text == "kallsyms":
        return "[kernel.kallsyms]"
    return "//anon" if text in ("anon", "[heap]", "[stack]") else text


def counts_of_session(box, name):
    counts = collections.defaultdict(collections.Counter)
    for sample_file in reader.read_session(box.session, name, strict=True):
        counts[sample_file.name.event][image_name(sample_file.name.image)] += sample_file.total
    return counts


def counts_of_perf(box, path):
    """What perf report says, and how many records it found out of order."""
    result = box.run("perf", "report", "-i", path, "--sort", "dso", "-n", "--stdio", env=PERF_ENV)
    if result.rc != 0:
        raise opdtest.Skip("perf report does not read what perf record wrote: %s" % result.err[-200:])
    counts, event = collections.defaultdict(collections.Counter), None
    for line in result.out.splitlines():
        found = EVENT_LINE.match(line)
        event = found.group(1) if found else event
        found = COUNT_LINE.match(line)
        if found:
            name = found.group(2).replace(" (deleted)", "")
            counts[event][re.sub(r"^(\[JIT\] tid.*|anon)$", "//anon", name)] += int(found.group(1))
    disorder = re.search(r"(\d+) out of order events recorded", result.out + result.err)
    return counts, int(disorder.group(1)) if disorder else 0


def compare(ours, theirs, tolerance, what):
    for event, images in theirs.items():
        require(sum(ours[event].values()) == sum(images.values()),
                "%s, %s: %d samples, not %d" % (what, event, sum(ours[event].values()), sum(images.values())))
        wrong = {name: (ours[event][name], images[name]) for name in set(ours[event]) | set(images)
                 if ours[event][name] != images[name]}
        moved = sum(max(0, a - b) for a, b in wrong.values())
        require(moved <= tolerance, "%s, %s: opd and perf disagree on %d samples (%d records are out of order): %s" %
                (what, event, moved, tolerance, wrong))
        print("%s, %s: %d samples in %d images, %d differ" % (what, event, sum(images.values()), len(images), moved))


def check_ledger(out, counts):
    found = {match[0]: match for match in LEDGER_LINE.findall(out)}
    for event, images in counts.items():
        stored = int(found[event][3])
        require(stored == sum(images.values()), "the ledger says %d stored of %s, the files have %d" %
                (stored, event, sum(images.values())))
        require(found[event][2] == found[event][3], "not everything of %s is stored: %s" % (event, found[event]))


def check_counts(box, path):
    """The kernel (6.18) gives software events of one CPU the time stamp of another profiler. Such
    records are out of order for perf, which resolves them by what it has read up to then. Only
    these records may differ.
    """
    theirs, disorder = counts_of_perf(box, path)
    out = imported(box, "plain", path)
    ours = counts_of_session(box, "plain")
    require(sum(sum(images.values()) for images in ours.values()) >= SAMPLES_WANTED, "too few samples to compare: %s" % out)
    compare(ours, theirs, disorder, "perf report")
    check_ledger(out, ours)
    return ours


def check_swapped(box, data, ours):
    path = os.path.join(box.dir, "swapped.data")
    data.write(path, data.swapped())
    out = imported(box, "swapped", path)
    require("of the other byte order" in out, "opimport does not say that the file is swapped: %s" % out)
    require(counts_of_session(box, "swapped") == ours, "the swapped file gives other counts")
    theirs, disorder = counts_of_perf(box, path)
    compare(ours, theirs, disorder, "perf report of the swapped file")


def check_stdin(box, path, ours):
    """A file, from a pipe that cannot seek."""
    with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat:
        imported(box, "stdin", stdin=cat.stdout)
    require(counts_of_session(box, "stdin") == ours, "the file through a pipe gives other counts")


def check_pipe(box):
    path = os.path.join(box.dir, "pipe.data")
    with open(path, "wb") as stream:
        done = subprocess.run(["perf", "record", "-q", "-B", "-a", *EVENTS, "-o", "-", "--", "sh", "-c",
                               WORK.format(1)], stdout=stream,
                              stderr=subprocess.DEVNULL, env={**box.env, **PERF_ENV}, check=False)
    require(done.returncode == 0, "perf record -o - failed")
    with open(path, "rb") as stream:
        require(struct.unpack("<8sQ", stream.read(16))[1] == 16, "perf record -o - did not write pipe mode")
        stream.seek(0)
        out = imported(box, "pipe", stdin=stream)
    ours = counts_of_session(box, "pipe")
    check_ledger(out, ours)
    require({"cpu-clock", "page-faults"} <= set(ours), "events of the pipe: %s" % sorted(ours))
    require("from a pipe" in out, out)


def check_compressed(box):
    path = os.path.join(box.dir, "compressed.data")
    record(box, path, 1, "-z")
    out = imported(box, "compressed", path)
    require("compressed records" in out, "perf record -z compressed nothing: %s" % out)
    check_ledger(out, counts_of_session(box, "compressed"))
    data = perf_swap.PerfData(path)
    kinds = collections.Counter(r.type for r in data.records())
    require(kinds[perf_swap.COMPRESSED] and not kinds[perf_swap.SAMPLE], "samples stand beside the compressed records: %s" % kinds)


def check_cuts(box):
    """Cut at every 1000th byte, the records before the cut are counted."""
    path = os.path.join(box.dir, "cut.data")
    box.good("perf", "record", "-q", "-B", "-a", *CUT_RECORDING, "-o", path, "--", "sleep", "0.2", env=PERF_ENV)
    data = perf_swap.PerfData(path)
    samples = [r.offset + r.size for r in data.records() if r.type == perf_swap.SAMPLE]
    for nr, cut in enumerate(range(CUT_EVERY, len(data.bytes), CUT_EVERY)):
        name = "cut%d" % nr
        data.write(path, data.bytes[:cut])
        result = opimport(box, "--session-dir=" + box.session, "-o", name, path)
        require(result.rc == 1, "cut at byte %d: exit code %d: %s" % (cut, result.rc, result.err))
        if cut < data.data[0]:
            continue
        told = re.search(r"at byte (\d+): (.*)", result.err)
        require(told, "cut at byte %d: %r" % (cut, result.err))
        if cut < sum(data.data):
            require(int(told[1]) <= cut and told[2].startswith("the file ends before its records do"),
                    "cut at byte %d: %r" % (cut, result.err))
        stored = sum(int(match[3]) for match in LEDGER_LINE.findall(result.out))
        wanted = sum(end <= cut for end in samples)
        require(stored == wanted, "cut at byte %d: %d samples stored of %d before it" % (cut, stored, wanted))
        shutil.rmtree(os.path.join(box.session, "samples", name))
    print("%d cuts in %d bytes with %d samples" % (nr + 1, len(data.bytes), len(samples)))


def check_refusals(box, path):
    """What must not be written over, and what is no perf.data."""
    tool = os.path.join(box.bin, "opimport")
    line = box.refused(tool, "--session-dir=" + box.session, "-o", "plain", path)
    require("has samples already" in line, line)
    line = box.refused(tool, "--session-dir=" + box.session, "-o", "../plain", path)
    require("cannot be the name" in line, line)
    line = box.refused(tool, "--session-dir=" + box.session, "-o", "none", tool)
    require("not a perf.data file" in line, line)
    require(not os.path.exists(os.path.join(box.session, "samples", "none")), "a refused file left a session")
    box.start_daemon()
    line = box.refused(tool, "--session-dir=" + box.session, path)
    require("a daemon samples" in line, line)
    imported(box, "beside", path)
    box.shutdown()


def test(box):
    path, mended = os.path.join(box.dir, "perf.data"), os.path.join(box.dir, "mended.data")
    record(box, path, 6)
    data = perf_swap.PerfData(path)
    print("%d records, %d with a flag that is another profiler's" % (sum(1 for _ in data.records()), data.mend_flags()))
    data.write(mended)
    ours = check_counts(box, mended)
    imported(box, "raw", path)
    require(counts_of_session(box, "raw") == ours, "a flag that the kernel set wrongly changes the counts")
    check_swapped(box, data, ours)
    check_stdin(box, mended, ours)
    check_pipe(box)
    check_compressed(box)
    check_cuts(box)
    check_refusals(box, mended)
    require(not os.listdir(os.path.join(box.session, "tmp")), "something is left in tmp")


def needs():
    opdtest.needs_perf()
    if not shutil.which("perf"):
        raise opdtest.Skip("perf is not installed (Debian: linux-perf)")
    if not opdtest.sees_all_processes():
        raise opdtest.Skip("in a pid name space, perf gives all processes outside of it one number")


if __name__ == "__main__":
    opdtest.run(test, needs)
