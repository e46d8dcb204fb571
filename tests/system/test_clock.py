#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Sessions beside a clock that steps (clockshim.c): far ahead, also at the start of the daemon, and
back; and a suspend. Sessions are closed once, none is removed by its
age on the word of a clock that has just stepped, and together they hold every sample.
"""
import os
import time

import opdtest
from opdtest import Skip, require
from test_rotation import check_all, closed, files_total, read_ledger

HOUR, DAY = 3600, 86400
FAULTS = 2000


class Clock:
    """The clocks of a daemon that is started in a box."""

    def __init__(self, box):
        library = os.path.join(os.environ.get("OPD_BUILD", ""), "tests", "system", "clockshim.so")
        if not os.path.exists(library):
            raise Skip("clockshim.so is not built")
        self.control = os.path.join(box.dir, "clock.txt")
        self.wall = self.boot = 0
        # Ten minutes past an hour: the test must not see an hour end by itself.
        self.step(10 * 60 - int(time.time()) % HOUR)
        self.env = {"LD_PRELOAD": library, "CLOCKSHIM_CONTROL": self.control}

    def step(self, wall, boot=0):
        """Both in seconds, beside what it was."""
        self.wall, self.boot = self.wall + wall, self.boot + boot
        with open(self.control + ".new", "w", encoding="ascii") as stream:
            stream.write("%d %d\n" % (self.wall, self.boot))
        os.rename(self.control + ".new", self.control)


class Sessions:
    """Those of a box that SessionInterval has closed."""

    def __init__(self, box):
        self.box, self.samples, self.names = box, os.path.join(box.session, "samples"), []

    def work(self):
        self.box.good(self.box.work, "faults", FAULTS)
        self.box.opcontrol("--dump")

    def look(self):
        """The daemon has looked at the clock since it was set."""
        self.work()
        self.box.await_look()
        self.box.await_look()

    def closes(self, why):
        """One more, and only one, which is returned."""
        opdtest.wait_until(lambda: len(closed(self.samples, "rotated")) > len(self.names), opdtest.HANG_SECONDS,
                           "no session is closed %s" % why)
        names = closed(self.samples, "rotated")
        new = [name for name in names if name not in self.names]
        require(len(new) == 1 and len(names) == len(self.names) + 1, "%s: sessions %s, before %s" % (why, names, self.names))
        self.names = names
        return new[0]

    def stay(self, why):
        require(closed(self.samples, "rotated") == self.names, "%s: sessions %s, before %s" % (why,
                closed(self.samples, "rotated"), self.names))


def log_says(box, text, nr=1):
    opdtest.wait_until(lambda: box.log_text().count(text) >= nr, opdtest.HANG_SECONDS,
                       "the log does not say '%s' %d times" % (text, nr))


def steps(box, clock, sessions):
    sessions.look()
    clock.step(HOUR)
    sessions.closes("after an hour")
    sessions.work()
    clock.step(400 * DAY)
    sessions.closes("after a step ahead")
    log_says(box, "opd removes no session by its age")
    sessions.stay("beside a clock far ahead")
    sessions.work()
    clock.step(-400 * DAY)
    sessions.look()
    sessions.stay("after a step back")
    clock.step(HOUR)
    sessions.closes("an hour after a step back")
    log_says(box, "the clock is trusted again")


def suspend(clock, sessions):
    sessions.work()
    clock.step(8 * HOUR, 8 * HOUR)
    words, _ = read_ledger(os.path.join(sessions.samples, sessions.closes("after a suspend")))
    length = float(words["end"]) - float(words["begin"])
    require(8 * HOUR <= length < 8 * HOUR + 600, "the session of a suspend lasts %f s" % length)


def starts_far_ahead(box, clock, sessions):
    """A machine with an empty battery, every time: no session is removed, and the time that was
    right before is right again.
    """
    for i in (2, 3):
        sessions.work()
        box.shutdown()
        clock.step(400 * DAY)
        box.start_daemon(env=clock.env)
        sessions.closes("by a daemon far ahead")
        log_says(box, "opd removes no session by its age", i)
        sessions.stay("by a daemon far ahead")
        sessions.work()
        clock.step(-400 * DAY)
        sessions.look()
        clock.step(HOUR)
        sessions.closes("when the clock is right")
        log_says(box, "the clock is trusted again", i)


def test(box):
    clock, sessions = Clock(box), Sessions(box)
    box.configure(SessionInterval="1h", SessionKeep="2d", SessionKeepFree="0", SessionMaxUse="0", RingSize="8M")
    box.start_daemon("--event=page-faults:1", env=clock.env)
    steps(box, clock, sessions)
    suspend(clock, sessions)
    stored = box.status()["events"][0]["stored"]
    starts_far_ahead(box, clock, sessions)
    box.shutdown()
    check_all(sessions.samples)
    total = sum(files_total(os.path.join(sessions.samples, name)) for name in os.listdir(sessions.samples))
    print("%d sessions with %d samples: %s" % (len(sessions.names) + 1, total, " ".join(sessions.names)))
    require(total >= stored, "%d samples of %d" % (total, stored))
    require("it is older than SessionKeep" not in box.log_text(), "a session was removed")


if __name__ == "__main__":
    opdtest.run(test)
