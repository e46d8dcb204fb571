#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Files with any name: what is in a name, how long it is, and what becomes of the file while it runs.
The session must be one that every reader
takes, and nothing may be mixed or lost. And a function with two names, one of them weak.
"""
import os
import shutil
import subprocess

import opdtest
from hot import MS, PERIOD_NS, SHARE, Place, Wanted, compile_to, hot_place, wrong_with
from opdtest import require
from test_build_ids import can_be_asked

LONG = "x" * 200
FAR = ["y" * 200] * 24
NAMES = {
    "space": "a name with  blanks ",
    "newline": "first\nsecond",
    "escape": "back\\012slash\\",
    "dots": "..app",
    "many-dots": ".../app",
    "braces": "{root}/{kern}/{anon:x}/app",
    "dep": "{dep}/{cg}/app",
    "deleted": "app (deleted)",
    "like-memory": "SYSV00000000",
    "utf-8": "größe-\u65e5\u672c",
    "no-utf-8": "bytes-\udcff\udcfe-\udcc3",
    "percent": "%s%n*?[a]",
    "component": "c" * 255,
    "long": "/".join([LONG] * 18) + "/app",
}


def waiting(box, path):
    child = subprocess.Popen([path, "plain", str(MS)], env=box.env, cwd="/", stdin=subprocess.PIPE)
    box.children.append(child)
    opdtest.wait_until(lambda: opdtest.is_waiting(child.pid), opdtest.START_SECONDS, "%r does not wait" % path)
    return child


def go(*children):
    for child in children:
        child.stdin.close()
        child.stdin = None
    for child in children:
        require(child.wait(opdtest.CALL_SECONDS) == 0, "a program failed")


class Program:
    """A program of its own build-id, made at a path."""

    def __init__(self, box, path, variant, *flags):
        self.built = os.path.join(box.dir, "built-" + variant)
        compile_to(box, self.built, "-static", "-w", "-DVARIANT=\"%s\"" % variant, *flags)
        self.path, self.inode = path, None

    def install(self):
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        shutil.copy(self.built, self.path + "" if len(os.path.basename(self.path)) > 250 else self.path + ".new")
        if len(os.path.basename(self.path)) <= 250:
            os.rename(self.path + ".new", self.path)
        self.inode = os.stat(self.path).st_ino
        return self

    def build_id(self):
        notes = subprocess.run(["readelf", "-n", self.built], capture_output=True, check=True).stdout.decode()
        return notes.split("Build ID: ")[1].split()[0]


def stored_name(path):
    """As doc/format.md says: two special components are in braces."""
    return "/".join("{%s}" % c if c in (".", "..", "{dep}", "{cg}") else c for c in path.split("/"))


def named_programs(box, variant):
    made = {}
    for key, name in NAMES.items():
        program = Program(box, os.path.join(box.dir, variant, key, name), "%s-%s" % (variant, key))
        made[key] = program.install()
    return made


def check_names(files, programs, variant):
    wrong = []
    for key, program in programs.items():
        name = stored_name(program.path)
        if key == "long":
            found = {f.name.app[1] for f in files if f.name.app[1].startswith("/(long path ") and f.name.app[1].endswith("/app")}
            name = found.pop() if found else name
            files = [f for f in files if f.name.app[1] != name or not wrong_with(key, [wanted_of(program, name)], [f])] + \
                    [f for f in files if f.name.app[1] == name]
        wrong += wrong_with("%s %s" % (key, variant), [wanted_of(program, name)], files)
    return wrong


def wanted_of(program, name):
    return Wanted(name, [hot_place(program.built, name)], SHARE, MS * 5)


# ---- what becomes of a file while it runs ----


def upgraded(box, name, variant):
    """An old program runs on while a new one takes its place: two build-ids, two profiles."""
    path = os.path.join(box.dir, name)
    old = Program(box, path, variant + "-old").install()
    first = waiting(box, path)
    return old, first, path


def finish_upgrade(box, old, first, path, variant):
    new = Program(box, path, variant + "-new").install()
    second = waiting(box, path)
    go(first, second)
    return old, new


def check_upgrade(what, files, old, new):
    """One of the two has the plain name, the other its build-id behind it, or its inode, where the
    kernel does not tell build-ids.
    """
    for plain, marked in ((old, new), (new, old)):
        mark = "build-id " + marked.build_id()[:12] if can_be_asked() else "inode %d" % marked.inode
        name = "%s (%s)" % (marked.path, mark)
        if any(f.name.app[1] == name for f in files):
            return wrong_with(what + " plain", [wanted_of(plain, plain.path)], files) + \
                wrong_with(what + " marked", [wanted_of(marked, name)], files)
    return ["%s: no profile has the mark of one of the two: %s" % (
        what, sorted({f.name.app[1] for f in files if f.name.app[1].startswith(old.path)}))]


class Far(Program):
    """A program whose path is longer than a path may be: nobody can say it, but one can go there
    step by step.
    """

    def __init__(self, box, variant):
        super().__init__(box, "/".join([box.dir, variant] + FAR + ["far"]), "far-" + variant)
        self.directory = os.open(box.dir, os.O_PATH)
        for name in [variant] + FAR:
            os.mkdir(name, dir_fd=self.directory)
            below = os.open(name, os.O_PATH, dir_fd=self.directory)
            os.close(self.directory)
            self.directory = below
        shutil.copy(self.built, "/proc/self/fd/%d/far" % self.directory)

    def waiting(self, box):
        child = subprocess.Popen(["./far", "plain", str(MS)], env=box.env, stdin=subprocess.PIPE,
                                 preexec_fn=lambda: os.fchdir(self.directory))
        box.children.append(child)
        opdtest.wait_until(lambda: opdtest.is_waiting(child.pid), opdtest.START_SECONDS, "the program far away does not wait")
        return child


def check_far(files, programs):
    """Each has the short form of its path, with its own last component."""
    names = {f.name.app[1] for f in files if f.name.app[1].startswith("/(long path ") and f.name.app[1].endswith("/far")}
    require(len(names) == len(programs), "programs far away: %s" % sorted(names))
    first, last = hot_place(programs[0].built)[2:]
    wrong = []
    for name in sorted(names):
        wrong += wrong_with("far", [Wanted(name, [Place("root", name, first, last)], SHARE, MS * 5)], files)
    return wrong


def removed(box, name):
    program = Program(box, os.path.join(box.dir, name), name).install()
    child = waiting(box, program.path)
    os.unlink(program.path)
    return program, child


def two_names(box):
    """A program whose hot function is a weak name of __hot, as calloc is one of __libc_calloc."""
    program = Program(box, os.path.join(box.dir, "two-names"), "two-names", "-Wl,--defsym=__hot=hot")
    subprocess.run(["objcopy", "--weaken-symbol=hot", program.built], check=True)
    return program.install()


def check_two_names(box, program):
    """The report shows the one without underscores, and each of them finds it."""
    shown = box.opreport("-l", "-n", program.path).splitlines()
    hot = [line for line in shown if line.split()[-1] == "hot"]
    require(len(hot) == 1, "opreport -l shows %s" % shown)
    for name in ("hot", "__hot"):
        found = [line.split() for line in box.opreport("-l", "-n", "-i", name, program.path).splitlines()]
        require([(line[0], line[-1]) for line in found] == [(hot[0].split()[0], "hot")], "-i %s finds %s" % (name, found))


def profile(box):
    """Everything that runs; returns what check() needs."""
    early = named_programs(box, "early")
    children = [waiting(box, p.path) for p in early.values()]
    far = [Far(box, variant) for variant in ("far-early", "far-late")]
    children.append(far[0].waiting(box))
    gone_early, gone_child = removed(box, "gone-early")
    before = upgraded(box, "upgraded-early", "upgraded-early")
    new_early = Program(box, before[2], "upgraded-early-new").install()
    second = waiting(box, before[2])
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel")
    go(*children)
    go(gone_child, before[1], second)
    late = named_programs(box, "late")
    for program in late.values():
        go(waiting(box, program.path))
    go(far[1].waiting(box))
    gone_late, gone_child = removed(box, "gone-late")
    go(gone_child)
    aliased = two_names(box)
    go(waiting(box, aliased.path))
    after = upgraded(box, "upgraded-late", "upgraded-late")
    pair = finish_upgrade(box, *after, "upgraded-late")
    return {"early": early, "late": late}, [gone_early, gone_late], {"upgraded early": (before[0], new_early),
                                                                     "upgraded late": pair}, far, aliased


def test(box):
    box.configure(RingSize="4M", SidebandSize="4M")
    named, gone, pairs, far, aliased = profile(box)
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    box.check_ledger()
    files = box.files()
    wrong = []
    for variant, programs in named.items():
        wrong += check_names(files, programs, variant)
    for program in gone:
        wrong += wrong_with("removed", [wanted_of(program, program.path)], files)
    wrong += check_far(files, far)
    for what, pair in pairs.items():
        wrong += check_upgrade(what, files, *pair)
    require(not wrong, "\n".join(repr(w) for w in wrong))
    check_two_names(box, aliased)
    shown = box.opreport("-n", "-f")
    for program in gone:
        require(program.path in shown, "opreport does not show %s" % program.path)
    box.shutdown()


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
