#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""opimport on made-up files of perf.data: what other kernels, other versions of perf and other
programs leave in them. Run from the build directory.
"""
import bz2
import gzip
import lzma
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path.insert(0, os.path.join(SOURCE, "tests", "system"))
import elfsyms  # noqa: E402

TOOLS = os.path.abspath("bin")
SAMPLE, COMM, MMAP, MMAP2 = 9, 3, 1, 10
USER, EXEC, BUILD_ID = 2, 1 << 13, 1 << 14
IP, TID, TIME, READ, ID, IDENTIFIER = 1, 2, 4, 16, 64, 1 << 16
MMAP_FLAG, COMM_FLAG, ID_ALL, COMM_EXEC = 1 << 8, 1 << 9, 1 << 18, 1 << 24
PID, AT = 7, 0x400000


def record(kind, misc, body):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def text(name):
    return name.encode() + bytes(8 - len(name) % 8)


class Recording:
    """One event, TID and TIME in each record."""

    def __init__(self, flags=MMAP_FLAG | COMM_FLAG | ID_ALL):
        self.attr = struct.pack("<IIQQQQQ", 1, 96, 0, 250000, IP | TID | TIME, 0, flags).ljust(96, b"\0")
        self.records, self.time = b"", 1

    def who(self):
        self.time += 1
        return struct.pack("<IIQ", PID, PID, self.time)

    def comm(self, name, misc=0):
        self.records += record(COMM, misc, struct.pack("<II", PID, PID) + text(name) + self.who())

    def mmap(self, name, start=AT):
        self.records += record(MMAP, USER, struct.pack("<IIQQQ", PID, PID, start, 0x1000, 0) + text(name) + self.who())

    def mmap_by_build_id(self, name, offset, build_id):
        body = struct.pack("<IIQQQBBH20sII", PID, PID, AT, 0x1000, offset, len(build_id), 0, 0, build_id, 5, 2)
        self.records += record(MMAP2, USER | BUILD_ID, body + text(name) + self.who())

    def mmap2(self, name, start, is_old):
        body = struct.pack("<IIQQQIIQQ", PID, PID, start, 0x1000, 0, 253, 1, 99, 1) + (b"" if is_old else struct.pack("<II", 5, 2))
        self.records += record(MMAP2, USER, body + text(name) + self.who())

    def samples(self, nr, ip=AT + 16):
        for _ in range(nr):
            self.time += 1
            self.records += record(SAMPLE, USER, struct.pack("<QIIQ", ip, PID, PID, self.time))

    def file(self):
        at = 104 + 112
        head = struct.pack("<8sQQQQQQQQ", b"PERFILE2", 104, 112, 104, 112, at, len(self.records), 0, 0) + bytes(32)
        return head + self.attr + struct.pack("<QQ", 0, 0) + self.records

    def pipe(self):
        return struct.pack("<8sQ", b"PERFILE2", 16) + record(64, 0, self.attr + struct.pack("<Q", 1)) + self.records


class Import(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="opd-test.")
        self.addCleanup(shutil.rmtree, self.dir)
        self.env = {**os.environ, "LC_ALL": "C.UTF-8", "OPD_CACHE_DIR": "", "DEBUGINFOD_URLS": "", "PAGER": "cat"}

    def run_tool(self, tool, *words, **more):
        return subprocess.run([os.path.join(TOOLS, tool), *words], env=self.env, capture_output=True, check=False, **more)

    def opimport(self, data, *words, rc=0):
        session = os.path.join(self.dir, "session")
        shutil.rmtree(session, ignore_errors=True)
        done = self.run_tool("opimport", "--session-dir=" + session, "-o", "x", *words, "-", input=data)
        self.assertEqual(done.returncode, rc, done)
        return (done.stderr if rc else done.stdout).decode()

    def rows(self, *words, start=" "):
        """{image: samples}; without `start`, the lines of applications."""
        done = self.run_tool("opreport", "--session-dir=" + os.path.join(self.dir, "session"), "-n", *words, "session:x")
        self.assertEqual(done.returncode, 0, done)
        lines = re.finditer(r"^%s*(\d+)\s+[\d.]+\s+(.*)$" % start, done.stdout.decode(), re.M)
        return {found[2].strip(): int(found[1]) for found in lines}


class Records(Import):
    def test_mmap2_of_rhel_7_0(self):
        """Linux 3.10.0-123 has no prot and flags: the name begins earlier. Both in one file, as no kernel writes it."""
        made = Recording(MMAP_FLAG | COMM_FLAG | ID_ALL | 1 << 23)
        made.comm("true")
        for i, name in enumerate(("/usr/bin/true", "/lib64/ld-2.17.so", "//anon", "[vdso]")):
            made.mmap2(name, AT + 0x10000 * i, True)
            made.samples(4 + i, AT + 0x10000 * i + 8)
        made.mmap2("/usr/lib/new.so", AT + 0x100000, False)
        made.samples(9, AT + 0x100008)
        self.opimport(made.file())
        rows = self.rows("-f", start=r"\s")
        self.assertEqual(rows["/lib64/ld-2.17.so"], 5)
        self.assertEqual(rows["/usr/lib/new.so"], 9)
        self.assertEqual(rows["/usr/bin/true"], 4)
        self.assertTrue([name for name, nr in rows.items() if name.startswith("anon ") and nr == 6], rows)
        self.assertTrue([name for name, nr in rows.items() if name.startswith("[vdso]") and nr == 7], rows)

    def renamed(self, flags):
        made = Recording(MMAP_FLAG | COMM_FLAG | ID_ALL | flags)
        made.comm("first", EXEC if flags else 0)
        made.mmap("/bin/first")
        made.samples(3)
        made.comm("second")
        made.samples(5)
        made.comm("third")
        made.samples(7)
        self.opimport(made.file(), "--separate=process-name")
        return self.rows()

    def test_renames_by_prctl(self):
        for flags in (COMM_EXEC, 0):
            self.assertEqual(self.renamed(flags), {"first": 3, "first (second)": 5, "first (third)": 7})

    def test_a_rename_is_no_exec(self):
        """The next file that is mapped does not become the application."""
        made = Recording(MMAP_FLAG | COMM_FLAG | ID_ALL | COMM_EXEC)
        made.comm("first", EXEC)
        made.mmap("/bin/first")
        made.samples(3)
        made.comm("second")
        made.mmap("/bin/second", AT + 0x10000)
        made.samples(5, AT + 0x10010)
        self.opimport(made.file())
        self.assertEqual(self.rows(), {"first": 8})


class Group:
    """A leader with samples, and members whose counters these read: software events 2, 3 and 4."""

    TIMES, ID, GROUP, LOST = 3, 4, 8, 16

    def __init__(self, formats, inherit=False, order="<"):
        self.formats, self.order, self.records = formats, order, b""
        self.time = 1
        kind = IP | TID | TIME | IDENTIFIER | READ
        for identifier in (1, 2, 3, 4):
            flags = MMAP_FLAG | COMM_FLAG | ID_ALL | inherit << 1
            attr = struct.pack("<IIQQQQQ", 1, 96, identifier, 1000 if identifier == 1 else 0, kind, formats, flags)
            self.records += record(64, 0, attr.ljust(96, b"\0") + struct.pack("<Q", identifier))
        self.records += record(COMM, 0, struct.pack("<II", PID, PID) + text("prog") + self.end())
        self.records += record(MMAP, USER, struct.pack("<IIQQQ", PID, PID, AT, 0x1000, 0) + text("/bin/prog") + self.end())

    def end(self):
        self.time += 1
        return struct.pack("<IIQQ", PID, PID, self.time, 1)

    def sample(self, values, tid=PID, cut=0):
        """{identifier: value}"""
        self.time += 1
        words = [len(values)] + [0, 0] * bool(self.formats & self.TIMES)
        for identifier, value in values.items():
            words += [value] + [identifier] * bool(self.formats & self.ID) + [0] * bool(self.formats & self.LOST)
        words[0] += cut
        body = struct.pack("<QQIIQ", 1, AT + 16, PID, tid, self.time) + struct.pack("<%dQ" % len(words), *words)
        self.records += record(SAMPLE, USER, body)

    def pipe(self):
        return struct.pack("<8sQ", b"PERFILE2", 16) + self.records


class Groups(Import):
    def received(self, out):
        return {name: int(nr) for name, nr in re.findall(r"^(\S+):\d+ received (\d+),", out, re.M)}

    def test_values_that_samples_read(self):
        for formats in (0, Group.TIMES, Group.LOST, Group.TIMES | Group.LOST):
            made = Group(formats | Group.ID | Group.GROUP)
            made.sample({1: 1000, 2: 10, 3: 0, 99: 5})
            made.sample({1: 2000, 2: 17, 3: 0})
            made.sample({3: 2, 2: 17})
            made.sample({2: 3, 3: 9})  # a counter that began again
            made.sample({2: 4})
            out = self.opimport(made.pipe())
            self.assertEqual(self.received(out), {"task-clock": 5, "page-faults": 18, "context-switches": 9})
            self.assertIn("5 samples", out)
            self.assertRegex(out, r"cpu-migrations\S* takes no samples, and no sample has read its counter")
            self.assertEqual(self.rows("event:page-faults"), {"prog": 18})
            self.assertEqual(self.rows("event:context-switches"), {"prog": 9})

    def test_counters_of_threads(self):
        """With inherit the kernel counts by thread, under one identifier."""
        for inherit, faults in ((False, 10 + 15 + 3), (True, 10 + 7 + 15 + 5)):
            made = Group(Group.ID | Group.GROUP, inherit)
            for tid, value in ((PID, 10), (PID + 1, 7), (PID, 25 - 3), (PID, 25), (PID + 1, 12)):
                made.sample({2: value}, tid)
            self.assertEqual(self.received(self.opimport(made.pipe()))["page-faults"], faults)

    def test_large_differences(self):
        made = Group(Group.ID | Group.GROUP)
        made.sample({2: 5 << 32, 3: 1 << 63})
        out = self.opimport(made.pipe(), rc=0)
        self.assertEqual(self.received(out)["page-faults"], 5 << 32)
        self.assertIn("context-switches:1 received 1, stored 0", out)
        self.assertEqual(self.rows("event:page-faults"), {"prog": 5 << 32})

    def test_damaged_groups(self):
        for cut in (1, 1 << 40, (1 << 64) - 2):
            made = Group(Group.ID | Group.GROUP)
            made.sample({1: 1000, 2: 10})
            made.sample({1: 2000}, cut=cut)
            out = self.opimport(made.pipe(), rc=1)
            self.assertIn("at byte", out)
        made = Group(Group.GROUP)
        made.sample({1: 1000, 2: 10})
        self.assertIn("page-faults:1 takes no samples, and no sample has read its counter", self.opimport(made.pipe()))


class Files(Import):
    def setUp(self):
        super().setUp()
        self.made = Recording()
        self.made.comm("first")
        self.made.mmap("/bin/first")
        self.made.samples(11)

    def test_compressed_files_are_named(self):
        packed = {"gzip": gzip.compress, "xz": lzma.compress, "bzip2": bz2.compress}
        for name, compress in packed.items():
            self.assertIn("%s -dc" % name, self.opimport(compress(self.made.file()), rc=1))
        self.assertIn("zstd -dc", self.opimport(bytes.fromhex("28b52ffd") + bytes(60), rc=1))

    def test_text_behind_the_records(self):
        for more in ("ok", "\n", "[ perf record: Captured and wrote 0.1 MB ]\n", "größer als\t1\r\n" * 9000):
            for data in self.made.pipe(), self.made.file():
                out = self.opimport(data + more.encode())
                self.assertIn("received 11, stored 11", out)
            self.assertIn("bytes of text behind the records", self.opimport(self.made.pipe() + more.encode()))

    def test_what_is_no_text_is_damage(self):
        for more in (b"\xff" * 7 + b"\0", b"some text\0", b"\1\2\3", bytes(3)):
            self.assertIn("at byte", self.opimport(self.made.pipe() + more, rc=1))

    def test_images_in_a_build_id_cache(self):
        """perf keeps files of other hosts in ~/.debug/.build-id/xx/yyyy/elf, which may be a link."""
        digits = "0123456789abcdef0123456789abcdef01234567"
        program, source = os.path.join(self.dir, "prog"), os.path.join(self.dir, "prog.c")
        with open(source, "w", encoding="ascii") as stream:
            stream.write("int hot(int n) { return n * 3; }\nint main(int n, char **v) { (void)v; return hot(n); }\n")
        subprocess.run(["gcc", "-O0", "-Wl,--build-id=0x" + digits, source, "-o", program], check=True)
        with open(program, "rb") as stream:
            content = stream.read()
        hot = elfsyms.symbol_ranges(program, ("hot",))["hot"][0]
        made = Recording(MMAP_FLAG | COMM_FLAG | ID_ALL | 1 << 23 | 1 << 34)
        made.comm("prog")
        made.mmap_by_build_id("/of/another/host/prog", hot & ~0xfff, bytes.fromhex(digits))
        made.samples(6, AT + (hot & 0xfff) + 1)
        os.unlink(program)
        self.opimport(made.file())
        for nr, (place, is_link) in enumerate((("elf", False), ("elf", True), ("", False))):
            cache = os.path.join(self.dir, "cache%d" % nr)
            entry = os.path.join(cache, ".build-id", digits[:2], digits[2:])
            real = os.path.join(cache, "of", digits) if is_link else entry
            path = os.path.join(real, place) if place else entry
            os.makedirs(os.path.dirname(path))
            if is_link:
                os.makedirs(os.path.dirname(entry))
                os.symlink(real, entry)
            with open(path, "wb") as stream:
                stream.write(content)
            self.assertEqual(self.rows("-l", "--image-path=" + cache), {"hot": 6})
        self.assertEqual(self.rows("-l", "--image-path=" + self.dir), {"/of/another/host/prog": 6})


if __name__ == "__main__":
    unittest.main()
