#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the pictures of the page that README.md shows: usage: page_shots.py DIR, from the build
directory, as root, with Chromium. opd profiles a Python program while it reads JSON, sorts, and asks SQLite;
on the third day a regular expression is slow. The map of time is of one minute, in which operf
profiles the same work in three programs, one of which comes later.
"""
import os
import re
import shutil
import subprocess
import sys

import browser
import opdtest

LOAD = r"""
import json, random, re, sqlite3, sys, time
random.seed(1)
rows = [{"id": i, "name": "customer %d" % (i * 7919 % 5003), "tags": [str(i % k) for k in range(2, 9)]} for i in range(3000)]
text = json.dumps(rows)
def parse(): return json.loads(text)
def rank(read): return sorted(read, key=lambda row: (row["name"], row["id"]))
def store(read):
    db = sqlite3.connect(":memory:")
    db.execute("create table customers (id integer primary key, name text)")
    db.executemany("insert into customers values (?, ?)", [(row["id"], row["name"]) for row in read])
    return db.execute("select name, count(*) from customers group by name order by 2 desc").fetchall()
def check(read): return sum(bool(re.match(r"(?:[a-z]+ ?)*\d+$", row["name"])) for row in read)
end = time.process_time() + float(sys.argv[1])
while time.process_time() < end:
    read = parse()
    rank(read), store(read)
    for _ in range(int(sys.argv[2])): check(read)
"""
DAYS = (("monday", 4, 1), ("tuesday", 7, 1), ("wednesday", 6, 12))
HOST, PROGRAM = "web1", "shop"


def profile(box):
    """A session for each day. The program is a copy of Python, which nobody else runs."""
    load = os.path.join(box.dir, "load.py")
    with open(load, "w", encoding="ascii") as stream:
        stream.write(LOAD)
    program, home = os.path.join(box.dir, PROGRAM), {"PYTHONHOME": sys.prefix}
    shutil.copy(os.path.realpath(sys.executable), program)
    box.start_daemon("--event=default", "--stacks=499")
    box.good(program, load, 1, 1, env=home)
    opdtest.wait_until(lambda: not any(box.status()[key] for key in ("tables_waiting", "stacks_waiting")),
                       opdtest.HANG_SECONDS, "tables are not made")
    box.opcontrol("--reset")
    for day, seconds, nr_checks in DAYS:
        box.good(program, load, seconds, nr_checks, env=home)
        box.opcontrol("--save=" + day)
    box.shutdown()
    for day, *_ in DAYS:
        path = os.path.join(box.session, "samples", day, "ledger")
        with open(path, encoding="ascii") as stream:
            text = stream.read()
        with open(path, "w", encoding="ascii") as stream:
            stream.write(re.sub(r"^host\t.*", "host\t" + HOST, text, flags=re.M))


def burst(box):
    """The page of one minute: `backup` begins in second 12."""
    load, page, home = os.path.join(box.dir, "load.py"), os.path.join(box.dir, "map.html"), os.path.join(box.dir, "minute")
    names = (PROGRAM, "search", "backup")
    with open(load, "w", encoding="ascii") as stream:
        stream.write(LOAD)
    for name in names:
        shutil.copy(os.path.realpath(sys.executable), os.path.join(box.dir, name))
    line = "cd %s; ./%s %s 14 1 & (sleep 4; ./%s %s 9 12) & (sleep 12; ./%s %s 5 1); wait" % (
        box.dir, names[0], load, names[1], load, names[2], load)
    box.good(os.path.join(box.bin, "operf"), "--session-dir=" + home, "--stacks", "sh", "-c", line,
             env={"PYTHONHOME": sys.prefix})
    subprocess.run(["sed", "-i", "s/^host\t.*/host\t%s/" % HOST, os.path.join(home, "samples", "current", "ledger")], check=True)
    box.good(os.path.join(box.bin, "opreport"), "--session-dir=" + home, "--html=" + page, *names)
    return page


def shoot(box):
    profile(box)
    minute = burst(box)
    sessions, change = os.path.join(box.dir, "sessions.html"), os.path.join(box.dir, "change.html")
    box.opreport("--html=" + sessions, "session:" + ",".join(day for day, *_ in DAYS), PROGRAM)
    box.opreport("--html=" + change, "{", "session:monday", PROGRAM, "}", "{", "session:wednesday", PROGRAM, "}")
    with browser.Browser() as tab:
        for name, page, fragment, theme, width, height in (
                ("page", sessions, "", "light", 1280, 900), ("page-map", minute, "", "light", 1280, 700),
                ("page-dark", sessions, "#view=flame&q=sqlite", "dark", 1280, 1040),
                ("page-narrow", sessions, "", "dark", 390, 844), ("page-change", change, "", "light", 1280, 950)):
            tab.theme(theme)
            tab.size(width, height)
            tab.open(page, fragment)
            tab.shot(os.path.join(WHERE, name + ".png"))


if __name__ == "__main__":
    WHERE = os.path.abspath(sys.argv.pop(1))
    opdtest.run(shoot, larger_rings=True)
