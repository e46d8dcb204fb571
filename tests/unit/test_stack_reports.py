#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""opreport --stacks: trees of calls from stack stores that this test writes (opd-stacks(5)).

Run from the build directory by `make check`.
"""
import csv
import io
import json
import os
import shutil
import subprocess
import sys
import unittest
from xml.etree import ElementTree

SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path.insert(0, os.path.join(SOURCE, "tests", "unit"))
sys.dont_write_bytecode = True
import page_data  # noqa: E402
from sample_files import ALL, put_image, write_ledger, write_samples  # noqa: E402
from stack_session import CUT, FRAME, FUNCTIONS, KERNEL, EVENT, OTHER, PROG, TOOLS, StackCase  # noqa: E402

SCHEMA = os.path.join(SOURCE, "doc", "opreport.xsd")


class Stacks(StackCase):
    maxDiff = None

    def folded(self, *options):
        text = self.report("--format=folded", *options)
        return {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in text.splitlines()}

    def test_folded(self):
        self.fill()
        self.store.child(0, EVENT, self.store.text("TIMER:1000000:0x0"))  # an event without stacks is no level
        self.assertEqual(self.folded(), {"prog;_start;cold;warm;hot": 70, "prog;_start;cold;warm": 20, "prog;_start;cold": 4,
                                         "prog;[cut];cold;warm": 6})
        self.assertEqual(self.folded("--by=comm"), {
            "prog;_start;cold;warm;hot": 70, "prog;_start;cold;warm": 20, "prog;[cut];cold;warm": 6, "other;_start;cold": 4})
        self.assertEqual(self.folded("--by=cgroup", "--focus=^cold$", "--ignore=warm"), {"/a.slice/b;_start;cold": 4})
        self.assertEqual(self.folded("--by=thread", "tgid:7"), {"tid:9 tgid:7 other;_start;cold": 4})
        self.assertEqual(self.folded("cgroup:/a.slice"), {"prog;_start;cold": 4})
        self.report("--format=folded", "cpu:0", rc=1)
        self.assertIn("no stack matches", self.err)
        self.store.add(self.frames("_start", "warm"), 3, cpu=0)
        self.store.add(self.frames("_start", "warm"), 2, cpu=1)
        self.store.add(self.frames("_start", "warm"), 1, cpu=2)
        self.assertEqual(self.folded("cpu:0,2"), {"prog;_start;warm": 4})
        self.assertEqual([self.folded(*word)["prog;_start;warm"] for word in ((), ("cpu:all",), ("tid:all",))], [6] * 3)

    def test_inverted(self):
        self.fill()
        self.assertEqual(self.folded("--invert"), {"hot;warm;cold;_start;prog": 70, "warm;cold;_start;prog": 20,
                                                   "warm;cold;[cut];prog": 6, "cold;_start;prog": 4})

    def test_text(self):
        self.fill()
        lines = self.report("--stacks").splitlines()
        self.assertTrue(any(line.startswith("Stacks: 100 samples of STACKS:99:0, 94 % complete, 6 % cut") for line in lines), lines)
        rows = [line.split() for line in lines[lines.index(next(x for x in lines if x.startswith(" samples"))) + 1:]]
        self.assertEqual(rows[0], ["100", "100.0000", "100.0000", "0", "prog"])
        self.assertEqual(rows[1][:5], ["94", "94.0000", "94.0000", "0", "_start"])
        self.assertEqual(rows[2][:5], ["94", "94.0000", "100.0000", "4", "cold"])
        self.assertEqual(rows[3][:5], ["90", "90.0000", "95.7447", "20", "warm"])
        self.assertEqual([row[4] for row in rows], ["prog", "_start", "cold", "warm", "hot", "[cut]", "cold", "warm"])

    def test_limits_show_the_rest(self):
        self.fill()
        for options in (["--threshold=10"], ["--depth=2"], ["--top=1"], ["--depth=1", "--invert"]):
            text = self.folded(*options)
            self.assertEqual(sum(text.values()), 100, options)
            self.assertTrue(any("(other)" in path for path in text), options)
        self.assertEqual(self.folded("--threshold=10"), {"prog;_start;cold;warm;hot": 70, "prog;_start;cold;warm": 20,
                                                         "prog;_start;cold": 4, "prog;(other)": 6})
        self.assertEqual(self.folded("--depth=2"), {"prog;_start;cold;(other)": 90, "prog;_start;cold": 4,
                                                    "prog;[cut];cold;warm": 6})

    def test_forms(self):
        self.fill()
        stacks = json.loads(self.report("--stacks", "--format=json"))["stacks"]
        self.assertEqual((stacks["samples"], stacks["ends"]["complete"], stacks["ends"]["cut"]), (100, 94, 6))
        self.assertEqual(sum(node["self"] for node in stacks["nodes"]), 100)
        names = {node["node"]: node["name"] for node in stacks["nodes"]}
        hot = next(node for node in stacks["nodes"] if node["name"] == "hot")
        self.assertEqual((names[hot["parent"]], hot["total"], hot["image"]), ("warm", 70, "prog"))
        rows = list(csv.DictReader(io.StringIO(self.report("--stacks", "--format=csv"))))
        self.assertEqual([row["name"] for row in rows], [node["name"] for node in stacks["nodes"]])

    def test_a_return_address_behind_the_function(self):
        """The call is the last instruction of its function, so the return address is the next one's."""
        self.store.add([(FRAME, PROG, self.end["cold"]), (FRAME, PROG, self.start["warm"])], 3)
        self.assertEqual(self.folded(), {"prog;cold;warm": 3})

    def test_other_images_are_not_read(self):
        """No warning of an image that only stacks have that were not asked for."""
        damaged = os.path.join(self.dir, "damaged")
        with open(damaged, "w", encoding="ascii") as stream:
            stream.write("no ELF file")
        self.store.add(self.frames("hot"), 5)
        self.store.add([(FRAME, OTHER, 16)], 5, app=OTHER)
        with open(os.path.join(self.session, "dcookies"), "r+", encoding="ascii") as stream:
            text = stream.read().replace("/bin/other", damaged)
            stream.seek(0)
            stream.write(text)
        self.folded(self.program)
        self.assertNotIn(damaged, self.err)
        self.folded()
        self.assertIn(damaged, self.err)

    def test_kernel_and_unknown(self):
        self.store.add(self.frames("_start", "hot", kernel=(10, 20)), 5)
        self.store.add([(FRAME, 77, 1 << 40)], 2, app=55)
        self.assertEqual(self.folded(), {"prog;_start;hot;(unknown image)_[k];(unknown image)_[k]": 5,
                                         "(no process);(unknown image)": 2})

    def test_one_rule_of_selection(self):
        """The same words select the same samples in flat reports, stacks, folded stacks and the page."""
        shutil.rmtree(os.path.join(self.session, "{root}"))
        hot = self.start["hot"]
        images = {PROG: self.program, OTHER: "/bin/other"}
        for app, leaf, count in ((PROG, PROG, 1), (PROG, OTHER, 10), (OTHER, OTHER, 100), (OTHER, PROG, 1000)):
            put_image(self.dir, images[leaf], [(hot if leaf == PROG else 0x10, count)], app=images[app])
            self.store.add([*self.frames("_start", "hot"), (FRAME, leaf, hot if leaf == PROG else 0x10)], count, app=app)
        write_ledger(self.session, 1111)
        for words, wanted in ((("prog",), 1011), (("other",), 1110), ((self.program,), 1011), (("/bin/other",), 1110),
                              (("pr?g",), 1011), (("prog", "other"), 1111), (("image:prog",), 11), (("image:other",), 1100),
                              (("lib-image:other",), 110), (("image:prog", "lib-image:other"), 10),
                              (("image-exclude:other",), 1), (("*/prog", "image-exclude:other"), 1), (("tgid:all",), 1111),
                              (("event:all", "other"), 1110)):
            flat = json.loads(self.report("-l", "--format=json", *words))["symbols"]
            self.assertEqual(sum(row["samples"][0] for row in flat), wanted, words)
            self.assertEqual(sum(self.folded(*words).values()), wanted, words)
            nodes = json.loads(self.report("--stacks", "--format=json", *words))["stacks"]["nodes"]
            self.assertEqual(sum(node["self"] for node in nodes), wanted, words)
            self.report("--html=" + os.path.join(self.dir, "out"), *words)
            with open(os.path.join(self.dir, "out"), encoding="utf-8") as stream:
                self.assertEqual(page_data.Page(stream.read()).samples(), wanted, words)
        self.assertIn("no image matches progg; did you mean 'prog'?", (self.report("--stacks", "progg", rc=1), self.err)[1])
        self.assertIn("no image matches progg; did you mean 'prog'?", (self.report("--stacks", "other", "progg"), self.err)[1])

    def test_flat_by_cgroup(self):
        """Nothing was prepared: the samples have no cgroups, so flat reports are of the stacks, and say
        so. --stacks has the same numbers.
        """
        self.fill()
        self.store.add(self.frames("_start", "hot"), 9, cgroup="/shop.slice/web.service")
        self.store.add(self.frames("_start", "hot"), 2, cgroup="/shop.slice/web.service", event="page-faults:100:0")
        said = "note: counted from the stacks"
        out = self.report("--by=cgroup")
        rows = [line.split() for line in out.splitlines() if line.endswith(("/b", "web.service", "(no cgroup)"))]
        self.assertEqual([[row[0], row[2], " ".join(row[4:])] for row in rows],
                         [["96", "0", "(no cgroup)"], ["9", "2", "/shop.slice/web.service"], ["4", "0", "/a.slice/b"]])
        self.assertIn(said, self.err)
        self.assertIn("Samples: 109 of STACKS:99", out)
        for words, wanted in ((("cgroup:/a.slice",), {"cold": [4]}), (("cgroup:web.service", "event:STACKS"), {"hot": [9]}),
                              (("cgroup:web.service",), {"hot": [9, 2]}), (("cgroup:/?*",), {"hot": [9, 2], "cold": [4, 0]})):
            table = json.loads(self.report("-l", "--format=json", *words))
            self.assertEqual({row["symbol"]: row["samples"] for row in table["symbols"]}, wanted, words)
            self.assertNotIn("address", str(table["symbols"]))
            self.assertEqual(self.err.count(said), 1, self.err)
            self.assertEqual(sum(sum(samples) for samples in wanted.values()), sum(self.folded(*words).values()))
        csv = self.report("-l", "--format=csv", "--by=cgroup", "--top=1").splitlines()[-1]
        self.assertTrue(csv.startswith('"symbol","hot","%s","(no cgroup)","",' % self.program), csv)
        self.report("-d", "cgroup:/a.slice", rc=1)
        self.assertIn("holds no samples by cgroup", self.err)
        self.report("cgroup:/b.slice", rc=1)
        self.assertIn("no stack matches", self.err)

    def test_containers(self):
        """Text has the runtime and the short identifier; --wide and the other forms have the path."""
        number, pod = "3f2a1b4c5d6e" + 52 * "7", "1234abcd_0011_4455_8899_aabbccddeeff"
        cases = {"/system.slice/docker-%s.scope" % number: "docker 3f2a1b4c5d6e",
                 "/docker/%s/inner" % number: "docker 3f2a1b4c5d6e/inner",
                 "/machine.slice/libpod-%s.scope/container" % number: "podman 3f2a1b4c5d6e/container",
                 "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod%s.slice/cri-containerd-%s.scope" % (pod, number):
                 "pod 1234abcd/containerd 3f2a1b4c5d6e",
                 "/kubepods.slice/kubepods-pod%s.slice/crio-%s.scope" % (pod, number): "pod 1234abcd/crio 3f2a1b4c5d6e",
                 "/kubepods/besteffort/pod%s/%s" % (pod.replace("_", "-"), number): "pod 1234abcd/3f2a1b4c5d6e",
                 "/lxc.payload.web": "lxc web", "/machine.slice/machine-build.scope": "machine build",
                 "/system.slice/cron.service": "/system.slice/cron.service", "/a/" + number: "/a/" + number,
                 "/docker-xyz.scope": "/docker-xyz.scope", "/podium/pod1": "/podium/pod1", "/docker-.scope": "/docker-.scope",
                 "/kubepods-pod": "/kubepods-pod", "/machine-.scope": "/machine-.scope", "/\x1b[2J": "/\\x1b[2J"}
        for i, cgroup in enumerate(cases):
            self.store.add(self.frames("_start", "hot"), 1000 + i, cgroup=cgroup)
        wanted = {1000 + i: shown for i, shown in enumerate(cases.values())}
        for options, rest in ((("--by=cgroup", "-n"), 2), (("--stacks", "--by=cgroup", "-n", "--depth=1"), 4)):
            rows = [line.split(None, rest) for line in self.report(*options).splitlines()]
            self.assertEqual({int(row[0]): row[rest] for row in rows if row[rest] not in ("(other)", "_start  (prog)")
                              and row[rest][-4:] != "prog"}, wanted, options)
        whole = {path.replace("\x1b", "\\x1b") for path in cases}
        self.assertEqual({row.split(None, 2)[2] for row in self.report("--by=cgroup", "-n", "--wide").splitlines()
                          if row[0] != "\t"}, whole)
        table = json.loads(self.report("--by=cgroup", "--format=json"))["applications"]
        self.assertEqual({row["name"] for row in table}, whole)

    def test_names_of_docker(self):
        """What Docker keeps is read when the report is written; a file that is hostile or a stranger's
        link gives no name.
        """
        plain = '{"ID":"x","Name":"/web-1"}'
        files = [(plain, " (web-1)"), ('{"Config":{"Name":"/inner"},"a":["Name"],"Name" : "/web_2"}', " (web_2)"),
                 ('{"Labels":{"x":"\\"Name\\":"},"Name":"web.3"}', " (web.3)"), ('{"x":"Name","y":1}', ""), ("", ""), ("{", ""),
                 ('{"Name":"/a\x1b[2J"}', ""), ('{"Name":"/%s"}' % ("a" * 129), ""), ('{"Name":"/open', ""), ('{"Name":7}', ""),
                 ('{"Name":""}', ""), ("[" * 100000 + '"Name":"/deep"', ""), ('{"Name":"/long"' + " " * (1 << 20) + "}", ""),
                 ("link", ""), ("fifo", ""), ("directory", "")]
        names = os.path.join(self.dir, "containers")
        wanted = set()
        for i, (contents, shown) in enumerate(files):
            number = "%064x" % (i + (0xabc << 244))
            at = os.path.join(names, number, "config.v2.json")
            os.makedirs(os.path.dirname(at))
            if contents == "link":
                os.symlink(os.path.join(names, "%064x" % (0xabc << 244), "config.v2.json"), at)
            elif contents == "fifo":
                os.mkfifo(at)
            elif contents == "directory":
                os.mkdir(at)
            else:
                with open(at, "w", encoding="utf-8") as stream:
                    stream.write(contents)
            self.store.add(self.frames("_start", "hot"), 1 + i, cgroup="/system.slice/docker-%s.scope" % number)
            wanted.add("docker " + number[:12] + shown)
        os.environ["OPD_DOCKER_CONTAINERS"] = names
        self.addCleanup(os.environ.pop, "OPD_DOCKER_CONTAINERS")
        rows = [line.split(None, 2) for line in self.report("--by=cgroup", "-n").splitlines() if line[0] != "\t"]
        self.assertEqual(len(rows), len(files))
        self.assertEqual({row[2] for row in rows}, wanted)

    def test_names_cannot_make_stacks(self):
        self.store.add(self.frames("hot"), 5, comm="a;b\n1")
        self.assertEqual(self.folded("--by=comm"), {"a:b\\x0a1;hot": 5})
        self.assertNotIn("\n1\n", self.report("--stacks", "--by=comm"))

    def test_several_events(self):
        self.store.add(self.frames("hot"), 5)
        self.store.add(self.frames("hot"), 2, event="page-faults:100:0")
        self.assertEqual(self.folded(), {"STACKS:99:0;prog;hot": 5, "page-faults:100:0;prog;hot": 2})
        self.assertEqual(self.folded("--by=comm", "event:STACKS"), {"STACKS:99:0;prog;hot": 5})

    def test_headers_tell_how_whole_stacks_are(self):
        """From the ledger, in the reports of samples, too."""
        self.fill()
        for session, ends in ((self.session, {"end_complete": 900, "end_cut": 95, "end_no_room": 5}),
                              (os.path.join(self.dir, "samples", "old"), {"end_complete": 1000})):
            os.makedirs(session, exist_ok=True)
            write_ledger(session, 50)
            with open(os.path.join(session, "ledger"), "a", encoding="ascii") as stream:
                stream.write("event\tSTACKS\t10101010\t0\t%s\n" % "\t".join(
                    "%s=%d" % pair for pair in dict(received=1000, stored=1000, unattributed=0, lost_kernel=0, **ends).items()))
        wanted = "Stacks: 1000 of STACKS:10101010, 90 % complete, 9.5 % cut, 0.5 % no_room"
        for options in ((), ("-l",), ("-c",), ("--images",)):
            lines = self.report("--verbose=details", *options).splitlines()
            self.assertEqual([line for line in lines if line.startswith("Stacks:")], [wanted], options)
            short = self.report(*options).splitlines()
            self.assertEqual("incl. %: with what it calls, in 100 stacks of STACKS:99:0" in short[:3], options == ("-c",), short)
            self.assertEqual(wanted in short[:3], options != ("-c",), short)
        self.assertNotIn("Stacks:", self.report("-l", "-n"))
        self.report("-c", "cgroup:/a.slice/b", rc=1)  # the answer is in the stacks, and the error says so
        self.assertIn("opreport --stacks with the same words", self.err)
        self.report("--stacks", "cgroup:/a.slice/b")
        self.store.add([(FRAME, OTHER, 16)], 7, app=OTHER)
        for options in ((self.program,), ("-l", self.program), ("-c", os.path.basename(self.program)),
                        ("--images", "image:" + self.program), ("-l", "image-exclude:/bin/other")):
            lines = self.report("--verbose=details", *options).splitlines()
            self.assertEqual([line for line in lines if line.startswith("Stacks:")],
                             ["Stacks: 100 of STACKS:99, 94 % complete, 6 % cut"], options)
        put_image(self.dir, self.program, [(self.start["hot"], 50)], session="old")
        self.assertIn("Stacks: 2000 of STACKS:10101010, 95 % complete, 4.75 % cut, 0.25 % no_room",
                      self.report("session:current,old", "--merge=lib").splitlines())
        ledger = json.loads(self.report("-l", "--format=json"))["ledger"]
        stacks = next(row for row in ledger if row["event"] == "STACKS")
        self.assertEqual((stacks["end_complete"], stacks["end_cut"], stacks["end_too_deep"]), (900, 95, 0))
        self.assertNotIn("end_complete", next(row for row in ledger if row["event"] == "TIMER"))

    def add_recursion(self):
        """Of 100 stacks: _start is in 80, cold in 80 and up to three times in each, hot in 60, warm
        in 20.
        """
        put_image(self.dir, self.program, [(self.start[name], 10) for name in FUNCTIONS])
        arcs = os.path.join(self.session, "{root}%s/{dep}/{root}%s/{cg}/{root}%s" % ((self.program,) * 3), "TIMER.0.0." + ALL)
        write_samples(arcs, [((self.start["cold"] + 5) << 32 | self.start["cold"], 120),
                             ((self.start["cold"] + 5) << 32 | self.start["hot"], 60)])
        self.store.add(self.frames("_start", "cold", "cold", "cold", "hot"), 60)
        self.store.add(self.frames("_start", "cold"), 20)
        self.store.add(self.frames("warm"), 20, end=CUT)
        return {"_start": 80, "cold": 80, "hot": 60, "warm": 20}

    def test_inclusive(self):
        """opreport -c counts recursion once."""
        wanted = self.add_recursion()
        lines = self.report("-c").splitlines()
        self.assertIn("incl. %: with what it calls, in 100 stacks of STACKS:99:0", lines)
        title = next(line for line in lines if line.startswith("samples"))
        self.assertIn("incl. %", title)
        shown = {line.split()[-1]: line.split()[2] for line in lines if line[:1].isdigit()}
        self.assertEqual({name: float(shown[name]) for name in wanted}, wanted)
        arc = next(line.split() for line in lines if line.startswith("  120") and line.endswith(" cold"))
        self.assertEqual(float(arc[2]), 80)
        report = json.loads(self.report("-c", "--format=json"))
        self.assertEqual((report["inclusive-of"], report["inclusive-event"]), (100, "STACKS:99:0"))
        self.assertEqual({row["symbol"]: row["inclusive"] for row in report["symbols"]}, wanted)
        self.assertEqual({row["symbol"]: row["inclusive-percent"] for row in report["symbols"]}, wanted)
        rows = list(csv.DictReader(io.StringIO(self.report("-c", "--format=csv"))))
        self.assertEqual({row["symbol"]: int(row["inclusive"]) for row in rows if row["kind"] == "symbol"}, wanted)
        self.assertFalse(any(None in row or None in row.values() for row in rows))
        text = self.report("-c", "-X")
        if shutil.which("xmllint"):
            done = subprocess.run(["xmllint", "--noout", "--schema", SCHEMA, "-"], input=text, capture_output=True, text=True,
                                  timeout=60, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
        profile = ElementTree.fromstring(text)
        self.assertEqual((profile.get("stacks"), profile.get("stackevent")), ("100", "STACKS:99:0"))
        names = {data.get("id"): data.get("name") for data in profile.iter("symboldata")}
        self.assertEqual({names[symbol.get("idref")]: int(symbol.get("inclusive"))
                          for symbol in profile.iter("symbol") if symbol.get("inclusive")}, wanted)

    def test_inclusive_of_what_is_selected(self):
        self.add_recursion()
        self.store.add([*self.frames("_start", "hot"), (FRAME, OTHER, 0x10)], 7, app=OTHER)
        rows = json.loads(self.report("-c", "--format=json", self.program, "event:TIMER"))
        self.assertEqual(rows["inclusive-of"], 100)
        self.store.add(self.frames("_start", "hot"), 5, event="TIMER:0:0x0")
        rows = json.loads(self.report("-c", "--format=json", self.program))
        self.assertEqual((rows["inclusive-of"], rows["inclusive-event"]), (100, "STACKS:99:0"))
        for options in (("-c", "--symbols-from=symtab"), ("-l",), ("-c", "cpu:all")):
            self.assertNotIn("incl", self.report(*options), options)
        self.store = type(self.store)()
        self.assertNotIn("incl", self.report("-c"))

    def test_refused(self):
        self.report("--stacks", rc=1)
        self.assertIn("no stack samples yet", self.err)
        self.fill()
        self.report("--stacks", "--focus=(", rc=1)
        self.assertIn("--focus=(", self.err)
        self.report("--stacks", "--focus=nothing", rc=1)
        self.assertIn("no stack matches", self.err)
        self.report("--invert", rc=1)
        self.assertIn("--stacks", self.err)
        os.unlink(os.path.join(self.session, "stacks"))
        done = subprocess.run([os.path.join(TOOLS, "opreport"), "--session-dir=" + self.dir, "--stacks"], capture_output=True,
                              text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("opcontrol --setup --stacks=on", done.stderr)

    def test_deep_and_damaged(self):
        self.store.add([(FRAME, PROG, 7)], 0)
        node = len(self.store.nodes) - 1
        for value in range(20000):
            node = self.store.child(node, FRAME, value, PROG)
            self.store.nodes[node][4] = 1
        self.assertEqual(sum(self.folded().values()), 20000)
        self.assertEqual(sum(self.folded("--invert").values()), 20000)
        self.store.nodes[10000][0] = 15000
        self.assertGreater(sum(self.folded().values()), 1000)
        self.assertIn("damaged", self.err)


class LongNames(StackCase):
    """Text has no room for all arguments of templates; other forms and --wide have the whole name."""
    functions = ("_Z4hotlIJ%sEEvv" % (60 * "i"), "_start")
    source = 'void hot(void) __asm__("%s");\nvoid hot(void) { }\nvoid _start(void) { hot(); }\n' % functions[0]

    def setUp(self):
        self.start["hot"] = self.start[self.functions[0]]
        super().setUp()

    def test_long_names(self):
        self.store.add(self.frames("_start", "hot"), 5)
        whole = "void hotl<%s>()" % ", ".join(60 * ["int"])
        short = [line.split(None, 4)[4] for line in self.report("--stacks").splitlines() if "hotl" in line]
        self.assertEqual([(len(name), name[:14], "..." in name, name[-8:]) for name in short],
                         [(100, "void hotl<int,", True, ", int>()")])
        for options in (("--stacks", "--wide"), ("--stacks", "--format=json"), ("--format=folded",)):
            self.assertIn(whole, self.report(*options))


class Inlined(StackCase):
    """The inlined function that a sample was in is a frame of its stack, as in a flat report."""
    source = """volatile int sink;
void hot(void) { }
static inline __attribute__((always_inline)) int square(int a) { sink = a; return a * a; }
static inline __attribute__((always_inline)) int sum(int n) { int s = 0; s += square(n); return s; }
int both(int n) { int r = sum(n); return r + square(n + 1); }
int one(int n) { return sum(n) + 7; }
void _start(void) { both(3); one(4); for (;;); }
"""
    functions = ("hot", "both", "one", "_start")

    def places(self):
        return [at for name in ("both", "one") for at in range(self.start[name] + 1, self.end[name])]

    def flat(self):
        """{chain: samples} of a flat report of the same samples."""
        put_image(self.dir, self.program, [(at, 1 + at % 3) for at in self.places()], session="flat")
        done = subprocess.run([os.path.join(TOOLS, "opreport"), "--session-dir=" + self.dir, "session:flat", "--inline", "-l",
                               "--format=json"], capture_output=True, text=True, timeout=60, check=True)
        return {";".join(frame["symbol"] for frame in [*row.get("inlined by", ())[::-1], row]): row["samples"][0]
                for row in json.loads(done.stdout)["symbols"]}

    def leaves(self):
        """{chain below _start: samples}"""
        lines = self.report("--stacks", "--inline", "--format=folded").splitlines()
        found = {}
        for line in lines:
            stack, count = line.rsplit(" ", 1)
            found[stack.split("_start;", 1)[1].replace("_[i]", "")] = int(count)
        return found

    def test_like_flat(self):
        for at in self.places():
            self.store.add([(FRAME, PROG, self.start["_start"] + 5), (FRAME, PROG, at)], 1 + at % 3)
        wanted = self.flat()
        self.assertGreater(len(wanted), 4)
        self.assertEqual(self.leaves(), wanted)

    def test_caller_and_leaf(self):
        """A place is a return address in other stacks: there it belongs to the instruction before."""
        for at in self.places():
            self.store.add([(FRAME, PROG, self.start["_start"] + 5), (FRAME, PROG, at)], 1 + at % 3)
            self.store.add([(FRAME, PROG, self.start["_start"] + 5), (FRAME, PROG, at), (FRAME, PROG, self.start["one"])], 5)
        wanted = self.flat()
        found = self.leaves()
        below = {chain: count for chain, count in found.items() if chain.endswith(";one")}
        self.assertEqual(sum(below.values()), 5 * len(self.places()))
        self.assertEqual({chain: count for chain, count in found.items() if chain not in below}, wanted)

    def test_start_of_function(self):
        """The place of these samples was not kept: nobody knows what was inlined there."""
        self.store.add([(FRAME, PROG, self.start["_start"] + 5), (FRAME, PROG, self.start["one"])], 7)
        self.assertEqual(self.leaves(), {"one": 7})


class DeepInlined(StackCase):
    """Each of 200 frames is in 100 inlined functions: a report has at most 4,096 levels."""
    source = "volatile int sink;\nvoid hot(void) { }\n" \
        "static inline __attribute__((always_inline)) void f0(void) { sink = 1; }\n" + \
        "".join("static inline __attribute__((always_inline)) void f%d(void) { f%d(); }\n" % (i, i - 1) for i in range(1, 100)) + \
        "void _start(void) { f99(); for (;;); }\n"
    functions = ("hot", "_start")

    def test_deep(self):
        place = self.start["_start"] + (self.end["_start"] - self.start["_start"]) // 2  # in the store of f0
        self.store.add([(FRAME, PROG, place)] * 200, 1)
        rows = json.loads(self.report("--stacks", "--inline", "--format=json"))["stacks"]
        self.assertEqual(sum(node["self"] for node in rows["nodes"]), rows["samples"])
        self.assertEqual(len(rows["nodes"]), 4096)
        for form in ("csv", "folded", "firefox", "speedscope", "callgrind"):
            self.assertTrue(self.report("--stacks", "--inline", "--format=" + form), form)
        self.assertTrue(self.report("--stacks", "--inline", "--format=pprof", text=False))


if __name__ == "__main__":
    unittest.main()
