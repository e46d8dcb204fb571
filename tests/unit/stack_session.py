# SPDX-License-Identifier: GPL-3.0-or-later
"""A session with stacks of a small program, for tests of reports. The file of stacks is written from
opd-stacks(5).
"""
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path.insert(0, os.path.join(SOURCE, "tests", "system"))
import elfsyms  # noqa: E402
from sample_files import put_image, write_ledger  # noqa: E402

TOOLS = os.path.abspath(os.environ.get("OPD_BINDIR", "bin"))
PROGRAM = "void hot(void) { }\nvoid warm(void) { hot(); }\nvoid cold(void) { warm(); }\nvoid _start(void) { cold(); }\n"
FUNCTIONS = ("hot", "warm", "cold", "_start")
EVENT, APP, COMM, CGROUP, THREAD, END, FRAME, KERNEL, TEXT, STATE, RUNTIME, WAKER = range(1, 13)
CUT = 1
PROG, OTHER = 1, 2  # cookies


class Store:
    """Writes a store; a stack is found or added as the daemon does it."""

    def __init__(self):
        self.nodes, self.index = [[0, 0, 0, 0, 0, 0]], {}

    def child(self, parent, kind, value=0, image=0):
        key = (parent, kind, value, image)
        if key not in self.index:
            self.index[key] = len(self.nodes)
            self.nodes.append([parent, kind, value, image, 0, 0])
        return self.index[key]

    def text(self, text):
        node, data = 0, text if isinstance(text, bytes) else text.encode()
        for at in range(0, len(data), 16):
            node = self.child(node, TEXT, *struct.unpack("<QQ", data[at:at + 16].ljust(16, b"\0")))
        return node

    def add(self, frames, count=1, app=PROG, comm="prog", cgroup="", thread=0, end=0, event="STACKS:99:0", cpu=None,
            state=0, records=1, waker=None):
        """With a state it is a wait: `count` is microseconds, of so many records. `waker`: name, and cookie of its
        program; an interrupt has no name.
        """
        node = self.child(0, EVENT, self.text(event))
        node = self.child(node, APP, 0, app)
        node = self.child(node, COMM, *struct.unpack("<QQ", comm.encode().ljust(16, b"\0")))
        node = self.child(node, CGROUP, self.text(cgroup) if cgroup else 0)
        node = self.child(node, THREAD, thread, 0 if cpu is None else cpu + 1)
        if end:
            node = self.child(node, END, end)
        if state:
            node = self.child(node, STATE, state)
        for kind, image, value in frames:
            node = self.child(node, kind, value, image)
        if waker:
            node = self.child(node, WAKER, self.text(waker[0]), waker[1])
        self.nodes[node][4] += count
        self.nodes[node][5] += records if state else 0

    def write(self, path):
        with open(path, "wb") as stream:
            stream.write(struct.pack("<8sIIQI36x", b"opdstck1", 32, len(self.nodes), 0, 0))
            for parent, kind, value, image, count, records in self.nodes:
                stream.write(struct.pack("<IHHQQQ", parent, kind, records, value, image, count))


class StackCase(unittest.TestCase):
    source, functions = PROGRAM, FUNCTIONS

    @classmethod
    def setUpClass(cls):
        cls.images = tempfile.mkdtemp()
        cls.program = os.path.join(cls.images, "prog")
        with open(cls.program + ".c", "w", encoding="ascii") as stream:
            stream.write(cls.source)
        subprocess.run([shutil.which("gcc") or shutil.which("clang") or "cc", "-O0", "-g", "-nostdlib", "-static", "-fno-pie",
                        "-no-pie", "-o", cls.program, cls.program + ".c"], check=True)
        ranges = elfsyms.symbol_ranges(cls.program, cls.functions)
        cls.start = {name: ranges[name][0] for name in cls.functions}
        cls.end = {name: ranges[name][1] for name in cls.functions}

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.images)

    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.session = os.path.join(self.dir, "samples", "current")
        put_image(self.dir, self.program, [(self.start[self.functions[0]], 50)])
        write_ledger(self.session, 50)
        with open(os.path.join(self.session, "dcookies"), "w", encoding="ascii") as stream:
            stream.write("opd-dcookies 1\nnext\t3\n")
            for cookie, path in ((PROG, self.program), (OTHER, "/bin/other")):
                stream.write("\t".join(map(str, (cookie, "file", path, path, "-", "-", "-", "0:0", 0, 0, "0.000000000", 0, 0,
                                                 1, 1))) + "\n")
        self.store = Store()

    def frames(self, *names, kernel=()):
        """Callers are return addresses: `warm` is called last in `cold`, so its return address may be
        the first byte behind a call; the leaf is the start of its function.
        """
        *callers, leaf = names
        return [(FRAME, PROG, self.start[name] + 5) for name in callers] + [(FRAME, PROG, self.start[leaf])] + \
            [(KERNEL, 99, at) for at in kernel]

    def report(self, *options, rc=0, text=True):
        self.store.write(os.path.join(self.session, "stacks"))
        done = subprocess.run([os.path.join(TOOLS, "opreport"), "--session-dir=" + self.dir, *options], capture_output=True,
                              timeout=60, check=False, env=dict(os.environ, TZ="UTC", LC_ALL="C"))
        self.err = done.stderr.decode()
        self.assertEqual(done.returncode, rc, self.err)
        return done.stdout.decode() if text else done.stdout

    def fill(self):
        self.store.add(self.frames("_start", "cold", "warm", "hot"), 70)
        self.store.add(self.frames("_start", "cold", "warm"), 20)
        self.store.add(self.frames("cold", "warm"), 6, end=CUT)
        self.store.add(self.frames("_start", "cold"), 4, comm="other", cgroup="/a.slice/b", thread=7 << 32 | 9)
