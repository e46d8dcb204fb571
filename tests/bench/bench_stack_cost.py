#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
What whole stacks cost opd: CPU time, memory, disk, and the table of a large library.

usage: bench_stack_cost.py [ROUNDS [SAMPLES]] [PART...]    default 20 rounds and 10^6 samples;
parts: cpu rss disk table, default all

cpu: opds with and without stacks run at the same time, over the same load. In each round the
difference of their CPU times belongs to the stacks and tables of that round; a fit over all rounds
tells what a stack costs and what a table costs once.
rss: 200 living processes of several programs, at the default rate.
disk: the file of stacks after so many samples beside the bytes that perf.data has for a sample.
"""
import os
import shutil
import statistics
import subprocess
import sys
import time

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", at) for at in ("system", "bench")]
import opdtest  # noqa: E402
from bench_stacks import PERL, PYTHON, verdict  # noqa: E402
from opdtest import STACKS, Box  # noqa: E402

NUMBERS = [int(word) for word in sys.argv[1:] if word.isdigit()]
ROUNDS, SAMPLES = (NUMBERS + [20, 1000000][len(NUMBERS):])[:2]
PARTS = [word for word in sys.argv[1:] if not word.isdigit()] or ["cpu", "rss", "disk", "table"]
ROUND_SECONDS, WARM_SECONDS, RSS_SECONDS = 3, 8, 90
RATES = (99, 1000)
DISK_RATE, PERF_SECONDS = 5000, 5
NR_PROCESSES, MAX_RSS = 200, 30e6
SOME_WORK = (  # no program that starts others
    ("python3", "-c", "import json, time\nwhile True:\n json.dumps(list(range(20000)))\n time.sleep(2)"),
    ("perl", "-e", "while (1) { my %h; $h{$_ % 999} .= $_ for 1 .. 20000; select undef, undef, undef, 2 }"),
    ("bash", "-c", "exec 3<>fifo; while :; do for ((i = 0; i < 2000; i++)); do x=$x$i; x=${x:9}; done; read -t 2 -u 3; done"),
    ("node", "-e", "setInterval(() => JSON.stringify([...Array(20000).keys()].sort()), 2000)"),
    ("vmstat", "2"),
    ("tail", "-s", "2", "-f", "opd.log"),
)


def start_load(box):
    return [box.start("python3", "-c", PYTHON), box.start("perl", "-e", PERL)]


def look(box):
    status = box.status()
    event = next((e for e in status["events"] if e["role"] == STACKS), {"received": 0})
    return {"cpu_us": opdtest.cpu_of_threads(box.daemon.pid) * 1e6, "stacks": event["received"],
            "tables": status["tables_made"] + status["tables_from_cache"]}


def one_round(boxes):
    before = [look(box) for box in boxes]
    time.sleep(ROUND_SECONDS)
    return [{key: value - then[key] for key, value in look(box).items()} for box, then in zip(boxes, before)]


def fit(rows):
    """(us a stack, us a table) for rows of (stacks, tables, us), by least squares."""
    ss, st, tt = (sum(f(r) for r in rows) for f in (lambda r: r[0] ** 2, lambda r: r[0] * r[1], lambda r: r[1] ** 2))
    su, tu = sum(r[0] * r[2] for r in rows), sum(r[1] * r[2] for r in rows)
    whole = ss * tt - st * st
    return ((su * tt - tu * st) / whole, (ss * tu - st * su) / whole) if whole else (su / max(ss, 1), 0)


def measure_cpu(_box):
    boxes, ok = [], []
    try:
        for stacks in ("off", *RATES):
            boxes.append(Box())
            boxes[-1].start_daemon("--event=TIMER:1000000", "--stacks=%s" % stacks)
        start_load(boxes[0])
        time.sleep(WARM_SECONDS)
        rounds = [one_round(boxes) for _ in range(ROUNDS)]
        for i, rate in enumerate(RATES, 1):
            rows = [(r[i]["stacks"], r[i]["tables"], r[i]["cpu_us"] - r[0]["cpu_us"]) for r in rounds]
            per_stack, per_table = fit(rows)
            each = sorted(us / max(1, stacks) for stacks, _, us in rows)
            print("%d Hz, %d rounds of %d s, %d stacks, %d tables: %.1f us a stack and %.0f us a table" % (
                rate, ROUNDS, ROUND_SECONDS, sum(r[0] for r in rows), sum(r[1] for r in rows), per_stack, per_table))
            print("with the tables: median %.1f us a stack, from %.1f to %.1f" % (statistics.median(each), each[0], each[-1]))
            ok.append(verdict(per_stack <= 5, "%.1f us of opd's CPU a stack at %d Hz, at most 5" % (per_stack, rate)))
            if rate == RATES[0]:
                share = per_stack * rate / 1e4
                ok.append(verdict(share < 0.1, "%.3f %% of a CPU for each busy CPU, less than 0.1 %%, "
                                  "without the kernel's copies" % share))
        alone = statistics.median(r[0]["cpu_us"] for r in rounds) / ROUND_SECONDS / 1e4
        print("without stacks: %.2f %% of a CPU, median" % alone)
    finally:
        for box in boxes:
            box.close()
    return all(ok)


def rss_parts(pid):
    parts, name = {}, ""
    with open("/proc/%d/smaps" % pid, encoding="utf-8", errors="replace") as stream:
        for line in stream:
            words = line.split()
            if "-" in words[0] and not words[0].endswith(":"):
                path = words[5] if len(words) > 5 else "anonymous"
                name = next((what for mark, what in (("/tables/", "tables"), ("opd-table", "tables in memory"),
                             ("current/stacks", "stacks"), ("/samples/", "sample files"), ("perf_event", "rings"),
                             (".so", "libraries"), ("/opd", "opd")) if mark in path), path)
            elif words[0] in ("Rss:", "Pss:"):
                parts.setdefault(name, {"Rss:": 0, "Pss:": 0})[words[0]] += int(words[1])
    return parts


def measure_rss(box):
    box.start_daemon("--stacks=on", "--separate=library,kernel")
    os.mkfifo(os.path.join(box.dir, "fifo"))
    commands = [c for c in SOME_WORK if shutil.which(c[0])]
    for i in range(NR_PROCESSES):
        box.start(*commands[i % len(commands)], stdout=subprocess.DEVNULL)
        time.sleep(0.1)
    time.sleep(RSS_SECONDS)
    status, parts = box.status(), rss_parts(box.daemon.pid)
    total = {key: sum(part[key] for part in parts.values()) for key in ("Rss:", "Pss:")}
    print("%d processes known, %d tables made, RSS %d kB, PSS %d kB: %s" % (
        status["nr_processes"], status["tables_made"], total["Rss:"], total["Pss:"],
        ", ".join("%s %d" % (name, part["Rss:"]) for name, part in sorted(parts.items(), key=lambda p: -p[1]["Rss:"])[:8])))
    for child in box.children:
        child.kill()
    box.shutdown()
    return verdict(total["Rss:"] * 1024 <= MAX_RSS, "RSS of %.1f MB with %d processes, at most 30" % (
        total["Rss:"] * 1024 / 1e6, NR_PROCESSES))


def measure_disk(box):
    box.configure(RingSize="64M", StackMaxUse="1G")
    box.start_daemon("--event=TIMER:100000000", "--stacks=%d" % DISK_RATE)
    load = start_load(box)
    data = os.path.join(box.dir, "perf.data")
    subprocess.run(["perf", "record", "-q", "-a", "-e", "cpu-clock", "-F", "499", "--call-graph", "dwarf,8192", "-o", data, "--",
                    "sleep", str(PERF_SECONDS)], check=False)
    script = subprocess.run(["perf", "script", "-i", data, "--no-inline", "-F", "time", "-G"], capture_output=True, check=False)
    theirs = os.path.getsize(data) / max(1, script.stdout.count(b"\n"))
    while look(box)["stacks"] < SAMPLES and all(child.poll() is None for child in load):
        time.sleep(2)
    box.opcontrol("--stop")
    event = next(e for e in box.status()["events"] if e["role"] == STACKS)
    path = os.path.join(box.session, "samples/current/stacks")
    nr_bytes = os.stat(path).st_blocks * 512
    mine = nr_bytes / event["received"]
    print("%d stacks in %d bytes at %d Hz, %d lost, %d complete; perf.data has %.0f bytes a sample in %d s at 499 Hz" % (
        event["received"], nr_bytes, DISK_RATE, event["lost_kernel"], event["end_complete"], theirs, PERF_SECONDS))
    box.shutdown()
    return verdict(None if event["received"] < 1000000 else mine * 200 <= theirs,
                   "disk after %d stacks: %.1f bytes each, 1/%.0f of perf.data, 1/200 or less after 10^6" % (
                       event["received"], mine, theirs / mine))


def measure_table(box):
    path = next((p for p in ("/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1",) if os.path.exists(p)), None)
    if not path:
        return verdict(None, "the table of libLLVM-14, which is not here")
    times = []
    for _ in range(3):
        with open(path, "rb") as image, open(os.devnull, "wb") as out:
            begin = os.times()
            subprocess.run([box.env["OPD_TABLES"]], stdin=image, stdout=out, check=True)
            times.append(sum(os.times()[2:4]) - sum(begin[2:4]))
    return verdict(min(times) <= 1, "the table of libLLVM-14 takes %.2f to %.2f s of CPU, at most 1" % (min(times), max(times)))


def test(box):
    ok = True
    for part in PARTS:
        ok = {"cpu": measure_cpu, "rss": measure_rss, "disk": measure_disk, "table": measure_table}[part](box) and ok
        box.configure()
    if not ok:
        sys.exit(1)


if __name__ == "__main__":
    opdtest.run(test)
