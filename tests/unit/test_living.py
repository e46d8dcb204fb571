#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images that are only in living processes: removed, replaced, in a container. Files of processes
that must not be used, and processes that let nobody look. Run from the build directory by `make
check`, as root or not.
"""
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path[:0] = [os.path.join(SOURCE, "tests", "system"), os.path.join(SOURCE, "tests", "unit")]
import elfsyms  # noqa: E402
from sample_files import put_image  # noqa: E402

TOOLS = os.path.abspath(os.environ.get("TOOLS", "bin"))
HANGING = os.path.abspath("tests/system/hanging")
PROGRAM = """#include <unistd.h>
int %s(int x) { return x + 1; }
int main(void) { char c; write(1, "runs\\n", 5); while (read(0, &c, 1) > 0) %s(c); return 0; }
"""
LIBRARY = "int %s(int x) { return x + 1; }\n"
HANG_SECONDS = 120
BOUND_SECONDS = 60  # OPR_LIVING_MS_MAX is 10 s; the rest is for a busy machine
NOBODY = 65534
FUSE = os.makedev(10, 229)
# root without the right to follow /proc/PID/map_files
ASKS_THE_PATH = ("setpriv", "--bounding-set=-checkpoint_restore,-sys_admin")


def build_id_of(path):
    words = subprocess.run(["readelf", "-n", path], capture_output=True, check=True, text=True).stdout
    return re.search(r"Build ID: ([0-9a-f]+)", words).group(1)


class Living(unittest.TestCase):
    def setUp(self):
        self.dir = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.dir)
        os.chmod(self.dir, 0o755)
        self.session = os.path.join(self.dir, "session")
        self.rows = []

    def build(self, path, function, text=PROGRAM, *options):
        source = os.path.join(self.dir, "source.c")
        with open(source, "w", encoding="ascii") as stream:
            stream.write(text.replace("%s", function))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        subprocess.run([shutil.which("gcc") or "cc", "-g", "-O0", "-Wl,--build-id", "-o", path, source, *options], check=True)
        return path

    def put(self, path, function, shown=None):
        """Samples of a function of the file at `path`, under the path `shown`."""
        shown = shown or path
        put_image(self.session, shown, [(elfsyms.symbol_ranges(path, (function,))[function][0], 50)])
        self.rows.append((len(self.rows) + 1, "file", shown, shown, "-", "-", build_id_of(path), "0:0", 0, 0, "0.000000000", 0, 0,
                          1, 1))
        with open(os.path.join(self.session, "samples/current/dcookies"), "w", encoding="ascii") as stream:
            stream.write("opd-dcookies 1\nnext\t%d\n" % (len(self.rows) + 1) +
                         "".join("%s\n" % "\t".join(map(str, row)) for row in self.rows))

    def start(self, *command, **options):
        """A process that says "runs" and ends with its standard input."""
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.stdin.close)
        line = child.stdout.readline()
        if line != b"runs\n":
            self.skipTest("cannot run %s here" % " ".join(command))
        return child

    def run_tool(self, tool, *arguments, user=None, env=None, prefix=()):
        """The output; self.errors are the messages. Neither names the copy."""
        begin = time.monotonic()
        done = subprocess.run([*prefix, os.path.join(TOOLS, tool), *(arguments or ("-l",)), "--session-dir=" + self.session],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=HANG_SECONDS, text=True,
                              env=dict(os.environ, **(env or {})),
                              **({} if user is None else {"user": user, "group": user, "extra_groups": []}))
        self.seconds, self.errors = time.monotonic() - begin, done.stderr
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("/proc/self/fd", done.stdout + done.stderr)
        return done.stdout

    def need_root(self):
        if os.geteuid():
            self.skipTest("needs root")

    def test_removed(self):
        """A program that was removed while it runs, in each tool; the next report has no trace."""
        path = self.build(os.path.join(self.dir, "prog"), "hot")
        self.put(path, "hot")
        child = self.start(path)
        plain = self.run_tool("opreport")
        listing = self.run_tool("opannotate", "-s", "-a").split("*/\n", 1)[1]
        os.unlink(path)
        self.assertEqual(self.run_tool("opreport"), plain)
        self.assertIn(" hot", plain)
        self.assertIn("source.c:2", self.run_tool("opreport", "-l", "-g"))
        self.assertEqual(self.run_tool("opannotate", "-s", "-a").split("*/\n", 1)[1], listing)
        self.assertIn("debug info", self.run_tool("opreport", "--images"))
        with tempfile.NamedTemporaryFile() as gmon:
            self.run_tool("opgprof", "-o", gmon.name)
            self.assertGreater(os.path.getsize(gmon.name), 0)
        self.assertIn("/proc/%d/" % child.pid, self.run_tool("opreport", "-l", "-V", "debug") + self.errors)
        child.stdin.close()
        child.wait()
        self.assertNotIn(" hot", self.run_tool("opreport"))
        self.assertIn("could not be found", self.errors)

    def test_archived(self):
        """oparchive takes the file along, for its owner only; the archive is sound."""
        path = self.build(os.path.join(self.dir, "prog"), "hot")
        self.put(path, "hot")
        plain = self.run_tool("opreport")
        child = self.start(path)
        os.unlink(path)
        away = os.path.join(self.dir, "away")
        self.run_tool("oparchive", "-o", away)
        child.stdin.close()
        child.wait()
        archived = away + path
        self.assertEqual(build_id_of(archived), self.rows[0][6])
        self.assertEqual(stat.S_IMODE(os.stat(archived).st_mode) & 0o077, 0)
        subprocess.run([os.path.join(TOOLS, "oparchive"), "--check=" + away], check=True, stdout=subprocess.DEVNULL)
        done = subprocess.run([os.path.join(TOOLS, "opreport"), "-l", "archive:" + away], capture_output=True, check=True,
                              text=True)
        self.assertEqual(done.stdout, plain)

    def test_replaced(self):
        """Another file has the path now; the one that runs is the right one."""
        path, other = os.path.join(self.dir, "prog"), self.build(os.path.join(self.dir, "other"), "cold")
        self.put(self.build(path, "hot"), "hot")
        self.start(path)
        os.rename(other, path)
        report = self.run_tool("opreport")
        self.assertIn(" hot", report)
        self.assertNotIn("cold", report)

    def test_another_build_id(self):
        """A process that runs another file of that path says nothing, whether its file is there or not."""
        path, other = os.path.join(self.dir, "prog"), self.build(os.path.join(self.dir, "other"), "cold")
        self.put(self.build(path, "hot"), "hot")
        os.rename(other, path)
        self.start(path)
        for _ in range(2):
            report = self.run_tool("opreport")
            self.assertNotIn(" hot", report)
            self.assertNotIn("cold", report)
            self.assertIn("could not be found", self.errors)
            if os.path.exists(path):
                os.unlink(path)

    def test_many_of_that_path(self):
        """The right one among other files of one path."""
        path = os.path.join(self.dir, "prog")
        self.put(self.build(path, "hot"), "hot")
        for i in range(12):
            if i == 9:
                self.build(path, "hot")
            else:
                self.build(path, "cold%d" % i)
            self.start(path)
            os.unlink(path)
        report = self.run_tool("opreport")
        self.assertIn(" hot", report)
        self.assertNotIn("cold", report)

    def test_library(self):
        """A library that was removed: root reads the mapping."""
        self.need_root()
        library = self.build(os.path.join(self.dir, "libhot.so"), "hot_code", LIBRARY, "-shared", "-fPIC")
        self.put(library, "hot_code")
        self.start(self.build(os.path.join(self.dir, "prog"), "cold"), env=dict(os.environ, LD_PRELOAD=library))
        os.unlink(library)
        self.assertIn(" hot_code", self.run_tool("opreport"))
        self.run_tool("opreport", user=NOBODY)
        self.assertIn("could not be found", self.errors)

    def test_own_process(self):
        """An ordinary user finds the programs of own processes, and no others."""
        self.need_root()
        path = self.build(os.path.join(self.dir, "prog"), "hot")
        self.put(path, "hot")
        self.start(path)
        mine = self.start(path, user=NOBODY, group=NOBODY, extra_groups=[])
        os.unlink(path)
        self.assertIn(" hot", self.run_tool("opreport", user=NOBODY))
        mine.stdin.close()
        mine.wait()
        self.assertNotIn(" hot", self.run_tool("opreport", user=NOBODY))

    def start_in_namespace(self, path, point):
        """Runs a copy of a program at `point`/prog, on a file system that only its namespace has."""
        os.makedirs(point, exist_ok=True)
        flags = ["-m"] if not os.geteuid() else ["-Urm"]
        script = "mount -t tmpfs none %s && cp %s %s/prog && exec %s/prog" % (point, path, point, point)
        return self.start("unshare", *flags, "sh", "-c", script)

    def test_container(self):
        """A program of a mount namespace whose path the host does not have, or has with another file."""
        point, path = os.path.join(self.dir, "point"), self.build(os.path.join(self.dir, "prog"), "hot")
        self.start_in_namespace(path, point)
        self.put(path, "hot", point + "/prog")
        self.assertIn(" hot", self.run_tool("opreport"))
        self.build(point + "/prog", "cold")
        report = self.run_tool("opreport")
        self.assertIn(" hot", report)
        self.assertNotIn("cold", report)

    def test_not_kept(self):
        """Whoever runs a file chooses its build-id: its symbols are not kept for other files."""
        path, cache = os.path.join(self.dir, "prog"), os.path.join(self.dir, "cache")
        self.put(self.build(path, "hot"), "hot")
        self.start(path)
        self.assertIn(" hot", self.run_tool("opreport", env={"OPD_CACHE_DIR": cache}))
        kept = os.path.join(cache, "symbols")
        self.assertEqual(len(os.listdir(kept)), 1, "the file itself is kept")
        shutil.rmtree(cache)
        os.unlink(path)
        self.assertIn(" hot", self.run_tool("opreport", env={"OPD_CACHE_DIR": cache}))
        self.assertEqual(os.listdir(kept), [])

    # ---- processes that let nobody look ----

    def start_hanging(self, mapped, number):
        point = os.path.join(self.dir, "hanging")
        for name in ("point", "empty"):
            os.makedirs(os.path.join(point, name), exist_ok=True)
        node = "/dev/fuse"
        if not os.geteuid():
            node = os.path.join(self.dir, "fuse")
            if not os.path.exists(node):
                os.mknod(node, stat.S_IFCHR | 0o666, FUSE)
                os.chmod(node, 0o666)
        if not os.path.exists(HANGING) or not os.path.exists(node):
            self.skipTest("no %s or no %s" % (HANGING, node))
        child = subprocess.Popen([HANGING, node, point, str(number), "0", mapped], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        self.addCleanup(child.stderr.close)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.stdin.close)
        for _ in range(number):
            if not next((line for line in child.stdout if line.startswith(b"runs")), None):
                self.skipTest("no FUSE in a user namespace here: " + child.stderr.readline().decode().strip())
        return child

    def check_hanging(self, number, **options):
        """Others are found, the hang costs one line, and the time is bounded. The pipes of the tool
        close: a child that hangs does not have them."""
        mapped = tempfile.NamedTemporaryFile(prefix="perf-", dir="/tmp", delete=False)
        self.addCleanup(os.unlink, mapped.name)
        mapped.close()
        wanted = self.build(os.path.join(self.dir, "wanted"), "hot")
        self.put(wanted, "hot", mapped.name)
        shutil.copy(self.build(os.path.join(self.dir, "impostor"), "cold"), mapped.name)
        os.chmod(mapped.name, 0o755)
        self.start_hanging(mapped.name, number)
        good = self.build(os.path.join(self.dir, "good"), "warm")
        self.put(good, "warm")
        self.start(good, user=NOBODY if not os.geteuid() else None, group=NOBODY if not os.geteuid() else None)
        os.unlink(good)
        report = self.run_tool("opreport", **options)
        print("%d processes that hang: %.1f s" % (number, self.seconds))
        self.assertLess(self.seconds, BOUND_SECONDS)
        self.assertEqual(self.errors.count("its file system does not answer"), 1, self.errors)
        self.assertNotIn("cold", report)
        self.assertNotIn(" hot", report)
        return report

    def test_hanging(self):
        self.need_root()
        self.assertIn(" warm", self.check_hanging(2, prefix=ASKS_THE_PATH))

    def test_many_hanging(self):
        """A file that many of them have mapped costs three waits."""
        self.need_root()
        self.check_hanging(16, prefix=ASKS_THE_PATH)

    def test_root_does_not_ask(self):
        """Root sees by the mapping that it is another file, and asks the hanging file system nothing."""
        self.need_root()
        with self.assertRaisesRegex(AssertionError, "0 != 1"):
            self.check_hanging(2)
        self.assertIn("could not be found", self.errors)


if __name__ == "__main__":
    unittest.main()
