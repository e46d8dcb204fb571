#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Symbols of stripped images: no name is wrong, and the rows of a report add up to its summary.

Run from the build directory by `make check`. Every byte of code has a sample. The symbols of the
same image before it was stripped say to which function the byte belongs; readelf and objdump say the
same of images of this machine.
"""
import csv
import io
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.dont_write_bytecode = True
SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path[:0] = [os.path.join(SOURCE, "tests", "system"), os.path.join(SOURCE, "tests", "unit")]
import elfsyms  # noqa: E402
from elfsyms import Image, SHT_DYNSYM  # noqa: E402
from sample_files import ALL, put_image, write_samples  # noqa: E402

TOOLS = os.path.abspath(os.environ.get("TOOLS", "bin"))
# Exported and hidden functions, an alias, entries of the PLT, and assembler functions: without a
# size, without a range in .eh_frame, and with both.
LIBRARY = r"""
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#define KEEP __attribute__((noinline, noclone, used))
static KEEP long hidden_sum(const long *v, long n) { long s = 0; for (long i = 0; i < n; i++) s += v[i] * i; return s; }
KEEP long shown_first(long n) { long *v = malloc(8 * n); long s; memset(v, 1, 8 * n); s = hidden_sum(v, n); free(v); return s; }
static KEEP long hidden_twice(long n) { return shown_first(n) + shown_first(n / 2); }
KEEP long shown_second(long n) { if (__builtin_expect(n < 0, 0)) { puts("negative"); abort(); } return hidden_twice(n); }
long shown_alias(long n) __attribute__((alias("shown_second")));
static KEEP long hidden_last(long n) { return n ^ 3; }
KEEP long shown_last(long n) { return hidden_last(n) + 1; }
__asm__(".text\n.type local_table, @function\nlocal_table:\n nop\n nop\n ret\n.size local_table, 3\n"
        ".globl bare\n.type bare, @function\nbare:\n.cfi_startproc\n nop\n ret\n.cfi_endproc\n"
        ".type after_bare, @function\nafter_bare:\n.cfi_startproc\n nop\n nop\n nop\n ret\n.cfi_endproc\n.size after_bare, 4\n");
"""
# Many more, every second one hidden.
LIBRARY += "".join("static KEEP long hidden_%d(long n) { return n * %d; }\n"
                   "KEEP long shown_%d(long n) { return hidden_%d(n) - 1; }\n" % (i, i + 3, i, i) for i in range(200))
LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"
CHOSEN = r"\*ABS\*\+0x([0-9a-f]+)@plt"
KERNEL = 0xffffffff81000000
KALLSYMS = "%x T _text\n%x T first_function\n%x T _etext\n" % (KERNEL, KERNEL + 0x100, KERNEL + 0x1000)


def run(*words, **options):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, **options).stdout


class Sources(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.images = os.path.realpath(tempfile.mkdtemp())
        source = os.path.join(cls.images, "lib.c")
        cls.full, cls.stripped = os.path.join(cls.images, "libfull.so"), os.path.join(cls.images, "libstripped.so")
        with open(source, "w", encoding="utf-8") as stream:
            stream.write(LIBRARY)
        run(shutil.which("gcc") or shutil.which("clang") or "cc", "-O2", "-fPIC", "-shared", "-fasynchronous-unwind-tables",
            "-Wl,--build-id", "-Wl,-z,lazy", "-fno-semantic-interposition", "-o", cls.full, source)
        run("strip", "-o", cls.stripped, cls.full)
        cls.truth = Image(cls.full)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.images)

    def setUp(self):
        self.dir = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.dir)

    def tool(self, *words, rc=0, env=None):
        done = subprocess.run([os.path.join(TOOLS, words[0]), "--session-dir=" + self.dir, *words[1:]], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False, env={**os.environ, "MALLOC_PERTURB_": "165", **(env or {})})
        self.assertEqual(done.returncode, rc, done.stderr.decode())
        self.errors = done.stderr.decode()
        return done.stdout.decode()

    def names(self, image, *options, env=None, positions=None):
        """{address: name} of all bytes of code, each of which has a sample, or of some."""
        positions = positions or Image(image).positions()
        put_image(self.dir, image, [(position, 1) for position, _ in positions], session="s")
        report = json.loads(self.tool("opreport", "-l", "-d", "--demangle=none", "--format=json", *options, "session:s", env=env))
        found = {}
        for row in report["symbols"]:
            for detail in row["details"] if row["image"] == image else ():
                found[int(detail["address"], 16)] = row["symbol"]
        return found

    def kept(self, *options):
        """The same with the cache, twice."""
        env = {"OPD_CACHE_DIR": os.path.join(self.dir, "cache")}
        first = self.names(self.stripped, *options, env=env)
        self.assertEqual(self.names(self.stripped, *options, env=env), first)
        return first

    def check_names(self, found, truth, named):
        """No name is wrong; `named` functions have theirs at each of their bytes."""
        for vma, name in found.items():
            owners = truth.ranges_of(vma)
            names = set().union(*(names for _, names in owners)) if owners else set()
            at = "%#x is %s, and belongs to %s" % (vma, name, owners)
            if name.startswith("[0x"):
                start = int(name[1:-1], 16)
                self.assertTrue(not owners or any(r[0] <= start < r[1] for r, _ in owners), at)
                self.assertFalse(names & named, at)
            elif not name.endswith("@plt") and not name.startswith("/"):
                self.assertTrue(name in names or not owners, at)
                self.assertTrue(owners or name in truth.without_size, at)
            if names & named:
                self.assertIn(name, names, at)

    # ---- sources ----

    def test_all_sources(self):
        exported = {name for name in set().union(*self.truth.functions.values()) if name.startswith("shown_")}
        found = self.kept()
        self.check_names(found, self.truth, exported)
        shown = set(found.values())
        for name in ("shown_first", "shown_last", "bare", "malloc@plt", "memset@plt"):
            self.assertIn(name, shown)
        for name in ("hidden_sum", "hidden_twice", "hidden_last", "after_bare"):
            starts = [r[0] for r, names in self.truth.functions.items() if name in names]
            self.assertTrue(starts, name)
            self.assertEqual(found[starts[0]], "[0x%x]" % starts[0], name)
        bare = [r[0] for r, names in self.truth.functions.items() if "bare" in names][0]
        self.assertEqual([found.get(bare + i) for i in range(3)], ["bare", "bare", "[0x%x]" % (bare + 2)])

    def test_one_source(self):
        table = next(r[0] for r, names in self.truth.functions.items() if "local_table" in names)
        first = next(r[0] for r, names in self.truth.functions.items() if "shown_first" in names)
        sum_at = next(r[0] for r, names in self.truth.functions.items() if "hidden_sum" in names)
        image = self.stripped
        for sources, wanted in (("dynsym", (image, "shown_first", image)), ("ranges", (image, "[0x%x]" % first, "[0x%x]" % sum_at)),
                                ("dynsym,ranges", (image, "shown_first", "[0x%x]" % sum_at))):
            found = self.kept("--symbols-from=" + sources)
            self.assertEqual(tuple(found[at] for at in (table, first, sum_at)), wanted, sources)
            self.assertFalse([name for name in found.values() if name.endswith("@plt")], sources)
        found = self.kept("--symbols-from=plt")
        self.assertEqual({re.sub(r".*/", "", name) for name in found.values()} - {"libstripped.so"},
                         set(self.plt_of(image).values()))

    def plt_of(self, image):
        """{address: name@plt} as objdump names the entries."""
        text = run("objdump", "-d", "-w", "--no-show-raw-insn", image).decode()
        return {int(at, 16): name for at, name in re.findall(r"^([0-9a-f]+) <([^>]*@plt)>:$", text, re.M)}

    def test_plt_of_this_machine(self):
        for image in ("/bin/ls", "/usr/bin/perl", "/usr/bin/gcc", "/usr/lib/x86_64-linux-gnu/libz.so.1", LIBC):
            if not os.path.exists(image):
                continue
            image = os.path.realpath(image)
            wanted = {at: re.sub(CHOSEN, r"[0x\1]@plt", name) for at, name in self.plt_of(image).items()}
            code = Image(image).code
            positions = [(offset + at - vma, at) for vma, offset, size in code for at in wanted if 0 <= at - vma < size]
            self.assertEqual(self.names(image, "--symbols-from=plt", positions=positions), wanted)

    def test_functions_that_are_chosen(self):
        """Of libc (IRELATIVE): by the function that chooses, if it has a name."""
        if not os.path.exists(LIBC):
            self.skipTest("there is no " + LIBC)
        image = os.path.realpath(LIBC)
        chosen = {at: int(found.group(1), 16) for at, found in
                  ((at, re.fullmatch(CHOSEN, name)) for at, name in self.plt_of(image).items()) if found}
        exported = Image(image, SHT_DYNSYM)
        positions = [(offset + at - vma, at) for vma, offset, size in exported.code for at in chosen if 0 <= at - vma < size]
        found = self.names(image, "--symbols-from=dynsym,plt", positions=positions)
        self.assertEqual(set(found), set(chosen))
        nr_named = 0
        for at, vma in chosen.items():
            names = set().union(*(names for span, names in exported.ranges_of(vma) if span[0] == vma))
            self.assertIn(found[at], {name + "@plt" for name in names} or {"[0x%x]@plt" % vma})
            nr_named += bool(names)
        self.assertTrue(not chosen or nr_named, chosen)
        self.assertNotIn("*ABS*", "".join(self.names(image, "--symbols-from=plt", positions=positions).values()))

    def test_exported_of_this_machine(self):
        """Every byte of an exported function has one of its names, and no byte behind it has one."""
        directory = "/usr/lib/x86_64-linux-gnu/"
        for image in (sys.executable, "/usr/bin/perl", directory + "libz.so.1", directory + "libc.so.6",
                      directory + "libcrypto.so.3"):
            if not os.path.exists(image):
                continue
            image = os.path.realpath(image)
            exported = Image(image, SHT_DYNSYM)
            found = self.names(image, "--symbols-from=dynsym,debugdata,plt,ranges", positions=exported.ends())
            self.assertEqual(set(found), {vma for _, vma in exported.ends()}, image)
            wrong = {}
            for vma, name in found.items():
                owners = exported.ranges_of(vma)
                names = set().union(*(names for _, names in owners)) if owners else set()
                own = name.split("@")[0] in names if names else name.startswith("[0x") or "@plt" in name or name == image
                if not own and name not in ("_init", "_fini"):
                    wrong[hex(vma)] = (name, owners)
            self.assertEqual(wrong, {}, image)

    def test_debugdata(self):
        """A packed table of the hidden functions, as some distributions make it."""
        packed, image = os.path.join(self.dir, "mini"), os.path.join(self.dir, "libmini.so")
        run("objcopy", "--only-keep-debug", self.full, packed)
        run("strip", "--strip-debug", packed)
        for names in self.truth.functions.values():
            for name in names:
                if name.startswith("shown_"):
                    run("objcopy", "--strip-symbol=" + name, packed)
        with open(packed, "rb") as stream:
            data = lzma.compress(stream.read())
        with open(packed + ".xz", "wb") as stream:
            stream.write(data)
        run("objcopy", "--add-section", ".gnu_debugdata=%s.xz" % packed, self.stripped, image)
        everything = set().union(*self.truth.functions.values())
        found = self.names(image)
        self.check_names(found, self.truth, {name for name in everything if re.match("shown_|hidden_|local_|after_", name)})
        self.assertIn("hidden_sum", found.values())
        self.assertNotIn("hidden_sum", self.names(image, "--symbols-from=symtab,dynsym,plt,ranges").values())

    def test_full_image(self):
        """.symtab keeps oprofile's rule; other sources add only what it does not have."""
        old = self.names(self.full, "--symbols-from=symtab")
        new = self.names(self.full)
        self.assertEqual({vma: name for vma, name in new.items() if vma in old and name != old[vma]}, {})
        self.assertEqual({name for vma, name in new.items() if vma not in old and not name.endswith("@plt")
                          and not name.startswith("[0x") and name != self.full}, set())

    def test_symtab_alone(self):
        self.assertEqual(set(self.names(self.stripped, "--symbols-from=symtab").values()), {self.stripped})
        first = self.tool("opreport", "-l", "--symbols-from=symtab", "session:s")
        self.assertEqual(self.tool("opreport", "-l", "session:s", env={"OPREPORT_SYMBOLS_FROM": "symtab"}), first)
        self.assertNotEqual(self.tool("opreport", "-l", "session:s"), first)
        self.assertNotEqual(self.tool("opreport", "-l", "--symbols-from=dynsym", "session:s",
                                      env={"OPREPORT_SYMBOLS_FROM": "symtab"}), first)

    def test_wrong_names(self):
        for words, env in ((("--symbols-from=symtab,nothing",), {}), ((), {"OPREPORT_SYMBOLS_FROM": "nothing"})):
            for tool in (("opreport", "-l"), ("opannotate", "-a")):
                self.tool(*tool, *words, rc=1, env=env)
                self.assertIn("'nothing'", self.errors)
                self.assertIn("symtab,dynsym,debugdata,plt,ranges", self.errors)
        self.tool("opreport", "--symbols-from=", rc=1)

    # ---- sums ----

    def sums(self, *options):
        """The samples of all rows in each form of the report."""
        text = self.tool("opreport", "-l", "-n", *options)
        found = {"text": sum(int(line.split()[0]) for line in text.splitlines())}
        rows = csv.DictReader(io.StringIO(self.tool("opreport", "-l", "--format=csv", *options)))
        column = [name for name in rows.fieldnames if "samples" in name][0]
        found["csv"] = sum(int(row[column]) for row in rows if row["kind"] == "symbol")
        report = json.loads(self.tool("opreport", "-l", "--format=json", *options))
        found["json"] = sum(row["samples"][0] for row in report["symbols"])
        found["json class"] = report["classes"][0]["samples"]
        tree = xml.etree.ElementTree.fromstring(self.tool("opreport", "-X", *options))
        found["xml"] = sum(int(count.text) for count in tree.iterfind(".//symbol/count"))
        graph = json.loads(self.tool("opreport", "-c", "--format=json", *options))
        found["calls"] = sum(row["samples"][0] for row in graph["symbols"])
        return found

    def summary(self, *options):
        report = json.loads(self.tool("opreport", "--format=json", *options))
        return report["classes"][0]["samples"], sum(row["samples"][0] for row in report["applications"])

    def put_everything(self):
        """Samples in each kind of image, within and outside of its symbols."""
        root = os.path.join(self.dir, "root")
        for image in (self.full, self.stripped, os.path.join(self.images, "gone")):
            size = 1 << 16
            put_image(self.dir, image, [(at, 1 + at % 7) for at in range(0, size, 61)], app=self.full)
        bare = os.path.join(self.images, "nothing")
        run("objcopy", "--remove-section=.eh_frame", "--remove-section=.eh_frame_hdr", self.stripped, bare)
        put_image(self.dir, bare, [(0x1010, 3), (0xffff, 4)])
        os.makedirs(os.path.join(root, "proc"))
        with open(os.path.join(root, "proc", "kallsyms"), "w", encoding="ascii") as stream:
            stream.write(KALLSYMS)
        samples = os.path.join(self.dir, "samples", "current")
        below = "{root}%s/{dep}/" % self.full
        write_samples(os.path.join(samples, below, "{root}/proc/kallsyms/TIMER.0.0." + ALL),
                      [(0x10, 5), (0x200, 6), (0x5000, 7), (0xffffff, 8)], kernel=1)
        write_samples(os.path.join(samples, below, "{kern}/no-vmlinux/TIMER.0.0." + ALL), [(1, 9)], kernel=1)
        write_samples(os.path.join(samples, below, "{kern}/some_module/TIMER.0.0." + ALL), [(1, 10)], kernel=1)
        write_samples(os.path.join(samples, below, "{anon:anon}/77.0x1000.0x2000/TIMER.0.0." + ALL), [(1, 11)],
                      anon_start=0x1000)
        return root

    def test_sums(self):
        root = self.put_everything()
        total, of_applications = self.summary("--root=" + root)
        self.assertEqual(total, of_applications)
        for options in ((), ("--symbols-from=dynsym",), ("-m", "all"), ("-f",), ("-D", "none")):
            found = self.sums("--root=" + root, *options)
            self.assertEqual(found, {form: total for form in found}, options)
        genuine = self.sums("--root=" + root, "--symbols-from=symtab")
        self.assertLess(genuine["text"], total)
        self.assertEqual(genuine, {form: genuine["text"] for form in genuine})

    def test_the_kernel_is_read_once(self):
        """The list of the running kernel is read once in a boot."""
        with open("/proc/kallsyms", encoding="ascii") as stream:
            rows = [line.split() for line in stream]
        text = next((int(row[0], 16) for row in rows if row[2:] == ["_text"]), 0)
        at = next((int(row[0], 16) for row in rows if row[2:] == ["vfs_read"]), 0)
        if not text or not at:
            self.skipTest("the kernel hides its addresses")
        write_samples(os.path.join(self.dir, "samples", "current", "{root}/proc/kallsyms/{dep}/{root}/proc/kallsyms/TIMER.0.0."
                                   + ALL), [(at - text, 5)], kernel=1)
        kept = {"OPD_CACHE_DIR": os.path.join(self.dir, "kept")}
        for is_kept in (False, True):
            self.assertIn("vfs_read", self.tool("opreport", "-l", "--verbose=bfd", env=kept))
            self.assertEqual("/proc/kallsyms: symbols were kept" in self.errors, is_kept, self.errors)

    def test_calls_outside_of_symbols(self):
        """A call from or to code without a symbol is one of the image, and is in the sums."""
        part = "{root}%s/{dep}/{root}%s/" % (self.stripped, self.stripped)
        name = "{cg}/{root}%s/TIMER.0.0." % self.stripped + ALL
        hole = next(r[0] for r, names in self.truth.functions.items() if "local_table" in names)
        first = next(r[0] for r, names in self.truth.functions.items() if "shown_first" in names)
        write_samples(os.path.join(self.dir, "samples", "current", part + "TIMER.0.0." + ALL), [(first, 2), (hole, 3)])
        write_samples(os.path.join(self.dir, "samples", "current", part + name),
                      [(first << 32 | hole, 40), (hole << 32 | first, 2)])
        report = json.loads(self.tool("opreport", "-c", "--format=json"))
        rows = {row["symbol"]: row for row in report["symbols"]}
        self.assertEqual(rows[self.stripped]["callers"][0]["symbol"], "shown_first")
        self.assertEqual(rows[self.stripped]["callers"][0]["samples"], [40])
        self.assertEqual(rows[self.stripped]["samples"], [3])
        self.assertNotIn("hyperspace", self.errors)
        self.tool("opreport", "-c", "--symbols-from=dynsym,plt")
        self.assertNotIn("hyperspace", self.errors)


if __name__ == "__main__":
    unittest.main(verbosity=1)
