#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Symbols of images of 32 bits and of the other byte order: .symtab, .dynsym, .gnu_debugdata,
.eh_frame and the PLT. Run from the build directory by `make check`.

The images are written byte by byte, so that no foreign compiler is needed; with one that makes
programs of 32 bits, a real library is read, too.
"""
import json
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
sys.path.insert(0, os.path.join(SOURCE, "tests", "unit"))
from sample_files import put_image  # noqa: E402

TOOLS = os.path.abspath(os.environ.get("TOOLS", "bin"))
ET_DYN, PT_LOAD, EM_386, EM_MIPS, EM_PPC, EM_PPC64, EM_S390 = 3, 1, 3, 8, 20, 21, 22
PROGBITS, SYMTAB, STRTAB, DYNSYM = 1, 2, 3, 11
ALLOC, EXEC = 2, 4
VMA, TEXT = 0x400000, 0x1000  # of the file; where the code is in it
KINDS = {"i386": (32, "<", EM_386), "powerpc": (32, ">", EM_PPC), "mips": (32, ">", EM_MIPS), "s390x": (64, ">", EM_S390),
         "powerpc64": (64, ">", EM_PPC64)}
FUNCTION_BYTES = 16
LIBRARY = """
int outside(int); int other(int);
int shown(int x) { return outside(x) + other(x); }
__attribute__((visibility("hidden"))) int hidden(int x) { return outside(x + 1); }
"""


class Elf:
    """An ELF file of one machine. Functions are (name, index of 16 bytes of code)."""

    def __init__(self, kind, nr_functions):
        self.bits, self.order, self.machine = KINDS[kind]
        self.code = b"\0" * (FUNCTION_BYTES * nr_functions)
        self.sections = [("", 0, 0, 0, 0, b"", 0, 0), (".text", PROGBITS, ALLOC | EXEC, VMA + TEXT, TEXT, self.code, 0, 0)]
        self.end = TEXT + len(self.code)

    def pack(self, letters, *values):
        return struct.pack(self.order + letters, *values)

    def add(self, name, kind, contents, flags=0, link=0, entry=0):
        self.end += -self.end % 16
        self.sections.append((name, kind, flags, VMA + self.end if flags & ALLOC else 0, self.end, contents, link, entry))
        self.end += len(contents)

    def symbol(self, name, vma, size):
        info, section = 1 << 4 | 2, 1  # global function, in .text
        if self.bits == 64:
            return self.pack("IBBHQQ", name, info, 0, section, vma, size)
        return self.pack("IIIBBH", name, vma, size, info, 0, section)

    def add_symbols(self, table, strings, kind, functions, flags=0):
        names, entries = b"\0", b"\0" * (24 if self.bits == 64 else 16)
        for name, index in functions:
            entries += self.symbol(len(names), VMA + TEXT + FUNCTION_BYTES * index, FUNCTION_BYTES)
            names += name.encode() + b"\0"
        self.add(table, kind, entries, flags, link=len(self.sections) + 1, entry=24 if self.bits == 64 else 16)
        self.add(strings, STRTAB, names, flags)

    def add_frames(self, indices, is_relative):
        """is_relative: addresses of 4 bytes from their place; else absolute ones of a whole word."""
        word, encoding = ("Q" if self.bits == 64 else "I"), 0x1b if is_relative else 0
        common = self.pack("IB", 0, 1) + b"zR\0" + bytes((1, 0x7c, 16, 1, encoding))
        common += b"\0" * (-len(common) % 4)
        frames = self.pack("I", len(common)) + common
        start = VMA + self.end + -self.end % 16
        for index in indices:
            vma, place = VMA + TEXT + FUNCTION_BYTES * index, start + len(frames) + 8
            addresses = self.pack("iI", vma - place, FUNCTION_BYTES) if is_relative else self.pack(word * 2, vma, FUNCTION_BYTES)
            entry = self.pack("I", len(frames) + 4) + addresses + b"\0" * 4
            frames += self.pack("I", len(entry)) + entry
        self.add(".eh_frame", PROGBITS, frames + self.pack("I", 0), ALLOC)

    def image(self):
        names, headers, body = b"\0", b"", bytearray()
        strings = [section[0] for section in self.sections] + [".shstrtab"]
        self.add(".shstrtab", STRTAB, b"\0" + b"".join(name.encode() + b"\0" for name in strings))
        for name, kind, flags, vma, position, contents, link, entry in self.sections:
            at = len(names) if name else 0
            names += name.encode() + b"\0" if name else b""
            headers += self.pack("IIQQQQIIQQ" if self.bits == 64 else "IIIIIIIIII", at, kind, flags, vma, position, len(contents),
                                 link, 0, 1, entry)
        names_at = self.sections[-1][4]
        body = bytearray(self.end + -self.end % 16)
        for section in self.sections:
            body[section[4]:section[4] + len(section[5])] = section[5]
        body[names_at:names_at + len(names)] = names
        headers_at, wide = len(body), self.bits == 64
        body[:64 if wide else 52] = (
            b"\x7fELF" + bytes((2 if wide else 1, 1 if self.order == "<" else 2, 1)) + b"\0" * 9 +
            self.pack("HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH", ET_DYN, self.machine, 1, VMA + TEXT, 64, headers_at, 0,
                      64 if wide else 52, 56 if wide else 32, 1, 64 if wide else 40, len(self.sections), len(self.sections) - 1))
        if wide:
            body[64:120] = self.pack("IIQQQQQQ", PT_LOAD, 5, 0, VMA, VMA, headers_at, headers_at, 0x1000)
        else:
            body[64:96] = self.pack("IIIIIIII", PT_LOAD, 0, VMA, VMA, headers_at, headers_at, 5, 0x1000)
        return bytes(body) + headers


class Foreign(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.dir = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.dir)
        self.image = os.path.join(self.dir, "image")

    def names(self, positions, *options):
        """The name of each position, which has one sample."""
        shutil.rmtree(self.dir + "/samples", ignore_errors=True)
        put_image(self.dir, self.image, [(position, 1) for position in positions])
        done = subprocess.run([os.path.join(TOOLS, "opreport"), "--session-dir=" + self.dir, "-l", "-d", "--format=json", *options],
                              capture_output=True, text=True, check=True)
        self.errors = done.stderr
        found = {}
        for row in json.loads(done.stdout)["symbols"]:
            for detail in row["details"]:
                found[int(detail["address"], 16)] = row["symbol"]
        return found

    def check(self, elf, wanted, *options):
        """The names of 16 bytes of code each; None: the image."""
        with open(self.image, "wb") as stream:
            stream.write(elf.image())
        os.utime(self.image, (1, 1))
        found = self.names(range(TEXT, TEXT + FUNCTION_BYTES * len(wanted)), *options)
        self.assertEqual(found, {VMA + TEXT + i: wanted[i // FUNCTION_BYTES] or self.image
                                 for i in range(FUNCTION_BYTES * len(wanted))})

    def test_symtab(self):
        for kind in KINDS:
            for options in ((), ("--symbols-from=symtab",)):
                with self.subTest(kind, options=options):
                    elf = Elf(kind, 2)
                    elf.add_symbols(".symtab", ".strtab", SYMTAB, [("first", 0), ("second", 1)])
                    self.check(elf, ["first", "second"], *options)

    def test_stripped(self):
        for kind in KINDS:
            for is_relative in (True, False):
                with self.subTest(kind, is_relative=is_relative):
                    inner, elf = Elf(kind, 4), Elf(kind, 4)
                    inner.add_symbols(".symtab", ".strtab", SYMTAB, [("hidden", 1)])
                    elf.add_symbols(".dynsym", ".dynstr", DYNSYM, [("shown", 0)], ALLOC)
                    elf.add_frames((0, 1, 2), is_relative)
                    elf.add(".gnu_debugdata", PROGBITS, lzma.compress(inner.image(), check=lzma.CHECK_CRC32))
                    self.check(elf, ["shown", "hidden", "[0x%x]" % (VMA + TEXT + 2 * FUNCTION_BYTES), None])

    def test_real_library(self):
        """Of 32-bit x86, whose PLT libbfd knows."""
        compiler, library = shutil.which("gcc") or shutil.which("clang") or "cc", self.image + ".full"
        with open(self.dir + "/lib.c", "w", encoding="ascii") as stream:
            stream.write(LIBRARY)
        if subprocess.run([compiler, "-m32", "-O1", "-fPIC", "-shared", "-nostdlib", "-ffreestanding", "-Wl,-z,lazy",
                           "-fasynchronous-unwind-tables", "-o", library, self.dir + "/lib.c"], check=False,
                          capture_output=True).returncode:
            self.skipTest(compiler + " makes no library of 32 bits")
        sections = subprocess.run(["readelf", "-SW", library], capture_output=True, text=True, check=True).stdout
        text = subprocess.run(["objdump", "-d", "-w", "--no-show-raw-insn", library], capture_output=True, text=True,
                              check=True).stdout
        starts = {int(at, 16): name for at, name in re.findall("^([0-9a-f]+) <(.*)>:$", text, re.M)
                  if name in ("shown", "hidden") or name.endswith("@plt")}
        self.assertGreaterEqual(set(starts.values()), {"shown", "hidden", "outside@plt", "other@plt"})
        moved = {int(at, 16): int(position, 16) for at, position in
                 re.findall(r"\] \.(?:text|plt\S*) +PROGBITS +([0-9a-f]+) ([0-9a-f]+)", sections)}
        self.assertTrue(all(at == position for at, position in moved.items()), moved)
        for is_stripped in (False, True):
            subprocess.run(["strip", "-o", self.image, library] if is_stripped else ["cp", library, self.image], check=True)
            found = self.names(starts)
            self.assertEqual(found, {at: "[0x%x]" % at if is_stripped and name == "hidden" else name
                                     for at, name in starts.items()})


if __name__ == "__main__":
    unittest.main()
