#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inlined functions: opreport --inline beside llvm-symbolizer, its forms, and opannotate --inline, on programs that compilers
make here. Run from the build directory by `make check`.

usage: test_inline.py [COUNT]      compares so many addresses of each C++ program, 1000 when nothing
is said; make check-long has 10,000
"""
import csv
import glob
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.dont_write_bytecode = True
os.environ["CCACHE_DISABLE"] = "1"  # with CCACHE_NOHASHDIR it gives a program with the paths of another directory
SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path[:0] = [os.path.join(SOURCE, "tests", "system"), os.path.join(SOURCE, "tests", "unit")]
import elfsyms  # noqa: E402
from sample_files import put_image  # noqa: E402

BIN = os.path.abspath(os.path.dirname(os.environ.get("OPREPORT", "bin/opreport")))
SCHEMA = os.path.join(SOURCE, "doc", "opreport.xsd")
SEED = 20261123
SYMBOLIZER = shutil.which("llvm-symbolizer")
QUICK = "OPD_QUICK" in os.environ
NR_ADDRESSES = 100 if QUICK else 1000
# Much that is inlined into each other: templates, lambdas, constructors, functions of C headers.
PROGRAM = """#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <regex>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>
namespace shapes {
struct shape { virtual ~shape() {} virtual double area() const = 0; };
struct square : shape { double side; explicit square(double s) : side(s) {} double area() const override { return side * side; } };
template <typename T> struct scaled : shape {
	T inner; double by;
	scaled(T t, double b) : inner(std::move(t)), by(b) {}
	double area() const override { return inner.area() * by; }
};
}
static inline int twice(int x) { return 2 * x; }
static int spread(std::vector<int> &v) { std::sort(v.begin(), v.end(), std::greater<int>()); return twice(v.front()) - v.back(); }
template <typename K> static size_t count_words(const std::string &text)
{
	std::map<K, int> found; std::unordered_map<std::string, size_t> lengths; std::istringstream in(text); std::string word;
	while (in >> word) { found[K(word)]++; lengths[word] = word.size(); }
	return std::accumulate(lengths.begin(), lengths.end(), found.size(), [](size_t n, const auto &p) { return n + p.second; });
}
int main(int argc, char **argv)
{
	std::vector<int> v; std::vector<std::unique_ptr<shapes::shape>> all;
	for (int i = 0; i < argc + 9; i++) v.push_back(std::atoi(argv[0]) + twice(i));
	all.push_back(std::make_unique<shapes::square>(argc));
	all.push_back(std::make_unique<shapes::scaled<shapes::square>>(shapes::square(2), 3));
	double area = 0; for (const auto &s : all) area += s->area();
	std::regex pattern("([a-z]+)=([0-9]+)"); std::smatch match; std::string text = argv[0];
	if (std::regex_search(text, match, pattern)) std::cout << match[1] << match[2];
	std::cout << spread(v) << area << count_words<std::string>(argv[0]) << std::endl;
}
"""
if QUICK:  # a compiler needs seconds for <regex>
    PROGRAM = "".join(line for line in PROGRAM.splitlines(True) if "regex" not in line)
RUST = """use std::collections::HashMap;
fn twice(x: u64) -> u64 { x.wrapping_mul(2) }
fn main() {
    let mut found: HashMap<String, u64> = HashMap::new();
    for word in std::env::args().flat_map(|a| a.split('/').map(str::to_owned).collect::<Vec<_>>()) {
        *found.entry(word).or_insert(0) += twice(1);
    }
    let mut all: Vec<_> = found.into_iter().collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    println!("{:?} {}", all, all.iter().map(|x| twice(x.1)).sum::<u64>());
}
"""
GO = """package main

import (
	"fmt"
	"os"
	"sort"
	"strings"
)

func twice(n int) int { return 2 * n }

func main() {
	found := map[string]int{}
	for _, word := range strings.Fields(strings.Join(os.Args, " ")) {
		found[word] += twice(len(word))
	}
	words := []string{}
	for word := range found {
		words = append(words, word)
	}
	sort.Slice(words, func(i, j int) bool { return found[words[i]] < found[words[j]] })
	fmt.Println(words, twice(len(words)))
}
"""
# Line 2 is in line 3 of `sum`, which is in lines 4 and 5; its other copy is in line 4 directly.
SMALL = """volatile int sink;
static inline __attribute__((always_inline)) int square(int a) { sink = a; return a * a; }
static inline __attribute__((always_inline)) int sum(int n) { int s = 0; s += square(n); return s; }
int both(int n) { int r = sum(n); return r + square(n + 1); }
int one(int n) { return sum(n) + 7; }
void _start(void) { both(3); one(4); for (;;); }
"""

# One function of 16 bytes; INNER are its inlined functions: their name, begin, end, and the file
# and line of the call (DWARF 4).
NESTED = """	.file 1 "nested.c"
	.text
	.globl _start
	.type _start, @function
_start:
begin:
	.loc 1 7
	.fill 16, 1, 0x90
end:
	.size _start, . - _start
	.section .debug_abbrev,"",@progbits
abbrevs:
	.uleb128 1, 0x11
	.byte 1
	.uleb128 0x3, 0x8, 0x11, 0x1, 0x12, 0x1, 0x10, 0x17, 0, 0
	.uleb128 2, 0x2e
	.byte 1
	.uleb128 0x3, 0x8, 0x11, 0x1, 0x12, 0x1, 0, 0
	.uleb128 3, 0x1d
	.byte 1
	.uleb128 0x3, 0x8, 0x11, 0x1, 0x12, 0x1, 0x58, 0xb, 0x59, 0x6, 0, 0
	.byte 0
	.section .debug_info,"",@progbits
	.long info_end - info
info:
	.value 4
	.long abbrevs
	.byte 8
	.uleb128 1
	.string "nested.c"
	.quad begin, end
	.long lines
	.uleb128 2
	.string "_start"
	.quad begin, end
INNER	.byte 0, 0
info_end:
	.section .debug_line,"",@progbits
lines:
"""


def compiler(language):
    names = ("g++", "clang++", "c++") if language == "c++" else ("gcc", "clang", "cc")
    return next((name for name in names if shutil.which(name)), None)


class Compiled:
    """The directory of each test, which has the same path for all of them, since debugging information has paths. What
    compilers made is kept beside it: several tests need the same program, and a compiler takes seconds for it.
    """
    place = session = None
    kept = {}

    @classmethod
    def copy(cls, program, to):
        """The program, its source and its .dwo file."""
        for path in glob.glob(glob.escape(program) + "*"):
            shutil.copy(path, to)


def setUpModule():
    Compiled.place = tempfile.mkdtemp()
    unittest.addModuleCleanup(shutil.rmtree, Compiled.place)
    Compiled.session = os.path.join(Compiled.place, "session")


def build(directory, name, text, language, *options, by=None):
    """Compiles a program and returns its path, as the debugging information has that of its source."""
    source, program = os.path.join(directory, name + (".cc" if language == "c++" else ".c")), os.path.join(directory, name)
    command = (by or compiler(language), *options, "-o", program, source)
    if (command, text) in Compiled.kept:
        Compiled.copy(os.path.join(Compiled.kept[command, text], name), directory)
        return program
    with open(source, "w", encoding="utf-8") as stream:
        stream.write(text)
    subprocess.run(command, check=True, cwd=directory)
    Compiled.kept[command, text] = tempfile.mkdtemp(dir=Compiled.place)
    Compiled.copy(program, Compiled.kept[command, text])
    return program


def symbolizer(program, addresses):
    """{address: [(function, file, line)]} of llvm-symbolizer, innermost first, with None for what is not known."""
    text = "\n".join("0x%x" % address for address in addresses)
    out = subprocess.run([SYMBOLIZER, "--obj=" + program, "--no-demangle", "--output-style=JSON"], input=text,
                         stdout=subprocess.PIPE, check=True, universal_newlines=True).stdout
    places = {}
    for line in out.splitlines():
        answer = json.loads(line)
        places[int(answer["Address"], 16)] = [
            (frame["FunctionName"], frame["FileName"] if frame["Line"] else None, frame["Line"] or None)
            for frame in answer["Symbol"]]
    return places


def normal(frames):
    """The same with paths that are spelled in one way, and no file without a line."""
    return [(function, os.path.normpath(file) if line and file else None, line) for function, file, line in frames]


class Session(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.dir = Compiled.session
        os.mkdir(self.dir)
        self.addCleanup(shutil.rmtree, self.dir)

    def run_tool(self, *words, rc=0):
        done = subprocess.run([os.path.join(BIN, words[0]), "--session-dir=" + self.dir, *words[1:]], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, rc, done.stderr.decode())
        self.errors = done.stderr.decode()
        return done.stdout.decode()

    def rows(self, *words):
        return json.loads(self.run_tool("opreport", "-l", "--format=json", *words))["symbols"]


@unittest.skipUnless(SYMBOLIZER, "no llvm-symbolizer")
class BesideLlvm(Session):
    """Each address has the functions, files and lines that llvm-symbolizer shows."""

    def frames(self, *words):
        """{address: [(function, file, line)]} of the report, and the sum of its samples."""
        found, total = {}, 0
        for row in self.rows("-d", "-g", "--inline", "-D", "none", *words):
            total += row["samples"][0]
            self.assertEqual(row["samples"][0], sum(detail["samples"][0] for detail in row["details"]))
            for detail in row["details"]:
                address = int(detail["address"], 16)
                self.assertNotIn(address, found)
                found[address] = [(row["symbol"], detail.get("file"), detail.get("line"))]
                found[address] += [(f["symbol"], f.get("file"), f.get("line")) for f in row.get("inlined by", ())]
        return found, total

    def is_symbol(self, shown, name):
        """The outermost function has the name of its symbol, which may be one of several at its
        start, or of a part or copy of it.
        """
        return shown == name or shown.startswith(name + ".") or name in self.aliases.get(shown, ())

    def choose(self, program, count):
        """Sets samples and addresses: so many positions in functions of the program."""
        chance = random.Random(SEED)
        by_offset, by_address = (elfsyms.all_ranges(program, which) for which in (False, True))
        starts = {}
        for name, start, _ in by_address:
            starts.setdefault(start, set()).add(name)
        self.aliases = {name: starts[start] for name, start, _ in by_address}
        self.samples, self.addresses = {}, {}
        ranges = [(offset, address) for offset, address in zip(by_offset, by_address) if offset[2] > offset[1]]
        while len(self.samples) < min(count, sum(o[2] - o[1] for o, _ in ranges) // 2):
            offset, address = ranges[chance.randrange(len(ranges))]
            at = chance.randrange(offset[2] - offset[1])
            self.samples[offset[1] + at] = 1 + len(self.samples) % 7
            self.addresses[offset[1] + at] = address[1] + at
        self.addresses = sorted(self.addresses.values())

    def compare(self, program, *words, whole=None, name=None):
        put_image(self.dir, name or program, sorted(self.samples.items()))
        ours, total = self.frames(*words)
        self.assertEqual(total, sum(self.samples.values()))
        theirs = symbolizer(whole or program, self.addresses)
        self.assertEqual(sorted(ours), self.addresses)
        inlined = different = 0
        for address in self.addresses:
            wanted, frames = normal(theirs[address]), normal(ours[address])
            inlined += len(wanted) > 1
            same = len(wanted) == len(frames) and wanted[:-1] == frames[:-1] and wanted[-1][1:] == frames[-1][1:]
            # opreport takes the name of the outermost function from the symbols.
            if not same or (wanted[-1][0] and not self.is_symbol(frames[-1][0], wanted[-1][0])):
                different += 1
                print("%x:\n  llvm-symbolizer %s\n  opreport        %s" % (address, wanted, frames))
        self.assertEqual(different, 0)
        return inlined

    def check_program(self, *options, by=None, count=None):
        program = build(self.dir, "prog", PROGRAM, "c++", "-g", *options, by=by)
        self.choose(program, count or NR_ADDRESSES)
        inlined = self.compare(program)
        self.assertGreater(inlined, len(self.addresses) // 10)
        print("%s: %d addresses, %d of them in inlined functions" % (" ".join(options), len(self.addresses), inlined))
        return program

    @unittest.skipUnless(compiler("c++"), "no C++ compiler")
    def test_program(self):
        program = self.check_program("-O2")
        self.check_parts(program)

    def check_parts(self, program):
        """The same with a debug file, found by build-id and by .gnu_debuglink."""
        root = os.path.join(self.dir, "root")
        image = os.path.join(root, "image")
        debug = os.path.join(self.dir, "prog.debug")
        os.makedirs(root)
        subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
        subprocess.run(["strip", "-o", image, program], check=True)
        notes = subprocess.run(["readelf", "-n", program], stdout=subprocess.PIPE, check=True, universal_newlines=True).stdout
        build_id = re.search("Build ID: ([0-9a-f]+)", notes)[1]
        place = os.path.join(root, "usr/lib/debug/.build-id", build_id[:2], build_id[2:] + ".debug")
        os.makedirs(os.path.dirname(place))
        shutil.copy(debug, place)
        shutil.rmtree(os.path.join(self.dir, "samples"))
        self.assertTrue(self.compare(image, "-R", root, whole=program, name="/image"))
        os.remove(place)
        shutil.rmtree(os.path.join(self.dir, "samples"))
        os.makedirs(os.path.join(root, ".debug"))
        subprocess.run(["objcopy", "--remove-section=.note.gnu.build-id", "--add-gnu-debuglink=" + debug, image], check=True)
        shutil.move(debug, os.path.join(root, ".debug"))
        self.assertTrue(self.compare(image, whole=program))

    @unittest.skipUnless(compiler("c++"), "no C++ compiler")
    def test_forms_of_dwarf(self):
        for options in (("-O2", "-gdwarf-4", "-gz"), ("-O3", "-flto"), ("-O1", "-ffunction-sections")):
            shutil.rmtree(os.path.join(self.dir, "samples"), ignore_errors=True)
            with self.subTest(options=options):
                self.check_program(*options, count=NR_ADDRESSES // 4)

    @unittest.skipUnless(shutil.which("clang++"), "no clang++")
    def test_clang(self):
        self.check_program("-O2", by="clang++", count=NR_ADDRESSES // 4)

    @unittest.skipUnless(compiler("c++"), "no C++ compiler")
    def test_split(self):
        """The parts of the units are in .dwo files, for DWARF 4 and 5; when they are gone, a warning names one."""
        for options in (("-gdwarf-5",), ("-gdwarf-4",)):
            for by in filter(shutil.which, ("g++", "clang++")):
                with self.subTest(options=options, by=by):
                    shutil.rmtree(os.path.join(self.dir, "samples"), ignore_errors=True)
                    self.check_program("-O2", "-gsplit-dwarf", *options, by=by, count=NR_ADDRESSES // 4)
                    self.assertNotIn("missing", self.errors)
                    dwo, = (name for name in os.listdir(self.dir) if name.endswith(".dwo"))
                    os.remove(os.path.join(self.dir, dwo))
                    rows = self.rows("-g", "-d", "--inline", "-D", "none")
                    self.assertEqual(self.errors.count(dwo + " is missing"), 1, self.errors)
                    self.assertFalse(any("inlined by" in row for row in rows))
                    self.assertGreater(sum("line" in detail for row in rows for detail in row["details"]), len(self.addresses) // 2)

    @unittest.skipUnless(compiler("c++"), "no C++ compiler")
    def test_package(self):
        """The .dwo files are in a package beside the program, for DWARF 4 and 5; a damaged one is as none."""
        for packer, options, by in (("llvm-dwp", "-gdwarf-5", "g++"), ("dwp", "-gdwarf-4", "g++"),
                                    ("llvm-dwp", "-gdwarf-5", "clang++"), ("llvm-dwp", "-gdwarf-4", "clang++")):
            if not shutil.which(packer) or not shutil.which(by):
                continue
            with self.subTest(packer=packer, options=options, by=by):
                shutil.rmtree(os.path.join(self.dir, "samples"), ignore_errors=True)
                program = build(self.dir, "prog", PROGRAM, "c++", "-g", "-O2", "-gsplit-dwarf", options, by=by)
                dwo, = (name for name in os.listdir(self.dir) if name.endswith(".dwo"))
                dwo, package = os.path.join(self.dir, dwo), program + ".dwp"
                subprocess.run([packer, dwo, "-o", package], check=True)
                self.choose(program, NR_ADDRESSES // 4)
                put_image(self.dir, program, sorted(self.samples.items()))
                beside = self.rows("-g", "-d", "--inline", "-D", "none")
                os.remove(dwo)
                self.assertEqual(self.rows("-g", "-d", "--inline", "-D", "none"), beside)
                self.assertNotIn("missing", self.errors)
                self.assertTrue(any("inlined by" in row for row in beside))
                with open(package, "rb") as stream:
                    whole = stream.read()
                place, size = section_place(whole, ".debug_cu_index")
                chance = random.Random(SEED)
                for _ in range(4):
                    data = bytearray(whole)
                    for _ in range(4):
                        data[place + chance.randrange(size)] = chance.choice((0, 1, 0x7f, 0xff, chance.randrange(256)))
                    with open(package, "wb") as stream:
                        stream.write(data)
                    self.rows("-g", "-d", "--inline")
                os.remove(package)

    @unittest.skipUnless(compiler("c++"), "no C++ compiler")
    def test_fifo_for_a_file(self):
        """What hostile debugging information names is not opened unless it is a regular file."""
        program = build(self.dir, "prog", PROGRAM, "c++", "-g", "-O2", "-gsplit-dwarf", "-gdwarf-5")
        dwo, = (name for name in os.listdir(self.dir) if name.endswith(".dwo"))
        os.remove(os.path.join(self.dir, dwo))
        os.mkfifo(os.path.join(self.dir, dwo))
        self.choose(program, 50)
        put_image(self.dir, program, sorted(self.samples.items()))
        self.rows("--inline")
        self.assertIn(dwo + " is missing", self.errors)

    @unittest.skipIf(os.geteuid() or not compiler("c++"), "not root, or no C++ compiler")
    def test_files_of_strangers(self):
        """A .dwo file, a package or an alternate file counts if root, the caller or the owner of the program owns it."""
        program = build(self.dir, "prog", PROGRAM, "c++", "-g", "-O2", "-gsplit-dwarf", "-gdwarf-5")
        dwo, = (os.path.join(self.dir, name) for name in os.listdir(self.dir) if name.endswith(".dwo"))
        named = [(dwo, os.path.basename(dwo) + " is missing")]
        packer = shutil.which("llvm-dwp") or shutil.which("dwp")
        if packer:
            subprocess.run([packer, dwo, "-o", program + ".dwp"], check=True)
            named.append((program + ".dwp", None))
        self.choose(program, 50)
        put_image(self.dir, program, sorted(self.samples.items()))
        for name, message in named:
            if message is None:
                os.remove(dwo)
                message = os.path.basename(dwo) + " is missing"
            elif packer:
                os.rename(program + ".dwp", program + ".away")
            for owner, is_believed in ((0, True), (65534, False)):
                os.chown(name, owner, 0)
                self.rows("--inline")
                self.assertEqual(message not in self.errors, is_believed, (name, self.errors))
            os.chown(program, 65534, 0)
            self.rows("--inline")
            self.assertNotIn(message, self.errors)
            os.chown(program, 0, 0)
            if packer and name == dwo:
                os.rename(program + ".away", program + ".dwp")

    @unittest.skipUnless(shutil.which("dwz") and compiler("c++"), "no dwz")
    def test_dwz(self):
        program = build(self.dir, "prog", PROGRAM, "c++", "-g", "-O2", "-gdwarf-4")
        whole, other, alternate = (os.path.join(self.dir, name) for name in ("whole", "other", "alternate"))
        shutil.copy(program, whole)
        subprocess.run(["dwz", program], check=True)
        self.choose(program, NR_ADDRESSES // 4)
        self.assertTrue(self.compare(program))
        for name in (program, other):
            shutil.copy(whole, name)
        subprocess.run(["dwz", "-m", alternate, program, other], check=True)
        shutil.rmtree(os.path.join(self.dir, "samples"))
        self.assertTrue(self.compare(program, whole=whole))
        self.assertNotIn("missing", self.errors)
        if not os.geteuid():
            os.chown(alternate, 65534, 0)
            self.rows("--inline")
            self.assertIn("alternate is missing", self.errors)
        os.remove(alternate)
        self.rows("--inline")
        self.assertIn("alternate is missing", self.errors)

    @unittest.skipUnless(compiler("c++"), "no C++ compiler")
    def test_packed(self):
        program = build(self.dir, "prog", PROGRAM, "c++", "-g", "-O2")
        whole = os.path.join(self.dir, "whole")
        shutil.copy(program, whole)
        self.choose(program, NR_ADDRESSES // 4)
        for how in ("zlib", "zlib-gnu", "zstd"):
            done = subprocess.run(["objcopy", "--compress-debug-sections=" + how, whole, program], stderr=subprocess.DEVNULL,
                                  check=False)
            if done.returncode:
                continue
            with self.subTest(how=how):
                shutil.rmtree(os.path.join(self.dir, "samples"), ignore_errors=True)
                self.assertTrue(self.compare(program, whole=whole))

    def test_relocatable(self):
        """A file as a kernel module is: its debugging information has relocations. Other code comes before .text."""
        for options in (("-gdwarf-5",), ("-gdwarf-4", "-gz")):
            text = "void before(void) __attribute__((section(\".init.text\")));\n" \
                "volatile int n; void before(void) { n = 1; n = 2; }\n" + SMALL
            program = build(self.dir, "module", text, "c", "-O1", "-c", *options)
            shutil.rmtree(os.path.join(self.dir, "samples"), ignore_errors=True)
            put_image(self.dir, program, [(at, 1) for name, first, end in elfsyms.all_ranges(program) if name != "before"
                                          for at in range(first, end)])
            addresses = sorted(at for name, first, end in elfsyms.all_ranges(program, True) if name != "before"
                               for at in range(first, end))
            ours, _ = self.frames()
            theirs = symbolizer(program, addresses)
            self.assertEqual(sorted(ours), addresses)
            for at in addresses:  # all sections of such a file begin at 0, so it has several symbols at an address
                wanted, frames = normal(theirs[at]), normal(ours[at])
                self.assertEqual((wanted[:-1], wanted[-1][1:]), (frames[:-1], frames[-1][1:]))

    def test_relocatable_split(self):
        """Its .dwo file, behind one of another build and before a FIFO: libdw opens neither."""
        work, out = os.path.join(self.dir, "work"), os.path.join(self.dir, "out")
        for folder in (work, out):
            os.mkdir(folder)
        with open(os.path.join(work, "small.c"), "w", encoding="utf-8") as stream:
            stream.write(SMALL)
        module, dwo = os.path.join(out, "module.o"), os.path.join(work, "module.dwo")
        for version in ("-gdwarf-4", "-gdwarf-5"):
            subprocess.run([compiler("c"), "-O1", "-c", "-gsplit-dwarf", version, "-o", "module.o", "small.c"], check=True,
                           cwd=work)
            os.replace(os.path.join(work, "module.o"), module)
            if version == "-gdwarf-4":
                os.replace(dwo, os.path.join(out, "module.dwo"))
        put_image(self.dir, module, [(at, 1) for _, first, end in elfsyms.all_ranges(module) for at in range(first, end)])
        self.assertTrue(any("inlined by" in row for row in self.rows("--inline")))
        self.assertNotIn("missing", self.errors)
        os.remove(dwo)
        os.mkfifo(dwo)
        self.assertFalse(any("inlined by" in row for row in self.rows("--inline")))
        self.assertIn("module.dwo is missing", self.errors)

    @unittest.skipUnless(shutil.which("clang++"), "no clang++")
    def test_embedded_source(self):
        self.check_program("-O2", "-gdwarf-5", "-gembed-source", by="clang++", count=NR_ADDRESSES // 4)

    @unittest.skipUnless(shutil.which("rustc"), "no rustc")
    def test_rust(self):
        for options in ((), ("-Z", "dwarf-version=5")):
            program = os.path.join(self.dir, "prog")
            with open(program + ".rs", "w", encoding="utf-8") as stream:
                stream.write(RUST)
            done = subprocess.run(["rustc", "-g", "-O", *options, "-o", program, program + ".rs"], stderr=subprocess.PIPE,
                                  check=False, env=dict(os.environ, RUSTC_BOOTSTRAP="1"))
            if options and b"unknown debugging option" in done.stderr:
                print("this rustc writes DWARF 4 only")
                continue
            self.assertEqual(done.returncode, 0, done.stderr.decode())
            shutil.rmtree(os.path.join(self.dir, "samples"), ignore_errors=True)
            self.choose(program, NR_ADDRESSES // 4)
            self.assertTrue(self.compare(program))

    @unittest.skipUnless(shutil.which("go"), "no go")
    def test_go(self):
        program = os.path.join(self.dir, "prog")
        with open(program + ".go", "w", encoding="utf-8") as stream:
            stream.write(GO)
        subprocess.run(["go", "build", "-o", program, program + ".go"], check=True, cwd=self.dir,
                       env=dict(os.environ, HOME=self.dir, GOFLAGS="-mod=mod", GO111MODULE="off"))
        self.choose(program, NR_ADDRESSES // 4)
        self.assertTrue(self.compare(program))

    def test_c(self):
        program = build(self.dir, "small", SMALL, "c", "-O1", "-g", "-nostdlib", "-static")
        ranges = elfsyms.all_ranges(program)
        vmas = elfsyms.all_ranges(program, True)
        self.aliases = {}
        self.samples = {start + i: 1 for _, start, end in ranges for i in range(end - start)}
        self.addresses = sorted(start + i for _, start, end in vmas for i in range(end - start))
        self.assertTrue(self.compare(program))


class Forms(Session):
    """Both functions that have copies, each with samples at all its bytes."""

    def setUp(self):
        super().setUp()
        self.program = build(self.dir, "small", SMALL, "c", "-O1", "-g", "-nostdlib", "-static")
        self.ranges = elfsyms.symbol_ranges(self.program, ("both", "one"))
        self.put()

    def put(self, session="current", weight=1):
        put_image(self.dir, self.program, [(at, weight) for first, end in self.ranges.values() for at in range(first, end)],
                  session=session)
        self.total = weight * sum(end - first for first, end in self.ranges.values())

    def test_text(self):
        out = self.run_tool("opreport", "--inline", "-n")
        self.assertEqual(sum(int(line.split()[0]) for line in out.splitlines()), self.total)
        names = [re.split(r" {2,}|\t", line)[-1] for line in out.splitlines()]
        for name in ("square (inlined by sum at small.c:3, both at small.c:4)", "square (inlined by both at small.c:4)",
                     "square (inlined by sum at small.c:3, one at small.c:5)", "both", "one"):
            self.assertEqual(sum(line.endswith(" " + name) for line in out.splitlines()), 1, (name, names))
        self.assertIn("inlined by sum at %s.c:3" % self.program, self.run_tool("opreport", "--inline", "-f"))
        plain = self.run_tool("opreport", "-l", "-n").splitlines()
        self.assertEqual(len(plain), 2)
        self.assertNotIn("inlined", "".join(plain))

    def test_lines(self):
        """An inlined function is shown where its own code is."""
        out = self.run_tool("opreport", "--inline", "-n", "-g")
        for line in out.splitlines():
            wanted = {"square": "small.c:2 ", "sum": "small.c:3 ", "both": "small.c:4 ", "one": "small.c:5 "}
            self.assertIn(wanted[re.search(r"(\w+)( \(inlined.*)?$", line)[1]], line)

    def test_sums_of_symbols(self):
        """The rows of a symbol have the samples that it has without --inline."""
        plain = {row["symbol"]: row["samples"][0] for row in self.rows()}
        sums = {}
        for row in self.rows("--inline"):
            symbol = row["inlined by"][-1]["symbol"] if "inlined by" in row else row["symbol"]
            sums[symbol] = sums.get(symbol, 0) + row["samples"][0]
        self.assertEqual(sums, plain)

    def test_csv(self):
        rows = list(csv.DictReader(io.StringIO(self.run_tool("opreport", "--inline", "--format=csv"))))
        self.assertEqual(sum(int(row["TIMER:0 samples"]) for row in rows), self.total)
        found = {(row["symbol"], row["inlined by"], row["call line"], row["inliners"]) for row in rows}
        source = self.program + ".c"
        self.assertIn(("square", "sum", "3", "sum at %s:3, one at %s:5" % (source, source)), found)
        self.assertIn(("one", "", "", ""), found)
        self.assertEqual({row["call file"] for row in rows}, {source, ""})
        self.assertNotIn("inlined by", self.run_tool("opreport", "-l", "--format=csv"))

    def test_xml(self):
        text = self.run_tool("opreport", "-X", "--inline", "-d", "-g")
        if shutil.which("xmllint"):
            done = subprocess.run(["xmllint", "--noout", "--schema", SCHEMA, "-"], input=text.encode(), stderr=subprocess.PIPE,
                                  check=False)
            self.assertEqual(done.returncode, 0, done.stderr.decode())
        tree = xml.etree.ElementTree.fromstring(text)
        chains = {tuple((f.get("name"), f.get("line")) for f in data) for data in tree.iter("symboldata")}
        self.assertEqual(chains & {(), (("sum", "3"), ("both", "4")), (("both", "4"),), (("sum", "3"), ("one", "5"))},
                         {(), (("sum", "3"), ("both", "4")), (("both", "4"),), (("sum", "3"), ("one", "5"))})
        counts = [int(count.text) for symbol in tree.iter("symbol") for count in symbol.iter("count")]
        self.assertEqual(sum(counts), self.total)
        self.assertEqual(sum(int(d.find("count").text) for d in tree.iter("detaildata")), self.total)
        self.assertNotIn("inlinedby", self.run_tool("opreport", "-X"))

    def test_choice_of_symbols(self):
        """A name selects the function and what was inlined into it; shares are of what is left."""
        def of(*words):
            rows = self.rows("--inline", *words)
            self.assertAlmostEqual(sum(row["percent"][0] for row in rows), 100, delta=0.01)
            return {(row["symbol"], *(f["symbol"] for f in row.get("inlined by", ()))) for row in rows}
        everything = of()
        self.assertEqual(of("-i", "square"), {chain for chain in everything if "square" in chain})
        self.assertEqual(of("-i", "one"), {chain for chain in everything if "one" in chain})
        self.assertEqual(of("-e", "sum"), {chain for chain in everything if "sum" not in chain})
        self.assertEqual(of("-i", "both", "-e", "square"), {chain for chain in everything
                                                           if "both" in chain and "square" not in chain})

    def test_changes(self):
        self.put(session="before", weight=3)
        rows = self.rows("--inline", "{", "session:before", "}", "{", "}")
        self.assertEqual(len(rows), len(self.rows("--inline")))
        self.assertEqual({row["change"][0] for row in rows}, {0})

    def test_refused(self):
        self.assertIn("--callgraph is incompatible with --inline", self.run_tool("opreport", "--inline", "-c", rc=1) + self.errors)

    def test_without_debugging_information(self):
        subprocess.run(["strip", "-g", self.program], check=True)
        self.assertEqual(self.run_tool("opreport", "--inline", "-n"), self.run_tool("opreport", "-l", "-n"))

    # ---- opannotate ----

    def test_source(self):
        out = self.run_tool("opannotate", "-s", "--inline")
        body = [line for line in out.splitlines() if re.match(r"[ \d.]{15}:", line)]
        self.assertEqual(sum(int(line[:6]) for line in body if line[:6].strip()), self.total)
        square = next(line for line in body if "int square" in line)
        notes = re.search(r"/\* (inlined by .*) \*/$", square)[1].split("; ")
        self.assertEqual(sum(int(re.search(r": (\d+) ", note)[1]) for note in notes), int(square[:6]))
        self.assertEqual({re.sub(r": \d.*", "", note) for note in notes},
                         {"inlined by sum at small.c:3, both at small.c:4", "inlined by both at small.c:4",
                          "inlined by sum at small.c:3, one at small.c:5"})
        self.assertRegex(next(line for line in body if "int both" in line), r"inlines (square|sum): \d+ .*; inlines (square|sum): ")
        plain = self.run_tool("opannotate", "-s")
        self.assertEqual(re.sub(r" /\* .*\*/$", "", out.replace(" --inline", ""), flags=re.M),
                         re.sub(r" /\* .*\*/$", "", plain, flags=re.M))

    def test_assembly(self):
        """Before an instruction of an inlined function stands which it is, as objdump has it."""
        for more in ((), ("-s",)):
            out = self.run_tool("opannotate", "-a", "--inline", *more)
            self.assertEqual(sum(int(line[:6]) for line in out.splitlines() if line[:6].strip().isdigit()), self.total)
            ours, where = {}, None
            for line in out.splitlines():
                if re.match(r"[0-9a-f]+ <\w+>:", line):
                    where = None
                elif re.match(r" *:\[", line):
                    chain = re.search(r"\[(.*)\]$", line)[1]
                    where = None if "inlined by" not in chain else tuple(
                        int(n) for n in re.findall(r"small\.c:(\d+)", chain))
                elif re.match(r"[ \d.]{15}: *[0-9a-f]+:\t", line):
                    ours[int(re.search(r": *([0-9a-f]+):\t", line)[1], 16)] = where
            theirs = symbolizer(self.program, sorted(ours))
            self.assertEqual(ours, {at: tuple(line for _, _, line in frames[1:]) or None for at, frames in theirs.items()})
            self.assertGreater(len(set(ours.values())), 3)

    def test_page(self):
        page = os.path.join(self.dir, "page")
        self.run_tool("opannotate", "--inline", "--html=" + page)
        with open(page, encoding="utf-8") as stream:
            text = stream.read()
        self.assertIn("inlined by sum at small.c:3, one at small.c:5: ", text)
        self.assertIn("[square, inlined by sum at %s.c:3, one at %s.c:5]" % (self.program, self.program), text)


class Hostile(Session):
    """Debugging information that is damaged or made to hurt: the report is made, and no sample is lost."""

    def check_sums(self, wanted, *words):
        sums = {}
        for row in self.rows("--inline", *words):
            sums[row["image"]] = sums.get(row["image"], 0) + row["samples"][0]
        self.assertEqual(sums, wanted)

    def test_damaged(self):
        program = build(self.dir, "small", SMALL, "c", "-O1", "-g", "-nostdlib", "-static")
        ranges = elfsyms.symbol_ranges(program, ("both", "one"))
        samples = [(at, 2) for first, end in ranges.values() for at in range(first, end)]
        with open(program, "rb") as stream:
            whole = stream.read()
        chance, wanted = random.Random(SEED), {}
        places = [section_place(whole, ".debug_" + name) for name in ("info", "abbrev", "line", "str", "line_str")]
        for i in range(NR_ADDRESSES // 5):
            data = bytearray(whole)
            for _ in range(chance.randrange(1, 9)):
                start, size = chance.choice(places[:2] + places)
                data[start + chance.randrange(size)] = chance.choice((0, 1, 0x7f, 0xff, chance.randrange(256)))
            image = os.path.join(self.dir, "mutant%d" % i)
            with open(image, "wb") as stream:
                stream.write(data)
            put_image(self.dir, image, samples)
            wanted[image] = 2 * len(samples)
        self.check_sums(wanted, "-g", "-d")
        for words in (("-s", "-a"), ("-s",), ("--html=" + os.path.join(self.dir, "page"),)):
            self.run_tool("opannotate", "--inline", *words)

    def nested(self, depth):
        """A program whose code is in so many inlined functions."""
        inner = '\t.uleb128 3\n\t.string "inner%d"\n\t.quad begin, end\n\t.byte 1\n\t.long %d\n'
        text = NESTED.replace("INNER", "".join(inner % (i, i + 1) for i in range(depth)) + "\t.byte 0\n" * depth)
        source, program = os.path.join(self.dir, "nested.s"), os.path.join(self.dir, "nested%d" % depth)
        with open(source, "w", encoding="utf-8") as stream:
            stream.write(text)
        subprocess.run([compiler("c"), "-nostdlib", "-static", "-o", program, source], check=True)
        first, end = elfsyms.symbol_ranges(program, ("_start",))["_start"]
        put_image(self.dir, program, [(at, 1) for at in range(first, end)])
        return program, end - first

    def test_deep(self):
        """The innermost functions are shown; a depth that takes too long is given up, and no more."""
        program, total = self.nested(300)
        rows = self.rows("--inline", "-D", "none")
        self.assertEqual([(row["symbol"], len(row["inlined by"]), row["samples"][0]) for row in rows], [("inner299", 127, total)])
        callers = [frame["symbol"] for frame in rows[0]["inlined by"]]
        self.assertEqual(callers, ["inner%d" % i for i in range(298, 172, -1)] + ["_start"])
        deep, other = self.nested(100000)
        self.check_sums({program: total, deep: other})


def section_place(data, name):
    """File offset and size of a section, from the names in an ELF file."""
    sections = elfsyms.sections_of(data)
    names = sections[int.from_bytes(data[62:64], "little")][4]
    for at, _, _, _, place, size, *_ in sections:
        if data[names + at:data.index(b"\0", names + at)] == name.encode():
            return place, size
    raise KeyError(name)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        NR_ADDRESSES = int(sys.argv.pop(1))
    unittest.main()
