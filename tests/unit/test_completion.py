#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""--help and the completion scripts of every tool: all options of --help are in them, bash completes
with them. Run from the build directory.
"""
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

sys.dont_write_bytecode = True
SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path.insert(0, os.path.join(SOURCE, "tests", "unit"))
from terminals import read_terminal  # noqa: E402

TOOLS = os.path.abspath(os.environ.get("TOOLS", "bin"))
NAMES = ("ocount", "opannotate", "oparchive", "opcheck", "opcontrol", "operf", "opgprof", "ophelp", "opimport", "opreport",
         "optop")
SPECIFIED = ("opannotate", "oparchive", "opgprof", "opreport", "optop")
COMPLETE = """
compopt() { :; }
source "$1"
COMP_WORDS=("${@:3}") COMP_CWORD=$(($# - 3))
_opd_$2
printf '%s\\n' "${COMPREPLY[@]}"
"""


# Its Ctrl-X shows the line.
ZSH = "fpath=(%s $fpath); autoload -U compinit; compinit -u -D; " \
      "tell() { print -r -- \"<<<$BUFFER>>>\" }; zle -N tell; bindkey '^X' tell; print re\"ady\"\n"
ZSH_SECONDS = 60


class Completion(unittest.TestCase):
    def script(self, name, shell):
        return subprocess.run([os.path.join(TOOLS, name), "--completion=" + shell], stdout=subprocess.PIPE, check=True,
                              universal_newlines=True).stdout

    def complete(self, name, *words):
        with tempfile.NamedTemporaryFile("w") as script:
            script.write(self.script(name, "bash"))
            script.flush()
            return set(subprocess.run(["bash", "-c", COMPLETE, "bash", script.name, name, name, *words],
                                      stdout=subprocess.PIPE, check=True,
                                      universal_newlines=True,
                                      env=dict(os.environ, PATH=TOOLS + ":" + os.environ["PATH"])).stdout.splitlines()) - {""}

    def help(self, name, option="--help", **environment):
        """The output of a tool whose standard output is no terminal."""
        done = subprocess.run([os.path.join(TOOLS, name), option], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              check=True, universal_newlines=True,
                              env=dict({key: value for key, value in os.environ.items() if key != "COLUMNS"}, **environment))
        self.assertEqual(done.stderr, "", (name, option))
        return done.stdout

    def test_help_width(self):
        """The width is COLUMNS, else 80; only words that cannot be split are longer. Every width
        has the same words.
        """
        for name in NAMES:
            for option in ("--help", "--usage"):
                texts = {columns: self.help(name, option, **({"COLUMNS": str(columns)} if columns else {}))
                         for columns in (0, 40, 80, 130)}
                self.assertEqual(texts[0], texts[80], name)
                for columns in (40, 80, 130):
                    long = [line for line in texts[columns].splitlines()
                            if len(line) > columns and len(line.split()) > 2]
                    self.assertEqual(long, [], (name, option, columns))
                    self.assertEqual(texts[columns].split(), texts[80].split(), (name, option))
                if name in ("opcontrol", "opreport"):
                    self.assertGreater(max(map(len, texts[130].splitlines())), 80, (name, option))

    def test_help_on_a_terminal(self):
        """Without COLUMNS the terminal gives the width."""
        for name in NAMES:
            for columns in (60, 150):
                ours, its = pty.openpty()
                fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 500, columns, 0, 0))
                with subprocess.Popen([os.path.join(TOOLS, name), "--help"], stdout=its, stderr=subprocess.PIPE,
                                      env={key: value for key, value in os.environ.items() if key != "COLUMNS"}) as child:
                    shown = read_terminal(ours, its, child)
                    self.assertEqual((child.wait(), child.stderr.read()), (0, b""), name)
                self.assertEqual(shown.decode().replace("\r\n", "\n"), self.help(name, COLUMNS=str(columns)), name)

    def test_every_option(self):
        for name in NAMES:
            text = self.help(name)
            options = set(re.findall(r"^ {2,6}(?:-., )?(--[a-z0-9-]+)", text, re.M))
            self.assertGreater(len(options), 3, name)
            for shell in ("bash", "zsh"):
                script = self.script(name, shell)
                missing = [option for option in options if not re.search(re.escape(option) + r"[= \"\[]", script)]
                self.assertEqual(missing, [], (name, shell))
                self.assertNotRegex(script, "--completion(?!=sessions 2)")

    def test_manual_pages(self):
        """A manual page has the options of the table, with both names, and no others."""
        for name in NAMES:
            text = self.help(name)
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
        """opcontrol takes options only, and the values of some options are known."""
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
        for name in ("odd, name", "odd *"):
            os.mkdir(os.path.join(directory, name))
        self.assertEqual(self.complete("opreport", directory + "/od"), {directory + "/odd, name", directory + "/odd *"})
        self.assertEqual(self.complete("opreport", "image", ":", directory + "/od"),
                         {directory + "/odd, name", directory + "/odd *"})
        self.assertEqual(self.complete("ophelp", "--cpu-type", directory + "/od"), set())

    def test_bash_numbers_and_times(self):
        for words in (("--top", "=", "te"), ("--threshold", "te"), ("-e", "te"), ("-t", "te")):
            self.assertEqual(self.complete("opreport", *words), set(), words)
        self.assertEqual(self.complete("opgprof", "--since", "=", "to"), {"today"})
        self.assertIn("tests", self.complete("opannotate", "--include-file", "=", "te"))

    def test_bash_events(self):
        self.assertEqual(self.complete("ophelp", "page-f"), {"page-faults"})
        for words in (("--event", "=", "page-f"), ("--event", "page-f"), ("-e", "page-f")):
            self.assertEqual(self.complete("opcontrol", *words), {"page-faults:"}, words)
        self.assertEqual(self.complete("opcontrol", "--event", "=", "page-faults", ":"), set())
        self.assertEqual(self.complete("opcontrol", "--event", "=", "page-faults", ":", "1"), set())
        if os.access("/sys/kernel/tracing/events/sched/sched_switch/id", os.R_OK):
            self.assertEqual(self.complete("opcontrol", "--event", "=", "sched", ":", "sched_swit"), {"sched_switch:"})
            self.assertIn("sched_switch", self.complete("ophelp", "-u", "sched", ":"))

    def sessions(self, *names):
        """A session directory with these sessions, and with files that are no session."""
        directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, directory)
        for name in names:
            os.makedirs(os.path.join(directory, "samples", name))
        os.makedirs(directory + "/samples", exist_ok=True)
        with open(directory + "/samples/operf.log", "w", encoding="utf-8"):
            pass
        return directory

    def tags(self):
        """All of the manual page."""
        with open(os.path.join(SOURCE, "doc", "opreport.1"), encoding="utf-8") as stream:
            text = stream.read().split(".SH PROFILE SPECIFICATION")[1].split("\n.SH ")[0].replace("\\-", "-")
        return set(re.findall(r"[a-z-]+:", " ".join(re.findall(r"^\.TP\n(.*)$", text, re.M))))

    def test_bash_tags(self):
        tags = self.tags()
        self.assertTrue({"session:", "session-exclude:", "lib-image:", "unit-mask:", "tgid:"} <= tags, tags)
        for name in SPECIFIED:
            self.assertEqual({word for word in self.complete(name, "") if word.endswith(":")}, tags, name)
            self.assertEqual(self.complete(name, "image"), {"image:", "image-exclude:"})
        self.assertEqual({word for word in self.complete("opcheck", "") if word.endswith(":")}, set())
        self.assertEqual(self.complete("opreport", "--since", "se"), set())
        directory = self.sessions()
        os.mkdir(directory + "/inner")
        with open(directory + "/in.file", "w", encoding="utf-8"):
            pass
        inner, both = {directory + "/inner"}, {directory + "/in.file", directory + "/inner"}
        self.assertEqual(self.complete("opreport", "image", ":", directory + "/in"), both)
        self.assertEqual(self.complete("opreport", "lib-image", ":", "/x," + directory + "/in"), {"/x," + name for name in both})
        self.assertEqual(self.complete("opreport", "image:" + directory + "/inn"), {"image:" + name for name in inner})
        self.assertEqual(self.complete("opreport", "archive", ":", directory + "/in"), inner)
        self.assertEqual(self.complete("opreport", "event", ":", directory + "/in"), set())

    def test_bash_sessions(self):
        directory = self.sessions("current", "old", "older", ".hidden", "a$(touch bad)")
        for name in SPECIFIED:
            for words in (("--session-dir", "=", directory), ("--session-dir", directory)):
                self.assertEqual(self.complete(name, *words, "session", ":", "o"), {"old", "older"}, name)
        said = ("--session-dir", "=", directory)
        self.assertEqual(self.complete("opreport", *said, "session", ":"), {"a\\$\\(touch\\ bad\\)", "current", "old", "older"})
        self.assertEqual(self.complete("opreport", *said, "session-exclude", ":", "x,cu"), {"x,current"})
        self.assertEqual(self.complete("opreport", *said, "session:old,cu"), {"session:old,current"})
        self.assertEqual(self.complete("opreport", "--session-dir", "=", "/nothing", "session", ":"), set())
        self.assertFalse(os.path.exists("bad"))

    def zsh(self, script, line):
        """The line after Tab in a zsh that has loaded the script."""
        directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, directory)
        name = line.split()[0]
        with open(os.path.join(directory, "_" + name), "w", encoding="utf-8") as stream:
            stream.write(script)
        os.symlink(os.path.join(TOOLS, name), os.path.join(directory, name))
        pid, terminal = pty.fork()
        if not pid:
            os.execvpe("zsh", ["zsh", "-f", "-i"], dict(os.environ, PS1="", TERM="dumb",
                                                        PATH=directory + ":" + TOOLS + ":" + os.environ["PATH"]))
        os.write(terminal, (ZSH % directory).encode())
        self.read_until(terminal, b"ready\r\n")
        os.write(terminal, line.encode() + b"\t\x18")
        shown = self.read_until(terminal, b">>>")
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)
        return re.search("<<<(.*)>>>", shown.decode()).group(1).strip()

    def read_until(self, terminal, end):
        got, limit = b"", time.monotonic() + ZSH_SECONDS
        while end not in got:
            self.assertTrue(select.select([terminal], [], [], max(limit - time.monotonic(), 0))[0], got)
            got += os.read(terminal, 4096)
        return got

    def test_zsh_tags(self):
        if not shutil.which("zsh"):
            self.skipTest("zsh is not installed")
        directory = self.sessions("current", "former")
        script = self.script("opreport", "zsh")
        for typed, wanted in (("session-", "session-exclude:"), ("unit", "unit-mask:"),
                              ("--session-dir=%s session:cu" % directory, "session:current"),
                              ("--session-dir %s session-exclude:x,fo" % directory, "session-exclude:x,former"),
                              ("image:/pro", "image:/proc/"),
                              ("archive:/pro", "archive:/proc/"), ("event:te", "event:te")):
            got = self.zsh(script, "opreport " + typed)
            self.assertEqual(got.split()[-1].replace("\\", ""), wanted, got)

    def test_zsh_events(self):
        if not shutil.which("zsh"):
            self.skipTest("zsh is not installed")
        for tool, typed in (("opcontrol", "--event="), ("ophelp", "")):
            self.assertEqual(self.zsh(self.script(tool, "zsh"), "%s %spage-f" % (tool, typed)), "%s %spage-faults" % (tool, typed))

    def test_zsh_syntax(self):
        if not shutil.which("zsh"):
            self.skipTest("zsh is not installed")
        for name in NAMES:
            subprocess.run(["zsh", "-n"], input=self.script(name, "zsh"), check=True, universal_newlines=True)

    def test_full_disk(self):
        """Output that cannot be written is an error. The 1 of opcheck would mean that something was
        repaired.
        """
        for name in NAMES:
            for option in ("--help", "--usage", "--version", "--completion=bash"):
                with open("/dev/full", "w", encoding="ascii") as full:
                    done = subprocess.run([os.path.join(TOOLS, name), option], stdout=full, stderr=subprocess.PIPE,
                                          check=False, universal_newlines=True)
                self.assertEqual((done.returncode, done.stderr.count("cannot write to the standard output")),
                                 (3 if name == "opcheck" else 1, 1), (name, option, done.stderr))

    def test_unknown_shell(self):
        for name in NAMES:
            done = subprocess.run([os.path.join(TOOLS, name), "--completion=csh"], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, check=False)
            self.assertNotEqual((done.returncode, done.stderr), (0, b""), name)
            self.assertEqual(done.stdout, b"")


if __name__ == "__main__":
    unittest.main()
