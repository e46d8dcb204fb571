#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
opimport: first with perf.data that is made up, then with recordings of the whole system.

The made-up files have events that come one after the other, lists of build-ids, names that no file
has, numbers that no process has, and the byte order of another machine; some sessions run into
limits. A recording becomes a session with the counts of perf report, image by image. The same
records give the same counts through a pipe, in a directory, and in the other byte order. A damaged
file gives what could be read, an error with the offset, and exit code 1.
"""
import collections
import copy
import glob
import json
import os
import re
import shutil
import struct
import subprocess
import sys

import elfsyms
import opdtest
import perf_swap
import reader
from importtest import (
    AT, ATTR, BYTES, CHAINED, EVENTS, FEATURE, HOSTNAME, IMAGE, KERNEL, KERNEL_START, OSRELEASE, PERF_ENV, PID, PLAIN,
    ROUND, SAMPLE_TYPE, SECOND, START, USER, WITH_CHAIN, WORK, WORK_S, Stream, big_endian, check_ledger, compare, counts_of_perf,
    counts_of_session, file_of, import_stream, imported, known_id, map_of, mend, needs_perf, opimport, put, put_attr, put_feature,
    put_mapping, put_sample, record, split, stored, totals)
from opdtest import require

sys.path.insert(0, os.path.join(os.environ.get("OPD_SOURCE", "."), "tests", "ibs"))
import ibsdata  # noqa: E402

SAMPLES_WANTED = 100000
CUT_EVERY = 1000
CUT_EVENTS = ("-e", "cpu-clock/period=1000000,name=cpu-clock/", "-e", "page-faults/period=20,name=page-faults/")
THREADS_EVENTS = ("-e", "cpu-clock/period=200000,name=cpu-clock/")
NOTE_BUILD_ID = 3
PMU_MAPPINGS, IBS_TYPE, IBS_NAME = 16, 11, struct.pack("<I8s", 8, b"ibs_op")
NR_ROUNDS, PER_ROUND, NR_IMAGES, MAX_FILES = 20, 500, 200, 50
NR_UNROUNDED, NR_MAPPED, NR_LATE, STEP = (1 << 20) + 100, 10000, 1000, 1000
SOUND, REPAIRED = 0, 1

NAMES = ("/", "//", "///", "/.", "/..", "/../../../../../../etc/passwd", "/a/../b", "/a//b/", "/{dep}",
         "/x/{dep}/{root}/y", "/{cg}/{kern}", "/{root}",
         "/a\nb\tc\\", "/" + "x" * 300 + "/y", "/y/" + "x" * 300, "/" + "x" * 300 + "/", "/" + "a/" * 1500 + "z",
         "/" + "../" * 500, "/bin/true (deleted)",
         "/(no path)", "/\x1b[31m", "", ".", "..", "../up", "[vdso]", "[a/b}]", "[..]", "//anon", "/y.jo", "/TIMER.1.0.all.all.all")
PARTS = ("[..]", "[.]", "[no-process]", "..", "/lib/a/..", "/", "[]", "[a/b]", "x" * 400, "[{dep}]", "[kernel.kallsyms]_text")
PIDS = (1, 0x7fffffff, 0x80000000, 0xfffffffe)


# ---- streams ----

def check_stream(box):
    """Samples without a chain, then an event with chains and its samples, all in one round."""
    chain = (IMAGE + 0x100, IMAGE + 0x200, IMAGE + 0x300)
    records = put_attr(PLAIN, 0) + put_mapping() + b"".join(put_sample(PLAIN, 10 + i) for i in range(5))
    records += put_attr(CHAINED, WITH_CHAIN) + b"".join(put_sample(CHAINED, 20 + i, chain) for i in range(7))
    records += b"".join(put_sample(PLAIN, 30 + i) for i in range(4)) + put(ROUND, 0, b"") * 2
    result = import_stream(box, "chains", records)
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
    result = import_stream(box, "unrounded", put_attr(PLAIN, 0) + put_mapping() + samples + mapping)
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
    result = import_stream(box, "late", begin + put_attr(CHAINED, WITH_CHAIN) + put_sample(CHAINED, 3 * SECOND,
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
                                     "at byte %d: a record has invalid content: " % (16 + len(begin))),
                                    ("short", put(perf_swap.SAMPLE, USER, bytes(16)), 1,
                                     "1 samples are of events that the file does not list"),
                                    ("foreign", put_sample(999, 13), 0, "1 samples are of events that the file does not list")):
        result = import_stream(box, "damaged-" + name, begin + records)
        require(result.rc == rc and told in result.err, "%s: %d: %s" % (name, result.rc, result.err))
        samples, _ = totals(box, "damaged-" + name)
        require(sorted(samples.values()) == ([1, 2] if name == "longer" else [1, 1]), "%s: %s" % (name, samples))
        require("undecodable" not in result.out, result.out)


def check_no_events(box):
    for name, records in (("none", b""), ("samples", put_sample(PLAIN, 10) + put(ROUND, 0, b"") * 3 + put_sample(PLAIN, 30))):
        result = import_stream(box, "no-" + name, records)
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
        require(result.rc == 1 and result.err.startswith("opimport: %s: its header places the records beyond the "
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
    require("main" not in out and re.search("at the paths of [12] are other files|another file is at that path", err), out + err)
    require("[kernel.kallsyms]" in out and "/proc/kallsyms" not in out, out + err)


def kernel_of(box, name, host, release, start):
    """What the samples of a kernel are filed under that a stream tells of without a build-id."""
    records = put_attr(PLAIN, 0) + put_feature(HOSTNAME, host) + put_feature(OSRELEASE, release)
    records += map_of(KERNEL, -1, start, start, "[kernel.kallsyms]_text") + put(perf_swap.SAMPLE, KERNEL,
            struct.pack("<QIIQQ", start + 64, PID, PID, 20, PLAIN))
    result = import_stream(box, name, records)
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
    result = import_stream(box, "bare", records)
    require(result.rc == 0 and "recorded without the registers of IBS (perf record --raw-samples)" in result.out,
            result.out + result.err)
    require("hidden" not in box.run(os.path.join(box.bin, "opreport"), "--session-dir=" + box.session,
                                    "session:bare").err, "there is no kernel")
    records += put(perf_swap.SAMPLE, KERNEL, struct.pack("<QIIQQ", KERNEL_START, PID, PID, 20, PLAIN))
    import_stream(box, "hidden", records)
    err = box.run(os.path.join(box.bin, "opreport"), "--session-dir=" + box.session, "session:hidden").err
    require("were hidden (kernel.kptr_restrict) when they were taken" in err, err)
    result = import_stream(box, "ended", records[:-3])
    require(result.rc == 1 and "standard input: at byte %d: the file ends before its records "
                               "do" % (16 + len(records) - 40) in result.err,
            result.err)


# ---- names and numbers that nothing has ----

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
    require(result.rc == 0 and "1 interrupted runs of opimport" in result.err, "%d: %s" % (result.rc, result.err))
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


# ---- recordings ----

def check_counts(box, path):
    """The kernel (6.18) gives software events of one CPU the time stamp of another profiler. Such
    records are out of order for perf, which resolves them by what it has read up to then. Only
    these records may differ.
    """
    theirs, disorder = counts_of_perf(box, path)
    out = imported(box, "plain", path)
    ours = counts_of_session(box, "plain")
    require(sum(sum(images.values()) for images in ours.values()) >= SAMPLES_WANTED, "too few samples to compare: %s" % out)
    compare(ours, theirs, disorder, "perf report")
    check_ledger(out, ours)
    return ours


def check_swapped(box, data, ours):
    path = os.path.join(box.dir, "swapped.data")
    data.write(path, data.swapped())
    out = imported(box, "swapped", path)
    require("of the other byte order" in out, "opimport does not say that the file is swapped: %s" % out)
    require(counts_of_session(box, "swapped") == ours, "the swapped file gives other counts")
    theirs, disorder = counts_of_perf(box, path)
    # perf 6.1 does not swap KSYMBOL, so it has no names of BPF programs there
    unnamed = copy.deepcopy(ours)
    for images in unnamed.values():
        for name in [name for name in images if name.startswith("bpf_prog_")]:
            images["[unknown]"] += images.pop(name)
    compare(unnamed, theirs, disorder, "perf report of the swapped file")


def check_stdin(box, path, ours):
    """A file, from a pipe that cannot seek."""
    with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat:
        imported(box, "stdin", stdin=cat.stdout)
    require(counts_of_session(box, "stdin") == ours, "the file through a pipe gives other counts")


def check_pipe(box):
    path = os.path.join(box.dir, "pipe.data")
    with open(path, "wb") as stream:
        command = ["perf", "record", "-q", "-B", "-a", *EVENTS, "-o", "-", "--", "sh", "-c", WORK.format(WORK_S)]
        done = subprocess.run(command, stdout=stream, stderr=subprocess.DEVNULL, env={**box.env, **PERF_ENV}, check=False)
    require(done.returncode == 0, "perf record -o - failed")
    with open(path, "rb") as stream:
        require(struct.unpack("<8sQ", stream.read(16))[1] == 16, "perf record -o - did not write pipe mode")
        stream.seek(0)
        out = imported(box, "pipe", stdin=stream)
    ours = counts_of_session(box, "pipe")
    check_ledger(out, ours)
    require({"cpu-clock", "page-faults"} <= set(ours), "events of the pipe: %s" % sorted(ours))
    require("from a pipe" in out, out)


def check_compressed(box):
    path = os.path.join(box.dir, "compressed.data")
    record(box, path, "-z")
    out = imported(box, "compressed", path)
    require("compressed records" in out, "perf record -z compressed nothing: %s" % out)
    check_ledger(out, counts_of_session(box, "compressed"))
    data = perf_swap.PerfData(path)
    kinds = collections.Counter(r.type for r in data.records())
    require(kinds[perf_swap.COMPRESSED] and not kinds[perf_swap.SAMPLE], "samples stand beside the compressed records: %s" % kinds)


def check_cuts(box):
    """Cut at every 1000th byte, the records before the cut are counted. The recording has no records
    of what ran before it, or its length would depend on that.
    """
    path = os.path.join(box.dir, "cut.data")
    box.good("perf", "record", "-q", "-B", "-a", "--synth=no", *CUT_EVENTS, "-o", path, "--", "sleep", "0.2", env=PERF_ENV)
    data = perf_swap.PerfData(path)
    place = box.tmpfs("cuts", "size=1g")  # a disk would keep so many sessions waiting
    samples = [r.offset + r.size for r in data.records() if r.type == perf_swap.SAMPLE]
    for nr, cut in enumerate(range(CUT_EVERY, len(data.bytes), CUT_EVERY)):
        name = "cut%d" % nr
        data.write(path, data.bytes[:cut])
        result = opimport(box, "--session-dir=" + place, "-o", name, path)
        require(result.rc == 1, "cut at byte %d: exit code %d: %s" % (cut, result.rc, result.err))
        if cut < data.data[0]:
            continue
        told = re.search(r"at byte (\d+): (.*)", result.err)
        require(told, "cut at byte %d: %r" % (cut, result.err))
        if cut < sum(data.data):
            require(int(told[1]) <= cut and told[2].startswith("the file ends before its records do"),
                    "cut at byte %d: %r" % (cut, result.err))
        kept, wanted = stored(result.out), sum(end <= cut for end in samples)
        require(kept == wanted, "cut at byte %d: %d samples stored of %d before it" % (cut, kept, wanted))
        shutil.rmtree(os.path.join(place, "samples", name))
    require(not os.listdir(os.path.join(place, "tmp")), "something is left in tmp")
    print("%d cuts in %d bytes with %d samples" % (nr + 1, len(data.bytes), len(samples)))


def check_refusals(box, path):
    """What must not be written over, and what is no perf.data."""
    tool = os.path.join(box.bin, "opimport")
    line = box.refused(tool, "--session-dir=" + box.session, "-o", "plain", path)
    require("has samples already" in line, line)
    line = box.refused(tool, "--session-dir=" + box.session, "-o", "../plain", path)
    require("is not a valid name" in line, line)
    line = box.refused(tool, "--session-dir=" + box.session, "-o", "none", tool)
    require("not a perf.data file" in line, line)
    require(not os.path.exists(os.path.join(box.session, "samples", "none")), "a refused file left a session")
    box.start_daemon()
    line = box.refused(tool, "--session-dir=" + box.session, path)
    require("a daemon samples" in line, line)
    imported(box, "beside", path)
    box.shutdown()


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


def check_split(box, data, ours):
    """The same records in a directory; the directory with a file that is cut, and without one."""
    directory = os.path.join(box.dir, "split.data")
    ends = split(data, directory)
    if sorted(ends) != list(range(max(2, len(ends)))):
        print("no directory is made of the file: CPUs that have samples: %s" % sorted(ends))
        return
    out = imported(box, "split", directory)
    require("a directory of %d files" % (len(ends) + 1) in out, out)
    require(stored(out) == sum(len(e) for e in ends.values()), "not all samples are stored: %s" % out)
    require(counts_of_session(box, "split") == ours, "a directory gives other counts than the file that it was made of")
    print("%d samples in a file and in a directory" % stored(out))
    check_one_cut(box, directory, ends)
    check_missing(box, directory, ends)


def check_threads(box, name, *more):
    """What perf record --threads wrote, against perf report, which does not read it always when
    there is another profiler.
    """
    path = os.path.join(box.dir, name + ".data")
    record(box, path, "--threads", *more, events=THREADS_EVENTS)
    out = imported(box, name, path)
    require("a directory of" in out, "perf record --threads wrote no directory: %s" % out)
    require(not more or "compressed records" in out, out)
    ours = counts_of_session(box, name)
    check_ledger(out, ours)
    mend(path)
    try:
        theirs, disorder = counts_of_perf(box, path)
    except opdtest.Skip as why:
        print("%s is not compared: %s" % (name, why))
        return
    compare(ours, theirs, disorder, "perf report of a directory, " + name)


def made_up(box):
    check_names(box)
    check_kernel_threads(box)
    check_earlier(box)
    check_longs(box)
    check_cycles(box)
    check_left(box)
    check_no_copy(box)
    check_words(box)
    check_stream(box)
    check_no_rounds(box)
    check_late_event(box)
    check_damaged_samples(box)
    check_no_events(box)
    check_cut_session(box)
    check_no_place(box)
    check_own_kernel(box)
    check_build_ids(box)
    check_limits(box)
    check_full(box)


def record_enough(box, path):
    """A recording with enough samples to be compared, without a flag that is another profiler's and
    makes perf abort.
    """
    seconds, nr_samples = 3, 0
    while nr_samples < SAMPLES_WANTED:
        record(box, path, seconds=seconds)
        data = perf_swap.PerfData(path)
        nr_samples = sum(r.type == perf_swap.SAMPLE for r in data.records())
        print("%d samples, %d records with a flag that is another profiler's" % (nr_samples, data.mend_flags()))
        seconds *= 2
    return data


def recorded(box):
    path, mended = os.path.join(box.dir, "perf.data"), os.path.join(box.dir, "mended.data")
    data = record_enough(box, path)
    data.write(mended)
    ours = check_counts(box, mended)
    imported(box, "raw", path)
    require(counts_of_session(box, "raw") == ours, "a flag that the kernel set wrongly changes the counts")
    check_swapped(box, data, ours)
    check_stdin(box, mended, ours)
    check_split(box, data, ours)
    check_pipe(box)
    check_compressed(box)
    check_threads(box, "threads")
    check_threads(box, "compressed-threads", "-z")
    check_cuts(box)
    check_refusals(box, mended)


def test(box):
    """What is made up needs neither perf nor the processes of the host."""
    made_up(box)
    needs_perf()
    recorded(box)
    require(not os.listdir(os.path.join(box.session, "tmp")), "something is left in tmp")


if __name__ == "__main__":
    opdtest.run(test, opdtest.needs_root)
