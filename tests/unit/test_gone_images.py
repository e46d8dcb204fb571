#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Function names of an image that is gone, from the row table that opd kept.

Run from the build directory by `make check`.
"""
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path[:0] = [os.path.join(SOURCE, "tests", "system"), os.path.join(SOURCE, "tests", "unit")]
import elfsyms  # noqa: E402
from sample_files import put_image  # noqa: E402

TOOLS = os.path.abspath(os.environ.get("TOOLS", "bin"))
TABLES = os.path.abspath("tools/opd-tables/opd-tables")
BUILD_ID = "00112233445566778899aabbccddeeff00112233"
PROGRAM = r"""
#define KEEP __attribute__((noinline, noclone, used))
static KEEP long hidden(long n) { return n * 7; }
KEEP long shown(long n) { return hidden(n) + 1; }
int main(int argc, char **argv) { (void)argv; return (int)shown(argc) & 1; }
"""


def seal(data):
    """With the checksum of doc/format.md behind it."""
    def weight(index):
        value = (index + 1) * 0x9e3779b97f4a7c15 & (1 << 64) - 1
        return (value ^ value >> 31) | 1
    words = struct.unpack("<%dQ" % (-(-len(data) // 8)), data + bytes(-len(data) % 8))
    total = len(data) * weight((1 << 64) - 2) + sum(word * weight(i) for i, word in enumerate(words))
    return data + b"opd-seal" + struct.pack("<Q", total & (1 << 64) - 1)


class GoneImages(unittest.TestCase):
    def setUp(self):
        box = tempfile.TemporaryDirectory()
        self.addCleanup(box.cleanup)
        self.box = box.name
        self.program, self.session = os.path.join(self.box, "program"), os.path.join(self.box, "session")
        self.tables, self.config = os.path.join(self.box, "tables"), os.path.join(self.box, "opd.conf")
        with open(self.config, "w", encoding="ascii") as stream:
            stream.write("TableDir=%s\n" % self.tables)
        with open(self.program + ".c", "w", encoding="ascii") as stream:
            stream.write(PROGRAM)
        subprocess.run(["gcc", "-O2", "-Wl,--build-id=0x" + BUILD_ID, "-o", self.program, self.program + ".c"], check=True)
        ranges = elfsyms.symbol_ranges(self.program, ["hidden", "shown"])
        self.hidden = ranges["hidden"][0]
        put_image(self.session, self.program, [(ranges["hidden"][0], 30), (ranges["shown"][0] + 1, 10)])
        row = (1, "file", self.program, self.program, "-", "-", BUILD_ID, "0:0", 0, 0, "0.000000000", 0, 0, 1, 1)
        with open(os.path.join(self.session, "samples", "current", "dcookies"), "w", encoding="ascii") as stream:
            stream.write("opd-dcookies 1\nnext\t2\n%s\n" % "\t".join(map(str, row)))
        with open(self.program, "rb") as image:
            self.image = image.read()
        with open(self.program, "rb") as image:
            self.table = subprocess.run([TABLES], stdin=image, stdout=subprocess.PIPE, check=True).stdout
        os.unlink(self.program)

    def keep(self, data, name=BUILD_ID):
        directory = os.path.join(self.tables, name[:2])
        shutil.rmtree(self.tables, ignore_errors=True)
        os.makedirs(directory)
        with open(os.path.join(directory, name), "wb") as stream:
            stream.write(data)

    def opreport(self, *options):
        done = subprocess.run([os.path.join(TOOLS, "opreport"), *options], check=True,
                              env={**os.environ, "OPD_CONFIG": self.config, "OPD_CACHE_DIR": ""}, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        self.errors = done.stderr.decode()
        return done

    def stacks(self, *options):
        return self.opreport("--stacks", "--format=folded", *options).stdout.decode()

    def report(self, *options):
        session = [] if options and options[0].startswith("archive:") else ["--session-dir=" + self.session]
        done = self.opreport("-l", *session, *options)
        return {line.split()[-1]: int(line.split()[0]) for line in done.stdout.decode().splitlines() if line[:1].isdigit()}

    def assert_no_names(self, *options):
        self.assertEqual(list(self.report(*options).values()), [40])
        self.assertIn("could not be found", self.errors)

    def test_names(self):
        self.assert_no_names()
        for name in (BUILD_ID, BUILD_ID + ".1000"):
            self.keep(seal(self.table), name)
            self.assertEqual(self.report(), {"hidden": 30, "shown": 10})
            self.assertIn("is not there any more: its functions are those that opd kept", self.errors)

    def test_a_file_without_section_headers(self):
        """Its build-id is in PT_NOTE, so it is the file that ran; it has no names of its own."""
        image = bytearray(self.image)
        struct.pack_into("<Q", image, 40, 0)  # e_shoff
        struct.pack_into("<HH", image, 60, 0, 0)  # e_shnum, e_shstrndx
        with open(self.program, "wb") as stream:
            stream.write(image)
        self.assertEqual(list(self.report().values()), [40])
        self.assertNotIn("another file", self.errors)
        images = self.opreport("--images", "--session-dir=" + self.session).stdout.decode()
        self.assertNotIn("replaced", images)
        self.assertIn(BUILD_ID, images)
        self.keep(seal(self.table))
        self.assertEqual(self.report(), {"hidden": 30, "shown": 10})
        self.assertNotIn("no symbols", self.errors)

    def test_sources_without_tables(self):
        self.keep(seal(self.table))
        self.assert_no_names("--symbols-from=symtab")
        self.assertEqual(self.report("--symbols-from=symtab,table"), {"hidden": 30, "shown": 10})

    def test_bad_tables_are_not_used(self):
        bad = bytearray(self.table)
        bad[60] ^= 1
        other = self.table.replace(bytes.fromhex(BUILD_ID), bytes(20))
        for data in (self.table, self.table[:-1], b"", bytes(16), seal(self.table)[:-1], seal(self.table[:-1]), seal(b""),
                     seal(bytes(100)), seal(other), seal(bytes(bad))[:-8] + seal(self.table)[-8:]):
            self.keep(data)
            self.assert_no_names()

    def test_another_file_in_its_place(self):
        """A later session has another build of the program. Reports of both sessions have the names."""
        self.keep(seal(self.table))
        put_image(self.session, self.program, [(self.hidden, 2)], session="later")
        row = (1, "file", self.program, self.program, "-", "-", "ff" * 20, "0:0", 0, 0, "0.000000000", 0, 0, 1, 1)
        with open(os.path.join(self.session, "samples", "later", "dcookies"), "w", encoding="ascii") as stream:
            stream.write("opd-dcookies 1\nnext\t2\n%s\n" % "\t".join(map(str, row)))
        found = self.report("session:current,later")
        self.assertEqual((found["hidden"], found["shown"], sum(found.values())), (30, 10, 42))

    def put_caller(self):
        """An image in which no sample is: only a stack names it."""
        caller = os.path.join(self.box, "caller")
        shutil.copy("/bin/true", caller)
        nodes = [(0, 0, 0, 0, 0), (0, 9, *struct.unpack("<QQ", b"STACKS:1:0x0".ljust(16, b"\0")), 0), (0, 1, 1, 0, 0),
                 (2, 2, 0, 1, 0),
                 (3, 3, *struct.unpack("<QQ", b"program".ljust(16, b"\0")), 0), (4, 4, 0, 0, 0), (5, 5, 0, 0, 0), (6, 7, 16, 2, 0),
                 (7, 7, self.hidden, 1, 5)]
        current = os.path.join(self.session, "samples", "current")
        with open(os.path.join(current, "stacks"), "wb") as stream:
            stream.write(struct.pack("<8sIIQI36s", b"opdstck1", 32, len(nodes), 0, 0, bytes(36)))
            for parent, kind, value, image, count in nodes:
                stream.write(struct.pack("<IHHQQQ", parent, kind, 0, value, image, count))
        row = (2, "file", caller, caller, "-", "-", "-", "0:0", 0, 0, "0.000000000", 0, 0, 1, 1)
        with open(os.path.join(current, "dcookies"), "a", encoding="ascii") as stream:
            stream.write("next\t3\n%s\n" % "\t".join(map(str, row)))
        return caller

    def test_archive(self):
        """It has the images that only stacks name, and the names of images that are gone."""
        self.keep(seal(self.table))
        caller, away = self.put_caller(), os.path.join(self.box, "away")
        subprocess.run([os.path.join(TOOLS, "oparchive"), "--session-dir=" + self.session, "-o", away], check=True,
                       env={**os.environ, "OPD_CONFIG": self.config}, stderr=subprocess.DEVNULL)
        self.assertTrue(os.path.exists(away + caller))
        folded = self.stacks("--session-dir=" + self.session)
        self.assertIn(";hidden 5", folded)
        shutil.rmtree(self.session)
        shutil.rmtree(self.tables)
        os.unlink(caller)
        moved = os.path.join(self.box, "moved")
        os.rename(away, moved)
        self.assertEqual(self.stacks("archive:" + moved), folded)
        self.assertEqual(self.report("archive:" + moved), {"hidden": 30, "shown": 10})

    def test_the_file_goes_first(self):
        self.keep(seal(self.table))
        subprocess.run(["gcc", "-O2", "-Dshown=renamed", "-Wl,--build-id=0x" + BUILD_ID, "-o", self.program,
                        self.program + ".c"], check=True)
        self.assertEqual(self.report(), {"hidden": 30, "renamed": 10})


if __name__ == "__main__":
    unittest.main()
