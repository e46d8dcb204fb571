#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""ocount beside `perf stat` on the same tasks at the same time: software events are equal to the
last one; intervals add up; the forms of the output; exit codes and signals are the command's; as
nobody; what it refuses.
"""
import os
import re
import signal
import subprocess

import opdtest
from hot import compile_to
from opdtest import require

PAGES, THREADS, CHILDREN = 3000, 3, 2
NOBODY = 65534
PARANOID = "/proc/sys/kernel/perf_event_paranoid"
EXACT = ("page-faults", "minor-faults", "context-switches", "cpu-migrations")
SLEEPS = ("35", "230", "7", "271") # nanosleep, clock_nanosleep, poll, ppoll: perf counts and waits
CLOCK_SHARE = 0.02 # of task-clock: perf and ocount are switched on and off one after the other
HEAD = r"\nEvents were actively counted for (?:\d+ nanoseconds|\d+\.\d seconds| \d+ minutes? and \d+ seconds)\.\n"


class Counting:
    def __init__(self, box):
        self.box, self.ocount = box, os.path.join(box.bin, "ocount")
        self.counted = os.path.join(box.dir, "counted")
        compile_to(box, self.counted, file="counted.c")

    def run(self, *words, rc=0, user=0, **more):
        become = ["setpriv", "--reuid=%d" % user, "--regid=%d" % user, "--clear-groups"] if user else []
        done = subprocess.run([*become, self.ocount, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              text=True, timeout=opdtest.CALL_SECONDS, **more)
        require(done.returncode == rc, "ocount %s: not exit code %d: %s" % (" ".join(map(str, words)), rc, done))
        return done

    def start_program(self):
        """The program that waits for a byte."""
        program = subprocess.Popen([self.counted, str(PAGES), str(THREADS), str(CHILDREN)], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE)
        self.box.children.append(program)
        require(program.stdout.readline() == b"ready\n", "the program does not run")
        return program

    def start(self, *words):
        """ocount that has opened its counters."""
        child = subprocess.Popen([self.ocount, *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.box.children.append(child)
        line = child.stderr.readline()
        require("'kill -SIGINT %d' to stop counting" % child.pid in line, "ocount says: " + line)
        return child

    def end(self, child, rc=0):
        out, err = child.communicate(timeout=opdtest.CALL_SECONDS)
        require(child.returncode == rc, "ocount ends with %d: %s%s" % (child.returncode, out, err))
        return out


def start_perf(counting, pid, events):
    """perf stat that counts."""
    out = os.path.join(counting.box.dir, "perf.csv")
    perf = subprocess.Popen(["perf", "stat", "-x,", "-o", out, "-e", ",".join(events), "-p", str(pid)])
    counting.box.children.append(perf)

    def counts():
        try:
            links = [os.readlink("/proc/%d/fd/%s" % (perf.pid, name)) for name in os.listdir("/proc/%d/fd" % perf.pid)]
        except FileNotFoundError:  # perf has closed one meanwhile
            return False
        return sum("perf_event" in link for link in links) >= len(events) and any(
            text.split()[0] in SLEEPS for _task, text in opdtest.each_thread(perf.pid, "syscall"))
    opdtest.wait_until(counts, opdtest.HANG_SECONDS, "perf stat does not count")
    return perf, out


def read_perf(path):
    with open(path, encoding="ascii") as stream:
        lines = [line.split(",") for line in stream if "," in line]
    # task-clock is in ms.
    return {fields[2]: float(fields[0]) * (1e6 if fields[2] == "task-clock" else 1) for fields in lines}


def read_brief(text):
    """{event: sum of all counts}, and the number of results."""
    sums, results = {}, text.count("timestamp,")
    for line in text.splitlines():
        if line and not line.startswith("timestamp,"):
            event, count, percent = line.split(",")[-3:]
            sums[event] = sums.get(event, 0) + int(count)
            # No task ran in an interval, so there was no time in which to count.
            idle = (count, percent) == ("0", "Event not counted")
            require(percent == "100.00" or idle, "an event that was not always counted: " + line)
    return sums, results


def compare(counting, *options):
    """Both count the same tasks from the same moment on, because the program waits."""
    events = EXACT + ("task-clock",)
    program = counting.start_program()
    ocount = counting.start("-b", "-p", program.pid, "-e", ",".join(events), *options)
    perf, out = start_perf(counting, program.pid, events)
    program.communicate(b"g", timeout=opdtest.CALL_SECONDS)
    text = counting.end(ocount)
    require(perf.wait(timeout=opdtest.CALL_SECONDS) == 0, "perf stat fails")
    ours, results = read_brief(text)
    theirs = read_perf(out)
    print("ocount %s: %s, perf: %s" % (" ".join(options), ours, theirs))
    for event in EXACT:
        require(ours[event] == theirs[event], "%s: ocount counts %d, perf %d" % (event, ours[event], theirs[event]))
    require(ours["page-faults"] >= PAGES * (1 + THREADS + CHILDREN), "%d page faults" % ours["page-faults"])
    low, high = sorted((ours["task-clock"], theirs["task-clock"]))
    require(high - low <= CLOCK_SHARE * high + 2e6, "task-clock: of ocount and perf: %d, %d" % (low, high))
    return results, text


def beside_perf(counting):
    compare(counting)
    results, _ = compare(counting, "-i", "100")
    require(results >= 1, "no interval")
    _, text = compare(counting, "--separate-thread")
    require(all(line.split(",")[0].isdigit() for line in text.split()), "no task before the event: " + text)


def lists(counting):
    """--thread-list leaves the children out; a thread of a process can be counted alone."""
    program = counting.start_program()
    ocount = counting.start("-b", "-r", program.pid, "-e", "page-faults")
    program.communicate(b"g", timeout=opdtest.CALL_SECONDS)
    faults = read_brief(counting.end(ocount))[0]["page-faults"]
    require(PAGES <= faults < 2 * PAGES, "%d faults of one thread that touches %d pages" % (faults, PAGES))
    programs = [counting.start_program() for _ in range(2)]
    ocount = counting.start("-p", ",".join(str(p.pid) for p in programs + programs), "-t", "-e", "page-faults,minor-faults")
    for program in programs:
        program.communicate(b"g", timeout=opdtest.CALL_SECONDS)
    out = counting.end(ocount)
    rows = re.findall(r"^\t(page-faults|minor-faults) +(\d+) +([\d,]+) +100\.00$", out, re.M)
    require(sorted(rows)[0][0] == "minor-faults" and len(rows) == 4, "rows: %s" % out)
    require({int(pid) for _, pid, _ in rows} == {p.pid for p in programs}, "processes: " + out)
    require(all(int(count.replace(",", "")) >= PAGES * (1 + THREADS + CHILDREN) for _, _, count in rows), "counts: " + out)
    require(re.search(HEAD + r"Event counts \(actual\) for the specified process\(es\):\n"
                      r"\tEvent +Task ID   Count {20}% time counted\n", out), "the form: " + out)


def forms(counting):
    out = counting.run("-e", "page-faults,minor-faults:0:1:1", counting.counted, PAGES).stdout
    match = re.fullmatch(r"ready\n" + HEAD + "Event counts \\(actual\\) for " + re.escape(counting.counted) +
                         ":\n\tEvent                      Count                    % time counted\n"
                         "\tpage-faults                (\\d,\\d{3}) {20}100.00\n"
                         "\tminor-faults:0:1:1         (\\d,\\d{3}) {20}100.00\n", out)
    require(match and match[1] == match[2] and int(match[1].replace(",", "")) >= PAGES, "the form: " + repr(out))
    file = os.path.join(counting.box.dir, "counts")
    require(counting.run("-b", "-f", file, "-e", "page-faults", "true").stdout == "", "output beside --output-file")
    with open(file, encoding="ascii") as stream:
        require(re.fullmatch(r"\npage-faults,\d+,100\.00\n", stream.read()), "the brief form in a file")
    out = counting.run("-b", "-i", "200:3", "-e", "task-clock", "sh", "-c", "while :; do :; done").stdout
    stamps = [float(stamp) for stamp in re.findall(r"^timestamp,(\d+\.\d)$", out, re.M)]
    require(len(stamps) == 3 and out.count("task-clock,") == 3, "three intervals: " + out)
    require(0.3 <= stamps[2] - stamps[0], "intervals of 200 ms: %s" % stamps)
    out = counting.run("-i", "1000:1", "-e", "task-clock", "sleep", "9").stdout
    require(re.match(r"\nCurrent time \(seconds since epoch\): \d+\n\nEvent counts \(actual\) for /", out),
            "a time in seconds: " + out)


def wide(counting):
    cpus = sorted(os.sched_getaffinity(0)) if counting.box else []
    out = counting.run("-s", "-c", "-b", "-i", "300:1", "-e", "cpu-clock,context-switches").stdout
    rows = [line.split(",") for line in out.split() if not line.startswith("timestamp")]
    require({int(row[0]) for row in rows} >= set(cpus) and len(rows) == 2 * len({row[0] for row in rows}), "rows: " + out)
    require(all(int(row[2]) > 1e8 for row in rows if row[1] == "cpu-clock"), "a CPU has 300 ms of clock: " + out)
    child = counting.start("-C", "%d,%d-%d" % (cpus[0], cpus[0], cpus[0]), "-e", "cpu-clock")
    os.kill(child.pid, signal.SIGINT)
    require("for the specified CPU(s):\n" in counting.end(child), "Ctrl-C ends and shows the counts")


def command(counting):
    """Exit codes, signals and the environment are the command's."""
    for code in (0, 1, 42):
        out = counting.run("sh", "-c", "exit %d" % code, rc=code).stdout
        require("cpu-clock" in out or has_cycles(), "counts: " + out)
    counting.run("sh", "-c", "kill -TERM $$", rc=128 + signal.SIGTERM)
    require("no such command" in counting.run("nothing-of-this-name", rc=127).stderr, "a command that is not there")
    probe = ("sh", "-c", "umask; ulimit -n; grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status")
    plain = subprocess.run(probe, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout
    require(counting.run("-f", "/dev/null", *probe).stdout == plain, "the command finds another environment")
    child = subprocess.Popen([counting.ocount, "-b", "-e", "page-faults", "sh", "-c", "echo ready; exec sleep 999"], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    counting.box.children.append(child)
    require(child.stdout.readline() == "ready\n", "the command does not run")
    os.killpg(child.pid, signal.SIGINT)
    require(re.search(r"page-faults,\d+,100\.00\n", counting.end(child, rc=128 + signal.SIGINT)), "Ctrl-C ends without counts")


def modes_of_clocks(counting):
    """The kernel counts a clock in both modes whatever is asked for, and page faults as it is asked."""
    for clock in "task-clock", "cpu-clock", "TIMER":
        for modes in ":0:1:0", ":0:0:1":
            done = counting.run("-e", "page-faults," + clock + modes, "true", rc=1)
            require("the kernel counts a clock in user and kernel mode together" in done.stderr, done.stderr)
        counting.run("-e", clock + ":0:1:1", "true")
    out = counting.run("-b", "-e", "page-faults:0:0:1,page-faults", counting.counted, PAGES).stdout
    counts = read_brief(out.replace("ready\n", ""))[0]
    require(PAGES <= counts["page-faults:0:0:1"] <= counts["page-faults"], "page faults: %s" % counts)


def has_cycles():
    return os.path.isdir("/sys/bus/event_source/devices/cpu")


def as_nobody(counting):
    with open(PARANOID, encoding="ascii") as stream:
        paranoid = int(stream.read())
    done = counting.run("-b", "-e", "page-faults,task-clock", counting.counted, PAGES, user=NOBODY, rc=0 if paranoid <= 2 else 1)
    if paranoid > 2:
        return
    require(("user-space code only" in done.stderr) == (paranoid == 2), "paranoid is %d: %s" % (paranoid, done.stderr))
    require(read_brief(done.stdout.replace("ready\n", ""))[0]["page-faults"] >= PAGES, "page faults of nobody: " + done.stdout)
    require("not permitted" in counting.run("-p", "1", user=NOBODY, rc=1).stderr, "nobody counts process 1")
    if paranoid > 0:
        require("not permitted" in counting.run("-s", user=NOBODY, rc=1).stderr, "nobody counts the system")
    if paranoid > 1:
        done = counting.run("-e", "context-switches", "true", user=NOBODY, rc=1)
        require("only the kernel has it" in done.stderr, "an event of the kernel: " + done.stderr)


def helps(counting):
    for words in (("--help",), ("-h",), ("-?",)):
        require("--time-interval=milliseconds[:number]" in counting.run(*words).stdout, "%s" % (words,))
    for words in (("--usage",), ("-u",)):
        require(counting.run(*words).stdout.startswith("Usage: ocount [-b|--brief-format]"), "%s" % (words,))
    require(counting.run("-v").stdout.startswith("ocount: opd "), "--version")


def refused(counting):
    for words, text in (((), "nothing to count"), (("-s", "true"), "do not go together"),
                        (("-s", "-C", "0"), "do not go together"),
                        (("-c", "true"), "--separate-cpu needs"), (("-t", "-s"), "--separate-thread needs"),
                        (("-p", "1x"), "--process-list: '1x'"), (("-p", "0"), "--process-list: '0'"), (("-p", ""), "list is empty"),
                        (("-p", "1-3"), "--process-list: '1-3'"), (("-p", "4194304"), "there is no process 4194304"),
                        (("-r", "4194304"), "there is no thread 4194304"), (("-C", "3-1"), "--cpu-list: '3-1'"),
                        (("-C", "65535"), "CPU 65535 is not online"), (("-C", "99999999999999999999"), "--cpu-list"),
                        (("-i", "x", "true"), "--time-interval=x"), (("-i", "100:0", "true"), "--time-interval=100:0"),
                        (("-i", "-1", "true"), "--time-interval=-1"),
                        (("-e", "nothing", "true"), "event nothing: there is no such event"),
                        (("-e", "page-faults:7", "true"), "no unit masks"),
                        (("-e", "page-faults:0:0:0", "true"), "neither kernel nor user"),
                        (("-f", "/nothing/here", "true"), "/nothing/here: No such file")):
        lines = counting.run(*words, rc=1).stderr.splitlines()
        require(len(lines) == 1 and lines[0].startswith("ocount: ") and text in lines[0], "ocount %s says %s" % (words, lines))


def test(box):
    counting = Counting(box)
    beside_perf(counting)
    lists(counting)
    forms(counting)
    wide(counting)
    command(counting)
    modes_of_clocks(counting)
    as_nobody(counting)
    refused(counting)
    helps(counting)


if __name__ == "__main__":
    opdtest.run(test, opdtest.needs_root)
