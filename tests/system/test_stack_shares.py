#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Whole stacks of a program without frame pointers, whose call tree has known shares: each path is
reported within 3 sigma at 99 Hz and at 997 Hz, every stack begins in _start, and the ledger adds up.
--separate=cpu keeps those of each CPU apart.
With --callgraph opreport -c shows the callers: those of the samples of an event that have stacks,
or, with an event of its own for stacks, as many calls as that stands for.
operf --stacks takes them, too.
"""
import collections
import json
import math
import os
import re
import struct

import elfsyms
import opdtest
from hot import compile_to
from opdtest import require

FLAGS = ("-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls")
PATHS = ("direct", "compare", "deep")  # in the order of the program's output: the work in leaf
DEPTH = 41
NEEDED = 0.99  # complete stacks, of those of the program whose tables were there
EVENT, APP, COMM, END, FRAME, STATE = 1, 2, 3, 6, 7, 10
ENDS = ("complete", "cut", "no_row", "left_code", "no_table_yet", "too_deep", "no_room", "guessed")


def stacks_of(session, comm):
    """{(end, positions of the frames of the program, outermost first): count} of a process name."""
    with open(os.path.join(session, "samples", "current", "stacks"), "rb") as stream:
        data = stream.read()
    nr_nodes, = struct.unpack_from("<I", data, 12)
    nodes = [struct.unpack_from("<IHHQQQ", data, 64 + 32 * i) for i in range(nr_nodes)]
    stacks = collections.Counter()
    for node in nodes:
        count, path = node[5], []
        while count and node[1]:
            path.append(node)
            node = nodes[node[0]]
        fields = {kind: (value, image) for _, kind, _, value, image, _ in path if kind != FRAME}
        if COMM not in fields or STATE in fields or struct.pack("<QQ", *fields[COMM]).rstrip(b"\0") != comm.encode():
            continue
        app = fields[APP][1]
        frames = tuple(value for _, kind, _, value, image, _ in reversed(path) if kind == FRAME and image == app)
        stacks[ENDS[fields.get(END, (0,))[0]], frames] += count
    return stacks


def functions_of(frames, symbols):
    """The functions of the frames. A caller is named by its call, which lies before the position."""
    names = []
    for i, position in enumerate(frames):
        at = position - (i + 1 < len(frames))
        names.append(next((name for name, (first, end) in symbols.items() if first <= at < end), "?"))
    return names


def check_ledger(status):
    event = next(e for e in status["events"] if e["name"] == "STACKS")
    lost = sum(v for k, v in event.items() if k.startswith("lost_") and k != "lost_kernel")
    ends = sum(event["end_" + end] for end in ENDS)
    require(event["received"] == ends + event["filtered"] + lost, "received, and the ends of walks: %s" % event)
    require(event["stored"] == ends, "stored: %s" % event)


def make_tables(box, *paths):
    """A busy machine has little time for opd-tables. Afterwards the tables of the programs are in
    the cache, and no sample has to wait for them.
    """
    box.start_daemon("--event=default", "--stacks=99")
    for path in paths:
        box.good(path, 1000)
    opdtest.wait_until(lambda: not box.status()["tables_waiting"], opdtest.HANG_SECONDS, "tables are not made")
    box.shutdown()
    box.opcontrol("--reset")


class Paths:
    """The samples in leaf by path, beside the work that the program did there."""

    def __init__(self):
        self.work, self.below, self.ends = collections.Counter(), collections.Counter(), collections.Counter()

    def add_stacks(self, box, path):
        symbols = elfsyms.symbol_ranges(path, ("_start", "main", "leaf", "direct", "compare", "sorted", "deep"))
        self.below.clear()
        self.ends.clear()
        for (end, frames), count in stacks_of(box.session, os.path.basename(path)).items():
            self.ends[end] += count
            names = functions_of(frames, symbols)
            if end != "complete" or "main" not in names:
                continue  # before main, or on the way into the kernel
            require(names[0] == "_start", "a complete stack begins in %s" % names)
            if names[-1] == "leaf":
                require(names[1] == "main", "main is not the second frame: %s" % names)
                require(names[-2] != "deep" or names.count("deep") == DEPTH, "the recursion has %d frames" % names.count("deep"))
                self.below[names[-2]] += count

    def wrong(self):
        """What is more than 3 sigma from its share."""
        total = sum(self.below.values())
        for name in PATHS:
            share = self.work[name] / sum(self.work.values())
            sigma = math.sqrt(total * share * (1 - share))
            if abs(self.below[name] - total * share) > 3 * sigma:
                yield "%s: %d of %d samples, expected %.0f +- %.1f" % (name, self.below[name], total, total * share, sigma)


def check_shares(box, path, rate, ms):
    """Chance puts one of 60 such measurements outside of 3 sigma. More samples tell chance from a
    wrong share.
    """
    box.start_daemon("--event=default", "--stacks=%d" % rate)
    paths = Paths()
    for repeat in (1, 1, 2, 4):
        box.opcontrol("--start")
        for _ in range(repeat):
            paths.work.update(dict(zip(PATHS, (int(word) for word in box.good(path, ms).split()))))
        box.opcontrol("--stop")
        check_ledger(box.status())
        paths.add_stacks(box, path)
        print("%d Hz: %s, ends %s" % (rate, dict(paths.below), dict(paths.ends)))
        wrong = list(paths.wrong())
        if not wrong:
            break
    # On a busy machine samples at 1 kHz may not wait until their table is made.
    ends = paths.ends
    require(ends["complete"] >= NEEDED * (sum(ends.values()) - ends["no_table_yet"]), "complete stacks: %s" % ends)
    require(sum(paths.below.values()) >= rate * ms / 1000 / 10, "only %d samples in leaf" % sum(paths.below.values()))
    require(not wrong, "\n".join(wrong))
    box.shutdown()
    box.opcontrol("--reset")


def check_report(box, path):
    report = box.opreport("-c", path)
    for caller, callee in (("main", "direct"), ("direct", "leaf"), ("compare", "leaf"), ("deep", "leaf")):
        found = re.search(r"^ +\d+.* %s\n(?: .*\n)*?\d+ .* %s$" % (caller, callee), report, re.M)
        require(found, "opreport -c: %s does not call %s:\n%s" % (caller, callee, report[:4000]))


def check_callers(box, path):
    """The calls of --callgraph come from the stacks of the event."""
    box.start_daemon("--event=default", "--stacks=event", "--callgraph=60")
    box.good(path, 1500)
    box.opcontrol("--stop")
    check_report(box, path)
    box.shutdown()
    box.opcontrol("--reset")


def check_cpus(box, path):
    """--separate=cpu keeps the stacks of each CPU apart."""
    cpus = sorted(os.sched_getaffinity(0))[:2]
    box.start_daemon("--event=default", "--stacks=499", "--separate=library,kernel,cpu")
    for cpu in cpus:
        box.good("taskset", "-c", str(cpu), path, 300)
    box.opcontrol("--stop")
    counts = [json.loads(box.opreport("--stacks", "--format=json", "--by=comm", "cpu:%d" % cpu, path))["stacks"]["samples"]
              for cpu in cpus]
    whole = json.loads(box.opreport("--stacks", "--format=json", path))["stacks"]["samples"]
    require(min(counts) > 10 and sum(counts) == whole, "stacks by CPU: %s of %d" % (counts, whole))
    box.shutdown()
    box.opcontrol("--reset")


def check_calls_of_stacks(box, path):
    """The calls that lead to leaf are about as many as its samples, although there are three times
    as many samples as stacks, and each path has its share.
    """
    box.start_daemon("--event=TIMER:997000", "--stacks=333", "--callgraph=60")
    work = dict(zip(PATHS, (int(word) for word in box.good(path, 4000).split())))
    box.opcontrol("--stop")
    check_report(box, path)
    symbols = elfsyms.symbol_ranges(path, ("leaf", "direct", "compare", "deep"))
    samples, calls = 0, collections.Counter()
    for f in box.files():
        require(f.name.event == "TIMER", "sample files of %s" % f.name.event)
        for key, count in f.keys.items():
            if not f.name.callee and f.name.image[1] == path:
                samples += count * (functions_of([key], symbols)[-1] == "leaf")
            elif f.name.image[1] == path and functions_of([key & 0xffffffff], symbols)[-1] == "leaf":
                calls[functions_of([(key >> 32) - 1], symbols)[-1]] += count
    total = sum(calls.values())
    stacks = sum(count for (end, frames), count in stacks_of(box.session, os.path.basename(path)).items()
                 if frames and functions_of(frames, symbols)[-1] == "leaf")
    print("%d samples in leaf, %s called it, %d stacks" % (samples, dict(calls), stacks))
    require(stacks < samples / 2, "%d stacks for %d samples" % (stacks, samples))
    require(abs(total - samples) < 0.1 * samples, "%d calls for %d samples" % (total, samples))
    for name in PATHS:
        share = work[name] / sum(work.values())
        sigma = math.sqrt(share * (1 - share) / stacks)
        # The number of samples for which a stack stands varies, too.
        require(abs(calls[name] / total - share) < 5 * sigma, "%s has %d of %d calls, not %.3f +- %.3f" % (
            name, calls[name], total, share, sigma))
    box.good(os.path.join(box.bin, "opcheck"), "--session-dir=" + box.session)
    box.shutdown()
    box.opcontrol("--reset")


def check_operf(box, path):
    """operf takes stacks of an ordinary user's program, without the daemon."""
    user = None if os.geteuid() else opdtest.DAEMON_UID
    place = os.path.join(box.dir, "of-user")
    os.mkdir(place)
    os.chmod(place, 0o777)
    session = os.path.join(place, "oprofile_data")
    result = box.run(os.path.join(box.bin, "operf"), "--stacks", "--session-dir=" + session, path, 2000, user=user)
    require(result.rc == 0, "operf: %s" % result.err)
    ends = collections.Counter()
    for (end, _), count in stacks_of(session, os.path.basename(path)).items():
        ends[end] += count
    require(sum(ends.values()) >= 20 and ends["complete"] >= NEEDED * sum(ends.values()), "operf: ends %s" % ends)


def test(box):
    path = os.path.join(box.dir, "stacks")
    compile_to(box, path, *FLAGS, file="stacks.c")
    make_tables(box, path)
    check_shares(box, path, 99, 10000)
    check_shares(box, path, 997, 4000)  # 1000 would be in step with the scheduler's tick
    check_cpus(box, path)
    check_callers(box, path)
    check_calls_of_stacks(box, path)
    check_operf(box, path)


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
