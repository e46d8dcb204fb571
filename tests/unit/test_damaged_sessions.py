#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Damaged sessions.

What cannot be read is named and left out, the rest is shown, and the tool ends with 1. Samples that
the ledger has and the files lack are reported.

Run from the build directory by `make check`.
"""
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path[:0] = [os.path.join(SOURCE, "tests", "unit")]
from sample_files import ORDER, ALL, put_image, write_ledger, write_samples  # noqa: E402

TOOLS = os.path.abspath(os.environ.get("TOOLS", "bin"))
OTHER_ORDER = "<>"[ORDER == "<"]
GOOD, BAD = "/gone/good", "/gone/bad"
NOBODY = 65534


def put_bytes(path, offset, data):
    with open(path, "r+b") as stream:
        stream.seek(offset)
        stream.write(data)


def put_socket(path):
    """A path is longer than a socket address may be."""
    there = os.open(os.path.dirname(path), os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("/proc/self/fd/%d/%s" % (there, os.path.basename(path)))
    os.close(there)


def put_other(make):
    def put(path):
        os.unlink(path)
        make(path)
    return put


# The damage to the one sample file of BAD, and the expected warning.
DAMAGES = {
    "empty": (lambda path: os.truncate(path, 0), "Can't read sample file header"),
    "cut": (lambda path: os.truncate(path, 50), "Can't read sample file header"),
    "cut later": (lambda path: os.truncate(path, 1000), ""),
    "magic": (lambda path: put_bytes(path, 0, b"X"), "bad magic number"),
    "version": (lambda path: put_bytes(path, 4, b"\x20"), "version"),
    "other byte order": (lambda path: put_bytes(path, 4, struct.pack(OTHER_ORDER + "I", 0x13)), "convert it with opimport --abi"),
    "cpu type": (lambda path: put_bytes(path, 8, b"\xff\xff"), "invalid cpu type"),
    "current_size": (lambda path: put_bytes(path, 76, b"\xff" * 4), ""),
    "current_size 0": (lambda path: put_bytes(path, 76, bytes(4)), ""),
    "size": (lambda path: put_bytes(path, 72, struct.pack(ORDER + "I", 0x7fffffff)), ""),
    "fifo": (put_other(os.mkfifo), "not a regular file"),
    "socket": (put_other(put_socket), "not a regular file"),
    "directory": (put_other(os.mkdir), "a directory with the name of a sample file"),
    "link to a directory": (put_other(lambda path: os.symlink("/", path)), "a symbolic link to a directory"),
    "link to itself": (put_other(lambda path: os.symlink(os.path.basename(path), path)),
                       "a symbolic link to a directory, or to itself"),
}
REPORTS = (("opreport",), ("opreport", "-l"), ("opreport", "-X"), ("opreport", "-c"), ("opreport", "--images"),
           ("opreport", "--format=json", "-d"),
           ("opannotate", "-a"), ("opannotate", "-s"))


class Damaged(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.dir = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.dir)
        self.session = os.path.join(self.dir, "session")
        self.current = os.path.join(self.session, "samples", "current")
        put_image(self.session, GOOD, [(1, 60)])
        put_image(self.session, BAD, [(1, 40)])
        self.bad = self.path_of(BAD)

    def path_of(self, image):
        return os.path.join(self.current, "{root}%s/{dep}/{root}%s/TIMER.0.0.%s" % (image, image, ALL))

    def run_tool(self, tool, *arguments, rc=0, user=None):
        done = subprocess.run([os.path.join(TOOLS, tool), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              **({} if user is None else {"user": user, "group": user, "extra_groups": []}))
        self.errors = done.stderr.decode()
        self.assertEqual(done.returncode, rc, self.errors)
        return done.stdout.decode()

    def report(self, *arguments, rc=0):
        return self.run_tool("opreport", "-n", "--session-dir=" + self.session, *arguments, rc=rc)

    def fresh(self):
        """A session with the good file alone, then with both files."""
        shutil.rmtree(self.session)
        put_image(self.session, GOOD, [(1, 60)])
        good = {what: self.run_tool(*what, "--session-dir=" + self.session) for what in REPORTS}
        put_image(self.session, BAD, [(1, 40)])
        return good

    # ---- what cannot be read ----

    def check_left_out(self, path, words):
        lines = [line for line in self.errors.splitlines() if path in line]
        self.assertEqual(len(lines), 1, self.errors)
        self.assertTrue(lines[0].startswith("warning: ") and words in lines[0] and "it is left out" in lines[0], lines[0])

    def test_every_damage(self):
        for name, (damage, words) in DAMAGES.items():
            good = self.fresh()
            damage(self.bad)
            for what, text in good.items():
                with self.subTest(damage=name, what=what):
                    self.assertEqual(self.run_tool(*what, "--session-dir=" + self.session, rc=1), text)
                    self.check_left_out(self.bad, words)
                    self.assertIn("%s: 1 file or directory was left out" % what[0], self.errors)

    def test_the_other_byte_order_is_no_damage(self):
        DAMAGES["other byte order"][0](self.bad)
        with open(self.bad, "rb") as stream:
            before = stream.read()
        out = self.run_tool("opcheck", "--session-dir=" + self.session, "--repair", rc=2)
        self.assertRegex(out + self.errors, "bad.*convert it with opimport --abi")
        with open(self.bad, "rb") as stream:
            self.assertEqual(stream.read(), before)
        self.assertFalse(os.path.exists(os.path.join(self.session, "damaged")))

    def test_the_other_byte_order_leaves_the_ledger(self):
        """What cannot be read here is not counted as 0."""
        DAMAGES["other byte order"][0](self.bad)
        write_ledger(self.current, 100)
        with open(os.path.join(self.current, "ledger"), encoding="ascii") as stream:
            before = stream.read()
        self.run_tool("opcheck", "--session-dir=" + self.session, "--repair", rc=2)
        with open(os.path.join(self.current, "ledger"), encoding="ascii") as stream:
            self.assertEqual(stream.read(), before)

    def test_it_is_alone(self):
        shutil.rmtree(os.path.join(self.current, "{root}", "gone", "good"))
        DAMAGES["magic"][0](self.bad)
        self.assertEqual(self.report(rc=1), "")
        self.assertIn("opreport: No sample found", self.errors)

    def test_what_is_not_selected(self):
        DAMAGES["magic"][0](self.bad)
        self.assertIn("60", self.report(GOOD))
        self.assertEqual(self.errors, "")

    def test_stray_files(self):
        strays = {"{root}/notes.txt": "not the name", "{kern}/.swp": "not the name",
                  "{root}/fifo": "not a regular file", "{root}/dir": "a symbolic link to a directory"}
        os.makedirs(os.path.join(self.current, "{kern}"))
        for path in list(strays)[:2]:
            with open(os.path.join(self.current, path), "w", encoding="ascii"):
                pass
        os.mkfifo(os.path.join(self.current, "{root}/fifo"))
        os.symlink("/usr", os.path.join(self.current, "{root}/dir"))
        both = self.report(rc=1)
        self.assertEqual(both.split(), ["60", "60.0000", "good", "40", "40.0000", "bad"])
        for path, words in strays.items():
            self.check_left_out(os.path.join(self.current, path), words)
        self.assertIn("4 files and directories were left out", self.errors)

    def test_links(self):
        """One that leads nowhere is of no account, as with the genuine tools, but told; to a file
        it is followed; that of a whole directory of samples is not.
        """
        os.symlink("nowhere", os.path.join(self.current, "{root}", "dangling"))
        elsewhere = os.path.join(self.dir, "elsewhere")
        os.rename(self.bad, elsewhere)
        os.symlink(elsewhere, self.bad)
        self.assertIn("40.0000 bad", self.report())
        self.check_left_out("{root}/dangling", "leads nowhere")
        os.rename(os.path.join(self.current, "{root}", "gone", "bad"), elsewhere + ".d")
        os.symlink(elsewhere + ".d", os.path.join(self.current, "{root}", "gone", "bad"))
        self.assertEqual(self.report(rc=1).split(), ["60", "100.000", "good"])
        self.check_left_out("{root}/gone/bad", "a symbolic link to a directory")

    def test_image_with_the_name_of_a_sample_file(self):
        name = "/gone/TIMER.0.0." + ALL
        put_image(self.session, name, [(1, 100)])
        self.assertIn("100 50.0000 TIMER.0.0." + ALL, self.report())
        self.assertEqual(self.errors, "")

    @unittest.skipUnless(os.geteuid() == 0, "to be another user takes root")
    def test_no_access(self):
        os.chmod(self.dir, 0o755)
        if subprocess.run([os.path.join(TOOLS, "opreport"), "--version"], user=NOBODY, check=False, capture_output=True).returncode:
            self.skipTest("another user cannot run the programs of this build directory")
        for path, mode in ((self.bad, 0), (os.path.dirname(self.bad), 0), (os.path.dirname(self.bad), 0o600),
                           (os.path.dirname(self.bad), 0o100)):
            os.chmod(path, mode)
            text = self.run_tool("opreport", "-n", "--session-dir=" + self.session, user=NOBODY, rc=1)
            self.assertEqual(text.split(), ["60", "100.000", "good"])
            self.assertIn("Permission denied: it is left out", self.errors)
            os.chmod(path, 0o755)

    def test_by_cgroup(self):
        for name in ("a", "b"):
            write_samples(os.path.join(self.current, "cgroup", name, "{root}/x/{dep}/{root}/x/TIMER.0.0." + ALL), [(1, 30)])
        DAMAGES["magic"][0](os.path.join(self.current, "cgroup/b/{root}/x/{dep}/{root}/x/TIMER.0.0." + ALL))
        self.assertEqual(self.report("--cgroups", rc=1).split(), ["30", "100.000", "/a"])
        self.check_left_out("cgroup/b", "bad magic number")

    def test_differential(self):
        """A fault that both sides have is reported once."""
        DAMAGES["magic"][0](self.bad)
        self.assertIn("good", self.report("-l", "{", "session:current", "}", "{}", rc=1))
        self.check_left_out(self.bad, "bad magic number")

    # ---- archives ----

    def archive(self, rc=0):
        away = os.path.join(self.dir, "archive")
        shutil.rmtree(away, ignore_errors=True)
        self.run_tool("oparchive", "--session-dir=" + self.session, "-o", away, rc=rc)
        return away

    def test_archive(self):
        for name, (damage, words) in DAMAGES.items():
            with self.subTest(damage=name):
                good = self.fresh()
                damage(self.bad)
                away = self.archive(rc=1)
                self.check_left_out(self.bad, words)
                self.run_tool("oparchive", "--check=" + away, rc=1)
                self.assertIn(self.bad + " could not be read when the archive was made", self.errors)
                there = os.path.isfile(self.bad)
                self.assertEqual(self.run_tool("opreport", "archive:" + away, rc=int(there)), good[("opreport",)])

    def test_archive_of_strays(self):
        stray = os.path.join(self.current, "{root}/notes.txt")
        with open(stray, "w", encoding="ascii"):
            pass
        away = self.archive(rc=1)
        self.assertIn("40.0000 bad", self.run_tool("opreport", "-n", "archive:" + away))
        self.assertEqual(self.errors, "")
        self.run_tool("oparchive", "--check=" + away, rc=1)
        os.unlink(stray)
        away = self.archive()
        self.run_tool("oparchive", "--check=" + away)

    def test_archive_follows_no_link(self):
        secret = os.path.join(self.dir, "secret")
        os.rename(self.bad, secret)
        os.symlink(secret, self.bad)
        away = self.archive(rc=1)
        self.check_left_out(self.bad, "Too many levels")
        self.assertIn("good", self.run_tool("opreport", "-n", "archive:" + away))
        self.assertNotIn("bad", self.run_tool("opreport", "-n", "archive:" + away))

    def test_check_of_sums(self):
        away = self.archive()
        sums = os.path.join(away, "SHA256SUMS")
        with open(sums, encoding="ascii") as stream:
            lines = stream.readlines()
        for text in (lines[:-1], []):
            with open(sums, "w", encoding="ascii") as stream:
                stream.writelines(text)
            self.run_tool("oparchive", "--check=" + away, rc=1)
            self.assertIn("is cut short", self.errors)

    def test_sums_of_strange_names(self):
        name = self.dir + "/a\\n\nb"
        with open(name, "w", encoding="ascii") as stream:
            stream.write("an image")
        put_image(self.session, name, [(1, 5)])
        away = self.archive()
        self.run_tool("oparchive", "--check=" + away)
        subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=away, check=True)
        put_bytes(away + name, 0, b"A")
        self.run_tool("oparchive", "--check=" + away, rc=1)
        self.assertIn("checksum is wrong", self.errors)

    # ---- the ledger ----

    def test_ledger_agrees(self):
        write_ledger(self.current, 100)
        for what in REPORTS:
            self.run_tool(*what, "--session-dir=" + self.session)
            told = [line for line in self.errors.split("\n") if not line.startswith("warning: no code is shown for ")]
            self.assertNotIn("samples", "\n".join(told).replace("/samples/", ""), what)
        self.report("--verbose=stats")
        self.assertIn("TIMER:0:0: received 100, stored 100, unattributed 0, filtered 0, lost_kernel 0, "
                      "lost_undecodable 0", self.errors)

    def test_losses(self):
        for lost, told in ((0, False), (1, False), (2, True)):
            for reason in ("lost_no_space", "lost_kernel"):
                put_image(self.session, GOOD, [(1, 10000 - lost)])
                write_ledger(self.current, 10040 - lost, **{reason: lost})
                for what in (*REPORTS, ("oparchive", "-o", os.path.join(self.dir, "a%d%s" % (lost, reason)))):
                    self.run_tool(*what, "--session-dir=" + self.session)
                    self.assertEqual("Lost samples detected! 2 of 10040, %s 2: " % reason in self.errors, told, self.errors)
        self.run_tool("opreport", "archive:" + os.path.join(self.dir, "a2lost_kernel"))
        self.assertIn("Lost samples detected! 2 of 10040, lost_kernel 2", self.errors)

    def test_counted_time(self):
        for counted, told in ((1000, False), (991, False), (413, True), (0, True)):
            write_ledger(self.current, 100, enabled_ns=1000, counted_ns=counted)
            for what in REPORTS:
                self.run_tool(*what, "--session-dir=" + self.session)
                said = "these were counted for a part of the time (TIMER:0 %.1f %%)" % (counted / 10)
                self.assertEqual(said in self.errors, told, self.errors)
        row, = json.loads(self.report("--format=json"))["ledger"]
        self.assertEqual((row["enabled_ns"], row["counted_ns"]), (1000, 0))

    def test_filtered(self):
        """Samples that the user filtered are reported but are no loss. Lost samples are reported
        even when they are few.
        """
        left_out = "note: 1000000 of %d samples of " + self.current + " were filtered when they were taken"
        for lost, kernel, told in ((0, 0, False), (1, 0, True), (0, 100, False), (0, 200, True)):
            write_ledger(self.current, 100, received=1000100 + lost, filtered=1000000, lost_no_space=lost, lost_kernel=kernel)
            for what in REPORTS:
                self.run_tool(*what, "--session-dir=" + self.session)
                self.assertIn(left_out % (1000100 + lost), self.errors, what)
                self.assertEqual("Lost samples detected!" in self.errors, told, self.errors)
                self.assertNotIn("add up", self.errors)
        self.assertEqual([row["filtered"] for row in json.loads(self.report("--format=json"))["ledger"]], [1000000])
        self.report("/no/such", rc=1)
        self.assertIn(left_out % 1000100, self.errors)
        write_ledger(self.current, 100, filtered=1)
        self.report()
        self.assertIn("does not add up", self.errors)

    def test_losses_of_the_genuine_tools(self):
        os.makedirs(self.current + "/stats")
        for name, value in (("total_samples", 100), ("lost_no_mapping", 1)):
            with open(os.path.join(self.current, "stats", name), "w", encoding="ascii") as stream:
                stream.write("%d\n" % value)
        self.report()
        self.assertIn("Lost samples detected! 1 of 100, see", self.errors)
        write_ledger(self.current, 100)
        self.report()
        self.assertIn("Lost samples detected! 1 of 100, see", self.errors)

    def test_gone_samples(self):
        write_ledger(self.current, 100)
        shutil.rmtree(os.path.join(self.current, "{root}", "gone", "bad"))
        for what in REPORTS:
            self.run_tool(*what, "--session-dir=" + self.session)
            self.assertIn("40 samples of TIMER:0 are gone from %s: 100 were stored, and the sample files have "
                          "60" % self.current, self.errors)
        away = self.archive()
        self.run_tool("opreport", "archive:" + away)
        self.assertIn("40 samples of TIMER:0 are gone", self.errors)
        put_image(self.session, BAD, [(1, 50)])
        self.report()
        self.assertIn("has 110 samples of TIMER:0 in its files, but its ledger has stored 100", self.errors)

    def test_left_out_samples_are_counted(self):
        write_ledger(self.current, 100)
        DAMAGES["magic"][0](self.bad)
        self.report(rc=1)
        self.assertIn("40 samples of TIMER:0 are gone", self.errors)

    def test_open_session(self):
        """The files have the samples of the ledger, and newer ones."""
        write_ledger(self.current, 90, ended="open")
        self.report()
        self.assertEqual(self.errors, "")
        write_ledger(self.current, 101, ended="open")
        self.report()
        self.assertIn("1 samples of TIMER:0 are gone", self.errors)

    def test_selection(self):
        """Samples that the user does not select are not lost; samples of missing files are."""
        write_ledger(self.current, 100)
        self.report(GOOD)
        self.assertEqual(self.errors, "")
        away = os.path.join(self.dir, "part")
        self.run_tool("oparchive", "--session-dir=" + self.session, "-o", away, GOOD)
        self.run_tool("opreport", "archive:" + away)
        self.assertEqual(self.errors, "")
        put_image(self.session, "/third", [(1, 1)])
        with open(self.current + "/ledger", "a", encoding="ascii") as stream:
            stream.write("files\t4\t1\n")
        self.report(GOOD)
        self.assertIn("had 4 sample files when it was closed, and has 3: samples are gone", self.errors)

    def test_ledger_that_is_none(self):
        with open(self.current + "/ledger", "w", encoding="ascii") as stream:
            stream.write("garbage\n")
        for what in REPORTS:
            self.run_tool(*what, "--session-dir=" + self.session)
            self.assertIn(self.current + "/ledger:1: not a ledger", self.errors)
        write_ledger(self.current, 100, received=7)
        self.report()
        self.assertIn("does not add up", self.errors)
        os.unlink(self.current + "/ledger")
        self.report()
        self.assertEqual(self.errors, "", "a session of the genuine tools")
        with open(self.current + "/dcookies", "w", encoding="ascii") as stream:
            stream.write("opd-dcookies 1\nnext\t1\n")
        self.report()
        self.assertIn("has no ledger", self.errors)

    def test_json_has_the_ledger(self):
        self.assertNotIn("ledger", json.loads(self.report("--format=json")))
        write_ledger(self.current, 100, lost_no_space=7, lost_kernel=2)
        for arguments in ((), ("-l",), ("-c",), ("--images",)):
            ledger = json.loads(self.report("--format=json", *arguments))["ledger"]
            self.assertEqual([(row["session"], row["event"], row["count"], row["received"], row["stored"],
                               row["lost_no_space"], row["lost_kernel"]) for row in ledger],
                             [("current", "TIMER", 0, 107, 100, 7, 2)])


if __name__ == "__main__":
    unittest.main()
