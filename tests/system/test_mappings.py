#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Every kind of mapping: a process runs a function that is known, from where the kind puts it; its
samples must lie there. Each kind twice: with
its mappings made before opd looks, and while it does.
"""
import collections
import glob
import os
import subprocess

import opdtest
from hot import MS, PAGE, PERIOD_NS, SHARE, Place, Wanted, compile_to, hot_place, source, wrong_with
from opdtest import require

AT_ONCE = 4
HUGE_PAGES = "/proc/sys/vm/nr_hugepages"

# A kind: its name, how the program is made, its arguments and the expected places; the last two are
# functions of (box, path of the program).
Kind = collections.namedtuple("Kind", "name build files wanted")


def own(box, path):
    return [Wanted(path, [hot_place(path)], SHARE, MS * 5)]


def at_label(label, end=PAGE):
    return lambda box, path: [Wanted(path, [Place("anon", label, 0, end)], SHARE, MS * 5)]


def at_file(name):
    """A file that the process makes, of nothing but a page of code."""
    return lambda box, path: [Wanted(path, [Place("root", filled(name, box, path), 0, PAGE)], SHARE, MS * 5)]


def in_heap(box, path):
    """The record of a mapping that changes calls a part of the heap so since Linux 6.6. Before, only
    all of it. /proc/PID/maps always does.
    """
    release = tuple(int(n) for n in os.uname().release.split(".")[:2])
    return at_label("anon" if path.endswith("-late") and release < (6, 6) else "[heap]")(box, path)


def filled(name, box, path):
    return name.replace("DIR", box.dir).replace("BOX", os.path.basename(box.dir)).replace("NAME", os.path.basename(path))


def library(number, directory, *flags):
    def make(box, path):
        result = "%s-%s-%d.so" % (path, directory, number)
        if not os.path.exists(result):
            compile_to(box, result, "-DLIBRARY", "-shared", "-fPIC", *flags)
        return result
    return make


FIRST, SECOND = library(1, "lib"), library(2, "lib")


def copy_of(box, path):
    return path + "-copy"


def in_copy(box, path):
    return [Wanted(path, [hot_place(copy_of(box, path))], SHARE, MS * 5)]


def in_library(box, path):
    return [Wanted(path, [hot_place(FIRST(box, path))], SHARE, MS * 5)]


def in_both_libraries(box, path):
    return [Wanted(path, [hot_place(FIRST(box, path))], 0.45, MS * 5), Wanted(path, [hot_place(SECOND(box, path))], 0.45, MS * 5),
            Wanted(path, [hot_place(FIRST(box, path)), hot_place(SECOND(box, path))], SHARE, MS * 5)]


def in_self_and_copy(box, path):
    return [Wanted(p, [hot_place(p)], 0.97, MS * 2) for p in (path, copy_of(box, path))]


def in_vdso(box, path):
    return [Wanted(path, [Place("anon", "[vdso]", 0, 1 << 20)], 0.3, MS * 5)]


def mapped(*flags):
    def build(box, path):
        compile_to(box, path, *flags)
        compile_to(box, copy_of(box, path), *flags)
        return True
    return build


def bare(*flags):
    return lambda box, path: compile_to(box, path, "-nostdlib", "-static", "-no-pie", "-fno-pie", "-fno-stack-protector", *flags,
                                        file="bare.c", may_fail=True)


def no_files(box, path):
    return []


def the_copy(box, path):
    return [copy_of(box, path)]


def libraries(box, path):
    return [FIRST(box, path), SECOND(box, path)]


def named(name):
    return lambda box, path: [filled(name, box, path)]


BARE_HAND = bare("-Wl,-z,max-page-size=4096", "-Wl,-T," + source("hand.lds"), "-Wl,--build-id=none")
KINDS = [
    Kind("plain", mapped(), no_files, own),
    Kind("plain:no-pie", mapped("-no-pie", "-fno-pie"), no_files, own),
    Kind("plain:static", mapped("-static", "-w"), no_files, own),
    Kind("plain:static-pie", mapped("-static-pie", "-fPIE", "-w"), no_files, own),
    Kind("plain:no-build-id", mapped("-Wl,--build-id=none"), no_files, own),
    Kind("plain:one-segment", mapped("-Wl,-z,noseparate-code"), no_files, own),
    Kind("bare:static", bare(), no_files, own),
    Kind("bare:32-bit", bare("-m32"), no_files, own),
    Kind("bare:hand-linked", BARE_HAND, no_files, own),
    Kind("library", mapped(), libraries, in_library),
    Kind("library-twice", mapped(), libraries, in_both_libraries),
    Kind("jit-after-library", mapped(), libraries, at_label("anon")),
    Kind("mprotect-later", mapped(), the_copy, in_copy),
    Kind("mprotect-part", mapped(), no_files, own),
    Kind("mremap-file", mapped(), the_copy, in_copy),
    Kind("mremap-memory", mapped(), no_files, at_label("anon")),
    Kind("text-copied", mapped(), no_files, own),
    Kind("text-moved", mapped(), no_files, own),
    Kind("text-copied:one-segment", mapped("-Wl,-z,noseparate-code"), no_files, own),
    Kind("memory", mapped(), no_files, at_label("anon")),
    Kind("huge-memory", mapped(), no_files, at_label("anon")),
    Kind("heap", mapped(), no_files, in_heap),
    Kind("stack", mapped("-Wl,-z,execstack"), no_files, at_label("[stack]", 1 << 24)),
    Kind("vdso", mapped(), no_files, in_vdso),
    Kind("memfd", mapped(), named("jit code NAME"), at_file("/memfd:jit code NAME")),
    Kind("shared-file", mapped(), named("/dev/shm/BOX NAME"), at_file("/dev/shm/BOX NAME")),
    Kind("huge-file", mapped(), named("DIR/huge/NAME"), at_file("DIR/huge/NAME")),
    Kind("sysv", mapped(), no_files, at_label("anon")),
    Kind("forked", mapped(), no_files, own),
    Kind("vforked", mapped(), the_copy, in_self_and_copy),
    Kind("threads", mapped(), no_files, own),
    Kind("executed", mapped(), the_copy, in_self_and_copy),
]


class Run:
    """A process of one kind."""

    def __init__(self, box, kind, variant):
        self.kind, self.variant = kind, variant
        self.path = os.path.join(box.dir, "%s-%s" % (kind.name.replace(":", "-"), variant))
        require(self.built(box), "cannot build %s" % kind.name)
        self.files = kind.files(box, self.path)
        self.child = None

    def built(self, box):
        return self.kind.build(box, self.path)

    def start(self, box, stdin):
        words = [self.path, self.kind.name.split(":")[0], str(MS)] + self.files
        self.child = subprocess.Popen(words, env=box.env, cwd=box.dir, stdin=stdin, stderr=subprocess.PIPE)
        box.children.append(self.child)

    def start_early(self, box):
        self.start(box, subprocess.PIPE)
        opdtest.wait_until(lambda: opdtest.is_waiting(self.child.pid) or self.child.poll() is not None, opdtest.START_SECONDS,
                           "%s does not wait" % self.kind.name)

    def finish(self):
        _, err = self.child.communicate(timeout=opdtest.CALL_SECONDS)
        require(self.child.returncode == 0, "%s: %s %s" % (self.kind.name, self.child.returncode, err.decode("utf-8", "replace")))


def run_late(box, runs):
    for i in range(0, len(runs), AT_ONCE):
        for run in runs[i:i + AT_ONCE]:
            run.start(box, subprocess.DEVNULL)
        for run in runs[i:i + AT_ONCE]:
            run.finish()


def run_early(runs):
    for i in range(0, len(runs), AT_ONCE):
        for run in runs[i:i + AT_ONCE]:
            run.child.stdin.close()
            run.child.stdin = None
        for run in runs[i:i + AT_ONCE]:
            run.finish()


class HugePages:
    """Huge pages for the kinds that need them; the setting of the host comes back."""

    def __init__(self, box):
        self.before = self.setting()
        os.makedirs(os.path.join(box.dir, "huge"))
        self.there = self.set(max(self.before, 16)) and box.run("mount", "-t", "hugetlbfs", "opd-test",
                                                                os.path.join(box.dir, "huge")).rc == 0
        if self.there:
            box.mounts.append(os.path.join(box.dir, "huge"))

    @staticmethod
    def setting():
        try:
            with open(HUGE_PAGES, encoding="ascii") as stream:
                return int(stream.read())
        except OSError:
            return 0

    def set(self, number):
        try:
            with open(HUGE_PAGES, "w", encoding="ascii") as stream:
                stream.write(str(number))
        except OSError:
            return False
        return self.setting() >= number

    def restore(self):
        self.set(self.before)


def usable_kinds(box, huge_pages):
    usable = []
    for kind in KINDS:
        if kind.name.startswith("huge-") and not huge_pages.there:
            print("left out: %s: no huge pages here" % kind.name)
        elif kind.name == "bare:32-bit" and not runs_32_bit(box):
            print("left out: %s: this host does not build or run it" % kind.name)
        else:
            usable.append(kind)
    return usable


def runs_32_bit(box):
    path = os.path.join(box.dir, "try-32-bit")
    return bare("-m32")(box, path) and box.run(path).rc == 0


def profile(box, huge_pages):
    kinds = usable_kinds(box, huge_pages)
    early, late = [Run(box, kind, "early") for kind in kinds], [Run(box, kind, "late") for kind in kinds]
    for run in early:
        run.start_early(box)
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel")
    run_early(early)
    run_late(box, late)
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    box.check_ledger()
    files = box.files()
    wrong = []
    for run in early + late:
        wrong += wrong_with("%s %s" % (run.kind.name, run.variant), run.kind.wanted(box, run.path), files)
    require(not wrong, "\n".join(wrong))
    status = box.status()
    print("maps read again: %d" % status["maps_reread"])
    require(status["maps_reread"] > 0, "no maps were read again, and code was moved")
    box.check_agreement()
    box.shutdown()


def test(box):
    box.configure(RingSize="4M", SidebandSize="4M")
    huge_pages = HugePages(box)
    try:
        profile(box, huge_pages)
    finally:
        huge_pages.restore()
        for left in glob.glob("/dev/shm/%s *" % os.path.basename(box.dir)):
            os.unlink(left)


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
