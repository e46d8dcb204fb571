# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of operf share: runs of operf as a user without privileges, in a directory of that
user, and what it left there.
"""
import collections
import os
import re
import signal
import subprocess

import opdtest
import reader
from opdtest import require

NOBODY = 65534
DEFAULT = "TIMER:997000"  # the event where there is no PMU
PARANOID = "/proc/sys/kernel/perf_event_paranoid"
PARTS = ("main_part", "thread_part", "child_part", "exec_part")
SUMMARY = re.compile(r"^operf: (\d+ samples of \S+:\d+(?:, \d+ samples of \S+:\d+)*), (\d+) lost; next: opreport(.*)$", re.M)

Summary = collections.namedtuple("Summary", "samples lost next")


def needs_operf():
    """operf needs no privilege, but the tests become other users and change settings."""
    opdtest.needs_root()


class Home:
    """A directory of an ordinary user, in which operf runs."""

    def __init__(self, box, user=NOBODY, name="home"):
        self.box, self.user, self.path = box, user, os.path.join(box.dir, name)
        self.operf, self.session = os.path.join(box.bin, "operf"), os.path.join(self.path, "oprofile_data")
        os.mkdir(self.path)
        os.chown(self.path, user, user)
        self.family, self.work = box.copy_work("family", "family"), box.copy_work("work")

    def words(self, *command):
        become = ["setpriv", "--reuid=%d" % self.user, "--regid=%d" % self.user, "--clear-groups"] if self.user else []
        return become + [str(word) for word in command]

    def run(self, *command, **more):
        """Any program as the user, in the directory."""
        done = subprocess.run(self.words(*command), env={**self.box.env, **more.pop("env", {})}, cwd=more.pop("cwd", self.path),
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=opdtest.CALL_SECONDS, check=False, **more)
        result = opdtest.Result(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))
        require(not any(word in result.err for word in opdtest.SANITIZER_WORDS), result.err)
        return result

    def profile(self, *words, rc=0, **more):
        """operf with these words, which must end with this exit code."""
        result = self.run(*more.pop("prefix", ()), self.operf, *words, **more)
        require(result.rc == rc, "operf %s: exit code %d, not %d: %s" % (" ".join(map(str, words)), result.rc, rc, result))
        return result

    def refused(self, *words, **more):
        """operf that must refuse with one line. Nothing is left in the directory that was not there."""
        before = sorted(os.listdir(self.path))
        result = self.profile(*words, rc=more.pop("rc", 1), **more)
        lines = result.err.splitlines()
        require(len(lines) == 1 and lines[0].startswith("operf: "), "not one line of operf: %s" % (result,))
        require(sorted(os.listdir(self.path)) == before, "a refusal leaves %s" % os.listdir(self.path))
        return lines[0]

    def start(self, *words, **more):
        """operf in the background, in a process group of its own as a shell would start it."""
        child = subprocess.Popen(self.words(self.operf, *words), env=self.box.env, cwd=self.path, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, **more)
        self.box.children.append(child)
        return child

    def end(self, child, number=None, rc=0):
        """Sends a signal to operf alone, and waits for its end."""
        if number:
            os.kill(child.pid, number)
        out, err = child.communicate(timeout=opdtest.CALL_SECONDS)
        result = opdtest.Result(child.returncode, out.decode(), err.decode())
        require(result.rc == rc, "operf ends with %d, not %d: %s" % (result.rc, rc, result))
        return result

    def opreport(self, *words):
        result = self.run(os.path.join(self.box.bin, "opreport"), *words)
        require(result.rc == 0, "opreport %s: %s" % (" ".join(words), result))
        return result.out

    # ---- what it left ----

    def ledger(self, session="current", directory=None):
        """{event: {word: number}} and how the session ended."""
        events, ended = {}, None
        path = os.path.join(directory or self.session, "samples", session, "ledger")
        with open(path, encoding="ascii") as stream:
            for line in stream.read().splitlines():
                words = line.split("\t")
                if words[0] == "ended":
                    ended = words[1]
                elif words[0] == "event":
                    events["%s:%s" % (words[1], words[2])] = {k: int(v) for k, v in (word.split("=") for word in words[4:])}
        return events, ended

    def files(self, session="current", directory=None):
        return reader.read_session(directory or self.session, session=session, strict=True)

    def check(self, result, session="current", directory=None, events=None):
        """The line at the end, the ledger and the files have the same numbers, where the session is
        of this run alone; `events`: check only these. Returns the line.
        """
        match = SUMMARY.search(result.err)
        require(match, "operf does not sum up: %s" % (result,))
        require("was counted for" not in result.err, "software events need no counter: %s" % result.err)
        rows, ended = self.ledger(session, directory)
        require(ended == "stopped", "the session ended as %s" % ended)
        said = {name: int(nr) for nr, name in re.findall(r"(\d+) samples of (\S+:\d+)", match.group(1))}
        rows = {name: row for name, row in rows.items() if events is None or name in events}
        require(set(said) == set(rows), "the line has %s, the ledger %s" % (said, rows))
        files = [f for f in self.files(session, directory) if not f.name.callee]
        lost_of_all = 0
        for name, row in rows.items():
            lost = sum(n for word, n in row.items() if word.startswith("lost_") and word != "lost_kernel")
            require(row["received"] == row["stored"] + lost, "%s: received != stored + lost: %s" % (name, row))
            require(said[name] == row["received"] + row["lost_kernel"], "%s: taken is %d: %s" % (name, said[name], row))
            total = sum(f.total for f in files if "%s:%d" % (f.name.event, f.name.count) == name)
            require(total == row["stored"], "%s: the files have %d samples: %s" % (name, total, row))
            lost_of_all += lost + row["lost_kernel"]
        require(int(match.group(2)) == lost_of_all, "the line has %s lost, the ledger %d" % (match.group(2), lost_of_all))
        return Summary(said, lost_of_all, match.group(3))

    def symbols(self, *words):
        """{symbol: samples} of opreport -l; a clone that the compiler made has the name of its
        function.
        """
        found = {}
        for line in self.opreport("-l", *words).splitlines():
            match = re.match(r"^(\d+) +[0-9.e+-]+ .*?(\S+)$", line)
            if match:
                name = match.group(2).split(".")[0]
                found[name] = found.get(name, 0) + int(match.group(1))
        return found


def interrupt_group(child):
    """Ctrl-C, without a terminal: every process of the group gets the signal."""
    os.killpg(child.pid, signal.SIGINT)


class Setting:
    """A file of /proc/sys that is restored at the end of the test."""

    def __init__(self, path):
        self.path = path
        with open(path, encoding="ascii") as stream:
            self.before = stream.read()

    def set(self, value):
        with open(self.path, "w", encoding="ascii") as stream:
            stream.write("%s\n" % value)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.set(self.before.strip())
