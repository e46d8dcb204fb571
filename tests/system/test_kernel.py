#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Kernel code that is not in the kernel's own text: BPF programs that were there before opd and that
come and go while it runs, also while records are lost; filters of
classic BPF, of which nobody tells; kernel threads and
idle CPUs; a session that goes on under another kernel; and addresses that are hidden, which the
log, --status and opreport say. For these opd
gets a mount name space of its own, in which /sys/kernel/notes and /proc/kallsyms are files of the
test. Modules have their unit test, test_kernel_map.
"""
import contextlib
import ctypes
import mmap
import os
import platform
import re
import resource
import shutil
import signal
import socket
import struct
import time

import opdtest
import perf_swap
from test_kernel_threads import kind_of
from opdtest import Skip, require

SYS_BPF = {"x86_64": 321, "aarch64": 280}
BPF_PROG_LOAD, BPF_PROG_TEST_RUN = 5, 10
SOCKET_FILTER = 1
NR_INSTRUCTIONS = 3000
NR_OF_A_PAGE = 400  # instructions whose code is less than a page
SO_ATTACH_FILTER = 26
NR_LOST_MAPPINGS = 3000
RUN_SECONDS = 3  # an emulated machine takes 100 samples a second, a real one thousands
PERIOD_NS = 197000
MIN_SAMPLES = 200
LOST_PROGRAM = "^/bpf_prog_[0-9a-f]+_opd_lost$"
KERNEL = "/proc/kallsyms"
BUSY_SECONDS = 4    # that an idle CPU is waited for on a busy host
SWITCHES = 3        # in a sample; of single ones a few are counted and not sampled, and the ledger says so
PERF_COUNT_SW_DUMMY = 9
TID_AND_TIME = 1 << 1 | 1 << 2
WITH_KSYMBOL = 1 << 18 | 1 << 29  # sample_id_all, ksymbol
NOTES = "/sys/kernel/notes"
LIBC = ctypes.CDLL(None, use_errno=True)


def bpf(command, attr):
    buffer = ctypes.create_string_buffer(bytes(attr), len(attr))
    result = LIBC.syscall(SYS_BPF[platform.machine()], command, buffer, len(attr))
    if result < 0:
        raise OSError(ctypes.get_errno(), "bpf(%d): %s" % (command, os.strerror(ctypes.get_errno())))
    return result


@contextlib.contextmanager
def lock_any_memory():
    """Before Linux 5.11 a BPF program is locked memory of its user."""
    before = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, before)


def load_program(name, nr_instructions=NR_INSTRUCTIONS):
    """A long program without a loop: r0 = r0 * 3 + 1, many times. A descriptor; the program goes
    with it.
    """
    code = struct.pack("<BBhi", 0xb7, 0, 0, 1)
    code += (struct.pack("<BBhi", 0x27, 0, 0, 3) + struct.pack("<BBhi", 0x07, 0, 0, 1)) * (nr_instructions // 2)
    code += struct.pack("<BBhi", 0x95, 0, 0, 0)
    code_buffer, licence = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(b"GPL")
    attr = struct.pack("<IIQQIIQII16s", SOCKET_FILTER, len(code) // 8, ctypes.addressof(code_buffer),
                       ctypes.addressof(licence), 0, 0, 0, 0, 0,
                       name.encode())
    try:
        with lock_any_memory():
            return bpf(BPF_PROG_LOAD, attr)
    except OSError as error:
        raise Skip("a BPF program cannot be loaded: %s" % error) from error


def run_program(program):
    """Runs the program in the kernel, as this process, for a while of its CPU time."""
    data = ctypes.create_string_buffer(64)
    end = time.process_time() + RUN_SECONDS
    while time.process_time() < end:
        bpf(BPF_PROG_TEST_RUN, struct.pack("<IIIIQQII", program, 0, len(data), 0, ctypes.addressof(data), 0, 1000,
                                           0).ljust(80, b"\0"))


def run_until_counted(box, program, pattern):
    """Runs the program until opd knows it. After a loss opd reads the list of programs at once, but
    at most every ten seconds: on a busy machine there may have been a loss just before.
    """
    def is_counted():
        run_program(program)
        box.opcontrol("--dump")
        totals = image_totals(box, os.getpid(), live=True)
        return sum(count for name, count in totals.items() if re.search(pattern, name)) >= MIN_SAMPLES

    opdtest.wait_until(is_counted, opdtest.HANG_SECONDS, "no samples of %s" % pattern)


def run_filter():
    """The same with classic BPF: a socket filter, which this process runs when it sends. Like the
    filters of seccomp it is in no list.
    """
    code = struct.pack("<HBBI", 0x00, 0, 0, 1)
    code += (struct.pack("<HBBI", 0x24, 0, 0, 3) + struct.pack("<HBBI", 0x04, 0, 0, 1)) * (NR_INSTRUCTIONS // 2)
    code += struct.pack("<HBBI", 0x06, 0, 0, 0)
    code_buffer = ctypes.create_string_buffer(code, len(code))
    sender, receiver = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with sender, receiver:
        try:
            receiver.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER,
                                struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(code_buffer)))
        except OSError as error:
            print("SKIP of a socket filter: %s" % error)
            return False
        end = time.process_time() + RUN_SECONDS
        while time.process_time() < end:
            for _ in range(100):
                sender.send(b"dropped")
    return True


def run_filter_aside():
    """In a process of its own, whose number this is; None where no filter can be attached."""
    pid = os.fork()
    if not pid:
        os._exit(0 if run_filter() else 1)
    return pid if os.waitpid(pid, 0)[1] == 0 else None


def kallsyms():
    with open("/proc/kallsyms", encoding="ascii", errors="replace") as stream:
        return stream.readlines()


def image_totals(box, tgid=None, live=False):
    """{image: samples} of kernel samples, of one process or of all."""
    totals = {}
    for sample_file in box.files(live=live):
        if sample_file.header.is_kernel and tgid in (None, sample_file.name.tgid):
            totals[sample_file.name.image[1]] = totals.get(sample_file.name.image[1], 0) + sample_file.total
    return totals


def check_samples(totals, pattern, at_least, what):
    found = sum(count for name, count in totals.items() if re.search(pattern, name))
    print("%s: %d samples" % (what, found))
    require(found >= at_least, "%s: %d samples, at least %d expected: %s" % (what, found, at_least, totals))


def anew(box):
    """The next part has a session and a log of its own."""
    box.shutdown()
    shutil.rmtree(box.session)
    os.truncate(box.log, 0)


def end(box):
    """Stops and checks what was counted."""
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    box.check_ledger()
    box.check_agreement()


def check_filter(box, pid, status, of_unknown_length=None):
    """No program has samples of the filter. If opd does not know the length of a program, it takes
    what lies behind it for the program, up to a page from its start. What is nowhere is counted.
    """
    totals, (event,) = image_totals(box, pid), status["events"]
    check_samples(totals, "^/no-vmlinux$", MIN_SAMPLES, "a socket filter")
    foreign = {name: count for name, count in totals.items() if name not in (KERNEL, "/no-vmlinux")}
    for name in [name for name in foreign if of_unknown_length and re.search(of_unknown_length, name)]:
        far = [key for f in box.files() if f.name.image[1] == name for key in f.keys if key >= mmap.PAGESIZE]
        require(not far, "%s has samples at %s, beyond a page" % (name, far))
        del foreign[name]
    require(box.run_as != "root" or not foreign, "the socket filter is filed under %s" % foreign)
    nowhere = sum(f.total for f in box.files() if re.match("/no-", f.name.image[1]) and f.header.is_kernel)
    require(totals["/no-vmlinux"] <= nowhere <= event["unattributed"],
            "%d samples are nowhere in the kernel: %s" % (nowhere, event))


def bpf_programs(box):
    """Two programs from before opd, one that comes and goes while opd runs, and a filter. Only this
    process is checked: seccomp filters of other processes are run-time code, too, which the kernel
    does not report. The kernel gives the length of older code to root only, so other users get less
    than a page. Another profiler gets the records of the programs before opd does, which makes the
    records longer than their contents.
    """
    early = load_program("opd_early", NR_INSTRUCTIONS if box.run_as == "root" else NR_OF_A_PAGE)
    before_filter = load_program("opd_short", NR_OF_A_PAGE)
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel,thread")
    others = [opdtest.open_event(PERF_COUNT_SW_DUMMY, 0, TID_AND_TIME, cpu, False, WITH_KSYMBOL) for cpu in os.sched_getaffinity(0)]
    require(None not in others, "cannot open an event of another profiler")
    late = load_program("opd_late")
    run_program(early)
    run_program(late)
    filter_pid = run_filter_aside()
    for descriptor in [late, before_filter, early] + others:
        os.close(descriptor)
    box.opcontrol("--stop")
    status = box.check_ledger()
    totals = image_totals(box, os.getpid())
    check_samples(totals, "^/bpf_prog_[0-9a-f]+_opd_early$", MIN_SAMPLES, "a BPF program from before opd")
    check_samples(totals, "^/bpf_prog_[0-9a-f]+_opd_late$", MIN_SAMPLES, "a BPF program that came and went")
    require("/no-vmlinux" not in totals, "kernel code is nowhere: %s" % totals)
    if filter_pid is not None:
        check_filter(box, filter_pid, status)
    listed = box.opreport("-l", "-n", "--merge=all")
    for name in ("opd_early", "opd_late"):
        require(re.search(r"bpf_prog_[0-9a-f]+_%s$" % name, listed, re.MULTILINE),
                "opreport -l does not list %s:\n%s" % (name, listed))


def lose_records(box):
    """Of this CPU: more mappings of code than its side-band ring has room for, while opd stands."""
    before = sum(cpu["sideband_lost"] for cpu in box.status()["cpus"])
    pid = box.status()["pid"]
    os.kill(pid, signal.SIGSTOP)
    opdtest.wait_until(lambda: opdtest.is_stopped(pid), opdtest.HANG_SECONDS, "opd cannot be stopped")
    for _ in range(NR_LOST_MAPPINGS):
        mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_EXEC).close()
    return pid, before


def lost_programs(box):
    """One that is loaded while records are lost, and one that goes then: what lies there later is
    not it.
    """
    cpus = os.sched_getaffinity(0)
    early = load_program("opd_gone")
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel,thread")
    os.sched_setaffinity(0, {min(cpus)})
    try:
        pid, before = lose_records(box)
        os.close(early)
        lost = load_program("opd_lost", NR_OF_A_PAGE)
        os.kill(pid, signal.SIGCONT)
        opdtest.wait_until(lambda: sum(cpu["sideband_lost"] for cpu in box.status()["cpus"]) > before,
                           opdtest.HANG_SECONDS, "no record was lost")
        run_until_counted(box, lost, LOST_PROGRAM)
    finally:
        os.sched_setaffinity(0, cpus)
    filter_pid = run_filter_aside()
    os.close(lost)
    box.opcontrol("--stop")
    status = box.check_ledger()
    totals = image_totals(box, os.getpid())
    check_samples(totals, LOST_PROGRAM, MIN_SAMPLES, "a BPF program whose record was lost")
    require(not any("opd_gone" in name for name in totals), "a program that had gone: %s" % totals)
    if filter_pid is not None:
        check_filter(box, filter_pid, status, of_unknown_length=LOST_PROGRAM)


def idle_samples_of_perf(box):
    """Those that perf has of idle CPUs in a second."""
    path = os.path.join(box.dir, "idle.data")
    box.good("perf", "record", "-q", "-B", "-N", "-a", "-e", "cpu-clock", "-c", PERIOD_NS, "-o", path, "--", "sleep", "1")
    data = perf_swap.PerfData(path)
    at = 8 + sum(8 for bit in (perf_swap.IDENTIFIER, perf_swap.IP) if data.sample_type & bit)
    return sum(struct.unpack_from("<I", data.bytes, r.offset + at)[0] == 0 for r in data.records() if r.type == perf_swap.SAMPLE)


def apps_of_threads(box, event):
    """{thread: {application: samples}} of one event."""
    apps = {}
    for sample_file in box.files():
        if sample_file.name.tid is not None and sample_file.name.event == event:
            counts = apps.setdefault(sample_file.name.tid, {})
            counts[sample_file.name.app[1]] = counts.get(sample_file.name.app[1], 0) + sample_file.total
    return apps


def check_idle(box, nr_perf):
    """cpu-clock counts idle CPUs, TIMER does not. How often the timer of an idle CPU fires is the
    host's, and perf's is the same.
    """
    clock, timer = apps_of_threads(box, "cpu-clock"), apps_of_threads(box, "TIMER")
    found = clock.pop(0, {})
    nr_clock, nr_timer = (sum(sum(apps.values()) for apps in threads.values()) for threads in (clock, timer))
    print("idle: %s, %d of perf in a part of the time; busy: %d samples of cpu-clock, %d of TIMER" % (found, nr_perf,
            nr_clock, nr_timer))
    require(set(found) <= {KERNEL}, "an idle CPU is filed under %s" % sorted(found))
    require(0 not in timer, "TIMER has samples of idle CPUs")
    require(nr_clock <= 1.25 * nr_timer + MIN_SAMPLES,
            "%d samples of cpu-clock have a thread, %d of TIMER: of idle CPUs?" % (nr_clock, nr_timer))
    if nr_perf >= MIN_SAMPLES:
        require(found.get(KERNEL, 0) >= 0.5 * nr_perf, "idle CPUs have %s samples, and perf has counted %d" % (found, nr_perf))
    else:
        print("idle CPUs were not looked at: this host has had none in %d s" % BUSY_SECONDS)


def kernel_threads(box):
    """Idle CPUs have no application: their samples belong to the kernel. Kernel threads have that of
    their kind. A thread that goes to sleep is a context switch.
    """
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--event=cpu-clock:%d" % PERIOD_NS, "--event=context-switches:%d" % SWITCHES,
                     "--separate=library,kernel,thread")
    nr_perf, nr_seconds = idle_samples_of_perf(box), 1
    while nr_perf < MIN_SAMPLES and nr_seconds < BUSY_SECONDS:
        nr_perf, nr_seconds = nr_perf + idle_samples_of_perf(box), nr_seconds + 1
    box.opcontrol("--stop")
    box.check_ledger()
    check_idle(box, nr_perf)
    apps = apps_of_threads(box, "context-switches")
    threads = [int(p) for p in os.listdir("/proc") if p.isdigit() and not os.path.exists("/proc/%s/exe" % p)
               and opdtest.is_alive(int(p))]
    seen = [tid for tid in threads if tid in apps]
    print("%d of %d kernel threads have samples" % (len(seen), len(threads)))
    require(seen, "no kernel thread has samples: %s" % sorted(apps))
    for tid in seen:
        with open("/proc/%d/comm" % tid, encoding="ascii", errors="replace") as stream:
            own = "/" + kind_of(stream.read().rstrip("\n"))
        require(set(apps[tid]) == {own}, "kernel thread %d, %s, is filed under %s" % (tid, own, apps[tid]))


def write_file(path, text):
    with open(path, "w", encoding="ascii") as stream:
        stream.write(text)


def play(box, content, place):
    """From now on opd is started where the file at `place` is this."""
    path, wrapper = os.path.join(box.dir, "played"), os.path.join(box.dir, "opd-elsewhere")
    with open(path, "wb") as stream:
        stream.write(content)
    if box.run_as == "unit":
        box.unit_lines = ["BindReadOnlyPaths=%s:%s" % (path, place)]
        return
    write_file(wrapper + ".inner", '#!/bin/sh\nset -e\nmount --bind %s %s\nexec %s "$@"\n' % (path, place, box.launcher))
    write_file(wrapper, '#!/bin/sh\nexec unshare --mount sh %s.inner "$@"\n' % wrapper)
    os.chmod(wrapper, 0o755)
    box.env["OPD_DAEMON"] = wrapper


def play_no_more(box):
    box.unit_lines, box.env["OPD_DAEMON"] = [], box.launcher


def hidden_addresses(box):
    """One line says that kernel samples have no symbols, and why."""
    play(box, b"0000000000000000 T _text\n0000000000000000 T _etext\n", "/proc/kallsyms")
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel")
    box.good(box.copy_work("kernel-app"), "kernel", 500)
    end(box)
    check_samples(image_totals(box), "^/no-vmlinux$", MIN_SAMPLES, "kernel code without symbols")
    (event,) = box.status()["events"]
    nowhere = sum(f.total for f in box.files() if f.name.image[1] in ("/no-process", "/no-mapping"))
    require(event["unattributed"] == nowhere,
            "%d samples are nowhere, while no-vmlinux is all of the kernel: %s" % (nowhere, event))
    for what, text in (("the log", box.log_text()), ("opcontrol --status", box.opcontrol("--status")),
                       ("opreport", box.run(os.path.join(box.bin, "opreport"), "--session-dir=" + box.session, "-l").err)):
        lines = [line for line in text.splitlines() if "kptr_restrict" in line]
        require(len(lines) == 1, "%s has %d lines about hidden addresses:\n%s" % (what, len(lines), text))
    box.shutdown()


def kernel_build_id():
    """The build-id in /sys/kernel/notes; None when there is none."""
    try:
        with open(NOTES, "rb") as stream:
            notes = stream.read()
    except OSError:
        return None
    at = notes.find(struct.pack("<III4s", 4, 20, 3, b"GNU"))
    return notes[at + 16:at + 36].hex() if at >= 0 else None


def another_kernel(box):
    """The machine boots another kernel, and the session goes on: two images, and no sample of one
    kernel gets a symbol of the other.
    """
    running = kernel_build_id()
    if running is None:
        print("SKIP of another kernel: the running one says no build-id")
        return
    before = "5a" * 20
    play(box, struct.pack("<III4s", 4, 20, 3, b"GNU") + bytes.fromhex(before), NOTES)
    app = box.copy_work("kernel-app")
    for _ in ("before", "now"):
        box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel")
        box.good(app, "kernel", 300)
        box.opcontrol("--stop")
        box.check_ledger(with_files=False)
        box.check_agreement()
        box.shutdown()
        play_no_more(box)
    totals = image_totals(box)
    check_samples(totals, "^/proc/kallsyms$", MIN_SAMPLES, "the kernel before")
    check_samples(totals, r"^/proc/kallsyms \(build-id %s\)$" % running[:12], MIN_SAMPLES, "the running kernel")
    listed = box.run(os.path.join(box.bin, "opreport"), "--session-dir=" + box.session, "-l", "-n")
    wanted = "the kernel of the session has build-id %s, the running one %s: " % (before, running) + \
        "the samples of /proc/kallsyms are one symbol."
    require(sum(wanted in line for line in listed.err.splitlines()) == 1, "no line says that it is another kernel: %s" % listed.err)
    rows = [line.split(None, 4) for line in listed.out.splitlines() if line.split()[2:3] == ["kallsyms"]]
    images = {}
    for count, name in [(int(row[0]), " ".join(row[2:])) for row in rows if row[0].isdigit()]:
        images.setdefault("build-id" in name, []).append((count, name))
    require(len(images[True]) > 1, "the running kernel has no symbols: %s" % listed.out)
    require(all(name.split()[-1].endswith("kallsyms") for _, name in images[False]),
            "symbols for samples of another kernel: %s" % images[False])
    shown = box.opreport("--images", "-f")
    require(re.search(before + r" +replaced +/proc/kallsyms", shown) and re.search(running + r" +symbols +/proc/kallsyms", shown),
            "opreport --images: %s" % shown)


def test(box):
    if platform.machine() not in SYS_BPF:
        raise Skip("the number of bpf() on this machine is not known to the tests")
    if not any(line.split()[0].strip("0") for line in kallsyms()[:10]):
        raise Skip("kernel.kptr_restrict hides addresses on this host")
    box.configure(RingSize="1M")
    bpf_programs(box)
    anew(box)
    box.configure(RingSize="1M", SidebandSize="16K")
    lost_programs(box)
    box.configure(RingSize="1M")
    if opdtest.sees_all_processes():
        anew(box)
        kernel_threads(box)
    anew(box)
    another_kernel(box)
    shutil.rmtree(box.session)
    os.truncate(box.log, 0)
    hidden_addresses(box)


if __name__ == "__main__":
    opdtest.run(test)
