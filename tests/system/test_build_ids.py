#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
BuildIds=yes: images have the build-ids that readelf shows, those of programs that ran before opd
and of programs that came later, on a disk and in memory;
and no other profiler is disturbed, while opd is not by another that asks for them itself.
"""
import os
import re
import shutil
import signal
import subprocess
import sys

import opdtest
from hot import PERIOD_NS, compile_to
from opdtest import require

MS = 300
ATTEMPTS = 5  # others who profile on this host disturb us as well


def build_id(path):
    """As readelf shows it, '-' for none."""
    found = re.search("Build ID: ([0-9a-f]+)", subprocess.run(["readelf", "-n", path], capture_output=True,
                                                              check=True).stdout.decode())
    return found.group(1) if found else "-"


def rows(box, *paths):
    """{path: [(build-id, inode)]} of the images of these files."""
    with open(os.path.join(box.session, "samples", "current", "dcookies"), encoding="utf-8") as stream:
        lines = [line.rstrip("\n").split("\t") for line in stream]
    columns = lines[1]
    columns[0] = columns[0].lstrip("#")
    found = {}
    for line in lines[2:]:
        row = dict(zip(columns, line))
        if row.get("path") in paths:
            found.setdefault(row["path"], {})[row[columns[0]]] = (row["build_id"], int(row["inode"]))
    return {path: list(which.values()) for path, which in found.items()}


def waiting(box, path):
    child = box.start_piped(path, "plain", MS)
    opdtest.wait_until(lambda: opdtest.is_waiting(child.pid), opdtest.START_SECONDS, "%s does not wait" % path)
    return child


def go(*children):
    for child in children:
        child.stdin.close()
    for child in children:
        require(child.wait(opdtest.CALL_SECONDS) == 0, "a program failed")


def make_program(box, path, *flags):
    compile_to(box, path, "-w", "-DVARIANT=\"%s\"" % path, *flags)
    return path


def check_rows(box, *paths):
    box.opcontrol("--dump")
    found = rows(box, *paths)
    wanted = {path: [(build_id(path), os.stat(path).st_ino)] for path in paths}
    for path in paths:
        print("%-40s %s" % (os.path.relpath(path, box.dir), found.get(path)))
    require(found == wanted, "rows %s, not %s" % (found, wanted))


def can_be_asked():
    """Linux 6.11 and later answer PROCMAP_QUERY."""
    import ctypes  # pylint: disable=import-outside-toplevel
    import struct  # pylint: disable=import-outside-toplevel
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/maps", "rb") as maps:
        query = ctypes.create_string_buffer(struct.pack("<13Q", 104, 16, *[0] * 11))
        return libc.ioctl(maps.fileno(), ctypes.c_ulong(0xc0686611),
                          query) == 0 or os.strerror(ctypes.get_errno()) != os.strerror(25)


def check_ids(box):
    """Programs that started before opd and later, a program without a build-id, code in memory, and
    a process that is gone at once.
    """
    memory = box.tmpfs("memory", "size=16m")
    early, early_memory = make_program(box, os.path.join(box.dir, "early")), make_program(box, os.path.join(memory, "early"))
    children = [waiting(box, early), waiting(box, early_memory)]
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel")
    paths = [early, early_memory]
    for name, directory, flags in (("late", box.dir, ()), ("static", box.dir, ("-static",)),
                                   ("none", box.dir, ("-Wl,--build-id=none",)),
                                   ("long", box.dir, ("-Wl,--build-id=md5",)), ("late", memory, ()),
                                   ("none", memory, ("-Wl,--build-id=none",))):
        paths.append(make_program(box, os.path.join(directory, name), *flags))
    for path in paths[2:]:
        for _ in range(3):
            box.run(path, "plain", 1)
        children.append(waiting(box, path))
    box.await_look()
    box.await_look()
    go(*children)
    check_rows(box, *paths)
    check_library(box)
    check_written_anew(box, paths[2])
    box.opcontrol("--stop")
    box.check_ledger()
    box.shutdown()


def check_library(box):
    """The C library of this program, which the others use as well. A container may have another one
    at its path.
    """
    with open("/proc/self/maps", encoding="utf-8") as maps:
        path = next((line.split()[-1] for line in maps if "/libc.so" in line), None)
    if path:
        found = rows(box, path).get(path, [])
        require((build_id(path), os.stat(path).st_ino) in found, "%s is not among %s" % (path, found))


def check_written_anew(box, path):
    """In place: the same inode, another program."""
    before = rows(box, path)[path]
    other = make_program(box, path + "-other", "-DOTHER")
    with open(other, "rb") as stream:
        data = stream.read()
    with open(path, "r+b") as stream:
        stream.write(data)
        stream.truncate()
    child = waiting(box, path)
    box.await_look()
    box.await_look()
    go(child)
    box.opcontrol("--dump")
    after = rows(box, path)[path]
    require(sorted(after) == sorted(before + [(build_id(other), before[0][1])]),
            "written anew in place: %s, then %s" % (before, after))


# ---- others ----


def perf(box, *words):
    return ["perf", "record", "-o", os.path.join(box.dir, "perf.data"), *words]


def perf_of_a_program(box, path):
    """perf record of a program: its exit code."""
    return box.run(*perf(box, "--", path, "faults", 200)).rc


def perf_of_all(box, path, with_opd):
    """perf record of the whole system, started before opd; programs run after that. Returns its
    exit code, and how many of their mappings it has.
    """
    output = os.path.join(box.dir, "perf.data")
    if os.path.exists(output):
        os.unlink(output)
    child = box.start(*perf(box, "-a", "-e", "cpu-clock", "-c", 10000000), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    opdtest.wait_until(lambda: os.path.exists(output) and os.path.getsize(output), opdtest.START_SECONDS,
                       "perf record does not begin")
    if with_opd:
        box.start_daemon("--event=page-faults:1")
    for _ in range(3):
        box.good(path, "faults", 200)
    if with_opd:
        box.shutdown()
    child.send_signal(signal.SIGINT)
    rc = child.wait(opdtest.CALL_SECONDS)
    shown = box.run("perf", "script", "-i", output, "--show-mmap-events") if rc in (0, -signal.SIGINT) else None
    return rc, sum("MMAP2" in line and line.endswith(path) for line in shown.out.splitlines()) if shown else 0


def check_perf(box):
    """perf record ends well and has its mappings beside an opd that started later; perf record of
    one program alone where no other opd disturbs it.
    """
    path = box.copy_work("neighbour")
    for attempt in range(ATTEMPTS):
        beside = perf_of_all(box, path, True)
        print("perf record -a beside opd: exit code %d, %d mappings" % beside)
        if beside[0] in (0, -signal.SIGINT) and beside[1] >= 3:
            break
        alone = perf_of_all(box, path, False)
        print("perf record -a without it: exit code %d, %d mappings" % alone)
        if alone[0] not in (0, -signal.SIGINT):
            print("another profiler on this host disturbs perf record: not compared")
            break
        require(attempt + 1 < ATTEMPTS, "perf record -a beside opd has exit code %d and %d mappings of a program" % beside)
    for attempt in range(ATTEMPTS):
        if perf_of_a_program(box, path):
            print("another profiler on this host disturbs perf record of a program: not compared")
            return
        box.start_daemon("--event=page-faults:1")
        rc = perf_of_a_program(box, path)
        box.shutdown()
        if rc == 0:
            return
        require(attempt + 1 < ATTEMPTS, "perf record of a program beside opd has exit code %d" % rc)


def check_beside_one_that_asks(box):
    """perf record --buildid-mmap, begun after opd: the kernel marks opd's records as if they had
    build-ids. Nothing is taken for one.
    """
    path, output = box.copy_work("asked"), os.path.join(box.dir, "perf.data")
    box.configure(BuildIds="no")
    box.start_daemon("--event=page-faults:1")
    if os.path.exists(output):
        os.unlink(output)
    child = box.start(*perf(box, "-a", "--buildid-mmap", "-e", "cpu-clock", "-c", 10000000),
                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    opdtest.wait_until(lambda: child.poll() is not None or (os.path.exists(output) and os.path.getsize(output)),
                       opdtest.START_SECONDS, "perf record does not begin")
    if child.poll() is None:
        for _ in range(3):
            box.good(path, "faults", 500)
        child.send_signal(signal.SIGINT)
        child.wait(opdtest.CALL_SECONDS)
        box.opcontrol("--dump")
        found = rows(box, path).get(path)
        print("beside perf record --buildid-mmap: %s" % found)
        require(found == [("-", os.stat(path).st_ino)], "rows of the program: %s" % found)
    else:
        print("perf record --buildid-mmap is not to be had: not compared")
    box.shutdown()
    box.configure()


def test(box):
    if can_be_asked():
        check_ids(box)
    else:
        print("SKIP of build-ids: the kernel is older than 6.11")
    if shutil.which("perf"):
        check_perf(box)
        check_beside_one_that_asks(box)
    else:
        print("SKIP of perf record: there is no perf")


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
