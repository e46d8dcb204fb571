#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of the names of a function the reports show, and by which names -i and -e find it.

Run from the build directory by `make check`; a compiler makes the image that the samples are of.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path.insert(0, os.path.join(SOURCE, "tests", "system"))
sys.dont_write_bytecode = True
import elfsyms  # noqa: E402

sys.path.insert(0, os.path.join(SOURCE, "tests", "unit"))
from sample_files import ALL, put_image, write_samples  # noqa: E402

TOOLS = os.path.abspath(os.environ.get("OPD_BINDIR", "bin"))
# As in the C library: calloc is a weak name of __libc_calloc. Another name is local.
PROGRAM = """
void strong(void) __asm__("__test_calloc");
void strong(void) { }
void weak(void) __asm__("test_calloc");
void weak(void) __attribute__((weak, alias("__test_calloc")));
__asm__(".set local_calloc, __test_calloc");
void mangled(void) __asm__("_ZN4shop3addEl");
void mangled(void) { strong(); }
void other(void) { mangled(); }
void _start(void) { other(); }
"""
ALIASES = ("test_calloc", "__test_calloc", "local_calloc")
DEMANGLED = ("_ZN4shop3addEl", "shop::add(long)")


LIBRARY = "#include <stdlib.h>\n#include <unistd.h>\nint main(void) { return calloc(1, 1) ? fork() : 1; }\n"


def compile_to(program, text, *options):
    with open(program + ".c", "w", encoding="utf-8") as stream:
        stream.write(text)
    subprocess.run([shutil.which("gcc") or shutil.which("clang") or "cc", "-static", "-fno-pie", "-no-pie", *options,
                    "-o", program, program + ".c"], check=True)


def doubling_name(nr_doublings):
    """A function hot() whose parameters are pairs of the one before, 300 bytes for 2^28 pairs."""
    def reference(n):
        digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        return "S%s_" % digits[n] if n < 36 else "S1%s_" % digits[n - 36]
    return "_Z3hot1PIiiE" + "".join("S_I%s%sE" % (reference(i), reference(i)) for i in range(nr_doublings))


class Names(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.images = tempfile.mkdtemp()
        cls.program = os.path.join(cls.images, "prog")
        compile_to(cls.program, PROGRAM, "-g", "-O0", "-nostdlib", "-Wl,--build-id")
        os.chmod(cls.program, 0o755)
        os.utime(cls.program, (1, 1))
        ranges = elfsyms.symbol_ranges(cls.program, ["__test_calloc", "_ZN4shop3addEl", "other"])
        calloc, add, other = (ranges[name][0] for name in ("__test_calloc", "_ZN4shop3addEl", "other"))
        cls.samples = [(calloc, 60), (add, 30), (other, 10)]
        cls.calls = [(add << 32 | calloc, 5), (other << 32 | add, 3)]

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.images)

    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.errors = ""
        part = "{root}%s/" % self.program
        below = os.path.join(self.dir, "samples/current", part, "{dep}", part)
        write_samples(os.path.join(below, "TIMER.0.0." + ALL), self.samples)
        write_samples(os.path.join(below, "{cg}", part, "TIMER.0.0." + ALL), self.calls)

    def run_tool(self, tool, *arguments, cache=""):
        done = subprocess.run([os.path.join(TOOLS, tool), "--session-dir=" + self.dir] + list(arguments),
                              env=dict(os.environ, OPD_CACHE_DIR=cache), capture_output=True, text=True, check=True)
        self.errors = done.stderr
        return done.stdout

    def names_of(self, *arguments, cache=""):
        lines = self.run_tool("opreport", "-l", "-n", *arguments, cache=cache).splitlines()
        return [line.split(maxsplit=2)[2] for line in lines]

    def refuse(self, name, *arguments, cache=""):
        done = subprocess.run([os.path.join(TOOLS, "opreport"), "--session-dir=" + self.dir, "-l", "-i", name, *arguments],
                              env=dict(os.environ, OPD_CACHE_DIR=cache), capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""), name)
        self.assertIn("there is no symbol %s in these images" % name, done.stderr)

    def test_shown_name(self):
        """Of a strong name with an underscore and a weak one without, the latter, as in oprofile."""
        self.assertEqual(self.names_of(), ["test_calloc", "shop::add(long)", "other"])

    def test_c_library(self):
        program = os.path.join(self.dir, "static")
        try:
            compile_to(program, LIBRARY)
        except subprocess.CalledProcessError:
            self.skipTest("the C library cannot be linked statically here")
        names = ("calloc", "fork")
        ranges = elfsyms.symbol_ranges(program, names)
        put_image(self.dir, program, [(ranges[name][0], 1000 - i) for i, name in enumerate(names)])
        self.assertEqual(self.names_of(program), list(names))
        self.assertEqual(self.names_of("-i", "__libc_calloc,__fork", program), list(names))

    def test_include_and_exclude(self):
        """A symbol is found by each of its names, whichever the report shows."""
        cache = os.path.join(self.dir, "cache")
        for kept in ("", cache, cache):
            for name in ALIASES:
                self.assertEqual(self.names_of("-i", name, cache=kept), ["test_calloc"], name)
                self.assertEqual(self.names_of("-e", name, cache=kept), ["shop::add(long)", "other"], name)
            for name in DEMANGLED:
                self.assertEqual(self.names_of("-i", name, cache=kept), ["shop::add(long)"], name)
                self.assertEqual(self.names_of("-e", name, cache=kept), ["test_calloc", "other"], name)
            self.assertEqual(self.names_of("-i", "other,local_calloc", cache=kept), ["test_calloc", "other"])
            self.refuse("calloc", cache=kept)  # a part of a name is no name
        self.refuse(DEMANGLED[1], "-D", "none")  # the report does not print it
        self.assertEqual(self.names_of("-D", "none", "-i", DEMANGLED[0]), [DEMANGLED[0]])

    def test_other_reports(self):
        for name in ALIASES:
            blocks = self.run_tool("opreport", "-c", "-n", "-i", name)
            self.assertIn("60       100.000  test_calloc\n", blocks)
            self.assertNotIn("\n10 ", blocks)
            self.assertIn("<count>\n60</count>\n<symbol", self.run_tool("opreport", "-X", "-l", "-i", name))
            self.assertRegex(self.run_tool("opannotate", "-s", "-i", name), r" 60 100\.000 .*strong\(void\) { }")
            assembly = self.run_tool("opannotate", "-a", "-i", name)
            self.assertIn(": /* test_calloc total:     60 100.000 */", assembly)
            self.assertNotIn("<other>:", assembly)
        self.assertNotIn("<_ZN4shop3addEl>:", self.run_tool("opannotate", "-a", "-e", DEMANGLED[1]))

    def test_name_of_gigabytes(self):
        """It is shown without its parameters, also as an inlined function; the image keeps its other symbols."""
        for nr_doublings in (20, 28, 40):
            name, program = doubling_name(nr_doublings), os.path.join(self.dir, "doubling%d" % nr_doublings)
            compile_to(program, "volatile int sink;\n"
                       "void %s(void) { sink = 1; }\n"
                       "static inline __attribute__((always_inline)) void inner(void) __asm__(\"%s\");\n"
                       "static inline void inner(void) { sink = 2; }\n"
                       "void other(void) { inner(); }\n"
                       "void _start(void) { %s(); other(); }\n" % (name, name[:-1] + "iE", name), "-g", "-O2", "-nostdlib")
            ranges = elfsyms.symbol_ranges(program, [name, "other"])
            shutil.rmtree(os.path.join(self.dir, "samples"), ignore_errors=True)
            put_image(self.dir, program, [(at, 1) for first, end in ranges.values() for at in range(first, end)])
            self.assertEqual(set(self.names_of("-l")), {"hot", "other"})
            self.assertLess(len(self.run_tool("opreport", "--inline", "-l")), 4096)

    def test_cache_of_an_older_opd(self):
        """Its files give way to new ones, without a word, and the names are right."""
        cache = os.path.join(self.dir, "cache")
        symbols = os.path.join(cache, "symbols")
        self.names_of("-i", "local_calloc", cache=cache)
        said = self.errors
        packs = os.listdir(symbols)
        self.assertEqual(len(packs), 1)
        with open(os.path.join(symbols, packs[0]), "r+b") as stream:
            data = stream.read()
            self.assertEqual(data.count(b"opdpack3"), 1)
            stream.seek(data.index(b"opdpack3"))
            stream.write(b"opdpack2")
        for _ in range(2):
            self.assertEqual(self.names_of("-i", "local_calloc", cache=cache), ["test_calloc"])
            self.assertEqual(self.errors, said)
            self.assertEqual(len(os.listdir(symbols)), 1)
            self.assertNotEqual(os.listdir(symbols), packs)


CXX = """
namespace fs {
struct Key { int a; };
template <int N> struct Disk {
	static int checksum_block(const unsigned char *data, unsigned long size, Key) { return data[size] + N; }
	int operator()(int a, int b) const { return a + b; }
	bool operator<(const Disk &) const { return N; }
	operator int() const { return N; }
};
template <typename T> T twice(T a, T) { return a; }
}
namespace { __attribute__((used)) int hidden(int a, Key *) { return a; } }
extern "C" int plain(void) { return 1; }
namespace x { __attribute__((used)) int plain(int a, char) { return a; } }
template struct fs::Disk<4>;
template int fs::twice<int>(int, int);
template fs::Key fs::twice<fs::Key>(fs::Key, fs::Key);
int outer() { return [](int a, int b) { return a * b; }(2, 3); }
extern "C" void _start(void) { }
""".replace("int hidden(int a, Key *)", "int hidden(int a, fs::Key *)")


@unittest.skipUnless(shutil.which("g++") or shutil.which("clang++"), "there is no C++ compiler")
class FunctionsOfCxx(unittest.TestCase):
    """Names of functions as people write and paste them, for -i and -e."""

    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        program = os.path.join(self.dir, "prog")
        with open(program + ".cc", "w", encoding="utf-8") as stream:
            stream.write(CXX)
        subprocess.run([shutil.which("g++") or "clang++", "-O0", "-g", "-nostdlib", "-static", "-fno-pie", "-no-pie",
                        "-o", program, program + ".cc"], check=True)
        listed = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout.split("\n")
        names = [line.split()[2] for line in listed if line.split()[1:2] and line.split()[1] in "tTwW"]
        ranges = elfsyms.symbol_ranges(program, names)
        put_image(self.dir, program, [(ranges[name][0], 10) for name in names])
        self.shown = self.functions()

    def run_tool(self, tool, *options):
        return subprocess.run([os.path.join(TOOLS, tool), "--session-dir=" + self.dir, *options], capture_output=True, text=True,
                              check=False, env=dict(os.environ, OPD_CACHE_DIR=""))

    def functions(self, *options):
        done = self.run_tool("opreport", "-l", "-D", "normal", "--format=json", *options)
        self.errors = done.stderr
        return {row["symbol"] for row in json.loads(done.stdout)["symbols"]} if done.returncode == 0 else None

    def test_parts_of_names(self):
        checksum = "fs::Disk<4>::checksum_block(unsigned char const*, unsigned long, fs::Key)"
        call, less = "fs::Disk<4>::operator()(int, int) const", "fs::Disk<4>::operator<(fs::Disk<4> const&) const"
        ints, keys = "int fs::twice<int>(int, int)", "fs::Key fs::twice<fs::Key>(fs::Key, fs::Key)"
        inner = next(name for name in self.shown if name.startswith("outer()::"))
        hidden = "(anonymous namespace)::hidden(int, fs::Key*)"
        for words, wanted in (
                ("checksum_block", {checksum}), ("Disk::checksum_block", {checksum}), ("fs::Disk<4>::checksum_block", {checksum}),
                (checksum, {checksum}), ("checksum_block(unsigned char const*, unsigned long, fs::Key)", {checksum}),
                (checksum + "," + ints, {checksum, ints}), ("plain", {"plain"}), ("x::plain", {"x::plain(int, char)"}),
                ("twice", {ints, keys}), ("twice<int>", {ints}), ("twice<int>,plain", {ints, "plain"}),
                ("fs::twice", {ints, keys}),
                ("hidden", {hidden}), (hidden, {hidden}), ("operator()", {call, inner}), (call, {call}), ("operator<", {less}),
                ("operator<,plain", {less, "plain"}), ("Disk::operator int", {"fs::Disk<4>::operator int() const"}),
                ("_ZN1x5plainEic", {"x::plain(int, char)"}), ("outer", {"outer()"}), ("plain,checksum_block", {"plain", checksum}),
                (r"fs::twice<int>(int\, int)", {ints}), ("block", None), ("Key", None), ("int", None),
                ("Key)", None), ("::", None)):
            self.assertEqual(self.functions("-i", words), wanted, words)
            if wanted:
                self.assertEqual(self.functions("-e", words), self.shown - wanted, words)
                self.assertNotIn("there is no symbol", self.errors)

    def test_near_names(self):
        for words, near in (("checksum_blok", "checksum_block"),
                            ("cheksum_block(unsigned char const*, int, fs::Key)", "checksum_block"),
                            ("hiden", "hidden"), ("fs::Disk<4>::checksum_blocks", "fs::Disk<4>::checksum_block")):
            for tool, options in (("opreport", ("-l",)), ("opannotate", ("-s",))):
                done = self.run_tool(tool, *options, "-i", words)
                self.assertEqual(done.returncode, 1)
                self.assertIn("there is no symbol %s in these images; did you mean '%s'?" % (words, near), done.stderr)

    def test_opannotate(self):
        for words in ("checksum_block", "fs::Disk<4>::checksum_block(unsigned char const*, unsigned long, fs::Key)"):
            done = self.run_tool("opannotate", "-s", "-i", words)
            self.assertIn("return data[size] + N;", done.stdout, done.stderr)
            self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    if not os.access(os.path.join(TOOLS, "opreport"), os.X_OK):
        print("SKIP: %s/opreport is not built" % TOOLS)
        sys.exit(77)
    unittest.main()
