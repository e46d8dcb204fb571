#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
opimport keeps whole stacks. A program with a known call tree is recorded by perf record
--call-graph fp and dwarf; the folded stacks of the imported session are those of perf script, path
by path, and the ledger adds up. So it is through a pipe, compressed, and without build-ids.
Copies that are too short, programs that have been replaced, and stacks of one event beside samples
of another end as documented, and all are counted.
"""
import collections
import os
import re
import shutil
import subprocess

import opdtest
from hot import compile_to
from opdtest import require
from importtest import imported, opimport, PERF_ENV

WITHOUT_FP = ("-O2", "-fno-optimize-sibling-calls", "-fomit-frame-pointer")
WITH_FP = ("-O0", "-fno-omit-frame-pointer")  # optimised, leaf has none
# _start is not among them: in the loader its call is its last instruction, and perf script names
# what follows.
FUNCTIONS = {"main", "leaf", "direct", "compare", "sorted", "deep"}
EVENT = ("-e", "cpu-clock/period=1000000,name=cpu-clock/")
MS = 1500
WANTED = 200  # samples, also on a busy machine
AGREE, COMPLETE = 0.99, 0.99  # of dwarf
FRAME_LINE = re.compile(r"\s*[0-9a-f]+ (.*) \((\S.*)\)$")
OF_KERNEL = re.compile(r"\[(?!vdso|unknown)")
END = re.compile(r"\[(cut|no_row|left_code|no_table_yet|too_deep|no_room|guessed)\]$")
EVENT_LINE = re.compile(r"^(\S+):\d+ received (\d+), stored (\d+)(.*)$", re.MULTILINE)
STACKS_LINE = re.compile(r"^(\S+):\d+ stacks: (\d+)((?:, \w+ \d+)*)$", re.MULTILINE)


def record(box, name, program, *more, ms=MS):
    path = os.path.join(box.dir, name + ".data")
    box.good("perf", "record", "-q", *EVENT, *more, "-o", path, "--", program, ms, env=PERF_ENV)
    return path


def plain(name):
    """Names of other images depend on who chooses among aliases."""
    return name if name in FUNCTIONS or name.endswith("_[k]") else "*"


def stacks_of_perf(box, path):
    result = box.run("perf", "script", "-i", path, "--no-inline", "-F", "ip,sym,dso", env=PERF_ENV)
    if result.rc != 0:
        raise opdtest.Skip("perf script does not read what perf record wrote: %s" % result.err[-200:])
    stacks = collections.Counter()
    for block in re.split(r"\n\s*\n", result.out):
        frames = [found.groups() for found in map(FRAME_LINE.match, block.splitlines()) if found]
        if frames:
            stacks[tuple(plain(name + "_[k]" * bool(OF_KERNEL.match(image))) for name, image in reversed(frames))] += 1
    return stacks


def stacks_of_session(box, name, *more):
    """{functions, outermost first: count}, {end: count}."""
    stacks, ends = collections.Counter(), collections.Counter()
    for line in box.opreport("--format=folded", *more, "session:" + name).splitlines():
        path, count = line.rsplit(" ", 1)
        frames = path.split(";")[1:]
        end = END.match(frames[0]) if frames else None
        ends[end.group(1) if end else "complete"] += int(count)
        stacks[tuple(map(plain, frames[bool(end):]))] += int(count)
    return stacks, ends


def check_ledger(box, name, out, ends):
    """Every sample of an event with stacks has one end, in the report of opimport and in the file."""
    received = {found[0]: int(found[1]) for found in EVENT_LINE.findall(out)}
    lost = {found[0]: sum(map(int, re.findall(r"lost_(?!kernel)\w+ (\d+)", found[3]))) for found in EVENT_LINE.findall(out)}
    told = STACKS_LINE.findall(out)
    require(told, "opimport tells nothing of stacks: %s" % out)
    for event, total, words in told:
        numbers = {word: int(number) for word, number in re.findall(r"(\w+) (\d+)", words)}
        require(int(total) == sum(numbers.values()) == received[event] - lost[event], "%s: ends and samples: %s" % (event, out))
    with open(os.path.join(box.session, "samples", name, "ledger"), encoding="utf-8") as stream:
        in_file = collections.Counter()
        for end, count in re.findall(r"\tend_(\w+)=(\d+)", stream.read()):
            in_file[end] += int(count)
    require(in_file == +ends, "the ledger has the ends %s, the stacks %s" % (in_file, ends))


def imported_stacks(box, name, *args, stdin=None):
    out = imported(box, name, *args, stdin=stdin)
    stacks, ends = stacks_of_session(box, name)
    check_ledger(box, name, out, ends)
    return stacks, ends


def agreement(ours, theirs, what):
    total, same = sum(theirs.values()), sum((ours & theirs).values())
    require(sum(ours.values()) == total, "%s: %d stacks, perf script has %d" % (what, sum(ours.values()), total))
    require(total >= WANTED, "%s: only %d samples" % (what, total))
    print("%s: %d of %d stacks are those of perf script (%.2f %%)" % (what, same, total, 100 * same / total))
    return same / total


def check_fp(box, program):
    path = record(box, "fp", program, "--call-graph", "fp")
    ours, ends = imported_stacks(box, "fp", path)
    theirs = stacks_of_perf(box, path)
    agreement(ours, theirs, "fp")
    # While the kernel jumps to a function through a thunk, the function's first address lies on the
    # stack as if it were a return address. opd takes the byte before it, and perf that address.
    # Where a return address is not in code opd ends (left_code), and perf lists the address.
    in_thunks = sum(count for stack, count in ours.items() if any("indirect_thunk" in name for name in stack))
    others = ours - theirs
    require(sum(others.values()) <= ends["left_code"] + in_thunks,
            "fp: other stacks, %d left code, %d in thunks: %s, of perf script: %s" %
            (ends["left_code"], in_thunks, others.most_common(3), (theirs - ours).most_common(3)))
    # Frame pointers end in libc's own code, unless that has them, too.
    require(sum(ends.values()) == ends["no_row"] + ends["complete"] + ends["left_code"], "fp: ends %s" % ends)
    for inner in ("direct", "compare", "deep"):
        require(any(stack[-2:] == (inner, "leaf") for stack in ours), "fp: leaf has no caller %s" % inner)
    return path, ours


def check_dwarf(box, program):
    path = record(box, "dwarf", program, "--call-graph", "dwarf,8192")
    ours, ends = imported_stacks(box, "dwarf", path)
    share = agreement(ours, stacks_of_perf(box, path), "dwarf")
    require(share >= AGREE, "dwarf: other stacks: %s" % (ours - stacks_of_perf(box, path)).most_common(3))
    require(ends["complete"] >= COMPLETE * sum(ends.values()), "dwarf: ends %s" % ends)
    report = box.opreport("-c", "session:dwarf", program)
    found = re.search(r"^ +\d+.* direct\n(?: .*\n)*?\d+ .* leaf$", report, re.M)
    require(found, "opreport -c: direct does not call leaf:\n%s" % report[:3000])
    return path, ours


def check_forms(box, path, ours):
    """The same file through a pipe that cannot seek; and records of other forms."""
    with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat:
        same, _ = imported_stacks(box, "piped", stdin=cat.stdout)
    require(same == ours, "the file through a pipe has other stacks")


def check_other_records(box, program):
    """Compressed; without a list of build-ids, where inodes prove the images; from perf's pipe."""
    for name, more in (("packed", ("-z",)), ("no-ids", ("-B",)), ("fields", ("--phys-data", "-d", "-W", "--sample-cpu"))):
        recorded = box.run("perf", "record", "-q", *EVENT, "--call-graph", "dwarf,8192", *more, "-o",
                           os.path.join(box.dir, name + ".data"), "--", program, MS, env=PERF_ENV)
        if recorded.rc != 0:
            print("%s: perf does not record it: %s" % (name, recorded.err.strip()[:100]))
            continue
        stacks, ends = imported_stacks(box, name, os.path.join(box.dir, name + ".data"))
        require(sum(stacks.values()) >= WANTED and ends["complete"] >= COMPLETE * sum(ends.values()), "%s: ends %s" % (name, ends))
    with subprocess.Popen(["perf", "record", "-q", *EVENT, "--call-graph", "dwarf,8192", "-o", "-", "--", program, str(MS)],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(box.env, **PERF_ENV)) as perf:
        _, ends = imported_stacks(box, "stream", stdin=perf.stdout)
    require(ends["complete"] >= COMPLETE * sum(ends.values()) > 0, "from perf's pipe: ends %s" % ends)


def check_short_copies(box, program):
    """256 bytes hold no recursion of 41 frames."""
    path = record(box, "short", program, "--call-graph", "dwarf,256")
    stacks, ends = imported_stacks(box, "short", path)
    cut, _ = stacks_of_session(box, "short", "--focus=deep")
    require(ends["cut"] and sum(cut.values()) and ends["cut"] >= sum(cut.values()) / 2, "short copies: ends %s" % ends)
    require(all(stack[0] != "_start" or len(stack) < 20 for stack in stacks), "a short copy has a whole recursion: %s" % stacks)


def check_replaced(box, program):
    """The program is gone, and then another file has its name: its stacks end there."""
    copy = os.path.join(box.dir, "replaced")
    shutil.copy(program, copy)
    path = record(box, "replaced", copy, "--call-graph", "dwarf,8192")
    os.unlink(copy)
    for name in ("gone", "other"):
        stacks, ends = imported_stacks(box, name, path)
        require(sum(stacks.values()) >= WANTED and not any("main" in stack for stack in stacks), "%s: %s" % (name, stacks))
        require(ends["complete"] <= 0.05 * sum(ends.values()), "%s: ends %s" % (name, ends))
        compile_to(box, copy, *WITH_FP, file="stacks.c")


def check_beside_others(box, program):
    """An event without stacks beside one with them."""
    path = os.path.join(box.dir, "two.data")
    box.good("perf", "record", "-q", "-e", "cpu-clock/period=1000000,name=with,call-graph=dwarf/", "-e",
             "task-clock/period=1000000,name=without,call-graph=no/", "-o", path, "--", program, MS, env=PERF_ENV)
    out = imported(box, "two", path)
    require([found[0] for found in STACKS_LINE.findall(out)] == ["with"], "events with stacks: %s" % out)
    require(re.search(r"^without:\d+ received [1-9]", out, re.M), "the other event has no samples: %s" % out)
    require("main" in box.opreport("--stacks", "session:two"), "no stacks beside an event without them")


def check_damaged(box, path):
    """What says at the end of a file which images these were is cut off, so nobody knows their rows."""
    cut = os.path.join(box.dir, "cut.data")
    with open(path, "rb") as stream, open(cut, "wb") as target:
        target.write(stream.read()[:os.path.getsize(path) // 2])
    result = opimport(box, "--session-dir=" + box.session, "-o", "cut", cut)
    require(result.rc == 1, "a cut file is whole: %s" % result.out)
    _, ends = stacks_of_session(box, "cut")
    check_ledger(box, "cut", result.out, ends)
    require(sum(ends.values()) >= WANTED / 2 and not ends["complete"], "a cut file: ends %s" % ends)


def test(box):
    with_fp, without_fp = os.path.join(box.dir, "with-fp"), os.path.join(box.dir, "without-fp")
    compile_to(box, with_fp, *WITH_FP, file="stacks.c")
    compile_to(box, without_fp, *WITHOUT_FP, file="stacks.c")
    path, ours = check_fp(box, with_fp)
    check_forms(box, path, ours)
    path, _ = check_dwarf(box, without_fp)
    check_damaged(box, path)
    check_other_records(box, without_fp)
    check_short_copies(box, without_fp)
    check_replaced(box, without_fp)
    check_beside_others(box, without_fp)


if __name__ == "__main__":
    opdtest.run(test)
