#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""opreport --explain: every figure of the page is that of the report that stands beside it, the page
has at most 4 KB, whatever the names are, and nothing is compared that cannot be told apart. Run from
the build directory.
"""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import unittest

SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path[:0] = [os.path.join(SOURCE, "tests", "system"), os.path.join(SOURCE, "tests", "unit")]
sys.dont_write_bytecode = True
from sample_files import ALL, put_image  # noqa: E402
from stack_session import CUT, FRAME, KERNEL, PROG, TOOLS, StackCase  # noqa: E402

BEGIN = 1795230000  # 2026-11-21 03:00:00 UTC
HOUR, DAY = 3600, 86400
EVENT = "TIMER.1000000.0." + ALL
PAGE_BYTES = 4096
NOW = dict(hot=60000, warm=30000, cold=10000)
BEFORE = dict(hot=30000, warm=30000, cold=10050)
YESTERDAY = dict(hot=60100, warm=29900, cold=10000)


class Explain(StackCase):
    maxDiff = None

    def setUp(self):
        super().setUp()
        shutil.rmtree(os.path.join(self.session, "{root}"))
        self.put("current", BEGIN, **NOW)

    def put(self, session, begin, lost=0, event=EVENT, hours=1, **counts):
        put_image(self.dir, self.program, [(self.start[name], counts[name]) for name in counts], event=event, session=session)
        total, count = sum(counts.values()), int(event.split(".")[1])
        with open(os.path.join(self.dir, "samples", session, "ledger"), "w", encoding="ascii") as stream:
            stream.write("opd-ledger 1\nended\trotated\nbegin\t%d.000000000\nend\t%d.000000000\nhost\tdb1\nevent\tTIMER\t%d\t0\t"
                         "received=%d\tstored=%d\tunattributed=0\tlost_kernel=0\tlost_no_space=%d\n" % (
                             begin, begin + hours * HOUR, count, total + lost, total, lost))

    def page(self, *options):
        page = self.report("--explain", *options)
        self.assertLessEqual(len(page.encode()), PAGE_BYTES)
        return page

    def facts(self, *options):
        return json.loads(self.report("--explain", "--format=json", *options))

    def command(self, page, heading):
        """What the command says that a section names, as JSON."""
        found = re.search(r"## %s\n.*?More: `(opreport.*?)`\n" % heading, page, re.S)
        tool, *options = shlex.split(found.group(1))
        done = subprocess.run([os.path.join(TOOLS, tool), "--format=json", *options], capture_output=True, check=True, text=True,
                              env=dict(os.environ, TZ="UTC", LC_ALL="C"))
        return json.loads(done.stdout)

    def lines(self, page, heading):
        section = re.search(r"## %s\n(.*?)(?:\n## |\Z)" % heading, page, re.S).group(1)
        return [line for line in section.splitlines() if line.startswith("- ")]

    def test_figures_are_those_of_the_reports(self):
        self.fill()
        page, facts = self.page(), self.facts()
        self.assertIn("# What burned on db1, 2026-11-21 03:00:00 UTC to 2026-11-21 04:00:00 UTC\n", page)
        self.assertIn("100000 samples of TIMER:1000000. They stand for 100 CPU seconds, so 0.03 CPUs were busy", page)
        summary, symbols = self.command(page, "Programs"), self.command(page, "Functions")
        self.assertEqual(self.lines(page, "Programs"), ["- `prog` took 100.00 %% (%d samples)." %
                                                        summary["applications"][0]["samples"][0]])
        for row, fact, line in zip(symbols["symbols"], facts["functions"], self.lines(page, "Functions")):
            self.assertEqual((fact["name"], fact["samples"]), (row["symbol"], row["samples"][0]))
            self.assertAlmostEqual(fact["percent"], row["percent"][0], 3)
            self.assertEqual(line, "- `%s` of `prog` took %.2f %% (%d samples)." % (row["symbol"], row["percent"][0],
                                                                                     row["samples"][0]))
        self.assertEqual([fact["name"] for fact in facts["functions"]], ["hot", "warm", "cold"])
        nodes = self.command(page, "Services")["stacks"]["nodes"]
        groups = [(node["name"], node["total"]) for node in nodes if node["kind"] == "group"]
        self.assertEqual([(fact["name"], fact["samples"]) for fact in facts["services"]], groups)
        self.assertEqual(dict(groups)["/a.slice/b"], 4)
        path, nodes = facts["paths"][0], self.command(page, "Hottest paths")["stacks"]["nodes"]
        self.assertEqual((path["program"], path["frames"]), ("prog", ["_start", "cold", "warm", "hot"]))
        self.assertEqual([path["samples"]], [node["total"] for node in nodes if node["name"] == "hot"])
        self.assertEqual(self.lines(page, "Hottest paths"),
                         ["- `prog`, 70.00 % of all stacks (70): `_start` > `cold` > `warm` > `hot`"])
        self.assertIn("- 94.00 % of 100 stacks are complete, and 0 stack samples were lost.", page)

    def test_missing(self):
        self.put("current", BEGIN, lost=25000, **NOW)
        page = self.page()
        self.assertIn("- 20 % of the samples were lost.", page)
        self.assertIn("- There are no stacks", page)
        self.assertEqual(self.command(page, "Programs")["classes"][0]["lost-percent"], self.facts()["lost-percent"])

    def test_changes(self):
        self.put("before", BEGIN - HOUR, **BEFORE)
        self.put("yesterday", BEGIN - DAY, **YESTERDAY)
        span = ["--since=@%d" % BEGIN, "--until=@%d" % (BEGIN + HOUR)]
        page = self.page(*span)
        before, yesterday = self.facts(*span)["comparisons"]
        self.assertEqual((before["state"], before["samples"], before["changed"]), ("compared", 70050, 3))
        self.assertEqual((yesterday["state"], yesterday["samples"], yesterday["changed"]), ("compared", 100000, 0))
        now, then = sum(NOW.values()), sum(BEFORE.values())
        wanted = sorted(((name, NOW[name], BEFORE[name], 100 * (NOW[name] / now - BEFORE[name] / then)) for name in NOW),
                        key=lambda row: -abs(row[3]))
        self.assertEqual([(row["name"], row["samples"], row["samples-before"], round(row["points"], 3))
                          for row in before["functions"]], [(*row[:3], round(row[3], 3)) for row in wanted])
        self.assertIn("- `hot` of `prog`: %+.2f points, now 60.00 %% (60000 samples, 30000 before)." % wanted[0][3], page)
        self.assertIn("2026-11-20 03:00:00 UTC to 2026-11-20 04:00:00 UTC: 100000 samples. Beyond the noise of counting, "
                      "the share of 0 functions changed.", page)

    def test_not_compared(self):
        """Another period, one session for both times, and nothing that is kept."""
        self.put("before", BEGIN - HOUR, event="TIMER.2000000.0." + ALL, **BEFORE)
        whole = ["--since=@%d" % BEGIN, "--until=@%d" % (BEGIN + HOUR)]
        self.assertEqual([row["state"] for row in self.facts(*whole)["comparisons"]], ["not-alike", "not-kept"])
        part = ["--since=@%d" % (BEGIN + 1200), "--until=@%d" % (BEGIN + 1800)]
        self.assertEqual(self.facts(*part)["samples"], sum(NOW.values()))  # all of the session, and said to be so
        self.assertIn("2026-11-21 03:00:00 UTC to 2026-11-21 04:00:00 UTC", self.page(*part))
        self.put("current", BEGIN, hours=30, **NOW)
        self.assertEqual(self.facts(*part)["comparisons"][1]["state"], "not-apart")
        self.assertIn("nothing finer is kept", self.page(*part))
        self.assertEqual(self.err.count("No "), 0, self.err)

    def test_hostile_names(self):
        """Names of programs, functions and cgroups come from strangers."""
        ugly = "`a``b\n\x1b[31m" + "\u00e4" * 300 + "</script>"
        for number in range(12):
            self.store.add([(KERNEL, 99, self.start["hot"])] * 40 + self.frames("_start", "hot"), 10 + number,
                           comm="c%d" % number, cgroup="/%s%d" % (ugly, number), end=CUT)
        page = self.page()
        self.assertNotIn("\x1b", page)
        self.assertNotIn("\n\x1b", page)
        self.assertIn("\\x1b[31m", page)
        for line in self.lines(page, "Services"):
            self.assertRegex(line, r"^- (`+) .* \1 took 8\.\d\d %|^- (`+) .* \2 took ")
        facts = self.facts()
        self.assertEqual(len(facts["services"]), 5)
        self.assertLess(len(page), len(json.dumps(facts)))

    def test_refused(self):
        for option in ("--symbols", "--stacks", "--by=cgroup", "--top=3", "--xml", "--html=x.html"):
            self.report("--explain", option, rc=1)
            self.assertIn("--explain does not go together with %s" % option.split("=")[0], self.err)
        self.report("--explain", "--format=csv", rc=1)
        self.assertIn("--format=json", self.err)
        self.report("--explain", "{", "session:a", "}", "{", "session:b", "}", rc=1)
        self.assertIn("of one profile", self.err)


if __name__ == "__main__":
    unittest.main()
