#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""opannotate on sessions written here: source, assembly beside objdump's, both, files of their own, the page, and what it refuses.

Run from the build directory by `make check`; a compiler makes the images.
"""
import html.parser
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path[:0] = [os.path.join(SOURCE, "tests", "system"), os.path.join(SOURCE, "tests", "unit")]
import elfsyms  # noqa: E402
from sample_files import put_image, write_samples  # noqa: E402

OPANNOTATE = os.path.abspath(os.environ.get("OPANNOTATE", "bin/opannotate"))
PROGRAM = """volatile int sum;
static int twice(int x)
{
\treturn 2 * x;
}
int hot(int n)
{
\tfor (int i = 0; i < n; i++)
\t\tsum += twice(i);
\treturn sum;
}
int warm(int n) { return hot(n) + 1; }
void _start(void) { warm(3); }
"""
MODULE = """__attribute__((section(".init.text"))) int my_init(int a) { return a * 17 + 4; }
char first = 1, second = 2;
int x;
int helper(int a) { x++; return a + 1; }
int caller(int a) { return helper(a) * 2; }
"""
BLANK = " " * 15
FUNCTIONS = ("hot", "warm", "twice")


class Page(html.parser.HTMLParser):
    """The marks of rows at each side, targets of links, and whether something outside is asked for.
    """

    def __init__(self):
        super().__init__()
        self.ids, self.links, self.foreign = set(), [], []
        self.rows = []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if "id" in attrs:
            self.ids.add(attrs["id"])
        if tag == "tr":
            self.rows.append((attrs.get("class"), attrs.get("data-l"), attrs.get("id")))
        if attrs.get("href", "").startswith("#"):
            self.links.append(attrs["href"][1:])
        self.foreign += [v for k, v in attrs.items() if k in ("src", "href") and not v.startswith("#")]


class Annotate(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.program = self.build("prog", PROGRAM)
        self.source = os.path.join(self.dir, "prog.c")
        self.ranges = elfsyms.symbol_ranges(self.program, FUNCTIONS)

    def build(self, name, text, *options):
        source, program = os.path.join(self.dir, name + ".c"), os.path.join(self.dir, name)
        with open(source, "w", encoding="utf-8") as stream:
            stream.write(text)
        subprocess.run([shutil.which("gcc") or shutil.which("clang") or "cc", "-g", "-O1", "-fno-inline", "-nostdlib",
                        "-static", "-fno-pie", "-no-pie",
                        "-o", program, source, *options], check=True)
        return program

    def put(self, samples, **kwargs):
        put_image(self.dir, self.program, samples, **kwargs)

    def run_tool(self, *arguments, rc=0):
        done = subprocess.run([OPANNOTATE, "--session-dir=" + self.dir, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              check=False, universal_newlines=True)
        self.assertEqual(done.returncode, rc, done.stderr)
        self.errors = done.stderr
        return done.stdout

    def objdump(self, program, *arguments):
        return subprocess.run(["objdump", "-d", "--no-show-raw-insn", *arguments, program], stdout=subprocess.PIPE, check=True,
                              universal_newlines=True).stdout

    def instructions(self, program):
        return {int(m[1], 16): m[0] for m in re.finditer(r"^ *([0-9a-f]+):\t.*$", self.objdump(program), re.M)}

    # ---- source ----

    def test_source(self):
        self.put([(self.ranges["hot"][0], 30), (self.ranges["warm"][0], 10)])
        lines = self.run_tool("-s").split("\n")
        self.assertEqual(lines[1], " * Command line: opannotate --session-dir=%s -s " % self.dir)
        self.assertIn(' * Total samples for file : "%s"' % self.source, lines)
        self.assertIn(" *     40 100.000", lines)
        self.assertIn(BLANK + ":static int twice(int x)", lines)
        self.assertIn("    10 25.0000 :int warm(int n) { return hot(n) + 1; } /* warm total:     10 25.0000 */", lines)
        hot = [line for line in lines if line.startswith("    30 75.0000 :")]
        self.assertEqual(len(hot), 1)
        self.assertTrue(hot[0].endswith(" /* hot total:     30 75.0000 */"), hot)

    def test_samples_are_not_lost(self):
        first, last = self.ranges["hot"]
        self.put([(key, key - first + 1) for key in range(first, last)])
        total = sum(range(1, last - first + 1))
        for option in ("-s", "-a"):
            body = self.run_tool(option).split("*/\n", 2 if option == "-s" else 1)[-1]
            self.assertEqual(sum(int(line[:6]) for line in body.split("\n") if line[:6].strip().isdigit()), total, option)

    def test_two_classes(self):
        self.put([(self.ranges["hot"][0], 30)])
        self.put([(self.ranges["hot"][0], 6), (self.ranges["warm"][0], 4)], event="OTHER.7.0.all.all.all")
        out = self.run_tool("-s")
        self.assertIn("     6 60.0000    30 100.000   :", out)
        self.assertIn(" " * 31 + ":static int twice(int x)\n", out)
        self.assertIn("/* warm total:      4 40.0000     0       0 */", out)

    def test_missing_source_has_symbols(self):
        os.rename(self.source, self.source + ".away")
        self.put([(self.ranges["hot"][0], 30)])
        out = self.run_tool("-s")
        self.assertIn("unable to open for reading: " + self.source, self.errors)
        self.assertIn("/* hot total:     30 100.000 */", out)

    def test_search_and_base_directories(self):
        away = os.path.join(self.dir, "away")
        os.makedirs(os.path.join(away, "sub"))
        os.rename(self.source, os.path.join(away, "sub", "prog.c"))
        self.put([(self.ranges["hot"][0], 30)])
        self.assertIn(":static int twice", self.run_tool("-s", "-d", away + "/sub", "-b", self.dir))
        self.assertIn(":static int twice", self.run_tool("-s", "-d", "/nowhere," + away + "/sub", "-b", "/x," + self.dir + "/"))
        self.assertNotIn(":static int twice", self.run_tool("-s", "-d", away, "-b", self.dir))
        self.assertIn("meaningless without --search-dirs", self.run_tool("-s", "-b", self.dir, rc=1) + self.errors)

    def test_filters(self):
        self.put([(self.ranges["hot"][0], 30), (self.ranges["warm"][0], 10)])
        self.assertNotIn("Total samples", self.run_tool("-s", "--exclude-file=*/prog.c"))
        self.assertIn("Total samples", self.run_tool("-s", "--include-file=*/prog.c"))
        self.assertNotIn("Total samples", self.run_tool("-s", "--include-file=*/other.c"))
        self.assertIn("    10 100.000 :int warm", self.run_tool("-s", "-i", "warm"))
        self.assertIn("    30 100.000 :", self.run_tool("-s", "-e", "warm"))
        self.assertIn("samples count reach 12.5% of the samples", self.run_tool("-s", "-t", "12.5"))

    def test_no_debug_information(self):
        self.program = self.build("plain", PROGRAM, "-g0")
        self.put([(elfsyms.symbol_ranges(self.program, FUNCTIONS)["hot"][0], 30)])
        self.assertNotIn("Total samples", self.run_tool("-s"))
        self.assertIn("no debug information", self.errors)

    def test_compressed_debug_information(self):
        for kind in ("zlib", "zlib-gabi"):
            program = os.path.join(self.dir, kind)
            subprocess.run(["objcopy", "--compress-debug-sections=" + kind, self.program, program], check=True)
            self.assertLess(os.path.getsize(program), os.path.getsize(self.program))
            shutil.rmtree(os.path.join(self.dir, "samples"), ignore_errors=True)
            put_image(self.dir, program, [(self.ranges["hot"][0], 30)])
            self.assertIn("/* hot total:     30 100.000 */", self.run_tool("-s"))
            self.assertNotIn("debugging information", self.errors)

    def test_control_characters_of_a_source(self):
        with open(self.source, encoding="utf-8") as stream:
            text = stream.read()
        with open(self.source, "w", encoding="utf-8", newline="") as stream:
            stream.write(text.replace("int warm", "\x1b[31m\u00e9 int warm"))
        self.put([(self.ranges["hot"][0], 30)])
        out = self.run_tool("-s")
        self.assertIn("\\x1b[31m\u00e9 int warm", out)
        self.assertNotIn("\x1b", out)

    def test_characters_that_turn_a_line(self):
        """Names and sources with special bytes are shown escaped."""
        turned, shown = "ho\u202et", "ho\\xe2\\x80\\xaet"
        self.program = self.build("turned", PROGRAM.replace("int hot(", 'int hot(int n) __asm__("%s");\nint hot(' % turned).replace(
            "int warm", "/* \u2067 */ int warm"), "-w")
        self.put([(elfsyms.symbol_ranges(self.program, (turned,))[turned][0], 30)])
        for options in (("-s",), ("-a",), ("-s", "-a"), ("--html=-",)):
            out = self.run_tool(*options)
            self.assertIn(shown, out)
            self.assertFalse(set("\u202e\u2067") & set(out), options)
            if "-a" not in options:
                self.assertIn("/* \\xe2\\x81\\xa7 */ int warm", out)
        opreport = os.path.join(os.path.dirname(OPANNOTATE), "opreport")
        for options in ((), ("--format=csv",), ("--format=json",), ("-X",)):
            done = subprocess.run([opreport, "--session-dir=" + self.dir, "-l", *options], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, check=True,
                                  universal_newlines=True)
            self.assertIn(shown.replace("\\", "\\\\") if "--format=json" in options else shown, done.stdout)
            self.assertNotIn(turned, done.stdout)

    # ---- files of their own ----

    def test_output_directory(self):
        self.put([(self.ranges["hot"][0], 30)])
        out = os.path.join(self.dir, "out")
        self.assertEqual(self.run_tool("-s", "-o", out), "")
        path = out + self.source
        with open(path, encoding="utf-8") as stream:
            lines = stream.read().split("\n")
        self.assertEqual(lines[0], BLANK + ":volatile int sum;")
        self.assertIn(" *     30 100.000", lines)
        self.assertIn(" * Output all files", lines)
        self.assertEqual(os.listdir(os.path.dirname(path)), ["prog.c"])
        self.run_tool("-s", "-o", out)

    def test_sources_are_never_overwritten(self):
        self.put([(self.ranges["hot"][0], 30)])
        with open(self.source, "rb") as stream:
            text = stream.read()
        self.run_tool("-s", "-o", "/", rc=1)
        self.assertIn("refuse to output to existing source file", self.errors)
        out = os.path.join(self.dir, "out")
        os.makedirs(out + self.dir)
        for place in (os.link, os.symlink, shutil.copy):
            place(self.source, out + self.source)
            self.run_tool("-s", "-o", out, rc=1)
            os.unlink(out + self.source)
        with open(self.source, "rb") as stream:
            self.assertEqual(stream.read(), text)

    def test_names_do_not_leave_the_directory(self):
        self.program = self.build("dots", '#line 1 "../../../../../../../../../../tmp/opd-dots-escape.c"\n' + PROGRAM)
        self.put([(elfsyms.symbol_ranges(self.program, FUNCTIONS)["hot"][0], 30)])
        search, out = os.path.join(self.dir, "search"), os.path.join(self.dir, "out")
        os.makedirs(search + "/x")
        self.run_tool("-s", "-o", out, "-d", search)
        self.assertFalse(os.path.exists("/tmp/opd-dots-escape.c"))

    # ---- assembly ----

    def test_assembly_is_that_of_objdump(self):
        first, last = self.ranges["hot"][0], self.ranges["warm"][1]
        self.put([(key, 1) for key in range(first, last)])
        wanted = self.instructions(self.program)
        seen = {}
        for line in self.run_tool("-a").split("\n"):
            match = re.match(r".{15}:( *([0-9a-f]+):\t.*)$", line)
            if match:
                seen[int(match[2], 16)] = match[1]
        self.assertGreater(len(seen), 10)
        self.assertEqual(seen, {vma: wanted[vma] for vma in seen})

    def test_columns_of_addresses(self):
        for i, (address, option) in enumerate(((0x400000, "-O1"), (0x10000000, "-O1"), (0x7f0000000000, "-mcmodel=large"))):
            self.program = self.build("at%d" % i, PROGRAM, "-Wl,-Ttext=0x%x" % address, option)
            first, last = elfsyms.symbol_ranges(self.program, ("hot",))["hot"]
            shutil.rmtree(os.path.join(self.dir, "samples"), ignore_errors=True)
            self.put([(first, 3)])
            seen = re.findall(r"^.{15}:( *[0-9a-f]+:\t.*)$", self.run_tool("-a"), re.M)
            wanted = self.instructions(self.program)
            self.assertGreater(len(seen), 3)
            self.assertEqual(seen, [wanted[int(line.split(":")[0], 16)] for line in seen], hex(address))

    def test_labels_within_a_function(self):
        """Labels that the assembler kept do not end the function."""
        self.program = self.build("labels", PROGRAM, "-Wa,-L")
        first, last = elfsyms.symbol_ranges(self.program,
                                            ("hot", "warm"))["hot"][0], elfsyms.symbol_ranges(self.program, ("warm",))["warm"][0]
        self.put([(key, 1) for key in range(first, last)])
        seen, nr_samples = self.seen(self.run_tool("-a"))
        self.assertEqual((nr_samples, sum(count for count, _ in seen.values())), (last - first, last - first))

    def test_assembly_layout(self):
        self.put([(self.ranges["warm"][0] + 1, 4)])
        out = self.run_tool("-a").split(" */\n", 1)[1]
        vma = [int(line.split()[0], 16) for line in self.objdump(self.program).split("\n") if line.endswith("<warm>:")][0]
        head = [BLANK + ":", BLANK + ":" + self.program + ":     file format elf64-x86-64", BLANK + ":", BLANK + ":",
                BLANK + ":Disassembly of section .text:", BLANK + ":", "%016x <warm>: /* warm total:      4 100.000 */" % vma]
        self.assertEqual(out.split("\n")[:7], head)
        self.assertEqual(out.split("\n")[7], "     4 100.000 :" + self.instructions(self.program)[vma])

    def test_mixed(self):
        self.put([(self.ranges["hot"][0], 30)])
        out = self.run_tool("-s", "-a")
        self.assertIn(BLANK + ":\t\tsum += twice(i);\n", out)
        self.assertIn("call ", out)
        self.assertLess(out.index("sum += twice(i);"), out.index("call "))

    def test_disassembler_parameters(self):
        self.put([(self.ranges["hot"][0], 30)])
        out = self.run_tool("-a", "--objdump-params=-M intel")
        self.assertRegex(out, r"DWORD PTR")
        self.assertIn('objdump ; "-M intel"', out)
        self.assertEqual(self.run_tool("-a",
                                       "--objdump-params=-d --disassembler-options=intel  -w "
                                       "--no-show-raw-insn").split(" */\n", 1)[1], out.split(" */\n", 1)[1])
        for word in ("-j", "-D", "-r", "--prefix-addresses", "--start-address=0x1000", "-dS"):
            self.run_tool("-a", "--objdump-params=-M intel %s .data" % word, rc=1)
            self.assertIn("--objdump-params: %s is not supported" % word, self.errors)
        self.run_tool("-a", "--objdump-params=-C -M", rc=1)
        self.assertIn("--objdump-params: -M needs a value", self.errors)
        mixed = self.run_tool("-a", "--objdump-params=-S").split(" */\n", 1)[1]
        self.assertEqual(mixed, self.run_tool("-a", "-s").split(" */\n", 1)[1])

    def test_parameters_are_those_of_objdump(self):
        """Bytes beside instructions, on lines of their own where there are many, zeros, and names
        of C++.
        """
        self.program = self.build("raw", "long _Z3abcl(long a) { return a + 0x1122334455667788; }\nlong hot(long a) { "
                                         "return _Z3abcl(a); }\n"
                                  "__asm__(\".globl zeros\\nzeros: .zero 24\\n ret\\n\");\nvoid _start(void) { hot(1); }\n")
        with open(self.program, "rb") as stream:
            self.put([(key, 1) for key in range(0x1000, min(0x1100, len(stream.read())))])
        for options in (("--show-raw-insn",), ("-z",), ("-C",), ("-C", "-z", "--show-raw-insn", "-M", "intel")):
            out = self.run_tool("-a", "--objdump-params=" + " ".join(options))
            wanted = self.objdump(self.program, *options)
            for before, pattern in ((".{15}:", r"( *[0-9a-f]+:\t.*)"), ("", r"([0-9a-f]{16} <.*>:)"), (".{15}:", r"(\t\.\.\.)")):
                seen = re.findall("^%s%s" % (before, pattern), out, re.M)
                self.assertEqual(sorted(seen), sorted(re.findall(r"^%s" % pattern, wanted, re.M)), options)
            self.assertIn("<abc(long)>:" if "-C" in options else "<_Z3abcl>:", out)

    def test_stripped_image(self):
        wanted = self.instructions(self.program)
        subprocess.run(["strip", self.program], check=True)
        self.put([(self.ranges["hot"][0], 30)])
        out = self.run_tool("-a")
        vma = [int(m[1], 16) for m in re.finditer(r"^    30 100.000 : *([0-9a-f]+):", out, re.M)]
        self.assertEqual(len(vma), 1)
        self.assertIn(vma[0], wanted)

    def test_names_of_addresses_are_those_of_objdump(self):
        """A program at a fixed address with exported names only, and one without any names."""
        text = PROGRAM.replace("static int", "int")
        for options, name in ((("-Wl,--export-dynamic", "-fno-pie", "-no-pie", "-Wl,--dynamic-linker=/none",
                                "-Wl,--no-as-needed", "-lc"), "exports"), ((), "none")):
            source, program = os.path.join(self.dir, name + ".c"), os.path.join(self.dir, name)
            with open(source, "w", encoding="utf-8") as stream:
                stream.write(text)
            subprocess.run([shutil.which("gcc") or shutil.which("clang") or "cc", "-O1", "-fno-inline",
                            "-nostartfiles", "-fno-pie", "-no-pie", "-o", program, source,
                            *(options or ("-nostdlib", "-static"))], check=True)
            place = elfsyms.symbol_ranges(program, FUNCTIONS)["warm"][0]
            subprocess.run(["strip", program], check=True)
            shutil.rmtree(os.path.join(self.dir, "samples"), ignore_errors=True)
            put_image(self.dir, program, [(place, 3)])
            wanted = self.instructions(program)
            line = re.search(r"^     3 100.000 :( *([0-9a-f]+):\t.*)$", self.run_tool("-a"), re.M)
            self.assertEqual(line[1], wanted[int(line[2], 16)])
            self.assertRegex(line[1], "call +[0-9a-f]+ <hot>$" if options else "call +0x[0-9a-f]+$")

    def test_jit_object(self):
        shutil.copy(self.program, os.path.join(self.dir, "jit.o"))
        text = [line.split() for line in subprocess.run(["nm", self.program], stdout=subprocess.PIPE, check=True,
                                                        universal_newlines=True).stdout.split("\n")]
        hot = [int(word[0], 16) for word in text if word[2:] == ["hot"]][0]
        label = os.path.join(self.dir, "samples", "current", "{root}%s/{dep}/{anon:jit-1}" % self.program)
        write_samples(os.path.join(label, "7.0x%x.0x%x" % (hot, hot + 64), "TIMER.0.0.all.all.all"), [(0, 5)], anon_start=hot)
        shutil.copy(self.program, os.path.join(label, "7.jo"))
        out = self.run_tool("-a")
        self.assertIn("7.jo:     file format elf64-x86-64", out)
        self.assertIn("     5 100.000 :" + self.instructions(self.program)[hot], out)

    def test_module(self):
        """All sections of a module begin at 0: its code shows no names of data or of other
        sections.
        """
        self.build("my-mod.ko", MODULE, "-c", "-ffreestanding")
        module, samples = os.path.join(self.dir, "my-mod.ko"), os.path.join(self.dir,
                "samples/current/{kern}/my_mod/{dep}/{kern}/my_mod")
        write_samples(os.path.join(samples, "TIMER.0.0.all.all.all"), [(0, 5), (1, 3)], kernel=1)
        out = self.run_tool("-a", "-p", self.dir)
        wanted = self.objdump(module, "--section=.text").split("<helper>:\n")[1].split("\n\n")[0].strip("\n")
        self.assertEqual(re.findall(r"^.{15}:( +[0-9a-f]+:\t.*)$", out, re.M), wanted.split("\n"))
        self.assertEqual(re.findall(r"<([a-z_]+)>:", out), ["helper"])
        self.assertIn("     8 100.000 :", out)
        self.assertIn("Disassembly of section .text:", out)
        self.assertNotIn("Disassembly of section .init.text:", out)
        self.assertIn("/* helper total:      8 100.000 */", self.run_tool("-s", "-p", self.dir))

    # ---- large code ----

    def build_large(self, name, before="", after="", behind=""):
        """hot and warm, with 17 MiB of instructions between them."""
        fill = '__asm__(".text\\n%s .fill %d, 8, 0x841f0f\\n%s");\n' % (before, (17 << 20) // 8, after)
        return self.build(name, PROGRAM.replace("int warm(", fill + "int warm(") + behind)

    def instructions_of(self, program, *ranges):
        return {int(m[1], 16): m[0] for first, last in ranges
                for m in re.finditer(r"^ *([0-9a-f]+):\t.*$", self.objdump(program, "--start-address=%d" % first,
                        "--stop-address=%d" % last), re.M)}

    def seen(self, out):
        """{address: (samples, line)} of the instructions, and the samples of all lines."""
        lines = [line for line in out.split(" */\n", 1)[1].split("\n")]
        found = [(line[:6].strip(), re.match(r".{15}:( *([0-9a-f]+):\t.*)$", line)) for line in lines]
        return ({int(match[2], 16): (int(count or 0), match[1]) for count, match in found if match},
                sum(int(line[:6]) for line in lines if line[:6].strip().isdigit()))

    def test_large_image_without_symbols(self):
        program = self.build_large("large")
        ranges, address = elfsyms.symbol_ranges(program, FUNCTIONS), {name: ends[0] for name,
                                                                      ends in self.addresses(program).items()}
        subprocess.run(["strip", program], check=True)
        wanted = self.instructions_of(program, *((address[name], address[name] + 16) for name in FUNCTIONS))
        put_image(self.dir, program, [(ranges["hot"][0], 30), (ranges["warm"][0], 10)])
        seen, nr_samples = self.seen(self.run_tool("-a"))
        self.assertEqual(nr_samples, 40)
        self.assertEqual((seen[address["hot"]], seen[address["warm"]]),
                         ((30, wanted[address["hot"]]), (10, wanted[address["warm"]])))
        self.assertLess(len(seen), 1000)
        self.assertNotIn("no code is shown", self.errors)
        path = os.path.join(self.dir, "page.html")
        self.make_page(path)
        page = Page()
        page.feed(self.read(path).decode())
        self.assertEqual([int(link.split("-")[1], 16) for link in page.links], [address["hot"], address["warm"]])
        self.assertTrue(set(page.links) <= page.ids, page.links)

    def addresses(self, program):
        return {name: (first, last) for name, first, last in elfsyms.all_ranges(program, by_address=True)}

    def test_large_function(self):
        """The name and total of a function stand above the code around its samples. Code that is
        left out keeps its samples in the total.
        """
        program = self.build_large("large", before=".globl huge\\n.type huge,@function\\nhuge:", behind="int huge(void);\n")
        first, last = elfsyms.symbol_ranges(program, ("huge",))["huge"]
        vma, end = self.addresses(program)["huge"]
        self.assertGreater(end - vma, 16 << 20)
        put_image(self.dir, program, [(first + 8 * 1000, 5), (last - 1, 6)])
        out = self.run_tool("-a")
        seen, nr_samples = self.seen(out)
        wanted = self.instructions_of(program, (vma + 7000, vma + 9000), (end - 16, end))
        self.assertEqual(nr_samples, 11)
        self.assertEqual(seen[vma + 8000], (5, wanted[vma + 8000]))
        self.assertIn("%016x <huge>: /* huge total:     11 100.000 */\n%s:\t[0x%x bytes are left out]\n" % (vma,
                BLANK, 8000 - 128), out)
        self.assertLess(len(seen), 200)
        self.assertEqual(out.count("bytes are left out"), 2)

    def test_more_than_is_shown_of_large_code(self):
        """Of 70,000 addresses in 17 MiB, those with the most samples are shown, and the others are
        reported.
        """
        nr_places, nr_hot, step = 70000, 10000, 256
        places = '__asm__(".text\\n.globl huge\\n.type huge,@function\\n' \
            'huge: .rept %d\\n .byte 0x0f,0x1f,0x84,0,0,0,0,0\\n .skip %d\\n .endr\\n");\n' % (
            nr_places, step - 8)
        program = self.build("many", PROGRAM.replace("int warm(", places + "int warm("), "-g0")
        first, vma = elfsyms.symbol_ranges(program, ("huge",))["huge"][0], self.addresses(program)["huge"][0]
        put_image(self.dir, program, [(first + step * i, 1 + (i >= nr_places - nr_hot)) for i in range(nr_places)])
        seen, nr_samples = self.seen(self.run_tool("-a"))
        self.assertEqual(nr_samples, nr_places + nr_hot, "those of gaps stand beside them")
        shown = [i for i in range(nr_places) if vma + step * i in seen]
        nr_shown = sum(seen[vma + step * i][0] for i in shown)
        self.assertEqual(shown[-nr_hot:], list(range(nr_places - nr_hot, nr_places)))
        self.assertGreater(len(shown), nr_places * 9 // 10)
        self.assertLess(len(shown), nr_places)
        self.lost(program, " %d samples (" % (nr_places + nr_hot - nr_shown), "beyond the 16 MiB that are shown")

    # ---- code that is not there ----

    def lost(self, image, *texts):
        """The line about this file, which contains these texts."""
        lines = [line for line in self.errors.split("\n") if line.startswith("warning: no code is shown for ")
                 and " of %s: " % image in line]
        self.assertEqual(len(lines), 1, self.errors)
        for text in texts:
            self.assertIn(text, lines[0])

    def test_names_without_code(self):
        """A perf map has names but no code: its functions have totals."""
        label = os.path.join(self.dir, "samples/current/{root}%s/{dep}/{anon:jit-1}" % self.program)
        ends = self.addresses(self.program)
        for name, nr_samples in (("hot", 30), ("warm", 10)):
            write_samples(os.path.join(label, "7.0x%x.0x%x" % ends[name], "TIMER.0.0.all.all.all"), [(0, nr_samples)],
                          anon_start=ends[name][0])
        subprocess.run(["objcopy", "--only-keep-debug", self.program, os.path.join(label, "7.jo")], check=True)
        out = self.run_tool("-a").split(" */\n", 1)[1]
        self.assertEqual(out, "%s:\n%s:%s/7.jo:     no code\n%s:\n    30 75.0000 :/* hot total:     30 75.0000 */\n"
                              "    10 25.0000 :/* warm total:     10 25.0000 */\n" % (BLANK, BLANK, label, BLANK))
        self.lost(label + "/7.jo", "40 samples (100.000%)", "a jitdump has both, a perf map has names")
        path = os.path.join(self.dir, "page.html")
        self.make_page(path)
        self.lost(label + "/7.jo", "40 samples (100.000%)")

    def test_images_without_code(self):
        """Each function has a line with its samples and a total, also with two events."""
        below = os.path.join(self.dir, "samples/current")
        app = "{root}%s/{dep}" % self.program
        places = {"[vdso]": app + "/{anon:[vdso]}/0.0x0.0x2000", "anon": app + "/{anon:anon}/7.0x1000.0x2000",
                  "no-vmlinux": "{kern}/no-vmlinux/{dep}/{kern}/no-vmlinux",
                  "/gone": "{root}/gone/{dep}/{root}/gone"}
        for i, place in enumerate(places.values(), 1):
            write_samples(os.path.join(below, place, "TIMER.0.0.all.all.all"), [(16, i)], anon_start=0x1000 if i == 2 else 0)
        self.put([(self.ranges["hot"][0], 30), (0, 20)])
        out = self.run_tool("-a")
        for image, count, reason in (("[vdso]", 1, "does not know of which build"), ("anon", 2, "a jitdump is kept"),
                                     ("no-vmlinux", 3, "no file with code"),
                                     ("/gone", 4, "could not be found")):
            name = [line for line in re.findall(r"of (.*): ", self.errors) if image in line]
            self.assertEqual(len(name), 1, self.errors)
            self.lost(name[0], " %d samples (" % count, reason)
            self.assertRegex(out, r"\n +%d +[0-9.]+ :/\* %s total: +%d +[0-9.]+ \*/\n" % (count, re.escape(name[0]), count))
        self.put([(self.ranges["hot"][0], 6)], event="OTHER.7.0.all.all.all")
        self.run_tool("-a")
        self.lost(name[0], "0, 4 samples (0%, ")

    def test_samples_outside_the_code(self):
        """In a file without symbols, samples in the headers belong to no instruction."""
        subprocess.run(["strip", self.program], check=True)
        self.put([(0, 20), (self.ranges["hot"][0], 30)])
        self.run_tool("-a")
        self.lost(self.program, "20 samples (40.0000%)", "in no section of code")

    def test_code_of_another_file(self):
        """There were two files at this path, and nothing says whose samples these are: no code is
        shown with them.
        """
        plain = os.path.join(self.dir, "samples/current/{root}%s/{dep}/{root}%s" % (self.program, self.program))
        subprocess.run(["strip", self.program], check=True)
        self.put([(self.ranges["hot"][0], 30)])
        other = plain + " (inode 1)"
        write_samples(os.path.join(other, "TIMER.0.0.all.all.all"), [(self.ranges["warm"][0], 10)])
        seen, nr_samples = self.seen(self.run_tool("-a"))
        self.assertEqual((len(seen), nr_samples), (0, 40))
        self.lost(self.program, "30 samples (75.0000%)", "of another file than the one that is there")
        self.lost(self.program + " (inode 1)", "10 samples (25.0000%)", "another file took its place")

    # ---- the page ----

    def test_page(self):
        self.put([(self.ranges["hot"][0], 30), (self.ranges["warm"][0], 10)])
        path = os.path.join(self.dir, "page.html")
        self.assertEqual(self.run_tool("--html=" + path), "")
        with open(path, encoding="utf-8") as stream:
            text = stream.read()
        page = Page()
        page.feed(text)
        self.assertEqual(page.foreign, [])
        self.assertEqual(len(page.links), 2)
        self.assertTrue(set(page.links) <= page.ids, page.links)
        marked = {mark for _, mark, ident in page.rows if mark and not ident}
        self.assertTrue({link[1:] for link in page.links} <= marked, "instructions of the hottest lines")
        self.assertIn("i &lt; n", text)
        self.assertRegex(text, r"<tr class=h[5-9] id=s0-")

    def test_page_of_an_image_without_symbols(self):
        """The code around the samples is shown, with links to the hottest instructions. Samples
        outside of code hide nothing.
        """
        wanted = self.instructions(self.program)
        subprocess.run(["strip", "--remove-section=.eh_frame", self.program], check=True)
        self.put([(0, 5), (self.ranges["hot"][0], 30), (self.ranges["warm"][0], 10)])
        write_samples(os.path.join(self.dir, "samples/current/{root}/gone/{dep}/{root}/gone/TIMER.0.0.all.all.all"), [(4, 5)])
        path = os.path.join(self.dir, "page.html")
        self.make_page(path)
        text, page = self.read(path).decode(), Page()
        page.feed(text)
        self.assertEqual(len(page.links), 2)
        self.assertTrue(set(page.links) <= page.ids, page.links)
        hot, warm = [int(link.split("-")[1], 16) for link in page.links]
        self.assertIn(hot, wanted)
        self.assertEqual(warm - hot, self.ranges["warm"][0] - self.ranges["hot"][0])
        self.assertIn("<tr class=h9 id=%s><td class=n>30<td class=n>60.0000<td class=a>%x" % (page.links[0], hot), text)
        self.assertIn("<h3>%s <span class=t>45 90.0000%%</span></h3>" % self.program, text)
        self.assertIn("<h3>/gone <span class=t>5 10.0000%</span></h3>", text)
        self.assertNotIn("Not on this page", text)
        self.assertRegex(self.run_tool("-a"), r"    30 60\.0000 : *%x:" % hot)
        self.run_tool("--html=" + path, "-t", "20")
        self.assertIn("<h2>Not on this page <span class=t>5 10.0000%</span></h2>", self.read(path).decode())

    def test_functions_without_names(self):
        """A function that only .eh_frame knows has its code under its address."""
        wanted = self.instructions(self.program)
        subprocess.run(["strip", self.program], check=True)
        self.put([(0, 5), (self.ranges["hot"][0], 30)])
        path = os.path.join(self.dir, "page.html")
        self.make_page(path)
        text, page = self.read(path).decode(), Page()
        page.feed(text)
        hot = int(page.links[0].split("-")[1], 16)
        self.assertIn(hot, wanted)
        self.assertIn("<h3>[0x%x] <span class=t>prog</span> <span class=t>30 85.7143%%</span></h3>" % hot, text)
        listing = self.run_tool("-a")
        self.assertEqual(len(re.findall(r"    30 85\.7143 : *%x:" % hot, listing)), 1)
        self.assertRegex(listing, r"(?m)^0*%x <\[0x%x\]>: .*\[0x%x\] total: +30 85\.7143" % (hot, hot, hot))

    def test_page_without_debug_information(self):
        subprocess.run(["strip", "-g", self.program], check=True)
        self.put([(self.ranges["hot"][0], 30)])
        path = os.path.join(self.dir, "page.html")
        self.make_page(path)
        text, page = self.read(path).decode(), Page()
        page.feed(text)
        self.assertEqual(len(page.links), 1)
        self.assertTrue(set(page.links) <= page.ids, page.links)
        self.assertIn(">hot:", text)

    def make_page(self, path, rc=0):
        self.run_tool("--html=" + path, rc=rc)

    def read(self, path):
        with open(path, "rb") as stream:
            return stream.read()

    def test_page_replaces_pages_alone(self):
        self.put([(self.ranges["hot"][0], 30)])
        page, others, link = os.path.join(self.dir, "page.html"), os.path.join(self.dir,
                "others"), os.path.join(self.dir, "link.html")
        self.make_page(page)
        first, names = self.read(page), sorted(os.listdir(self.dir))
        with open(others, "w", encoding="ascii") as stream:
            stream.write("<!DOCTYPE html>\n<html>precious</html>\n")
        os.link(self.source, os.path.join(self.dir, "hard.html"))
        for victim in (self.source, others, self.program, os.path.join(self.dir, "hard.html")):
            os.symlink(victim, link)
            before = self.read(victim)
            for path in (victim, link):
                self.make_page(path, rc=1)
                self.assertIn("%s: not replaced, because it is not a page of opannotate" % path, self.errors)
                self.assertEqual(self.read(victim), before)
            os.unlink(link)
        os.chmod(page, 0o604)
        with open(page, "ab") as stream:
            stream.write(b"old")
        old = os.stat(page).st_ino
        os.symlink(page, link)
        self.make_page(link)
        self.assertTrue(os.path.islink(link))
        self.assertEqual((self.read(page), os.stat(page).st_mode & 0o777),
                         (first.replace(b"--html=" + page.encode(), b"--html=" + link.encode()), 0o604))
        self.assertNotEqual(os.stat(page).st_ino, old)
        with open(page, "w", encoding="ascii"):
            pass
        self.make_page(page)
        self.assertEqual(self.read(page), first)
        self.assertEqual(sorted(set(os.listdir(self.dir)) - {"others", "hard.html", "link.html"}), names)

    def test_page_that_cannot_be_written(self):
        self.put([(self.ranges["hot"][0], 30)])
        os.symlink("nowhere", os.path.join(self.dir, "dangling"))
        for path, words in ((self.dir, "Is a directory"), (self.dir + "/none/page", "No such file"),
                            (self.dir + "/dangling", "leads nowhere"),
                            ("/dev/full", "No space left")):
            self.make_page(path, rc=1)
            self.assertIn(words, self.errors)
        self.assertFalse([name for name in os.listdir(self.dir) if name.startswith(".op")])

    def test_page_to_a_stream(self):
        self.put([(self.ranges["hot"][0], 30)])
        text = self.run_tool("--html=/dev/stdout")
        self.assertTrue(text.startswith("<!DOCTYPE html>") and text.endswith("</html>\n"))
        done = subprocess.run([OPANNOTATE, "--session-dir=" + self.dir, "--html=-"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=True, cwd=self.dir,
                              universal_newlines=True)
        self.assertEqual(done.stdout, text.replace("--html=/dev/stdout", "--html=-"))
        self.assertFalse(os.path.exists(os.path.join(self.dir, "-")))
        log = os.path.join(self.dir, "log")
        with open(log, "w", encoding="ascii") as stream:
            stream.write("precious\n")
            stream.flush()
            subprocess.run([OPANNOTATE, "--session-dir=" + self.dir, "--html=/dev/stdout"], stdout=stream, check=True,
                           stderr=subprocess.DEVNULL)
        self.assertEqual(self.read(log).decode(), "precious\n" + text)

    # ---- refusals ----

    def test_refusals(self):
        self.put([(self.ranges["hot"][0], 30)])
        for arguments, wanted in ((("-x",), "you must specify at least"), (("-a", "-o", "x"), "--output-dir"),
                                  (("-s", "-t", "200"), "illegal threshold"), (("-s", "--nonsense"), "--nonsense"),
                                  (("-a", "--include-file=x"), "meaningless with --assembly"),
                                  (("-s", "/not/there"), "selects no samples"),
                                  (("-s", "{", "session:current", "}", "{}"), "opreport alone compares profiles")):
            self.assertEqual(self.run_tool(*arguments, rc=1), "")
            self.assertIn(wanted, self.errors)


if __name__ == "__main__":
    unittest.main()
