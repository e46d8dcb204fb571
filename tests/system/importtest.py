# SPDX-License-Identifier: GPL-3.0-or-later
"""
What the tests of opimport share: recordings of perf and their counts, directories made of them, and
made-up files of perf.data.
"""
import collections
import os
import re
import shutil
import struct
import subprocess

import opdtest
import perf_swap
import reader
from opdtest import require

WORK = "timeout {} sh -c 'while :; do ls -R /usr/lib >/dev/null; python3 -c \"sum(range(300000))\"; done'; true"
WORK_S = 0.5
EVENTS = ("-e", "cpu-clock/period=50000,name=cpu-clock/", "-e", "page-faults/period=1,name=page-faults/")
PERF_ENV = {"PERF_CONFIG": "/dev/null"}
UNATTRIBUTED = ("no-mapping", "no-process", "no-vmlinux", "no-mode")
EVENT_LINE = re.compile(r"# Samples: \S+ +of event '(.*)'")
COUNT_LINE = re.compile(r"\s*[\d.]+%\s+(\d+)\s+(\S.*?)\s*$")
LEDGER_LINE = re.compile(r"^(\S+):(\d+) received (\d+), stored (\d+)(.*)$", re.MULTILINE)

ATTR, ROUND, HEADER, FEATURE = 64, 68, 16, 80
BUILD_ID, HOSTNAME, OSRELEASE, ARCH, DIR_FORMAT = 2, 3, 4, 6, 24  # features
HAS_SIZE = 1 << 15
KERNEL, USER = 1, 2
MMAP, COMM, FORK = perf_swap.MMAP, perf_swap.COMM, perf_swap.FORK
KERNEL_TYPES = set(perf_swap.BODIES) - {perf_swap.KSYMBOL} | {perf_swap.SAMPLE}  # the trailer of KSYMBOL is not always at its end
IP, TID, TIME = perf_swap.IP, perf_swap.TID, perf_swap.TIME
SAMPLE_TYPE, WITH_CHAIN = IP | TID | TIME | perf_swap.ID, 32
PLAIN, CHAINED = 71, 72
PID, IMAGE = 4711, 0x400000
START, BYTES, AT = 0x400000, 0x100000, 0x1000
KERNEL_START = 0xffffffff81000000
PERIOD, SECOND = 1000000, 1000000000
EMPTY = (5, 7, 9, 11, 12, 16, 24, 27, 30)  # sections without contents, which are no damage


def needs_perf():
    opdtest.needs_perf()
    if not shutil.which("perf"):
        raise opdtest.Skip("perf is not installed (Debian: linux-perf)")
    if not opdtest.sees_all_processes():
        raise opdtest.Skip("in a pid name space, perf gives all processes outside of it one number")


def record(box, path, *more, seconds=WORK_S, events=EVENTS):
    box.good("perf", "record", "-q", "-B", "-a", *events, *more, "-o", path, "--", "sh", "-c", WORK.format(seconds), env=PERF_ENV)


def opimport(box, *args, stdin=None):
    command = [os.path.join(box.bin, "opimport"), *[str(a) for a in args]]
    done = subprocess.run(command, env=box.env, stdin=stdin or subprocess.DEVNULL, capture_output=True,
                          timeout=opdtest.CALL_SECONDS,
                          check=False)
    out, err = done.stdout.decode(), done.stderr.decode()
    require(not any(w in err for w in opdtest.SANITIZER_WORDS), err)
    return opdtest.Result(done.returncode, out, err)


def imported(box, name, *args, stdin=None):
    """An import that must succeed; what it printed."""
    result = opimport(box, "--session-dir=" + box.session, "-o", name, *args, stdin=stdin)
    require(result.rc == 0, "opimport %s: exit code %d: %s" % (name, result.rc, result.err))
    return result.out


def image_name(name):
    """As perf shows an image; what opd files under several names of one image is one."""
    kind, text = name[:2]
    text = re.sub(r" \((build-id|inode|deleted|tgid|range).*", "", os.path.basename(text))
    if kind == "kern" and text in UNATTRIBUTED:
        return "[unknown]"
    if text == "kallsyms":
        return "[kernel.kallsyms]"
    return "//anon" if text in ("anon", "[heap]", "[stack]") else text


def counts_of_session(box, name):
    counts = collections.defaultdict(collections.Counter)
    for sample_file in reader.read_session(box.session, name, strict=True):
        counts[sample_file.name.event][image_name(sample_file.name.image)] += sample_file.total
    return counts


def counts_of_perf(box, path):
    """What perf report says, and how many records it found out of order."""
    result = box.run("perf", "report", "-i", path, "--sort", "dso", "-n", "--stdio", env=PERF_ENV)
    if result.rc != 0:
        raise opdtest.Skip("perf report does not read what perf record wrote: %s" % result.err[-200:])
    counts, event = collections.defaultdict(collections.Counter), None
    for line in result.out.splitlines():
        found = EVENT_LINE.match(line)
        event = found.group(1) if found else event
        found = COUNT_LINE.match(line)
        if found:
            name = found.group(2).replace(" (deleted)", "")
            counts[event][re.sub(r"^(\[JIT\] tid.*|anon)$", "//anon", name)] += int(found.group(1))
    disorder = re.search(r"(\d+) out of order events recorded", result.out + result.err)
    return counts, int(disorder.group(1)) if disorder else 0


def compare(ours, theirs, tolerance, what):
    for event, images in theirs.items():
        require(sum(ours[event].values()) == sum(images.values()),
                "%s, %s: %d samples, not %d" % (what, event, sum(ours[event].values()), sum(images.values())))
        wrong = {name: (ours[event][name], images[name]) for name in set(ours[event]) | set(images)
                 if ours[event][name] != images[name]}
        moved = sum(max(0, a - b) for a, b in wrong.values())
        require(moved <= tolerance, "%s, %s: opd and perf disagree on %d samples (%d records are out of order): %s" %
                (what, event, moved, tolerance, wrong))
        print("%s, %s: %d samples in %d images, %d differ" % (what, event, sum(images.values()), len(images), moved))


def check_ledger(out, counts):
    found = {match[0]: match for match in LEDGER_LINE.findall(out)}
    for event, images in counts.items():
        stored = int(found[event][3])
        require(stored == sum(images.values()), "the ledger says %d stored of %s, the files have %d" %
                (stored, event, sum(images.values())))
        require(found[event][2] == found[event][3], "not everything of %s is stored: %s" % (event, found[event]))


def stored(out):
    """All samples, of every event, of what opimport printed."""
    return sum(int(match[3]) for match in LEDGER_LINE.findall(out))


# ---- directories ----

def offset_of(shapes, wanted, sample_type):
    """Where the field of a bit begins."""
    at = 0
    for bit, shape in shapes:
        if bit == wanted:
            return at
        at += sum(perf_swap.SIZES[c] for c in shape) if sample_type & bit else 0
    raise ValueError(wanted)


class CpuAndTime:
    """Where the records that the kernel wrote have them."""

    def __init__(self, data):
        self.bytes, self.trailer = data.bytes, sum(perf_swap.SIZES[c] for c in data.trailer())
        self.in_samples, self.in_trailers = ([offset_of(shapes, bit, data.sample_type) for bit in (perf_swap.CPU, TIME)]
                                             for shapes in (perf_swap.SAMPLE_WORDS, perf_swap.TRAILER_WORDS))

    def of(self, r):
        start, places = r.offset + r.size - self.trailer, self.in_trailers
        if r.type == perf_swap.SAMPLE:
            start, places = r.offset + 8, self.in_samples
        cpu, = struct.unpack_from("<I", self.bytes, start + places[0])
        time, = struct.unpack_from("<Q", self.bytes, start + places[1])
        return cpu, time


def split(data, path):
    """The file as a directory: what perf made up in the first file, what the kernel wrote in one
    for each CPU. Where the samples of each end.
    """
    parts, ends, made_up, fields = {}, {}, bytearray(), CpuAndTime(data)
    for r in data.records():
        content = data.bytes[r.offset:r.offset + r.size]
        cpu, time = fields.of(r) if r.type in KERNEL_TYPES else (0, 0)
        if not time:
            made_up += content
            continue
        part = parts.setdefault(cpu, bytearray())
        part += content
        if r.type == perf_swap.SAMPLE:
            ends.setdefault(cpu, []).append(len(part))
    begin, end = data.data[0], sum(data.data)
    sections = [(number, bytes(data.bytes[at:at + size])) for number, (at, size) in data.features()] + [(DIR_FORMAT,
            struct.pack("<Q", 1))]
    place = begin + len(made_up) + 16 * len(sections)
    table, contents, bits = b"", b"", data.words[9]
    for number, content in sorted(sections):
        table += struct.pack("<QQ", place + len(contents), len(content))
        contents += content
        bits |= 1 << number
    header = bytearray(data.bytes[:begin])
    struct.pack_into("<Q", header, 6 * 8, len(made_up))
    struct.pack_into("<Q", header, 9 * 8, bits)
    require(end <= len(data.bytes), "the recording has no end")
    os.mkdir(path)
    for name, content in [("data", bytes(header) + made_up + table + contents)] + [("data.%d" % cpu, parts[cpu])
            for cpu in sorted(parts)]:
        with open(os.path.join(path, name), "wb") as stream:
            stream.write(content)
    return ends


def mend(path):
    """A directory without the flag that makes perf abort."""
    first = perf_swap.PerfData(os.path.join(path, "data"))
    for name in os.listdir(path):
        data = first if name == "data" else first.part(os.path.join(path, name))
        data.mend_flags()
        data.write(os.path.join(path, name))


# ---- records of several events, with identifiers ----

def put(kind, misc, body):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def put_attr(identifier, more):
    flags = 1 << 8 | 1 << 9 | 1 << 18  # mmap, comm, sample_id_all
    attr = struct.pack("<IIQQQQQ", 1, 112, 0 if more else 1, 1000000, SAMPLE_TYPE | more, 0, flags).ljust(112, b"\0")
    return put(ATTR, 0, attr + struct.pack("<Q", identifier))


def put_mapping(name="/no/such/app", time=1):
    body = struct.pack("<IIQQQ", PID, PID, IMAGE, 0x10000, 0) + name.encode().ljust(16, b"\0")
    return put(perf_swap.MMAP, USER, body + struct.pack("<IIQQ", PID, PID, time, PLAIN))


def put_sample(identifier, time, chain=None):
    body = struct.pack("<QIIQQ", IMAGE + 0x100, PID, PID, time, identifier)
    return put(perf_swap.SAMPLE, USER, body + (struct.pack("<%dQ" % (1 + len(chain)), len(chain), *chain)
                                               if chain is not None else b""))


def put_feature(number, text):
    """A feature that is a text."""
    return put(FEATURE, 0, struct.pack("<QI", number, 64) + text.encode().ljust(64, b"\0"))


def map_of(misc, pid, start, offset, name):
    text = name.encode() + b"\0"
    body = struct.pack("<iiQQQ", pid, pid, start, 0x100000, offset) + text + bytes(-len(text) % 8)
    return put(perf_swap.MMAP, misc, body + struct.pack("<IIQQ", PID, PID, 1, PLAIN))


def import_stream(box, name, records):
    path = os.path.join(box.dir, name + ".data")
    with open(path, "wb") as out:
        out.write(struct.pack("<8sQ", b"PERFILE2", 16) + records)
    with open(path, "rb") as back:
        return opimport(box, "--session-dir=" + box.session, "-o", name, stdin=back)


def totals(box, name):
    """Samples and calls of each event."""
    samples, calls = {}, {}
    for f in reader.read_session(box.session, name, strict=True):
        into = calls if f.name.callee else samples
        into[f.name.event] = into.get(f.name.event, 0) + f.total
    return samples, calls


def known_id(name, digits):
    """An entry of the list of build-ids."""
    text = name.encode() + b"\0"
    text += bytes(-len(text) % 8)
    return struct.pack("<IHH", 0, HAS_SIZE, 36 + len(text)) + struct.pack("<i", -1) + bytes.fromhex(digits).ljust(20, b"\0") + \
        struct.pack("<Bxxx", len(digits) // 2) + text


def file_of(records, ids):
    """A file of one event and a list of build-ids."""
    attr = struct.pack("<IIQQQQQ", 1, 112, 0, 1000000, SAMPLE_TYPE, 0, 1 << 8 | 1 << 18).ljust(112,
            b"\0") + struct.pack("<QQ", 104, 8)
    at = 104 + 8 + len(attr)
    header = struct.pack("<8s8Q4Q", b"PERFILE2", 104, len(attr), 112, len(attr), at, len(records), 0, 0, 1 << BUILD_ID, 0, 0, 0)
    table = struct.pack("<QQ", at + len(records) + 16, len(ids))
    return header + struct.pack("<Q", PLAIN) + attr + records + table + ids


# ---- records of one event ----

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
