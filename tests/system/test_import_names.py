#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
What opimport is given by who wants to do harm, or by a machine that is not like this one: names
that no file has, numbers that no process has, the features of a 32-bit
machine of the other byte order; and what it leaves when it is killed. Sessions are read by an
independent reader, which takes no name that the format does not have.
"""
import json
import os
import shutil
import struct
import subprocess
import sys

import opdtest
import perf_swap
import reader
from opdtest import require
from test_import import opimport

sys.path.insert(0, os.path.join(os.environ.get("OPD_SOURCE", "."), "tests", "ibs"))
import ibsdata  # noqa: E402

SOUND, REPAIRED = 0, 1
IP, TID, TIME = 1, 2, 4
USER, KERNEL, MMAP, COMM, FORK = 2, 1, 1, 3, 7
START, BYTES, AT = 0x400000, 0x100000, 0x1000
KERNEL_START = 0xffffffff81000000
ATTR, HEADER = 64, 16
PERIOD = 1000000
BUILD_ID, HOSTNAME, OSRELEASE, ARCH = 2, 3, 4, 6
EMPTY = (5, 7, 9, 11, 12, 16, 24, 27, 30)  # sections without contents, which are no damage

NAMES = ("/", "//", "///", "/.", "/..", "/../../../../../../etc/passwd", "/a/../b", "/a//b/", "/{dep}",
         "/x/{dep}/{root}/y", "/{cg}/{kern}", "/{root}",
         "/a\nb\tc\\", "/" + "x" * 300 + "/y", "/y/" + "x" * 300, "/" + "x" * 300 + "/", "/" + "a/" * 1500 + "z",
         "/" + "../" * 500, "/bin/true (deleted)",
         "/(no path)", "/\x1b[31m", "", ".", "..", "../up", "[vdso]", "[a/b}]", "[..]", "//anon", "/y.jo", "/TIMER.1.0.all.all.all")
PARTS = ("[..]", "[.]", "[no-process]", "..", "/lib/a/..", "/", "[]", "[a/b]", "x" * 400, "[{dep}]", "[kernel.kallsyms]_text")
PIDS = (1, 0x7fffffff, 0x80000000, 0xfffffffe)


class Stream:
    """A perf.data as it comes through a pipe: one event, samples with address, process and time."""

    def __init__(self, flags=1 << 18):
        attr = struct.pack("<IIQQQQQ", 1, 112, 0, PERIOD, IP | TID | TIME, 0, flags).ljust(112, b"\0")
        self.bytes, self.time, self.nr_samples = struct.pack("<8sQ", b"PERFILE2", HEADER), 0, 0
        self.put(ATTR, 0, attr + struct.pack("<Q", 1))

    def put(self, kind, misc, body):
        body += bytes(-len(body) % 8)
        self.bytes += struct.pack("<IHH", kind, misc, 8 + len(body)) + body

    def tail(self, pid, is_made_up=False):
        """The process and the time; records that perf made up have none."""
        self.time += 1
        return struct.pack("<IIQ", pid, pid, 0 if is_made_up else self.time)

    def map(self, pid, start, name, misc=USER, is_made_up=False):
        text = name.encode() + b"\0"
        text += bytes(-len(text) % 8)
        self.put(MMAP, misc, struct.pack("<IIQQQ", pid, pid, start, BYTES, 0) + text + self.tail(pid, is_made_up))

    def sample(self, pid, address, misc=USER):
        self.put(perf_swap.SAMPLE, misc, struct.pack("<Q", address) + self.tail(pid))
        self.nr_samples += 1

    def fork(self, pid, parent):
        self.time += 1
        self.put(FORK, USER, struct.pack("<IIIIQ", pid, parent, pid, parent, self.time) + self.tail(pid))

    def name(self, pid, comm):
        text = comm.encode() + b"\0"
        self.put(COMM, USER, struct.pack("<II", pid, pid) + text + bytes(-len(text) % 8) + self.tail(pid))

    def save(self, box, name):
        path = os.path.join(box.dir, name + ".data")
        with open(path, "wb") as out:
            out.write(self.bytes)
        return path


def opcheck(box, name, code, *words):
    result = box.run(os.path.join(box.bin, "opcheck"), "--session-dir=" + box.session, "--json", *words, name)
    require(result.rc == code, "opcheck %s: exit code %d: %s%s" % (name, result.rc, result.out, result.err))
    return json.loads(result.out)["sessions"][0]


def check_session(box, name, nr_samples):
    """All of it is there, and can be read. Its rows of images."""
    files = reader.read_session(box.session, name, strict=True)
    require(sum(f.total for f in files) == nr_samples,
            "%d samples are in the files, not %d" % (sum(f.total for f in files), nr_samples))
    state = opcheck(box, name, SOUND)
    require(not state["problems"] and state["samples"] == nr_samples, "%s" % state)
    for words in ((), ("-l",), ("--images",)):
        result = box.run(os.path.join(box.bin, "opreport"), "--session-dir=" + box.session, "session:" + name, *words)
        require(result.rc == 0 and "passed over" not in result.err, "%s: %s" % (words, result.err))
    with open(os.path.join(box.session, "samples", name, "dcookies"), encoding="utf-8", newline="\n") as stream:
        return [line.split("\t") for line in stream.read().split("\n") if line[:1].isdigit()]


def check_names(box):
    for separate in ("library,kernel", "all"):
        stream, name = Stream(), "names-" + separate[:3]
        for number, image in enumerate(NAMES):
            stream.map(100 + number, START, image)
            for _ in range(3):
                stream.sample(100 + number, START + AT)
        for number, part in enumerate(PARTS):
            stream.map(0xffffffff, KERNEL_START + number * BYTES, part, KERNEL)
            stream.sample(7, KERNEL_START + number * BYTES + AT, KERNEL)
        for pid in PIDS:
            for start, image in ((START, "//anon"), (2 * START, "/"), (3 * START, "[x]")):
                stream.map(pid, start, image)
                stream.sample(pid, start + AT)
        result = opimport(box, "--session-dir=" + box.session, "-o", name, "--separate=" + separate, stream.save(box, name))
        require(result.rc == 0 and "lost_" not in result.out, "%d: %s%s" % (result.rc, result.out, result.err))
        rows = check_session(box, name, stream.nr_samples)
        without = [row[2] for row in rows if row[1] == "file" and not row[3].strip("/")]
        require(len(without) >= 3 and all(shown.startswith("/(no path)") for shown in without),
                "files without a path: %s" % without)


def check_kernel_threads(box):
    """Children of kthreadd that mapped nothing are kernel threads, by their kind. What only has such
    a name is none: a program, a process without one, and, in a container, whoever is the second
    process there.
    """
    for number, separate in enumerate(("library,kernel", "library,kernel,process-name")):
        for has_kthreadd in (True, False):
            stream, name = Stream(), "threads-%d-%d" % (number, has_kthreadd)
            stream.map(0xffffffff, KERNEL_START, "[kernel.kallsyms]_text", KERNEL)
            stream.name(2, "kthreadd")
            for pid, parent, comm in ((10, 2, "kworker/0:1"), (11, 2, "kworker/u8:2"), (20, 1, "kworker/0:3"),
                                      (21, 1, "[process]")):
                stream.fork(pid, parent)
                stream.name(pid, comm)
            for pid in (20,) if has_kthreadd else (2, 20):
                stream.map(pid, START, "/bin/true")
                stream.sample(pid, START + AT)
            for pid, nr in ((10, 3), (11, 4), (20, 5), (21, 6)):
                for _ in range(nr):
                    stream.sample(pid, KERNEL_START + AT, KERNEL)
            result = opimport(box, "--session-dir=" + box.session, "-o", name, "--separate=" + separate, stream.save(box, name))
            require(result.rc == 0 and "lost_" not in result.out, "%d: %s%s" % (result.rc, result.out, result.err))
            check_session(box, name, stream.nr_samples)
            found = {}
            for f in reader.read_session(box.session, name, strict=True):
                found[f.name.app[1]] = found.get(f.name.app[1], 0) + f.total
            threads = {app: n for app, n in found.items() if app.startswith("/[") and "kallsyms" not in app}
            require(threads == ({"/[kworker]": 7} if has_kthreadd else {}), "%s: %s" % (separate, found))
            liar = "/bin/true (kworker_0:3)" if number else "/bin/true"
            require(found.get(liar) == 6 if has_kthreadd else found.get(liar, 0) >= 6, "%s: %s" % (separate, found))


def check_earlier(box):
    """What opd 0.1 made of "/": reports show the rest with a warning, a repair keeps the samples.
    """
    stream = Stream()
    for pid, image, nr in ((100, "/", 3), (101, "/bin/true", 30)):
        stream.map(pid, START, image)
        for _ in range(nr):
            stream.sample(pid, START + AT)
    require(opimport(box, "--session-dir=" + box.session, "-o", "earlier", stream.save(box, "earlier")).rc == 0, "not imported")
    current = os.path.join(box.session, "samples", "earlier")
    inner = os.path.join("{root}", "(no path)", "{dep}", "{root}", "(no path)")
    event = os.listdir(os.path.join(current, inner))[0]
    os.makedirs(os.path.join(current, "{root}", "{dep}", "{root}"))
    os.rename(os.path.join(current, inner, event), os.path.join(current, "{root}", "{dep}", "{root}", event))
    shutil.rmtree(os.path.join(current, "{root}", "(no path)"))
    table = os.path.join(current, "dcookies")
    with open(table, encoding="utf-8") as lines:
        text = lines.read()
    with open(table, "w", encoding="utf-8") as lines:
        lines.write(text.replace("\t/(no path)\t", "\t\t"))
    result = box.run(os.path.join(box.bin, "opreport"), "--session-dir=" + box.session, "session:earlier")
    require(result.rc == 1 and "true" in result.out and "it is left out" in result.err
            and "3 samples of cpu-clock:1000000 are gone" in result.err and "%s" % event in result.err,
            "%d: %s%s" % (result.rc, result.out, result.err))
    opcheck(box, "earlier", 2)
    repaired = opcheck(box, "earlier", REPAIRED, "--repair")
    require(any(p["fault"] == "its image has no name" and p["detail"] == os.path.join(inner, event)
                for p in repaired["problems"]), "%s" % repaired)
    require(not os.path.exists(os.path.join(current, "damaged")), "something was put aside")
    files = reader.read_session(box.session, "earlier", strict=True)
    require({f.name.app[1]: f.total for f in files} == {"/(no path)": 3, "/bin/true": 30}, "%s" % files)
    require(opcheck(box, "earlier", SOUND)["samples"] == stream.nr_samples, "samples are gone")


# ---- the other byte order ----

def feature_text(text):
    content = text.encode() + b"\0"
    content += bytes(-len(content) % 64)
    return struct.pack(">I", len(content)) + content


def big_endian(path, wide, with_host=True):
    """A file of a machine of the other byte order whose longs have 64 bits, or 32. The build-id in
    it.
    """
    build_id, name = bytes(range(1, 21)), b"/usr/bin/busybox".ljust(64, b"\0")
    known = struct.pack(">IHH", 0, USER, 36 + len(name)) + struct.pack(">i", -1) + build_id + bytes(4) + name
    features = {BUILD_ID: known, HOSTNAME: feature_text("mips-box"), OSRELEASE: feature_text("4.19.0"), ARCH: feature_text("mips")}
    features.update({number: b"" for number in EMPTY})
    if not with_host:
        del features[HOSTNAME]
    attr = struct.pack(">IIQQQQQ", 1, 96, 0, PERIOD, IP | TID | TIME, 0, 1 << 63 - 18).ljust(96, b"\0") + struct.pack(">QQ", 0, 0)
    image = b"/usr/bin/busybox".ljust(24, b"\0")
    body = struct.pack(">IIQQQ", 77, 77, START, BYTES, 0) + image + struct.pack(">IIQ", 77, 77, 1)
    records = struct.pack(">IHH", MMAP, USER, 8 + len(body)) + body
    for i in range(10):
        records += struct.pack(">IHHQIIQ", perf_swap.SAMPLE, USER, 32, START + AT, 77, 77, 10 + i)
    begin = 104 + len(attr)
    at, table, contents = begin + len(records) + 16 * len(features), b"", b""
    for number in sorted(features):
        table += struct.pack(">QQ", at + len(contents), len(features[number]))
        contents += features[number]
    bits = sum(1 << number for number in features)
    with open(path, "wb") as out:
        out.write(b"2ELIFREP" + struct.pack(">8Q", 104, len(attr), 104, len(attr), begin, len(records), 0, 0))
        out.write((struct.pack(">Q", bits) if wide else struct.pack(">I", bits)).ljust(32, b"\0"))
        out.write(attr + records + table + contents)
    return build_id.hex()


def check_longs(box):
    """The features are bits of longs, and nothing says how long these are."""
    for wide in (True, False):
        name = "longs-%d" % wide
        path = os.path.join(box.dir, name + ".data")
        build_id = big_endian(path, wide)
        result = opimport(box, "--session-dir=" + box.session, "-o", name, path)
        require(result.rc == 0 and "taken on mips-box, Linux 4.19.0, mips" in result.out,
                "%d: %s%s" % (result.rc, result.out, result.err))
        require(any(row[6] == build_id for row in check_session(box, name, 10)), "the build-id is not in the table")
    path = os.path.join(box.dir, "hostless.data")
    build_id = big_endian(path, True, with_host=False)
    require(opimport(box, "--session-dir=" + box.session, "-o", "hostless", path).rc == 0, "not imported")
    require(any(row[6] == build_id for row in check_session(box, "hostless", 10)), "64 bits without a host are no longer read")


# ---- cycles are no samples ----

def check_cycles(box):
    """What opcheck calls samples is what the sampler took, not what was derived of it."""
    cpu = ibsdata.Cpu(0x19, 0x11, 0xbff)
    op = ibsdata.pack(cpu.caps, [ibsdata.OP_VAL | ibsdata.OP_EN, START + AT, 0xffffffff, 3,
                                 1 | 1 << 7 | 3 << 17 | 1 << 20 | 0xffff << 32, 0x7000, 0x1000, 0])
    path = os.path.join(box.dir, "cycles.data")
    ibsdata.write_perf_data(path, cpu, [ibsdata.Record(ibsdata.OP, op, "decoded", True)] * 70)
    require(opimport(box, "--session-dir=" + box.session, "-o", "cycles", path).rc == 0, "not imported")
    state = opcheck(box, "cycles", SOUND)
    require(state["samples"] == 70, "%s" % state)


# ---- what is left ----

def imports(box):
    return sorted(name for name in os.listdir(os.path.join(box.session, "tmp")) if name.startswith("import."))


def begin_import(box, name, stream):
    """An import that waits for more, and has its directory."""
    before = imports(box)
    command = [os.path.join(box.bin, "opimport"), "--session-dir=" + box.session, "-o", name, "-"]
    child = subprocess.Popen(command, env=box.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    box.children.append(child)
    child.stdin.write(stream.bytes)
    child.stdin.flush()

    def begun():
        return [name for name in set(imports(box)) - set(before) if os.path.isdir(os.path.join(box.session, "tmp",
                name, "samples", "current"))]
    opdtest.wait_until(begun, opdtest.HANG_SECONDS, "the import does not begin")
    return child, begun()[0]


def end_import(child):
    out, err = child.communicate(timeout=opdtest.HANG_SECONDS)
    require(child.returncode == 0, "%s%s" % (out, err))


def kill_import(box, stream):
    child, left = begin_import(box, "killed", stream)
    child.kill()
    child.communicate(timeout=opdtest.HANG_SECONDS)
    require(left in imports(box), "nothing is left")
    return left


def check_left(box):
    """The next one removes what a killed one left, and not what another one works in; a repair does
    as well.
    """
    stream = Stream()
    stream.map(100, START, "/bin/true")
    stream.sample(100, START + AT)
    stream.put(68, 0, b"")
    left = kill_import(box, stream)
    other, works = begin_import(box, "other", stream)
    require(left not in imports(box) and works in imports(box), "%s is left, or %s is not: %s" % (left, works, imports(box)))
    left = kill_import(box, stream)
    stranger = os.path.join(box.session, "tmp", "import.not-one")
    os.mkdir(stranger)
    result = opimport(box, "--session-dir=" + box.session, "-o", "next", stream.save(box, "next"))
    require(result.rc == 0 and "1 opimport that did not end in order" in result.err, "%d: %s" % (result.rc, result.err))
    require(imports(box) == sorted((works, "import.not-one")), "%s" % imports(box))
    left = kill_import(box, stream)
    found = opcheck(box, "next", REPAIRED, "--repair")
    require(any("opimport" in p["fault"] for p in found["problems"]) and left not in imports(box), "%s" % found)
    require(works in imports(box), "a repair takes away where an import works")
    end_import(other)
    check_session(box, "other", 1)
    os.rmdir(stranger)
    require(not imports(box), "%s" % imports(box))


def check_no_copy(box):
    """A file with a header through a pipe, and nowhere to copy it."""
    path = os.path.join(box.dir, "longs-1.data")
    words = (os.path.join(box.bin, "opimport"), "--session-dir=" + box.session, "-o", "none", "-")
    line = box.refused("sh", "-c", 'cat "$0" | "$@"', path, *words, env={"TMPDIR": "/nonexistent"})
    require("$TMPDIR" in line and line.endswith("No such file or directory"), line)


def test(box):
    check_names(box)
    check_kernel_threads(box)
    check_earlier(box)
    check_longs(box)
    check_cycles(box)
    check_left(box)
    check_no_copy(box)


if __name__ == "__main__":
    opdtest.run(test, opdtest.needs_root)
