#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
A program that moves its text to memory keeps its names, in samples and in stacks: from the first
page of the file on, where no other segment of the file is below, and behind it; copied, moved by
mremap, or in a memfd that has nothing but the text.
"""
import os
import re

import opdtest
import operftest
from hot import compile_to
from opdtest import Skip, require

MS = 1500
SHARE = 0.9  # of the samples; moving by mremap is seen a little later
# name: flags. With -z noseparate-code the text begins in the first page of the file.
BUILDS = {
    "first": ("-no-pie", "-Wl,-z,noseparate-code", "-Wl,--section-start=.mover=0x500000", "-DSKIPPED=0"),
    "inner": ("-Wl,--section-start=.mover=0x800000", "-DSKIPPED=4096"),
}


def rows(home):
    """{symbol of the program or its images: samples}, without the kernel."""
    lines = re.findall(r"^(\d+)\s+[\d.]+\s+(\S+)\s+(.*)$", home.opreport("-l", "-n"), re.M)
    return {symbol: int(nr) for nr, image, symbol in lines if image != "kallsyms"}


def check(home, program, kind):
    result = home.run(home.operf, "--stacks", program, kind, MS)
    if result.rc == 77:
        raise Skip("the text is moved on x86-64 only")
    require(result.rc == 0, "operf: %s" % (result,))
    found = rows(home)
    print("%s %s: %s" % (os.path.basename(program), kind, found))
    require(found.get("hot", 0) >= SHARE * sum(found.values()), "%s: samples without their name: %s" % (kind, found))
    stacks = [line.rsplit(" ", 1) for line in home.opreport("--format=folded").splitlines()]
    named = sum(int(nr) for path, nr in stacks if ";main;hot" in path)
    require(named >= SHARE * sum(int(nr) for _, nr in stacks), "%s: stacks without their names: %s" % (kind, stacks))


def test(box):
    home = operftest.Home(box, user=0)
    for name, flags in BUILDS.items():
        program = os.path.join(home.path, name)
        compile_to(box, program, "-O2", *flags, file="text_copy.c")
        for kind in "copy", "mremap", "memfd":
            check(home, program, kind)


if __name__ == "__main__":
    opdtest.run(test)
