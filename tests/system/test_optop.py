#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
optop: what it shows is what runs, in all views, on a screen of 80 columns and as text; what ended
before is not shown; keys act while a step waits; it leaves a terminal as it was; and hostile names
stay text.
"""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import opdtest
from hot import compile_to
from opdtest import Skip, require

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "unit"))

LINE = re.compile(r"^ *(\d+) +(\d+\.\d\d)  (.*)$")
STACK_RATE = 199  # not the default: the help shows what opd does
VIEWS = ("function", "image", "comm", "cgroup", "path")


class Load:
    """Programs of the test, which are ended with it."""

    def __init__(self, box):
        self.box, self.children = box, []

    def start(self, name, *args):
        path = os.path.join(self.box.dir, name)
        if not os.path.exists(path):
            shutil.copy(self.box.work, path)
        self.children.append(subprocess.Popen([path, *args], stdout=subprocess.DEVNULL, cwd=self.box.dir))
        return self.children[-1]

    def end(self):
        for child in self.children:
            child.kill()
            child.wait()


def rows(text):
    """Of the last display: [(count, percent, name)]."""
    display = text.rstrip("\n").split("\n\n")[-1]
    return [(int(m.group(1)), float(m.group(2)), m.group(3)) for m in map(LINE.match, display.splitlines()) if m]


def batch(box, *args):
    return box.good(os.path.join(box.bin, "optop"), "--batch", *args)


def check_views(box):
    wanted = {"function": "spin", "image": "top-busy", "comm": "top-busy", "path": "spin"}
    for view in VIEWS:
        out = batch(box, "--by=" + view, "-n2", "-d1", "--top=1000000")
        found = rows(out)
        counts = re.findall(r"\d+ (?:samples|stacks)\b", out.rstrip("\n").split("\n\n")[-2])
        require(len(counts) == 1 or view in ("function", "image"), "%s: the counts are %s" % (view, counts))
        require(found, "%s: no rows: %s" % (view, out))
        is_sorted = all(a[0] >= b[0] for a, b in zip(found, found[1:]))
        require(is_sorted or view in ("path", "cgroup"), "%s: not sorted: %s" % (view, out))
        if view in wanted:
            share = max((percent for _, percent, name in found if wanted[view] in name), default=0)
            require(share > 0, "%s: %s is not shown: %s" % (view, wanted[view], out))
        if view in ("function", "image", "comm"):
            total = int(re.findall(r"(\d+) samples of", out)[-1])
            require(sum(count for count, _, _ in found) == total, "%s: the rows are not %d samples: %s" % (view, total, out))


def calls_of_deep(out):
    """In each row that has one."""
    return list(filter(None, (len(re.findall(r"\bdeep\b", name)) for _, _, name in rows(out))))


def check_paths(box, load):
    """A function that calls itself is one row of a path, not one for each call. Where there is no room
    for all of a path, it has the name of its last function, and not the end of that name.
    """
    path = os.path.join(box.dir, "top-calls")
    compile_to(box, path, "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", file="stacks.c")
    leaf = "leaf<aaaaaaaaaaaaaaaa<bbbbbbbb > >(long)"
    require(box.run("objcopy", "--redefine-sym", "leaf=" + leaf, path).rc == 0, "objcopy")
    child = load.start("top-calls", "600000")
    out = batch(box, "--by=path", "-n2", "-d2", "--top=1000000")
    begin = time.monotonic()
    while not calls_of_deep(out) and time.monotonic() < begin + opdtest.HANG_SECONDS:  # its table is made
        out = batch(box, "--by=path", "-n2", "-d2", "--top=1000000")
    screen = Screen(box, os.path.join(box.bin, "optop"), "-d", "0.5", "--by=path")
    try:
        screen.await_text("> " + leaf)
        screen.keys("q")
        screen.await_text("ended with 0")
    finally:
        screen.close()
    child.kill()
    calls = calls_of_deep(out)
    require(calls and max(calls) == 1, "not one call of deep in a row: " + out)


def check_now(box, load):
    """What has ended is gone from the next displays, but not from those that add up."""
    load.start("top-ended", "spin", "3000").wait()
    box.opcontrol("--dump")
    out = batch(box, "--by=image", "-n1", "-d1", "--top=1000")
    require("top-busy" in out and "top-ended" not in out, "what ended before is shown: " + out)
    display = subprocess.Popen([os.path.join(box.bin, "optop"), "-b", "-a", "--by=image", "-d1", "--top=1000"], env=box.env,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    seen = ""
    load.start("top-short", "spin", "1000").wait()
    box.opcontrol("--dump")
    # A display that was under way when the program ended may lack it; the next ones all have it.
    for _ in range(3):
        seen = ""
        while not seen.endswith("\n\n") or "IMAGE" not in seen:
            line = display.stdout.readline().decode()
            require(line, "optop ended: " + seen)
            seen += line
    display.send_signal(signal.SIGTERM)
    require(display.wait(opdtest.HANG_SECONDS) == 0, "SIGTERM: exit code %d" % display.returncode)
    display.stdout.close()
    require("top-short" in seen and "top-busy" in seen, "--accumulate: " + seen)


def check_rotation(box):
    """A session that is closed takes its counts along: no display counts them again."""
    display = subprocess.Popen([os.path.join(box.bin, "optop"), "-b", "--by=image", "-n4", "-d1"], env=box.env,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    before = display.stdout.readline()
    box.opcontrol("--save=closed")
    text = (before + display.communicate(timeout=opdtest.HANG_SECONDS)[0]).decode()
    cpus = os.cpu_count()
    for number, seconds in re.findall(r"(\d+) samples of \S+ in ([\d.]+) s", text):
        # TIMER:1000000 takes 1000 a second at most; a display may also hold a whole visit more.
        require(int(number) <= 1000 * cpus * (float(seconds) + 2), "%s samples in %s s: %s" % (number, seconds, text))


class Screen:
    """A terminal of 80 columns and 24 lines that a program draws on."""

    def __init__(self, box, *command, env=None):
        # A server of its own: the one before may still be ending.
        self.socket = os.path.join(tempfile.mkdtemp(dir=box.dir), "tmux")
        self.box, self.env = box, {**box.env, "LC_ALL": "C.UTF-8", **(env or {})}
        line = " ".join(command) + "; echo ended with $?; stty -a | tr ' ' '\\n' | grep -xE -e '-?(echo|icanon)'; exec sleep 1000"
        self.run("new-session", "-d", "-x", "80", "-y", "24", line)

    def run(self, *args):
        done = subprocess.run(["tmux", "-S", self.socket, "-f", "/dev/null", *args], env=self.env,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False)
        require(done.returncode == 0, "tmux %s: %s" % (args, done.stderr))
        return done.stdout.decode("utf-8", "replace")

    def text(self):
        return self.run("capture-pane", "-p")

    def keys(self, *keys):
        self.run("send-keys", *keys)

    def await_text(self, *wanted, absent=None):
        end = time.monotonic() + opdtest.HANG_SECONDS
        while True:
            text = self.text()
            if all(w in text for w in wanted) and (not absent or absent not in text):
                return
            require(time.monotonic() < end, "the screen never had %s:\n%s" % (wanted, text))
            time.sleep(0.05)

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], env=self.box.env, capture_output=True, check=False)


def check_screen(box):
    screen = Screen(box, os.path.join(box.bin, "optop"), "-d", "0.5")
    try:
        screen.await_text("top-busy", "FUNCTION", "q quit")
        for key, title in (("i", "IMAGE"), ("n", "PROCESS NAME"), ("c", "CGROUP"), ("p", "CALLED FUNCTION")):
            screen.keys(key)
            screen.await_text(title, "%", "samples of")
        screen.keys("w")
        # opd may have none: then the line says where the reason is
        screen.await_text("FUNCTION THAT WAITED", "waits", absent="samples of")
        screen.keys("h")
        screen.await_text("Page Up and Down", "opd takes %d of them per second" % STACK_RATE)
        screen.keys("i")
        screen.await_text("top-busy", absent="Page Up and Down")
        screen.keys("/")
        screen.await_text("only rows with:")
        screen.keys("top-busy", "Enter")
        screen.await_text("(with top-busy)", "top-busy", absent="kallsyms")
        screen.keys("Space")
        screen.await_text("SPACE goes on")
        screen.keys("q")
        screen.await_text("ended with 0", "icanon", "echo")
        require("-icanon" not in screen.text() and "-echo" not in screen.text(), "the terminal stays changed: " + screen.text())
        require(all(len(line) <= 80 for line in screen.text().splitlines()), "more than 80 columns")
    finally:
        screen.close()


def check_past(box):
    """Keys go back through the minutes of the timelines and forward again, to what is new."""
    if not os.access(os.path.join(os.environ.get("OPD_BUILD", ""), "tests", "unit", "make_timeline"), os.X_OK):
        print("the keys for the past are not looked at: there is no make_timeline")
        return
    os.environ["OPD_BINDIR"] = box.bin
    os.chdir(os.environ["OPD_BUILD"])
    import test_report_window  # pylint: disable=import-outside-toplevel
    test_report_window.Window.setUpClass()
    case = test_report_window.Window("test_functions")
    case.setUp()
    screen = Screen(box, os.path.join(box.bin, "optop"), "-d", "0.1", "--session-dir=" + case.dir, env={"TZ": "UTC"})
    try:
        screen.await_text("0 samples of TIMER")
        for key, minute in (("<", 9), ("<", 8), (">", 9), ("<", 8), ("<", 7), ("<", 6), ("<", 5), ("<", 4)):
            screen.keys(key)
            wanted = test_report_window.MINUTES[minute]
            screen.await_text("2026-11-21 03:%02d:00 to 03:%02d:00" % (minute, minute + 1), "hot", "warm",
                              "%d samples of TIMER:1000000 in 60.0 s" % sum(wanted.values()))
            lines = filter(None, map(LINE.match, screen.text().splitlines()))
            found = {line.group(3).split()[-1]: int(line.group(1)) for line in lines}
            require(found == wanted, "minute %d: %s, the timeline has %s" % (minute, found, wanted))
        screen.keys("c")
        screen.await_text("/a.slice/b4", "10 samples of STACKS in 60.0 s")
        screen.keys("f")
        screen.keys(*["<"] * 9)
        screen.await_text("03:00:00 to 03:01:00", "250 samples")
        screen.keys("h")
        screen.await_text("a minute back in time", "live again")
        screen.keys("h", "l")
        screen.await_text("0 samples of TIMER", absent="(< earlier")
        screen.keys("<")
        screen.await_text("03:09:00 to 03:10:00", "250 samples")
        screen.keys(">")
        screen.await_text("0 samples of TIMER", absent="(< earlier")
        screen.keys("q")
        screen.await_text("ended with 0")
    finally:
        screen.close()
        case.doCleanups()
        test_report_window.Window.tearDownClass()
    nothing = os.path.join(box.dir, "none")
    os.makedirs(os.path.join(nothing, "samples", "current"))
    screen = Screen(box, os.path.join(box.bin, "optop"), "-d", "0.1", "--session-dir=" + nothing)
    try:
        screen.await_text("no samples")
        screen.keys("<")
        screen.keys("h")
        screen.await_text("a minute back in time")
        screen.keys("q")
        screen.await_text("ended with 0")
    finally:
        screen.close()


class MuteDaemon:
    """Takes requests for the status and never answers, so a step of optop waits until its time limit."""

    def __init__(self, path):
        self.server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.server.bind(path)
        self.server.listen()
        self.server.settimeout(opdtest.HANG_SECONDS)
        self.request = None

    def await_request(self):
        if self.request:
            self.request.close()
        self.request, _ = self.server.accept()
        self.request.recv(4096)

    def has_request(self):
        """Whether the step that asked still waits."""
        try:
            return bool(self.request.recv(1, socket.MSG_DONTWAIT))
        except BlockingIOError:
            return True
        except ConnectionError:
            return False

    def close(self):
        self.server.close()
        if self.request:
            self.request.close()


def acts_in_step(screen, mute, key, title):
    """Whether the key shows rows below the title before the step ends. A busy machine may need several steps."""
    for _ in range(10):
        mute.await_request()
        screen.keys(key)
        while mute.has_request():
            text = screen.text()
            if " %  " + title in text and any(map(LINE.match, text.splitlines())):
                return mute.has_request()
        screen.keys("f")
    return False


def seconds_of(text):
    found = re.search(r" samples of \S+ in ([\d.]+) s", text)
    return float(found.group(1)) if found else 0


def check_keys_in_step(box):
    """While a step waits, a key shows another view with the rows that are there."""
    path = os.path.join(box.dir, "mute")
    mute = MuteDaemon(path)
    config = os.path.join(box.dir, "mute.conf")
    with open(config, "w", encoding="ascii") as stream:
        stream.write("SessionDir=%s\nControlSocket=%s\n" % (box.session, path))
    screen = Screen(box, os.path.join(box.bin, "optop"), "-d", "0.1", "--session-dir=" + box.session, env={"OPD_CONFIG": config})
    try:
        while "top-busy" not in screen.text():
            mute.await_request()
        for key, title in (("i", "IMAGE"), ("n", "PROCESS NAME"), ("c", "CGROUP"), ("p", "APPLICATION, FUNCTION")):
            require(acts_in_step(screen, mute, key, title), "%s: no rows while a step waits: %s" % (title, screen.text()))
        screen.keys("n", "a")
        screen.await_text("PROCESS NAME", "a: sum")
        while seconds_of(screen.text()) < 5:
            mute.await_request()
        for key, title in (("c", "CGROUP"), ("p", "APPLICATION, FUNCTION")):
            before = seconds_of(screen.text())
            screen.keys(key)
            screen.await_text(title, " samples of ")
            require(seconds_of(screen.text()) >= before, "%s begins a new sum: %s" % (title, screen.text()))
        screen.keys("c", "e", "Space")
        screen.await_text("CGROUP", "SPACE goes on")
        require(any(map(LINE.match, screen.text().splitlines())), "e empties a view of one event: " + screen.text())
        screen.keys("q")
        screen.await_text("ended with 0")
    finally:
        screen.close()
        mute.close()


def check_hostile(box, load):
    """A name with an escape sequence, one with bytes that are no UTF-8, and a very long one."""
    names = ["\x1b]0;title\x07\x1b[2J", "two\nlines", "l" * 200, os.fsdecode(b"\xff\xfebytes")]
    for name in names:
        load.start(name, "spin", "600000")
    out = box.run(os.path.join(box.bin, "optop"), "-b", "--by=image", "-n2", "-d2", "--top=1000")
    require(out.rc == 0 and "\x1b" not in out.out and "two\nlines" not in out.out, "a name is obeyed: %r" % out.out)
    require(r"\x1b]0;title" in out.out and "l" * 200 in out.out, "a hostile name is not shown: %r" % out.out)
    screen = Screen(box, os.path.join(box.bin, "optop"), "-d", "0.5", "--by=image")
    try:
        screen.await_text(r"\x1b]0;title", "q quit")
        require(len(screen.text().splitlines()) <= 24, "the screen scrolled")
        screen.run("resize-window", "-x", "30", "-y", "8")
        screen.await_text("%")
        screen.keys("q")
        screen.await_text("ended with 0")
    finally:
        screen.close()


def check_event_with_samples(box, load):
    """After a change of the events, the old one has samples in the session, but no new ones."""
    box.opcontrol("--event=page-faults:1", "--apply")
    load.children.append(subprocess.Popen(["sh", "-c", "while :; do /bin/true; done"], cwd=box.dir))
    out = batch(box, "--by=image", "-n2", "-d1")
    load.children[-1].kill()
    require("samples of page-faults:1" in out and rows(out), "not the event that has samples: " + out)
    box.opcontrol("--event=TIMER:1000000", "--apply")


def check_refusals(box):
    optop = os.path.join(box.bin, "optop")
    none = box.run(optop, "-b", "-n1", "-d0.1", "session:nosuch")
    require(none.rc == 1 and "no samples" in none.out, "no samples are not told: %r" % (none,))
    require("--batch" in box.refused(optop), "no hint where there is no terminal")
    require("function, image" in box.refused(optop, "-b", "--by=images"), "no list of views")
    missing = os.path.join(box.dir, "missing")
    require(missing in box.refused(optop, "-b", "-n1", "--session-dir=" + missing), "no error for a missing session directory")
    require("0.1 to 3600" in box.refused(optop, "-b", "-d0"), "no range of delays")
    box.shutdown()
    require("systemctl start opd" in box.refused(optop, "-b"), "no hint how to start opd")


def test(box):
    if not os.path.exists(os.path.join(box.bin, "optop")):
        raise Skip("optop is not built: ncurses is missing")
    if not shutil.which("tmux"):
        raise Skip("tmux is not installed")
    load = Load(box)
    box.start_daemon("--event=TIMER:1000000", "--stacks=%d" % STACK_RATE)
    try:
        load.start("top-busy", "spin", "600000")
        check_views(box)
        check_paths(box, load)
        check_now(box, load)
        check_rotation(box)
        check_screen(box)
        check_past(box)
        check_keys_in_step(box)
        check_hostile(box, load)
        check_event_with_samples(box, load)
        check_refusals(box)
    finally:
        load.end()


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
