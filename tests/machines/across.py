#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What opd writes on one machine is read on another: for each kind of file a table of writers and
readers.

usage: across.py [--kind=PATTERN] ARCH=BUILD...

BUILD is a build directory of opd for the Debian architecture ARCH, whose programs run here. Where
the format is in the byte order of the machine, a reader of the other order must refuse the file by
name and say what helps, and must read it after that.
"""
import fnmatch
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.join(HERE, "..", "unit")]
import recording  # noqa: E402
from test_gone_images import seal  # noqa: E402

TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu", "i386": "i686-linux-gnu"}
UNAMES = {"amd64": "x86_64", "arm64": "aarch64", "i386": "i686"}
PROGRAM = "int hot(int x) { return x + 1; }\nint warm(int x) { return hot(x) + 2; }\nvoid _start(void) { warm(1); }\n"
FUNCTIONS = ("hot", "warm", "_start")
HANG_SECONDS = 300
NO_TABLES = "/no/opd-tables"  # opimport cannot start it under QEMU's user emulation, and nowhere here
OTHER_ORDER = "the file has the other byte order: convert it with opimport --abi"
FLAT = (("-l", "-n", "-f"), ("-d", "-g", "-n"), ("-c", "-n"), ("-l", "-g", "-X"), ("-l", "--format=json"), ("--format=csv",),
        ("--images",))
STACKS = (("--stacks", "-n"), ("--stacks", "--format=json"), ("--format=folded",), ("--format=speedscope",),
          ("--format=callgrind",), ("--format=pprof",), ("--format=firefox",))


class Wrong(Exception):
    """A file is not read as it should be."""


def require(condition, text):
    if not condition:
        raise Wrong(text)


class Image:
    """A program for ARCH: where its code is mapped, and the addresses of its functions."""

    def __init__(self, directory, arch):
        triplet = TRIPLETS.get(arch, arch + "-linux-gnu")
        self.path = os.path.join(directory, "program-" + arch)
        self.build_id = bytes((17 * len(arch) + i + ord(arch[-1])) & 255 for i in range(20))
        with open(self.path + ".c", "w", encoding="ascii") as stream:
            stream.write(PROGRAM)
        subprocess.run([triplet + "-gcc", "-g", "-O0", "-nostdlib", "-static", "-fno-pie", "-no-pie", "-o", self.path,
                        "-Wl,--build-id=0x" + self.build_id.hex(), self.path + ".c"], check=True)
        os.utime(self.path, (1, 1))
        headers = subprocess.run([triplet + "-readelf", "-lW", self.path], capture_output=True, text=True, check=True).stdout
        fields = next(line.split() for line in headers.splitlines() if re.match(r" *LOAD .* R E ", line))
        self.offset, self.start, self.nr_bytes = (int(fields[i], 16) for i in (1, 2, 4))
        symbols = subprocess.run([triplet + "-nm", self.path], capture_output=True, text=True, check=True).stdout
        self.at = {line.split()[2]: int(line.split()[0], 16) for line in symbols.splitlines()}


class Machine:
    def __init__(self, arch, build):
        self.arch, self.build = arch, os.path.abspath(build)
        with open(os.path.join(self.build, "bin", "opreport"), "rb") as stream:
            self.is_big = stream.read(6)[5] == 2

    def run(self, program, *words, rc=0, env=None, stdin=subprocess.DEVNULL):
        done = subprocess.run([os.path.join(self.build, program), *words], capture_output=True, check=False, timeout=HANG_SECONDS,
                              env={"PATH": os.environ["PATH"], "TZ": "UTC", "LC_ALL": "C", "OPD_CACHE_DIR": "",
                                   "OPD_CONFIG": "/dev/null", "OPD_TABLES": NO_TABLES, **(env or {})}, stdin=stdin)
        done.text, done.errors = done.stdout.decode(errors="surrogateescape"), done.stderr.decode(errors="surrogateescape")
        require(rc is None or done.returncode == rc, "%s %s on %s: exit code %d: %s" % (
            program, " ".join(words), self.arch, done.returncode, done.errors[-300:]))
        return done

    def reports(self, forms, where, env=None):
        """What opreport prints in each form, and what it has to say, without the place of the session."""
        made = {}
        for form in forms:
            done = self.run("bin/opreport", *form, where, env=env)
            place = re.split("[:=]", where, maxsplit=1)[1].encode()
            made[form] = (done.stdout.replace(place, b""), done.stderr.replace(place, b""))
        return made


def same(ours, theirs, what):
    for form, wanted in theirs.items():
        require(ours[form] == wanted, "%s: opreport %s differs: %r, not %r" % (what, " ".join(form), *first_difference(
            ours[form], wanted)))


def first_difference(ours, theirs):
    for mine, other in zip(ours, theirs):
        mine, other = (x.decode(errors="replace") if isinstance(x, bytes) else x for x in (mine, other))
        for a, b in zip(mine.splitlines() + [""], other.splitlines() + [""]):
            if a != b:
                return a[:200], b[:200]
    return ours, theirs


# ---- what is written ----

class World:
    """The machines, their programs, and what each machine has written, made once."""

    def __init__(self, directory, machines):
        self.dir, self.machines, self.made = directory, machines, {}
        self.images = [Image(directory, machine.arch) for machine in machines]

    def place(self, machine, name):
        path = os.path.join(self.dir, machine.arch, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def once(self, machine, name, make):
        """The path of a file or directory that `make` writes."""
        path = self.place(machine, name)
        if path not in self.made:
            self.made[path] = True
            make(path)
        return path

    def reports(self, machine, forms, where):
        """Those that the machine itself makes of what it wrote."""
        key = (machine.arch, tuple(forms), where)
        if key not in self.made:
            self.made[key] = machine.reports(forms, where)
        return self.made[key]

    def counts(self):
        """The samples of each function of each program, as they are recorded."""
        return {(os.path.basename(image.path), name): number * (i + 1)
                for i, image in enumerate(self.images) for name, number in zip(FUNCTIONS, (48, 20, 3))}

    def recording(self, machine):
        def make(path):
            made = recording.Recording(machine.is_big, "host-" + machine.arch, UNAMES.get(machine.arch, machine.arch))
            made.kernel()
            for i, image in enumerate(self.images):
                pid, start, more = 1000 + i, image.at["_start"], image.at["warm"] + 6
                made.process(pid, 1, os.path.basename(image.path))
                made.mapping(pid, image.path, image.start & -4096, 4096, image.offset & -4096,
                             build_id=image.build_id if i % 2 else None, inode=77 + i)
                if not i % 2:
                    made.file_build_id(image.path, image.build_id)
                hot, warm = image.at["hot"], image.at["warm"]
                made.sample(pid, [hot + 2, more, start + 6], 48 * (i + 1))
                made.sample(pid, [hot + 2, more, start + 6], 2 * (i + 1), kernel=[recording.KERNEL + 4096])
                made.sample(pid, [warm + 2, start + 6], 20 * (i + 1))
                made.sample(pid, [start], 3 * (i + 1), event=1)
                made.round()
                made.lost(i + 1)
                made.exit(pid, 1)
            made.sample(1000, [], 7, kernel=[recording.PROGRAM_OF_BPF + 8])
            with open(path, "wb") as stream:
                stream.write(made.file())
        return self.once(machine, "perf.data", make)

    def session(self, machine):
        """The session directory that opimport of the machine makes of a recording of the machine."""
        return self.once(machine, "session", lambda path: machine.run(
            "bin/opimport", "--session-dir=" + path, self.recording(machine)))


def sample_files(session):
    found = []
    for directory, _, names in os.walk(os.path.join(session, "samples", "current")):
        if "{root}" in directory or "{kern}" in directory:
            found += [os.path.join(directory, name) for name in names]
    return sorted(found)


def convert(reader, copy, below=""):
    """The sample files of a session are converted by the reader's opimport --abi."""
    session = os.path.join(copy, below)
    for path in sample_files(session):
        os.rename(path, path + ".original")
        reader.run("bin/opimport", "--abi=" + os.path.join(session, "abi"), "--output=" + path, path + ".original")
        os.unlink(path + ".original")


def refused(machine, *words):
    """The file is named, and what helps."""
    done = machine.run(*words, rc=1)
    require(OTHER_ORDER in done.errors, "%s on %s refuses otherwise: %s" % (words[0], machine.arch, done.errors))
    named = re.search(r"(/\S*/(?:cpu-clock|page-faults)\.[\w.]+)", done.errors)
    require(named, "%s on %s names no file: %s" % (words[0], machine.arch, done.errors))


# ---- kinds of files: each reads what `writer` wrote, and says how it was read ----

def sample_file_kind(world, writer, reader, forms):
    """Refused in the other byte order; the same after opimport --abi."""
    session = world.session(writer)
    check_counts(world, writer)
    wanted = world.reports(writer, forms, "--session-dir=" + session)
    if reader.is_big == writer.is_big:
        same(reader.reports(forms, "--session-dir=" + session), wanted, "session")
        return "same"
    for tool in (("bin/opreport",), ("bin/opannotate", "-s"), ("bin/opgprof", "-o", os.devnull)):
        refused(reader, tool[0], "--session-dir=" + session, *tool[1:])
    copy = world.once(reader, "from-" + writer.arch, lambda path: convert(reader, shutil.copytree(session, path)))
    same(reader.reports(forms, "--session-dir=" + copy), wanted, "session after opimport --abi")
    return "--abi"


def sessions(world, writer, reader):
    """Sample files, dcookies, ledger: flat reports and calls."""
    return sample_file_kind(world, writer, reader, FLAT)


def stacks(world, writer, reader):
    """The file of stacks, which is little-endian everywhere, beside converted sample files."""
    return sample_file_kind(world, writer, reader, STACKS)


def checked(world, writer, reader):
    """opcheck finds nothing to mend, and leaves the files of others as they are."""
    copy = world.place(reader, "check-" + writer.arch)
    shutil.copytree(world.session(writer), copy)
    before = {path: open(path, "rb").read() for path in sample_files(copy)}
    done = reader.run("bin/opcheck", "--repair", "--session-dir=" + copy, rc=None)
    require({path: open(path, "rb").read() for path in sample_files(copy)} == before, "opcheck changed a sample file")
    foreign = OTHER_ORDER in done.text + done.errors
    require(foreign == (reader.is_big != writer.is_big) and done.returncode in (0, 2 * foreign), "opcheck: exit code %d: %s" % (
        done.returncode, (done.text + done.errors)[-300:]))
    return "named" if foreign else "sound"


def recordings(world, writer, reader):
    """perf.data of a machine like the writer."""
    return imported(world, writer, reader, world.recording(writer))


def imported(world, writer, reader, path, forms=FLAT + STACKS):
    name = "import-%s-%s" % (writer.arch, os.path.basename(path))
    session = world.place(reader, name)
    text = reader.run("bin/opimport", "--session-dir=" + session, path).text
    require((", of the other byte order" in text) == (reader.is_big != writer.is_big), text)
    reports = reader.reports(forms, "--session-dir=" + session)
    wanted = world.made.setdefault((writer.arch, path), reports)
    same(reports, wanted, "import")
    return "same"


def exports(world, writer, reader):
    """perf.data that opreport --format=perf of the writer makes of its stacks."""
    session = "--session-dir=" + world.session(writer)
    path = world.once(writer, "exported.data", lambda path: writer.run("bin/opreport", "--format=perf", "-o", path, session))
    return imported(world, writer, reader, path, [("--stacks", "-n"), ("--format=folded",)])


def ring_records(world, writer, reader):
    """Records that went through the memory ring of the writer, in the form of perf.data."""
    path = world.place(writer, "ring.data")
    if path not in world.made:
        world.made[path] = writer.run("tests/system/perf_data", "pair", "7", path).text
    session = world.place(reader, "ring-" + writer.arch)
    text = reader.run("bin/opimport", "--session-dir=" + session, path).text
    written = len(re.findall("^sample ", world.made[path], re.MULTILINE))
    received = sum(int(number) for number in re.findall(r" received (\d+),", text))
    require(written == received > 0, "%d samples written, %d received: %s" % (written, received, text))
    return imported(world, writer, reader, path, [("-f", "-n"), ("-d", "-n")])


def row_tables(world, writer, reader):
    """The same bytes everywhere, and the names in it stand for an image that is gone."""
    image = world.images[0]

    def make(machine, path):
        with open(image.path, "rb") as stream:
            table = machine.run("tools/opd-tables/opd-tables", stdin=stream).stdout
        place = os.path.join(path, image.build_id.hex()[:2])
        os.makedirs(place)
        with open(os.path.join(place, image.build_id.hex()), "wb") as stream:
            stream.write(seal(table))
        with open(path + ".conf", "w", encoding="ascii") as stream:
            stream.write("TableDir=%s\n" % path)

    ours, theirs = (world.once(machine, "tables", functools.partial(make, machine)) for machine in (reader, writer))
    require(not subprocess.run(["diff", "-r", ours, theirs], check=False, capture_output=True).returncode, "the row tables differ")
    words = ("bin/opreport", "-l", "-n", "--session-dir=" + world.session(reader))
    wanted = reader.run(*words).text
    os.rename(image.path, image.path + ".gone")
    try:
        done = reader.run(*words, env={"OPD_CONFIG": theirs + ".conf"})
    finally:
        os.rename(image.path + ".gone", image.path)
    require("its functions are those that opd kept" in done.errors and done.text == wanted, "names of a gone image: " + done.text)
    return "same"


def archives(world, writer, reader):
    """Reports from an archive; where sample files are of the other order, after opimport --abi with the
    file `abi` in the archive.
    """
    session = world.session(writer)
    away = world.once(writer, "archive", lambda path: writer.run("bin/oparchive", "--session-dir=" + session, "-o", path))
    reader.run("bin/oparchive", "--check=" + away)
    wanted = world.reports(writer, FLAT + STACKS, "archive:" + away)
    if reader.is_big == writer.is_big:
        same(reader.reports(FLAT + STACKS, "archive:" + away), wanted, "archive")
        return "same"
    refused(reader, "bin/opreport", "archive:" + away)
    copy = world.once(reader, "archive-of-" + writer.arch,
                      lambda path: convert(reader, shutil.copytree(away, path), "var/lib/oprofile"))
    same(reader.reports(FLAT + STACKS, "archive:" + copy), wanted, "archive after opimport --abi")
    return "--abi"


def caches(world, writer, reader):
    """A cache of symbols of another machine is of no use, and does no harm."""
    cache = world.place(reader, "cache-" + writer.arch)
    forms = FLAT[:2]
    wanted = reader.reports(forms, "--session-dir=" + world.session(reader))
    for machine in (writer, reader, writer):
        made = machine.reports(forms, "--session-dir=" + world.session(machine), env={"OPD_CACHE_DIR": cache})
        require(os.listdir(cache), "there is no cache")
        same(made, machine.reports(forms, "--session-dir=" + world.session(machine)), "with a cache")
    same(reader.reports(forms, "--session-dir=" + world.session(reader), env={"OPD_CACHE_DIR": cache}), wanted, "with a cache")
    return "same"


KINDS = {"sample-files": sessions, "stacks": stacks, "opcheck": checked, "perf.data": recordings, "perf.data-of-opreport": exports,
         "ring-records": ring_records, "row-tables": row_tables, "archives": archives, "symbol-caches": caches}


def check_counts(world, machine):
    """What the machine reads of its own is what was recorded."""
    text = machine.run("bin/opreport", "-l", "-n", "--session-dir=" + world.session(machine)).text
    rows = [line.split() for line in text.splitlines()]
    found = {(row[-3], row[-1]): int(row[0]) + int(row[2]) for row in rows if row[-1] in FUNCTIONS}
    require(found == world.counts(), "the session of %s has %s, not %s" % (machine.arch, found, world.counts()))


def main(arguments):
    kinds, machines = list(KINDS), []
    for argument in arguments:
        if argument.startswith("--kind="):
            kinds = [kind for kind in KINDS if fnmatch.fnmatch(kind, argument.split("=", 1)[1])]
        else:
            machines.append(Machine(*argument.split("=", 1)))
    failures = []
    with tempfile.TemporaryDirectory(prefix="opd-across.") as directory:
        os.chmod(directory, 0o755)
        world = World(directory, machines)
        for kind in kinds:
            print("%-22s read on" % kind + "".join("%9s" % machine.arch for machine in machines))
            for writer in machines:
                line = "%22s %-7s" % ("written on", writer.arch)
                for reader in machines:
                    try:
                        verdict = KINDS[kind](world, writer, reader)
                    except (Wrong, subprocess.SubprocessError, OSError) as why:
                        verdict = "FAILED"
                        failures.append("%s, %s on %s: %s" % (kind, writer.arch, reader.arch, why))
                    line += "%9s" % verdict
                print(line, flush=True)
    for failure in failures:
        print("FAILED: " + failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
