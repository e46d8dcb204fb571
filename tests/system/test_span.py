#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Which sessions --since takes: none is missing while sessions are closed beside the reports; that of
a daemon that was killed ends with its last samples; one that does
not say when it was taken is left out, and that is told. What is removed while it is read, as old
sessions are, is left out, too.
"""
import os
import shutil
import signal
import threading
import time

import opdtest
from opdtest import require
from test_rotation import read_ledger
from test_sessions import reported

REPORTS, CLOSINGS = (20, 4) if opdtest.is_emulated() else (60, 12)
REPORTS_FOR_ARCHIVE = 3
OLD_SESSIONS, ROUNDS_OF_REMOVAL, PAUSE_S = 40, 20, 0.05
PAUSED_S = 2.5


class Saver(threading.Thread):
    """Closes the session under one name after the other, beside SessionInterval=: twice for each
    report, so that there are as many sessions on a busy machine as on an idle one.
    """

    def __init__(self, box):
        super().__init__()
        self.box, self.wanted, self.nr_saved, self.turns = box, True, 0, threading.Semaphore(2)

    def run(self):
        while self.turns.acquire() and self.wanted:
            result = self.box.run(os.path.join(self.box.bin, "opcontrol"), "--save=saved-%d" % self.nr_saved)
            self.nr_saved += result.rc == 0 and "nothing was saved" not in result.out


def check_archive(box, home):
    """The current session: when it was closed meanwhile, the report has all its samples, otherwise
    at least those of its ledger. Returns whether it had samples.
    """
    shutil.rmtree(home, ignore_errors=True)
    result = box.run(os.path.join(box.bin, "oparchive"), "--session-dir=" + box.session,
                     "--root=" + os.path.join(box.dir, "no-images"),
                     "--output-directory=" + home, "session:current")
    if result.rc != 0:
        return False
    session_dir = os.path.join(home, "var/lib/oprofile")
    names = os.listdir(os.path.join(session_dir, "samples"))
    for name in names:
        path = os.path.join(session_dir, "samples", name)
        total = sum(f.total for f in opdtest.reader.read_session(session_dir, session=name, live=True))
        words, events = read_ledger(path)
        stored = sum(row["stored"] for row in events.values())
        require(total == stored or (words["ended"] == "open" and total > stored),
                "archive: %s ended as %s: the files have %d, the ledger %d" % (name, words["ended"], total, stored))
    return True


def has_files(box):
    try:
        return box.files(live=True)
    except FileNotFoundError:
        return False  # the session was closed meanwhile


def check_beside_closing(box):
    """Samples are only added: a total that falls lacks a session. Archives have whole sessions."""
    os.makedirs(os.path.join(box.dir, "no-images"))
    box.configure(SessionInterval="1s", SessionKeepFree="0", SessionMaxUse="0")
    box.start_daemon("--event=page-faults:1")
    load = box.start("/bin/sh", "-c", "while :; do /bin/true; done")
    opdtest.wait_until(lambda: has_files(box), opdtest.HANG_SECONDS, "nothing is counted")
    saver, totals, archived = Saver(box), [], []
    saver.start()
    try:
        while len(totals) < REPORTS or saver.nr_saved < CLOSINGS:
            totals.append(reported(box.opreport("-n", "-f", "--since=@0")))
            saver.turns.release(2)
            if len(totals) % REPORTS_FOR_ARCHIVE == 0:
                archived.append(check_archive(box, os.path.join(box.dir, "archive")))
    finally:
        saver.wanted = False
        saver.turns.release()
        saver.join()
    load.terminate()
    load.wait()
    fell = [(before, after) for before, after in zip(totals, totals[1:]) if after < before]
    print("%d reports up to %d samples beside %d closings, %d totals fell" % (len(totals), totals[-1], saver.nr_saved, len(fell)))
    print("%d archives, %d with samples" % (len(archived), sum(archived)))
    require(sum(archived) >= len(archived) // 4, "hardly an archive has samples")
    require(not fell, "totals that fell: %s" % fell)
    box.shutdown()


def since(box, when):
    return box.run(os.path.join(box.bin, "opreport"), "--session-dir=" + box.session, "-n", "-f", "--since=@%.6f" % when)


def check_killed(box):
    """The samples of a daemon that is gone do not last until now; those of one that is there do."""
    shutil.rmtree(box.session)
    box.configure()
    box.start_daemon("--event=page-faults:1")
    began = time.time()
    app = box.copy_work("span-app")
    box.work_until(lambda: any(f.name.app[1] == app for f in box.files(live=True)), "nothing is counted", app, "faults", 2000)
    result = since(box, time.time())
    require(result.rc == 0 and app in result.out, "the session that is written is not of now: %s%s" % (result.out, result.err))
    box.daemon.send_signal(signal.SIGKILL)
    box.daemon.wait()
    time.sleep(1.1)
    result = since(box, time.time() - 0.1)
    require(result.rc != 0 and "no session was taken in that time" in result.err,
            "the session of a killed opd is of now: %s%s" % (result.out, result.err))
    result = since(box, began)
    require(result.rc == 0 and app in result.out, "a killed opd's samples are not found: %s%s" % (result.out, result.err))
    require("left out" not in result.err, "nothing is left out: %s" % result.err)
    return app


def check_left_out(box, app):
    """A ledger that is none, and no ledger; a directory without samples is no session."""
    samples = os.path.join(box.session, "samples")
    for name in ("damaged", "without"):
        shutil.copytree(os.path.join(samples, "current"), os.path.join(samples, name))
    with open(os.path.join(samples, "damaged", "ledger"), "r+b") as stream:
        stream.write(b"garbage")
    os.makedirs(os.path.join(samples, "empty"))
    os.unlink(os.path.join(samples, "without", "ledger"))
    result = since(box, 0)
    require(result.rc == 0 and app in result.out, "the session that is sound is not used: %s" % result.err)
    require("2 sessions are left out" in result.err, "that two sessions are left out is not told: %s" % result.err)
    shutil.rmtree(os.path.join(samples, "damaged"))
    result = since(box, 0)
    require("1 session is left out" in result.err, "that a session is left out is not told: %s" % result.err)


class Remover(threading.Thread):
    """Takes sessions away as opd does."""

    def __init__(self, box, names):
        super().__init__()
        self.box, self.names = box, names

    def run(self):
        for name in self.names:
            gone = os.path.join(self.box.session, "tmp", "removed-" + name)
            os.rename(os.path.join(self.box.session, "samples", name), gone)
            shutil.rmtree(gone)
            time.sleep(PAUSE_S)


def check_beside_removal(box, app):
    """Reports of all sessions while the old ones go: each is of what is there."""
    names, samples, nr_beside, nr_read_again = ["old-%d" % i for i in range(OLD_SESSIONS)], os.path.join(box.session,
            "samples"), 0, 0
    of_one = reported(since(box, 0).out)
    for _ in range(ROUNDS_OF_REMOVAL):
        for name in names:
            shutil.copytree(os.path.join(samples, "current"), os.path.join(samples, name))
        remover = Remover(box, names)
        remover.start()
        try:
            while remover.is_alive():
                result = since(box, 0)
                require(result.rc == 0 and app in result.out,
                        "a report beside the removal of sessions: %s%s" % (result.out, result.err))
                require(reported(result.out) % of_one == 0,
                        "a session is in the report in part: %d, one has %d" % (reported(result.out), of_one))
                nr_beside += 1
                nr_read_again += "was removed while it was read" in result.err
        finally:
            remover.join()  # the session goes with the test: it must not be removed below the thread
        if nr_read_again:
            break
    print("%d reports beside the removal of sessions, %d read again" % (nr_beside, nr_read_again))
    require(nr_read_again, "no session was removed while it was read")


def time_line(box):
    return next(line for line in box.opreport().splitlines() if line.startswith("Time: "))


def check_stopped(box):
    """A session ends where sampling was stopped, until it goes on; the pause is not profiled."""
    box.start_daemon()
    box.good(box.work, "spin", 300)
    box.opcontrol("--stop")
    first, stopped = time_line(box), time.monotonic()
    opdtest.wait_until(lambda: time.monotonic() > stopped + PAUSED_S, opdtest.HANG_SECONDS, "the clock stands still")
    require(time_line(box) == first, "the session goes on while nothing is sampled: %s, then %s" % (first, time_line(box)))
    result = since(box, time.time() - 0.1)
    require("no session was taken in that time" in result.err, "a stopped session is of now: %s%s" % (result.out, result.err))
    box.opcontrol("--start")
    box.opcontrol("--stop")
    require(", profiled " in time_line(box), "the pause is in the time: %s" % time_line(box))
    box.shutdown()
    shutil.rmtree(box.session)


def test(box):
    check_stopped(box)
    check_beside_closing(box)
    app = check_killed(box)
    check_left_out(box, app)
    check_beside_removal(box, app)


if __name__ == "__main__":
    opdtest.run(test)
