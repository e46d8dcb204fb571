#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""ophelp: events of description files written here, and those of this host. Run from the build
directory by `make check`.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ET

sys.dont_write_bytecode = True
SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
OPHELP = os.path.abspath(os.environ.get("OPHELP", "bin/ophelp"))
EVENTS = """# made up
event:0x76 counters:0,1 um:zero minimum:3000 name:CPU_CLK_UNHALTED : Cycles
event:0x10 counters:0 um:zero minimum:500 name:FIRST_ONLY : Only the first counter
event:0x20 counters:0,1 um:kinds minimum:500 name:KINDS : Of some kinds
event:0x30 counters:1 um:one minimum:500 name:ONE_OF : One kind of two
event:0x40 counters:1 um:many minimum:500 name:MANY : With much in the register
event:0xf100 ext:ibs_op um:zero minimum:50000 name:IBS_OP_ALL : Sampled ops
"""
MASKS = """name:zero type:mandatory default:0x0
\t0x0 no unit mask
name:kinds type:bitmask default:0x3
\t0x1 the first kind
\t0x2 the second kind, with a text that is so long that it does not fit into one line and has to be wrapped
name:one type:exclusive default:named
\t0x1 extra:edge named the edge
\t0x2 the other
name:many type:exclusive default:0x2
\t0x2 extra:cmask=1f,inv,any,pebs several stalls of some length
\t0x3 extra: bare a name and nothing more
"""


class Help(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        cpu = os.path.join(self.dir, "x86-64", "family10")
        os.makedirs(cpu)
        for name, text in (("events", EVENTS), ("unit_masks", MASKS)):
            with open(os.path.join(cpu, name), "w", encoding="utf-8") as stream:
                stream.write(text)

    def run_tool(self, *arguments, rc=0):
        done = subprocess.run([OPHELP, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              universal_newlines=True,
                              env=dict(os.environ, OPROFILE_EVENTS_DIR=self.dir))
        self.assertEqual(done.returncode, rc, done.stderr)
        if rc:
            self.assertEqual(done.stdout, "")
        return done.stdout if not rc else done.stderr

    def family10(self, *arguments, rc=0):
        return self.run_tool("-c", "x86-64/family10", *arguments, rc=rc)

    def test_list(self):
        text = self.family10()
        self.assertTrue(text.startswith('oprofile: available events for CPU type "AMD64 family10"\n'))
        self.assertIn("CPU_CLK_UNHALTED: (counter: 0, 1)\n\tCycles\n\t(min count: 3000)\n", text)
        self.assertIn("IBS_OP_ALL: (ext: ibs_op)\n", text)
        self.assertIn("\tUnit masks (default 0x03)\n\t----------\n\t0x01: the first kind\n", text)
        self.assertIn("\t0x01: (name=named) the edge\n", text)
        self.assertLessEqual(max(len(line.expandtabs()) for line in text.split("\n")), 99)
        self.assertEqual(self.run_tool("-c", "35"), text)

    def test_default_by_type(self):
        """The clock has another name on some types, where they have that."""
        own = (("CPU_CLK_UNHALTED", "i386/haswell"), ("cpu_clk_unhalted", "i386/skylake"), ("cpu_clk_unhalted", "i386/goldmont"),
               ("cpu_clk_unhalted", "i386/goldmontplus"))
        self.dir = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "events")
        for name, cpu_type in own:
            self.assertEqual(self.run_tool("-c", cpu_type, "-d"), name + ":100000:0:1:1\n")

    def test_numbers_masks_default(self):
        self.assertEqual(self.family10("KINDS"), "32\n")
        self.assertEqual(self.family10("-u", "KINDS", "ONE_OF:500", "FIRST_ONLY"), "3\n1\n0\n")
        self.assertEqual(self.family10("-d"), "CPU_CLK_UNHALTED:100000:0:1:1\n")
        self.assertEqual(self.family10("-r"), "AMD64 family10\n")
        self.assertEqual(self.run_tool("-c", "timer", "-d"), "")
        self.assertEqual(self.run_tool("-c", "timer"), "Using timer interrupt.\n")

    def test_extra(self):
        several = 0x1f << 24 | 1 << 23 | 1 << 21 | 1 << 19 | 0x2 << 8
        self.assertEqual(self.family10("-E", "ONE_OF", "ONE_OF:500:named:1:1", "KINDS", "ONE_OF:500:2"),
                         "%d\n%d\n0\n0\n" % ((1 << 18 | 0x100,) * 2))
        self.assertEqual(self.family10("-E", "MANY:500:several", "MANY::bare", "MANY"), "%d\n%d\n0\n" % (several, 1 << 22 | 0x300))
        self.assertIn("no unit mask other", self.family10("-E", "MANY:500:other", rc=1))
        masks = os.path.join(self.dir, "x86-64", "family10", "unit_masks")
        for bad in ("edges", "cmask=100", "cmask=", "edge,,inv"):
            with open(masks, "w", encoding="utf-8") as stream:
                stream.write(MASKS.replace("extra:edge ", "extra:%s " % bad))
            self.assertIn("unit_masks", self.family10("-E", "ONE_OF", rc=1), bad)

    def test_check(self):
        self.assertEqual(self.family10("-e", "CPU_CLK_UNHALTED:3000", "FIRST_ONLY:500", "IBS_OP_ALL:50000"), "1 0 ibs_op \n")
        self.assertEqual(self.family10("-e", "KINDS:500:1", "ONE_OF:500:named"), "0 1 \n")
        self.assertEqual(self.family10("-e", "-i", "KINDS"), "0 \n")
        for specs, wanted in ((["NONE:500"], "no event named"), (["KINDS:499"], "below the minimum"),
                              (["KINDS:500:4"], "no unit mask"),
                              (["ONE_OF:500:3"], "no unit mask"), (["KINDS:500", "KINDS:600"], "twice"),
                              (["KINDS:500:1:2"], "neither"),
                              (["CPU_CLK_UNHALTED:3000", "KINDS:500", "FIRST_ONLY:500"], "no counter is left"),
                              (["KINDS:500", "--callgraph=5"], "below the minimum of 7500"), ([], "no events"),
                              (["KINDS"], "count is missing"), (["KINDS:1:1:1:1:1"], "too many fields")):
            self.assertIn(wanted, self.family10("-e", *specs, rc=1))

    def test_xml(self):
        root = ET.fromstring(self.family10("-X"))
        self.assertEqual((root.tag, root.get("schemaversion")), ("help_events", "2.0"))
        events = {event.get("event_name"): event for event in root.findall("event")}
        self.assertEqual(len(events), 6)
        self.assertEqual(events["KINDS"].get("counter_mask"), "3")
        self.assertEqual(events["IBS_OP_ALL"].get("ext"), "ibs_op")
        masks = events["ONE_OF"].find("unit_masks")
        self.assertEqual((masks.get("default"), masks.get("category")), ("1", "exclusive"))
        self.assertEqual([(m.get("name"), m.get("mask")) for m in masks], [("named", "1"), (None, "2")])

    def test_own_descriptions(self):
        events = os.path.join(SOURCE, "events")
        for directory, _, files in os.walk(events):
            if "events" in files and "unit_masks" in files:  # without masks: a part that others include
                done = subprocess.run([OPHELP, "-c", os.path.relpath(directory, events)],
                                      env=dict(os.environ, OPROFILE_EVENTS_DIR=events),
                                      stdout=subprocess.PIPE, check=True, universal_newlines=True)
                self.assertIn("(min count: ", done.stdout, directory)

    def test_names(self):
        self.assertEqual(self.family10("--names"), "CPU_CLK_UNHALTED\nFIRST_ONLY\nKINDS\nONE_OF\nMANY\nIBS_OP_ALL\n")
        self.assertEqual(self.family10("--names", "*ON*"), "FIRST_ONLY\nONE_OF\n")
        self.assertEqual(self.run_tool("--names", "page-f*"), "page-faults\n")
        self.assertEqual(set(self.run_tool("--names").splitlines()) & {"TIMER", "msr/tsc/"}, {"TIMER"}, "as opcontrol takes them")

    def test_host(self):
        text = self.run_tool()
        self.assertIn("TIMER: (ext: timer)\n", text)
        self.assertIn("page-faults: (ext: software)\n", text)
        self.assertEqual(self.run_tool("-e", "TIMER:1000000", "page-faults:1"), "timer software \n")
        self.assertRegex(self.run_tool("-d"), r"^(TIMER|cycles):\d+:0:1:1\n$")
        self.assertEqual(self.run_tool("TIMER"), "0\n")
        self.assertEqual(self.run_tool("-c", "i386/p4-ht", "-r"), "P4 / Xeon with 2 hyper-threads\n", "without descriptions")
        for directory, name in (("/sys/kernel/tracing/events/sched/sched_switch", "sched:sched_switch\n"),
                                ("/sys/bus/event_source/devices/cpu/events/cpu-cycles", "cpu/cpu-cycles/")):
            if os.access(directory, os.R_OK):
                self.assertIn(name, text)

    def test_what_the_host_cannot_count(self):
        """A name of opd's, and one of libpfm4's, which says what it is translated to: the reason is
        told, not that there is no such name.
        """
        for spec, name in (("cycles:100000", "cycles"), ("INST_RETIRED:ANY_P:100000", "INST_RETIRED_ANY_P")):
            done = subprocess.run([OPHELP, "-e", spec], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                                  universal_newlines=True,
                                  env=dict(os.environ, LIBPFM_FORCE_PMU="skl"))
            if done.returncode or not os.path.isdir("/sys/bus/event_source/devices/cpu"):
                self.assertRegex(done.stderr, "event %s: (this host has no hardware counter|not permitted)" % name)
                self.assertEqual((done.returncode, done.stdout), (1, ""))

    def test_refusals(self):
        self.assertIn("no such type", self.run_tool("-c", "nonsense", rc=1))
        self.assertIn("no such type", self.run_tool("-c", "88", rc=1))
        self.assertIn("no descriptions", self.run_tool("-c", "i386/haswell", rc=1))
        self.assertIn("no event named", self.run_tool("NOSUCH", rc=1))
        self.assertIn("no event named NOSUCH:", self.run_tool("-e", "NOSUCH:1000", rc=1))
        for options in ((), ("-X",)):
            self.assertIn("no event matches", self.run_tool("nosuch*", *options, rc=1))

    def test_op_check_perfevents(self):
        """The exit code is the errno of perf_event_open(2), 0 where there is a counter."""
        tool = os.path.join(os.path.dirname(OPHELP), "op-check-perfevents")

        def run(*words):
            return subprocess.run([tool, *words], capture_output=True, text=True, check=False)

        plain = run()
        self.assertEqual((plain.stdout, plain.stderr), ("", ""))
        for word in "-v", "--verbose":
            done = run(word)
            self.assertEqual(done.returncode, plain.returncode)
            self.assertEqual(done.stderr, "perf_event_open syscall returned %s\n" % os.strerror(done.returncode))
        if not os.path.isdir("/sys/bus/event_source/devices/cpu"):
            self.assertNotEqual(plain.returncode, 0)
        self.assertEqual(run("--help").returncode, 0)
        self.assertIn("--verbose", run("-h").stderr)
        self.assertEqual(run("--nonsense").returncode, 255)


if __name__ == "__main__":
    unittest.main()
