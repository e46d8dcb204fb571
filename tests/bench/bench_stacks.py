#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Whole stacks: opd beside `perf record --call-graph dwarf,8192`, same programs, rate and time.

usage: bench_stacks.py [SECONDS] [RATE]    default 20 seconds of each program at 99 Hz

For each program: the share of its stacks that reach the start of the program, of a thread or of the
kernel's entry, in opd's ledger of stacks and in `perf script`. Then opd's walk per sample and per
frame, the CPU time of opd per stack sample beside perf record and perf report, and the bytes on the
disk per sample of both. The row tables are made in a first run, which is not counted.
"""
import collections
import os
import re
import shutil
import struct
import subprocess
import sys
import time

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", at) for at in ("system",)]
import opdtest  # noqa: E402
from hot import compile_to  # noqa: E402

SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 20
RATE = int(sys.argv[2]) if len(sys.argv) > 2 and sys.argv[2].isdigit() else 99
WARM_SECONDS = 4
MIN_SAMPLES = 200  # of a program, for a verdict
FLAT_NS = 100000000  # opd has one more event, which is to cost next to nothing
STARTS = re.compile(r"_start|__libc_start_main.*|__libc_start_call_main|start_thread|clone3?|__clone3?|ret_from_fork.*|"
                    r"thread_start|runtime\.goexit.*|_dl_start.*|_rt0_.*|entry_SYSCALL_64.*|asm_.*|kthread")
NEEDED = collections.defaultdict(lambda: 0.99, node=0.95, java=0.95)
COMM, END, STATE, KINDS = 3, 6, 10, {"dwarf": ("--call-graph", "dwarf,8192"), "fp": ("--call-graph", "fp")}
PERL = "my %h; while (1) { for (1 .. 400000) { " \
       "my $k = $_ % 4999; $h{$k} .= chr(65 + $_ % 26); $h{$k} = '' if length($h{$k}) > 60 } }"
PYTHON = "import json\nwhile True:\n json.loads(json.dumps({str(k): [k, str(k) * 3] for k in range(900)}, sort_keys=True))"
NODE = "const f = n => n < 2 ? n : f(n - 1) + f(n - 2); for (;;) { f(25); JSON.stringify([...Array(999).keys()].sort()) }"
SQL = ("create table t(a,b); insert into t with recursive n(i) as (select 1 union all select i+1 from n where i<2000000) "
       "select i, hex(randomblob(12)) from n; select count(*) from t x, t y where x.b < y.b;")
JAVA = "public class Hot { static int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); } " \
       "public static void main(String[] a) { long s = 0; for (;;) s += f(30); } }"
RUST = "fn f(n: u64) -> u64 { if n < 2 { n } else { f(n - 1) + f(n - 2) } }\nfn main() { let mut v: Vec<u64> = Vec::new(); " \
       "loop { v.clear(); for i in 0..9999u64 { v.push(f(i % 12) ^ i.wrapping_mul(2654435761)); } v.sort(); } }"
GO = "package main\nimport (\"fmt\"; \"sort\"; \"strings\")\n" \
     "func f(n int) int { if n < 2 { return n }; return f(n-1) + f(n-2) }\n" \
     "func main() { s := 0; for { m := map[string]int{}; for i := 0; i < 2000; i++ { " \
     "m[fmt.Sprint(\"k\", i*7919%5000)] += f(i % 14) }; k := []string{}; for x := range m { " \
     "k = append(k, strings.Repeat(x, 3)) }; sort.Strings(k); s += len(k[0]) } }"
REDIS = "(sleep 1; exec redis-benchmark -q -l -c 20 -s %s/redis -t set,get,lpush,zadd,lrange_600) > /dev/null 2>&1 & " \
        "exec redis-server --port 0 --unixsocket %s/redis --save '' --appendonly no --dir %s"


def programs(box):
    """{name of the process: command that runs for long}; those that this host does not have are left
    out.
    """
    def keep(name, text):
        path = os.path.join(box.dir, name)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        return path
    qsort = os.path.join(box.dir, "qsort")
    compile_to(box, qsort, "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", file="stacks.c")
    templates = keep("t.cc", "#include <regex>\n#include <map>\n#include <algorithm>\nint f(std::map<int, std::regex> &m) "
                             "{ return m.begin()->first + (int)m.size(); }\n")
    found = {
        "qsort": (qsort, "99999999"),
        "cc1plus": ("sh", "-c", "while :; do g++ -O2 -c -o /dev/null %s; done" % templates),
        "perl": ("perl", "-e", PERL),
        "python3": ("python3", "-c", PYTHON),
        "sqlite3": ("sqlite3", ":memory:", SQL),
        "openssl": ("openssl", "speed", "-seconds", "999", "rsa2048"),
        "xz": ("sh", "-c", "exec xz -9 -T1 -c < /dev/urandom > /dev/null"),
        "node": ("node", "--perf-basic-prof", "-e", NODE),
        "java": ("java", "-XX:+PreserveFramePointer", keep("Hot.java", JAVA)),
    }
    if shutil.which("rustc") and not box.run("rustc", "-O", keep("hot.rs", RUST), "-o", os.path.join(box.dir, "rust")).rc:
        found["rust"] = (os.path.join(box.dir, "rust"),)
    if shutil.which("go") and not box.run("env", "HOME=" + box.dir, "go", "build", "-o", os.path.join(box.dir, "gohot"),
                                          keep("hot.go", GO), timeout=300).rc:
        found["gohot"] = (os.path.join(box.dir, "gohot"),)
    if shutil.which("redis-server"):
        found["redis-server"] = ("sh", "-c", REDIS % (box.dir, box.dir, box.dir))
    return {name: command for name, command in found.items() if shutil.which(command[0])}


def run_load(box, command, seconds):
    child = box.start(*command)
    time.sleep(seconds)
    return child


def end_load(child):
    child.kill()
    child.wait()


def opd_stacks(box, comm):
    """Stacks of a process name by their end; 0 is complete. Waits are not among them."""
    ends = collections.Counter()
    with open(os.path.join(box.session, "samples", "current", "stacks"), "rb") as stream:
        data = stream.read()
    nodes = [struct.unpack_from("<IHHQQQ", data, 64 + 32 * i) for i in range(struct.unpack_from("<I", data, 12)[0])]
    for node in nodes:
        count, end, name = node[5], 0, None
        while count and node[1]:
            if node[1] == STATE:
                count = 0
            if node[1] == END:
                end = node[3]
            if node[1] == COMM:
                name = struct.pack("<QQ", node[3], node[4]).rstrip(b"\0").decode("utf-8", "replace")
            node = nodes[node[0]]
        if name and name.startswith(comm):
            ends[end] += count
    return ends, len(data), sum(node[5] for node in nodes)


def take_opd(box, name, command):
    box.opcontrol("--reset")
    child = run_load(box, command, 1)
    before = box.status()["cpu_ns"]
    box.opcontrol("--start")
    time.sleep(SECONDS)
    box.opcontrol("--stop")
    end_load(child)
    status = box.status()
    children = os.times()
    box.opreport("--stacks")
    after = os.times()
    cpu = (status["cpu_ns"] - before) / 1e9
    cpu += after.children_user + after.children_system - children.children_user - children.children_system
    ends, nr_bytes, _ = opd_stacks(box, name)
    event = next(e for e in status["events"] if e["name"] == "STACKS")
    return {"ends": ends, "bytes": nr_bytes, "received": event["received"], "cpu": cpu, "status": status}


def take_perf(box, name, command, kind):
    data = os.path.join(box.dir, "perf.data")
    child = run_load(box, command, 1)
    record = subprocess.run(["/usr/bin/time", "-f", "%U %S", "perf", "record", "-q", "-a", "-e", "cpu-clock",
                             "-F", str(RATE), *KINDS[kind], "-o", data, "--", "sleep", str(SECONDS)],
                            capture_output=True, check=False)
    end_load(child)
    spent = [float(x) for x in record.stderr.decode().split()[-2:]]
    report = subprocess.run(["/usr/bin/time", "-f", "%U %S", "timeout", "600", "perf", "report", "-i", data, "--stdio",
                             "--no-inline", "-g", "none"], stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, check=False)
    answer = [float(x) for x in report.stderr.decode().split()[-2:]]
    script = subprocess.run(["timeout", "600", "perf", "script", "-i", data, "--no-inline", "-F", "comm,ip,sym"],
                            capture_output=True, check=False)
    nr, complete, total, frames, comm = 0, 0, 0, [], ""
    for line in script.stdout.decode("utf-8", "replace").split("\n") + [""]:
        if line and not line.startswith("\t") and not line.startswith(" " * 9):
            comm = line.strip()
        elif line.strip():
            frames.append(line.split(None, 1)[1].strip() if len(line.split(None, 1)) > 1 else "")
        elif comm:
            total += 1
            if comm.startswith(name):
                nr += 1
                # _start of a stripped program has no symbol, but its callee in libc has
                complete += any(STARTS.fullmatch(frame.split("+")[0]) for frame in frames[-2:])
            comm, frames = "", []
    return {"nr": nr, "complete": complete, "total": total, "bytes": os.path.getsize(data),
            "record": sum(spent), "report": sum(answer)}


def verdict(ok, text):
    print("%-8s %s" % ("met" if ok else "NOT SHOWN" if ok is None else "NOT met", text))
    return ok


def measure(box):
    commands, results, sums = programs(box), [], collections.Counter()
    box.configure(RingSize="16M")
    box.start_daemon("--event=TIMER:%d" % FLAT_NS, "--stacks=%d" % RATE, start=False)
    print("%-10s %8s %9s  %8s %9s" % ("program", "opd", "complete", "perf", "complete"))
    for name, command in commands.items():
        child = run_load(box, command, 0)
        box.opcontrol("--start")
        time.sleep(WARM_SECONDS)
        box.opcontrol("--stop")
        end_load(child)
        opd, perf = take_opd(box, name, command), take_perf(box, name, command, "dwarf")
        nr = sum(opd["ends"].values())
        share, theirs = opd["ends"][0] / max(nr, 1), perf["complete"] / max(perf["nr"], 1)
        print("%-10s %8d %8.2f%%  %8d %8.2f%%   ends %s" % (name, nr, 100 * share, perf["nr"], 100 * theirs, dict(opd["ends"])))
        results.append((name, nr, share, theirs))
        sums.update({"samples": opd["received"], "cpu": opd["cpu"], "bytes": opd["bytes"], "perf samples": perf["total"],
                     "perf bytes": perf["bytes"], "perf cpu": perf["record"] + perf["report"],
                     "walks": opd["status"]["stack_walks"], "frames": opd["status"]["stack_frames"],
                     "walk_ns": opd["status"]["stack_walk_ns"]})
    return results, sums


def test(box):
    results, sums = measure(box)
    ok = []
    for name, nr, share, theirs in results:
        ok.append(verdict(None if nr < MIN_SAMPLES else share >= NEEDED[name] and share >= theirs - 0.005,
                          "%s: %.2f %% complete, at least %.0f %% and perf's %.2f %%" %
                          (name, 100 * share, 100 * NEEDED[name], 100 * theirs)))
    per_walk, per_frame = sums["walk_ns"] / max(sums["walks"], 1), sums["walk_ns"] / max(sums["frames"], 1)
    verdict(None, "warm walk, at most 2000 ns a sample and 40 ns a frame; cold, in wall time, it took %.0f and %.0f" %
            (per_walk, per_frame))
    print("opd's CPU has everything: the side band, its turns, 10 flat samples per second, a report; not the kernel's copies")
    mine, theirs = (1e6 * sums[cpu] / max(sums[nr], 1) for cpu, nr in (("cpu", "samples"), ("perf cpu", "perf samples")))
    ok.append(verdict(theirs >= 10 * mine,
                      "CPU a stack sample: opd and opreport %.1f us, perf's record and report %.1f us: %.1f times, aim 10" %
                      (mine, theirs, theirs / max(mine, 0.001))))
    mine, theirs = sums["bytes"] / max(sums["samples"], 1), sums["perf bytes"] / max(sums["perf samples"], 1)
    verdict(None if sums["samples"] < 1000000 else mine * 200 <= theirs,
            "disk after %d samples: opd %.0f bytes a sample, perf %.0f: 1/%.0f, 1/200 at 10^6" %
            (sums["samples"], mine, theirs, theirs / max(mine, 0.001)))
    box.shutdown()
    if not all(ok):
        sys.exit(1)


if __name__ == "__main__":
    opdtest.run(test)
