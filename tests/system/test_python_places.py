#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Python as it is installed and started: in a venv, under another name, as a master that forks workers
before and after opd has seen it, in a container that has a Python of its own, and below C code of a
library. Functions have names in all of these, and so do the samples of each worker. A Python that opd
refuses (free-threaded, or with musl) is counted, and opd says why.
"""
import os
import re
import shutil
import struct
import sys

import elfsyms
import opdtest
import test_python
from opdtest import Skip, require
from test_python import FRAME, RATE

LEAST, NEEDED = 200, 0.99
NR_WORKERS = 4
SECONDS = 1
PYTHON = shutil.which("python3", path="/usr/bin:/bin") or sys.executable

PROGRAM = """import ctypes, os, sys, time
def call_me(name): ctypes.CDLL(None).prctl(15, name.encode())
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass
def worker(number, seconds):
    call_me("worker-%d" % number)
    burn(seconds)
def master(nr, seconds):
    call_me("master")
    burn(seconds)
    for number in range(nr):
        if not os.fork():
            worker(number, seconds)
            os._exit(0)
    for _ in range(nr):
        os.wait()
if sys.argv[1] == "fork":
    master(int(sys.argv[2]), float(sys.argv[3]))
else:
    call_me(sys.argv[1])
    burn(float(sys.argv[2]))
"""
NUMPY = """import ctypes, sys, time
import numpy
ctypes.CDLL(None).prctl(15, b"with-numpy")
values = numpy.random.default_rng(1).random(100000)
def back(row): return numpy.sort(row)
def sorter():
    end = time.process_time() + float(sys.argv[1])
    while time.process_time() < end:
        numpy.apply_along_axis(back, 0, values)
sorter()
"""


def keep(box, name, text):
    path = os.path.join(box.dir, name)
    with open(path, "w", encoding="ascii") as stream:
        stream.write(text)
    return path


def start(box):
    box.start_daemon("--event=default", "--stacks=%d" % RATE)


def stop(box):
    box.shutdown()
    box.opcontrol("--reset")


def dump(box):
    box.opcontrol("--dump")
    opdtest.wait_until(lambda: not box.status()["stacks_waiting"], opdtest.HANG_SECONDS, "stacks wait for tables")


def count(box, comm, script):
    """(samples with a function, those of them with all names and burn() innermost or above it)"""
    nr = good = 0
    for line, samples in test_python.own_stacks(box, comm).items():
        frames = [frame for frame in map(FRAME.match, line.split(";")) if frame]
        nr += samples if frames else 0
        own = [frame.group(1) for frame in frames if frame.group(2) == script]
        if own and not any(frame.group(1).startswith("[") for frame in frames):
            good += samples
    return nr, good


def require_named(box, comm, script, least=LEAST):
    nr, good = count(box, comm, script)
    without = sum(test_python.own_stacks(box, comm).values()) - nr
    print("%s: %d of %d samples have all names, %d have no function" % (comm, good, nr, without))
    require(nr >= least, "%s: only %d samples have functions" % (comm, nr))
    require(good >= NEEDED * nr, "%s: %d of %d samples have all names" % (comm, good, nr))
    require(without <= 0.1 * (nr + without), "%s: %d samples have no function" % (comm, without))


def know(box, python, script):
    """Afterwards opd knows this file as a Python."""
    for _ in range(2):
        box.good(python, script, "known", SECONDS)
        dump(box)
    box.opcontrol("--stop")
    box.opcontrol("--reset")
    box.opcontrol("--start")


def check_venv(box, script):
    folder = os.path.join(box.dir, "venv")
    if box.run(PYTHON, "-m", "venv", "--without-pip", folder).rc:
        print("no venv: python3-venv is not installed")
        return
    python = os.path.join(folder, "bin", "python")
    require(os.path.islink(python), "%s is no link" % python)
    start(box)
    know(box, python, script)
    box.good(python, script, "in-venv", SECONDS)
    dump(box)
    require_named(box, "in-venv", script)
    stop(box)


def check_renamed(box, script):
    """A copy under a name that says nothing, and another name in the place of a running one."""
    copy = os.path.join(box.dir, "billing")
    shutil.copy(os.path.realpath(PYTHON), copy)
    start(box)
    know(box, copy, script)
    box.good(copy, script, "renamed", SECONDS)
    os.rename(copy, copy + ".old")
    box.good(copy + ".old", script, "renamed-old", SECONDS)
    dump(box)
    require_named(box, "renamed", script)
    require_named(box, "renamed-old", script)
    stop(box)


def check_forks(box, script):
    """The master runs before the workers are forked, so opd has seen it; each worker is named."""
    start(box)
    know(box, PYTHON, script)
    box.good(PYTHON, script, "fork", NR_WORKERS, SECONDS)
    dump(box)
    require_named(box, "master", script)
    for number in range(NR_WORKERS):
        require_named(box, "worker-%d" % number, script)
    box.opcontrol("--stop")
    box.opcontrol("--reset")
    # the master is forked from while opd starts
    child = box.start(PYTHON, script, "fork", NR_WORKERS, 3 * SECONDS)
    box.opcontrol("--start")
    require(child.wait(timeout=opdtest.HANG_SECONDS) == 0, "the master failed")
    dump(box)
    for number in range(NR_WORKERS):
        require_named(box, "worker-%d" % number, script)
    stop(box)


def check_container(box, script):
    """A Python that only the container has, with a mount and a pid namespace of its own."""
    inner = os.path.join(box.dir, "inner")
    os.mkdir(inner)
    text = 'mount -t tmpfs opd-test %s && cp %s %s/python && exec %s/python "$@"' % (inner, os.path.realpath(PYTHON), inner, inner)
    command = ("unshare", "--mount", "--propagation=private", "--pid", "--fork", "--mount-proc", "sh", "-c", text, "sh",
               script, "in-container")
    if box.run(*command, "0").rc:
        print("no container: this host allows no namespaces")
        return
    start(box)
    children = [box.start(*command, "3600", start_new_session=True)]

    def has_samples():
        dump(box)
        return count(box, "in-container", script)[1] >= LEAST
    opdtest.wait_until(has_samples, opdtest.HANG_SECONDS, "functions in a container have no names")
    box.opcontrol("--stop")
    box.opcontrol("--reset")
    box.opcontrol("--start")
    opdtest.wait_until(has_samples, opdtest.HANG_SECONDS, "functions in a container have no names")
    for child in children:
        os.killpg(child.pid, 9)
        child.wait()
    dump(box)
    require_named(box, "in-container", script)
    stop(box)


def check_numpy(box):
    """Python calls numpy, which calls Python back, which calls numpy: in this order."""
    if box.run(PYTHON, "-c", "import numpy").rc:
        print("no numpy: python3-numpy is not installed")
        return
    script = keep(box, "with-numpy.py", NUMPY)
    start(box)
    for _ in range(2):
        box.good(PYTHON, script, 2 * SECONDS)
        dump(box)
    nr = right = native_leaf = 0
    for line, samples in test_python.own_stacks(box, "with-numpy").items():
        own = [FRAME.match(step).group(1) for step in line.split(";") if FRAME.match(step) and FRAME.match(step).group(2) == script]
        if "sorter" not in own or "back" not in own:
            continue
        nr += samples
        right += samples if own == ["<module>", "sorter", "back"] else 0
        native_leaf += samples if not FRAME.match(line.split(";")[-1]) else 0
    print("numpy: %d of %d stacks in order, %d end in native code" % (right, nr, native_leaf))
    require(nr >= LEAST and right == nr, "%d of %d stacks have the order of the calls" % (right, nr))
    require(native_leaf >= 0.5 * nr, "only %d of %d end in the code of numpy" % (native_leaf, nr))
    stop(box)


# ---- files that are no ordinary Python ----


def place_of(data, wanted):
    """Where the file has the content of a variable."""
    sections = elfsyms.sections_of(data)
    for _, kind, _, _, offset, size, link, _, _, _ in sections:
        for at in range(offset, offset + size, elfsyms.SYMBOL.size) if kind == elfsyms.SHT_SYMTAB else ():
            name_at, _, _, index, value, _ = elfsyms.SYMBOL.unpack_from(data, at)
            name_at += sections[link][4]
            if data[name_at:data.index(b"\0", name_at)] == wanted.encode() and 0 < index < len(sections):
                return value - sections[index][3] + sections[index][4]
    raise opdtest.Failure("no %s" % wanted)


# Words of Python 3.13 (pycore_runtime.h) for the structures that forged_python.c makes.
OWN_OFFSETS = {0: 0x7970677562656478, 1: 0x030d01f0, 2: 0, 3: 4096, 5: 40, 6: 512, 9: 16, 19: 512, 21: 8, 23: 56, 24: 152,
               28: 120, 29: 48, 30: 32, 31: 56, 33: 68, 34: 512, 35: 112, 37: 128, 38: 136, 39: 72, 43: 184,
               65: 16, 66: 32, 68: 32, 69: 16, 70: 48}


BUILD_ID_BYTES = 20
BUILD_ID_HEAD = struct.pack("<III4s", 4, BUILD_ID_BYTES, 3, b"GNU")


def forge(box, name, **changes):
    """A copy of forged_python that is 3.13, with offsets of its own. changes: w5=1: word 5 is 1."""
    path = box.copy_work(name, "forged_python")
    with open(path, "rb") as stream:
        data = bytearray(stream.read())
    struct.pack_into("<I", data, place_of(data, "Py_Version"), OWN_OFFSETS[1])
    for word, value in {**OWN_OFFSETS, **{int(word[1:]): value for word, value in changes.items()}}.items():
        struct.pack_into("<Q", data, place_of(data, "_PyRuntime") + 8 * word, value)
    build_id = data.find(BUILD_ID_HEAD) + len(BUILD_ID_HEAD)
    require(build_id > len(BUILD_ID_HEAD), "%s has no build-id" % path)
    data[build_id:build_id + BUILD_ID_BYTES] = os.urandom(BUILD_ID_BYTES)  # opd keeps tables by it
    with open(path, "wb") as stream:
        stream.write(data)
    return path


def run_forged(box, path, way):
    """{stack: samples}, and how each counter of Python changed."""
    before = box.status()
    for _ in range(2):  # the first one makes opd know the file
        box.good(path, way, "600", timeout=opdtest.HANG_SECONDS)
        dump(box)
    after = box.status()
    more = {name: after["python_" + name] - before["python_" + name] for name in ("complete", "none", "refused", "samples")}
    found = test_python.own_stacks(box, os.path.basename(path))
    named = sum(count for line, count in found.items() if ";forged(python:/a/forged.py:7)" in line)
    print("%s: %d of %d stacks have the function, %s" % (os.path.basename(path), named, sum(found.values()), more))
    require(sum(found.values()) >= LEAST, "only %d samples" % sum(found.values()))
    return named / sum(found.values()), more


def check_own_offsets(box):
    """opd reads by the file's own offsets; with one that cannot be, by its own table."""
    start(box)
    share, more = run_forged(box, forge(box, "own-offsets"), "direct")
    require(share > 0.4 and more["complete"], "own offsets are not read")
    for name, changes in (("own-wild", {"w5": 2 ** 64 - 8}), ("own-odd", {"w23": 57}), ("own-version", {"w1": 0x030e00f0})):
        share, more = run_forged(box, forge(box, name, **changes), "direct")
        require(not share and more["none"] and not more["refused"], "%s: wrong offsets are read" % name)
    # possible, and nonsense: opd lives and reads nothing of it
    share, more = run_forged(box, forge(box, "own-false", w5=640, w9=496, w23=504, w24=504, w35=8, w37=0), "direct")
    require(not share, "false offsets name a function")
    test_python.check_ledger(box.status())
    stop(box)


def require_refused(box, path, why):
    share, more = run_forged(box, path, "good")
    require(not share and more["refused"] == 1, "%s is read, or not counted" % path)
    line = "the functions of %s have no names: %s" % (path, why)
    require(line in box.log_text(), "the log does not say: %s" % line)


def check_refused(box):
    start(box)
    require_refused(box, forge(box, "free-threads", w2=1), "it is a free-threaded build")
    nr = 1
    if shutil.which("musl-gcc"):
        path = os.path.join(box.dir, "of-musl")
        box.good("musl-gcc", "-g", "-O1", "-o", path, os.path.join(os.environ["OPD_SOURCE"], "tests", "system", "forged_python.c"))
        require_refused(box, path, "its C library is musl")
        box.good("musl-gcc", "-g", "-O1", "-static", "-o", path + "-s",
                 os.path.join(os.environ["OPD_SOURCE"], "tests", "system", "forged_python.c"))
        require_refused(box, path + "-s", "its C library is musl")
        nr = 3
    else:
        print("no musl-gcc (musl-tools)")
    text = " ".join(box.good(os.path.join(box.bin, "opcontrol"), "--status").split())
    require(re.search(r"python: %d files? cannot be read, the log says why" % nr, text), text)
    stop(box)


def test(box):
    if "OPD_WAITS" not in box.env:
        raise Skip("opd was built without clang or libbpf")
    script = keep(box, "places.py", PROGRAM)
    check_refused(box)
    check_own_offsets(box)
    check_forks(box, script)
    check_venv(box, script)
    check_renamed(box, script)
    check_container(box, script)
    check_numpy(box)


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
