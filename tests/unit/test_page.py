#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""opreport --html: the data of the page, read without a browser. tests/system/test_page.py has one.

Run from the build directory by `make check`.
"""
import base64
import collections
import hashlib
import json
import os
import re
import shutil
import string
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path.insert(0, os.path.join(SOURCE, "tests", "unit"))
sys.dont_write_bytecode = True
import page_data  # noqa: E402
from page_data import HOSTILE, PROG, START, USERS, Sessions  # noqa: E402
from sample_files import put_image  # noqa: E402
from stack_session import CUT  # noqa: E402


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp()
        cls.sessions = Sessions(cls.dir)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir)

    def store(self, name="current"):
        self.addCleanup(shutil.rmtree, os.path.join(self.sessions.dir, "samples", name), ignore_errors=True)
        return page_data.Store()

    def page(self, *words, rc=0):
        path = os.path.join(self.dir, "page.html")
        if os.path.exists(path):
            os.unlink(path)
        done = self.sessions.opreport("--html=" + path, *words)
        self.assertEqual(done.returncode, rc, done.stderr)
        self.err = done.stderr
        if rc:
            return None
        with open(path, "rb") as stream:
            self.html = stream.read().decode()
        return page_data.Page(self.html)

    def folded_of_opreport(self, *words):
        folded = collections.Counter()
        stacks = json.loads(self.sessions.opreport("--stacks", "--format=json", *words).stdout)["stacks"]
        paths = {0: ()}
        for node in stacks["nodes"]:
            paths[node["node"]] = paths[node["parent"]] + (node["name"],)
            if node["self"]:
                folded[paths[node["node"]]] += node["self"]
        return folded, stacks["samples"]

    def test_totals(self):
        store = self.store()
        page_data.fill(store)
        self.sessions.write(store)
        page = self.page()
        folded, samples = self.folded_of_opreport()
        self.assertEqual(page.folded("app"), folded)
        self.assertEqual((page.samples(), page.data["pruned"], page.data["sides"][0]["samples"]), (samples, 0, samples))
        self.assertEqual(page.folded("comm"), self.folded_of_opreport("--by=comm")[0])
        self.assertEqual(page.folded("cgroup"), self.folded_of_opreport("--by=cgroup")[0])
        sources = {page.name(f): page.string(page.functions[f][3]) for f in range(len(page.functions))}
        self.assertRegex(sources["hot"], r"/prog\.c:1$")
        selected = self.page("cgroup:/a.slice")
        self.assertEqual((selected.samples(), selected.data["sides"][0]["unselected"]), (4, samples - 4))

    def test_open_session(self):
        """The ledger of a session that is being written is older than its stacks, and the page knows it."""
        store = self.store()
        page_data.fill(store)
        self.sessions.write(store)
        path = os.path.join(self.sessions.dir, "samples", "current", "ledger")
        with open(path, "rb") as stream:
            text = stream.read()
        for ended in (b"stopped", b"open"):
            self.write(path, text.replace(b"ended\tstopped", b"ended\t" + ended))
            (session,) = self.page().data["sides"][0]["sessions"]
            self.assertEqual((session["open"], session["end"]), (ended == b"open", 1795231800))
        self.write(path, text.replace(b"received=", b"enabled_ns=4000000000\tcounted_ns=1250000000\treceived=", 1))
        ((event,),) = [session["events"] for session in self.page().data["sides"][0]["sessions"]]
        self.assertEqual((event["enabled"], event["counted"]), (4, 1.25))

    def make_timeline(self, session, blocks, begin=1795230000):
        """Blocks of a minute; each is a list of (samples, process name, functions)."""
        place, maker = os.path.join(self.sessions.dir, "samples", session), os.path.abspath("tests/unit/make_timeline")
        lines = []
        for i, stacks in enumerate(blocks):
            lines += ["event STACKS:99:0 4", "row 0 lost_no_space %d" % i, "row 0 lost_kernel 1"]
            for nr, comm, names in stacks:
                calls = " ".join("9 %d %d" % (page_data.positions[name], PROG) for name in names)
                lines.append("add %d 2 0 0 3 0 %d 4 =%s 0 5 =/%s 0 %s" % (nr, PROG, comm, comm, calls))
            lines.append("block %d000000000 %d000000000" % (begin + 60 * i, begin + 60 * i + 60))
        os.makedirs(place, exist_ok=True)
        if os.path.exists(os.path.join(place, "timeline")):
            os.unlink(os.path.join(place, "timeline"))
        subprocess.run([maker, place], input="\n".join(lines) + "\n", text=True, check=True)
        store = page_data.Store()
        for nr, comm, names in [stack for stacks in blocks for stack in stacks]:
            store.add(START(*names), nr, comm=comm, cgroup="/" + comm)
        self.sessions.write(store, session, begin=begin)

    def test_spans(self):
        """What each minute added, at the nodes of the whole tree; nothing of a difference or without minutes."""
        self.store()
        self.sessions.write(self.store(), "current")
        self.make_timeline("current", [[(3, "a", ("_start", "hot")), (4, "b", ("_start", "cold"))], [],
                                       [(5, "a", ("_start", "hot"))]])
        page = self.page()
        self.assertEqual(page.data["spans"], [[1795230000 + 60 * i, 1795230060 + 60 * i, i + 1] for i in range(3)])
        self.assertEqual([page.of_span(i) for i in range(3)], [{(("_start", "hot"), "a"): 3, (("_start", "cold"), "b"): 4}, {},
                                                               {(("_start", "hot"), "a"): 5}])
        self.assertEqual(page.samples(), 12)
        self.assertEqual({path for path, *_ in page.times}, {path for path, *_ in page.counts})
        self.assertEqual(self.page("cgroup:/b").of_span(), {(("_start", "cold"), "b"): 4})
        window = self.page("--since=@1795230120", "--until=@1795230180")
        self.assertEqual((window.data["spans"], window.of_span(), window.samples()),
                         ([[1795230120, 1795230180, 3]], {(("_start", "hot"), "a"): 5}, 5))
        self.store("before")
        self.make_timeline("before", [[(7, "a", ("_start", "warm"))]], 1795220000)
        page = self.page("session:current,before")
        self.assertEqual([begin for begin, _, _ in page.data["spans"]], [1795220000, 1795230000, 1795230060, 1795230120])
        self.assertEqual((page.of_span(0), sum(page.of_span().values())), ({(("_start", "warm"), "a"): 7}, 19))
        page = self.page("{", "session:before", "}", "{", "session:current", "}")
        self.assertEqual((page.data["spans"], page.times), ([], []))
        for change in (lambda path: self.write(path, b"opdtime1" + bytes(400)), os.unlink):
            change(os.path.join(self.sessions.dir, "samples", "before", "timeline"))
            page = self.page("session:current,before")
            self.assertEqual((page.data["spans"], page.times, page.samples()), ([], [], 19))

    def test_spans_are_bounded(self):
        """120 spans at most, and fewer where they have much; their sums stay."""
        self.store()
        self.sessions.write(self.store(), "current")
        self.make_timeline("current", [[(i + 1, "a", ("hot",))] for i in range(500)])
        page = self.page()
        spans = page.data["spans"]
        self.assertTrue(60 < len(spans) <= 120, len(spans))
        self.assertEqual(page.of_span(), {(("hot",), "a"): 500 * 501 // 2})
        self.assertEqual((spans[0][0], spans[-1][1]), (1795230000, 1795230000 + 60 * 500))
        self.assertTrue(all(a[1] == b[0] for a, b in zip(spans, spans[1:])))
        self.assertEqual(sum(lost for _, _, lost in spans), 500 * 501 // 2)  # one by the kernel, each minute one more
        self.make_timeline("current", [[(9, comm, ("f%d" % f,)) for f in range(page_data.MANY) for comm in "abc"]] * 100)
        page = self.page()
        self.assertLessEqual(len(page.data["times"]), 600000)
        self.assertTrue(20 < len(page.data["spans"]) < 100, len(page.data["spans"]))
        self.assertEqual(sum(page.of_span().values()), 9 * 3 * page_data.MANY * 100)
        self.assertLess(len(self.html), 2000000)

    def test_separated(self):
        """By CPU, and by user: an application is a program of that user then."""
        store = self.store()
        store.add(START("_start", "hot"), 5, cpu=0)
        store.add(START("_start", "hot"), 7, cpu=3)
        store.add(START("_start", "warm"), 2, cpu=3, app=USERS)
        self.sessions.write(store)
        page = self.page()
        self.assertEqual(page.folded("cpu"), {("CPU 0", "_start", "hot"): 5, ("CPU 3", "_start", "hot"): 7,
                                              ("CPU 3", "_start", "warm"): 2})
        self.assertEqual(page.folded("user"), {("(no user)", "_start", "hot"): 12, ("4242", "_start", "warm"): 2})
        self.assertEqual(self.page("cpu:3").samples(), 9)
        page_data.fill(store)
        self.sessions.write(store)
        self.assertEqual(sum(count for (cpu, *_), count in self.page().folded("cpu").items() if cpu == "(no CPU)"), 100)

    def test_pruned(self):
        store = self.store()
        page_data.fill(store)
        self.sessions.write(store)
        page = self.page("--threshold=10")
        self.assertEqual((page.samples(), page.data["pruned"]), (100, 6))
        folded = page.folded("app")
        self.assertEqual(folded["prog", "[cut]", "(other)"], 6)
        self.assertEqual(folded["prog", "_start", "cold", "warm", "hot"], 70)

    def test_size(self):
        """10^5 different stacks have room, and a page that is too large is pruned and still adds up."""
        store = self.store()
        page_data.fill_many(store, 100000)
        self.sessions.write(store)
        page = self.page()
        samples = sum(node[4] for node in store.nodes)
        self.assertEqual((page.samples(), page.data["pruned"]), (samples, 0))
        self.assertLessEqual(len(self.html), 2000000)
        page_data.fill_many(store, 150000, seed=2)
        self.sessions.write(store)
        page = self.page()
        self.assertEqual(page.samples(), sum(node[4] for node in store.nodes))
        self.assertLessEqual(len(self.html), 2000000)
        self.assertGreater(page.data["pruned"], 0)

    def test_contexts(self):
        """Of very many cgroups those with most samples have names, and the others are one."""
        store = self.store()
        for i in range(20000):
            store.add(START("_start", "hot"), 1 + (i < 9), cgroup="/%d/" % i + "x" * 120, end=CUT if i % 2 else 0)
        self.sessions.write(store)
        page = self.page()
        self.assertEqual(page.samples(), 20009)
        self.assertLess(len(self.html), 1000000)
        cgroups = collections.Counter()
        for (cgroup, *_), count in page.folded("cgroup").items():
            cgroups[cgroup] += count
        self.assertGreater(len(cgroups), 2000)
        self.assertEqual(sorted(cgroups.values())[-10:], [2] * 9 + [20009 - 9 - len(cgroups) + 1])
        self.assertEqual(cgroups["(other)"], 20009 - 9 - len(cgroups) + 1)
        self.assertEqual(sum(self.folded_of_opreport("--by=comm")[0].values()), sum(page.folded("comm").values()))

    def test_difference(self):
        before, after = self.store("before"), self.store("after")
        page_data.fill(before)
        after.add(START("_start", "cold"), 500)
        self.sessions.write(before, "before")
        self.sessions.write(after, "after")
        page = self.page("{", "session:before", "}", "{", "session:after", "}")
        self.assertEqual((page.samples(0), page.samples(1)), (100, 500))
        self.assertEqual([side["words"] for side in page.data["sides"]], [["session:before"], ["session:after"]])
        self.assertEqual(page.folded("app", 1), {("prog", "_start", "cold"): 500})
        self.assertEqual(page.folded("app", 0), self.folded_of_opreport("session:before")[0])

    def test_nothing_but_its_own_script(self):
        store = self.store()
        page_data.fill(store)
        self.sessions.write(store)
        self.page()
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', self.html).group(1)
        self.assertTrue(policy.startswith("default-src 'none'; "), policy)
        for tag, source in (("style", "style-src"), ("script", "script-src")):
            text = re.search(r"<%s>(.*?)</%s>" % (tag, tag), self.html, re.S).group(1)
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            self.assertIn("%s 'sha256-%s'" % (source, digest), policy)
        self.assertNotRegex(self.html, r"(?i)https?:|//[a-z]+\.|<link|<img|\bsrc=|\bon[a-z]+=\"")

    def test_code_of_the_page_is_small(self):
        """Style, script and body. Names that tests use are found (tests/system/browser.py)."""
        store = self.store()
        page_data.fill(store)
        self.sessions.write(store)
        self.page()
        parts = re.search(r"<style>(.*)</style>\n</head>\n<body>\n(.*)<script type.*</script>\n<script>(.*)</script>",
                          self.html, re.S).groups()
        self.assertLessEqual(sum(len(part.encode()) for part in parts), 45000)
        with open(os.path.join(SOURCE, "tools", "page", "web", "page.js"), encoding="utf-8") as stream:
            kept = " ".join(re.findall(r"^// kept: (.*)", stream.read(), re.M)).split()
        script = self.html[self.html.rindex("<script>"):]
        self.assertGreater(len(kept), 20)
        for name, letter in zip(kept, string.ascii_letters):
            self.assertRegex(script, r"(?<![\w$])%s\b" % (re.escape("$" + letter) if len(name) > 2 else name))

    def test_hostile_names(self):
        store = self.store()
        for name in HOSTILE:
            store.add(START("hot"), 1, cgroup="/" + name, comm=name[:16].replace("\0", ""))
        session = "<b>\u202e\""
        self.store(session)
        self.sessions.write(store, session)
        page = self.page("session:" + session)
        self.assertEqual((page.samples(), page.data["sides"][0]["words"]), (len(HOSTILE), ["session:<b>\\xe2\\x80\\xae\""]))
        data = re.search(r'<script type="application/json" id="data">(.*)</script>\n<script>', self.html, re.S).group(1)
        self.assertNotIn("<", data)
        self.assertNotRegex(data, "[\u202a-\u202e\u2066-\u2069\0-\x1f\x7f]")
        self.assertLess(max(map(len, page.data["strings"])), 1001)

    def test_long_names(self):
        """Inner template arguments go first, then outer ones, then the middle; in a short time."""
        pairs, some = ["std::pair<int const, std::less<long> >"] * 40, ["std::pair<int, long>"] * 60
        names = {"/std::map<%s>::insert(a)" % ", ".join(pairs): "/std::map<%s>::insert(a)" % ", ".join(["std::pair<…>"] * 40),
                 "/std::map<%s>::insert(a)" % ", ".join(some): "/std::map<%s>::insert(a)" % ", ".join(["std::pair<…>"] * 60),
                 "/a<%s>::b<int>(c)" % ("x" * 1200): "/a<…>::b<…>(c)",
                 "/operator<< <%s>(int)" % ("y" * 1200): "/operator<< <…>(int)",
                 "/a->b<%s>" % ("z" * 1200): "/a->b<…>", "/" + "k" * 1200: "/" + "k" * 499 + " ... " + "k" * 495}
        store = self.store()
        for name in [*names, *("/" + c * 16000 for c in ("<", ">", "<>", "operator<", "a<b>"))]:
            store.add(START("hot"), 1, cgroup=name)
        self.sessions.write(store)
        page = self.page()
        self.assertLessEqual(set(names.values()), set(page.data["strings"]))
        self.assertLess(max(len(string.encode()) for string in page.data["strings"]), 1001)

    def test_code(self):
        """Source with the samples of its lines, as text whatever stands in it; code when there is no source."""
        store, source = self.store(), self.sessions.program + ".c"
        page_data.fill(store)
        self.sessions.write(store)
        with open(source, "rb") as stream:
            whole = stream.read()
        self.addCleanup(self.write, source, whole)
        lines = whole.split(b"\n")
        lines[1:4] = [b"\t</script><script>alert(1)</script>\\x1b", "\u202e\x1b[31m<!--\0".encode() + b"\xff", b"a" * 5000]
        self.write(source, b"\n".join(lines))
        (code,) = self.page().data["sides"][0]["code"]
        self.assertEqual([code[key] for key in ("name", "image", "event", "line", "samples")], ["hot", "prog", "TIMER", 1, 1])
        (block,) = code["blocks"]
        self.assertEqual((block["file"], block["code"], block["lines"][0]), (source, False, [1, 1, "void hot(void) { }"]))
        self.assertEqual([line[:2] for line in block["lines"]], [[n, int(n == 1)] for n in range(1, len(block["lines"]) + 1)])
        self.assertEqual(block["lines"][1][2], " " * 8 + "</script><script>alert(1)</script>\\x1b")
        self.assertEqual(block["lines"][2][2], "\\xe2\\x80\\xae\\x1b[31m<!--")
        self.assertEqual(block["lines"][3][2], "a" * 160 + " \u2026")
        self.assertNotIn("</script><script>alert", self.html)
        os.unlink(source)
        (block,) = self.page().data["sides"][0]["code"][0]["blocks"]
        self.assertEqual((block["file"], block["code"]), ("", True))
        start = "%x" % page_data.positions["hot"]
        self.assertEqual([line[1] for line in block["lines"] if line and line[0].endswith(start[-3:])], [1])
        self.assertEqual(sum(line[1] for line in block["lines"] if line), 1)
        self.assertEqual(self.page("cgroup:/a.slice").data["sides"][0]["code"], [])

    def test_code_is_bounded(self):
        """Sixty functions have samples, and the page has twenty of them."""
        store = self.store()
        page_data.fill(store)
        self.sessions.write(store)
        names = ["f%d" % i for i in range(60)]
        put_image(self.sessions.dir, self.sessions.program, [(page_data.positions[name], 9) for name in names])
        code = self.page().data["sides"][0]["code"]
        self.assertEqual(len(code), 20)
        self.assertLess(len(json.dumps(code)), 120000)
        self.assertTrue(all(len(block["lines"]) <= 81 for function in code for block in function["blocks"]))

    def test_code_of_cgroup(self):
        """Of the selected cgroup only. A session that does not separate them has none."""
        store = self.store()
        page_data.fill(store)
        self.sessions.write(store)
        for name, cgroup, count in (("hot", "a.slice", 30), ("warm", "b.slice", 40)):
            put_image(self.sessions.dir, self.sessions.program, [(page_data.positions[name], count)],
                      session="current/cgroup/" + cgroup)
        (code,) = self.page("cgroup:/a.slice").data["sides"][0]["code"]
        self.assertEqual((code["name"], code["samples"]), ("hot", 30))

    def test_difference_of_a_change(self):
        """A function that begins at another line is the same one, and each side has its own source."""
        before, after = self.store("before"), self.store("after")
        changed = os.path.join(self.dir, "changed")
        os.makedirs(changed)
        page_data.fill(before)
        self.sessions.write(before, "before")
        old, self.sessions.program = self.sessions.program, Sessions(changed, head="\n\n").program
        page_data.fill(after)
        self.sessions.write(after, "after")
        self.sessions.program = old
        page = self.page("{", "session:before", "}", "{", "session:after", "}")
        self.assertEqual(page.folded("app", 0), page.folded("app", 1))
        self.assertEqual([[code["line"] for code in side["code"]] for side in page.data["sides"]], [[1], [3]])
        # One side has lost its debugging information, as after a deploy. A function is still one.
        subprocess.run(["strip", "-g", os.path.join(changed, "prog")], check=True)
        for sides in (("before", "after"), ("after", "before")):
            page = self.page("{", "session:" + sides[0], "}", "{", "session:" + sides[1], "}")
            names = [page.name(f) for f in range(len(page.functions))]
            self.assertEqual(len(set(names)), len(names), names)
            sources = {page.string(f[3]) for f in page.functions if page.string(f[1]) == "hot"}
            self.assertEqual({os.path.basename(source) for source in sources}, {"prog.c:1"})

    def test_difference_of_an_image_told_apart(self):
        """A program that replaced another one while opd ran has its inode or build-id in its name."""
        for session in ("before", "after"):
            store = self.store(session)
            page_data.fill(store)
            self.sessions.write(store, session, apart=session == "after")
        page = self.page("{", "session:before", "}", "{", "session:after", "}")
        self.assertEqual({page.string(image) for _, _, image, _ in page.functions}, {"prog"})
        self.assertEqual(page.folded("app", 0), page.folded("app", 1))
        self.assertIn(("prog", "_start", "cold", "warm", "hot"), page.folded("app", 1))

    def test_difference_has_flat_samples(self):
        """Of events that count time, and of a comparison only; not with --inline."""
        words = ["{", "session:before", "}", "{", "session:after", "}"]
        for event, with_flat in (("TIMER.1000000.0.all.all.all", True), ("page-faults.100.0.all.all.all", False)):
            for session, counts in (("before", {"hot": 700, "warm": 300}), ("after", {"hot": 800, "cold": 200})):
                store = self.store(session)
                page_data.fill(store)
                shutil.rmtree(os.path.join(self.sessions.dir, "samples", session), ignore_errors=True)
                self.sessions.write(store, session, flat=counts, event=event)
            flat = [side["flat"] for side in self.page(*words).data["sides"]]
            rows = ["hot", "prog", 700, "warm", "prog", 300], ["hot", "prog", 800, "cold", "prog", 200]
            wanted = [{"event": "TIMER", "total": 1000, "whole": True, "rows": row} for row in rows]
            self.assertEqual(flat, wanted if with_flat else [None, None])
            self.assertEqual([side["flat"] for side in self.page("--inline", *words).data["sides"]], [None, None])
            self.assertEqual([side["flat"] for side in self.page("session:before").data["sides"]], [None])

    def test_images_of_one_name(self):
        """Two programs of one name are two; a name that each side has once is one, wherever it is."""
        second = os.path.join(self.dir, "second")
        os.makedirs(second)
        program = Sessions(second).program
        self.addCleanup(shutil.rmtree, second)
        for name, other in (("current", USERS), ("before", PROG), ("after", USERS)):
            store = self.store(name)
            if name == "current":
                store.add(START("_start", "hot"), 3)
            store.add(START("_start", "hot", image=other), 5, app=other)
            self.sessions.write(store, name, other=program)
        page, (first, last) = self.page(), (os.path.basename(self.dir) + "/prog", "second/prog")
        self.assertEqual(page.folded("app"), {(first, "_start", "hot"): 3, (last, "_start", "hot"): 5})
        self.assertEqual({page.string(image) for _, _, image, _ in page.functions}, {first, last})
        self.assertEqual({code["image"] for code in page.data["sides"][0]["code"]}, {first})
        text = self.sessions.opreport("--stacks", "-n").stdout
        self.assertRegex(text, r"(?m)  %s$(.*\n)+.*\(%s\)" % (first, first))
        self.assertRegex(text, r"(?m)  %s$(.*\n)+.*\(%s\)" % (last, last))
        self.assertEqual({path[0] for path in self.folded_of_opreport()[0]}, {first, last})
        long = {path[0] for path in self.folded_of_opreport("-f")[0]}
        self.assertEqual(long, {self.sessions.program, program})
        page = self.page("-f")
        self.assertEqual({page.string(image) for _, _, image, _ in page.functions}, long)
        page = self.page("{", "session:before", "}", "{", "session:after", "}")
        self.assertEqual(page.folded("app", 0), {("prog", "_start", "hot"): 5})
        self.assertEqual(page.folded("app", 1), page.folded("app", 0))
        page = self.page("{", "session:before", "}", "{", "session:current", "}")
        self.assertEqual(page.folded("app", 0), {(first, "_start", "hot"): 5})
        self.assertEqual(page.folded("app", 1), {(first, "_start", "hot"): 3, (last, "_start", "hot"): 5})

    def write(self, path, data):
        with open(path, "wb") as stream:
            stream.write(data)

    def test_told_once(self):
        store, home = self.store(), os.path.join(self.dir, "home")
        page_data.fill(store)
        self.sessions.write(store)
        os.makedirs(home)
        os.symlink(self.sessions.dir, os.path.join(home, "oprofile_data"))
        done = subprocess.run([os.path.join(os.path.abspath(os.environ.get("OPD_BINDIR", "bin")), "opreport"), "--html=page.html",
                               "--since=@0"], cwd=home, capture_output=True, text=True, timeout=120, check=True)
        self.assertEqual([line.split(",")[0] for line in done.stderr.splitlines() if line.startswith("Using")],
                         ["Using oprofile_data/samples/ for samples directory.", "Using 1 session"])

    def test_refused(self):
        for option, name in (("--format=json", "format"), ("-l", "symbols"), ("-X", "xml"), ("--by=comm", "by"),
                             ("-c", "callgraph"), ("--cgroups", "cgroups"), ("-d", "details"),
                             ("-o%s/o" % self.dir, "output-file")):
            self.page(option, rc=1)
            self.assertIn("--html does not go together with --%s\n" % name, self.err)
        self.page("--html=/nowhere/page.html", rc=1)
        store = self.store()
        self.sessions.write(store)
        self.page(rc=1)
        self.assertIn("no stack samples yet", self.err)
        os.unlink(os.path.join(self.sessions.dir, "samples", "current", "stacks"))
        self.page(rc=1)
        self.assertIn("there are no stacks: opcontrol --setup --stacks=on and operf --stacks take them", self.err)

    def test_file_is_checked_first(self):
        """Before anything is read: there is no session to read here."""
        missing, here = os.path.join(self.dir, "missing", "x"), os.path.join(self.dir, "link")
        os.symlink(missing, here)
        self.addCleanup(os.unlink, here)
        for option, path, why in (("--html=", missing, "No such file"), ("--html=", self.dir, "Is a directory"),
                                  ("--html=", self.sessions.program, "not replaced"), ("--html=", here, "leads nowhere"),
                                  ("-o", missing, "No such file"), ("-o", self.dir, "Is a directory")):
            done = self.sessions.opreport(option + path, "session:none")
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, "^opreport: %s: .*%s.*\n$" % (path, why))
        for option in ("--html", "-o"):
            for word in ("session:before", "cgroup=/a.slice"):
                done = self.sessions.opreport(option, word, "session:none")
                self.assertEqual(done.returncode, 1)
                self.assertIn("%s: this is a word of the profile specification, not a file" % word, done.stderr)
                self.assertFalse(os.path.exists(word))

    def test_file(self):
        """A page replaces a page, and no other file; `-` is standard output."""
        store, victim, path = self.store(), os.path.join(self.dir, "victim"), os.path.join(self.dir, "page.html")
        page_data.fill(store)
        self.sessions.write(store)
        self.page()
        shutil.copy(path, victim)
        with open(victim, "a", encoding="ascii") as stream:
            stream.write("old")
        for text, rc in ((None, 0), ("int main() { }", 1), ("<!DOCTYPE html>\n<html lang=\"en\">\n", 1), ("", 0)):
            if text is not None:
                self.write(victim, text.encode())
            done = self.sessions.opreport("--html=" + victim)
            self.assertEqual(done.returncode, rc, done.stderr)
            with open(victim, encoding="utf-8") as stream:
                self.assertEqual(stream.read(), text if rc else self.html)
        self.assertIn(self.sessions.program + ": not replaced, because it is not a page of opreport",
                      self.sessions.opreport("--html=" + self.sessions.program).stderr)
        self.assertEqual(self.sessions.opreport("--html=-").stdout, self.html)
        self.assertFalse(os.path.exists("-"))


if __name__ == "__main__":
    unittest.main()
