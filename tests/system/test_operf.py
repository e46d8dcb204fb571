#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""operf as nobody: a program with threads, forked children and one that calls exec has its known
shares; exit codes and signals are the command's; the ledger is exact, with page faults to the last
one; --separate-thread, --separate-cpu, --callgraph; and the same shares as perf record.
"""
import os
import re
import resource
import signal
import subprocess

import elfsyms
import opdtest
import operftest
from hot import compile_to
from operftest import PARTS
from opdtest import require

MS = 700
MEMLOCK_OF_5_16 = 8 << 20
THREADS, CHILDREN = 2, 2
FAULTS = 5000
SHORTS, SHORT_MS = 40, 8
SIGMAS = 3
POINTS = 1.7


def check_shares(counts, spent, what):
    """Each part has its share of the samples, within three standard deviations."""
    nr, total = sum(counts.get(part, 0) for part in PARTS), sum(spent)
    require(nr >= MS, "%s: %d samples in the parts" % (what, nr))
    for part, ns in zip(PARTS, spent):
        share = ns / total
        sigma = (share * (1 - share) / nr) ** 0.5
        found = counts.get(part, 0) / nr
        print("%s: %s has %.2f %% of %d samples and %.2f %% of the time, sigma %.2f" %
              (what, part, 100 * found, nr, 100 * share, 100 * sigma))
        require(abs(found - share) <= SIGMAS * sigma, "%s: %s has %.2f %%, not %.2f %%" % (what, part, 100 * found, 100 * share))


def family(home, *options):
    result = home.profile(*options, home.family, MS, THREADS, CHILDREN)
    return result, [int(word) for word in result.out.split()]


def known_shares(home):
    result, spent = family(home)
    home.check(result)
    check_shares(home.symbols(), spent, "operf")
    ranges = elfsyms.symbol_ranges(home.family, PARTS)
    by_file = {part: sum(n for f in home.files() if f.name.image[1] == home.family
                         for key, n in f.keys.items() if start <= key < end) for part, (start, end) in ranges.items()}
    check_shares(by_file, spent, "the files")
    out = home.opreport()
    require(re.search(r"^ *\d+ +[0-9.e+-]+ family$", out, re.M), "opreport without options does not use ./oprofile_data: " + out)


def separation(home):
    result, _ = family(home, "--separate-thread")
    home.check(result)
    tasks = {(f.name.tgid, f.name.tid) for f in home.files() if f.name.image[1] == home.family}
    require(None not in {tid for _, tid in tasks}, "files without a thread: %s" % tasks)
    groups = {tgid for tgid, _ in tasks}
    # The main process with its threads, the children, and the one that calls exec.
    require(len(groups) == 1 + CHILDREN + 1, "%d processes, not %d: %s" % (len(groups), 2 + CHILDREN, tasks))
    require(len(tasks) == 1 + THREADS + CHILDREN + 1, "%d threads, not %d: %s" % (len(tasks), 2 + THREADS + CHILDREN, tasks))
    result, _ = family(home, "--separate-cpu")
    home.check(result)
    cpus = {f.name.cpu for f in home.files()}
    require(cpus and cpus <= os.sched_getaffinity(0), "the files are of CPUs %s" % cpus)
    require({f.name.tid for f in home.files()} == {None}, "files of threads without --separate-thread")


def short_children(home):
    """Processes that are gone when their samples are read: their records alone say what they ran."""
    path = home.box.copy_work("short-app")
    script = "i=0; while [ $i -lt %d ]; do %s spin %d; i=$((i + 1)); done" % (SHORTS, path, SHORT_MS)
    home.check(home.profile("sh", "-c", script))
    row = home.ledger()[0][operftest.DEFAULT]
    require(row["unattributed"] == 0, "samples without an image: %s" % row)
    found = sum(f.total for f in home.files() if f.name.image[1] == path)
    require(found >= 0.7 * SHORTS * SHORT_MS, "%d samples of %d ms" % (found, SHORTS * SHORT_MS))
    require({f.name.app[1] for f in home.files() if f.name.image[1] == path} == {path}, "the application is another one")


def exit_codes(home):
    for code in (0, 1, 42, 255):
        home.check(home.profile("sh", "-c", "exit %d" % code, rc=code))
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGPIPE):
        home.check(home.profile("sh", "-c", "kill -%d $$" % number, rc=128 + number))
    before = home.ledger()
    line = home.refused("nothing-of-this-name", rc=127)
    require("nothing-of-this-name" in line and "no such command" in line, line)
    plain = os.path.join(home.path, "plain")
    with open(plain, "w", encoding="ascii") as stream:
        stream.write("echo\n")
    require("Permission denied" in home.refused(plain, rc=126), "a file that is no program")
    bad = os.path.join(home.path, "bad")
    with open(bad, "wb") as stream:
        stream.write(b"#!/nothing/there\n")
    os.chmod(bad, 0o755)
    require("operf: %s: " % bad in home.profile(bad, rc=127).err, "a script without its interpreter")
    require(before[1] == "stopped", "the session before")


def environment(home):
    """The command finds its limits, umask, mask and ignored signals as it does without operf."""
    probe = ["sh", "-c", "umask; ulimit -n; ulimit -Hn; ulimit -l; grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status; "
             "ls -l /proc/self/fd | sed 's/.* \\([0-9]* -> \\)/\\1/; s/\\[.*//' | grep -c pipe; cat"]
    for words in ([], ["prlimit", "--nofile=200:300"]):
        require(home.run(*words, *probe).out == home.run(*words, home.operf, *probe).out,
                "operf changes what its command finds: %s, not %s" % (home.run(*words, home.operf, *probe),
                                                                     home.run(*words, *probe)))


def is_ready(path):
    return lambda: os.path.exists(path)


def signals(home):
    ready = os.path.join(home.path, "ready")
    for send, code in ((lambda child: operftest.interrupt_group(child), 7), (lambda child: child.send_signal(signal.SIGTERM), 8),
                       (lambda child: child.send_signal(signal.SIGINT), 7)):
        child = home.start("sh", "-c", "trap 'exit 7' INT; trap 'exit 8' TERM; : > %s; while :; do :; done" % ready)
        opdtest.wait_until(is_ready(ready), opdtest.HANG_SECONDS, "the command does not run")
        os.unlink(ready)
        opdtest.await_cpu_seconds(child.pid, 0)
        send(child)
        home.check(home.end(child, rc=code))
    # A command that has its own idea of Ctrl-C is waited for.
    child = home.start("sh", "-c", "trap : INT; : > %s; i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done; exit 3" % ready)
    opdtest.wait_until(is_ready(ready), opdtest.HANG_SECONDS, "the command does not run")
    operftest.interrupt_group(child)
    home.check(home.end(child, rc=3))
    os.unlink(ready)


def page_faults(home):
    """Each page fault is a sample, to the last one that the kernel samples."""
    box = home.box
    path = box.copy_work("touches")
    for _ in range(5):
        oracle = opdtest.FaultOracle(box.fault_oracle)
        result = home.profile("--events=page-faults:1", path, "faults", FAULTS)
        not_sampled = oracle.not_sampled()
        row = home.ledger()[0]["page-faults:1"]
        summary = operftest.SUMMARY.search(result.err)
        taken = int(re.match(r"\d+", summary.group(1)).group())
        require(0 <= taken - row["received"] - row["lost_kernel"] <= not_sampled,
                "taken %d, %s, %d not sampled" % (taken, row, not_sampled))
        if row["received"] == row["stored"] and not row["lost_kernel"]:
            break
    touched = home.symbols().get("touch_pages", 0)
    require(FAULTS <= touched + not_sampled <= FAULTS + 64 + not_sampled, "%d faults in touch_pages, not %d" % (touched, FAULTS))
    require(row["stored"] == sum(f.total for f in home.files()), "the files lack some: %s" % row)


def callgraph(home):
    calls = os.path.join(home.path, "calls")
    compile_to(home.box, calls, "-O0", file="calls.c")
    os.chmod(calls, 0o755)
    home.check(home.profile("--callgraph", "--events=TIMER:200000", calls, MS))
    ranges = elfsyms.symbol_ranges(calls, ("leaf", "a", "c", "work", "main"))
    arcs = {}
    for f in home.files():
        if f.name.callee and f.name.image[1] == calls and f.name.callee[1] == calls:
            for key, count in f.keys.items():
                ends = tuple(next((name for name, (first, end) in ranges.items() if first <= offset < end), None)
                             for offset in (key >> 32, key & 0xffffffff))
                arcs[ends] = arcs.get(ends, 0) + count
    for arc in (("main", "work"), ("work", "a"), ("work", "c"), ("a", "leaf"), ("c", "leaf")):
        require(arcs.get(arc), "no calls %s: %s" % (arc, arcs))
    require(2 < arcs[("a", "leaf")] / arcs[("c", "leaf")] < 4.5, "a is not three times c: %s" % arcs)
    require("leaf" in home.opreport("-c"), "opreport -c")
    home.profile("--callgraph", "--events=TIMER:20000", "true", rc=1)


def perf_symbols(home, data):
    """{part: samples} of perf report for the same program."""
    result = home.run("perf", "report", "-i", data, "--stdio", "--no-children", "-n", "-F", "sample,sym", "--comms", "family")
    require(result.rc == 0, "perf report: %s" % result.err)
    return {m.group(2): int(m.group(1)) for m in re.finditer(r"^ *(\d+) +\[\.\] (\S+)", result.out, re.M)}


def beside_perf(home):
    """perf record takes its samples of the same run, at another rate."""
    data = os.path.join(home.path, "perf.data")
    if home.run("perf", "record", "-q", "-e", "cpu-clock:u", "-c", "1000000", "-o", data, "true").rc:
        raise opdtest.Skip("perf record does not work here")
    # The rings of both are within this limit and perf_event_mlock_kb, and operf takes what fits.
    if resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] < MEMLOCK_OF_5_16:
        print("SKIP of perf within operf: RLIMIT_MEMLOCK is what kernels before 5.16 have")
        return
    result = home.profile("perf", "record", "-q", "-e", "cpu-clock:u", "-c", "1000000", "-o", data,
                          home.family, MS, THREADS, CHILDREN)
    home.check(result)
    ours, theirs = home.symbols(), perf_symbols(home, data)
    for part in PARTS:
        our, their = (100 * counts.get(part, 0) / sum(counts.get(p, 0) for p in PARTS) for counts in (ours, theirs))
        print("%s: operf %.2f %%, perf %.2f %%" % (part, our, their))
        require(abs(our - their) <= POINTS, "%s: operf %.2f %%, perf %.2f %%" % (part, our, their))


def command_line(home):
    for words, text in (((), "nothing to profile"), (("--pid=1", "true"), "do not go together"),
                        (("--pid=x",), "not the number of a process"), (("--pid=999999999",), "there is no such process"),
                        (("--events=nothing:1", "true"), "there is no such event"),
                        (("--events=TIMER:1000000,TIMER:1000000", "true"), "given twice"),
                        (("--vmlinux=/nothing", "true"), "No such file"), (("--session-dir=", "true"), "the name is empty")):
        line = home.refused(*words)
        require(text in line, "operf %s says: %s" % (" ".join(words), line))
    result = home.profile("-l", "ls", "-d", "/")
    require(result.out == "/\n" and "--lazy-conversion has no effect" in result.err, "%s" % (result,))
    home.check(home.profile("--", "ls", "-l", "/"))


def test(box):
    home = operftest.Home(box)
    command_line(home)
    known_shares(home)
    separation(home)
    short_children(home)
    exit_codes(home)
    environment(home)
    signals(home)
    page_faults(home)
    callgraph(home)
    beside_perf(home)


if __name__ == "__main__":
    opdtest.run(test, operftest.needs_operf)
