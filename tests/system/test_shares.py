#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
One load, and every sample of it at its place: samples go to the program that caused them (also
short-lived ones, forks without exec, exec, deleted files, and what ran before opd); functions have
the shares of the CPU time that they took; opreport and the independent reader agree on every count,
with one event and with two, and both can read while the session is written.
"""
import os
import re
import subprocess

import elfsyms
import opdtest
from opdtest import agree, require

PERIOD_NS = 100000
LONG_PERIOD_NS = 997000  # 1 kHz, and not in step with the kernel's own timer
SHARES_MS = 4000
EXEC_MS = 400
NR_STORM = 200
LIVE_READS = range(5, 21)
EARLY_S, GONE_S = 0.5, 0.1
POINTS = 3.0
TRIES = 4
PSEUDO_IMAGES = ("no-mapping", "no-process", "no-vmlinux", "no-mode")
STRANGE = "\u202e\u061c"  # opreport escapes what reorders a line
NAMES = ("early", "storm", "forks", "exec-old", "exec-new", "gone", "kernel", "shares")


def end_of(child, code=0):
    """Waits for a program. The CPU seconds that it took, with the children that it waited for."""
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    require(child.returncode == code, "%s ended with %d" % (child.args, child.returncode))
    return usage.ru_utime + usage.ru_stime


class Clock:
    """How much of the time in which its CPUs had work the machine really had them."""

    def __init__(self):
        self.busy_s, self.stolen_s = opdtest.busy_seconds(), opdtest.host_seconds(7)

    def part(self):
        busy_s, stolen_s = opdtest.busy_seconds() - self.busy_s, opdtest.host_seconds(7) - self.stolen_s
        return busy_s / (busy_s + stolen_s) if stolen_s else 1


# ---- samples of programs ----

def storm(box, path):
    """Many processes that live a few milliseconds."""
    return sum(end_of(box.start(path, "spin", 4)) for _ in range(NR_STORM))


def deleted(box, path):
    """A program whose file is removed while it runs."""
    child = box.busy_until_ended(path)
    opdtest.await_cpu_seconds(child.pid, GONE_S)
    os.unlink(path)
    opdtest.await_cpu_seconds(child.pid, EARLY_S - GONE_S)
    child.kill()
    return end_of(child, -9)


def executed(box, path):
    """A program that becomes another one: the seconds before and after."""
    spent = end_of(box.start(path["exec-old"], "exec", EXEC_MS, path["exec-new"], "spin", EXEC_MS))
    return EXEC_MS / 1000, spent - EXEC_MS / 1000


def check_share(found, cpu_s, part, what):
    """The application has at least four fifths of the CPU time that it spent, and not more than all
    of it.
    """
    expected = cpu_s * 1e9 / PERIOD_NS
    text = "%s: %d samples of about %d" % (what, found, expected)
    print(text)
    require(0.8 * part * expected <= found <= 1.25 * expected + 50, text)


def check_kernel(files, path):
    own = sum(f.total for f in files if f.name.app[1] == f.name.image[1] == path)
    kernel = sum(f.total for f in files if f.name.app[1] == path and f.header.is_kernel)
    print("kernel work: %d kernel samples, %d of its own" % (kernel, own))
    require(kernel > 10 * own, "the work in the kernel has %d kernel samples and %d of its own" % (kernel, own))


def check_unattributed(files, event, paths):
    """The files have the samples without a place that the daemon counted. Of this test's programs
    few are without one, and few are of a process that opd does not know. Programs of others may run
    code that has no file.
    """
    lost = [f for f in files if f.name.image[0] == "kern" and f.name.image[1].strip("/") in PSEUDO_IMAGES]
    require(sum(f.total for f in lost) == event["unattributed"],
            "opd says %d unattributed, the files %s" % (event["unattributed"], [(f.path, f.total) for f in lost]))
    ours = sum(f.total for f in files if f.name.app[1] in paths)
    of_ours = sum(f.total for f in lost if f.name.app[1] in paths)
    of_nobody = sum(f.total for f in lost if f.name.image[1].strip("/") == "no-process")
    text = "unattributed %d of %d: %d of %d of this test, %d of no process" % (
        event["unattributed"], event["stored"], of_ours, ours, of_nobody)
    print(text)
    if opdtest.sees_all_processes():
        require(of_ours * 100 <= ours and of_nobody * 100 <= event["stored"], text)


# ---- samples of functions ----

def symbol_lines(text):
    """{symbol: (samples, percent)} of opreport -l output."""
    found = {}
    for line in text.splitlines():
        match = re.match(r"^(\d+) +([0-9.e+-]+) .*?(\S+)$", line)
        if match:
            found[match.group(3)] = (int(match.group(1)), float(match.group(2)))
    return found


def end_of_shares(children):
    """The CPU seconds of programs in hot_a and in hot_b, about three times as many in hot_a."""
    spent = [sum(column) / 1e9 for column in zip(*(map(int, child.communicate()[0].split()) for child in children))]
    require(not any(child.returncode for child in children), "the work failed")
    require(2.5 < spent[0] / spent[1] < 3.5, "the work itself spent %.2f s in hot_a and %.2f s in hot_b" % tuple(spent))
    return spent


def check_functions(box, files, path, period_ns, spent, part):
    """The functions of TIMER: their shares of all that is listed, where the program has the share
    `own` (the time of interrupts is in the same list, as kernel symbols); how many samples they
    have; and the same number in the sample file.
    """
    symbols = symbol_lines(box.opreport("-l", "event:TIMER", path))
    own = sum(n for n, _ in symbol_lines(box.opreport("-l", "-x", "event:TIMER", path)).values())
    own /= sum(n for n, _ in symbols.values())
    ranges, keys = elfsyms.symbol_ranges(path, ("hot_a", "hot_b")), {}
    for f in files:
        if f.name.image[1] == path and f.name.event == "TIMER":
            keys.update(f.keys)
    for name, wanted in zip(("hot_a", "hot_b"), (100.0 * cpu_s / sum(spent) for cpu_s in spent)):
        require(name in symbols, "opreport -l does not list %s: %s" % (name, symbols))
        samples, percent = symbols[name]
        text = "%s has %.2f %%, wanted are %.2f of %.2f %%" % (name, percent, wanted, 100 * own)
        print(text)
        require(abs(percent - wanted * own) <= POINTS, text)
        start, end = ranges[name]
        count = sum(n for key, n in keys.items() if start <= key < end)
        require(count == samples, "%s: opreport -l says %d, the sample file %d" % (name, samples, count))
    nr_samples, expected = symbols["hot_a"][0] + symbols["hot_b"][0], sum(spent) * 1e9 / period_ns
    require(0.8 * part * expected <= nr_samples <= 1.1 * expected,
            "%d samples in %.2f s of CPU time, one each %d ns" % (nr_samples, sum(spent), period_ns))


# ---- opreport and the independent reader ----

def check_live(box, worker):
    """While the daemon counts, every read succeeds and no total ever falls. On a busy machine, which
    has more programs to read, fewer reads are made while a program works.
    """
    last, nr_reads = {}, 0
    while nr_reads < LIVE_READS[0] or nr_reads < LIVE_READS[-1] and worker.poll() is None:
        nr_reads += 1
        agree.parse_summary(box.opreport("-n", "-f"))
        totals = {f.path: f.total for f in box.files(live=True)}
        for path, total in last.items():
            require(totals.get(path, -1) >= total, "%s fell from %d to %s" % (path, total, totals.get(path)))
        last = totals
    print("%d reads" % nr_reads)


def check_parts(box, files, path):
    """-x: only what lies in the application itself. An image: what is in it, and its application."""
    agree.compare_summary([f for f in files if f.name.app == f.name.image], box.opreport("-n", "-f", "-x"))
    chosen = [f for f in files if path in (f.name.app[1], f.name.image[1])]
    require(chosen, "no samples of %s" % path)
    agree.compare_summary(chosen, box.opreport("-n", "-f", path))


def check_symbols(box, files, path):
    """The rows of one image have all its samples: code between symbols has a row, too. With symbols
    of .symtab alone, as oprofile has it, that code is in no list.
    """
    own = {}
    for f in files:
        if f.name.app[1] == f.name.image[1] == path:
            own.update(f.keys)
    ranges = elfsyms.all_ranges(path)
    within = sum(n for key, n in own.items() if any(start <= key < end for _, start, end in ranges))
    for words, wanted in ((), sum(own.values())), (("--symbols-from=symtab",), within):
        listed = sum(int(re.match(r"^(\d+) ", line).group(1))
                     for line in box.opreport("-n", "-l", "-x", *words, path).splitlines())
        require(listed == wanted, "opreport -l -x %s lists %d samples of %d" % (words, listed, wanted))
    require(within >= 0.99 * sum(own.values()), "%d of %d samples lie within symbols" % (within, sum(own.values())))


# ---- the two sessions ----

def one_event(box, path):
    early = box.busy_until_ended(path["early"])
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel")
    clock = Clock()
    shares = box.start(path["shares"], "shares", SHARES_MS, stdout=subprocess.PIPE)
    opdtest.await_cpu_seconds(early.pid, EARLY_S)
    box.opcontrol("--dump")
    check_live(box, shares)
    box.end_busy(early)
    spent = {"storm": storm(box, path["storm"]), "forks": end_of(box.start(path["forks"], "forks", 40, 20)),
             "gone": deleted(box, path["gone"]), "kernel": end_of(box.start(path["kernel"], "kernel", 500))}
    spent["exec-old"], spent["exec-new"] = executed(box, path)
    box.good("sh", "-c", "gzip -9 <%s | sha256sum" % os.path.join(box.sbin, "opd"))
    of_functions = end_of_shares([shares])
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    part = clock.part()
    status, files = box.check_ledger(), box.files()
    found = {name: sum(f.total for f in files if f.name.app[1] == path[name]) for name in NAMES}
    for name, cpu_s in spent.items():
        check_share(found[name], cpu_s, part, name)
    early = sum(f.total for f in files if f.name.app[1] == f.name.image[1] == path["early"])
    require(early > 0.8 * part * EARLY_S * 1e9 / PERIOD_NS, "what ran before opd has %d samples" % early)
    check_kernel(files, path["kernel"])
    check_unattributed(files, status["events"][0], path.values())
    shown = box.opreport("-n", "-f")
    for name in NAMES:
        require(agree.shown(path[name]) in shown, "opreport does not show %s" % path[name])
    agree.compare_summary(files, shown)
    check_parts(box, files, path["shares"])
    check_symbols(box, files, path["shares"])
    check_functions(box, files, path["shares"], PERIOD_NS, of_functions, part)
    box.shutdown()
    box.check_agreement()
    box.opcontrol("--reset")


def two_events(box, path):
    box.start_daemon("--event=TIMER:%d" % LONG_PERIOD_NS, "--event=page-faults:10")
    clock = Clock()
    children = [box.start(path, "shares", SHARES_MS // 2, stdout=subprocess.PIPE) for _ in range(2)]
    box.good(path, "faults", 20000)
    spent = end_of_shares(children)
    box.opcontrol("--stop")
    part = clock.part()
    box.check_ledger()
    files = box.files()
    require(len({f.name.event for f in files}) == 2, "not two events in the session")
    agree.compare_summary(files, box.opreport("-n", "-f"))
    check_functions(box, files, path, LONG_PERIOD_NS, spent, part)
    box.shutdown()


def test(box):
    """opd waits 100 ms for a look at a file. Where a disk takes longer, the file is filed as recorded
    and this is counted (doc/limits.md). Then a wrong name is no verdict, and the load runs again.
    """
    for number in range(1, TRIES + 1):
        path = {name: box.copy_work("%s-app-%d%s" % (name, number, STRANGE if name == "forks" else "")) for name in NAMES}
        try:
            one_event(box, path)
            break
        except opdtest.Failure as failure:
            if number == TRIES or not box.status().get("looks_unanswered"):
                raise
            print("%s\nlooks at files had no answer in time: once more" % failure, flush=True)
        box.shutdown()
        box.opcontrol("--reset")
    two_events(box, path["shares"])


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
