#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Measures questions about a time, out of 30 days of history: seven days of minutes as large as opd
makes them, and 23 days of hours, with functions of images of this machine. It asks opreport -l for
the last ten minutes (aims: 0.5 s, 100 MB), and for one day from its minutes, which lie in two
sessions (aim: 1.5 s); and for ten minutes of an old day, which is an hour.
"""
import os
import subprocess
import sys
import time

from bench_report import aim, best, find_images, run_measured, show
from bench import opdtest
from opdtest import require

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "unit"))
import sample_files  # noqa: E402

DAY, DAYS, MINUTE_DAYS = 86400, 30, 7
END = 1795230000 // DAY * DAY + DAY // 2  # the last session is half a day old
MINUTE_NODES, HOUR_NODES = (1344, 1664), (4032, 4992)  # minutes.c, retain.c
NR_IMAGES, FUNCTIONS = 200, 800
EVENT = "TIMER.1000000.0." + sample_files.ALL
TEN_AIM, DAY_AIM, MEMORY_AIM = 0.5, 1.5, 100e6


def write_table(session, images):
    with open(os.path.join(session, "dcookies"), "w", encoding="utf-8") as stream:
        stream.write("opd-dcookies 1\nnext\t%d\n" % (len(images) + 1))
        for number, path in enumerate(images, 1):
            stream.write("\t".join(map(str, (number, "file", path, path, "-", "-", "-", "0:0", 0, 0, "0.000000000", 0, 0, 1, 1)))
                         + "\n")


def write_ledger(session, begin, end, stored):
    with open(os.path.join(session, "ledger"), "w", encoding="ascii") as stream:
        stream.write("opd-ledger 1\nended\t%s\nbegin\t%d.000000000\nend\t%d.000000000\nhost\tbench\n" % (
            "open" if end == END else "rotated", begin, end))
        for event, count, number in zip(("TIMER", "STACKS"), (1000000, 99), stored):
            stream.write("event\t%s\t%d\t0\treceived=%d\tstored=%d\tunattributed=0\tlost_kernel=0\n" % (
                event, count, number, number))


def start_day(box, maker, number, images):
    """Begins to write a day, `number` days before the last one."""
    begin = (END // DAY - number) * DAY
    name = "current" if not number else time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(begin))
    session = os.path.join(box.session, "samples", name)
    is_old, end = number > MINUTE_DAYS, min(begin + DAY, END)
    sample_files.put_image(box.session, next(iter(images)), [(next(iter(images.values()))[0], 1)], event=EVENT, session=name)
    write_table(session, images)
    nodes, step = (HOUR_NODES, 3600) if is_old else (MINUTE_NODES, 60)
    command = [maker, session, begin, (end - begin) // step, step, *nodes, number + 1]
    process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdin.write("".join(" ".join(map(str, places)) + "\n" for places in images.values()))
    process.stdin.close()
    return process, session, begin, end


def end_day(process, session, begin, end):
    said = process.stdout.read()
    require(process.wait() == 0, "make_days has failed")
    write_ledger(session, begin, end, list(map(int, said.split())))


def make_history(box):
    images = {path: places[::max(1, len(places) // FUNCTIONS)][:FUNCTIONS] for path, places in find_images(NR_IMAGES).items()}
    require(images, "no image of this machine has functions")
    maker = os.path.join(os.environ["OPD_BUILD"], "tests", "bench", "make_days")
    running = []
    for number in reversed(range(DAYS)):
        running.append(start_day(box, maker, number, images))
        if len(running) == len(os.sched_getaffinity(0)):
            end_day(*running.pop(0))
    for day in running:
        end_day(*day)
    sizes = [os.path.getsize(os.path.join(box.session, "samples", name, "timeline"))
             for name in sorted(os.listdir(os.path.join(box.session, "samples")))]
    print("%d days, %d of them in minutes: %.0f MB, %.1f KB a minute, %d images" % (
        DAYS, MINUTE_DAYS, sum(sizes) / 1e6, sizes[-2] / 1440 / 1e3, len(images)), flush=True)


def test(box):
    make_history(box)
    cache = os.path.join(box.dir, "cache")

    def ask(what, since, until, fresh=False):
        words = (os.path.join(box.bin, "opreport"), "--session-dir=" + box.session, "-l", "--since=@%d" % since,
                 "--until=@%d" % until)
        run_measured(box, cache, *words)  # the page cache, and the symbols
        row = best(box, cache, *words, fresh=fresh)
        show(what, row)
        return row
    print("%-44s %8s   %8s %17s" % ("opreport -l", "wall", "CPU", "most memory"))
    ten = ask("the last ten minutes", END - 600, END)
    ask("the same, symbols read anew", END - 600, END, fresh=True)
    old = ask("ten minutes, 20 days ago", END - 20 * DAY, END - 20 * DAY + 600)
    day = ask("a day from its minutes", END - DAY, END)
    met = [aim("ten minutes, seconds", ten[0], TEN_AIM, ten[0] <= TEN_AIM),
           aim("ten minutes, MB", ten[2] / 1e6, MEMORY_AIM / 1e6, ten[2] <= MEMORY_AIM),
           aim("ten minutes of an old day, seconds", old[0], TEN_AIM, old[0] <= TEN_AIM),
           aim("a day, seconds", day[0], DAY_AIM, day[0] <= DAY_AIM)]
    require(all(met), "not all aims are met and shown")


if __name__ == "__main__":
    opdtest.run(test)
