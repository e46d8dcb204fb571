#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
A user maps libraries of root's, and in turns with each of them a file of the user at the same place,
which has the same length, time, build-id and code, but rows that end each walk. opd makes the tables
of these libraries meanwhile. The tables are those of root's files all the same, in memory
and on the disk, for this daemon and the next one: stacks of root's programs are whole.
"""
import collections
import os
import re
import shutil
import subprocess

import opdtest
from hot import compile_to, source
from opdtest import require, wait_until

NR = 3  # libraries
RATE = 997
MS = 1000
TEXT_MS = 100
NEEDED = 0.95  # of the samples in the library
STRANGER = 65534
USER = ("setpriv", "--reuid=%d" % STRANGER, "--regid=%d" % STRANGER, "--clear-groups")


class Library:
    def __init__(self, box, number):
        self.name, self.build_id = "libpoison%d.so" % number, "%02x%038x" % (0xa0 + number, os.getpid())
        self.path, self.evil = os.path.join(box.dir, self.name), os.path.join(box.dir, "evil", self.name)
        text, evil = os.path.join(box.dir, "l.s"), os.path.join(box.dir, "f.s")
        box.good("gcc", "-O1", "-fomit-frame-pointer", "-fPIC", "-DLIBRARY", "-S", source("poison.c"), "-o", text)
        with open(text, encoding="ascii") as stream:
            code = stream.read()
        offset = next(n for n in re.findall(r"cfi_def_cfa_offset (\d+)", code) if int(n) > 100)
        with open(evil, "w", encoding="ascii") as stream:
            stream.write(code.replace(".cfi_def_cfa_offset " + offset, ".cfi_undefined %s" % self.return_column(code)))
        for file, path in ((text, self.path), (evil, self.evil)):
            box.good("gcc", "-shared", "-Wl,--build-id=0x" + self.build_id, "-o", path, file)
        length = max(os.path.getsize(self.path), os.path.getsize(self.evil))
        for path in (self.path, self.evil):
            os.truncate(path, length)
            os.utime(path, ns=(10**18, 10**18))
        os.chown(self.evil, STRANGER, STRANGER)
        self.program = os.path.join(box.dir, "poisoned%d" % number)
        box.good("gcc", "-O1", "-DUSER", source("poison.c"), "-o", self.program, "-L" + box.dir, "-l:" + self.name,
                 "-Wl,-rpath," + box.dir)

    @staticmethod
    def return_column(code):
        return "rip" if "%rsp" in code else "30"

    def text(self, box):
        """Where the code lies in the file, and its function there."""
        for line in box.good("readelf", "-lW", self.path).splitlines():
            words = line.split()
            if words[:1] == ["LOAD"] and "R E" in line:
                offset, length = words[1], (int(words[4], 16) + 4095) & ~4095
        function = next(line.split()[0] for line in box.good("nm", "-D", self.path).splitlines() if line.endswith(" T work"))
        return offset, str(length), "0x" + function

    def kept(self, directory):
        return os.path.join(directory, self.build_id[:2], self.build_id)


def table_of(box, program, path):
    """What opd-tables makes of a file."""
    with open(path, "rb") as stream:
        return subprocess.run([program], stdin=stream, capture_output=True, check=True, env={}, cwd=box.dir).stdout


def check_stacks(box, libraries, when):
    """Whole stacks of root's programs, as soon as the table of the library is there."""
    for library in libraries:
        def ends_of(ms):
            before = ends_so_far()
            box.good(library.program, ms)
            return ends_so_far() - before

        def ends_so_far():
            box.opcontrol("--dump")
            ends, report = collections.Counter(), box.run(os.path.join(box.bin, "opreport"), "--session-dir=" + box.session,
                                                          "--format=folded", library.program)
            for line in report.out.splitlines():
                frames, count = line.rsplit(" ", 1)
                if "work" in frames.split(";") and "_[k]" not in frames and "no_table_yet" not in frames:
                    ends["main;outer;inner;work" in frames] += int(count)
            return ends
        wait_until(lambda: ends_of(100), opdtest.HANG_SECONDS, "%s has no table" % library.name)
        ends = ends_of(MS)
        print("%s, %s: %d whole stacks, %d others" % (when, library.name, ends[True], ends[False]))
        require(ends[True] > NEEDED * sum(ends.values()) > 50, "%s: stacks of %s: %s" % (when, library.name, dict(ends)))


def check_kept(box, libraries, real, directory):
    """A file in root's name is the table of root's file."""
    for library in libraries:
        path = library.kept(directory)
        if not os.path.exists(path):
            continue
        with open(path, "rb") as stream:
            kept = stream.read()
        require(kept.startswith(table_of(box, real, library.path)), "%s is no table of %s" % (path, library.path))
        require(not kept.startswith(table_of(box, real, library.evil)), "%s was made of the user's file" % path)


def test(box):
    real = box.env.get("OPD_TABLES")
    directory, attacker = os.path.join(box.dir, "kept"), os.path.join(box.dir, "poison")
    if not real or not shutil.which("setpriv"):
        raise opdtest.Skip("no opd-tables of a build, or no setpriv")
    os.chmod(box.dir, 0o755)
    os.mkdir(os.path.join(box.dir, "evil"))
    libraries = [Library(box, number) for number in range(NR)]
    compile_to(box, attacker, file="poison.c")
    box.configure(TableDir=directory)
    box.start_daemon("--event=default", "--stacks=%d" % RATE)
    attackers = [box.start(*USER, attacker, library.path, library.evil, *library.text(box), TEXT_MS)
                 for library in libraries]
    made = box.status()["tables_made"]
    wait_until(lambda: box.status()["tables_made"] >= made + NR, opdtest.HANG_SECONDS, "no tables are made")
    check_stacks(box, libraries, "beside the attack")
    for child in attackers:
        require(child.poll() is None, "the attacker has ended")
        box.end_busy(child)
    check_kept(box, libraries, real, directory)
    box.shutdown()
    box.opcontrol("--reset")
    box.start_daemon("--event=default", "--stacks=%d" % RATE)
    check_stacks(box, libraries, "the next daemon")
    check_kept(box, libraries, real, directory)
    box.opcontrol("--stop")
    box.check_ledger()
    box.shutdown()


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
