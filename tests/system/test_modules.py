#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Kernel modules that come and go while opd runs: one that is loaded, taken out, and put in again as
another build of the same name. Two images, known by
their build-ids. Memory-fed, without a kernel that has modules: test_kernel_map.
"""
import os
import platform
import shutil

import opdtest
from opdtest import Skip, require

NAME = "opd_test_module"
SPIN_MS = 800
PERIOD_NS = 197000
MIN_SAMPLES = 0.6 * SPIN_MS * 1e6 / PERIOD_NS
REFRESH_SECONDS = 3  # /proc/modules is read every second


def can_load():
    if not os.path.exists("/proc/modules"):
        raise Skip("this kernel has no modules (CONFIG_MODULES)")
    build = "/lib/modules/%s/build" % platform.release()
    if not os.path.isdir(build):
        raise Skip("no headers of the running kernel: %s is not there" % build)
    for tool in ("make", "insmod", "rmmod"):
        if not shutil.which(tool):
            raise Skip("%s is not installed" % tool)
    return build


def make_module(box, headers, variant):
    directory = os.path.join(box.dir, "module-%d" % variant)
    os.mkdir(directory)
    shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), NAME + ".c"), directory)
    with open(os.path.join(directory, "Makefile"), "w", encoding="ascii") as stream:
        stream.write("obj-m := %s.o\nccflags-y := -DVARIANT=%d\n" % (NAME, variant))
    result = box.run("make", "-C", headers, "M=" + directory, "modules")
    if result.rc != 0:
        raise Skip("the module cannot be built: %s" % result.err.strip()[-200:])
    return os.path.join(directory, NAME + ".ko")


def build_id(path):
    with open("/sys/module/%s/notes/.note.gnu.build-id" % NAME, "rb") as stream:
        found = stream.read()[16:].hex()
    require(found, "%s has no build-id" % path)
    return found


def spend(box, path):
    """Loads it, lets it work and takes it out again; its build-id."""
    result = box.run("insmod", path)
    if result.rc != 0:
        raise Skip("the module cannot be loaded: %s" % result.err.strip())
    try:
        found = build_id(path)
        box.good("sh", "-c", "sleep %d; echo %d >/sys/module/%s/parameters/spin" % (REFRESH_SECONDS, SPIN_MS, NAME))
        box.opcontrol("--dump")
    finally:
        box.good("rmmod", NAME)
    return found


def test(box):
    headers = can_load()
    modules = [make_module(box, headers, variant) for variant in (1, 2)]
    box.configure(RingSize="1M")
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel")
    first, second = [spend(box, path) for path in modules]
    require(first != second, "the two builds have one build-id")
    box.opcontrol("--stop")
    box.check_ledger()
    totals = {}
    for sample_file in box.files():
        if NAME in sample_file.name.image[1]:
            totals[sample_file.name.image[1]] = totals.get(sample_file.name.image[1], 0) + sample_file.total
    print("modules: %s" % totals)
    require(set(totals) == {"/" + NAME, "/%s (build-id %s)" % (NAME, second[:12])}, "images of the module: %s" % totals)
    require(min(totals.values()) >= MIN_SAMPLES, "%s samples, %d expected" % (totals, MIN_SAMPLES))
    listed = box.opreport("-l", "-n", "--image-path=" + os.path.dirname(modules[0]))
    require("opd_test_spin" in listed, "no symbols of the module: %s" % listed)
    box.check_agreement()
    box.shutdown()


if __name__ == "__main__":
    opdtest.run(test)
