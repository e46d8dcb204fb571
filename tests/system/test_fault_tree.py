#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Calls that fail, and a session directory that somebody changes under the daemon: each has its
counter and a line in the log, the daemon lives and goes
on when it is over, and nothing outside of the session is ever written.
"""
import errno
import os
import shutil
import signal
import subprocess

import faultload
import opdtest
from opdtest import require
from test_dcookies import rows_and_missing
from test_rotation import read_ledger

FAULTS = 600
TOGETHER = 8
SETUP = ("--event=page-faults:1", "--separate=library,kernel")

# What fails, the counter, and what the log says of it.
FAILURES = [
    ("openat", errno.EMFILE, "{dep}", "lost_too_many_files", "Too many open files"),
    ("openat", errno.ENFILE, "{dep}", "lost_too_many_files", "Too many open files in system"),
    ("openat", errno.EACCES, "{dep}", "lost_io_error", "Permission denied"),
    ("openat", errno.EIO, "{dep}", "lost_io_error", "Input/output error"),
    ("openat", errno.EMFILE, "tmp/sample", "lost_too_many_files", ""),
    ("openat", errno.EROFS, "tmp/sample", "lost_io_error", "Read-only file system"),
    ("mkdirat", errno.EROFS, "{dep}", "lost_io_error", "Read-only file system"),
    ("fallocate", errno.EIO, "tmp/sample", "lost_io_error", "Input/output error"),
    ("fallocate", errno.EDQUOT, "tmp/sample", "lost_no_space", "Disk quota exceeded"),
    ("renameat", errno.EIO, "samples/current", "lost_io_error", ""),
]


def lost(box, counter):
    return sum(e[counter] for e in box.status()["events"])


def stored_of(box, app):
    return sum(f.total for f in box.files(live=True) if f.name.app[1] == app)


def require_counting(box, name):
    app = box.copy_work(name)
    box.work_until(lambda: stored_of(box, app) > 0, "%s is not counted" % name, app, "faults", FAULTS)


def calls_that_fail(box, shim):
    for number, (call, code, part, counter, words) in enumerate(FAILURES):
        before = lost(box, counter)
        shim.say("fail %s %d %s" % (call, code, part))
        box.work_until(lambda c=counter, b=before: lost(box, c) > b, "%s with %s is not counted as %s" % (call,
                errno.errorcode[code], counter),
                       box.copy_work("failing-%d" % number), "faults", FAULTS)
        opdtest.wait_until(lambda w=words: w in box.log_text(), opdtest.HANG_SECONDS, "the log does not say %r" % words)
        shim.say()
        require_counting(box, "working-%d" % number)
        print("%s %s: %s" % (call, errno.errorcode[code], counter))


def without_fallocate(box, shim):
    """A file system that cannot reserve blocks, like some network file systems: opd writes the
    blocks, and nothing is lost.
    """
    before = lost(box, "lost_io_error")
    shim.say("fail fallocate %d session" % errno.EOPNOTSUPP)
    require_counting(box, "unallocated")
    box.good("python3", "-c", "import json, re, socket, subprocess")  # files that grow
    box.opcontrol("--dump")
    box.files(live=True)
    require(lost(box, "lost_io_error") == before, "samples are lost where fallocate is not known: %s" % box.log_text())
    shim.say()


def ledger_of(box):
    """The stored samples by the session's ledger, and the samples in its files."""
    _, events = read_ledger(current(box))
    return sum(row["stored"] for row in events.values()), sum(f.total for f in box.files())


def beside_the_files(box, shim):
    """No room for the ledger, the stats and the table of images while sample files have room: no
    sample is lost, and they are written when there is room.
    """
    before = [lost(box, counter) for counter in ("lost_no_space", "lost_io_error")]
    errors = box.status()["dcookie_errors"]
    shim.say("fail write %d tmp/ledger" % errno.ENOSPC, "fail write %d tmp/stats" % errno.ENOSPC,
             "fail write %d dcookies" % errno.ENOSPC)
    app = box.copy_work("without-a-row")
    box.good(app, "faults", FAULTS)
    opdtest.wait_until(lambda: stored_of(box, app) > 0, opdtest.HANG_SECONDS,
                       "nothing is stored while the ledger cannot be written")
    opdtest.wait_until(lambda: box.status()["dcookie_errors"] > errors, opdtest.HANG_SECONDS, "the table of images has no error")
    box.opcontrol("--stop")
    opdtest.wait_until(lambda: "cannot write the session's ledger" in box.log_text(), opdtest.HANG_SECONDS,
                       "the log says nothing of the ledger")
    status = box.check_ledger(not_sampled=1 << 40)
    require([lost(box, counter) for counter in ("lost_no_space", "lost_io_error")] == before,
            "samples are lost: %s" % status["events"])
    _, missing = rows_and_missing(box)
    require(app in missing, "the image has a row")
    shim.say()
    box.opcontrol("--start")

    def has_row():
        box.good(app, "faults", FAULTS)
        return app not in rows_and_missing(box)[1]
    opdtest.wait_until(has_row, opdtest.HANG_SECONDS, "the row is not written when there is room again")
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    stored, in_files = ledger_of(box)
    require(stored == in_files, "the ledger has %d, the files %d" % (stored, in_files))
    require(rows_and_missing(box)[1] == [], "images without a row: %s" % rows_and_missing(box)[1])
    box.opcontrol("--start")
    print("ledger, stats, table: %d samples" % stored)


def dump_that_fails(box, shim):
    shim.say("fail fsync %d session" % errno.EIO)
    require_counting(box, "undumped")
    line = box.refused(os.path.join(box.bin, "opcontrol"), "--dump")
    require("Input/output error" in line, "the dump does not say why: %s" % line)
    shim.say()
    box.opcontrol("--dump")


def current(box, *parts):
    return os.path.join(box.session, "samples", "current", *parts)


def link_instead(path, outside):
    """A link in the place of a directory, which is kept where there is one."""
    if os.path.isdir(path):
        os.rename(path, path + ".away")
    os.symlink(outside, path)


def unlink_again(path):
    os.unlink(path)
    if os.path.isdir(path + ".away"):
        os.rename(path + ".away", path)


def need_damaged(box, number):
    """A sample file that is none: it would go to damaged/."""
    app = box.copy_work("damaged-%d" % number)
    box.work_until(lambda: own_files(box, app), "nothing is counted", app, "faults", FAULTS)
    for path in own_files(box, app):
        os.truncate(current(box, path), 0)
    box.good(app, "faults", FAULTS)


def links_beside(box, outside):
    """Directories of a session that the daemon does not write at the moment, or only when something
    is wrong.
    """
    before = faultload.listing(outside)
    damaged = os.path.join(box.session, "damaged")
    link_instead(damaged, outside)
    need_damaged(box, 0)
    for name in ("cgroup", "mem"):
        link_instead(current(box, name), outside)
    box.run(os.path.join(box.bin, "opcontrol"), "--dump")
    box.opcontrol("--reset")
    require(faultload.listing(outside) == before, "a reset led out of the session: %s" % faultload.listing(outside))
    unlink_again(damaged)
    require_counting(box, "unlinked-beside")


def links_at_the_start(box, outside, shim):
    """The same for what a daemon tidies up before it counts."""
    for path in (os.path.join(box.session, "tmp"), os.path.join(box.session, "samples"), current(box), current(box, "{root}")):
        before = faultload.listing(outside)
        box.daemon.send_signal(signal.SIGKILL)
        box.daemon.wait()
        link_instead(path, outside)
        said_before = len(box.log_text())
        try:
            box.start_daemon(env=shim.env)
            box.good(box.copy_work("started-linked"), "faults", FAULTS)
            box.run(os.path.join(box.bin, "opcontrol"), "--dump")
        except opdtest.Failure:
            said = box.log_text()[said_before:]
            require("not a directory" in said.lower(), "opd does not start: %s" % said)
        require(faultload.listing(outside) == before, "%s led a start out of the session: %s" % (path, faultload.listing(outside)))
        if box.daemon.poll() is None:
            box.daemon.send_signal(signal.SIGKILL)
            box.daemon.wait()
        unlink_again(path)
        box.start_daemon(env=shim.env)
        require_counting(box, "restarted")


def links_in_the_tree(box, outside):
    """Where a directory of the session was there is a link to elsewhere: nothing is written there.
    """
    for name in ("ledger", "dcookies", "sample", "total_samples", "dcookies-closed-1"):
        with open(os.path.join(outside, name), "w", encoding="ascii") as stream:
            stream.write("untouched\n")
    app = box.copy_work("below")
    box.work_until(lambda: own_files(box, app), "nothing is counted", app, "faults", FAULTS)
    deep = current(box, "{root}" + app)
    for number, path in enumerate((current(box, "{root}"), current(box, "{kern}"), deep, os.path.join(deep, "{dep}"),
                                   os.path.join(box.session, "tmp"),
                                   current(box, "stats"), current(box))):
        before = faultload.listing(outside)
        link_instead(path, outside)
        box.good(box.copy_work("linked-%d" % number), "faults", FAULTS)
        box.run(os.path.join(box.bin, "opcontrol"), "--dump")
        box.run(os.path.join(box.bin, "opcontrol"), "--stop")
        require(faultload.listing(outside) == before, "%s led out of the session: %s" % (path, faultload.listing(outside)))
        unlink_again(path)
        box.opcontrol("--start")
        require_counting(box, "unlinked-%d" % number)
    require("Not a directory" in box.log_text(), "the log says nothing of the links")
    links_beside(box, outside)


def own_files(box, app):
    """Paths of the files with the samples in the program itself."""
    return [f.path for f in box.files(live=True) if f.name.app[1] == f.name.image[1] == app]


def others_in_place_of_files(box, outside):
    """In place of sample files stand a directory, a link to a file elsewhere, a pipe, and garbage.
    """
    victim = os.path.join(outside, "victim")
    with open(victim, "w", encoding="ascii") as stream:
        stream.write("untouched\n" * 400)
    makers = (os.makedirs, lambda path: os.symlink(victim, path), os.mkfifo,
              lambda path: shutil.copy(victim, path))
    before = faultload.listing(outside)
    for number, make in enumerate(makers):
        app = box.copy_work("replaced-%d" % number)
        box.work_until(lambda a=app: own_files(box, a), "nothing is counted", app, "faults", FAULTS)
        paths = own_files(box, app)
        for path in paths:
            os.unlink(current(box, path))
            make(current(box, path))
            box.give(current(box, path))
        if number:
            box.daemon.send_signal(signal.SIGHUP)  # files are opened again
        else:
            box.run(os.path.join(box.bin, "opcontrol"), "--dump")  # finds it gone, unless it was given up with others before

        def is_back(name=app, wanted=paths):
            box.good(name, "faults", FAULTS)
            return all(os.path.isfile(current(box, p)) and not os.path.islink(current(box, p)) and
                       os.path.getsize(current(box, p)) % 20 == 104 % 20 for p in wanted)
        opdtest.wait_until(is_back, opdtest.HANG_SECONDS, "what is no sample file stays in the way: %s" % make)
    require(faultload.listing(outside) == before, "something outside was written")
    require("is not a sample file" in box.log_text(), "the log says nothing of what was put aside")
    box.files(live=True)


def others_beside_the_files(box):
    """In place of the ledger and of the numbers: a dump says which, and what to do, until they are
    gone.
    """
    for name, is_there in (("ledger", os.path.isfile), ("stats", os.path.isdir)):
        path = current(box, name)
        os.rename(path, path + ".away")
        if name == "stats":
            with open(path, "wb"):
                pass
        else:
            os.mkdir(path)
        line = box.refused(os.path.join(box.bin, "opcontrol"), "--dump")
        require(name in line and "has its name: remove that" in line, "what stands at %s is not told: %s" % (name, line))
        shutil.rmtree(path, ignore_errors=True)
        if os.path.exists(path):
            os.unlink(path)
        box.opcontrol("--dump")
        require(is_there(path), "%s is not made anew" % name)


def long_path(box):
    """However long the path of the file is, the reason and the remedy are said."""
    deep = os.path.join("d" * 200, "e" * 200)
    os.makedirs(os.path.join(box.dir, deep))
    app = box.copy_work(os.path.join(deep, "app"))
    box.work_until(lambda: own_files(box, app), "nothing is counted", app, "faults", FAULTS)
    for path in own_files(box, app):
        os.unlink(current(box, path))
    line = box.refused(os.path.join(box.bin, "opcontrol"), "--dump")
    require(line.strip().endswith("its counts are lost"), "the end of the message is cut off: %s" % line)
    box.opcontrol("--dump")


def ends_without_its_lock(box):
    """The daemon ends by itself, says why, and counts what had no place."""
    code = box.daemon.wait(opdtest.START_SECONDS)
    require(code == 1, "opd has lost its session directory and ends with %s" % code)
    text = box.log_text()
    require("session directory %s, or its file lock, was removed or replaced" % box.session in text,
            "opd does not say why it ends: %s" % text)
    require("samples lost (lost_io_error)" in text, "what had no place is not counted: %s" % text)


def directory_goes_away(box):
    """The whole session directory is removed under the daemon: it ends, and nothing comes back."""
    busy = box.start("sh", "-c", "while %s faults %d >/dev/null; do :; done" % (box.copy_work("gone"), FAULTS))
    opdtest.wait_until(lambda: shutil.rmtree(box.session, ignore_errors=True) or not os.path.exists(box.session),
                       opdtest.HANG_SECONDS, "cannot remove it")
    ends_without_its_lock(box)
    busy.kill()
    require(not os.path.exists(box.session), "the session directory came back by itself")
    require(not os.path.exists(box.socket), "the control socket is still there")


def tree(path):
    return sorted(os.path.join(d, n) for d, _, names in os.walk(path) for n in names)


def second_beside_the_first(box):
    """No second daemon writes where a first one does: not when the lock file or all files are
    removed, as long as the directory is the same. In another directory of the same name it starts
    at once, and the first one writes nothing there.
    """
    other = os.path.join(box.dir, "other.conf")
    with open(other, "w", encoding="utf-8") as stream:
        stream.write("SessionDir=%s\nControlSocket=%s\nSessionInterval=0\nProfileOnStart=no\n" % (
            box.session, os.path.join(box.dir, "other")))
    opcontrol, second = os.path.join(box.bin, "opcontrol"), {"OPD_CONFIG": other}

    def remove_lock():
        os.unlink(os.path.join(box.session, "lock"))

    def remove_files():
        for name in os.listdir(box.session):
            path = os.path.join(box.session, name)
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)

    def replace():
        os.rename(box.session, box.session + ".old")
        os.mkdir(box.session)
        shutil.copy(os.path.join(box.session + ".old", "daemonrc"), box.session)
        box.give(box.session)

    for change, is_the_same in ((remove_lock, True), (remove_files, True), (replace, False)):
        box.start_daemon(*SETUP)
        box.daemon.send_signal(signal.SIGSTOP)  # it cannot notice
        change()
        result = box.run(opcontrol, "--start-daemon", env=second)
        if is_the_same:
            require(result.rc == 1 and "another opd" in result.err, "%s: a second opd: %s" % (change.__name__, result))
        else:
            require(result.rc == 0, "a second opd does not start in a directory of its own: %s" % (result,))
        before = tree(os.path.join(box.session, "samples"))
        box.daemon.send_signal(signal.SIGCONT)
        require(box.daemon.wait(opdtest.START_SECONDS) == 1, "%s: opd ends with %s" % (change.__name__, box.daemon.returncode))
        require("removed or replaced" in box.log_text(), "%s: opd does not say why it ends" % change.__name__)
        if not is_the_same:
            after = tree(os.path.join(box.session, "samples"))
            require(after == before, "the first opd wrote to the directory of the second: %s" % (set(after) ^ set(before)))
            box.good(opcontrol, "--shutdown", env=second)
    shutil.rmtree(box.session + ".old")


def locked_by_a_stranger(box):
    """Any user who may read the directory can lock it. That keeps no daemon away."""
    holder = box.start("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "flock", "--no-fork", box.session,
                       "sleep", "infinity")
    opdtest.wait_until(lambda: box.run("flock", "-n", box.session, "true").rc, opdtest.HANG_SECONDS, "nobody locks the directory")
    box.start_daemon(*SETUP)
    box.shutdown()
    holder.kill()


def second_daemon(box):
    """Whoever comes second is refused by the first one's number."""
    other = os.path.join(box.dir, "other.conf")
    with open(other, "w", encoding="utf-8") as stream:
        stream.write("SessionDir=%s\nControlSocket=%s\n" % (box.session, os.path.join(box.dir, "other")))
    line = box.refused(box.env["OPD_DAEMON"], "--config=" + other)
    require("pid %d" % box.daemon.pid in line, "the first daemon is not named: %s" % line)


def both_at_once(box):
    """Of two that start together one stays, with a socket that answers, and the other names it."""
    for _ in range(TOGETHER):
        shutil.rmtree(box.session, ignore_errors=True)
        pair = [subprocess.Popen([box.env["OPD_DAEMON"]], env=box.env, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True) for _ in range(2)]
        try:
            opdtest.wait_until(lambda: any(p.poll() is not None for p in pair), opdtest.START_SECONDS, "two opds run")
            left = [p for p in pair if p.poll() is None]
            require(len(left) == 1, "none of two is left")
            line = next(p for p in pair if p.poll() is not None).stderr.read()
            require("pid %d" % left[0].pid in line, "the one that stays is not named: %s" % line)
            opdtest.wait_until(lambda: not box.run(os.path.join(box.bin, "opcontrol"), "--dump").rc,
                               opdtest.START_SECONDS, "the one that stays does not answer")
        finally:
            for p in pair:
                if p.poll() is None:
                    p.terminate()
                p.communicate()


def read_only(box):
    """A file system that becomes read-only under the daemon, where the kernel does that to files
    that are mapped; else FAILURES has it.
    """
    place = box.tmpfs("remounted", "size=4m")
    box.session = os.path.join(place, "session")
    box.configure()
    box.start_daemon()
    require_counting(box, "before-ro")
    if box.run("mount", "-o", "remount,ro", place).rc != 0:
        print("files are mapped: this kernel refuses to remount them read-only")
    else:
        box.good(box.copy_work("at-ro"), "faults", FAULTS)
        opdtest.wait_until(lambda: lost(box, "lost_io_error") > 0, opdtest.HANG_SECONDS, "nothing is counted as lost")
        box.good("mount", "-o", "remount,rw", place)
    require_counting(box, "after-ro")
    box.shutdown()


def check_session(box, what):
    """The session's own ledger: what was received is stored or lost, and what is stored is in the
    files. What is lost.
    """
    box.opcontrol("--stop")
    box.opcontrol("--dump")
    _, events = read_ledger(current(box))
    for event, row in events.items():
        lost_here = sum(v for k, v in row.items() if k.startswith("lost_") and k != "lost_kernel")
        require(row["received"] == row["stored"] + lost_here, "%s: %s: %s" % (what, event, row))
    stored, in_files = ledger_of(box)
    require(stored == in_files, "%s: the ledger has %d, the files %d" % (what, stored, in_files))
    box.opcontrol("--start")
    return sum(row["lost_io_error"] for row in events.values())


def removed_under_it(box):
    """Programs whose files are removed and who do not run again, and a whole session with what an
    earlier daemon stored: lost by name.
    """
    box.session = os.path.join(box.dir, "removed")
    box.configure()
    box.start_daemon(*SETUP)
    gone, stays = box.copy_work("gone-app"), box.copy_work("stays-app")
    for app in (gone, stays):
        box.good(app, "faults", FAULTS)
    box.opcontrol("--dump")
    nr_gone = sum(f.total for f in box.files(live=True) if f.name.app[1] == gone)
    require(nr_gone >= FAULTS, "the program has %d samples" % nr_gone)
    shutil.rmtree(current(box, "{root}" + gone))
    box.good(stays, "faults", FAULTS)
    box.opcontrol("--dump")
    nr_lost = check_session(box, "a program's files")
    require(nr_lost == nr_gone, "%d samples were removed, %d are lost" % (nr_gone, nr_lost))
    require(gone in box.log_text() and "the file was removed" in box.log_text(), "the log does not say what was removed")
    box.shutdown()
    box.start_daemon()
    box.good(stays, "faults", FAULTS)
    os.rename(current(box), os.path.join(box.dir, "away"))
    box.run(os.path.join(box.bin, "opcontrol"), "--dump")
    require_counting(box, "after-all")
    check_session(box, "all files")
    box.shutdown()
    print("removed: %d samples of a program, then all" % nr_lost)


def write_over(path, begin, make):
    """Bytes of the file from there on, in the inode that the daemon has mapped."""
    with open(path, "r+b") as stream:
        old = stream.read()
        stream.seek(begin)
        stream.write(make(old[begin:], len(old)))


def circle(old, nr_bytes):
    """Each node is the next of itself."""
    nodes = (nr_bytes - 104) // 20
    return b"".join(old[16 * i:16 * i + 12] + i.to_bytes(4, "little") for i in range(nodes)) + old[16 * nodes:]


def beyond(old, nr_bytes):
    """Each bucket leads beyond the end."""
    nodes = (nr_bytes - 104) // 20
    return old[:16 * nodes] + b"\xff\xff\xff\x7f" * nodes


def restore(box, name):
    """
    What it copies is whose it was: a user's opd could not remove what is root's. cp ends where opd
    makes a directory between its look and its own making:
    then it is done again, which writes over as much.
    """
    command = ("cp", "-r", "--preserve=ownership", os.path.join(box.session, "samples", name, "."), current(box))
    for _ in range(100):
        result = box.run(*command)
        if result.rc == 0 or "File exists" not in result.err:
            break
    require(result.rc == 0, "%s: %s" % (" ".join(command), result.err))


def written_over(box):
    """Files that are written over in place, as cp does it: the daemon goes on, and tells which."""
    box.session = os.path.join(box.dir, "written-over")
    box.configure()
    box.start_daemon(*SETUP)
    said = len(box.log_text())
    for begin, make in ((104, circle), (104, beyond), (72, lambda old, _: os.urandom(len(old))),
                        (0, lambda old, _: os.urandom(len(old)))):
        app = box.copy_work("over")
        box.good(app, "faults", FAULTS)
        box.opcontrol("--dump")
        for f in box.files(live=True):
            write_over(current(box, f.path), begin, make)
        box.good(app, "faults", FAULTS)
        box.run(os.path.join(box.bin, "opcontrol"), "--dump")
        require(box.daemon.poll() is None, "opd died of a file that was written over: %s" % box.log_text()[said:])
        box.good(app, "faults", FAULTS)
        box.opcontrol("--dump")
        box.opcontrol("--reset")
    box.good("python3", "-c", "import json, re, socket, subprocess")  # files that grow
    box.opcontrol("--save=large")
    box.good(box.copy_work("small"), "faults", FAULTS)
    restore(box, "large")
    box.good("python3", "-c", "import json, re, socket, subprocess")
    box.run(os.path.join(box.bin, "opcontrol"), "--dump")
    require(box.daemon.poll() is None, "opd died of a session that was restored over its own: %s" % box.log_text()[said:])
    box.opcontrol("--reset")
    require_counting(box, "after-over")
    check_session(box, "after all")
    box.shutdown()
    print("written over: %d lines in the log" % box.log_text()[said:].count("\n"))


def refused_starts(box):
    """What stands in the way of a start is named."""
    box.session = os.path.join(box.dir, "in-the-way")
    box.configure()
    os.makedirs(os.path.join(box.session, "abi.tmp"))
    for command in ((box.env["OPD_DAEMON"],), (os.path.join(box.bin, "opcontrol"), "--start-daemon")):
        result = box.run(*command)
        line = result.err
        require(result.rc == 1, "%s: %s" % (command, result))
        require(os.path.join(box.session, "abi.tmp") in line and "remove it" in line, "what is in the way is not named: %s" % line)
    os.rmdir(os.path.join(box.session, "abi.tmp"))
    shutil.rmtree(box.session)
    box.tmpfs(os.path.join("in-the-way", "samples"), "size=4m")
    line = box.refused(box.env["OPD_DAEMON"])
    require("another file system" in line and box.session in line, "two file systems are not refused: %s" % line)
    for name in ("samples", "tmp"):
        box.session = os.path.join(box.dir, "bound-" + name)
        box.configure()
        os.makedirs(os.path.join(box.dir, "volume-" + name))
        box.bind_mount(os.path.join(box.dir, "volume-" + name), os.path.join(box.session, name))
        line = box.refused(box.env["OPD_DAEMON"])
        require("/samples is another mount than " in line and "mount that over all" in line,
                "a bind mount at %s is not refused: %s" % (name, line))


def test(box):
    shim, outside = faultload.Shim(box), os.path.join(box.dir, "outside")
    os.makedirs(os.path.join(outside, "stats"))
    box.start_daemon(*SETUP, env=shim.env)
    second_daemon(box)
    calls_that_fail(box, shim)
    without_fallocate(box, shim)
    beside_the_files(box, shim)
    dump_that_fails(box, shim)
    links_in_the_tree(box, outside)
    others_in_place_of_files(box, outside)
    links_at_the_start(box, outside, shim)
    others_beside_the_files(box)
    long_path(box)
    directory_goes_away(box)
    second_beside_the_first(box)
    locked_by_a_stranger(box)
    if box.run_as != "unit": # systemd starts one there
        both_at_once(box)
    read_only(box)
    removed_under_it(box)
    written_over(box)
    refused_starts(box)


if __name__ == "__main__":
    opdtest.run(test)
