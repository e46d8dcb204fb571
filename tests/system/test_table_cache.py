#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
The directory of row tables in a running opd: it is full, read-only, of another user, or writable for
others; and a table in it is of another user, writable for others, a link, damaged, or of an older
opd. The stacks are right each time, no file is changed that is not opd's own, and the log names the
directory.
"""
import collections
import os
import shutil
import stat
import sys

import elfsyms
import opdtest
from hot import compile_to
from opdtest import require, wait_until
from test_fault_space import empty, full
from test_stack_shares import FLAGS, NEEDED, functions_of, stacks_of

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "unit"))
from test_gone_images import seal  # noqa: E402

RATE = 997
MS = 500
MIN_STACKS = 50
STRANGER = 12345
SEAL_BYTES = 16
FLAGS_AT = 15  # in the table
KEPT_IN_MEMORY = "tables of images are kept in memory only"
SYMBOLS = ("_start", "main", "leaf", "direct", "compare", "sorted", "deep")


class Program:
    """A program whose build-id no other has, and its table in a directory."""

    nr = 0

    def __init__(self, box, name):
        Program.nr += 1
        # as much of the name as the name of a process holds
        self.path, self.build_id = os.path.join(box.dir, name.replace(" ", "-")[:15]), "%08x%032x" % (Program.nr, os.getpid())
        compile_to(box, self.path, *FLAGS, "-Wl,--build-id=0x" + self.build_id, file="stacks.c")
        self.symbols = elfsyms.symbol_ranges(self.path, SYMBOLS)

    def table(self, directory):
        return os.path.join(directory, self.build_id[:2], self.build_id)


def start(box, directory):
    box.configure(TableDir=directory)
    box.start_daemon("--event=default", "--stacks=%d" % RATE)


def sample(box, program):
    """Its stacks, when its table is known. They are right whatever the directory is."""
    def ends_of(more=None):
        """A stack of which a table is being made is in no file yet."""
        box.opcontrol("--dump")
        wait_until(lambda: not box.status()["stacks_waiting"], opdtest.HANG_SECONDS, "tables of stacks are not made")
        box.opcontrol("--dump")
        if not os.path.exists(os.path.join(box.session, "samples", "current", "stacks")):
            return collections.Counter()
        return collections.Counter(stacks_of(box.session, os.path.basename(program.path))) - (more or collections.Counter())

    def is_known():
        box.good(program.path, 50)
        return any(end == "complete" for end, _ in ends_of())
    wait_until(is_known, opdtest.HANG_SECONDS, "%s: no stack is complete" % program.path)

    def are_right():
        """Only where a disk did not answer in time they need not be. Then opd asks again later."""
        before, ends = ends_of(), collections.Counter()
        box.good(program.path, MS)
        for (end, frames), count in ends_of(before).items():
            names = functions_of(frames, program.symbols)
            ends[end] += count
            require(end != "complete" or "main" not in names or names[0] == "_start", "a complete stack is %s" % names)
        total = sum(ends.values()) - ends["no_table_yet"]  # of the kernel or a library
        is_right = ends["complete"] >= NEEDED * total > MIN_STACKS
        require(is_right or box.status()["looks_unanswered"], "%s: %s" % (program.path, dict(ends)))
        return is_right
    wait_until(are_right, opdtest.HANG_SECONDS, "%s: stacks are not complete" % program.path)


def end(box, what):
    """All at rest; what opd did with tables."""
    box.opcontrol("--stop")
    status = box.check_ledger()
    box.good(os.path.join(box.bin, "opcheck"), "--session-dir=" + box.session)
    counts = {key: status["tables_" + key] for key in ("made", "from_cache", "failed", "crashed", "timed_out")}
    print("%-40s %s" % (what, counts))
    # On a busy machine opd-tables may get no CPU for large images of other programs.
    late = [line for line in box.log_text().splitlines() if "took too long" in line and box.dir in line]
    require(not counts["crashed"] and not late, "%s: %s, %s" % (what, counts, late))
    box.shutdown()
    box.opcontrol("--reset")
    return counts


def sample_until(box, directory, program, is_kept, what):
    """Samples until the program's table is on the disk. The disk takes one table at a time: one that
    comes too early stays in memory and is counted, and the next opd makes it again.
    """
    def is_kept_now():
        start(box, directory)
        sample(box, program)
        wait_until(lambda: is_kept() or box.status()["tables_uncached"], opdtest.HANG_SECONDS, "%s: no table is kept" % what)
        end(box, what)
        return is_kept()
    wait_until(is_kept_now, opdtest.HANG_SECONDS, "%s: no table is kept" % what)


def log_text(box):
    return box.log_text() if os.path.exists(box.log) else ""


def check_full(box, place, directory):
    """Tables that have no room are used all the same; with room they are kept."""
    program = Program(box, "full")
    os.makedirs(directory)
    logged = len(log_text(box))
    with full(place):
        start(box, directory)
        sample(box, program)
        end(box, "a full disk")
    require("not kept on the disk: No space left on device" in log_text(box)[logged:], "the log: %s" % log_text(box)[logged:])
    require(not os.path.exists(program.table(directory)), "a table is on a full disk")
    empty(place)
    sample_until(box, directory, program, lambda: os.path.exists(program.table(directory)), "the same disk with room")
    require(os.path.getsize(program.table(directory)) > 0, "no table is kept although there is room")
    return program


def check_read_only(box, place, directory, known):
    """What is there is used, and what is new is made."""
    program = Program(box, "read-only")
    files = all_files(directory)
    require(box.run("mount", "-o", "remount,ro", place).rc == 0, "cannot make the file system read-only")
    start(box, directory)
    sample(box, known)
    sample(box, program)
    counts = end(box, "a read-only disk")
    require(counts["from_cache"] >= 1, "the tables of a read-only disk are not used: %s" % counts)
    require(all_files(directory) == files, "a read-only disk was changed")
    require(box.run("mount", "-o", "remount,rw", place).rc == 0, "cannot make the file system writable")


def all_files(directory):
    return {os.path.join(at, name): os.stat(os.path.join(at, name), follow_symlinks=False).st_size
            for at, _, names in os.walk(directory) for name in names}


def check_strange_directory(box, directory, what, change):
    """A directory that another user may change is not used."""
    program = Program(box, what)
    os.makedirs(directory)
    change(directory)
    logged = len(log_text(box))
    start(box, directory)
    sample(box, program)
    counts = end(box, "a directory " + what)
    text = log_text(box)[logged:]
    said = "%s: it belongs to another user, or others may write to it: %s" % (directory, KEPT_IN_MEMORY)
    require(said in text, "the log: %s" % text)
    require(counts["made"] >= 1 and not counts["from_cache"], "%s: %s" % (what, counts))
    require(not all_files(directory), "opd wrote into a directory %s: %s" % (what, all_files(directory)))


def damage(path):
    with open(path, "r+b") as stream:
        stream.seek(os.path.getsize(path) // 2)
        byte = stream.read(1)
        stream.seek(-1, os.SEEK_CUR)
        stream.write(bytes([byte[0] ^ 0x55]))


def make_older(path):
    """The table as an opd kept it that knew fewer rows: the maker is 0 (opd-table(5))."""
    with open(path, "rb") as stream:
        table = bytearray(stream.read()[:-SEAL_BYTES])
    require(table[FLAGS_AT] >> 4 >= 1, "a new table has the maker %d" % (table[FLAGS_AT] >> 4))
    table[FLAGS_AT] &= 0xf
    with open(path, "wb") as stream:
        stream.write(seal(table))


def link_to(target):
    def change(path):
        os.replace(path, target)
        os.symlink(target, path)
    return change


def check_strange_file(box, directory, what, change):
    """A table that is not opd's own is not used: opd makes another one in its place."""
    program = Program(box, "f " + what)
    path = program.table(directory)
    sample_until(box, directory, program, lambda: os.path.exists(path), "before a table is " + what)
    with open(path, "rb") as stream:
        table = stream.read()
    change(path)

    def is_made_anew():
        st = os.stat(path, follow_symlinks=False)
        with open(path, "rb") as stream:
            return stream.read() == table and stat.S_ISREG(st.st_mode) and st.st_uid == 0 and not st.st_mode & 0o022
    require(not is_made_anew(), "the table is not " + what)
    sample_until(box, directory, program, is_made_anew, "a table that is " + what)


def check_files(box):
    directory, target = os.path.join(box.dir, "own"), os.path.join(box.dir, "target")
    check_strange_file(box, directory, "of another user", lambda path: os.chown(path, STRANGER, STRANGER))
    check_strange_file(box, directory, "writable for all", lambda path: os.chmod(path, 0o666))
    check_strange_file(box, directory, "damaged", damage)
    check_strange_file(box, directory, "older", make_older)
    check_strange_file(box, directory, "a link", link_to(target))
    require(os.path.getsize(target) > 0 and not os.path.islink(target), "the target of the link was changed")


def test(box):
    if box.run_as != "root":
        raise opdtest.Skip("the files here are root's")
    place = box.tmpfs("small", "size=16m")
    directory = os.path.join(place, "tables")
    check_read_only(box, place, directory, check_full(box, place, directory))
    shutil.rmtree(directory)
    theirs, everybodys = os.path.join(box.dir, "theirs"), os.path.join(box.dir, "everybodys")
    check_strange_directory(box, theirs, "of another user", lambda path: os.chown(path, STRANGER, STRANGER))
    check_strange_directory(box, everybodys, "writable for all", lambda path: os.chmod(path, 0o777))
    check_files(box)


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
