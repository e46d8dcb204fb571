#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What operf keeps: samples/current and samples/previous, --append, --session-dir. After kill -9
the samples can be read, and the next operf goes on. A full disk, a directory that cannot be
written, and an oprofile_data of somebody who wishes ill.
"""
import contextlib
import os
import shutil
import signal
import socket

import opdtest
import operftest
from operftest import NOBODY
from opdtest import require

OTHER = 65533
MS = 300
SITES = 20000
NR_PACKED = 1100  # sessions with 1,024 files and more are packed


def total(home, session="current", directory=None):
    return sum(f.total for f in home.files(session, directory) if not f.name.callee)


def spin(home, *options, ms=MS):
    return home.check(home.profile(*options, home.work, "spin", ms))


def previous(home):
    """One run back, and no further."""
    sessions = []
    for ms in (MS, 2 * MS, 3 * MS):
        sessions.append(spin(home, ms=ms))
    stored = [next(iter(s.samples.values())) - s.lost for s in sessions]
    require([total(home), total(home, "previous")] == [stored[2], stored[1]],
            "%s, previous %s: not the last of %s" % (total(home), total(home, "previous"), stored))
    require(sorted(os.listdir(os.path.join(home.session, "samples"))) == ["current", "previous"],
            "sessions: %s" % os.listdir(os.path.join(home.session, "samples")))
    require(not os.listdir(os.path.join(home.session, "tmp")), "tmp has %s" % os.listdir(os.path.join(home.session, "tmp")))
    require("spin_here" in home.opreport("-l", "session:previous"), "opreport session:previous")
    out = home.opreport("{", "session:previous", "}", "{", "session:current", "}", "-l")
    require("spin_here" in out, "a report of the change: %s" % out)


def append(home):
    first = total(home)
    before = home.ledger()[0][operftest.DEFAULT]
    result = home.profile("--append", home.work, "spin", MS)
    after, ended = home.ledger()
    said = int(operftest.SUMMARY.search(result.err).group(1).split()[0])
    require(ended == "stopped" and after[operftest.DEFAULT]["stored"] == before["stored"] + said == total(home),
            "%s and %d more are %s, the files have %d" % (before, said, after, total(home)))
    require(total(home) > first, "--append added nothing")
    home.check(home.profile("--append", "--events=page-faults:1", "true"), events=("page-faults:1",))
    require(set(home.ledger()[0]) == {operftest.DEFAULT, "page-faults:1"}, "%s" % (home.ledger(),))


def elsewhere(home):
    directory = os.path.join(home.path, "there")
    result = home.profile("--session-dir=there", home.work, "spin", MS)
    summary = home.check(result, directory=directory)
    require(summary.next == " --session-dir=there", "the next command: %s" % (summary,))
    require("spin_here" in home.opreport("--session-dir=there", "-l"), "opreport --session-dir")
    shutil.rmtree(directory)
    require("No such file" in home.profile("--session-dir=no/where", "true", rc=1).err, "a directory of none")


def killed(home):
    """The samples until the kill can be read, the command goes on, and the next run has no trouble."""
    before = os.stat(os.path.join(home.session, "samples", "current")).st_ino
    ready = os.path.join(home.path, "ready")
    child = home.start("sh", "-c", ": > %s; while [ -e %s ]; do :; done; : > %s.done" % (ready, ready, ready))
    opdtest.wait_until(lambda: os.path.exists(ready), opdtest.HANG_SECONDS, "the command does not run")
    require(os.stat(os.path.join(home.session, "samples", "previous")).st_ino == before, "no new session")
    opdtest.wait_until(lambda: is_counted(home), opdtest.HANG_SECONDS, "no samples")
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    kept = total(home)
    require(kept and home.ledger()[1] == "open", "%d samples, %s" % (kept, home.ledger()))
    for words in (("opreport",), ("opreport", "-l"), ("opcheck", "--session-dir=oprofile_data")):
        result = home.run(os.path.join(home.box.bin, words[0]), *words[1:])
        require(result.rc == 0 or words[0] == "opcheck", "%s after a kill: %s" % (words, result))
    os.unlink(ready)
    opdtest.wait_until(lambda: os.path.exists(ready + ".done"), opdtest.HANG_SECONDS, "the command ended with operf")
    spin(home)
    require(total(home, "previous") == kept, "previous has %d, not %d" % (total(home, "previous"), kept))
    require(home.ledger("previous")[0][operftest.DEFAULT]["stored"] == kept, "the ledger does not follow the files")
    child = home.start("sh", "-c", ": > %s; while [ -e %s ]; do :; done" % (ready, ready))
    opdtest.wait_until(lambda: os.path.exists(ready) and is_counted(home), opdtest.HANG_SECONDS, "no samples")
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    os.unlink(ready)
    kept = total(home)
    result = home.profile("--append", home.work, "spin", MS)
    row = home.ledger()[0][operftest.DEFAULT]
    require(row["stored"] == total(home) > kept, "--append after a kill: %s, %d" % (row, total(home)))


def check_packed(home, session, wanted):
    """The session is packed and closed, and every reader finds its samples."""
    directory = os.path.join(home.session, "samples", session)
    left = opdtest.reader.list_files(directory)
    require(not left and os.path.exists(os.path.join(directory, "packed")), "%d files beside the pack" % len(left))
    require(not os.path.exists(os.path.join(directory, "closing")), "the session is not closed")
    require(total(home, session) == wanted, "%s has %d samples, not %d" % (session, total(home, session), wanted))
    require(home.ledger(session)[0]["page-faults:1"]["stored"] == wanted, "the ledger of %s: %s" % (session, home.ledger(session)))
    rows = home.opreport("-n", "-f", "--merge=all", "session:" + session).splitlines()
    require(sum(int(row.split()[0]) for row in rows if row.lstrip()[:1].isdigit() and row[0] != "\t") == wanted, "%s" % rows)
    result = home.run(os.path.join(home.box.bin, "opcheck"), "--session-dir=oprofile_data")
    require(result.rc == 0, "opcheck: %s" % (result,))


def killed_packs(home):
    """operf is killed while it has many files, and its successor while it packs them."""
    current, previous = (os.path.join(home.session, "samples", name) for name in ("current", "previous"))
    storm = (home.box.copy_work("storm", "storm"), "threads", 1000, 60000, 3)
    before = os.stat(current).st_ino
    child = home.start("--separate-thread", "--events=page-faults:1", *storm)
    opdtest.wait_until(lambda: os.stat(current).st_ino != before, opdtest.HANG_SECONDS, "no new session")
    opdtest.wait_until(lambda: len(opdtest.reader.list_files(current)) > NR_PACKED, opdtest.HANG_SECONDS, "too few files")
    kill_group(child)
    wanted = total(home)
    packer = home.start("true")
    opdtest.wait_until(lambda: os.path.exists(os.path.join(previous, "packed")), opdtest.HANG_SECONDS, "it does not pack")
    kill_group(packer)
    print("killed with %d files beside the pack" % len(opdtest.reader.list_files(previous)))
    require(total(home, "previous") == wanted, "%d samples after the kill, not %d" % (total(home, "previous"), wanted))
    home.profile("true")
    check_packed(home, "previous", wanted)


def kill_group(child):
    os.killpg(child.pid, signal.SIGKILL)
    child.communicate()


def is_counted(home):
    """True when the files have more samples than the ledger, which is written less often."""
    with contextlib.suppress(opdtest.reader.FormatError, OSError):
        stored = home.ledger()[0][operftest.DEFAULT]["stored"]
        return 0 < stored < sum(f.total for f in opdtest.reader.read_session(home.session, live=True))
    return False


def one_at_a_time(home):
    ready = os.path.join(home.path, "ready")
    child = home.start("sh", "-c", ": > %s; while [ -e %s ]; do :; done" % (ready, ready))
    opdtest.wait_until(lambda: os.path.exists(ready), opdtest.HANG_SECONDS, "the command does not run")
    line = home.refused("true")
    require("another operf or opd (pid %d)" % child.pid in line, line)
    os.unlink(ready)
    home.check(home.end(child))


def full_disk(home):
    """The command runs to its end, what has no place is counted as lost, and operf says so."""
    path = home.box.tmpfs("small", "size=128k,uid=%d" % NOBODY)
    program = home.box.copy_work("sites-app")
    row = {"lost_no_space": 0}
    for _ in range(10):  # a machine that is busy loses samples before they need space
        result = home.profile("--session-dir=" + path, "--append", "--events=page-faults:1", program, "sites", SITES)
        row = home.ledger(directory=path)[0]["page-faults:1"]
        if row["lost_no_space"]:
            break
    lost = sum(n for word, n in row.items() if word.startswith("lost_") and word != "lost_kernel")
    require(row["lost_no_space"] and row["received"] == row["stored"] + lost, "the ledger of a full disk: %s" % row)
    require("lost_no_space (no space on the file system of the session)" in result.err, result.err)
    require(total(home, directory=path) == row["stored"], "the files have %d: %s" % (total(home, directory=path), row))
    again = home.run(home.operf, "--session-dir=" + path, "true")
    require(again.rc == 0 or "make room" in again.err, "on a full disk: %s" % (again,))


def unwritable(home):
    os.mkdir(os.path.join(home.path, "closed"), 0o755)
    line = home.refused("true", cwd=os.path.join(home.path, "closed"))
    require("cannot write to oprofile_data" in line and "--session-dir" in line, line)
    os.rmdir(os.path.join(home.path, "closed"))


def hostile(home):
    """In a directory that others may write: whatever they put there, operf writes nothing behind a
    link, does not wait, and says what is in the way.
    """
    shared, victim = os.path.join(home.box.dir, "shared"), os.path.join(home.path, "victim")
    os.mkdir(shared)
    os.chmod(shared, 0o777)
    os.mkdir(victim)
    os.chown(victim, NOBODY, NOBODY)
    target = os.path.join(shared, "oprofile_data")

    def refuse(text, words=("true",)):
        result = home.profile(*words, rc=1, cwd=shared)
        require(text in result.err, "operf says %s, not %s" % (result.err, text))
        require(not os.listdir(victim), "operf wrote behind a link: %s" % os.listdir(victim))

    def remove():
        if os.path.isdir(target) and not os.path.islink(target):
            shutil.rmtree(target)
        elif os.path.lexists(target):
            os.unlink(target)

    os.symlink(victim, target)
    os.lchown(target, OTHER, OTHER)
    refuse("belongs to user %d" % OTHER)
    remove()
    os.mkdir(target, 0o777)
    os.chown(target, OTHER, OTHER)
    refuse("belongs to user %d" % OTHER)
    remove()
    os.mkfifo(target)
    os.chown(target, NOBODY, NOBODY)
    refuse("is not a directory")
    remove()
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(target)
        os.chown(target, NOBODY, NOBODY)
        refuse("is not a directory")
    remove()
    # The user's own directory, but anybody may write there.
    for name in ("samples", "tmp", "samples/current"):
        os.makedirs(os.path.join(target, "samples") if "/" in name else target, exist_ok=True)
        os.chmod(target, 0o777)
        os.symlink(victim, os.path.join(target, name))
        for directory, names, _ in os.walk(target):
            os.chown(directory, NOBODY, NOBODY)
            for entry in names:
                os.lchown(os.path.join(directory, entry), NOBODY, NOBODY)
        refuse("is not a directory: remove it")
        remove()
    inside_hostile(home, shared, target, victim)


def unreadable(home):
    """A session that cannot be opened is refused, before the command runs."""
    current = os.path.join(home.session, "samples", "current")
    spin(home)
    os.chmod(current, 0)
    line = home.profile("--append", "touch", "ran", rc=1).err
    os.chmod(current, 0o755)
    require("cannot" in line and not os.path.exists(os.path.join(home.path, "ran")), line)


def inside_hostile(home, shared, target, victim):
    """Things in the way inside: the run goes on, and the victim stays as it is."""
    kept = os.path.join(victim, "precious")
    with open(kept, "w", encoding="ascii") as stream:
        stream.write("precious")
    os.chown(kept, NOBODY, NOBODY)

    home.profile(home.work, "spin", MS, cwd=shared)
    for name, make in (("samples/previous", lambda path: os.symlink(victim, path)), ("samples/previous", os.mkfifo),
                       ("lock", lambda path: os.symlink(kept, path)), ("lock", os.mkfifo),
                       ("abi", lambda path: os.symlink(kept, path)), ("abi", os.mkfifo),
                       ("tmp/removed-previous", lambda path: os.symlink(victim, path)),
                       ("tmp/current", lambda path: os.symlink(victim, path)),
                       ("samples/current/ledger", lambda path: os.symlink(kept, path)),
                       ("samples/current/dcookies", os.mkfifo),
                       ("samples/current/{root}", lambda path: os.symlink(victim, path))):
        path = os.path.join(target, name)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.unlink(path)
        make(path)
        os.lchown(path, NOBODY, NOBODY)
        for words in ((), ("--append",)):
            result = home.run(home.operf, *words, home.work, "spin", MS, cwd=shared)
            require(result.rc == 0 or result.err.strip(), "%s is %s: %s" % (name, make, result))
            print("%s in the way, %s: %d %s" % (name, " ".join(words) or "anew", result.rc, result.err.splitlines()[-1]))
            with open(kept, encoding="ascii") as stream:
                require(stream.read() == "precious" and os.listdir(victim) == ["precious"],
                        "the victim has %s" % os.listdir(victim))
        if os.path.lexists(path) and not (os.path.isdir(path) and not os.path.islink(path)):
            os.unlink(path)


def test(box):
    home = operftest.Home(box)
    previous(home)
    append(home)
    elsewhere(home)
    killed(home)
    killed_packs(home)
    one_at_a_time(home)
    full_disk(home)
    unwritable(home)
    unreadable(home)
    hostile(home)


if __name__ == "__main__":
    opdtest.run(test, operftest.needs_operf)
