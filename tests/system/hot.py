# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that run one known function, hot, and whether its samples lie where they must: mapped.c and bare.c, made while the test runs."""
import collections
import os
import re
import subprocess

import opdtest
from opdtest import require

PERIOD_NS = 100000
MS = 400
SHARE = 0.99
PAGE = 4096

# Where samples must be: kind and name of the image ("root", PATH), ("anon", LABEL), and the keys there.
Place = collections.namedtuple("Place", "kind name first end")
# Processes whose application is `app`: at least `share` of their user samples at one of the places, and at least `samples` in all.
Wanted = collections.namedtuple("Wanted", "app places share samples")


def source(name):
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), name)


def compile_to(box, path, *flags, file="mapped.c", may_fail=False):
    result = box.run("gcc", "-O1", "-g", "-pthread", *flags, source(file), "-o", path)
    if result.rc and may_fail:
        return False
    require(result.rc == 0, "gcc: " + result.err)
    return True


def hot_place(path, stored=None):
    """The range of `hot` in an ELF file of either word size, as file offsets."""
    def output(*command):
        return subprocess.run([*command, path], capture_output=True, check=True).stdout.decode("utf-8", "replace")
    address, size = (int(x, 16) for x in re.search(r"^(\w+) (\w+) . hot$", output("nm", "-S"), re.M).groups())
    for line in output("readelf", "-lW").splitlines():
        fields = line.split()
        if fields and fields[0] == "LOAD":
            offset, start, file_bytes = int(fields[1], 16), int(fields[2], 16), int(fields[4], 16)
            if start <= address < start + file_bytes:
                return Place("root", stored or path, address - start + offset, address - start + offset + size)
    raise opdtest.Failure("no segment of %s has hot" % path)


def name_of(image):
    return re.sub(r" \((tgid:\d+ )?range:.*", "", image[1]) if image[0] == "anon" else image[1]


def wrong_with(what, all_wanted, files):
    """What is wrong with the samples of some processes: a list of texts. Prints one line for each application."""
    wrong = []
    for wanted in all_wanted:
        mine = [f for f in files if f.name.app == ("root", wanted.app) and not f.header.is_kernel]
        total = sum(f.total for f in mine)
        right = sum(count for f in mine for place in wanted.places if (f.name.image[0], name_of(f.name.image)) == place[:2]
                    for key, count in f.keys.items() if place.first <= key < place.end)
        print("%-30s %5d samples, %6.2f %% right" % (what, total, 100.0 * right / total if total else 0))
        if total < wanted.samples or right < wanted.share * total:
            seen = sorted(((f.total, f.name.image, ["0x%x" % k for k in sorted(f.keys)[:3]]) for f in mine), reverse=True)[:4]
            wrong.append("%s: %d samples of %r, %d right, wanted %s, found %s" % (what, total, wanted.app, right, wanted.places, seen))
    return wrong
