#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports from an archive are those from home, byte for byte, when nothing of home is left. Run
from the build directory by `make check`.
"""
import os
import platform
import pwd
import re
import shutil
import struct
import signal
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path[:0] = [os.path.join(SOURCE, "tests", "system"), os.path.join(SOURCE, "tests", "unit")]
import elfsyms  # noqa: E402
from archive_case import FUNCTIONS, TOOLS, ArchiveCase  # noqa: E402
from sample_files import ALL, PACKERS, put_image, write_ledger, write_samples  # noqa: E402

KERNEL, BUILD_ID = 0xffffffff81000000, bytes(range(20))
KERNEL_CODE = bytes.fromhex("90 90 31 c0 c3 90 90 90")  # nop, nop, xor %eax,%eax; ret, nop, nop, nop
OF_MODULES = (("opreport", "-l"), ("opreport", "-X", "-d"), ("opreport", "--images"), ("opreport", "-l", "-g"),
              ("opannotate", "-a"))
HOLES = 1 << 30  # OPR_HOLE_BYTES_MAX
KERNEL_SAMPLES = "samples/current/{root}/proc/kallsyms/{dep}/{root}/proc/kallsyms/TIMER.0.0." + ALL
HANG_SECONDS = 120
NOBODY = 65534


class Archive(ArchiveCase):
    def put_jit(self):
        start = 0x401000
        label = os.path.join(self.session, "samples", "current", "{root}%s/{dep}/{anon:jit-1}" % self.program)
        write_samples(os.path.join(label, "7.0x%x.0x%x" % (start, start + 64), "TIMER.0.0." + ALL), [(0, 5)], anon_start=start)
        shutil.copy(self.program, os.path.join(label, "7.jo"))

    def test_longest_name(self):
        program = os.path.join(self.home, "p" * 255)
        os.rename(self.program, program)
        self.put(program, {"hot": 1})
        self.archive()
        self.assertTrue(os.path.exists(self.away + program))

    def test_same_reports(self):
        self.put(self.program, {"hot": 60, "warm": 30})
        self.put(self.program, {"hot": 3}, app=self.build("other"))
        self.put_jit()
        ranges = elfsyms.symbol_ranges(self.program, FUNCTIONS)
        below = "{root}%s/{dep}/{root}%s/{cg}/{root}%s/TIMER.0.0.%s" % (3 * (self.program,) + (ALL,))
        write_samples(os.path.join(self.session, "samples/current", below), [(ranges["warm"][0] << 32 | ranges["hot"][0], 4)])
        reports = self.check_same()
        self.assertIn("7.jo", reports[("opreport",)])
        self.assertIn("[self]", reports[("opreport", "-c")])
        self.assertIn(self.program, reports[("opreport", "-f")])

    def test_debug_file(self):
        self.put(self.program, {"hot": 60, "warm": 30})
        self.strip_to_debug_file(self.program)
        reports = self.check_same()
        self.assertIn("prog.c:1", reports[("opreport", "-l", "-f", "-g")])
        self.assertTrue(os.path.exists(self.away + self.home + "/.debug/prog.debug"))

    def let_others_in(self):
        """Lets other users enter the temporary directory."""
        os.chmod(self.dir, 0o755)
        if subprocess.run([os.path.join(TOOLS, "oparchive"), "--version"], user=NOBODY, check=False,
                          capture_output=True).returncode:
            self.skipTest("another user cannot run the programs of this build directory")

    @unittest.skipIf(os.geteuid(), "to be another user takes root")
    def test_unreadable_images(self):
        """Two files: not readable, and in a directory that is closed."""
        self.let_others_in()
        closed, hidden, other = os.path.join(self.home, "closed"), os.path.join(self.home, "hidden"), self.build("other")
        self.put(self.program, {"hot": 60})
        self.put(other, {"hot": 2})
        for path, directory in ((closed, self.home), (hidden + "/prog", hidden)):
            os.makedirs(directory, exist_ok=True)
            shutil.copy(self.program, path)
            self.put(path, {"hot": 3})
        os.chmod(closed, 0o700)
        os.chown(closed, 1, 1)
        os.chmod(hidden, 0o700)
        os.chmod(other, 0)
        os.mkdir(self.dir + "/out", 0o777)
        os.chmod(self.dir + "/out", 0o777)
        away, where = self.dir + "/out/archive", ("-l", "-n", "-f", "--session-dir=" + self.session)
        self.run_tool("oparchive", *where[3:], "-o", away, rc=1, user=NOBODY)
        for path, who in ((closed, "root and its owner %s can" % pwd.getpwuid(1).pw_name),
                          (hidden + "/prog", "root can"), (other, "root can")):
            self.assertIn("%s cannot be read (Permission denied): it is left out; %s read it: run oparchive as "
                          "root" % (path, who), self.errors)
        self.assertIn("3 files are left out", self.errors)
        self.run_tool("oparchive", *where[3:], "-l", rc=1, user=NOBODY)
        self.assertIn("3 files are left out", self.errors)
        self.run_tool("oparchive", "--check=" + away, rc=1)
        for path in (closed, hidden + "/prog", other):
            self.assertIn("%s could not be read when the archive was made" % path, self.errors)
        self.assertEqual(self.run_tool("opreport", *where[:3], "archive:" + away), self.run_tool("opreport", *where, user=NOBODY))
        self.run_tool("oparchive", "archive:" + away, "-o", self.away, rc=1)
        self.assertIn("%s could not be read." % closed, self.errors)
        shutil.rmtree(self.away)
        self.archive()

    @unittest.skipIf(os.geteuid(), "to be another user takes root")
    def test_others_read_what_they_could(self):
        """No more than at home, also in a directory that is open to them; into one that is made
        here they cannot go."""
        self.let_others_in()
        private, group = os.path.join(self.home, "private"), os.path.join(self.home, "group")
        os.mkdir(private)
        os.chmod(private, 0o700)
        for path, mode in ((private + "/prog", 0o755), (group, 0o750), (self.program, 0o755)):
            if path != self.program:
                shutil.copy(self.program, path)
            os.chmod(path, mode)
            self.put(path, {"hot": 3})
        write_samples(os.path.join(self.session, KERNEL_SAMPLES), [(0, 1)], kernel=1)
        self.addCleanup(os.umask, os.umask(0o022))
        self.run_tool("oparchive", "--session-dir=" + self.session, "-o", self.dir + "/new/archive")
        self.assertEqual({os.stat(path).st_mode & 0o777 for path, _, _ in os.walk(self.dir + "/new")}, {0o700})
        os.makedirs(self.away + private)  # open, as what an older oparchive made
        os.mkdir(self.away + "/proc")
        self.archive()
        modes = {path: self.archived(path).st_mode & 0o777 for path in (self.program, private + "/prog", group,
                "/proc/kallsyms", "/opd-archive", "/SHA256SUMS")}
        self.assertEqual(modes, {self.program: 0o755, private + "/prog": 0o700, group: 0o700, "/proc/kallsyms": 0o400,
                                 "/opd-archive": 0o600, "/SHA256SUMS": 0o600})
        for path in (private + "/prog", group, "/proc/kallsyms"):
            self.assertNotEqual(subprocess.run(["cat", self.away + path], user=NOBODY, group=NOBODY, extra_groups=[],
                                               check=False, capture_output=True).returncode, 0)
        subprocess.run(["cat", self.away + self.program], user=NOBODY, group=NOBODY, extra_groups=[], check=True,
                       capture_output=True)

    def test_hidden_kernel(self):
        root = os.path.join(self.home, "root")
        self.put_kernel(root)
        with open(root + "/proc/kallsyms", "w", encoding="ascii") as stream:
            stream.write("".join("%016x T %s\n" % (0, name) for name in ("_text", "first_code", "_etext")))
        self.run_tool("oparchive", "--session-dir=" + self.session, "-o", self.away, "--root=" + root, rc=1)
        self.assertIn("%s/proc/kallsyms hides the kernel's addresses" % root, self.errors)
        self.run_tool("oparchive", "--check=" + self.away, rc=1)
        self.assertIn("%s/proc/kallsyms could not be read when the archive was made" % root, self.errors)

    def test_replaced_images(self):
        """Files that are gone for everybody: a warning, as the report gives it."""
        self.put(self.program, {"hot": 60})
        put_image(self.session, "/gone/image", [(1, 40)])
        with open(os.path.join(self.session, "samples/current/dcookies"), "w", encoding="ascii") as stream:
            row = (1, "file", self.program, self.program, "-", "-", "0123456789ab", "0:0", 0, 0, "0.000000000", 0, 0, 1, 1)
            stream.write("opd-dcookies 1\nnext\t2\n%s\n" % "\t".join(map(str, row)))
        for replace in (lambda: None, lambda: os.unlink(self.program), lambda: os.mkfifo(self.program),
                        lambda: os.mkdir(self.program)):
            if not os.path.isfile(self.program) and os.path.exists(self.program):
                os.unlink(self.program)
            replace()
            self.archive()
            self.assertIn("%s could not be found" % self.program, self.errors)
            self.assertIn("/gone/image could not be found.", self.errors)
            self.run_tool("oparchive", "--check=" + self.away)
            shutil.rmtree(self.away)

    def without_archive_note(self):
        """Only at home the release is known, and so the archive of the debug packages."""
        return re.sub("note: packages NAME-dbgsym .*\n", "", self.errors)

    def check_same_images(self):
        """The listing of files, and the warnings of a report of symbols."""
        def told(*where):
            found = []
            for arguments in (("--images", "-f"), ("--images", "--format=json"), ("-l",)):
                output = self.run_tool("opreport", *arguments, *where)
                found += [output, self.without_archive_note()]
            return found
        before = told("--session-dir=" + self.session)
        self.archive()
        os.rename(self.home, self.home + ".gone")
        self.assertEqual(told("archive:" + self.away), before)
        os.rename(self.home + ".gone", self.home)
        again = self.away + "2"
        self.run_tool("oparchive", "archive:" + self.away, "-o", again)
        shutil.rmtree(self.away)
        self.assertEqual(told("archive:" + again), before)
        return before

    def test_same_images(self):
        """Of images with debug files here and there, one that is gone, one that was replaced, one
        of a package; also from an archive of an archive."""
        self.put(self.program, {"hot": 60})
        self.strip_to_debug_file(self.program)
        put_image(self.session, os.path.realpath("/bin/ls"), [(0x4000, 50)])
        put_image(self.session, "/gone/image", [(1, 40)])
        other = self.build("other") + " (build-id 0123456789ab)"
        put_image(self.session, other, [(1, 30)])
        with open(os.path.join(self.session, "samples/current/dcookies"), "w", encoding="ascii") as stream:
            stream.write("opd-dcookies 1\nnext\t3\n")
            for cookie, kind, kernel, name in ((1, "file", 0, other), (2, "file", 1, "/proc/kallsyms (build-id 0123456789ab)")):
                row = (cookie, kind, name, name[:name.index(" ")], "-", "-", "0123456789ab", "0:0", 0, 0,
                       "0.000000000", kernel, 1, 1, 1)
                stream.write("%s\n" % "\t".join(map(str, row)))
        put_image(self.session, "/proc/kallsyms (build-id 0123456789ab)", [(1, 20)], kernel=1)
        write_ledger(os.path.join(self.session, "samples/current"), 200)
        told = self.check_same_images()
        self.assertIn(self.program + ".debug", told[0])
        self.assertIn("replaced", told[0])
        self.assertIn("not found", told[0])
        self.assertIn("/bin/ls has no names for functions with", told[5])
        if shutil.which("dpkg-query"):
            self.assertIn("package coreutils-dbgsym", told[0])

    def test_facts_are_of_home(self):
        self.put(self.program, {"hot": 60})
        subprocess.run(["strip", self.program], check=True)
        self.archive()
        with open(self.away + "/opd-archive", "a", encoding="utf-8") as stream:
            stream.write("package\t%s\tsome-dbgsym\n" % self.program)
        self.assertIn("package some-dbgsym", self.run_tool("opreport", "--images", "archive:" + self.away))

    def test_absent_image_is_searched_for(self):
        """Missing files come from a named directory, not from the reading host."""
        self.put(self.program, {"hot": 60})
        os.rename(self.program, self.program + ".away")
        self.archive()
        os.rename(self.program + ".away", self.program)
        self.assertNotIn("hot", self.run_tool("opreport", "-l", "-n", "archive:" + self.away))
        self.assertIn("%s could not be found" % self.program, self.errors)
        self.assertIn("hot", self.run_tool("opreport", "-l", "-n", "archive:" + self.away, "-p", self.home))

    def test_kernel_symbols(self):
        write_samples(os.path.join(self.session, KERNEL_SAMPLES),
                      [(64 * i, 1 + i % 3) for i in range(100)], kernel=1)
        before = self.run_tool("opreport", "-l", "-w", "--session-dir=" + self.session)
        self.archive()
        with open(self.away + "/proc/kallsyms", "rb") as copy, open("/proc/kallsyms", "rb") as original:
            self.assertEqual(copy.readline(), original.readline())
        self.assertEqual(self.run_tool("opreport", "-l", "-w", "archive:" + self.away), before)

    def put_kernel(self, root):
        """A fake machine with a kernel of 8 bytes, and a session with its build-id."""
        for where in ("proc", "sys/kernel"):
            os.makedirs(os.path.join(root, where))
        with open(root + "/proc/kallsyms", "w", encoding="ascii") as stream:
            stream.write("".join("%016x T %s\n" % (KERNEL + at, name) for at,
                                 name in ((0, "_text"), (0, "first_code"), (4, "second_code"), (8, "_etext"))))
        with open(root + "/sys/kernel/notes", "wb") as stream:
            stream.write(struct.pack("<III4s", 4, 20, 3, b"GNU") + BUILD_ID)
        with open(root + "/proc/kcore", "wb") as stream:
            stream.write(struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 4, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0))
            stream.write(struct.pack("<IIQQQQQQ", 1, 5, 120, KERNEL - 16, 0, 64, 64, 1) + bytes(16) + KERNEL_CODE + bytes(40))
        write_samples(os.path.join(self.session, KERNEL_SAMPLES), [(2, 5), (4, 7)], kernel=1)
        with open(os.path.join(self.session, "samples/current/dcookies"), "w", encoding="ascii") as stream:
            row = (1, "file", "/proc/kallsyms", "/proc/kallsyms", "-", "-", BUILD_ID.hex(), "0:0", 0, 0, "0.000000000", 0, 1, 1, 1)
            stream.write("opd-dcookies 1\nnext\t2\n%s\n" % "\t".join(map(str, row)))
        write_ledger(os.path.join(self.session, "samples/current"), 12)

    @unittest.skipUnless(platform.machine() == "x86_64", "the code is of x86-64")
    def test_another_kernel(self):
        """Symbols and code of a kernel that does not run, found by its build-id."""
        root = os.path.join(self.home, "root")
        self.put_kernel(root)
        home, away = ("--session-dir=" + self.session, "--root=" + root), ("archive:" + self.away,)
        self.archive("--root=" + root)
        self.assertIn(root + "/proc/kcore", self.run_tool("oparchive", "-l", *home).split("\n"))
        for what in (("opreport", "-l", "-w"), ("opreport", "--images", "-f"), ("opannotate", "-a")):
            there = self.run_tool(*what, *home).split("*/\n", 1)[-1]
            self.assertEqual(self.errors, "")
            os.rename(root, root + ".gone")
            self.assertEqual(self.run_tool(*what, *away).split("*/\n", 1)[-1], there.replace(root, ""), what)
            self.assertEqual(self.errors, "")
            os.rename(root + ".gone", root)
            self.assertIn("second_code" if what[1] != "--images" else BUILD_ID.hex(), there)
        self.assertRegex(there, r"     5 41\.6667 :ffffffff81000002:\txor    %eax,%eax\n")
        self.assertEqual(os.stat(self.away + "/proc/kcore").st_mode & 0o777, 0o400)
        os.unlink(self.away + "/proc/kcore")
        self.run_tool("opannotate", "-a", *away)
        self.assertIn("the kernel's code cannot be read from %s/proc/kcore (No such file or directory)" % self.away, self.errors)

    def test_modules(self):
        for suffix in ("", *PACKERS):
            self.check_modules(suffix)

    def test_damaged_modules(self):
        """One symbol, and a line that names the file; the rest of the report is there."""
        write_samples(os.path.join(self.session,
                                   "samples/current/{kern}/my_mod/{dep}/{kern}/my_mod/TIMER.0.0." + ALL), [(0, 5)], kernel=1)
        self.put(self.program, {"hot": 60})
        for suffix, pack in PACKERS.items():
            with open(self.program, "rb") as program, open(self.home + "/my-mod.ko" + suffix, "wb") as module:
                packed = pack(program.read())
                module.write(packed[:len(packed) // 2])
            out = self.run_tool("opreport", "-l", "-n", "--session-dir=" + self.session, "--image-path=" + self.home)
            self.assertEqual([line.split() for line in out.splitlines()], [["60", "92.3077", "prog", "hot"],
                    ["5", "7.6923", "my-mod.ko" + suffix, "/my_mod"]])
            self.assertIn("my-mod.ko%s is not in a usable binary format" % suffix, self.errors)
            os.unlink(self.home + "/my-mod.ko" + suffix)

    def check_modules(self, suffix):
        """Also compressed ones, as distributions have them: the same reports, and the archive has
        them as they are."""
        modules = os.path.join(self.dir, "usr/lib/modules/1.2.3/kernel")
        os.makedirs(modules)
        packed = modules + "/my-mod.ko" + suffix
        with open(self.program, "rb") as program, open(packed, "wb") as module:
            module.write(PACKERS.get(suffix, bytes)(program.read()))
        os.utime(packed, (1, 1))
        write_samples(os.path.join(self.session,
                                   "samples/current/{kern}/my_mod/{dep}/{kern}/my_mod/TIMER.0.0." + ALL), [(0, 5)], kernel=1)
        home = ("--session-dir=" + self.session, "--image-path=" + modules)
        before = [self.run_tool(*what, *home).split("</setup>")[-1].split(" */\n")[-1].replace(packed,
                packed[len(self.dir):]) for what in OF_MODULES]
        hot = elfsyms.symbol_ranges(self.program, FUNCTIONS)["hot"]
        with open(self.program, "rb") as program:
            program.seek(hot[0])
            code = program.read(hot[1] - hot[0])
        self.assertIn("hot", before[0])
        self.assertIn(code.hex().upper(), before[1])
        self.assertIn("debug info", before[2])
        self.assertIn("prog.c:1", before[3])
        self.assertIn("     5 100.000 :", before[4])
        self.archive("--root=" + self.dir, "--image-path=" + modules)
        shutil.rmtree(os.path.join(self.dir, "usr"))
        self.assertEqual([self.run_tool(*what, "archive:" + self.away).split("</setup>")[-1].split(" */\n")[-1]
                          for what in OF_MODULES], before)
        shutil.rmtree(self.away)

    def test_selection(self):
        self.put(self.program, {"hot": 60})
        self.put(self.build("other"), {"hot": 5})
        self.put(self.program, {"hot": 7}, session="old")
        os.makedirs(self.session + "/samples/current/stats")
        with open(self.session + "/samples/current/stats/throttled", "w", encoding="utf-8"):
            pass
        listed = self.run_tool("oparchive", "-l", "--session-dir=" + self.session, self.program, "session:current").split("\n")
        self.assertEqual(sorted(path for path in listed if not path.startswith(self.session)), ["", self.program])
        self.archive(self.program)
        self.assertFalse(os.path.exists(self.away + self.home + "/other"))
        self.assertFalse(os.path.exists(self.away + "/var/lib/oprofile/samples/old"))
        self.assertTrue(os.path.exists(self.away + "/var/lib/oprofile/samples/current/stats/throttled"))
        self.assertEqual(self.run_tool("opreport", "-n", "archive:" + self.away), "       60 100.000 prog\n")
        self.assertEqual(os.stat(self.away + self.program).st_mtime, 1)

    def test_checksums(self):
        self.put(self.program, {"hot": 60})
        self.archive()
        subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=self.away, check=True)
        self.run_tool("oparchive", "--check=" + self.away)
        with open(self.away + self.program, "r+b") as stream:
            stream.seek(100)
            stream.write(b"X")
        self.run_tool("oparchive", "--check=" + self.away, rc=1)
        self.assertIn("checksum is wrong", self.errors)
        os.unlink(self.away + self.program)
        self.run_tool("oparchive", "--check=" + self.away, rc=1)

    def test_files_without_checksums(self):
        """A sample file that was added later is counted; --check reports it."""
        self.put(self.program, {"hot": 60})
        self.archive()
        self.run_tool("opreport", "archive:" + self.away)
        self.assertEqual(self.errors.count("checksum"), 0)
        samples = os.path.join(self.away, "var/lib/oprofile/samples/current/")
        fake = "{root}/bin/fake/{dep}/{root}/bin/fake/TIMER.0.0." + ALL
        write_samples(samples + fake, [(1, 40)])
        for where in ((), ("session:" + samples,)):
            self.assertIn("40.0000 fake", self.run_tool("opreport", "-n", "archive:" + self.away, *where))
            self.assertIn("1 of the sample files in %s, for example var/lib/oprofile/samples/current/%s, have no "
                          "checksum" % (self.away, fake), self.errors)
        for name in ("notes", "{root}/TIMER.0.0.all.all.all.oparchive.1"):
            with open(samples + name, "w", encoding="ascii"):
                pass
        os.symlink("notes", samples + "link")
        self.run_tool("oparchive", "--check=" + self.away, rc=1)
        for name in (fake, "notes", "{root}/TIMER.0.0.all.all.all.oparchive.1", "link"):
            self.assertIn("current/%s: it has no checksum" % name, self.errors)
        self.assertEqual(self.errors.count("\n"), 4)
        os.unlink(samples + "{root}/TIMER.0.0.all.all.all.oparchive.1")
        os.unlink(self.away + "/SHA256SUMS")
        self.run_tool("opreport", "archive:" + self.away)
        self.assertIn("SHA256SUMS: No such file or directory: whether the sample files are those that were archived "
                      "is not known", self.errors)
        os.unlink(self.away + "/opd-archive")
        self.run_tool("opreport", "archive:" + self.away)
        self.assertNotIn("SHA256SUMS", self.errors)

    # ---- more than one session, one after another ----

    def archive_session(self, name, rc=0, *arguments):
        return self.run_tool("oparchive", "--session-dir=" + self.session, "-o", self.away, "session:" + name, *arguments, rc=rc)

    def told_of(self, session, *where):
        """Listing of images, reports and their warnings, of one session."""
        told = []
        for arguments in (("--images", "-f"), ("--images", "--format=json"), ("-l", "-n", "-f"), ("-d",)):
            told += [self.run_tool("opreport", *arguments, *where, "session:" + session),
                     self.without_archive_note().replace(self.away + "/var/lib/oprofile", self.session)]
        return told

    def snapshot(self):
        found = {}
        for path, _, names in os.walk(self.away):
            for name in names:
                with open(os.path.join(path, name), "rb") as stream:
                    found[os.path.join(path, name)] = stream.read(), os.fstat(stream.fileno()).st_mtime_ns
        return found

    def put_sessions(self):
        """`one` and `two` have an image together, each has one more, and one that is absent."""
        debug = self.build("debug", "-g")
        self.strip_to_debug_file(debug)
        for session, images in (("one", (self.program, "/gone/one", debug, os.path.realpath("/bin/ls"))),
                                ("two", (self.program, "/gone/two", self.build("other")))):
            for count, image in enumerate(images):
                put_image(self.session, image, [(0x1001, 10 + count)], session=session)
            write_ledger(os.path.join(self.session, "samples", session), sum(10 + count for count in range(len(images))))

    def test_sessions_one_after_another(self):
        """Reports of each session are those from home, unchanged by another one."""
        self.put_sessions()
        home = {session: self.told_of(session, "--session-dir=" + self.session) for session in ("one", "two")}
        self.archive_session("one")
        before = self.snapshot()
        self.archive_session("two")
        after = self.snapshot()
        self.assertEqual({path: what for path, what in after.items() if path in before
                          and os.path.basename(path) not in ("opd-archive", "SHA256SUMS")},
                         {path: what for path, what in before.items() if os.path.basename(path) not in ("opd-archive",
                                 "SHA256SUMS")})
        self.assertTrue(after[self.away + "/opd-archive"][0].startswith(before[self.away + "/opd-archive"][0]))
        lines = after[self.away + "/opd-archive"][0].splitlines()
        self.assertEqual(len(lines), len(set(lines)))
        os.rename(self.home, self.home + ".gone")
        for session, told in home.items():
            self.assertEqual(self.told_of(session, "archive:" + self.away), told)
        both = self.run_tool("opreport", "-l", "-n", "archive:" + self.away,
                             *(word for session in home for word in ("{", "session:" + session, "}")))
        self.assertRegex(both, "prog")
        self.run_tool("oparchive", "--check=" + self.away)
        subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=self.away, check=True)

    def test_loss_stays_told(self):
        """What was changed or is gone since the first is wrong after the second, too."""
        self.put_sessions()
        self.archive_session("one")
        gone = self.away + "/var/lib/oprofile/samples/one/{root}/gone/one/{dep}/{root}/gone/one/TIMER.0.0." + ALL
        os.unlink(gone)
        with open(self.away + self.home + "/debug", "r+b") as stream:
            stream.write(b"X")
        for again in (False, True):
            if again:
                self.archive_session("two")
            self.run_tool("opreport", "archive:" + self.away, "session:one")
            self.assertIn("11 samples of TIMER:0 are gone", self.errors)
            self.run_tool("oparchive", "--check=" + self.away, rc=1)
            self.assertIn(gone + ": No such file", self.errors)
            self.assertIn(self.home + "/debug: its checksum is wrong", self.errors)
            self.assertEqual(self.errors.count("\n"), 2)

    def test_image_comes_back(self):
        """A missing file that the second session has, too, is there again."""
        self.put_sessions()
        self.archive_session("one")
        os.unlink(self.away + self.program)
        self.archive_session("two")
        self.run_tool("oparchive", "--check=" + self.away)

    def test_other_images_of_a_later_session(self):
        """Different images: those of the first session stay, the others are reported."""
        self.put_sessions()
        put_image(self.session, "/gone/one", [(1, 1)], session="two")
        put_image(self.session, self.home + "/later", [(1, 1)], session="one")
        put_image(self.session, self.home + "/later", [(1, 1)], session="two")
        put_image(self.session, self.home + "/debug", [(1, 1)], session="two")
        self.archive_session("one")
        first = self.told_of("one", "archive:" + self.away)
        facts = self.snapshot()[self.away + "/opd-archive"][0]
        with open(self.program, "ab") as stream:
            stream.write(b"another")
        os.utime(self.home + "/debug", (2, 2))
        shutil.copy(self.program, self.home + "/later")
        self.archive_session("two", rc=1)
        for path, why in ((self.program, "another file has its name"),
                          (self.home + "/debug", "another file has its name"),
                          (self.home + "/later", "this file is listed as absent")):
            self.assertIn("%s is left out: %s in %s, from an earlier session, whose files are not replaced" % (path, why,
                    self.away), self.errors)
        self.assertIn("3 files are left out", self.errors)
        self.assertEqual(self.told_of("one", "archive:" + self.away), first)
        self.run_tool("oparchive", "--check=" + self.away, rc=1)
        for path in (self.program, self.home + "/debug", self.home + "/later"):
            self.assertIn("%s of a later session was left out" % path, self.errors)
        self.assertEqual(self.errors.count("\n"), 3)
        self.assertNotIn(b"package", self.snapshot()[self.away + "/opd-archive"][0][len(facts):])

    @unittest.skipUnless(os.path.exists("/usr/bin/dpkg-query"), "the package of an image is known to dpkg")
    def test_what_is_said_of_an_image_is_said_once(self):
        program, root = os.path.realpath("/bin/ls"), os.path.join(self.home, "root")
        os.makedirs(root + os.path.dirname(program))
        shutil.copy2(program, root + program)
        for session in ("one", "two"):
            put_image(self.session, program, [(1, 1)], session=session)
        self.archive_session("one", 0, "--root=" + root)
        first = self.told_of("one", "archive:" + self.away)
        self.archive_session("two")
        self.assertEqual(self.told_of("one", "archive:" + self.away), first)

    def test_image_that_is_gone_by_the_second_session(self):
        self.put_sessions()
        self.archive_session("one")
        first = self.told_of("one", "archive:" + self.away)
        os.unlink(self.program)
        self.archive_session("two")
        self.assertIn("%s could not be found" % self.program, self.errors)
        self.assertEqual(self.told_of("one", "archive:" + self.away), first)

    def test_kernels_of_two_sessions(self):
        """Symbols of modules come and go, and addresses are others after a boot: that is one
        kernel."""
        root = os.path.join(self.home, "root")
        self.put_kernel(root)
        shutil.copytree(self.session + "/samples/current", self.session + "/samples/two")
        shutil.copytree(self.session + "/samples/current", self.session + "/samples/three")
        self.archive_session("current", 0, "--root=" + root)
        kept = {path: what for path, what in self.snapshot().items() if "/proc/" in path.replace("{root}/proc", "")}
        self.assertEqual(len(kept), 2)
        with open(root + "/proc/kallsyms", encoding="ascii") as stream:
            text = stream.read().replace("ffffffff81", "ffffffff82")
        with open(root + "/proc/kallsyms", "w", encoding="ascii") as stream:
            stream.write(text + "%016x t in_module\t[module]\n" % (KERNEL + (1 << 30)))
        self.archive_session("two", 0, "--root=" + root)
        with open(root + "/proc/kallsyms", "w", encoding="ascii") as stream:
            stream.write(text.replace("second", "other"))
        self.archive_session("three", 1, "--root=" + root)
        self.assertIn("%s/proc/kallsyms is left out: the symbols of another kernel are already in %s" % (root, self.away),
                      self.errors)
        self.assertEqual({path: what for path, what in self.snapshot().items() if path in kept}, kept)

    def test_refused_sessions(self):
        """The archive stays what it is when a session is there, when its sessions are another
        directory's, when it is damaged, and after an interrupt."""
        self.put_sessions()
        self.archive_session("one")
        before = self.snapshot()
        self.archive_session("one", 1)
        self.assertIn("%s is an archive with a session one: name another directory, or remove %s first" % (self.away,
                self.away), self.errors)
        other = os.path.join(self.dir, "elsewhere")
        shutil.copytree(self.session, other)
        self.run_tool("oparchive", "--session-dir=" + other, "-o", self.away, "session:two", rc=1)
        self.assertIn("the sessions in %s are from %s: archive those in %s into another directory" % (self.away,
                self.session, other), self.errors)
        self.run_tool("oparchive", "--session-dir=" + self.session, "-o", self.away,
                      "session:two,%s/samples/two" % other, "-x", rc=1)
        os.mkdir(self.away + "/SHA256SUMS.tmp")  # what it is written to
        self.archive_session("two", 1)
        os.rmdir(self.away + "/SHA256SUMS.tmp")
        self.assertEqual({path: what[0] for path, what in self.snapshot().items()},
                         {path: what[0] for path, what in before.items()})
        before = self.snapshot()
        self.put_holes()
        self.interrupt(signal.SIGTERM)
        self.assertEqual(self.snapshot(), before)
        for name in ("SHA256SUMS", "opd-archive"):
            os.rename(self.away + "/" + name, self.away + "/" + name + ".away")
            self.archive_session("two", 1)
            self.assertIn("the archive that is in %s is damaged" % self.away, self.errors)
            os.rename(self.away + "/" + name + ".away", self.away + "/" + name)
        with open(self.away + "/opd-archive", "a", encoding="ascii") as stream:
            stream.write("left-out\tthis\n")
        self.archive_session("two", 1)
        self.assertIn("is damaged (opd-archive and SHA256SUMS: a checksum is wrong or missing): nothing is added to "
                      "it", self.errors)
        self.run_tool("oparchive", "--check=" + self.away, rc=1)

    def test_sessions_of_one_name(self):
        self.put_sessions()
        other = os.path.join(self.dir, "elsewhere")
        put_image(other, "/gone/three", [(1, 1)], session="two")
        self.run_tool("oparchive", "--session-dir=" + self.session, "-o", self.away, "session:two,%s/samples/two" % other, rc=1)
        self.assertIn("more than one of the sessions would be two in the archive", self.errors)
        self.assertFalse(os.path.exists(self.away))

    def test_nothing_is_written_through_links(self):
        self.put(self.program, {"hot": 60})
        victim = os.path.join(self.dir, "victim")
        os.makedirs(victim)
        os.makedirs(os.path.dirname(self.away + self.home))
        os.symlink(victim, self.away + self.home)
        self.run_tool("oparchive", "--session-dir=" + self.session, "-o", self.away, rc=1)
        self.assertEqual(os.listdir(victim), [])

    def archived(self, path):
        return os.stat(self.away + path)

    def test_holes(self):
        """The holes of a program stay holes, in the middle and at the end."""
        self.put(self.program, {"hot": 60})
        with open(self.program, "r+b") as stream:
            stream.seek(40 << 20)
            stream.write(b"behind")
            stream.truncate(64 << 20)
        os.utime(self.program, (1, 1))
        self.check_same()
        subprocess.run(["cmp", self.program, self.away + self.program], check=True)
        self.assertLess(self.archived(self.program).st_blocks * 512, 4 << 20)
        subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=self.away, check=True)
        self.run_tool("oparchive", "--check=" + self.away)

    def test_too_many_holes(self):
        """A program that somebody made a tebibyte long is cut, what is all holes is left out, and
        both are told."""
        self.put(self.program, {"hot": 60})
        other, third = self.build("other"), os.path.join(self.home, "third")
        self.put(other, {"hot": 5})
        put_image(self.session, third, [(1, 7)])
        length = os.stat(self.program).st_size
        os.truncate(self.program, 1 << 40)
        with open(self.program, "r+b") as stream:
            stream.seek(-1, os.SEEK_END)
            stream.write(b"X")
        with open(other, "r+b") as stream:  # a section that ends there, and no byte of it
            header = struct.unpack("<16sHHIQQQIHHHHHH", stream.read(64))
            stream.seek(header[6] + 64 * (header[12] - 1) + 24)
            stream.write(struct.pack("<QQ", 4096, (1 << 40) - 4096))
            stream.truncate(1 << 40)
        with open(third, "wb") as stream:
            stream.truncate(HOLES + 4096)
        for path in (self.program, other, third):
            os.utime(path, (1, 1))
        before = self.run_tool("opreport", "-l", "-n", "--session-dir=" + self.session, self.program)
        self.run_tool("oparchive", "--session-dir=" + self.session, "-o", self.away, rc=1)
        self.assertIn("%s has too many holes: what its ELF headers do not name, %u bytes from %u on, is left "
                      "out" % (self.program, (1 << 40) - length, length), self.errors)
        for path in (other, third):
            self.assertIn("%s has more than %u bytes of holes" % (path, HOLES), self.errors)
            self.assertFalse(os.path.exists(self.away + path))
        self.assertIn("3 files are left out or damaged", self.errors)
        self.assertEqual(self.archived(self.program).st_size, length)
        self.assertEqual(self.run_tool("opreport", "-l", "-n", "archive:" + self.away, self.program), before)
        subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=self.away, check=True)
        self.run_tool("oparchive", "--check=" + self.away, rc=1)
        self.assertIn("%s was cut off when the archive was made" % self.program, self.errors)
        self.assertIn("%s could not be read when the archive was made" % other, self.errors)
        os.truncate(self.away + self.program, 1 << 40)
        self.run_tool("oparchive", "--check=" + self.away, rc=1)
        self.assertIn("%s: File too large" % self.program, self.errors)

    def put_holes(self):
        """They keep an oparchive busy for a minute."""
        for number in range(16):
            path = os.path.join(self.home, "image-%u" % number)
            shutil.copy(self.program, path)
            os.truncate(path, HOLES)
            put_image(self.session, path, [(1, 1)])

    def begin(self):
        """An oparchive that has copied half of its first file."""
        run = subprocess.Popen([os.path.join(TOOLS, "oparchive"), "--session-dir=" + self.session, "-o", self.away],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        begun, end = False, time.monotonic() + HANG_SECONDS
        while not begun and time.monotonic() < end:
            begun = any(".oparchive." in name for _, _, names in os.walk(self.away) for name in names)
        self.addCleanup(run.stderr.close)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        self.assertTrue(begun)
        return run

    def interrupt(self, number, run=None):
        run = run or self.begin()
        run.send_signal(number)
        errors = run.communicate(timeout=HANG_SECONDS)[1].decode()
        self.assertEqual(run.returncode, 1, errors)
        self.assertIn("interrupted: nothing was kept", errors)

    def test_interrupt(self):
        """The new archive is gone, and older files are as before."""
        self.put_holes()
        self.interrupt(signal.SIGTERM)
        self.assertFalse(os.path.exists(self.away))
        os.makedirs(self.away + self.dir)
        with open(self.away + "/mine", "w", encoding="ascii"):
            pass
        self.interrupt(signal.SIGINT)
        self.assertEqual([(path, names) for path, _, names in os.walk(self.away) if names], [(self.away, ["mine"])])
        self.assertEqual(os.listdir(self.away + self.dir), [])

    def test_one_at_a_time(self):
        """The second oparchive is refused; leftovers of a killed one are harmless."""
        self.put_holes()
        run, small = self.begin(), os.path.join(self.dir, "small")
        put_image(small, self.program, [(1, 1)], session="other")
        arguments = ("--session-dir=" + small, "session:other", "-o", self.away)
        self.run_tool("oparchive", *arguments, rc=1)
        self.assertIn("%s is being written by another oparchive (process %u)" % (self.away, run.pid), self.errors)
        self.assertFalse(os.path.exists(self.away + "/var"))
        self.interrupt(signal.SIGTERM, run)
        self.assertFalse(os.path.exists(self.away))
        run = self.begin()
        run.kill()
        run.wait()
        self.assertTrue(os.path.exists(self.away + "/opd-archive.lock"))
        self.run_tool("oparchive", *arguments)
        self.run_tool("oparchive", "--check=" + self.away)
        self.assertFalse(os.path.exists(self.away + "/opd-archive.lock"))

    @unittest.skipIf(os.geteuid(), "only root can mount a small file system")
    def test_room(self):
        """An archive that does not fit is not begun or is removed."""
        self.put(self.program, {"hot": 60})
        with open(self.program, "ab") as stream:
            stream.write(bytes(1 << 20))
        os.mkdir(self.away)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "opd", self.away], stderr=subprocess.DEVNULL,
                          check=False).returncode:
            self.skipTest("nothing can be mounted here")
        try:
            self.run_tool("oparchive", "--session-dir=" + self.session, "-o", self.away, rc=1)
            self.assertIn("%s: there is no room for it in %s" % (self.program, self.away), self.errors)
            self.assertEqual(os.listdir(self.away), [])
        finally:
            subprocess.run(["umount", self.away], check=True)

    def test_list_on_a_full_disk(self):
        self.put(self.program, {"hot": 60})
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([os.path.join(TOOLS, "oparchive"), "--session-dir=" + self.session, "-l"],
                                  stdout=full, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"cannot write to the standard output: No space left on device", done.stderr)

    def test_refusals(self):
        self.put(self.program, {"hot": 60})
        for arguments in ((), ("-o", "/"), ("-o", self.away, "/not/there")):
            self.assertEqual(self.run_tool("oparchive", "--session-dir=" + self.session, *arguments, rc=1), "")


if __name__ == "__main__":
    unittest.main()
