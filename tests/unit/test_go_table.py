#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Go programs without symbols: names, lines and rows from .gopclntab.

Tables of all layouts are written here, from the description alone, with and without damage. With Go
on the machine, programs that were linked with and without symbols have the same names and lines, and
the rows are those of .debug_frame as readelf shows it. Run from the build directory.
"""
import json
import os
import random
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path[:0] = [os.path.join(SOURCE, "tests", "system"), os.path.join(SOURCE, "tests", "unit")]
from sample_files import put_image  # noqa: E402
from test_row_tables import HEADER, RULE, make_table  # noqa: E402

TOOLS = os.path.abspath(os.environ.get("TOOLS", "bin"))
TEXT, DATA = 0x401000, 0x500000  # addresses
LAYOUTS = {"1.2": 0xfffffffb, "1.16": 0xfffffffa, "1.18": 0xfffffff0, "1.20": 0xfffffff1}
MUTANTS = 300
CPU_SECONDS = 60  # of a report: what a hostile table costs has a limit
HANG_SECONDS = 900  # ends one that hangs, and is no measure of anything
PROGRAM = """
package main
import ("fmt"; "os"; "strconv")
type S struct{ x uint64 }
//go:noinline
func (s *S) Method(n int) { for i := 0; i < n; i++ { s.x = s.x*2862933555777941757 + uint64(i) } }
//go:noinline
func deep(s *S, n int) int { var a [100]int; a[n&63] = n; if n > 0 { return deep(s, n-1) + a[n&31] }; s.Method(10); return n }
func main() { n, _ := strconv.Atoi(os.Args[1]); s := &S{}; fmt.Println(deep(s, n)) }
"""
# name, bytes, (bytes from the start, depth from there on), (bytes, file, line), flags
FUNCTIONS = (
    ("main.(*S).Method", 0x40, ((0, 0), (4, 24), (0x3f, 0)), ((0, 0, 10), (8, 0, 11), (16, 1, 700)), 0),
    ("main.Gen[go.shape.int64]", 0x60, ((0, 0), (7, 0x120), (0x50, 0)), ((0, 1, 3),), 0),
    ("runtime.goexit", 0x10, ((0, 0),), ((0, 1, 1500),), 1),
    ("runtime.systemstack", 0x50, ((0, 0), (9, 8)), ((0, 1, 90000),), 2),
)
FILES = ("/src/main.go", "/usr/lib/go/src/runtime/asm.s")


def uleb(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def values(steps, nr_bytes):
    """A table of values: for each step by how much the value changes, from -1 on, and how far it holds."""
    out, before = b"", -1
    steps = [step for i, step in enumerate(steps) if not i or step[1] != steps[i - 1][1]]  # a change of 0 is the end
    for i, (at, value) in enumerate(steps):
        end = steps[i + 1][0] if i + 1 < len(steps) else nr_bytes
        change = value - before
        out += uleb(change << 1 if change >= 0 else (-change << 1) - 1) + uleb(end - at)
        before = value
    return out + b"\0"


def go_table(layout, functions=FUNCTIONS, text=TEXT):
    """The bytes of .gopclntab."""
    magic, is_old, is_wide = LAYOUTS[layout], layout == "1.2", layout in ("1.2", "1.16")
    names, tables, at, placed = b"\0", b"\0", 0, []
    for name, nr_bytes, depths, lines, flags in functions:
        offsets = [len(names)]
        names += name.encode() + b"\0"
        numbers = [(where, number + is_old) for where, number, _ in lines]
        for steps in (depths, numbers, [(where, line) for where, _, line in lines]):
            offsets.append(len(tables))
            tables += values(steps, nr_bytes)
        placed.append((at, offsets, flags))
        at += nr_bytes
    files, where = b"\0", []
    for name in FILES:
        where.append(len(files))
        files += name.encode() + b"\0"
    word = "<Q" if is_wide else "<I"
    base = TEXT if is_wide else 0
    size = 2 * struct.calcsize(word)

    def body(start, offsets, flags):
        name, depths, file, line = offsets
        out = struct.pack(word, base + start) + struct.pack("<IiIIIII", name, 0, 0, depths, file, line, 0)
        if not is_old:
            out += struct.pack("<I", 0) + (struct.pack("<i", 1) if layout == "1.20" else b"") + bytes([0, flags, 0, 0])
        return out.ljust(-(-len(out) // 8) * 8, b"\0")

    head = struct.pack("<IHBB", magic, 0, 1, 8)
    list_bytes = size * len(placed) + size // 2
    after = list_bytes + (4 if is_old else 0)
    after += -after % 8
    if is_old:  # all offsets are from the start of the table
        bodies_at = 16 + after
        texts_at = bodies_at + sum(len(body(*one)) for one in placed)
        tables_at = texts_at + len(names)
        files_at = tables_at + len(tables)
        list_at = files_at + len(files)
        placed = [(start, [offsets[0] + texts_at] + [offset + tables_at for offset in offsets[1:]], flags)
                  for start, offsets, flags in placed]
        entries, bodies = b"", b""
        for one in placed:
            entries += struct.pack("<QQ", TEXT + one[0], bodies_at + len(bodies))
            bodies += body(*one)
        entries += struct.pack("<QI", TEXT + at, list_at)
        return (head + struct.pack("<Q", len(placed)) + entries.ljust(after, b"\0") + bodies + names + tables + files +
                struct.pack("<%dI" % (1 + len(where)), len(where) + 1, *[files_at + offset for offset in where]))
    entries, bodies = b"", b""
    for one in placed:
        entries += struct.pack("<2" + word[1], base + one[0], after + len(bodies))
        bodies += body(*one)
    entries += struct.pack(word, base + at)
    units = struct.pack("<%dI" % len(where), *where)
    numbers = [len(placed), len(FILES)] + ([] if is_wide else [text])
    offset, offsets = 8 + 8 * (len(numbers) + 5), []
    for part in (names, units, files, tables):
        offsets.append(offset)
        offset += len(part)
    offset += -offset % 8
    parts = names + units + files + tables
    return (head + struct.pack("<%dQ" % (len(numbers) + 5), *numbers, *offsets, offset) +
            parts.ljust(offset - 8 - 8 * (len(numbers) + 5), b"\0") + entries.ljust(after, b"\0") + bodies)


def elf_file(table, has_names=True, machine=62, entry=TEXT, nr_code=0x400):
    """An ELF file with code and data, in which the table lies, and the position of the table."""
    code, strings = b"\xcc" * nr_code, b"\0.text\0.gopclntab\0.shstrtab\0"
    table_at = -(-(0x1000 + nr_code) // 8) * 8
    strings_at = table_at + len(table)
    sections_at = -(-(strings_at + len(strings)) // 8) * 8
    out = struct.pack("<4sBBBB8xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 0, 2, machine, 1, entry, 64, sections_at, 0, 64, 56, 2, 64, 4,
                      3 if has_names else 0)
    out += struct.pack("<IIQQQQQQ", 1, 5, 0x1000, TEXT, TEXT, len(code), len(code), 0x1000)
    out += struct.pack("<IIQQQQQQ", 1, 4, table_at, DATA, DATA, len(table), len(table), 0x1000)
    out = out.ljust(0x1000, b"\0") + code.ljust(table_at - 0x1000, b"\0") + table + strings
    out = out.ljust(sections_at, b"\0")
    rows = ((0, 0, 0, 0, 0, 0), (1, 1, 6, TEXT, 0x1000, len(code)), (7, 1, 2, DATA, table_at, len(table)),
            (18, 3, 0, 0, strings_at, len(strings)))
    for name, kind, flags, address, position, nr_bytes in rows:
        out += struct.pack("<IIQQQQIIQQ", name if has_names else 0, kind, flags, address, position, nr_bytes, 0, 0, 1, 0)
    return out


class Box(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.dir = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.dir)
        self.table = os.path.join(self.dir, "table")

    def image(self, data, name="image"):
        path = os.path.join(self.dir, name)
        with open(path, "wb") as stream:
            stream.write(data)
        os.chmod(path, 0o755)
        return path

    def rows(self, image):
        """[(position, rule)] and [(position, bytes)] of the functions."""
        code, said = make_table(image, self.table)
        self.assertEqual(code, 0, said)
        with open(self.table, "rb") as stream:
            table = stream.read()
        header = HEADER.unpack_from(table)
        starts = struct.unpack_from("<%dI" % header[6], table, HEADER.size)
        rules = HEADER.size + 4 * header[6]
        functions = rules + RULE.size * header[7]
        numbers = struct.unpack_from("<%dH" % header[6], table, functions + 12 * header[8])
        return ([(start, RULE.unpack_from(table, rules + RULE.size * number)) for start, number in zip(starts, numbers)],
                [struct.unpack_from("<II", table, functions + 12 * i) for i in range(header[8])])

    def report(self, image, positions):
        """{address: (name, file, line)} of opreport."""
        session = os.path.join(self.dir, "session")
        shutil.rmtree(session, ignore_errors=True)
        put_image(session, image, [(position, 1) for position in positions], session="s")
        done = subprocess.run([os.path.join(TOOLS, "opreport"), "--session-dir=" + session, "-l", "-d", "-g", "--format=json",
                               "session:s"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              env={**os.environ, "OPD_CACHE_DIR": ""}, timeout=HANG_SECONDS,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS)))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        found = {}
        for row in json.loads(done.stdout)["symbols"]:
            for detail in row["details"]:
                found[int(detail["address"], 16)] = (row["symbol"], detail.get("file"), detail.get("line"))
        return found


class GoTables(Box):
    """Tables that are written here."""

    def check_rows(self, image):
        same = (1, 7, 1, 0, 0, 0, 0, 6, 8, 0, -8, 0, 0)
        start, none = (1, 7, 5, 0, 6, 0, 0, 6, 0, 0, 0, 0, 0), (0,) * 13
        deep = {depth: (1, 7, 1, 0, 6, 0, 0, 6, depth + 8, 0, -8, 0, 0) for depth in (24, 0x120)}
        rows, functions = self.rows(image)
        self.assertEqual(rows, [(0x1000, same), (0x1004, deep[24]), (0x103f, same), (0x1047, deep[0x120]), (0x1090, same),
                                (0x10a0, start), (0x10b0, none)])
        self.assertEqual(functions, [(0x1000, 0x40), (0x1040, 0x60), (0x10a0, 0x10), (0x10b0, 0x50)])

    def test_all_layouts(self):
        for layout in LAYOUTS:
            with self.subTest(layout):
                image = self.image(elf_file(go_table(layout)), "image-" + layout)
                self.check_rows(image)
                found = self.report(image, (0x1000, 0x1009, 0x103f, 0x1041, 0x10a1, 0x10ff, 0x1100))
                self.assertEqual(found, {
                    TEXT: ("main.(*S).Method", FILES[0], 10), TEXT + 9: ("main.(*S).Method", FILES[0], 11),
                    TEXT + 0x3f: ("main.(*S).Method", FILES[1], 700), TEXT + 0x41: ("main.Gen[go.shape.int64]", FILES[1], 3),
                    TEXT + 0xa1: ("runtime.goexit", FILES[1], 1500), TEXT + 0xff: ("runtime.systemstack", FILES[1], 90000),
                    TEXT + 0x100: (image, None, None)})

    def test_sections_without_names(self):
        image = self.image(elf_file(go_table("1.20"), has_names=False))
        self.check_rows(image)
        self.assertEqual(self.report(image, (0x1009,)), {TEXT + 9: ("main.(*S).Method", FILES[0], 11)})

    def test_text_that_is_not_in_the_header(self):
        """A program that can be loaded anywhere has a relocation there. It begins in a known function."""
        functions = FUNCTIONS + (("_rt0_amd64_linux", 0x10, ((0, 0),), ((0, 1, 8),), 0),)
        image = self.image(elf_file(go_table("1.20", functions, text=0), entry=TEXT + 0x100))
        rows, functions = self.rows(image)
        self.assertEqual(functions[-1], (0x1100, 0x10))
        self.assertEqual(rows[-2], (0x1100, (1, 7, 5, 0, 6, 0, 0, 6, 0, 0, 0, 0, 0)))

    def test_a_handler_is_no_start(self):
        """It has the flag of a start, but the kernel put the address behind its frame."""
        functions = FUNCTIONS + (("runtime.sigtramp", 0x20, ((0, 0), (4, 48)), ((0, 1, 8),), 1),)
        rows, _ = self.rows(self.image(elf_file(go_table("1.20", functions))))
        self.assertIn((0x1104, (1, 7, 1, 0, 6, 0, 0, 6, 56, 0, -8, 0, 0)), rows)

    def test_arm64(self):
        """The return address is in lr until the function has a frame, and then at its bottom."""
        rows, _ = self.rows(self.image(elf_file(go_table("1.20"), machine=183)))
        self.assertEqual(rows[:2], [(0x1000, (1, 31, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0)),
                                    (0x1004, (1, 31, 1, 0, 6, 0, 0, 6, 24, 0, -24, 0, 0))])

    def test_hostile_tables_end(self):
        """Damage costs neither time nor memory; opd-tables has its own limits of both."""
        chance = random.Random(31)
        for number in range(MUTANTS):
            table = bytearray(go_table(chance.choice(list(LAYOUTS))))
            for _ in range(chance.choice((1, 1, 2, 8, 64))):
                table[chance.randrange(8, len(table))] = chance.choice((0, 1, 0x7f, 0x80, 0xff, chance.randrange(256)))
            image = self.image(elf_file(bytes(table[:chance.choice((len(table), len(table) // 2))])))
            code, said = make_table(image, self.table)
            self.assertIn(code, (0, 1), "%d: %s" % (number, said))
            if number % 20 == 0:
                self.report(image, (0x1000, 0x1041))

    def test_functions_with_the_same_bytes(self):
        """10^5 functions whose names and tables of values are the same bytes: copies would fill memory."""
        nr, shared = 100000, (b"x" * 7999 + b"\0") * 100
        bodies_at = 8 * nr + 8
        head = struct.pack("<IHBB8Q", LAYOUTS["1.20"], 0, 1, 8, nr, 1, TEXT, 72, 72, 72, 72, 72 + len(shared)) + shared
        head += b"".join(struct.pack("<II", i, bodies_at + 48 * i) for i in range(nr)) + struct.pack("<II", nr, 0)
        head += b"".join(struct.pack("<IIiIIIIIIi", i, 0, 0, 0, 1, 1, 1, 0, 0, 1) + bytes(8) for i in range(nr))
        image = self.image(elf_file(head, nr_code=nr))
        _, functions = self.rows(image)
        self.assertGreater(len(functions), 1000)
        self.assertLess(os.path.getsize(self.table), 10 << 20)
        self.assertTrue(self.report(image, (0x1000, 0x1001))[TEXT][0].startswith("xxx"))

    def test_a_function_with_many_lines(self):
        """10^5 ranges before each address: all lookups together have a limit."""
        nr = 200000
        many = ("main.f", nr, ((0, 0),), tuple((i, 0, i % 7) for i in range(nr)), 0)
        image = self.image(elf_file(go_table("1.20", (many,)), nr_code=nr))
        found = self.report(image, range(0x1000, 0x1000 + nr, 100))
        self.assertEqual(found[TEXT + 100], ("main.f", FILES[0], 2))


@unittest.skipUnless(shutil.which("go"), "Go is not installed")
class RealGo(Box):
    """Programs that Go linked."""

    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.mkdtemp()
        with open(os.path.join(cls.place, "hot.go"), "w", encoding="ascii") as stream:
            stream.write(PROGRAM)
        cls.full = cls.build("full", "-buildmode=exe")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.place)

    @classmethod
    def build(cls, name, *flags):
        subprocess.run(["go", "build", *flags, "-o", name, "hot.go"], check=True, cwd=cls.place,
                       env={**os.environ, "GO111MODULE": "off", "GOCACHE": os.path.join(cls.place, "cache"), "CGO_ENABLED": "0"})
        return os.path.join(cls.place, name)

    def test_rows_are_those_of_debug_frame(self):
        text = subprocess.run(["readelf", "--debug-dump=frames-interp", self.full], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=True).stdout.decode()
        wanted = {int(address, 16): int(depth) for address, depth in re.findall(r"^([0-9a-f]{16}) rsp\+(\d+) +c-8", text, re.M)}
        rows, _ = self.rows(self.build("stripped", "-ldflags=-s -w"))
        symbols = subprocess.run(["go", "tool", "nm", "-size", "-sort", "address", self.full], stdout=subprocess.PIPE, check=True)
        text_at = min(int(line.split()[0], 16) for line in symbols.stdout.decode().splitlines() if " T " in line)
        first = rows[0][0]
        found = {start - first + text_at: rule for start, rule in rows}
        nr_same = 0
        for address, rule in found.items():
            if address in wanted and rule[0] == 1 and rule[2] == 1:
                self.assertEqual(rule[8], wanted[address], hex(address))
                nr_same += 1
        self.assertGreater(nr_same, 1000)

    def test_names_and_lines(self):
        """Those of the program with symbols and DWARF, at places all over its code."""
        stripped, pie = self.build("stripped", "-ldflags=-s -w"), self.build("pie", "-buildmode=pie", "-ldflags=-s -w")
        _, functions = self.rows(stripped)
        chance = random.Random(7)
        positions = sorted(start + chance.randrange(nr_bytes) for start, nr_bytes in functions[1:-1] if nr_bytes)
        truth, found = self.report(self.full, positions), self.report(stripped, positions)
        self.assertGreater(len(found), 1000)
        for address, (name, file, line) in truth.items():
            # since Go 1.18 the runtime has names without their parameters of types
            plain = [re.sub(r"\[[^ ]*\]", "[...]", text.replace(".abi0", "")) for text in (found[address][0], name)]
            self.assertEqual(plain[0], plain[1], hex(address))
            # DWARF has a directory for what the compiler generated
            self.assertEqual(found[address][1:], (file and re.sub(r".*(<autogenerated>)", r"\1", file), line), hex(address))
        # padding between functions has no line in either
        self.assertGreater(sum(bool(line) for _, _, line in truth.values()), 0.8 * len(truth))
        _, of_pie = self.rows(pie)
        self.assertGreater(len(of_pie), 0.9 * len(functions))


if __name__ == "__main__":
    unittest.main()
