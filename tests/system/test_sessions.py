#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Sessions as a user has them: --save with and without a daemon, --reset, session: and
session-exclude:, several sessions added up, --since and --until, archive:.
"""
import os
import re
import shutil
import sys

import opdtest
import reader
from opdtest import require
from test_build_ids import can_be_asked

NOTHING = "There is no current session with samples: nothing was saved.\n"


def total(box, session):
    return sum(f.total for f in reader.read_session(box.session, session=session, strict=True))


def reported(text):
    """The samples of all applications in a summary without header: lines that are not indented."""
    return sum(int(line.split()[0]) for line in text.splitlines() if re.match(r"^ *\d+ +[\d.]+ \S", line))


def work(box):
    box.good(box.copy_work("session-app"), "busy", 600, min(os.sched_getaffinity(0)))
    box.opcontrol("--dump")


def check_save(box, opcontrol):
    """With a daemon: names that cannot be, a name that is taken, samples that go on in the next
    session.
    """
    work(box)
    for name in ("current", ".hidden", "a/b", "a b", "", "x" * 300):
        require("invalid name of a session" in box.refused(opcontrol, "--save=" + name), "--save=%s is not refused clearly" % name)
    box.refused(opcontrol, "--save=one", "--reset")
    box.refused(opcontrol, "--save")
    box.opcontrol("--save=one")
    one = total(box, "one")
    require(one > 0, "nothing was saved")
    work(box)
    require("already" in box.refused(opcontrol, "--save=one"), "a session was saved over")
    require(total(box, "one") == one, "a saved session changed")
    box.opcontrol("--save=2026-11-21T03:00Z")
    work(box)
    box.opcontrol("--reset")
    require(total(box, "one") == one, "--reset touches a saved session")
    work(box)


def check_save_of_nothing(box):
    """A session in which nothing was taken since the last one was closed, or was emptied, is not
    saved, with a daemon as without.
    """
    box.opcontrol("--stop")
    box.opcontrol("--save=whole")
    shutil.rmtree(os.path.join(box.session, "samples", "whole"))
    for prepare in ((), (), ("--reset",)):
        if prepare:
            box.opcontrol(*prepare)
        require(box.opcontrol("--save=nothing") == NOTHING, "nothing to save is not told after %s" % (prepare,))
        require(not os.path.exists(os.path.join(box.session, "samples", "nothing")),
                "an empty session was saved after %s" % (prepare,))
    box.opcontrol("--start")


def check_save_alone(box, opcontrol):
    """Without a daemon: the same."""
    current = total(box, "current")
    require("already" in box.refused(opcontrol, "--save=one"), "a session was saved over")
    require(r"'session:three\,more'" in box.opcontrol("--save=three,more"), "it is not told how a name with a comma is written")
    require(total(box, "three,more") == current, "not all was saved")
    require(not os.path.exists(os.path.join(box.session, "lock")), "a lock is left")
    require(box.opcontrol("--save=four") == NOTHING, "nothing to save is not told")
    require(not os.path.exists(os.path.join(box.session, "samples", "four")), "an empty session was saved")


def check_reports(box, opreport, names):
    """One session, several, without some; the genuine rule that several conflict unless they are
    merged.
    """
    totals = {name: total(box, name) for name in names}
    for name in names:
        spec = "session:" + name.replace(",", "\\,")
        require(reported(box.opreport("-n", "-f", spec)) == totals[name], "opreport %s has other counts" % spec)
    every = "session:" + ",".join(n.replace(",", "\\,") for n in names)
    session_dir = "--session-dir=" + box.session
    for tool in (opreport, os.path.join(box.bin, "oparchive")):
        said = box.run(tool, session_dir, "--list-files" if tool != opreport else "-f", every).err
        require("parsed twice" in said and "choose one of these" in said,
                "%s: sessions are added up without being asked: %s" % (tool, said))
    require(reported(box.opreport("-n", "-f", "-m", "all", every)) == sum(totals.values()), "-m all does not add up")
    rest = reported(box.opreport("-n", "-f", "-m", "all", every, "session-exclude:one"))
    require(rest == sum(totals.values()) - totals["one"], "session-exclude: leaves other samples")
    for span in (["--since=today", "--until=tomorrow"], ["--since=-2h"], ["--until=now"],
                 ["--since=1 hour ago", "--until=1h left"]):
        result = box.run(opreport, session_dir, "-n", "-f", *span)
        require(result.rc == 0 and reported(result.out) == sum(totals.values()), "%s: %s%s" % (span, result.out, result.err))
        require("%d sessions" % len(names) in result.err, "%s: which sessions is not told: %s" % (span, result.err))
    link = os.path.join(box.session, "samples", "a-link")
    os.symlink("one", link)
    result = box.run(opreport, session_dir, "-n", "-f", "--since=-2h")
    os.unlink(link)
    require(reported(result.out) == sum(totals.values()) and "%d sessions" % len(names) in result.err,
            "a link has a session counted twice: %s" % (result,))
    result = box.run(opreport, session_dir, "-n", "-f", "--since=-2h", "session-exclude:one")
    require(reported(result.out) == rest and "%d session" % (len(names) - 1) in result.err,
            "--since with session-exclude: %s" % (result,))
    line = box.refused(opreport, session_dir, "--since=-2h", "session-exclude:" + every.partition(":")[2])
    require("session-exclude: leaves none of the %d" % len(names) in line, "all are excluded: %s" % line)


def check_errors(box, opreport):
    session_dir = "--session-dir=" + box.session
    for words, text in ((["--since=soon"], "is not a time"), (["--since=2026-02-30"], "no such date"),
                        (["--since=tomorrow"], "no session was taken"),
                        (["--until=@1"], "those in"), (["--since=now", "--until=yesterday"], "later than"),
                        (["--since=today", "session:one"], "use only one of them"), (["session:nobody"], "no session"),
                        (["archive:/nowhere/at/all"], "archive /nowhere/at/all: No such file"),
                        (["archive:" + box.dir], box.dir + "/var/lib/oprofile")):
        line = box.refused(opreport, session_dir, *words)
        require(text in line, "%s: %s" % (words, line))


def check_archive(box, opreport):
    """An archive as oparchive makes it: sessions in var/lib/oprofile, images below the directory.
    --session-dir has no effect on it.
    """
    archive = os.path.join(box.dir, "archive")
    shutil.copytree(os.path.join(box.session, "samples"), os.path.join(archive, "var/lib/oprofile/samples"))
    app = box.copy_work("session-app")
    os.makedirs(archive + os.path.dirname(app))
    shutil.move(app, archive + app)
    plain = box.opreport("-n", "-f", "session:one")
    archived = box.good(opreport, "--session-dir=/nowhere", "-n", "-f", "archive:" + archive, "session:one")
    require(reported(archived) == reported(plain), "the archive has other counts: %s" % archived)
    symbols = box.good(opreport, "-n", "-l", "archive:" + archive, "session:one", app)
    require("spin_here" in symbols, "no symbols from the archive: %s" % symbols)
    shutil.move(archive + app, app)


def check_replaced(box):
    """Another program took the path between two sessions: both profiles are there, and not mixed;
    the later one has the name.
    """
    path = box.copy_work("swap-app")
    box.good(path, "busy", 600, min(os.sched_getaffinity(0)))
    box.opcontrol("--save=before")
    os.unlink(path)
    shutil.copy(os.path.realpath(sys.executable), path)
    box.good(path, "-c", "for i in range(5000000): pass")
    box.opcontrol("--save=after")
    text = box.opreport("-n", "-f", "--since=-2h", "session-exclude:current")
    counts = dict((line.split(None, 2)[2], int(line.split()[0])) for line in text.splitlines()
                  if re.match(r"^ *\d+ +[\d.]+ ", line))
    old = [n for n in counts if re.match(re.escape(path) + r" \((build-id [0-9a-f]{12}|inode \d+)\)$", n)]
    require(len(old) == 1 and counts.get(path, 0) > 0 and counts[old[0]] > 0, "two programs of one path: %s" % counts)
    for name in ("before", "after"):
        shutil.rmtree(os.path.join(box.session, "samples", name))


def symbols_of(text, image):
    return {line.split()[-1] for line in text.splitlines() if line.split()[2:3] == [image]}


def check_replaced_since(box, opreport):
    """A file that replaced another one after the profile gives no symbols, not even with the time
    of the old one. A copy of the old file gives them.
    """
    if not can_be_asked():
        print("SKIP of a file that was replaced since: before Linux 6.11 nobody knows its build-id")
        return
    path, kept = box.copy_work("since-app"), os.path.join(box.dir, "kept")
    asked = box.busy_until_ended(path)  # a process that is there when opd looks: the file has its build-id from then on
    box.await_look()
    box.await_look()
    box.end_busy(asked)
    box.good(path, "spin", 300)
    box.opcontrol("--dump")
    symbols = symbols_of(box.opreport("-n", "-l", path), "since-app")
    require(any(name.startswith("spin_here") for name in symbols), "no symbols before the file was replaced: %s" % symbols)
    before = os.stat(path)
    os.mkdir(kept)
    shutil.move(path, kept)
    shutil.copy(os.path.realpath(sys.executable), path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    result = box.run(opreport, "--session-dir=" + box.session, "-n", "-l", path)
    require(symbols_of(result.out, "since-app") == {path} and "build-id" in result.err,
            "another file gave symbols: %s%s" % (result.out, result.err))
    require(symbols_of(box.opreport("-n", "-l", "-p", kept, path), "since-app") == symbols,
            "a copy of the file that ran gives other symbols")
    os.unlink(path)


def kill(box):
    """Samples that no dump has seen, and a daemon that did not end in order; how many there are."""
    box.start_daemon()
    box.good(box.copy_work("session-app"), "busy", 600, min(os.sched_getaffinity(0)))
    box.daemon.kill()
    box.daemon.wait()
    return total(box, "current")


def largest(directory):
    return max((os.path.join(d, n) for d, _, names in os.walk(os.path.join(directory, "{root}")) for n in names),
               key=os.path.getsize)


def check_save_after_kill(box):
    """The ledger says what the files hold; what a power cut left of them the next daemon looks at,
    as it would have done in the current session.
    """
    opcheck, samples = os.path.join(box.bin, "opcheck"), os.path.join(box.session, "samples")
    killed = kill(box)
    box.opcontrol("--save=killed")
    require(total(box, "killed") == killed > 0, "not all was saved")
    box.good(opcheck, "--session-dir=" + box.session, "killed")
    kill(box)
    path = largest(os.path.join(samples, "current"))
    with open(path, "r+b") as stream:
        stream.write(bytes(os.path.getsize(path)))
    box.opcontrol("--save=cut")
    require(box.run(opcheck, "--session-dir=" + box.session, "cut").rc == 2, "a file of zeros is called sound")
    box.start_daemon(start=False)
    box.shutdown()
    for name in ("killed", "cut"):
        require(not os.path.exists(os.path.join(samples, name, "closing")), "the daemon did not look at %s" % name)
        box.good(opcheck, "--session-dir=" + box.session, name)
    require(total(box, "killed") == killed, "a daemon changed a sound session")


def test(box):
    opcontrol, opreport = os.path.join(box.bin, "opcontrol"), os.path.join(box.bin, "opreport")
    box.start_daemon()
    check_save(box, opcontrol)
    check_replaced(box)
    check_replaced_since(box, opreport)
    check_save_of_nothing(box)
    work(box)
    box.shutdown()
    check_save_alone(box, opcontrol)
    names = ["one", "2026-11-21T03:00Z", "three,more"]
    check_reports(box, opreport, names)
    check_errors(box, opreport)
    check_archive(box, opreport)
    check_save_after_kill(box)
    box.good(os.path.join(box.bin, "opcheck"), "--session-dir=" + box.session)


if __name__ == "__main__":
    opdtest.run(test)
