#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measures opd beside perf record. Usage: bench.py [SECONDS], default 30 for each of the six runs.

There are three loads. `steady`, one process on each CPU, and `compile`, the C compiler again and
again, keep all CPUs busy; `compile` has many forks, mappings and exits. `storm` starts 2,000
programs per second that live for less than a millisecond: it measures what a fork, exec and exit
costs each profiler. Each load is profiled by opd at its default rate, and then by perf record -a at
the same rate.

CPU time is the time of the profiler's processes. opd: /proc/PID/task/*/schedstat of the daemon and
of its helper processes, without start and end. perf: wait4, the whole run, with the peak of its
RSS. Bytes are blocks on the disk. perf does not collect build-ids at its end: that makes perf
cheaper, and Debian's perf 6.1 may crash while it collects them. The time in the kernel's interrupt
handlers is the same for both and is not included.
"""
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import opdtest  # noqa: E402
from opdtest import Skip, require  # noqa: E402

AIM_CPU_PERCENT = 0.5
AIM_RSS_BYTES = 20 * 1024 * 1024
SETTLE_SECONDS = 2
PERF_EVENTS = {"TIMER": "cpu-clock"}
SOURCE_FUNCTIONS = 150
STORM_RATE, STORM_PAGES, STORM_SPINS = 2000, 8, 20000


def say(text):
    print("== " + text, flush=True)


def memory_bytes(pid, field):
    with open("/proc/%d/status" % pid, encoding="utf-8") as stream:
        return 1024 * int(re.search(r"^%s:\s+(\d+) kB" % field, stream.read(), re.M).group(1))


def disk_bytes(path):
    if os.path.isfile(path):
        return os.stat(path).st_blocks * 512
    return sum(os.lstat(os.path.join(d, n)).st_blocks * 512 for d, dirs, files in os.walk(path) for n in files + dirs)


def family(pid):
    """A process and all that it and its children have started."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % name, encoding="ascii", errors="replace") as stream:
                parents[int(name)] = int(stream.read().rpartition(")")[2].split()[1])
        except OSError:
            pass
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def cpu_of_all(pid):
    """CPU seconds of opd and of its helper processes."""
    return sum(opdtest.cpu_of_threads(each) for each in family(pid))


def forks():
    """Processes and threads that began on this machine since it was started."""
    with open("/proc/stat", encoding="ascii") as stream:
        return int(re.search(r"^processes (\d+)$", stream.read(), re.M).group(1))


def source_text():
    body = "static unsigned f%d(unsigned a, unsigned b) { " \
        "for (unsigned i = 0; i < b; i++) { a = a * 33 + i * %du; if (a & %d) b ^= a >> 3; " \
        "switch (a %% 7) { case 0: a ^= b; break; case 1: b -= a; break; default: a += %d; } } return a ^ b; }\n"
    functions = "".join(body % (i, i * 7 + 1, 1 << (i % 9), i) for i in range(SOURCE_FUNCTIONS))
    calls = "".join("x += f%d(x, n);" % i for i in range(SOURCE_FUNCTIONS))
    return functions + "unsigned all(unsigned x, unsigned n); unsigned all(unsigned x, unsigned n) { %s return x; }\n" % calls


class Load:
    """Keeps all CPUs busy until stop()."""

    def __init__(self, box, kind):
        self.box, self.processes, cpus = box, [], sorted(os.sched_getaffinity(0))
        storm = os.path.join(os.path.dirname(box.work), "storm")
        for cpu in cpus:
            commands = {"steady": [box.work, "busy", "3600000", cpu],
                        "compile": ["sh", "-c", "while gcc -O2 -c bench.c -o bench-%d.o; do :; done" % cpu],
                        "storm": [storm, "execs", STORM_RATE // len(cpus), "3600000", STORM_PAGES, STORM_SPINS, storm + "_worker"]}
            command = commands[kind]
            self.processes.append(box.start(*command, start_new_session=True))

    def stop(self):
        for process in self.processes:
            require(process.poll() is None, "the load ended by itself")
            os.killpg(process.pid, 9)
            process.wait()
            self.box.children.remove(process)


def measure_opd(box, kind, seconds):
    """opd at its defaults: CPU seconds in the middle of its life and in its whole life, memory,
    bytes on disk, samples; and its event.
    """
    shutil.rmtree(box.session, ignore_errors=True)
    load = Load(box, kind)
    box.start_daemon()
    time.sleep(SETTLE_SECONDS)
    pid, before, started = box.daemon.pid, cpu_of_all(box.daemon.pid), time.monotonic()
    stored, begun = box.status()["events"][0]["stored"], forks()
    time.sleep(seconds)
    spent, elapsed, begun = cpu_of_all(pid) - before, time.monotonic() - started, forks() - begun
    box.opcontrol("--dump")
    load.stop()
    box.opcontrol("--stop")
    event = box.check_ledger()["events"][0]
    row = {"cpu_s": spent, "life_s": cpu_of_all(pid), "seconds": elapsed, "forks": begun,
           "rss": memory_bytes(pid, "VmRSS"), "peak": memory_bytes(pid, "VmHWM"),
           "samples": event["stored"] - stored, "lost": event["lost_kernel"]}
    box.shutdown()
    row["bytes"] = disk_bytes(box.session)
    return row, event


def measure_perf(box, kind, seconds, event):
    """The same of perf record, system-wide, same event and period."""
    load = Load(box, kind)
    time.sleep(SETTLE_SECONDS)
    output = os.path.join(box.dir, "perf.data")
    name = PERF_EVENTS.get(event["name"], event["name"])
    started, begun = time.monotonic(), forks()
    perf = subprocess.Popen(["perf", "record", "-a", "--no-buildid", "-e", name, "-c", str(event["count"]), "-o",
                             output, "--", "sleep", str(seconds)],
                            cwd=box.dir, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = perf.stderr.read().decode("utf-8", "replace")
    _, status, usage = os.wait4(perf.pid, 0)
    perf.returncode = os.waitstatus_to_exitcode(status)
    elapsed, begun = time.monotonic() - started, forks() - begun
    load.stop()
    require(perf.returncode == 0, "perf record: %s" % said)
    stats = subprocess.run(["perf", "report", "--stats", "-i", output], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    samples = re.search(r"SAMPLE events: +(\d+)", stats.stdout.decode("utf-8", "replace"))
    cpu_s = usage.ru_utime + usage.ru_stime
    row = {"cpu_s": cpu_s, "life_s": cpu_s, "seconds": elapsed, "forks": begun, "rss": usage.ru_maxrss * 1024,
           "peak": usage.ru_maxrss * 1024,
           "samples": int(samples.group(1)) if samples else 0, "bytes": disk_bytes(output)}
    os.unlink(output)
    return row


def ratio(other, own):
    return "%.1f x" % (other / own) if own else "-"


def print_table(kind, opd, perf):
    rows = [("CPU, start to end, s", "%.3f", lambda r: r["life_s"]),
            ("share of one CPU, %", "%.3f", lambda r: 100 * r["cpu_s"] / r["seconds"]),
            ("RSS, MB", "%.1f", lambda r: r["rss"] / 1e6), ("peak RSS, MB", "%.1f", lambda r: r["peak"] / 1e6),
            ("on disk, kB", "%.0f", lambda r: r["bytes"] / 1e3),
            ("samples", "%d", lambda r: r["samples"]), ("processes per second", "%.0f", lambda r: r["forks"] / r["seconds"]),
            ("CPU us per process", "%.1f", lambda r: 1e6 * r["cpu_s"] / max(1, r["forks"]))]
    print("\nload %s, %.0f s\n%-22s %12s %12s %12s" % (kind, opd["seconds"], "", "opd", "perf record", "perf / opd"))
    for title, form, value in rows:
        print("%-22s %12s %12s %12s" % (title, form % value(opd), form % value(perf), ratio(value(perf), value(opd))))
    sys.stdout.flush()


def verdict(shown, good):
    """The text for an aim, also for the other benchmarks. An aim is met only when it was measured
    and reached; without a measurement the text says so.
    """
    return ("met" if good else "NOT met") if shown else "NOT SHOWN"


def aims_met(opd):
    percent = 100 * opd["cpu_s"] / opd["seconds"]
    shown, good = opd["samples"] > 0, percent < AIM_CPU_PERCENT and opd["peak"] < AIM_RSS_BYTES
    print("aims (under %.1f %% of one CPU, under %d MB): %s, with %.3f %% and %.1f MB for %d samples, %d lost by the kernel" % (
        AIM_CPU_PERCENT, AIM_RSS_BYTES >> 20, verdict(shown, good), percent, opd["peak"] / (1 << 20), opd["samples"], opd["lost"]))
    return shown and good


def bench(seconds):
    def test(box):
        if not shutil.which("perf"):
            raise Skip("perf is not installed (Debian package linux-perf)")
        with open(os.path.join(box.dir, "bench.c"), "w", encoding="ascii") as stream:
            stream.write(source_text())
        good = True
        for kind in ("steady", "compile", "storm"):
            say("load %s: opd, %d s" % (kind, seconds))
            opd, event = measure_opd(box, kind, seconds)
            say("load %s: perf record, %d s" % (kind, seconds))
            print_table(kind, opd, measure_perf(box, kind, seconds, event))
            good = (kind == "storm" or aims_met(opd)) and good
        require(good, "the aims are not met, or not shown")
    return test


if __name__ == "__main__":
    opdtest.run(bench(float(sys.argv[1]) if len(sys.argv) > 1 else 30))
