#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Storms of processes that live for milliseconds, beside thousands that sleep: each causes a number of
page faults in a file that is known, so the
truth is counted and not estimated. usage: test_storm.py [--long] [STORM...]: with
--long 10,000 sleepers, a minute each, and pids that are used again, instead of 1,500 and some
seconds; names (exec_storm, overflow ...) choose storms.

Demanded of each storm: 99.9 % of the samples in the right image and none too many in any, at most
0.1 % of the samples of its programs where opd says that it
does not know, the ledger to the sample (but for what a second profiler sees the kernel count
without sampling it), and no record of the side band lost,
unless the storm is about that. Of exec_storm also: opd's memory, from the first moment on, stays
under 64 MiB, and afterwards it is within 10 % of what it was before
the storm, with all sleepers known and profiling on.
Of exec_storm --long also: 2,000 fork and exec per second, or, where the machine does not make as
many, 95 % of what the same storm makes without opd's daemon, half a
minute before and half a minute after, beside the same sleepers; when these two are not alike, other
work took the machine and the test fails. That each page fault
is a sample is what makes the truth known, and costs the kernel more than the faults: it is so
without opd as well, where another profiler takes them and
forgets them. The rate without any profiler is printed, not demanded.
"""
import contextlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import elfsyms
import opdtest
from opdtest import require

FAULTS = "page-faults"
EVENTS = ("--event=TIMER:1000000", "--event=page-faults:1")
NOWHERE = ("/no-process", "/no-mapping")
NR_IMAGES = 8
PAGES = 8
SPINS = 2000
MAPS = 8
MIN_SHARE = 0.999
MAX_RSS_BYTES = 64 << 20
MAX_LEFT = 1.1
RATE = 2000
MIN_RATE_SHARE = 0.95
PLAIN_PART = 3
MIN_EVEN = 0.9  # of what is made without opd before and after: with less, other work decided, and nothing is shown
ASKED_RATE = RATE + 200 # who is asked for no more than is demanded never makes quite as much
SHORT = {"sleepers": 1500, "seconds": 4, "warm_seconds": 0, "bare_seconds": 0,
         "slack": 2 << 20} # beside few sleepers it shows what other programs run
if opdtest.is_emulated():  # a program takes twenty times as long there
    SHORT.update(sleepers=300, seconds=1)
LONG = {"sleepers": 10000, "seconds": 60, "warm_seconds": 0, "bare_seconds": 30, "slack": 0}
FORGET_SECONDS = 8 # opd gives memory back at most every 5 s
PID_MAX = 400
OUTER = "STORM_OUTER_PID_NAMESPACE"
WITNESSES = 100
WITNESS_PAGES = 8
LOSSY_RING_BYTES = 64 << 10
LOSSY_PROCESSES = 2000 # each has half a KiB of records or more, and each CPU one ring, while opd stands still
# The sizes at the start of a storm, and those of the next try when the machine was so busy that
# samples were lost under a name.
RINGS = ({"RingSize": "4M"}, {"RingSize": "16M", "SidebandSize": "16M"}, {"RingSize": "64M", "SidebandSize": "64M"})


class Disturbed(Exception):
    """The rings were too small for the machine as it is now, and the ledger says so."""


def program(box, name):
    return os.path.join(os.path.dirname(box.work), name)


def copy(box, name, to):
    path = os.path.join(box.dir, to)
    shutil.copy(program(box, name), path)
    os.chmod(path, 0o755)
    return path


def memory_bytes(box, field):
    with open("/proc/%d/status" % box.daemon.pid, encoding="utf-8") as stream:
        return 1024 * int(re.search(r"^%s:\s+(\d+) kB" % field, stream.read(), re.M).group(1))


def found_touches(files, path):
    """Samples of the instruction of touch_pages that touches: the one with the most samples, the
    others have none or fetched the page.
    """
    start, end = elfsyms.symbol_ranges(path, ("touch_pages",))["touch_pages"]
    keys = {}
    for sample_file in files:
        if sample_file.name.image[1] == path and sample_file.name.event == FAULTS:
            for key, count in sample_file.keys.items():
                if start <= key < end:
                    keys[key] = keys.get(key, 0) + count
    return max(keys.values(), default=0)


def read_truth(out, paths):
    lines = out.split()
    return dict(zip(paths, map(int, lines))), int(lines[-2]), int(lines[-1]) / 1000


def check_truth(files, truth, what, min_share=MIN_SHARE):
    """Nearly all samples in the right file, and none too many in any."""
    found = {path: found_touches(files, path) for path in truth}
    wanted, have = sum(truth.values()), sum(found.values())
    wrong = {os.path.basename(p): (found[p], truth[p]) for p in truth if found[p] != truth[p]}
    print("%s: %d of %d samples in the right image, %.5f; others than known: %s" % (what, have, wanted, have / wanted,
            wrong or "none"))
    for path in truth:
        require(found[path] <= truth[path], "%s: %d samples in %s, which had %d" % (what, found[path], path, truth[path]))
    require(have >= min_share * wanted, "%s: %d of %d samples in the right image" % (what, have, wanted))


def count_known(files, images):
    """Samples of the programs of the storm, and how many of them are where opd says that it does
    not know; who else runs here is not the test's business.
    """
    mine = [f for f in files if f.name.app[1] in images or f.name.image[1] in images]
    return sum(f.total for f in mine), sum(f.total for f in mine if f.name.image[1] in NOWHERE)


def check_known(files, images, before=(0, 0)):
    """Hardly any of the samples since `before` are nowhere."""
    total, nowhere = (now - then for now, then in zip(count_known(files, images), before))
    print("%d of %d samples of the programs are nowhere" % (nowhere, total))
    require(total > 0, "the programs have no samples")
    require(nowhere <= (1 - MIN_SHARE) * total, "%d of %d samples of the programs are nowhere" % (nowhere, total))


def check_events(box, oracle, may_lose=False, last=True):
    """
    The ledger of all that was counted; what the kernel does not sample, a second profiler knows
    (doc/ring.md). How many samples are unattributed is that of the
    whole machine, whose other programs are not the test's business. With the largest rings nothing
    of the side band may be lost.
    """
    status = box.check_ledger(not_sampled=oracle.not_sampled())
    lost = sideband_lost(status)
    print("side band: %d bytes, %d records lost" % (sum(cpu["sideband_bytes"] for cpu in status["cpus"]), lost))
    require(may_lose or not last or lost == 0, "%d side-band records lost" % lost)
    for event in status["events"]:
        print("%s: taken %d, lost_kernel %d, outstanding %d, unattributed %d" % tuple(
            [event["name"]] + [event[k] for k in ("taken", "lost_kernel", "outstanding", "unattributed")]))
    if not last and (lost or any(event["lost_kernel"] for event in status["events"])):
        raise Disturbed("%d side-band records lost, samples: %s" % (lost, [event["lost_kernel"] for event in status["events"]]))
    return status, lost


def start_sleepers(box, number):
    if not number:
        return None
    sleepers = box.start_piped(program(box, "storm"), "sleepers", number, MAPS, copy(box, "storm_worker", "sleeper-app"))
    require(sleepers.stdout.readline() == b"ready\n", "the sleepers do not sleep")
    return sleepers


def end_sleepers(box, sleepers):
    sleepers.communicate(b"", timeout=opdtest.CALL_SECONDS)
    require(sleepers.returncode == 0, "the sleepers failed")
    box.children.remove(sleepers)


def finish(box, driver, paths):
    """What a driver says at its end: {path: touches}, how many processes or threads, seconds."""
    out, _ = driver.communicate(timeout=opdtest.CALL_SECONDS)
    require(driver.returncode == 0, "the driver of the storm failed")
    box.children.remove(driver)
    return read_truth(out.decode(), paths)


def begin_execs(box, seconds, images):
    return [box.start_piped(program(box, "storm"), "execs", ASKED_RATE // 2, int(seconds * 1000), PAGES, SPINS,
                            *images) for _ in range(2)]


def storm(box, seconds, images):
    """Two drivers; {path: touches}, processes, seconds."""
    truth, number, longest = {path: 0 for path in images}, 0, 0
    for driver in begin_execs(box, seconds, images):
        touched, processes, seconds = finish(box, driver, images)
        truth = {path: truth[path] + touched[path] for path in images}
        number, longest = number + processes, max(longest, seconds)
    return truth, number, longest


def bare_rates(box, seconds, images):
    """The rate of the machine without opd, while other page-fault events are open: a list with one
    rate, or an empty list.
    """
    if not seconds:
        return []
    _, number, longest = storm(box, seconds / PLAIN_PART, images)
    print("%.0f processes per second without any profiler" % (number / longest))
    others = [opdtest.FaultOracle(box.fault_oracle) for _ in range(2)]
    _, number, longest = storm(box, seconds, images)
    for other in others:
        other.not_sampled()
    print("%.0f processes per second without opd" % (number / longest))
    return [number / longest]


def check_rate(rate, without):
    if not without:
        return
    bare = sum(without) / len(without)
    print("%.0f processes per second with opd, %.0f without: %.1f %%" % (rate, bare, 100 * rate / bare))
    if rate < RATE:
        require(min(without) >= MIN_EVEN * max(without),
                "other work took the machine: %s processes per second without opd" % [round(r) for r in without])
        require(rate >= MIN_RATE_SHARE * bare, "%.0f processes per second with opd, %.0f without" % (rate, bare))


def memory_of(box):
    box.opcontrol("--dump")
    parts = {field: memory_bytes(box, field) for field in ("VmRSS", "RssAnon", "RssFile", "RssShmem")}
    status = box.status()
    print("memory: %s; %d images with samples, %d files open" % (
        ", ".join("%s %.1f MB" % (field, value / 1e6) for field, value in parts.items()), status["nr_images_counted"],
        status["nr_files"]))
    return parts


def settle(box, what):
    """The memory when what ended is forgotten, and what opd costs until then."""
    before = opdtest.cpu_of_threads(box.daemon.pid)
    time.sleep(FORGET_SECONDS)
    percent = 100 * (opdtest.cpu_of_threads(box.daemon.pid) - before) / FORGET_SECONDS
    print("idle, %s: %.3f %% of one CPU" % (what, percent))
    return memory_of(box)


def check_memory(box, before, storm_rss, slack):
    """What the storm took is given back. opd does that now and then, and also has what other programs
    run, until they end.
    """
    limit, after = MAX_LEFT * before["VmRSS"] + slack, []

    def is_given_back():
        if after:
            time.sleep(1)
        after.append(memory_of(box)["VmRSS"])
        return after[-1] <= limit
    opdtest.wait_until(is_given_back, opdtest.HANG_SECONDS, "before %s, after the storm more than %d" % (before, limit))
    peak = memory_bytes(box, "VmHWM")
    print("RSS: %.1f MB before, %.1f at the end of the storm, %.1f afterwards, peak %.1f" % tuple(b / 1e6
            for b in (before["VmRSS"], storm_rss, after[-1], peak)))
    require(peak < MAX_RSS_BYTES, "opd had %d bytes" % peak)


def exec_storm(box, size):
    images = [copy(box, "storm_worker", "storm-%d" % i) for i in range(NR_IMAGES)]
    sleepers = start_sleepers(box, size["sleepers"])
    without = bare_rates(box, size["bare_seconds"], images)
    begin = time.monotonic()
    box.start_daemon(*EVENTS, "--separate=library,kernel", start=False)
    print("ready in %.2f s, %d processes known" % (time.monotonic() - begin, box.status()["nr_processes"]))
    oracle = opdtest.FaultOracle(box.fault_oracle)
    box.opcontrol("--start")
    warm = storm(box, size["warm_seconds"], images)[0] if size["warm_seconds"] else {}
    before = settle(box, "%d processes" % size["sleepers"])
    cpu = opdtest.cpu_of_threads(box.daemon.pid)
    truth, number, seconds = storm(box, size["seconds"], images)
    truth = {path: touches + warm.get(path, 0) for path, touches in truth.items()}
    storm_rss = memory_bytes(box, "VmRSS")
    box.opcontrol("--dump")
    cpu = opdtest.cpu_of_threads(box.daemon.pid) - cpu
    print("%d processes in %.1f s, %.0f per second; opd: %.2f s of CPU time, %.1f us per process" % (
        number, seconds, number / seconds, cpu, 1e6 * cpu / number))
    check_memory(box, before, storm_rss, size["slack"])
    box.opcontrol("--stop")
    check_events(box, oracle, last=size["last"])
    files = box.files()
    check_known(files, truth)
    check_truth(files, truth, "exec")
    box.check_agreement()
    box.shutdown()
    shutil.rmtree(box.session)
    check_rate(number / seconds, without + bare_rates(box, size["bare_seconds"], images))
    if sleepers:
        end_sleepers(box, sleepers)


def fork_storm(box, size):
    """Children that live on what their parent has mapped, and now and then load a library of their
    own.
    """
    path, libs = copy(box, "storm", "forks-app"), [copy(box, "storm_lib.so", name) for name in ("loaded.so", "later.so")]
    oracle = opdtest.FaultOracle(box.fault_oracle)
    box.start_daemon(*EVENTS, "--separate=library,kernel")
    truth, number, seconds = finish(box, box.start_piped(path, "forks", RATE, size["seconds"] * 1000, PAGES, *libs), [path] + libs)
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    print("%d children in %.1f s" % (number, seconds))
    check_events(box, oracle, last=size["last"])
    files = box.files()
    check_known(files, truth)
    check_truth(files, truth, "fork")
    wrong = [f.path for f in files if f.name.image[1] in libs and f.name.app[1] != path]
    require(not wrong, "samples of the libraries with another application: %s" % wrong)
    box.shutdown()
    shutil.rmtree(box.session)


def thread_storm(box, size):
    path = copy(box, "storm", "threads-app")
    oracle = opdtest.FaultOracle(box.fault_oracle)
    box.start_daemon(*EVENTS, "--separate=library,kernel")
    truth, number, seconds = finish(box, box.start_piped(path, "threads", RATE, size["seconds"] * 1000, PAGES), [path])
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    print("%d threads in %.1f s" % (number, seconds))
    check_events(box, oracle, last=size["last"])
    files = box.files()
    check_known(files, truth)
    check_truth(files, truth, "threads")
    box.shutdown()
    shutil.rmtree(box.session)


@contextlib.contextmanager
def standing_still(box):
    """opd reads no ring meanwhile."""
    box.daemon.send_signal(signal.SIGSTOP)
    try:
        opdtest.wait_until(lambda: opdtest.is_stopped(box.daemon.pid), opdtest.HANG_SECONDS, "opd does not stop")
        yield
    finally:
        box.daemon.send_signal(signal.SIGCONT)


def sideband_lost(status):
    return sum(cpu["sideband_lost"] for cpu in status["cpus"])


def lose_witnesses(box, seconds, images, witness):
    """Processes that exec while side-band records are certainly lost: the rings are full."""
    lost = sideband_lost(box.status())
    with standing_still(box):
        nr_processes = 0
        while nr_processes < LOSSY_PROCESSES:
            nr_processes += storm(box, seconds, images)[1]
        witnesses = box.start_piped(program(box, "storm"), "sleepers", WITNESSES, MAPS, witness)
        require(witnesses.stdout.readline() == b"ready\n", "the witnesses do not sleep")
    opdtest.wait_until(lambda: sideband_lost(box.status()) > lost, opdtest.HANG_SECONDS, "full side-band rings lost nothing")
    return witnesses


def rescanned(box):
    """The lost records, when opd has read /proc again after the last loss."""
    opdtest.wait_until(lambda: not box.await_look()["rescan_left"], opdtest.HANG_SECONDS,
                       "opd does not come to an end with reading /proc")
    return sideband_lost(box.status())


def known_again(box, seconds, images, number):
    """Living processes are known again after a loss, also one that ends as soon as it has samples.
    False: records were lost once more before they had ended, since others run programs, too.
    """
    witness = copy(box, "storm_worker", "witness-%d" % number)
    witnesses = lose_witnesses(box, seconds, images, witness)
    lost = rescanned(box)
    box.opcontrol("--dump")
    before = count_known(box.files(live=True), {witness})
    print("until the loss was over, %d of the %d samples of the witnesses are nowhere" % before[::-1])
    end_sleepers(box, witnesses)
    box.opcontrol("--dump")
    if sideband_lost(box.await_look()) > lost:
        print("records are lost again: once more with other witnesses")
        return False
    files = box.files(live=True)
    check_known(files, {witness}, before)
    check_truth(files, {witness: WITNESSES * WITNESS_PAGES}, "after the loss")
    return True


def overflow(box, size):
    """Side-band rings that are far too small: the lost records are counted, the many sleeping
    processes do not delay the sync thread, and living processes are known again.
    """
    images = [copy(box, "storm_worker", "lossy-%d" % i) for i in range(NR_IMAGES)]
    sleepers = start_sleepers(box, size["sleepers"])
    box.configure(RingSize="4M", SidebandSize=LOSSY_RING_BYTES)
    oracle = opdtest.FaultOracle(box.fault_oracle)
    box.start_daemon(*EVENTS, "--separate=library,kernel")
    storm(box, size["seconds"] / 2, images)
    numbers = itertools.count()
    opdtest.wait_until(lambda: known_again(box, size["seconds"] / 2, images, next(numbers)), opdtest.HANG_SECONDS,
                       "records are lost again and again")
    box.opcontrol("--stop")
    status, lost = check_events(box, oracle, may_lose=True)
    print("%d side-band records lost, longest turn %.0f ms" % (lost, status["turn_longest_ns"] / 1e6))
    require("the side-band ring was full" in box.log_text(), "the log does not say that the side-band ring was full")
    if sleepers:
        end_sleepers(box, sleepers)
    box.shutdown()
    box.configure()
    shutil.rmtree(box.session)


def undisturbed(box, storm_of, size):
    """A storm, with larger rings when some were too small."""
    for rings in RINGS:
        box.configure(**rings)
        try:
            storm_of(box, dict(size, last=rings is RINGS[-1]))
            return
        except Disturbed as disturbed:
            print("once more with larger rings: %s" % disturbed)
        box.shutdown()
        shutil.rmtree(box.session)
        for child in [child for child in box.children if child.poll() is None]:
            end_sleepers(box, child)


def pid_namespace():
    return os.stat("/proc/self/ns/pid").st_ino


def reuse(box, size):
    """The whole test once more where pids are used again after some hundred others: in a pid
    namespace, with opd in it.
    """
    require(OUTER in os.environ, "only reuse_apart may start it")
    require(str(pid_namespace()) != os.environ.get(OUTER), "this would limit the pids of the host")
    with open("/proc/sys/kernel/pid_max", "w", encoding="ascii") as stream:
        stream.write("%d\n" % PID_MAX)
    # With nobody else there, the files of the storm's own programs are most of what opd has mapped:
    # they are there before.
    undisturbed(box, exec_storm, dict(size, sleepers=0, warm_seconds=5))
    undisturbed(box, fork_storm, size)


def run_one(box, storm_of, size):
    if storm_of is overflow:
        overflow(box, size)
    else:
        undisturbed(box, storm_of, size)


def all_storms(size):
    def run(box):
        for storm_of in (exec_storm, fork_storm, thread_storm, overflow):
            print("== %s" % storm_of.__name__, flush=True)
            run_one(box, storm_of, size)
        if size is LONG:
            print("== reuse", flush=True)
            reuse_apart(size)
    return run


def reuse_apart(size):
    """The limit on pids belongs to the pid namespace since Linux 6.14. Before that it belongs to
    the host and is not changed.
    """
    if tuple(map(int, os.uname().release.split("-")[0].split(".")[:2])) < (6, 14):
        print("not tried: this kernel has one pid_max for all")
        return
    with open("/proc/sys/kernel/pid_max", encoding="ascii") as stream:
        pid_max = stream.read()
    command = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, os.path.abspath(__file__), "--reuse",
               str(size["seconds"])]
    done = subprocess.run(command, env={**os.environ, OUTER: str(pid_namespace())}, check=False)
    with open("/proc/sys/kernel/pid_max", encoding="ascii") as stream:
        require(stream.read() == pid_max, "pid_max of the host was changed")
    require(done.returncode == 0, "the storms in a pid name space failed")


def main(args):
    if "--reuse" in args:
        size = dict(SHORT, seconds=int(args[args.index("--reuse") + 1]))
        opdtest.run(lambda box: reuse(box, size))
    only = [word for word in args if word in globals()]
    size = LONG if "--long" in args else SHORT
    opdtest.run((lambda box: [run_one(box, globals()[word], size) for word in only]) if only else all_storms(size))


if __name__ == "__main__":
    main(sys.argv[1:])
