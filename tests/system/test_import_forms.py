#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
The forms in which perf writes records, beside the plain file: a directory of perf record --threads,
with compressed records too, whole and with damaged or
missing files; streams whose events are told one after the other, with call chains or without; and
lists of build-ids, of images that are here and of others.
"""
import collections
import glob
import os
import re
import shutil
import struct
import subprocess

import elfsyms
import opdtest
import perf_swap
import reader
import test_import
from opdtest import require
from test_import import counts_of_session, imported, opimport

RECORDING = ("-e", "cpu-clock/period=200000,name=cpu-clock/")
DIR_FORMAT = 24
ATTR, ROUND = 64, 68
NOTE_BUILD_ID, BUILD_ID, HAS_SIZE = 3, 2, 1 << 15
HOSTNAME, OSRELEASE = 3, 4
FEATURE, PMU_MAPPINGS, IBS_TYPE, IBS_NAME = 80, 16, 11, struct.pack("<I8s", 8, b"ibs_op")
KERNEL, KERNEL_START = 1, 0xffffffff81000000
KERNEL_TYPES = set(perf_swap.BODIES) - {perf_swap.KSYMBOL} | {perf_swap.SAMPLE}  # the trailer of KSYMBOL is not always at its end
USER, PID, IMAGE = 2, 4711, 0x400000
SAMPLE_TYPE, WITH_CHAIN = 1 | 2 | 4 | 64, 32  # IP, TID, TIME, ID; CALLCHAIN
PLAIN, CHAINED = 71, 72
NR_ROUNDS, PER_ROUND, NR_IMAGES, MAX_FILES = 20, 500, 200, 50
NR_UNROUNDED, NR_MAPPED, NR_LATE = (1 << 20) + 100, 10000, 1000
SECOND, STEP = 1000000000, 1000


def record(box, path, *more):
    box.good("perf", "record", "-q", "-B", "-a", *RECORDING, *more, "-o", path, "--", "sh", "-c", test_import.WORK.format(1),
             env=test_import.PERF_ENV)


# ---- directories ----

def offset_of(shapes, wanted, sample_type):
    """Where the field of a bit begins."""
    at = 0
    for bit, shape in shapes:
        if bit == wanted:
            return at
        at += sum(perf_swap.SIZES[c] for c in shape) if sample_type & bit else 0
    raise ValueError(wanted)


def cpu_and_time(data, r):
    """Of a record that the kernel wrote."""
    shapes = perf_swap.SAMPLE_WORDS if r.type == perf_swap.SAMPLE else perf_swap.TRAILER_WORDS
    trailer = sum(perf_swap.SIZES[c] for c in data.trailer())
    start = r.offset + (8 if r.type == perf_swap.SAMPLE else r.size - trailer)
    cpu, = struct.unpack_from("<I", data.bytes, start + offset_of(shapes, perf_swap.CPU, data.sample_type))
    time, = struct.unpack_from("<Q", data.bytes, start + offset_of(shapes, perf_swap.TIME, data.sample_type))
    return cpu, time


def split(data, path):
    """The file as a directory: what perf made up in the first file, what the kernel wrote in one
    for each CPU. Where the samples of each end.
    """
    parts, ends, made_up = {}, {}, b""
    for r in data.records():
        content = bytes(data.bytes[r.offset:r.offset + r.size])
        cpu, time = cpu_and_time(data, r) if r.type in KERNEL_TYPES else (0, 0)
        if not time:
            made_up += content
            continue
        parts[cpu] = parts.get(cpu, b"") + content
        if r.type == perf_swap.SAMPLE:
            ends.setdefault(cpu, []).append(len(parts[cpu]))
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


def stored(out):
    return sum(int(match[3]) for match in test_import.LEDGER_LINE.findall(out))


def check_split(box):
    """The same records in one file and in a directory."""
    path, directory = os.path.join(box.dir, "plain.data"), os.path.join(box.dir, "split.data")
    record(box, path)
    data = perf_swap.PerfData(path)
    ends = split(data, directory)
    if sorted(ends) != list(range(max(2, len(ends)))):
        raise opdtest.Skip("CPUs that have samples: %s" % sorted(ends))
    imported(box, "plain", path)
    out = imported(box, "split", directory)
    ours = counts_of_session(box, "plain")
    require("a directory of %d files" % (len(ends) + 1) in out, out)
    require(stored(out) == sum(len(e) for e in ends.values()), "not all samples are stored: %s" % out)
    require(counts_of_session(box, "split") == ours, "a directory gives other counts than the file that it was made of")
    print("%d samples in a file and in a directory" % stored(out))
    return directory, ends


def check_one_cut(box, directory, ends):
    """What stands before the cut in one file is counted, and all of the others."""
    cpu = max(ends)
    cut = ends[cpu][len(ends[cpu]) // 2] - 3
    os.truncate(os.path.join(directory, "data.%d" % cpu), cut)
    result = opimport(box, "--session-dir=" + box.session, "-o", "cut", directory)
    require(result.rc == 1, "a file that is cut: exit code %d" % result.rc)
    told = re.search(r"split\.data/data\.%d: at byte (\d+): " % cpu, result.err)
    require(told and cut - 65536 < int(told[1]) < cut, result.err)
    wanted = sum(e <= cut for e in ends[cpu]) + sum(len(e) for c, e in ends.items() if c != cpu)
    require(stored(result.out) == wanted, "%d samples stored of %d" % (stored(result.out), wanted))


def check_missing(box, directory, ends):
    os.unlink(os.path.join(directory, "data.0"))
    result = opimport(box, "--session-dir=" + box.session, "-o", "missing", directory)
    require(result.rc == 1 and "data.0: at byte 0: it is not there" in result.err, "%d: %s" % (result.rc, result.err))
    require(0 < stored(result.out) <= sum(len(e) for c, e in ends.items() if c),
            "of the other files %d are stored" % stored(result.out))
    tool = os.path.join(box.bin, "opimport")
    line = box.refused(tool, "--session-dir=" + box.session, "-o", "part", os.path.join(directory, "data"))
    require("name the directory" in line, line)
    line = box.refused(tool, "--session-dir=" + box.session, "-o", "part", box.dir)
    require("no file data" in line, line)


def mend(path):
    """A flag that makes perf abort (test_import.py) is taken away where it can be."""
    first = perf_swap.PerfData(os.path.join(path, "data"))
    for name in os.listdir(path):
        data = first if name == "data" else first.part(os.path.join(path, name))
        data.mend_flags()
        data.write(os.path.join(path, name))


def check_threads(box, name, *more):
    """What perf record --threads wrote, against perf report, which does not read it always when
    there is another profiler.
    """
    path = os.path.join(box.dir, name + ".data")
    record(box, path, "--threads", *more)
    out = imported(box, name, path)
    require("a directory of" in out, "perf record --threads wrote no directory: %s" % out)
    require(not more or "compressed records" in out, out)
    ours = counts_of_session(box, name)
    test_import.check_ledger(out, ours)
    mend(path)
    try:
        theirs, disorder = test_import.counts_of_perf(box, path)
    except opdtest.Skip as why:
        print("%s is not compared: %s" % (name, why))
        return
    test_import.compare(ours, theirs, disorder, "perf report of a directory, " + name)


# ---- streams ----

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


def stream(box, name, records):
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


def check_stream(box):
    """Samples without a chain, then an event with chains and its samples, all in one round."""
    chain = (IMAGE + 0x100, IMAGE + 0x200, IMAGE + 0x300)
    records = put_attr(PLAIN, 0) + put_mapping() + b"".join(put_sample(PLAIN, 10 + i) for i in range(5))
    records += put_attr(CHAINED, WITH_CHAIN) + b"".join(put_sample(CHAINED, 20 + i, chain) for i in range(7))
    records += b"".join(put_sample(PLAIN, 30 + i) for i in range(4)) + put(ROUND, 0, b"") * 2
    result = stream(box, "chains", records)
    require(result.rc == 0, "%d: %s" % (result.rc, result.err))
    require("14 calls" in result.out, result.out)
    require("call chains that cannot be read" not in result.out, result.out)
    samples, calls = totals(box, "chains")
    require(sorted(samples.values()) == [7, 9] and list(calls.values()) == [14], "%s, calls %s" % (samples, calls))
    print("samples %s, calls %s" % (samples, calls))


def check_no_rounds(box):
    """More records than opimport holds back, and then a slightly older mapping: the samples after
    it belong to its file.
    """
    sample = struct.Struct("<IHHQIIQQ")
    samples = b"".join(sample.pack(perf_swap.SAMPLE, USER, sample.size, IMAGE + 0x100, PID, PID, time * STEP, PLAIN)
                       for time in range(1, NR_UNROUNDED + 1))
    mapping = put_mapping("/no/such/new", (NR_UNROUNDED - NR_MAPPED) * STEP)
    result = stream(box, "unrounded", put_attr(PLAIN, 0) + put_mapping() + samples + mapping)
    require(result.rc == 0, result.err)
    counts = sum(counts_of_session(box, "unrounded").values(), collections.Counter())
    require(counts == {"app": NR_UNROUNDED - NR_MAPPED - 1, "new": NR_MAPPED + 1}, "%s" % counts)
    check_late_mapping(box, samples, mapping=put_mapping("/no/such/new", NR_LATE * STEP))


def check_late_mapping(box, samples, mapping):
    """A file of a directory is in order, or it is told."""
    directory = os.path.join(box.dir, "disordered.data")
    os.mkdir(directory)
    for name, content in (("data", file_of(put_mapping(), b"")), ("data.0", samples + mapping)):
        with open(os.path.join(directory, name), "wb") as out:
            out.write(content)
    result = opimport(box, "--session-dir=" + box.session, "-o", "disordered", directory)
    require(result.rc == 1 and "1 records came after younger ones were counted: samples may be on wrong images" in result.err,
            "%d: %s" % (result.rc, result.err))
    require(stored(result.out) == NR_UNROUNDED, result.out)


def check_late_event(box):
    """An event that comes when samples of others have been counted is not taken for one of those.
    """
    begin = put_attr(PLAIN, 0) + put_mapping() + put_sample(PLAIN, SECOND) + put(ROUND, 0, b"") + put_sample(PLAIN,
            2 * SECOND) + put(ROUND, 0, b"")
    result = stream(box, "late", begin + put_attr(CHAINED, WITH_CHAIN) + put_sample(CHAINED, 3 * SECOND,
            (IMAGE + 0x100, IMAGE + 0x200)) +
                    put_sample(PLAIN, 4 * SECOND))
    require(result.rc == 1 and re.search(r"received 3, stored 3$", result.out, re.MULTILINE), result.out + result.err)
    require("1 samples are of events that the file lists after other samples were counted" in result.err, result.err)


def check_damaged_samples(box):
    """A chain that is longer than its record, a sample that is too short for its identifier, and
    one of an event that is not in the file.
    """
    chain = (IMAGE + 0x100, IMAGE + 0x200)
    begin = put_attr(PLAIN, 0) + put_attr(CHAINED, WITH_CHAIN) + put_mapping() + put_sample(PLAIN,
            10) + put_sample(CHAINED, 11, chain)
    longer = bytearray(put_sample(CHAINED, 12, chain))
    struct.pack_into("<Q", longer, 40, 1000)
    for name, records, rc, told in (("longer", bytes(longer), 1,
                                     "at byte %d: a record does not hold what it should: " % (16 + len(begin))),
                                    ("short", put(perf_swap.SAMPLE, USER, bytes(16)), 1,
                                     "1 samples are of events that the file does not list"),
                                    ("foreign", put_sample(999, 13), 0, "1 samples are of events that the file does not list")):
        result = stream(box, "damaged-" + name, begin + records)
        require(result.rc == rc and told in result.err, "%s: %d: %s" % (name, result.rc, result.err))
        samples, _ = totals(box, "damaged-" + name)
        require(sorted(samples.values()) == ([1, 2] if name == "longer" else [1, 1]), "%s: %s" % (name, samples))
        require("undecodable" not in result.out, result.out)


def check_no_events(box):
    for name, records in (("none", b""), ("samples", put_sample(PLAIN, 10) + put(ROUND, 0, b"") * 3 + put_sample(PLAIN, 30))):
        result = stream(box, "no-" + name, records)
        require(result.rc == 1 and "at byte 16: " in result.err, "%s without events: %d: %s" % (name, result.rc, result.err))


# ---- where the session fails ----

def sample_files(box):
    """Of an import that is under way."""
    return [f for f in glob.glob(os.path.join(box.session, "tmp", "import.*", "samples", "**", "task-clock.*"),
                                 recursive=True) if os.path.getsize(f)]


def rounds(first, nr):
    return b"".join(b"".join(put_sample(PLAIN, 10 + SECOND * r + i) for i in range(PER_ROUND)) + put(ROUND, 0, b"")
                    for r in range(first, first + nr))


def check_cut_session(box):
    """Somebody cuts the sample file in the middle of the import: what it had is lost by name, and
    the import goes on.
    """
    command = [os.path.join(box.bin, "opimport"), "--session-dir=" + box.session, "-o", "bus", "-"]
    with subprocess.Popen(command, env=box.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.write(struct.pack("<8sQ", b"PERFILE2", 16) + put_attr(PLAIN, 0) + put_mapping() + rounds(0, NR_ROUNDS))
        process.stdin.flush()
        opdtest.wait_until(lambda: sample_files(box), opdtest.HANG_SECONDS, "nothing is counted")
        for path in sample_files(box):
            os.truncate(path, 0)
        out, err = (text.decode() for text in process.communicate(rounds(NR_ROUNDS, NR_ROUNDS), timeout=opdtest.HANG_SECONDS))
    event = re.search(r"received (\d+), stored (\d+), lost_io_error (\d+)$", out, re.MULTILINE)
    require(process.returncode == 1 and event, "%d: %s%s" % (process.returncode, out, err))
    received, kept, lost = (int(n) for n in event.groups())
    samples, _ = totals(box, "bus")
    require(received == 2 * NR_ROUNDS * PER_ROUND == kept + lost and list(samples.values()) == [kept],
            "%s, in the files %s" % (event[0], samples))
    require("opimport: standard input: %d samples are not in the session: the sample file" % lost in err, err)
    print("of a file that was cut: " + event[0])


def many_images(box):
    """A stream with a sample in each of so many."""
    path = os.path.join(box.dir, "many.data")
    with open(path, "wb") as out:
        out.write(struct.pack("<8sQ", b"PERFILE2", 16) + put_attr(PLAIN, 0))
        for i in range(NR_IMAGES):
            out.write(put_mapping("/no/%04d" % i, 10 + i) + put_sample(PLAIN, 10 + i))
    return path


def import_limited(box, name, place, path, **keys):
    """With limits of the configuration."""
    box.configure(**keys)
    with open(path, "rb") as back:
        result = opimport(box, "--session-dir=" + place, "-o", name, stdin=back)
    box.configure()
    return result


def check_limits(box):
    """As in a session of the daemon, what is beyond the limits is kept less apart, and said."""
    path = many_images(box)
    for name, place, keys in (("files", box.session, {"MaxSampleFiles": MAX_FILES}),
                              ("room", box.tmpfs("room", "size=1536k"), {"SessionKeepFree": "1M"})):
        result = import_limited(box, name, place, path, **keys)
        files = reader.read_session(place, name, strict=True)
        merged = sum(f.total for f in files if "too-many-images" in f.name.image[1])
        require(result.rc == 1 and "%d counts are filed under too-many-images" % merged in result.err,
                "%d: %s" % (result.rc, result.err))
        require(stored(result.out) == sum(f.total for f in files) == NR_IMAGES and 0 < merged < NR_IMAGES,
                "%s: %d of %s" % (name, merged, result.out))
        require("(MaxSampleFiles)" in result.err
                if name == "files" else "as large as SessionKeepFree allows" in result.err, result.err)
        require(name != "files" or len(files) == MAX_FILES, "%d files" % len(files))
        print("%s: %d files, %d samples under too-many-images" % (name, len(files), merged))
    free = os.statvfs(place)
    require(free.f_bavail * free.f_frsize > 900 << 10, "%d bytes are free of what was to be" % (free.f_bavail * free.f_frsize))
    result = import_limited(box, "none", place, path, SessionKeepFree="2M")
    require(result.rc == 1 and "no more room left than SessionKeepFree" in result.err, "%d: %s" % (result.rc, result.err))
    require(not os.path.exists(os.path.join(place, "samples", "none")) and not os.listdir(os.path.join(place, "tmp")),
            "something is left")


def check_full(box):
    """No room for all of the files: nothing is kept, and what to do is said."""
    place = box.tmpfs("full", "size=256k")
    result = import_limited(box, "full", place, many_images(box), SessionKeepFree="0")
    require(result.rc == 1 and "No space left on device: nothing was kept; make room there, or name another place" in result.err,
            "%d: %s" % (result.rc, result.err))
    require(os.listdir(os.path.join(place, "samples")) in ([], ["current"])
            and not os.listdir(os.path.join(place, "tmp")), "something is left")


def check_no_place(box):
    """Records that are said to be where no file can be, or behind the end of this one."""
    whole = file_of(put_mapping(), b"")
    for offset in (1 << 62, (1 << 64) - 8, len(whole) + 1):
        path = os.path.join(box.dir, "placeless.data")
        with open(path, "wb") as out:
            out.write(whole[:40] + struct.pack("<Q", offset) + whole[48:])
        result = opimport(box, "--session-dir=" + box.session, "-o", "placeless", path)
        require(result.rc == 1 and result.err.startswith("opimport: %s: its records are said to begin behind its "
                                                         "end" % path), result.err)


# ---- build-ids ----

def notes_id(path):
    """The build-id among notes that a file has nothing but, hexadecimal."""
    with open(path, "rb") as stream:
        notes = stream.read()
    at = 0
    while at < len(notes):
        name, desc, kind = struct.unpack_from("<III", notes, at)
        start = at + 12 + (name + 3) // 4 * 4
        if kind == NOTE_BUILD_ID and notes[at + 12:at + 16] == b"GNU\0":
            return notes[start:start + desc].hex()
        at = start + (desc + 3) // 4 * 4
    raise opdtest.Skip("%s has no build-id" % path)


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


def map_of(misc, pid, start, offset, name):
    text = name.encode() + b"\0"
    body = struct.pack("<iiQQQ", pid, pid, start, 0x100000, offset) + text + bytes(-len(text) % 8)
    return put(perf_swap.MMAP, misc, body + struct.pack("<IIQQ", PID, PID, 1, PLAIN))


def import_with_ids(box, name, image, image_id, kernel_id):
    """Samples in a function of an image, and in the kernel."""
    start, _ = elfsyms.symbol_ranges(image, ("main",))["main"]
    records = map_of(KERNEL, -1, KERNEL_START, KERNEL_START, "[kernel.kallsyms]_text") + map_of(USER, PID, IMAGE, 0, image)
    for at, (misc, ip) in enumerate([(USER, IMAGE + start)] * 3 + [(KERNEL, KERNEL_START + 0x1000)] * 2):
        records += put(perf_swap.SAMPLE, misc, struct.pack("<QIIQQ", ip, PID, PID, 10 + at, PLAIN))
    path = os.path.join(box.dir, name + ".data")
    with open(path, "wb") as out:
        out.write(file_of(records, known_id(image, image_id) + known_id("[kernel.kallsyms]", kernel_id)))
    imported(box, name, path)
    with open(os.path.join(box.session, "samples", name, "dcookies"), encoding="utf-8") as stream:
        table = stream.read()
    require(image_id in table and kernel_id in table, "a build-id is not in the table:\n%s" % table)
    result = box.run(os.path.join(box.bin, "opreport"), "--session-dir=" + box.session, "session:" + name, "-l")
    require(result.rc == 0, result.err)
    return result.out, result.err


def check_build_ids(box):
    """An image is the file of its path when that has its build-id, and the kernel the one that
    runs; others have no symbols.
    """
    image, other = os.path.join(box.dir, "image"), "%040x" % 0x123456789
    source = image + ".c"
    with open(source, "w", encoding="utf-8") as out:
        out.write("int main(void) { return 0; }\n")
    box.good("gcc", "-Wl,--build-id=sha1", "-o", image, source)
    notes = os.path.join(box.dir, "notes")
    box.good("objcopy", "-O", "binary", "--only-section=.note.gnu.build-id", image, notes)
    out, err = import_with_ids(box, "same", image, notes_id(notes), notes_id("/sys/kernel/notes"))
    require(re.search(r"^3 .* main$", out, re.MULTILINE) and "kallsyms" in out, out + err)
    require("[kernel.kallsyms]" not in out and "could not check" not in err, out + err)
    out, err = import_with_ids(box, "others", image, other, other)
    require("main" not in out and "another file is at that path" in err, out + err)
    require("[kernel.kallsyms]" in out and "/proc/kallsyms" not in out, out + err)


def put_feature(number, text):
    """A feature that is a text."""
    return put(FEATURE, 0, struct.pack("<QI", number, 64) + text.encode().ljust(64, b"\0"))


def kernel_of(box, name, host, release, start):
    """What the samples of a kernel are filed under that a stream tells of without a build-id."""
    records = put_attr(PLAIN, 0) + put_feature(HOSTNAME, host) + put_feature(OSRELEASE, release)
    records += map_of(KERNEL, -1, start, start, "[kernel.kallsyms]_text") + put(perf_swap.SAMPLE, KERNEL,
            struct.pack("<QIIQQ", start + 64, PID, PID, 20, PLAIN))
    result = stream(box, name, records)
    require(result.rc == 0, result.err)
    return [f.name.image[1] for f in reader.read_session(box.session, name, strict=True)]


def check_own_kernel(box):
    """The kernel that runs here is known by host, release and place, all three."""
    own = os.uname()
    with open("/proc/kallsyms", encoding="ascii") as lines:
        start = next((int(line.split()[0], 16) for line in lines if line.split()[2] == "_text"), 0)
    if not start:
        print("the addresses of the kernel are hidden here: not shown that it is known")
        return
    cases = {"own": (own.nodename, own.release, start), "host": (own.nodename + "x", own.release, start),
             "release": (own.nodename, own.release + "x", start), "place": (own.nodename, own.release, start + 0x200000)}
    found = {name: kernel_of(box, "kernel-" + name, *case) for name, case in cases.items()}
    require(found == {name: ["/proc/kallsyms" if name == "own" else "/[kernel.kallsyms]"] for name in cases}, str(found))


# ---- what is said ----

def check_words(box):
    """IBS without its registers; a kernel that is not told of, with samples in it and without."""
    attr = struct.pack("<IIQQQQQ", IBS_TYPE, 112, 0, 100000, SAMPLE_TYPE, 0, 1 << 8 | 1 << 18).ljust(112, b"\0")
    records = put(ATTR, 0, attr + struct.pack("<Q", PLAIN)) + put(FEATURE, 0, struct.pack("<QII", PMU_MAPPINGS, 1,
            IBS_TYPE) + IBS_NAME)
    records += put_mapping() + put_sample(PLAIN, 10)
    result = stream(box, "bare", records)
    require(result.rc == 0 and "recorded without the registers of IBS (perf record --raw-samples)" in result.out,
            result.out + result.err)
    require("hidden" not in box.run(os.path.join(box.bin, "opreport"), "--session-dir=" + box.session,
                                    "session:bare").err, "there is no kernel")
    records += put(perf_swap.SAMPLE, KERNEL, struct.pack("<QIIQQ", KERNEL_START, PID, PID, 20, PLAIN))
    stream(box, "hidden", records)
    err = box.run(os.path.join(box.bin, "opreport"), "--session-dir=" + box.session, "session:hidden").err
    require("were hidden (kernel.kptr_restrict) when they were taken" in err, err)
    result = stream(box, "ended", records[:-3])
    require(result.rc == 1 and "standard input: at byte %d: the file ends before its records "
                               "do" % (16 + len(records) - 40) in result.err,
            result.err)


def test(box):
    check_words(box)
    check_build_ids(box)
    check_own_kernel(box)
    directory, ends = check_split(box)
    check_one_cut(box, directory, ends)
    check_missing(box, directory, ends)
    check_threads(box, "threads")
    check_threads(box, "compressed", "-z")
    check_stream(box)
    check_no_rounds(box)
    check_late_event(box)
    check_damaged_samples(box)
    check_no_events(box)
    check_cut_session(box)
    check_limits(box)
    check_full(box)
    check_no_place(box)
    require(not os.listdir(os.path.join(box.session, "tmp")), "something is left in tmp")
    shutil.rmtree(directory)


if __name__ == "__main__":
    opdtest.run(test, test_import.needs)
