#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
The header of every kind of sample file, field by field and byte by byte: what the running daemon
writes, and what opimport makes of a made-up perf.data, in
which there are modules on every host. Without --callgraph there are no call graph files; nothing
here may have the fields that are theirs.
"""
import os
import re
import struct

import opdtest
from hot import compile_to
from opdtest import reader, require

PERIOD_NS = 100000
RAW = struct.Struct("<4sIIIIIIIdQIIQQ")  # oprofile 1.x, 72 bytes
CPU_CLOCK = 0x201  # opd's own number of that event
KERNEL, USER, PID = 1, 2, 4242
KERNEL_START, MODULE_START, USER_START, ANON_START = 0xffffffff81000000, 0xffffffffc0000000, 0x400000, 0x7f0000000000
IN_KERNEL, IN_PROGRAM = (1 << 64) - 128, (1 << 64) - 512
CHAIN = (IN_KERNEL, MODULE_START + 0x50, KERNEL_START + 0x60, IN_PROGRAM, ANON_START + 0x70, USER_START + 0x80, ANON_START + 0x90)


def raw_header(session, name, path):
    with open(os.path.join(session, "samples", name, path), "rb") as stream:
        return RAW.unpack(stream.read(RAW.size))


def expected(event, is_kernel=0, mtime=0, anon_start=0, mhz=0.0, to_kernel=0, to_anon=0):
    number, unit_mask, count = event
    return (b"DAE\n", 0x13, 4, number, unit_mask, count, is_kernel, 0, mhz, mtime, to_kernel, 0, anon_start, to_anon)


def check(session, name, files, wanted, what):
    """Every file of an image has the same header but for the event."""
    require(files, "%s: there is no file" % what)
    for f in files:
        found = raw_header(session, name, f.path)
        require(found == wanted, "%s: %s: the header is\n%s, not\n%s" % (what, f.path, found, wanted))
    print("%s: %d files" % (what, len(files)))


# ---- what the daemon writes ----

def cpu_mhz():
    """As the kernel says it: the highest frequency, else that of now, which changes."""
    try:
        with open("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", encoding="ascii") as stream:
            return int(stream.read()) / 1000
    except OSError:
        return None


def of_image(files, name, kind="root"):
    return [f for f in files if f.name.image[0] == kind and f.name.image[1].split(" (tgid:")[0] == name]


def check_live(box):
    app, jit = box.copy_work("header-app"), os.path.join(box.dir, "header-jit")
    compile_to(box, jit)
    os.utime(app, (1234567890, 1234567890.75))
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel")
    box.good(app, "spin", 300)
    box.good(jit, "memory", 300)
    box.shutdown()
    files = box.files()
    event, mhz = (0, 0, PERIOD_NS), cpu_mhz()
    if mhz is None:
        mhz = raw_header(box.session, "current", files[0].path)[8]
        require(0 < mhz < 20000, "a CPU of %f MHz" % mhz)
    check(box.session, "current", of_image(files, app), expected(event, mtime=1234567890, mhz=mhz), "a program")
    libc = [f for f in files if re.match(r"^(/usr)?/lib.*/libc\.so\.6$", f.name.image[1])]
    for path in {f.name.image[1] for f in libc}:
        check(box.session, "current", of_image(libc, path), expected(event, mtime=int(os.stat(path).st_mtime), mhz=mhz), path)
    check(box.session, "current", of_image(files, "/proc/kallsyms"), expected(event, is_kernel=1, mhz=mhz), "the kernel")
    regions = [f for f in of_image(files, "anon", "anon") if f.name.app[1] == jit]
    require(regions, "memory without a file has no file of samples")
    for f in regions:
        start = int(f.name.image[1].rsplit("range:", 1)[1].split("-")[0], 16)
        require(start, "a region that begins nowhere")
        check(box.session, "current", [f], expected(event, anon_start=start, mhz=mhz), "memory of the program")
    require(not any(f.name.callee for f in files), "a call graph file")


# ---- what opimport makes of a perf.data ----

def record(kind, misc, body):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def id_of(pid, time_ns):
    return struct.pack("<IIQII", pid & 0xffffffff, pid & 0xffffffff, time_ns, 0, 0)


def mapping(misc, pid, start, length, offset, name):
    text = name.encode() + b"\0"
    body = struct.pack("<IIQQQ", pid & 0xffffffff, pid & 0xffffffff, start, length,
                       offset) + text.ljust(-(-len(text) // 8) * 8, b"\0")
    return record(1, misc, body + id_of(pid, 1))


def sample(misc, ip, time_ns, chain=()):
    return record(9, misc, struct.pack("<QIIQII", ip, PID, PID, time_ns, 0,
                                       0) + (struct.pack("<%dQ" % (1 + len(chain)), len(chain), *chain)))


def perf_data():
    """A software clock, one process, and a sample in each kind of image."""
    flags = 1 << 8 | 1 << 9 | 1 << 18  # mmap, comm, sample_id_all
    attr = struct.pack("<IIQQQQQ", 1, 112, 0, PERIOD_NS, 1 | 2 | 4 | 32 | 128, 0, flags).ljust(112,
            b"\0") + struct.pack("<QQ", 0, 0)
    records = mapping(KERNEL, -1, KERNEL_START, 0x1000000, KERNEL_START, "[kernel.kallsyms]_text")
    records += mapping(KERNEL, -1, MODULE_START, 0x10000, 0, "/lib/modules/6.18/kernel/fs/ext4/ext4.ko")
    records += record(3, USER, struct.pack("<II16s", PID, PID, b"app") + id_of(PID, 1))
    records += mapping(USER, PID, USER_START, 0x10000, 0, "/usr/bin/made-up")
    records += mapping(USER, PID, ANON_START, 0x10000, 0, "//anon")
    for at, (misc, start) in enumerate([(KERNEL, KERNEL_START), (KERNEL, MODULE_START), (USER, USER_START), (USER, ANON_START)]):
        records += sample(misc, start + 0x40, 10 + at)
    records += sample(KERNEL, MODULE_START + 0x50, 20, CHAIN)
    offset = 104 + len(attr)
    return struct.pack("<8sQQQQQQQQ", b"PERFILE2", 104, len(attr), 104, len(attr), offset, len(records), 0,
                       0) + bytes(32) + attr + records


def check_import(box):
    path = os.path.join(box.dir, "made-up.data")
    with open(path, "wb") as stream:
        stream.write(perf_data())
    print(box.good(os.path.join(box.bin, "opimport"), "--session-dir=" + box.session, "--output=made-up", path))
    files = reader.read_session(box.session, "made-up", strict=True)
    calls = {(f.name.image[1].split(" (tgid:")[0], f.name.callee[1].split(" (tgid:")[0]): f for f in files if f.name.callee}
    files = [f for f in files if not f.name.callee]
    found = {}
    for f in files:
        found.setdefault(f.name.image[1].split(" (tgid:")[0], []).append(f)
    print(sorted(found))
    event = (CPU_CLOCK, 0, PERIOD_NS)
    check(box.session, "made-up", found.get("/usr/bin/made-up"), expected(event), "a program")
    check(box.session, "made-up", found.get("anon"), expected(event, anon_start=ANON_START), "memory without a file")
    check(box.session, "made-up", found.get("/ext4"), expected(event, is_kernel=1), "a module")
    check(box.session, "made-up", found.get("/[kernel.kallsyms]"), expected(event, is_kernel=1), "the kernel")
    require(sum(f.total for f in files) == 5, "%d samples" % sum(f.total for f in files))
    # The kernel interrupted anon: its instruction goes on behind the first byte
    # (pipeline/stacks/frames.c).
    for ends, key, header in ((("/[kernel.kallsyms]", "/ext4"), 0x60 << 32 | 0x50, expected(event, is_kernel=1, to_kernel=1)),
                              (("anon", "/[kernel.kallsyms]"), 0x71 << 32 | 0x60,
                               expected(event, anon_start=ANON_START, to_kernel=1)),
                              (("/usr/bin/made-up", "anon"), 0x80 << 32 | 0x71, expected(event, to_anon=ANON_START)),
                              (("anon", "/usr/bin/made-up"), 0x90 << 32 | 0x80, expected(event, anon_start=ANON_START))):
        require(ends in calls, "no calls from %s to %s: %s" % (ends + (sorted(calls),)))
        check(box.session, "made-up", [calls[ends]], header, "calls from %s to %s" % ends)
        require(calls[ends].keys == {key: 1}, "calls from %s to %s: %s" % (ends + (calls[ends].keys,)))
    require(len(calls) == 4, "callgraph files: %s" % sorted(calls))


def test(box):
    check_import(box)
    check_live(box)


if __name__ == "__main__":
    opdtest.run(test)
