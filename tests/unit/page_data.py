# SPDX-License-Identifier: GPL-3.0-or-later
"""Sessions with stacks for the tests of the page of opreport --html, and a reader of its data
(tools/page/web/page.js tells the format).
"""
import collections
import json
import os
import re
import shutil
import subprocess
import sys

SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path.insert(0, os.path.join(SOURCE, "tests", "system"))
sys.path.insert(0, os.path.join(SOURCE, "tests", "unit"))
import elfsyms  # noqa: E402
import stack_session as reports  # noqa: E402
from sample_files import ALL, put_image, write_ledger  # noqa: E402
from stack_session import CUT, FRAME, FUNCTIONS, PROG, Store  # noqa: E402

DIGITS = {c: i for i, c in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")}
FIELDS = {"event": 3, "app": 4, "comm": 5, "cgroup": 6, "user": 7, "thread": 8, "cpu": 9}
HOSTILE = ("</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<!--", "]]>", "\u202eevil\u2066", "\x01\x1b[31m",
           "a" * 4000, "\"'&quot;\\u003c\\", "${alert(1)}", "=cmd|' /C calc'!A0", "\ufffe\u2028x", "javascript:alert(1)")
USERS = 2  # cookie of the program as a user runs it
MANY = 1000  # functions of the large program
positions = {}


def START(*names, image=PROG):
    """The frames of calls: callers are return addresses."""
    *callers, leaf = names
    return [(FRAME, image, positions[name] + 5) for name in callers] + [(FRAME, image, positions[leaf])]


def fill(store):
    store.add(START("_start", "cold", "warm", "hot"), 70)
    store.add(START("_start", "cold", "warm"), 20)
    store.add(START("cold", "warm"), 6, end=CUT)
    store.add(START("_start", "cold"), 4, comm="other", cgroup="/a.slice/b", thread=7 << 32 | 9)


def fill_waits(store):
    """8 s of waits, of which 4 s are for work, in 20 records; and 2 s of a CPU."""
    for names, us, records, state, options in (
            (("_start", "cold", "warm"), 2000000, 8, 1, {"waker": ("keeper", PROG)}),
            (("_start", "cold", "warm"), 700000, 3, 1, {"waker": ("", 0)}), (("_start", "cold", "warm"), 300000, 1, 1, {}),
            (("_start", "cold", "warm"), 500000, 2, 4, {}),
            (("_start", "hot"), 500000, 3, 2, {"comm": "other", "end": CUT}), (("_start", "epoll_wait"), 4000000, 3, 1, {})):
        store.add(START(*names), us, state=state, records=records, event="WAIT:1:0", **options)
    store.add(START("_start", "cold", "hot"), 200, event="STACKS:10000000:0")


WAITS_LEDGER = ("waits\tWAIT\t1\t0\treceived=8010000\tstored=8000000\tlost_no_space=10000\tend_complete=7500000\tend_cut=500000\n"
                "switches\tswitches=1000\tidle=1\tkernel=284\temitted=26\tskipped=600\tlost=89\trecords=20\t"
                "blocked_us=7100000\tdisk_us=500000\tuninterruptible_us=0\trunnable_us=500000\tpreempted_us=0\tfrozen_us=0\n")


def fill_many(store, nr_stacks, seed=1):
    """So many different stacks over MANY functions. Each begins as one before it and goes on for two
    calls, so most functions are near the leaves, as in programs. Each has some samples.
    """
    starts = [positions["f%d" % i] for i in range(MANY)]
    node = store.child(0, 1, store.text("STACKS:99:0"))
    for kind, value, image in ((2, 0, PROG), (3, 0x676f7270, 0), (4, 0, 0), (5, 0, 0)):
        node = store.child(node, kind, value, image)
    made, depths = [node], [0]
    for i in range(nr_stacks):
        seed = (seed * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        place = (seed >> 33) % len(made)
        parent, depth = made[place], depths[place]
        for step in range(2 if depth < 60 else 1):
            parent = len(store.nodes)
            start = starts[((seed >> 20) + 7 * i + step) % MANY]
            store.nodes.append([parent - 1 if step else made[place], FRAME, start + 5, PROG, 0, 0])
            made.append(parent)
            depths.append(depth + 1 + step)
        store.nodes[parent][4] = 1 + (1 << 14) // (i + 1) + (seed >> 60)


class Sessions:
    """A directory of sessions, and a program whose functions are in their stacks."""

    def __init__(self, directory, head=""):
        self.dir = os.path.join(directory, "sessions")
        self.program = os.path.join(directory, "prog")
        with open(self.program + ".c", "w", encoding="ascii") as stream:
            stream.write(head + reports.PROGRAM)
            stream.write("void epoll_wait(void) { }\n")
            for i in range(MANY):
                stream.write("void f%d(void) { for (volatile int i = 0; i < 9; i++) ; }\n" % i)
        subprocess.run([shutil.which("gcc") or shutil.which("clang") or "cc", "-O0", "-g", "-nostdlib", "-static", "-fno-pie",
                        "-no-pie", "-o", self.program, self.program + ".c"], check=True)
        names = FUNCTIONS + ("epoll_wait",) + tuple("f%d" % i for i in range(MANY))
        positions.update((name, span[0]) for name, span in elfsyms.symbol_ranges(self.program, names).items())

    def write(self, store, session="current", begin=None, flat=1, other=None, event="TIMER.0.0." + ALL, apart=False, ledger=""):
        """`flat`: samples of hot in the sample file, or of functions by their names. `other`: a second
        program, which is USERS then. `apart`: the name of the program has the inode, too.
        """
        st = os.stat(self.program)
        shown = self.program + " (inode %d)" % st.st_ino if apart else self.program
        identity = ("%d:%d" % (os.major(st.st_dev), os.minor(st.st_dev)), st.st_ino) if apart else ("0:0", 0)
        place = os.path.join(self.dir, "samples", session)
        os.makedirs(place, exist_ok=True)
        count = sum(node[4] for node in store.nodes)
        flat = flat if isinstance(flat, dict) else {"hot": flat}
        put_image(self.dir, shown, [(positions[name], nr) for name, nr in flat.items()], session=session, event=event)
        write_ledger(place, count, event="STACKS", count=99, end_complete=count)
        path = os.path.join(place, "ledger")
        with open(path, encoding="ascii") as stream:
            text = stream.read().replace("event\tSTACKS", "stacks\tSTACKS") + ledger
        if begin:
            text = re.sub(r"begin\t\S+\nend\t\S+", "begin\t%d.000000000\nend\t%d.000000000" % (begin, begin + 600), text)
        with open(path, "w", encoding="ascii") as stream:
            stream.write(text)
        with open(os.path.join(place, "dcookies"), "w", encoding="ascii") as stream:
            stream.write("opd-dcookies 1\nnext\t3\n")
            user = (USERS, "program", self.program + " (user 4242)", (PROG, "-", 4242))
            for cookie, kind, name, more in ((PROG, "file", shown, ()), (USERS, "file", other, ()) if other else user):
                path, (device, inode) = (self.program, identity) if cookie == PROG else (name, ("0:0", 0))
                stream.write("\t".join(map(str, (cookie, kind, name, path, "-", "-", "-", device, inode, 0, "0.000000000", 0, 0,
                                                 1, 1, *more))) + "\n")
        store.write(os.path.join(place, "stacks"))

    def opreport(self, *words):
        return subprocess.run([os.path.join(reports.TOOLS, "opreport"), "--session-dir=" + self.dir, *words], capture_output=True,
                              text=True, timeout=120, check=False, env=dict(os.environ, TZ="UTC", LC_ALL="C"))


class Page:
    """The data of a page."""

    def __init__(self, html):
        found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)
        self.data = json.loads(found.group(1))
        flat = self.data["functions"]
        self.functions = [flat[i:i + 4] for i in range(0, len(flat), 4)]
        flat = self.data["contexts"]
        self.contexts = [flat[i:i + 11] for i in range(0, len(flat), 11)]
        self.records = collections.Counter()  # of waits, by path and context
        self.wakers = collections.Counter()  # microseconds by path of names and (name, program)
        self.text, self.at, depth, path = self.data["nodes"], 0, 0, [()]
        self.counts = self.take(())  # (path of functions, context, samples, or microseconds of waits)
        paths = [()]
        while self.at < len(self.text):
            depth += 1 - self.number()
            path[depth:] = [path[depth - 1] + (self.number(),)]
            paths.append(path[depth])
            self.counts += self.take(path[depth])
        self.times = []  # (path of functions, context, span, samples)
        self.text, self.at, node = self.data["times"], 0, 0
        while self.at < len(self.text):
            node += self.number()
            context, span = self.number(), 0
            for _ in range(self.number()):
                span += self.number()
                self.times.append((paths[node], context, span, self.number()))
                if self.is_wait(context):
                    self.number()

    def number(self):
        value, shift = 0, 0
        while True:
            digit = DIGITS[self.text[self.at]]
            self.at += 1
            value |= (digit & 31) << shift
            shift += 5
            if digit < 32:
                return value

    def take(self, path):
        """The counts of a node."""
        counts = []
        for _ in range(self.number()):
            counts.append((path, self.number(), self.number()))
            if self.is_wait(counts[-1][1]):
                self.records[counts[-1][:2]] += self.number()
                for _ in range(self.number()):
                    who = self.string(self.number()), self.string(self.number())
                    self.wakers[tuple(self.name(f - 1) for f in path if f), who] += self.number()
        return counts

    def is_wait(self, context):
        return self.string(self.contexts[context][FIELDS["event"]]).startswith("WAIT:")

    def waits(self):
        """Microseconds and records by state, "idle" for those that wait for work, and path of names."""
        found = collections.defaultdict(lambda: (0, 0))
        for path, context, us in self.counts:
            if self.is_wait(context):
                state = self.contexts[context][10]
                key = ("idle" if state == len(self.data["states"]) - 1 else self.data["states"][state][0],
                       *(self.name(f - 1) for f in path if f))
                found[key] = (found[key][0] + us, found[key][1] + self.records[path, context])
        return dict(found)

    def string(self, index):
        return self.data["strings"][index]

    def name(self, function):
        return self.string(self.functions[function][1])

    def of_span(self, span=None):
        """What a span has, or all of them: samples by the path of names and the process name."""
        folded = collections.Counter()
        for path, context, its, count in self.times:
            if span in (None, its):
                folded[tuple(self.name(f - 1) for f in path if f), self.string(self.contexts[context][5])] += count
        return folded

    def samples(self, side=None):
        """Those of waits are times, and no samples."""
        return sum(count for _, context, count in self.counts
                   if side in (None, self.contexts[context][0]) and not self.is_wait(context))

    def folded(self, by, side=0):
        folded = collections.Counter()
        for path, context, count in self.counts:
            row = self.contexts[context]
            if row[0] == side:
                end = ("[%s]" % self.data["ends"][row[2]][0],) if row[2] else ()
                names = tuple(self.name(f - 1) if f else "(other)" for f in path)
                folded[(self.string(row[FIELDS[by]]),) + end + names] += count
        return folded


