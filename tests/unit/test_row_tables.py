#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Row tables of opd-tables: the same as libdw says, for real images; bounded work for hostile ones.

usage: test_row_tables.py [MUTANTS]. Run from the build directory by `make check`.
"""
import ctypes
import lzma
import os
import random
import struct
import subprocess
import sys
import tempfile
import unittest

TABLES = os.path.abspath("tools/opd-tables/opd-tables")
ORACLE = os.path.abspath("tests/unwind/cfi_oracle")
MUTANTS = int(sys.argv.pop()) if len(sys.argv) > 1 and sys.argv[-1].isdigit() else 150
ROWS = "4000"  # rows of each image that are compared
HEADER = struct.Struct("<8sIHBB20sIIIII")
RULE = struct.Struct("<8B5i")
HANG_SECONDS = 60
PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PR_SET_NO_NEW_PRIVS = 22, 2, 38
NO_SANDBOX = 126  # OP_ROW_TABLE_NO_SANDBOX
BAD_TABLE = 2  # exit code of the oracle: the table is damaged

PROGRAM = r"""
#include <stdlib.h>
#include <string.h>
/* a frame of unknown size, a realigned one, one that is split, and one with a big frame */
__attribute__((noinline)) int sized(int n) { char b[n]; memset(b, n, n); return b[n / 2] + atoi(b); }
__attribute__((noinline)) int aligned(int n) { _Alignas(64) char b[256]; memset(b, n, sizeof(b)); return b[n & 255] + sized(n); }
__attribute__((noinline)) int split(int n) { if (__builtin_expect(n == 77, 0)) { abort(); } return aligned(n) + 1; }
__attribute__((noinline)) int large(int n) { char b[70000]; memset(b, n, sizeof(b)); return b[n] + split(n); }
int main(int argc, char **argv) { (void)argv; return large(argc) & 1; }
"""


def make_table(image, table, first=None):
    """The exit code of opd-tables and what it said. first() is called in its process."""
    with open(image, "rb") as source, open(table, "wb") as target:
        done = subprocess.run([TABLES], stdin=source, stdout=target, stderr=subprocess.PIPE, timeout=HANG_SECONDS,
                              check=False, preexec_fn=first)
    return done.returncode, done.stderr.decode()


def refuse_seccomp(and_prctl):
    """From here on seccomp(2) of this process says EPERM, and so does prctl(PR_SET_SECCOMP)."""
    load, equal, ret, allow, refuse = 0x20, 0x15, 0x06, 0x7fff0000, 0x50001
    calls = {"x86_64": (317, 157), "aarch64": (277, 167)}.get(os.uname().machine, (354, 172))
    code = [(load, 0, 0, 0), (equal, 4, 0, calls[0]), (equal, 0, 2, calls[1]), (load, 0, 0, 16),
            (equal, 1, 0, PR_SET_SECCOMP if and_prctl else 0xffffffff), (ret, 0, 0, allow), (ret, 0, 0, refuse)]
    rows = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in code))
    program = ctypes.create_string_buffer(struct.pack("HP", len(code), ctypes.addressof(rows)))
    prctl = ctypes.CDLL(None).prctl
    if prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0):
        os._exit(99)


def sections_of(image):
    """{name: (offset, size)} of an ELF file of 64 bits."""
    with open(image, "rb") as stream:
        data = stream.read()
    at, = struct.unpack_from("<Q", data, 0x28)
    size, number, names = struct.unpack_from("<HHH", data, 0x3a)
    rows = [struct.unpack_from("<IIQQQQIIQQ", data, at + i * size) for i in range(number)]
    text = data[rows[names][4]:rows[names][4] + rows[names][5]]
    return {text[row[0]:text.index(b"\0", row[0])].decode(): (row[4], row[5]) for row in rows}


class RowTables(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.box = tempfile.TemporaryDirectory()
        source = os.path.join(cls.box.name, "program.c")
        cls.program = os.path.join(cls.box.name, "program")
        cls.table = os.path.join(cls.box.name, "table")
        with open(source, "w", encoding="ascii") as stream:
            stream.write(PROGRAM)
        subprocess.run(["gcc", "-O2", "-o", cls.program, source], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.box.cleanup()

    def path(self, name, data):
        path = os.path.join(self.box.name, name)
        with open(path, "wb") as stream:
            stream.write(data)
        return path

    def compare(self, image):
        """Compares with libdw. Returns the fields of the header."""
        code, said = make_table(image, self.table)
        self.assertEqual(code, 0, image + ": " + said)
        done = subprocess.run([ORACLE, image, self.table, ROWS], stdout=subprocess.PIPE, timeout=HANG_SECONDS, check=False)
        text = done.stdout.decode()
        self.assertEqual(done.returncode, 0, text)
        words = text.split()
        same, unknown = int(words[words.index("same,") - 2]), int(words[words.index("known,") - 2])
        # Not known is the padding between functions. It is a small part.
        self.assertGreater(same, 5 * unknown, text)
        with open(self.table, "rb") as stream:
            return HEADER.unpack(stream.read(HEADER.size))

    def test_libdw_says_the_same(self):
        libraries = subprocess.run(["ldd", "/usr/bin/python3"], stdout=subprocess.PIPE, check=True).stdout.decode().split()
        images = [os.path.realpath(word) for word in libraries if word.startswith("/")]
        images += [self.program, os.path.realpath("/usr/bin/python3"),
                   subprocess.run(["gcc", "-print-prog-name=cc1"], stdout=subprocess.PIPE, check=True).stdout.decode().strip()]
        for image in images:
            with self.subTest(image):
                self.compare(image)

    def test_libc_is_small(self):
        libc = [word for word in subprocess.run(["ldd", "/bin/ls"], stdout=subprocess.PIPE, check=True).stdout.decode().split()
                if "libc.so" in word and word.startswith("/")][0]
        _, nr_bytes, _, _, _, _, _, _, _, nr_packed, _ = self.compare(libc)
        self.assertLess(nr_bytes - nr_packed, 300000)

    def test_sections_are_not_needed(self):
        with open(self.program, "rb") as stream:
            data = bytearray(stream.read())
        self.compare(self.program)
        with open(self.table, "rb") as stream:
            whole = HEADER.unpack(stream.read(HEADER.size))
        struct.pack_into("<Q", data, 0x28, 0)
        struct.pack_into("<HH", data, 0x3c, 0, 0)
        code, said = make_table(self.path("bare", data), self.table)
        self.assertEqual(code, 0, said)
        with open(self.table, "rb") as stream:
            bare = HEADER.unpack(stream.read(HEADER.size))
        self.assertEqual(bare[6], whole[6])  # rows

    def test_other_files_are_refused(self):
        for name, data in (("empty", b""), ("text", b"#!/bin/sh\n" * 100), ("short", b"\x7fELF\x02\x01\x01" + bytes(57))):
            code, said = make_table(self.path(name, data), self.table)
            self.assertEqual((code, said), (1, "opd-tables: not an ELF file of x86-64 or arm64\n"))
        reader, writer = os.pipe()
        done = subprocess.run([TABLES], stdin=reader, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=HANG_SECONDS,
                              check=False)
        os.close(reader)
        os.close(writer)
        self.assertEqual(done.returncode, 1)

    def rows(self):
        """[(start, rule)] of the table."""
        with open(self.table, "rb") as stream:
            table = stream.read()
        header = HEADER.unpack_from(table)
        self.assertEqual(header[4] >> 4, 4)  # the maker
        starts = struct.unpack_from("<%dI" % header[6], table, HEADER.size)
        rules = HEADER.size + 4 * header[6]
        numbers = struct.unpack_from("<%dH" % header[6], table, rules + RULE.size * header[7] + 12 * header[8])
        return [(start, RULE.unpack_from(table, rules + RULE.size * number)) for start, number in zip(starts, numbers)]

    def test_arm64_signal_frames(self):
        """The code that handlers of arm64 return to has a row, where no .eh_frame describes it."""
        with open(self.program, "rb") as stream:
            data = bytearray(stream.read())
        text, nr_bytes = sections_of(self.program)[".text"]
        at = text + nr_bytes // 2 & ~3
        struct.pack_into("<H", data, 18, 183)  # e_machine: EM_AARCH64
        struct.pack_into("<3I", data, at, 0xd503201f, 0xd2801168, 0xd4000001)  # nop; mov x8, #139; svc #0
        struct.pack_into("<Q", data, 0x28, 0)  # without sections there are few rows of others
        struct.pack_into("<HH", data, 0x3c, 0, 0)
        code, said = make_table(self.path("arm", data), self.table)
        self.assertEqual(code, 0, said)
        rows = self.rows()
        self.assertIn(at + 4, [row[0] for row in rows])
        for place in (at + 4, at + 12):  # the address behind svc is where it is in the system call
            _, rule = max(row for row in rows if row[0] <= place)
            self.assertEqual(rule, (2, 31, 2, 31, 2, 31, 1, 6, 560, 0, 568, 544, 0))

    def test_code_without_frame_information(self):
        """As in musl: what handlers return to is known by its instructions, and the entry by the header."""
        start, signal = (1, 7, 5, 0, 6, 0, 0, 6, 0, 0, 0, 0, 0), (2, 7, 2, 7, 2, 7, 1, 6, 160, 0, 168, 120, 0)
        none = (0,) * 13
        source = self.path("bare.S", b"""
            .text
            called: call called; ret
            .globl _start
            _start: xor %ebp,%ebp; call called; hlt
            .p2align 4
            described: .cfi_startproc; nop; ret; .cfi_endproc
            .skip 64, 0xcc
            long_number: mov $15,%rax; syscall
            .skip 64, 0xcc
            short_number: mov $15,%eax; syscall
            .skip 64, 0xcc
            """)
        for kind, wanted in (("-static", True), ("-static-pie", True), ("-pie", True), ("-shared", False),
                             ("-shared -Wl,-soname,ld-odd.so.1", True)):
            image = os.path.join(self.box.name, "bare")
            subprocess.run(["gcc", "-nostdlib", *kind.split(), "-o", image, source], check=True)
            with open(image, "rb") as stream:
                data = stream.read()
            entry, = struct.unpack_from("<Q", data, 24)
            code, said = make_table(image, self.table)
            self.assertEqual(code, 0, said)
            at, _ = sections_of(image)[".text"]
            where = {name: data.index(bytes.fromhex(code)) for name, code in (
                ("described", "90c3"), ("long", "48c7c00f0000000f05"), ("short", "b80f0000000f05"))}
            self.assertTrue(entry)
            rows = [row for row in self.rows() if row[0] >= at]
            self.assertEqual(rows[:-6], [(where["described"] - 10, start)] if wanted else [], kind)
            self.assertEqual(rows[-6][0], where["described"], kind)
            self.assertEqual(rows[-5:], [(where["described"] + 2, none), (where["long"], signal), (where["long"] + 10, none),
                                         (where["short"], signal), (where["short"] + 8, none)], kind)

    def rows_of_arm64(self, assembly, section, kind="-static"):
        """[(offset in the section, rule)] of a program that says it is one of arm64."""
        source, image = self.path("arm.S", assembly.encode()), os.path.join(self.box.name, "arm")
        subprocess.run(["gcc", "-nostdlib", kind, "-o", image, source], check=True)
        at, nr_bytes = sections_of(image)[section]
        with open(image, "rb") as stream:
            data = bytearray(stream.read())
        struct.pack_into("<H", data, 18, 183)  # e_machine: EM_AARCH64
        code, said = make_table(self.path("arm", data), self.table)
        self.assertEqual(code, 0, said)
        return [(start - at, rule) for start, rule in self.rows() if at <= start < at + nr_bytes]

    def test_arm64_plt(self):
        """The code through which arm64 calls other images has rows, with and without a landing pad at
        its start: lr and sp are the caller's, but for two words that the first entry pushes.
        """
        bti, nop, push = 0xd503245f, 0xd503201f, 0xa9bf7bf0
        same, more = ((1, 31, 0, 0, 0, 0, 0, 6, nr_bytes, 0, 0, 0, 0) for nr_bytes in (0, 16))
        for entry, pushed in (((push, *[nop] * 7), 4), ((bti, push, *[nop] * 6), 8)):
            words = "".join(".long %d\n" % word for word in (*entry, *[nop] * 16))
            rows = self.rows_of_arm64('.section .plt,"ax",@progbits\n.globl _start\n_start:\n%s.text\nnop\n' % words, ".plt")
            self.assertEqual(rows, [(0, same), (pushed, more), (32, same)])

    def test_arm64_leaves_without_frame_information(self):
        """As in the vdso: a function that calls nothing and leaves sp alone has its caller in lr."""
        ret, nop = 0xd65f03c0, 0xd503201f
        others = (0x94000010, 0xd63f0020, 0xd73f0801, 0xa9bf7bfd, 0xa8c17bfd, 0xd10043ff, 0x910003bf, 0x8b2163ff, 0xf81f0ffe,
                  0xf84107fe, 0xd2801168)  # bl, blr, blraa, stp, ldp, sub, mov, add, str, ldr; and of a signal frame
        # paciasp; svc; stp and ldr that only use sp; cmn
        leaf = (0xd503233f, 0xd4000001, 0xa9007bfd, 0xf94007fe, 0xb100043f)
        functions = [(*leaf, ret), *((nop, word, ret) for word in others)]
        assembly = ".text\n" + "".join(
            ".globl f%d\n.type f%d,@function\nf%d:\n%s.size f%d,.-f%d\n" % (
                i, i, i, "".join(".long %d\n" % word for word in words), i, i) for i, words in enumerate(functions))
        rows = self.rows_of_arm64(assembly, ".text", "-shared")
        same = (1, 31, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0)
        self.assertEqual([row for row in rows if row[1] == same], [(0, same)])

    def test_arm64_linker_that_forgets_the_plt(self):
        """A return address above the CFA is that of the PLT, 16 bytes below the caller's frame."""
        rows = self.rows_of_arm64(".text\n.globl _start\n_start:\n.cfi_startproc\n.cfi_return_column 30\n"
                                  ".cfi_def_cfa 31, 208\n.cfi_offset 30, 8\n.cfi_offset 29, -32\n" + 4 * "nop\n" +
                                  ".cfi_endproc\n", ".text")
        self.assertEqual(rows[0], (0, (1, 31, 1, 0, 1, 0, 0, 0, 224, 0, -8, -48, 0)))

    def test_debugdata_does_not_fill_the_memory(self):
        packer = lzma.LZMACompressor(preset=0)
        packed = b"".join(packer.compress(bytes(1 << 20)) for _ in range(2048)) + packer.flush()
        debugdata = self.path("debugdata", packed)
        image = os.path.join(self.box.name, "bomb")
        subprocess.run(["objcopy", "--add-section", ".gnu_debugdata=" + debugdata, self.program, image], check=True)
        self.compare(image)

    def test_debugdata_is_longer_than_an_address(self):
        """Four times its size is 2^32 - 4096, which opd-tables of 32 bits must not take for 0."""
        image, size = os.path.join(self.box.name, "long"), ((1 << 32) - 4096) // 4
        debugdata = self.path("debugdata", lzma.compress(random.Random(20).randbytes(4096)))
        subprocess.run(["objcopy", "--add-section", ".gnu_debugdata=" + debugdata, self.program, image], check=True)
        at, nr_bytes = sections_of(image)[".gnu_debugdata"]
        with open(image, "rb") as stream:
            data = bytearray(stream.read())
        row = data.rindex(struct.pack("<QQ", at, nr_bytes))
        struct.pack_into("<QQ", data, row, len(data), size)
        with open(image, "wb") as stream:
            stream.write(data + data[at:at + nr_bytes])
            stream.truncate(len(data) + size)
        self.assertEqual(make_table(image, self.table)[0], 0)

    def test_seccomp_is_refused(self):
        """As by the SystemCallFilter= of opd.service: prctl(2) sets the filter then. Where that is
        refused, too, no file is read without a filter.
        """
        self.assertEqual(make_table(self.program, self.table, lambda: refuse_seccomp(False))[0], 0)
        self.assertTrue(os.path.getsize(self.table))
        code, said = make_table(self.program, self.table, lambda: refuse_seccomp(True))
        if code or said:  # else it was built without libseccomp
            self.assertEqual((code, os.path.getsize(self.table)), (NO_SANDBOX, 0), said)

    def test_mutants_end(self):
        """A damaged .eh_frame makes a table that opd accepts, or none."""
        with open(self.program, "rb") as stream:
            good = stream.read()
        at, nr_bytes = sections_of(self.program)[".eh_frame"]
        chance = random.Random(20)
        for number in range(MUTANTS):
            data = bytearray(good)
            for _ in range(chance.choice((1, 1, 2, 8, 64))):
                data[at + chance.randrange(nr_bytes)] = chance.choice((0, 1, 0x7f, 0x80, 0xff, chance.randrange(256)))
            if number % 5 == 0:  # the headers of the file as well
                data[chance.randrange(64)] = chance.randrange(256)
            image = self.path("mutant", data)
            code, said = make_table(image, self.table)
            self.assertIn(code, (0, 1), "mutant %d: %s" % (number, said))
            if not code:
                done = subprocess.run([ORACLE, self.program, self.table, "1"], stdout=subprocess.DEVNULL, timeout=HANG_SECONDS,
                                      check=False)
                self.assertNotEqual(done.returncode, BAD_TABLE, "mutant %d" % number)


if __name__ == "__main__":
    if not os.path.exists(ORACLE):
        print("skip: the test needs libdw (libdw-dev) when it is built")
        sys.exit(77)
    unittest.main()
