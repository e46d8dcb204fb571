#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
The clock of waits stands still in a suspend: of all clocks, the program in the kernel asks for
CLOCK_MONOTONIC only, and perf and opd have the same one (libop/base/clock.h).

Run from the build directory by `make check`.
"""
import os
import struct
import sys

OBJECT = "pipeline/waits/program.bpf.o"
CALL, EXECUTABLE = 0x85, 4  # the code of a call, and the flag of a section
# linux/bpf.h: the numbers of the functions that tell a time
KTIME_GET_NS, OTHER_CLOCKS = 5, {125: "boot", 160: "coarse", 208: "tai", 118: "jiffies"}


def functions_called(path):
    """Numbers of the kernel's functions that the programs of an object file call."""
    with open(path, "rb") as stream:
        data = stream.read()
    at, = struct.unpack_from("<Q", data, 40)
    size, nr = struct.unpack_from("<HH", data, 58)
    called = set()
    for i in range(nr):
        flags, offset, length = (struct.unpack_from("<Q", data, at + size * i + place)[0] for place in (8, 24, 32))
        for place in range(offset, offset + length, 8) if flags & EXECUTABLE else ():
            code, registers, _, number = struct.unpack_from("<BBhi", data, place)
            if code == CALL and not registers >> 4:
                called.add(number)
    return called


def main():
    if not os.path.exists(OBJECT):
        print("skip: opd was built without clang or libbpf")
        return 77
    called = functions_called(OBJECT)
    others = [name for number, name in OTHER_CLOCKS.items() if number in called]
    if KTIME_GET_NS not in called or others:
        print("the program asks for %s, and should ask for CLOCK_MONOTONIC" % (others or "no clock"))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
