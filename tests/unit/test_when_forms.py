#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Times of --since and --until are those of systemd.time(7): `systemd-analyze timestamp` and opreport
read some hundred generated ones alike, in several time zones.

Run from the build directory by `make check`.
"""
import datetime
import itertools
import os
import random
import re
import shutil
import subprocess
import sys
import time
import unittest

PRINT = os.path.abspath(os.environ.get("PRINT_WHEN", "tests/unit/print_when"))
ANALYZE = shutil.which("systemd-analyze")
ZONES = ("UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kolkata", "Pacific/Auckland")
NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
BAD = ("", "x", "2026", "2026-13-01", "2026-02-32", "24:00", "12:60", "12:", ":30", "1:2:3:4", "@", "@x", "-", "+", "5 parsecs ago",
       "now ago", "2026-11-21 12:00 12:00", "2026-11-21 Nowhere/City", "2026-11-21 UTC UTC", "5min", "ago", "@1 ago",
       "2026-11-21-", "2026/11/21", "21.11.2026", "12h30", "Mond 2026-11-23", "Mon Tue 2026-11-23", "yesterdayx")


def ours(zone, texts):
    done = subprocess.run([PRINT, *texts], env=dict(os.environ, TZ=zone), capture_output=True, text=True, check=True)
    return [None if line == "refused" else int(line) for line in done.stdout.splitlines()]


def theirs(zone, texts):
    """The microseconds that systemd-analyze says; None: refused."""
    done = subprocess.run([ANALYZE, "timestamp", "--", *texts], env=dict(os.environ, TZ=zone, LC_ALL="C"), capture_output=True,
                          text=True, check=False)
    found = {}
    for block in done.stdout.split("\n\n"):
        form, seconds = re.search("Original form: (.*)", block), re.search("UNIX seconds: @([0-9.]+)", block)
        if form and seconds:
            found[form.group(1)] = round(float(seconds.group(1)) * 1000000)
    return [found.get(text) for text in texts]


def dates(chance):
    for _ in range(25):
        day = datetime.date(1971, 1, 1) + datetime.timedelta(days=chance.randrange(24000))
        yield day, chance.choice((day.isoformat(), day.isoformat(), "%02d-%d-%d" % (day.year % 100, day.month, day.day)
                                  if 1971 <= day.year < 2069 else day.isoformat()))


def times(chance):
    hour, minute, second = chance.randrange(24), chance.randrange(60), chance.randrange(60)
    return chance.choice(("%02d:%02d" % (hour, minute), "%02d:%02d:%02d" % (hour, minute, second), "%d:%d" % (hour, minute),
                          "%02d:%02d:%02d.%d" % (hour, minute, second, chance.randrange(1000000))))


def absolute(chance):
    """Times that do not depend on now."""
    for day, text in dates(chance):
        yield text
        yield "%s %s" % (text, times(chance))
        yield "%s %s UTC" % (text, times(chance))
        yield "%s %s %s" % (chance.choice((NAMES[day.weekday()], NAMES[day.weekday()][:3], NAMES[chance.randrange(7)].upper())),
                            text, times(chance))
        yield "@%d" % chance.randrange(2 ** 33)
        yield "@%d.%d" % (chance.randrange(2 ** 31), chance.randrange(1000000))


def of_today(chance):
    yield from ("today", "yesterday", "tomorrow")
    for _ in range(15):
        yield times(chance)
        yield "%s UTC" % times(chance)
        yield "%s %s" % (chance.choice(NAMES)[:3], times(chance))


def relative(chance):
    units = ("s", "sec", "seconds", "m", "min", "minutes", "h", "hr", "hours", "d", "day", "days", "w", "weeks", "month", "y",
             "years", "ms")
    yield "now"
    for _ in range(20):
        span = " ".join("%d%s%s" % (chance.randrange(20), chance.choice(("", " ")), unit) for unit in chance.sample(units, 2))
        yield from ("-" + span, "+" + span, span + " ago", span + " left")


class Forms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        seed = int(os.environ.get("SEED", "0")) or time.time_ns() % 1000000
        print("seed %d" % seed, file=sys.stderr)
        cls.chance = random.Random(seed)

    def setUp(self):
        if not ANALYZE:
            self.skipTest("systemd-analyze is not there")

    def compare(self, zone, texts, slack_us=0):
        """What depends on now is asked for before and after. Whatever systemd-analyze says lies between
        the two, also when an hour or a day ends meanwhile.
        """
        texts = list(dict.fromkeys(texts))
        for text, first, other, last in zip(texts, ours(zone, texts), theirs(zone, texts), ours(zone, texts)):
            if None in (first, other, last):
                self.assertIn(other is None, (first is None, last is None), "'%s' in %s" % (text, zone))
            else:
                self.assertTrue(first - slack_us <= other <= last + slack_us,
                                "'%s' in %s: %d, not from %d to %d" % (text, zone, other, first, last))
        return len(texts)

    def test_absolute(self):
        nr_compared = sum(self.compare(zone, absolute(self.chance), slack_us=1) for zone in ZONES)
        self.assertGreater(nr_compared, 700)

    def test_zones(self):
        """A time in a zone of the database is that time where the zone is the local one."""
        for zone in ZONES[1:]:
            texts = [text for _ in range(3) for day, text in dates(self.chance)]
            texts += ["%s %s" % (text, times(self.chance)) for text in texts]
            own = ours("UTC", ["%s %s" % (text, zone) for text in texts])
            for text, a, b in zip(texts, own, theirs(zone, texts)):
                self.assertTrue(a is not None and b is not None and abs(a - b) <= 1, "%s %s: %s, not %s" % (text, zone, a, b))

    def test_names_of_local_time(self):
        """Names that are no zones of the database themselves."""
        chance = self.chance
        for zone, names in (("America/St_Johns", ("NST", "NDT", "nst")), ("Pacific/Auckland", ("NZST", "NZDT")),
                            ("Asia/Kolkata", ("IST",))):
            texts = ["%s %s %s" % (text, times(chance), name) for day, text in dates(chance) for name in names]
            self.compare(zone, texts, slack_us=1)

    def test_today(self):
        for zone in ZONES:
            self.compare(zone, of_today(self.chance))

    def test_relative(self):
        for zone in ZONES[:2]:
            self.compare(zone, relative(self.chance), slack_us=1)

    def test_refused(self):
        self.assertEqual(ours("UTC", BAD), [None] * len(BAD))
        self.assertEqual(theirs("UTC", BAD[1:]), [None] * (len(BAD) - 1))

    def test_more(self):
        """What later versions of systemd read, and the time of a day by its word, which none does."""
        for forms in (("2026-11-21 03:00 UTC", "2026-11-21T03:00Z", "2026-11-21T03:00", "2026-11-21T05:30:00+02:30",
                       "2026-11-20 22:00 -05:00"),
                      ("yesterday", "yesterday 00:00", "Yesterday 0:00:00", "yesterday 00:00 UTC"), ("today", "today 00:00")):
            self.assertEqual(len(set(ours("UTC", forms))), 1, forms)
        day = 86400 * 1000000
        for zone, clock in itertools.product(ZONES, ("03:00", "23:59:59")):
            first, second = ours(zone, ["yesterday " + clock, "today " + clock])
            self.assertIn((second - first) / day * 24, (23, 24, 25), zone)


if __name__ == "__main__":
    unittest.main()
