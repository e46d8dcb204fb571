#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""--separate=process-name,user: the samples of each name and user apart, also under hostile names,
and what opreport --by makes of them. Every count is compared with the files, by another reader.
"""
import csv
import io
import itertools
import json
import os
import pwd
import re
import sys
import time
import xml.etree.ElementTree as ElementTree

import opdtest
from opdtest import require

PERIOD_NS = 497000
UID = 54321  # nobody's
# Runs for CPU milliseconds under each of the names, given in hexadecimal.
NAMED = """import ctypes, os, sys, time
if sys.argv[1] != "-":
    os.setuid(int(sys.argv[1]))
for name in sys.argv[3:]:
    ctypes.CDLL(None).prctl(15, bytes.fromhex(name), 0, 0, 0)
    end = time.process_time() + int(sys.argv[2]) / 1000
    while time.process_time() < end:
        pass
"""
RENAMES = """import ctypes
prctl = ctypes.CDLL(None).prctl
for i in range(100000):
    prctl(15, b"rename%d" % i, 0, 0, 0)
"""
HOSTILE = (b"a/b/../c", b"{root}", b"{dep}", b"..", b"\x01\n\t\x7f\xff", b"(x, user 0)", b"-", b"kworker/0:1", b"[ksoftirqd]",
           b"/etc/passwd", b'"&<>,;\\x41', b" ", b"\xc3\xa4\xc3", b"name.of.15.byte")
PYTHON = os.path.realpath(sys.executable)


def run_named(box, names, milliseconds=150, uid="-"):
    box.good(PYTHON, "-c", NAMED, uid, milliseconds, *(name.hex() for name in names))


def table_of(box, session="current"):
    """Rows of the table of images by their name, as bytes."""
    rows, columns = {}, None
    with open(os.path.join(box.session, "samples", session, "dcookies"), "rb") as stream:
        for line in stream.read().split(b"\n"):
            if line.startswith(b"#"):
                columns = line[1:].decode().split("\t")
            elif line and not line.startswith((b"next", b"opd-")):
                values = [re.sub(rb"\\(\\|x(..))", lambda m: bytes.fromhex(m[2].decode()) if m[2] else b"\\", v)
                          for v in line.split(b"\t")]
                rows[values[2]] = dict(zip(columns, values))
    return rows


def by_column(box, column, session="current"):
    """Samples by a column of the application's row; None: it has no such column."""
    rows, found = table_of(box, session), {}
    for sample_file in opdtest.reader.read_session(box.session, session, live=True):
        row = rows.get(os.fsencode(sample_file.name.app[1]), {})
        key = row.get(column)
        found[key] = found.get(key, 0) + sample_file.total
    return found


def in_groups(box, *options):
    """The samples of each group, as opreport --format=json has them."""
    return {row["name"]: sum(row["samples"]) if isinstance(row["samples"], list) else row["samples"]
            for row in json.loads(box.opreport("--format=json", *options))["applications"]}


def have_samples(box, names):
    run_named(box, names)
    box.opcontrol("--dump")
    found = by_column(box, "comm")
    return all(found.get(name, 0) > 100 for name in names)


def check_hostile(box):
    # On a busy machine records are lost, and then /proc has the last name only.
    opdtest.wait_until(lambda: have_samples(box, HOSTILE), opdtest.HANG_SECONDS, "names have no samples of their own")
    names = {f.name.app[1] for f in box.files(live=True) if f.name.app[1].startswith(PYTHON)}
    require(len(names) >= len(HOSTILE), "%d hostile names have %s" % (len(HOSTILE), names))
    require(all(n.startswith(PYTHON + " (") or n == PYTHON for n in names), "a name left its place: %s" % names)
    for form in ("text", "json", "csv", "xml"):
        box.opreport("--format=" + form, *(["-l"] if form == "xml" else []))
        box.opreport("--format=" + form, "--by=comm", *(["-l"] if form == "xml" else []))


def check_storm(box):
    """100,000 names of one process: 16 in a tenth of a second are taken, and all is counted."""
    begin = time.monotonic()
    box.good(PYTHON, "-c", RENAMES)
    most = 16 * (10 * (time.monotonic() - begin) + 2)
    box.opcontrol("--dump")
    names = [row for row in table_of(box).values() if row.get("comm", b"").startswith(b"rename")]
    require(0 < len(names) <= most, "%d names of the storm have rows, %d at most" % (len(names), most))
    require(most > 50000 or box.status()["process_names_skipped"] > 0, "no name was skipped")


def total_of(box, session="current"):
    return sum(f.total for f in opdtest.reader.read_session(box.session, session, live=True))


def check_groups(box):
    """Every group has the samples that the files have, and every form says the same."""
    total = total_of(box)
    for by, column in (("comm", "comm"), ("user", "user")):
        files = by_column(box, column)
        rows = in_groups(box, "--by=" + by)
        require(sum(rows.values()) == total, "--by=%s adds up to %d of %d" % (by, sum(rows.values()), total))
        if by == "user":
            users = {entry.pw_uid: entry.pw_name for entry in pwd.getpwall()}
            files = {users.get(int(k), k.decode()): n for k, n in files.items() if k and k != b"-"}
            files["root"] += sum(n for name, n in kernel_threads(box).items())
        else:
            # JSON shows bytes that are no UTF-8 as escapes
            files = {k.decode(): n for k, n in files.items()
                     if k and k != b"-" and k.isascii() and k.decode().isprintable() and b"\\" not in k}
            files.update({k: files.get(k, 0) + n for k, n in kernel_threads(box).items()})
        for name, nr in files.items():
            require(rows.get(name) == nr, "--by=%s: %s has %s, the files %d (of %s)" % (by, name, rows.get(name), nr, rows))
    check_forms(box)


def kernel_threads(box):
    found = {}
    for sample_file in box.files(live=True):
        kind, name = sample_file.name.app
        if kind == "kern" and name.startswith("/["):
            found[name[1:]] = found.get(name[1:], 0) + sample_file.total
    return found


def check_forms(box):
    """Text, CSV, XML, symbols, --top, --reverse-sort and percentages of --by=user."""
    rows = in_groups(box, "--by=user")
    text = box.opreport("--by=user", "--no-header")
    found = {name: nr for nr, name in re.findall(r"^ *(\d+) +\S+ (.+)$", text, re.MULTILINE)}
    require({k: int(v) for k, v in found.items()} == rows, "text says %s, JSON %s" % (text, rows))
    counts = [int(line.split()[0]) for line in text.splitlines()]
    require(counts == sorted(counts, reverse=True), "not sorted: %s" % text)
    for line in text.splitlines():
        nr, percent = line.split()[:2]
        require(abs(float(percent) - 100.0 * int(nr) / sum(counts)) < 0.001, "a wrong percentage: %s" % line)
    lines = box.opreport("--by=user", "--no-header", "--reverse-sort").splitlines()
    # equal counts stay in the order of their names
    require(lines == sorted(text.splitlines(), key=lambda line: int(line.split()[0])), "--reverse-sort: %s of %s" % (lines, text))
    require(box.opreport("--by=user", "--no-header", "--top=1").splitlines() == text.splitlines()[:1], "--top=1")
    lines = list(csv.reader(io.StringIO(box.opreport("--by=user", "--format=csv"))))
    require({row[1] for row in lines if row[0] == "application"} == set(rows), "CSV has %s" % lines)
    xml = ElementTree.fromstring(box.opreport("--by=user", "-X"))
    named = {element.get("name") for element in xml.iter("binary")}
    require(named == set(rows), "XML has %s, JSON %s" % (named, rows))
    symbols = json.loads(box.opreport("--by=user", "-l", "--format=json"))["symbols"]
    for user, nr in rows.items():
        mine = sum(sum(row["samples"]) for row in symbols if row["application"] == user)
        require(0.9 * nr <= mine <= nr, "the symbols of %s have %d of %d" % (user, mine, nr))
    require([k for k, _ in itertools.groupby(row["application"] for row in symbols)] == sorted(rows),
            "the symbols of a group do not stand together")
    heading = box.opreport("--by=user", "-l").splitlines()
    require(any(re.search(r"image name +user +symbol name", line) for line in heading), "no column of users: %s" % heading[:8])


def check_selection(box):
    """A program is selected by the path of its file, and shown with the name of its process."""
    run_named(box, [b"other-name"])
    box.opcontrol("--dump")
    nr = by_column(box, "comm")[b"other-name"]
    out = box.opreport("--no-header", "-f", PYTHON)
    require(re.search(r"^ *%d +\S+ %s \(other-name\)$" % (nr, re.escape(PYTHON)), out, re.MULTILINE), "no other-name: %s" % out)
    require("other-name" in box.opreport("-f", "image:" + PYTHON), "image: leaves out a program")
    require("other-name" not in box.opreport("-f", "image-exclude:" + PYTHON), "image-exclude: leaves a program")


def check_users(box):
    before, named_before = by_column(box, "user").get(b"%d" % UID, 0), by_column(box, "comm").get(b"by-a-user", 0)
    run_named(box, [b"by-a-user"], 800, uid=UID)
    box.opcontrol("--dump")
    nr = by_column(box, "user").get(b"%d" % UID, 0) - before
    named = by_column(box, "comm").get(b"by-a-user", 0) - named_before
    # The user is asked for at the first sample, which may be before setuid.
    if not named or nr < 0.9 * named:
        return False
    require(in_groups(box, "--by=user").get(str(UID), 0) >= nr, "--by=user has no %d" % UID)
    return True


def check_others(box):
    """A closed session, an archive, a difference, opcheck, and what a session was not kept apart by."""
    box.opcontrol("--stop")
    groups = in_groups(box, "--by=comm")
    box.opcontrol("--save=first")
    box.opcontrol("--start")
    require(in_groups(box, "--by=comm", "session:first") == groups, "a closed session has other groups")
    archive = os.path.join(box.dir, "archive")
    box.good(os.path.join(box.bin, "oparchive"), "--session-dir=" + box.session, "-o", archive, "session:first")
    again = in_groups(box, "--by=comm", "archive:" + archive, "session:first")
    require(again == groups, "the archive has %s, not %s" % (again, groups))
    users = in_groups(box, "--by=user", "archive:" + archive, "session:first")
    require("0" in users and "root" not in users, "an archive names users of this machine: %s" % users)
    run_named(box, [b"other-name", b"only-second"])
    box.opcontrol("--dump")
    out = box.opreport("--by=comm", "-l", "{", "session:first", "}", "{", "session:current", "}")
    require(re.search(r"\+\+\+.*only-second", out) and "---" in out, "the difference: %s" % out[:2000])
    result = json.loads(box.good(os.path.join(box.bin, "opcheck"), "--session-dir=" + box.session, "--json", "first"))
    require(not result["sessions"][0]["problems"], "opcheck says %s" % result)
    for by, separate in (("thread", "thread"), ("cgroup", "cgroup")):
        line = box.refused(os.path.join(box.bin, "opreport"), "--session-dir=" + box.session, "--by=" + by)
        require("--separate=" in line and separate in line, "--by=%s: %s" % (by, line))
    line = box.refused(os.path.join(box.bin, "opreport"), "--session-dir=" + box.session, "--by=colour")
    require("comm, cgroup, user, thread" in line, line)


def check_restart(box):
    """The next daemon goes on with the same files."""
    run_named(box, [b"other-name"])
    box.opcontrol("--dump")
    files = {f.path for f in box.files(live=True) if "(other-name" in f.path}
    box.shutdown()
    box.start_daemon()
    run_named(box, [b"other-name"], 300)
    box.opcontrol("--dump")
    again = {f.path for f in box.files(live=True) if "(other-name" in f.path}
    require(all(path in again for path in files), "%s became %s" % (files, again))
    require(len({path.split("/{dep}")[0] for path in again}) == 1, "one name has several programs: %s" % again)


def check_threads(box):
    """--separate=thread groups by thread, and a session without names has no --by=comm."""
    box.shutdown()
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=kernel,thread")
    box.opcontrol("--reset")
    child = box.start(box.copy_work("thread-app"), "spin", 200)
    require(child.wait() == 0, "the program failed")
    box.opcontrol("--stop")
    nr = sum(f.total for f in box.files(live=True) if f.name.tid == child.pid)
    rows = in_groups(box, "--by=thread")
    require(sum(rows.values()) == total_of(box), "--by=thread adds up to %d" % sum(rows.values()))
    # Before exec it had another name.
    mine = {name: n for name, n in rows.items() if name.startswith("tid:%d tgid:%d " % (child.pid, child.pid))}
    require(sum(mine.values()) == nr and any(name.endswith(" thread-app") for name in mine),
            "%d has %d in %s" % (child.pid, nr, mine))
    line = box.refused(os.path.join(box.bin, "opreport"), "--session-dir=" + box.session, "--by=comm")
    require("process-name" in line, line)


def main_test(box):
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=process-name,user")
    short = box.good(os.path.join(box.bin, "opcontrol"), "--status")
    require(re.search("(?m)^Separate: .*process-name, user$", short), "--status without --verbose: %s" % short)
    check_hostile(box)
    check_storm(box)
    opdtest.wait_until(lambda: check_users(box), opdtest.HANG_SECONDS, "a process that calls setuid keeps its first user")
    box.opcontrol("--stop")
    check_groups(box)
    box.check_ledger()
    box.opcontrol("--start")
    check_selection(box)
    check_others(box)
    check_restart(box)
    check_threads(box)
    box.shutdown()


if __name__ == "__main__":
    opdtest.run(main_test, larger_rings=True)
