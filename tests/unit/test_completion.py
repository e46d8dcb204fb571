#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The completion scripts of every tool: all options of --help are in them, bash completes with them. Run from the build directory."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
TOOLS = os.path.abspath(os.environ.get("TOOLS", "tools"))
NAMES = ("opannotate", "oparchive", "opcheck", "opcontrol", "opgprof", "ophelp", "opimport", "opreport")
COMPLETE = """
compopt() { :; }
source "$1"
COMP_WORDS=("${@:3}") COMP_CWORD=$(($# - 3))
_opd_$2
printf '%s\\n' "${COMPREPLY[@]}"
"""


class Completion(unittest.TestCase):
    def script(self, name, shell):
        return subprocess.run([os.path.join(TOOLS, name), "--completion=" + shell], stdout=subprocess.PIPE, check=True,
                              universal_newlines=True).stdout

    def complete(self, name, *words):
        with tempfile.NamedTemporaryFile("w") as script:
            script.write(self.script(name, "bash"))
            script.flush()
            return set(subprocess.run(["bash", "-c", COMPLETE, "bash", script.name, name, name, *words], stdout=subprocess.PIPE, check=True,
                                      universal_newlines=True).stdout.split())

    def test_every_option(self):
        for name in NAMES:
            text = subprocess.run([os.path.join(TOOLS, name), "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True,
                                  universal_newlines=True).stdout
            options = set(re.findall(r"^ {2,6}(?:-., )?(--[a-z0-9-]+)", text, re.M))
            self.assertGreater(len(options), 3, name)
            for shell in ("bash", "zsh"):
                script = self.script(name, shell)
                missing = [option for option in options if not re.search(re.escape(option) + r"[= \"\[]", script)]
                self.assertEqual(missing, [], (name, shell))
                self.assertNotIn("--completion", script)

    def test_manual_pages(self):
        """A page has the options that the table has, by both names, and no others."""
        for name in NAMES:
            text = subprocess.run([os.path.join(TOOLS, name), "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True,
                                  universal_newlines=True).stdout
            options = set(re.findall(r"^ {2,6}(?:-., )?(--[a-z0-9-]+)", text, re.M)) | set(re.findall(r"^ {2}(-.), --", text, re.M))
            with open(os.path.join(SOURCE, "doc", name + ".1"), encoding="utf-8") as stream:
                page = re.sub(r"\\f[BIRP]", "", stream.read()).replace("\\-", "-")
            missing = [option for option in options if not re.search("(?<![-a-z])" + re.escape(option) + "(?![-a-z])", page)]
            self.assertEqual(missing, [], name)
            headed = set()
            for line in re.findall(r"^\.TP\n(.*)$", page.split(".SH OPTIONS")[-1].split(".SH EXIT")[0], re.M):
                headed |= set(re.findall(r"(?<![-a-z])--[a-z0-9-]+", line))
            self.assertEqual(headed - options, set(), name)

    def test_bash(self):
        self.assertEqual(self.complete("opreport", "--thr"), {"--threshold="})
        self.assertEqual(self.complete("opreport", "--format", "=", "j"), {"json"})
        self.assertEqual(self.complete("opreport", "-m", "cpu,t"), {"cpu,tid", "cpu,tgid"})
        self.assertIn("--objdump-params=", self.complete("opannotate", "--"))
        self.assertEqual(self.complete("opcontrol", "--start-d"), {"--start-daemon"})

    def test_bash_no_files(self):
        """opcontrol takes options only, and of some it is known what they take."""
        self.assertTrue({"--start", "--status", "--save="} <= self.complete("opcontrol", ""))
        self.assertEqual(self.complete("opcontrol", "--separate", "=", "library,t"), {"library,thread"})
        for words in (("--save", "="), ("--event", "=", "te"), ("-c", ""), ("te",)):
            self.assertEqual(self.complete("opcontrol", *words), set(), words)
        self.assertIn("tests", self.complete("opcontrol", "--image", "=", ""))
        self.assertTrue({"--start", "--setup"} <= self.complete("opcontrol", "--verbose", ""))
        self.assertIn("tests", self.complete("opreport", "test"))

    def test_bash_paths(self):
        directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, directory)
        os.mkdir(directory + "/inner")
        with open(directory + "/in.file", "w", encoding="utf-8"):
            pass
        self.assertEqual(self.complete("opreport", "--session-dir", "=", directory + "/in"), {directory + "/inner"})
        self.assertEqual(self.complete("opreport", "-o", directory + "/in"), {directory + "/inner", directory + "/in.file"})

    def test_zsh_syntax(self):
        if not shutil.which("zsh"):
            self.skipTest("zsh is not installed")
        for name in NAMES:
            subprocess.run(["zsh", "-n"], input=self.script(name, "zsh"), check=True, universal_newlines=True)

    def test_unknown_shell(self):
        for name in NAMES:
            done = subprocess.run([os.path.join(TOOLS, name), "--completion=csh"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
            self.assertNotEqual((done.returncode, done.stderr), (0, b""), name)
            self.assertEqual(done.stdout, b"")


if __name__ == "__main__":
    unittest.main()
