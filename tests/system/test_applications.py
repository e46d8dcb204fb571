#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
The application of each process in a recording of perf is what /proc/PID/exe said while it was
recorded: of processes older than the recording, whose libraries lie below them in the address
space, and of programs that began meanwhile, with and without marked execs. They change their names,
are deleted, run from memory, as scripts, or through the dynamic linker.
"""
import collections
import os
import re
import resource
import shutil
import struct
import subprocess
import sys

import hot
import importtest
import opdtest
import perf_swap
import reader
from opdtest import require

EVENT = ("-e", "cpu-clock/period=200000,name=cpu-clock/")
LOADER = "/lib64/ld-linux-x86-64.so.2"
CPU_TICKS = 10  # of each worker in a recording
MOVED = "moved"  # its executable is in no record of perf, since its text is memory without a file
MISC_COMM_EXEC, ATTR_COMM_EXEC = 1 << 13, 1 << 24
SCRIPT = """#!/bin/sh
echo $$ $(readlink /proc/$$/exe)
while [ "$i" != "${1:-none}" ]; do i=$((i + 1)); done
( while [ "$j" != "${1:-none}" ]; do j=$((j + 1)); done )
"""
ROUNDS = 30000  # of the loops of a script that must end
BUILDS = {"pie": (), "fixed": ("-no-pie",), "static": ("-static",), "static-pie": ("-static-pie",),
          MOVED: (), "libodd.so.7": ("-static-pie",)}
AS_MEMFD = "import os, sys; fd = os.memfd_create('in-memory'); os.write(fd, open(sys.argv[1], 'rb').read()); " \
           "os.execve(fd, sys.argv[1:], os.environ)"


def build(box):
    """The programs, and the command line of each kind of process."""
    paths = {}
    for name, flags in BUILDS.items():
        paths[name] = os.path.join(box.dir, name)
        hot.compile_to(box, paths[name], *flags, file="renamed.c")
    script, link = os.path.join(box.dir, "a-script"), os.path.join(box.dir, "link")
    with open(script, "w", encoding="ascii") as stream:
        stream.write(SCRIPT)
    os.chmod(script, 0o755)
    os.symlink(paths["pie"], link)
    kinds = {
        "pie": (paths["pie"],),
        "fixed": (paths["fixed"],),
        "static": (paths["static"],),
        "static-pie": (paths["static-pie"],),
        "renamed": (paths["pie"], "new name"),
        "threads": (paths["pie"], "", "first", "second"),
        "boss": (paths["pie"], "libc.so.6", "pie", "libc.so.6"),
        "called-library": (paths["libodd.so.7"], "odd"),
        "deleted": (os.path.join(box.dir, "deleted"), "gone"),
        "link": (link,),
        "script": (script,),
        "memory": (sys.executable, "-c", AS_MEMFD, paths["static-pie"], "in memory"),
        MOVED: (paths[MOVED], "-m", "moved"),
    }
    if os.path.exists(LOADER):
        kinds["loader"] = (LOADER, paths["pie"])
        kinds["loader-fixed"] = (LOADER, paths["fixed"])
    return kinds


def libraries_below():
    """As `ulimit -s unlimited`: the kernel maps libraries below the executable."""
    resource.setrlimit(resource.RLIMIT_STACK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def take_exe(line):
    pid, exe = line.decode().rstrip("\n").split(" ", 1)
    return int(pid), exe.replace(" (deleted)", "")


def ticks(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as stream:
        return int(stream.read().rsplit(")", 1)[1].split()[11])


class Workers:
    """A process of each kind, older than the recordings. `exes` has what they run."""

    def __init__(self, box, kinds):
        self.box, self.exes, self.kinds = box, {}, {}
        shutil.copy(os.path.join(box.dir, "pie"), os.path.join(box.dir, "deleted"))
        for kind, command in kinds.items():
            child = subprocess.Popen(command, env=box.env, cwd=box.dir, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     preexec_fn=libraries_below)
            box.children.append(child)
            pid, exe = take_exe(child.stdout.readline())
            self.exes[pid], self.kinds[pid] = exe, kind
        os.unlink(os.path.join(box.dir, "deleted"))

    def record(self, path, *words):
        """Records until each worker has used enough CPU time."""
        command = ["perf", "record", "-q", "-B", *EVENT, *words, "-o", path, "--", "sh", "-c", "echo; read line"]
        perf = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env={**self.box.env, **importtest.PERF_ENV})
        self.box.children.append(perf)
        require(perf.stdout.readline() == b"\n", "perf record does not begin")
        self.wait()
        _, err = perf.communicate(timeout=opdtest.CALL_SECONDS)
        require(perf.returncode in (0, 1), "perf record: %d %s" % (perf.returncode, err))

    def wait(self):
        before = {pid: ticks(pid) for pid in self.exes}
        opdtest.wait_until(lambda: all(ticks(pid) >= before[pid] + CPU_TICKS for pid in self.exes), opdtest.HANG_SECONDS,
                           "the workers do not run")

    def end(self):
        for child in self.box.children:
            child.kill()
            child.wait()


def record_execs(box, kinds, path):
    """A recording in which each program begins. What they run."""
    lines = ["'%s' %s" % ("' '".join(c), ROUNDS if kind == "script" else "") for kind, c in kinds.items() if kind != "deleted"]
    out = box.good("perf", "record", "-q", "-B", *EVENT, "-o", path, "--", "sh", "-c",
                   "ulimit -s unlimited; " + "; ".join(lines), env=importtest.PERF_ENV)
    return dict(take_exe(line.encode()) for line in out.splitlines())


def without_marks(box, path):
    """The same recording as of a kernel that does not mark the names that come from an exec."""
    data = perf_swap.PerfData(path)
    for record in data.records():
        if record.type == perf_swap.COMM:
            struct.pack_into("<H", data.bytes, record.offset + 4, record.misc & ~MISC_COMM_EXEC)
    first, length = data.attrs
    for at in range(first, first + length, data.attr_size):
        flags, = struct.unpack_from("<Q", data.bytes, at + 40)
        struct.pack_into("<Q", data.bytes, at + 40, flags & ~ATTR_COMM_EXEC)
    path = os.path.join(box.dir, "unmarked.data")
    data.write(path)
    return path


def app_name(name):
    return re.sub(r" \((deleted|build-id|inode)[^)]*\)", "", name[1])


def applications(box, path):
    """The samples of each process, by application, after the import of a file."""
    shutil.rmtree(os.path.join(box.session, "samples", "apps"), ignore_errors=True)
    importtest.imported(box, "apps", "--separate=all", path)
    return by_process(reader.read_session(box.session, "apps", strict=True))


def by_process(files):
    found = collections.defaultdict(collections.Counter)
    for sample_file in files:
        found[sample_file.name.tgid][app_name(sample_file.name.app)] += sample_file.total
    return found


def compare(found, exes, what, kinds=None, before=()):
    """Processes with samples of an application that they never ran, and those with none of their
    own. `before`: what they may have run before.
    """
    wrong, nr, nr_wrong = [], 0, 0
    for pid, exe in exes.items():
        others = {app: count for app, count in found[pid].items() if app != exe and (app not in before or not found[pid][exe])}
        nr += sum(found[pid].values())
        nr_wrong += sum(others.values())
        if others or not found[pid][exe]:
            wrong.append("%s %s: %s" % ((kinds or {}).get(pid, ""), exe, others))
    print("%s: of %d processes %d are wrong, of %d samples %d" % (what, len(exes), len(wrong), nr, nr_wrong))
    return wrong


def require_right(*args, **more):
    wrong = compare(*args, **more)
    require(not wrong, "%s: %s" % (args[2], "; ".join(wrong)))


def check_older(box, kinds):
    workers = Workers(box, kinds)
    path = os.path.join(box.dir, "older.data")
    for words, what in ((("-a",), "all"), (("-p", ",".join(str(pid) for pid in workers.exes)), "by number")):
        workers.record(path, *words)
        require_right(applications(box, path), workers.exes, what, workers.kinds)
        require_right(applications(box, without_marks(box, path)), workers.exes, what + ", unmarked", workers.kinds)
    workers.end()
    require_right(applications(box, path), workers.exes, "after their end", workers.kinds)


def check_execs(box, kinds):
    path = os.path.join(box.dir, "execs.data")
    exes = record_execs(box, kinds, path)
    before = [os.path.realpath(program) for program in ("/bin/sh", sys.executable)]
    require_right(applications(box, path), exes, "execs", before=before)
    require_right(applications(box, without_marks(box, path)), exes, "execs, unmarked", before=before)


def check_daemon(box, kinds):
    """What opd itself says of them, older than it."""
    workers = Workers(box, kinds)
    box.start_daemon("--event=TIMER:200000", "--separate=all")
    workers.wait()
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    require_right(by_process(box.files()), workers.exes, "opd", workers.kinds)
    box.shutdown()
    workers.end()


# ---- files that no perf has written here ----

LIBC, LD, TOP = "/lib/libc.so.6", "/lib/ld-linux-x86-64.so.2", 0x7f0000000000
EXEC_PLACE, NEXT = 0x55d868c24000, 0x1000000


class Recording(importtest.Stream):
    """Records of processes. Each mapping has a sample, which comes before them in the file."""

    def __init__(self, marks):
        super().__init__(1 << 18 | marks << 24)
        self.marks, self.late, self.first, self.wanted = marks, [], {}, {}

    def comm(self, pid, name, is_exec=False, is_made_up=False, tid=None):
        text = name.encode()[:15] + b"\0"
        text += bytes(-len(text) % 8)
        self.put(perf_swap.COMM, MISC_COMM_EXEC if is_exec and self.marks else 0,
                 struct.pack("<II", pid, tid or pid) + text + self.tail(pid, is_made_up))

    def fork(self, parent, pid):
        self.time += 1
        self.put(perf_swap.FORK, 0, struct.pack("<IIIIQ", pid, parent, pid, parent, self.time) + self.tail(pid))

    def older(self, pid, name, *files, app=None):
        """A process as perf finds it in /proc: its name, and files in the order of addresses. The
        application is the one that is marked by a star. Samples of all are older than the records.
        """
        if name is not None:
            self.comm(pid, name, is_made_up=True)
        for number, file in enumerate(files):
            place, _, path = file.rpartition("@")
            start = (int(place.lstrip("*"), 16) if place.lstrip("*") else TOP) + number * NEXT
            self.map(pid, start, path, is_made_up=True)
            self.late.append((pid, start))
            if file.startswith("*"):
                app = path
        self.wanted[pid] = app

    def began(self, pid, comm, *files, app=None):
        """A program as exec and its dynamic linker map it."""
        self.comm(pid, comm, is_exec=True)
        for number, path in enumerate(files):
            self.map(pid, (0x400000 if not number else TOP) + number * NEXT, path)
            self.sample(pid, (0x400000 if not number else TOP) + number * NEXT + importtest.AT)
        self.map(pid, TOP - NEXT, "[vdso]")
        self.wanted[pid] = app or files[0]

    def end(self):
        for pid, start in self.late:
            self.sample(pid, start + importtest.AT)


def fill(recording):
    """Processes, numbered by what they show."""
    low, exe, old = "155500000000@", "*%x@" % EXEC_PLACE, recording.older
    old(1, "server", low + LIBC, low + LD, exe + "/opt/server")
    old(2, "a-very-long-name-of-it", low + LIBC, exe + "/opt/a-very-long-name-of-it", low + LD)
    old(3, None, low + LIBC, low + LD, exe + "/opt/server")
    old(4, "libc.so.6", low + LIBC, low + LD, exe + "/opt/server")
    old(5, "python3", low + LIBC, low + "/opt/aaa", "*2000@/usr/bin/python3.11")
    old(6, "m.example.thing", "70000000@/system/framework/boot.oat", "*6000000000@/system/bin/app_process64",
        "/system/lib64/libc.so")
    old(7, "ld-linux-x86-64", "400000@/opt/server", "*%x@" % TOP + LD, LIBC)
    old(8, "worker", low + LIBC, "*aaaadeaf0000@/opt/server", low + LD)
    old(9, "worker", low + LIBC, "*400000@/opt/server", low + LD)
    old(10, "only-libraries", low + LIBC, low + "/lib/libm.so.6")
    old(11, "odd", "*7f0000000000@/lib/libodd.so")
    old(12, "plug", low + LIBC, "*7f0000000000@/opt/plug", low + "/opt/another")
    recording.comm(13, LIBC.rsplit("/", 1)[1], is_made_up=True, tid=1013)
    old(13, None, low + LIBC, exe + "/opt/server")
    old(14, None, low + LIBC, low + "/opt/elf", low + "/opt/fourteen")
    recording.comm(14, "fourteen", is_made_up=True)
    recording.wanted[14] = "/opt/fourteen"


def fill_later(recording):
    """What happens while it is recorded."""
    fork, began = recording.fork, recording.began
    for pid in (20, 21, 22, 23):
        fork(1, pid)
    began(20, "new", "/opt/new", LD, LIBC)
    began(21, "script.sh", "/bin/dash", LD, LIBC)
    began(22, "ld-linux-x86-64", LD, "/opt/new", LIBC)
    began(23, "static", "/opt/a-link-to-it")
    # A fork keeps the application, whatever it maps and however it and its threads call themselves.
    fork(1, 24)
    recording.comm(24, "thread", tid=1024)
    recording.comm(24, "plugin")
    recording.map(24, 3 * TOP // 2, "/lib/plugin.so")
    recording.sample(24, 3 * TOP // 2 + importtest.AT)
    recording.wanted[24] = "/opt/server"
    # An exec in the same process, twice.
    fork(1, 25)
    began(25, "first", "/opt/first", LD)
    began(25, "second", "/opt/second", LD)


def check_made_up(box):
    for marks in (True, False):
        recording = Recording(marks)
        fill(recording)
        recording.end()
        fill_later(recording)
        found = applications(box, recording.save(box, "made-up"))
        for pid, app in recording.wanted.items():
            apps = dict(found[pid])
            wanted = {app: sum(apps.values())} if app else {LIBC: 1, "/lib/libm.so.6": 1}
            if pid == 25:
                wanted = {"/opt/first": 2, "/opt/second": 2}
            require(apps == wanted, "marks %s, process %d: %s, not %s" % (marks, pid, apps, wanted))
        print("made up, marks %s: %d processes" % (marks, len(recording.wanted)))


def test(box):
    check_made_up(box)
    kinds = build(box)
    check_daemon(box, kinds)
    del kinds[MOVED]
    check_execs(box, kinds)
    check_older(box, kinds)


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
