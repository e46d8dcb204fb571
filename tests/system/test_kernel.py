#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Kernel code that is not in the kernel's own text: BPF programs that were there before opd and that come and go while it runs; kernel threads and
idle CPUs; a session that goes on under another kernel; and addresses that are hidden, which the log, --status and opreport say. For these opd
gets a mount name space of its own, in which /sys/kernel/notes and /proc/kallsyms are files of the test. Modules have their unit test, test_kernel_map.
"""
import ctypes
import os
import platform
import re
import shutil
import struct
import time

import opdtest
from opdtest import Skip, require

SYS_BPF = {"x86_64": 321, "aarch64": 280}
BPF_PROG_LOAD, BPF_PROG_TEST_RUN = 5, 10
SOCKET_FILTER = 1
NR_INSTRUCTIONS = 3000
RUN_SECONDS = 0.7
PERIOD_NS = 200000
MIN_SAMPLES = 200
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


def load_program(name):
    """A long program without a loop: r0 = r0 * 3 + 1, many times. A descriptor; the program goes with it."""
    code = struct.pack("<BBhi", 0xb7, 0, 0, 1)
    code += (struct.pack("<BBhi", 0x27, 0, 0, 3) + struct.pack("<BBhi", 0x07, 0, 0, 1)) * (NR_INSTRUCTIONS // 2)
    code += struct.pack("<BBhi", 0x95, 0, 0, 0)
    code_buffer, licence = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(b"GPL")
    attr = struct.pack("<IIQQIIQII16s", SOCKET_FILTER, len(code) // 8, ctypes.addressof(code_buffer), ctypes.addressof(licence), 0, 0, 0, 0, 0,
                       name.encode())
    try:
        return bpf(BPF_PROG_LOAD, attr)
    except OSError as error:
        raise Skip("a BPF program cannot be loaded: %s" % error) from error


def run_program(program):
    """Runs the program in the kernel, as this process, for a while of its CPU time."""
    data = ctypes.create_string_buffer(64)
    end = time.process_time() + RUN_SECONDS
    while time.process_time() < end:
        bpf(BPF_PROG_TEST_RUN, struct.pack("<IIIIQQII", program, 0, len(data), 0, ctypes.addressof(data), 0, 1000, 0).ljust(80, b"\0"))


def kallsyms():
    with open("/proc/kallsyms", encoding="ascii", errors="replace") as stream:
        return stream.readlines()


def image_totals(box, tgid=None):
    """{image: samples} of kernel samples, of one process or of all."""
    totals = {}
    for sample_file in box.files():
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


def bpf_programs(box):
    """
    One from before opd, one that comes and goes while it runs. Only this process is looked at: seccomp filters of others are run-time code, too,
    of which the kernel tells nobody. Another profiler hears of the programs before opd does, which makes the kernel's records longer than what is in them.
    """
    early = load_program("opd_early")
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel,thread")
    others = [opdtest.open_event(PERF_COUNT_SW_DUMMY, 0, TID_AND_TIME, cpu, False, WITH_KSYMBOL) for cpu in os.sched_getaffinity(0)]
    require(None not in others, "cannot open an event of another profiler")
    late = load_program("opd_late")
    run_program(early)
    run_program(late)
    for descriptor in [late, early] + others:
        os.close(descriptor)
    box.opcontrol("--stop")
    box.check_ledger()
    totals = image_totals(box, os.getpid())
    check_samples(totals, "^/bpf_prog_[0-9a-f]+_opd_early$", MIN_SAMPLES, "a BPF program from before opd")
    check_samples(totals, "^/bpf_prog_[0-9a-f]+_opd_late$", MIN_SAMPLES, "a BPF program that came and went")
    require("/no-vmlinux" not in totals, "kernel code is nowhere: %s" % totals)
    listed = box.opreport("-l", "-n", "--merge=all")
    for name in ("opd_early", "opd_late"):
        require(re.search(r"bpf_prog_[0-9a-f]+_%s$" % name, listed, re.MULTILINE), "opreport -l does not list %s:\n%s" % (name, listed))


def kernel_threads(box):
    """Idle CPUs and kernel threads have no application: their samples are the kernel's own."""
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel,thread")
    time.sleep(1)
    box.opcontrol("--stop")
    box.check_ledger()
    apps = {}
    for sample_file in box.files():
        if sample_file.name.tid is not None:
            apps.setdefault(sample_file.name.tid, set()).add(sample_file.name.app[1])
    require(apps.get(0, {"/proc/kallsyms"}) == {"/proc/kallsyms"}, "an idle CPU is filed under %s" % apps.get(0))
    threads = [int(p) for p in os.listdir("/proc") if p.isdigit() and not os.path.exists("/proc/%s/exe" % p) and opdtest.is_alive(int(p))]
    seen = [tid for tid in threads if tid in apps]
    print("%d kernel threads have samples" % len(seen))
    for tid in seen:
        require(apps[tid] <= {"/proc/kallsyms"}, "kernel thread %d is filed under %s" % (tid, apps[tid]))


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
    """The machine is started with another kernel, and the session goes on: two images, and no symbol of one kernel for samples of the other."""
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
    wanted = "the kernel of the session has build-id %s, the running one %s: the samples of /proc/kallsyms are one symbol." % (before, running)
    require(sum(wanted in line for line in listed.err.splitlines()) == 1, "no line says that it is another kernel: %s" % listed.err)
    rows = [line.split(None, 4) for line in listed.out.splitlines() if "kallsyms" in line]
    images = {}
    for count, name in [(int(row[0]), " ".join(row[2:])) for row in rows if row[0].isdigit()]:
        images.setdefault("build-id" in name, []).append((count, name))
    require(len(images[True]) > 1, "the running kernel has no symbols: %s" % listed.out)
    require(all(name.split()[-1].endswith("kallsyms") for _, name in images[False]), "symbols for samples of another kernel: %s" % images[False])
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
