#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Waits and deep stacks: each figure beside its aim, and the load of the machine.

usage: bench_waits.py [PART...] [WaitBudget=SIZE]    default all parts, and the budget of opd.conf(5)

sites     a thread that sleeps 60 % in one place and 5,000 times a second in another, for 10 s
states    a lock, O_DIRECT reads, epoll_wait, also when opd starts later, more threads than CPUs
ledger    100,000 switches a second into small rings
pingpong  the CPU time of a switch without opd, and with it, in pairs
complete  whole stacks beside `perf record --call-graph dwarf,61440`
cost      CPU time and memory of opds with and without waits and deep stacks, over the same load

The truth is the clock of the program that waits. The quantum is what one record stands for: 20 ms on
a calm host, and more where many threads wait, for WaitBudget= holds for all of them.
"""
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", at) for at in ("system", "bench")]
import bench_stacks  # noqa: E402
import opdtest  # noqa: E402
from bench import Load, cpu_of_all, source_text  # noqa: E402
from bench_stack_cost import rss_parts  # noqa: E402
from bench_stacks import PYTHON, verdict  # noqa: E402
from hot import compile_to  # noqa: E402
from test_waits import STATES, US, Waits, await_uptime, dump, folded, program_of, run, use_waits  # noqa: E402

ALL = ("sites", "states", "ledger", "pingpong", "complete", "cost")
PARTS = [word for word in sys.argv[1:] if word in ALL] or list(ALL)
BUDGET = {"WaitBudget": word.partition("=")[2] for word in sys.argv[1:] if word.startswith("WaitBudget=")}
PAIRS, PAIR_SECONDS = 7, 2
COST_SECONDS = 30
# each call keeps 40 bytes of words: some 20 KiB of bash's own stack
BASH = "f() { local n=$1; if ((n == 0)); then for ((i = 0; i < 3000; i++)); do :; done; else f $((n - 1)); fi; }; " \
       "while :; do f 12; done"


def load():
    return "load %.1f" % os.getloadavg()[0]


def figure(ok, text):
    return verdict(ok, "%s (%s)" % (text, load()))


def measure_sites(box):
    use_waits(box, **BUDGET)
    waited, long_us, short_us = run(box, program_of(box, "sleepy"), "sleep", "1", "10")
    found, sums = Waits(box.session, "sleepy"), folded(box, "sleepy")
    long_found = sum(us for names, us in sums.items() if "long_sleep" in names)
    short_found = sum(us for names, us in sums.items() if "short_sleep" in names)
    share, truth = (100 * a / (a + b) for a, b in ((long_found, short_found), (long_us, short_us)))
    total = (found.total(*STATES) - 10 * US) / waited  # main() waits for the thread
    return [figure(abs(share - truth) <= 3, "two places: %.1f %% and %.1f, really %.1f and %.1f, %s; within 3 points" % (
                share, 100 - share, truth, 100 - truth, quantum(box))),
            figure(abs(total - 1) <= 0.02, "total: %.3f s of %.3f s; within 2 %%" % (total * waited / US, waited / US)),
            figure(found.nr_records <= 500, "%d records; at most 500" % found.nr_records)]


def quantum(box):
    return "quantum %.0f ms" % (box.status()["wait_quantum_ns"] / 1e6)


def of_state(box, name, what, truth, found):
    return figure(abs(found / truth - 1) <= 0.03, "%s, %s: %.3f s of %.3f s (%+.1f %%), %s; within 3 %%" % (
        name, what, found / US, truth / US, 100 * (found / truth - 1), quantum(box)))


def measure_states(box):
    ok = []
    use_waits(box, **BUDGET)
    for name, mode, nr in (("8 threads on a lock", "mutex", 8), ("10 threads on %d CPUs" % os.cpu_count(), "spin", 10),
                           ("20 threads in epoll_wait", "poll", 20)):
        truth = run(box, program_of(box, mode), mode, str(nr), "8")[0]
        found = Waits(box.session, mode)
        ok.append(of_state(box, name, "all states", truth, found.total(*STATES) - 8 * US))
        print("         " + ", ".join("%s %.3f s" % (state, us / US) for state, us in found.states.items()))
    blocks = os.path.join(os.environ["OPD_BUILD"], "bench-waits.blocks")
    with open(blocks, "wb") as stream:
        stream.write(os.urandom(64 << 20))
        os.fsync(stream.fileno())
    done = box.run(program_of(box, "disk"), "disk", "1", "0.1", blocks)
    if done.rc:
        ok.append(figure(None, "O_DIRECT reads: the file system of the build has none"))
    else:
        truth = run(box, program_of(box, "disk"), "disk", "1", "8", blocks)[0]
        found = Waits(box.session, "disk")
        ok.append(of_state(box, "O_DIRECT reads", "all states", truth, found.total(*STATES) - 8 * US))
        print("         " + ", ".join("%s %.3f s" % (state, us / US) for state, us in found.states.items()))
    os.unlink(blocks)
    box.shutdown()
    box.opcontrol("--reset")
    program = box.start(program_of(box, "early"), "poll", "20", "3600", stdout=subprocess.PIPE, text=True)
    program.stdout.readline()
    time.sleep(1)
    begin = time.monotonic()
    use_waits(box, **BUDGET)
    started = time.monotonic()
    await_uptime(box, 8)
    before_dump = time.monotonic()
    dump(box)
    end = time.monotonic()
    found = Waits(box.session, "early").states["blocked"] / US / 21  # and main()
    ok.append(figure(0.97 * (before_dump - started) <= found <= 1.03 * (end - begin),
                     "20 threads in epoll_wait since before opd: %.3f s each, between %.3f and %.3f; within 3 %%" % (
                         found, before_dump - started, end - begin)))
    program.kill()
    return ok


def pingpong(box, seconds):
    words = box.good(os.path.join(os.environ["OPD_BUILD"], "tests/bench/pingpong"), "0", str(seconds)).split()
    return int(words[0]), int(words[1])


def measure_ledger(box):
    use_waits(box, RingSize="128K", StackRingMaxUse="256K", WaitBudget="16K")
    before, begin = box.status()["wait_switches"], time.monotonic()
    pingpong(box, 10)
    box.opcontrol("--stop")
    status, seconds = box.status(), time.monotonic() - begin
    parts = {name: status["wait_" + name] for name in ("idle", "kernel", "emitted", "skipped", "lost")}
    rate = (status["wait_switches"] - before) / seconds
    print("         %s, rings of %d bytes" % (parts, status["stack_ring_bytes"]))
    return [figure(status["wait_switches"] == sum(parts.values()),
                   "ledger of %d switches, %.0f a second: %d in the parts; exact" % (
                       status["wait_switches"], rate, sum(parts.values())))]


def measure_pingpong(box):
    costs, rates = {True: [], False: []}, []
    for _ in range(PAIRS):
        for with_opd in (False, True):
            if with_opd:
                use_waits(box)
            nr, cpu_ns = pingpong(box, PAIR_SECONDS)
            costs[with_opd].append(cpu_ns / nr)
            if with_opd:
                box.shutdown()
            else:
                rates.append(nr / PAIR_SECONDS)
    ratios = [a / b for a, b in zip(costs[True], costs[False])]
    more = 100 * (statistics.median(ratios) - 1)
    return [figure(more <= 5, "ping-pong, %.0f switches/s without opd: %.0f ns of CPU a switch without, %.0f with opd, "
                   "%+.1f %% (pairs from %+.1f to %+.1f); at most 5 %%" % (
                       statistics.median(rates), statistics.median(costs[False]), statistics.median(costs[True]), more,
                       100 * (min(ratios) - 1), 100 * (max(ratios) - 1)))]


def programs(box):
    found = bench_stacks.programs(box)
    numbers = os.path.join(box.dir, "numbers")
    with open(numbers, "w", encoding="ascii") as stream:
        stream.write("\n".join(str(i * 7919 % 1000003) for i in range(400000)))
    demo = os.path.join(box.dir, "demo")
    compile_to(box, demo, "-O2", "-pthread", file=os.path.join(os.environ["OPD_SOURCE"], "scripts", "demo-program.c"))
    return {"cc1plus": found["cc1plus"], "sort": ("sh", "-c", "while :; do sort -n %s > /dev/null; done" % numbers),
            "bash": ("bash", "-c", BASH), "python3": ("python3", "-c", PYTHON), "openssl": found["openssl"],
            "demo": (demo, numbers, "3600")}


def measure_complete(box):
    ok = []
    bench_stacks.SECONDS, bench_stacks.KINDS = 10, {"dwarf": ("--call-graph", "dwarf,61440")}
    has_perf = shutil.which("perf") is not None
    box.configure(Stacks="yes")
    box.start_daemon("--event=TIMER:%d" % bench_stacks.FLAT_NS, "--stacks=on", start=False)
    for name, command in programs(box).items():
        child = bench_stacks.run_load(box, command, 0)
        box.opcontrol("--start")
        time.sleep(bench_stacks.WARM_SECONDS)
        box.opcontrol("--stop")
        bench_stacks.end_load(child)
        ends = bench_stacks.take_opd(box, name, command)["ends"]
        perf = bench_stacks.take_perf(box, name, command, "dwarf") if has_perf else {"complete": 0, "nr": 0}
        nr, share, theirs = sum(ends.values()), ends[0] / max(sum(ends.values()), 1), perf["complete"] / max(perf["nr"], 1)
        ok.append(figure(None if nr < bench_stacks.MIN_SAMPLES else share >= 0.99 and share >= theirs,
                         "%s: %.2f %% of %d stacks are complete, perf with 60 KiB has %.2f %% of %d; ends %s; 99 %%, and no "
                         "less" % (name, 100 * share, nr, 100 * theirs, perf["nr"], dict(ends))))
    print("         deep: %s" % {key[5:]: value for key, value in box.status().items() if key.startswith("deep_")})
    return ok


def kernel_bytes(pid):
    """Memory of BPF maps and programs."""
    sums = {}
    for name in os.listdir("/proc/%d/fdinfo" % pid):
        with open("/proc/%d/fdinfo/%s" % (pid, name), encoding="ascii") as stream:
            fields = dict(re.findall(r"^(\w+):\s+(\d+)$", stream.read(), re.M))
        if "memlock" in fields:
            sums["map_id" in fields, fields.get("map_id", fields.get("prog_id"))] = int(fields["memlock"])
    return sum(sums.values())


def memory_of(box):
    """Resident bytes with rings and BPF, but without tables; and those of tables, which are mapped files
    that the kernel can drop.
    """
    status, parts = box.status(), rss_parts(box.daemon.pid)
    tables = sum(1024 * part["Rss:"] for name, part in parts.items() if name.startswith("tables"))
    rings = 2 * status["nr_cpus"] * (status["ring_bytes"] + status["stack_ring_bytes"])
    return status["rss_bytes"] + kernel_bytes(box.daemon.pid) + rings - tables, tables


def measure_cost(_box):
    kinds = {"all": {}, "deep": {"Waits": "no"}, "stacks": {"Bpf": "no"}, "none": {"Stacks": "no"}}
    boxes, cpu, memory, tables = {}, {}, {}, {}
    try:
        for kind, keys in kinds.items():
            boxes[kind] = opdtest.Box()
            boxes[kind].configure(**{"Stacks": "yes", **keys})
            boxes[kind].start_daemon("--event=default")
        with open(os.path.join(boxes["none"].dir, "bench.c"), "w", encoding="ascii") as stream:
            stream.write(source_text())
        work = Load(boxes["none"], "compile")
        time.sleep(8)  # tables are made
        before = {kind: cpu_of_all(box.daemon.pid) for kind, box in boxes.items()}
        begin = time.monotonic()
        time.sleep(COST_SECONDS)
        seconds = time.monotonic() - begin
        for kind, box in boxes.items():
            cpu[kind] = 100 * (cpu_of_all(box.daemon.pid) - before[kind]) / seconds
            memory[kind], tables[kind] = memory_of(box)
        work.stop()
    finally:
        for box in boxes.values():
            box.close()
    stacks, deep, waits = (cpu[a] - cpu[b] for a, b in (("stacks", "none"), ("deep", "none"), ("all", "deep")))
    more = (memory["all"] - memory["stacks"]) / 1e6
    print("         %% of a CPU: %s" % {kind: round(value, 3) for kind, value in cpu.items()})
    return [figure(waits <= 0.5, "waits while the compiler runs: %.3f %% of a CPU; at most 0.5" % waits),
            figure(deep <= 1.3 * stacks, "stacks: %.3f %% of a CPU, with deep ones %.3f (%.2f times); at most 1.3 times" % (
                stacks, deep, deep / stacks)),
            figure(more <= 8, "memory: %.1f MB more with waits and deep stacks, %.1f MB without, and %+.1f MB of tables, which "
                   "are files; at most 8 MB" % (more, memory["stacks"] / 1e6, (tables["all"] - tables["stacks"]) / 1e6))]


def test(box):
    ok = []
    for part in PARTS:
        print("== %s, %s" % (part, load()), flush=True)
        ok += globals()["measure_" + part](box)
        if box.daemon:
            box.shutdown()
            box.opcontrol("--reset")
    opdtest.require(all(each is not False for each in ok), "%d figures do not meet their aims" % ok.count(False))


if __name__ == "__main__":
    opdtest.run(test)
