# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that run one known function, hot, and whether its samples lie where they must: mapped.c
and bare.c, made while the test runs.
"""
import collections
import os
import re
import subprocess

import elfsyms
import opdtest
from opdtest import require

PERIOD_NS = 100000
MS = 400
SHARE = 0.99
# the largest such share of a program's samples: mapped.c between two calls of hot; more when it
# shares its CPU
OWN_SHARE = 0.05
OWN_FUNCTIONS = ("main", "plain", "go_and_run", "run", "cpu_ms", "clock_gettime", "__clock_gettime")
PAGE = 4096
# What a program needs before it comes to hot; more when it shares its CPU with many.
LIBRARIES = re.compile(r"/(ld-linux|libc|libgcc_s|libdl|libpthread)[^/]*\.so[.0-9]*$")

# Where the samples must be: kind and name of the image ("root", PATH) or ("anon", LABEL), and its
# keys.
Place = collections.namedtuple("Place", "kind name first end")
# Processes of the application `app`: they must have at least `samples` user samples, and at least
# the part `share` of them in one of the places. The part OWN_SHARE may be in one of the places
# `own`, in the system's libraries or in the vdso.
Wanted = collections.namedtuple("Wanted", "app places share samples own", defaults=((),))


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


def own_places(path, stored=None):
    """The functions of a static program around hot, and the vdso, which they call for the time."""
    ranges = elfsyms.symbol_ranges(path, OWN_FUNCTIONS)
    require("main" in ranges, "%s has no main" % path)
    return [Place("root", stored or path, first, end) for first, end in ranges.values()] + [Place("anon", "[vdso]", 0, 1 << 20)]


def name_of(image):
    return re.sub(r" \((tgid:\d+ )?range:.*", "", image[1]) if image[0] == "anon" else image[1]


def nr_at(places, files):
    """The samples at one of the places."""
    return sum(count for f in files for key, count in f.keys.items()
               if any((f.name.image[0], name_of(f.name.image)) == place[:2] and place.first <= key < place.end for place in places))


def nr_in_libraries(places, files):
    names = {place.name for place in places}
    return sum(f.total for f in files if name_of(f.name.image) not in names and
               (LIBRARIES.search(f.name.image[1]) or name_of(f.name.image) == "[vdso]"))


def wrong_with(what, all_wanted, files):
    """The faults in the samples of some processes: a list of texts. Prints one line for each
    application.
    """
    wrong = []
    for wanted in all_wanted:
        mine = [f for f in files if f.name.app == ("root", wanted.app) and not f.header.is_kernel]
        total = sum(f.total for f in mine)
        hot, own = nr_at(wanted.places, mine), nr_at(wanted.own, mine)
        own += nr_in_libraries((*wanted.places, *wanted.own), mine)
        right = hot + min(own, int(OWN_SHARE * total))
        print("%-30s %5d samples, %6.2f %% right, %d of them not in hot" % (what, total, 100.0 * right / total
                if total else 0, right - hot))
        if total < wanted.samples or right < wanted.share * total:
            seen = sorted(((f.total, f.name.image, ["0x%x" % k for k in sorted(f.keys)[:3]]) for f in mine), reverse=True)[:4]
            wrong.append("%s: %d samples of %r, %d right, wanted %s, found %s" % (what, total, wanted.app, right,
                    wanted.places, seen))
    return wrong
