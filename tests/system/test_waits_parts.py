#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Where a kernel refuses a part of the programs in the kernel, opd has the others, and the status says
what is missing and why. A part is broken on purpose: a copy of opd-waits calls a function of the
kernel that does not exist. And what the verifier of this kernel says of the whole programs is far
below its limits: others look at more instructions than this one.
"""
import os
import re
import struct

import opdtest
from opdtest import require

EM_BPF, SYMBOL_TABLE, CALL, EXIT = 247, 2, 0x85, 0x95
NO_SUCH_FUNCTION = 0x7fff
INSTRUCTIONS_MAX, STACK_MAX = 1000000, 512  # of the kernel
ROOM = 10  # times as many instructions another kernel may look at

# what is broken: the function, and what is missing then
CASES = (("write_note", {"deep"}), ("name_frame", {"runtimes"}), ("on_waking", {"waits"}), ("on_switch", {"waits"}),
         ("on_sample", {"waits", "deep", "runtimes"}))


class Object:
    """The object file that is inside of opd-waits."""

    def __init__(self, data):
        self.data, self.at = data, -1
        while True:
            self.at = data.find(b"\x7fELF", self.at + 1)
            require(self.at >= 0, "opd-waits has no object file")
            if struct.unpack_from("<H", data, self.at + 18)[0] == EM_BPF:
                break
        table, = struct.unpack_from("<Q", data, self.at + 40)
        size, nr = struct.unpack_from("<HH", data, self.at + 58)
        # name, type, flags, address, offset, size, link, ...
        self.sections = [struct.unpack_from("<IIQQQQI", data, self.at + table + size * i) for i in range(nr)]

    def function(self, name):
        """Where its instructions are, and how many bytes."""
        symbols = next(section for section in self.sections if section[1] == SYMBOL_TABLE)
        names = self.at + self.sections[symbols[6]][4]
        for place in range(self.at + symbols[4], self.at + symbols[4] + symbols[5], 24):
            word, _, _, section, value, size = struct.unpack_from("<IBBHQQ", self.data, place)
            if self.data[names + word:self.data.index(b"\0", names + word)] == name.encode():
                return self.at + self.sections[section][4] + value, size
        raise opdtest.Failure("there is no function " + name)


def break_function(box, name):
    """A copy of opd-waits in which the function calls what is not there. on_sample, which has all
    parts, returns at once, and does not say what.
    """
    with open(box.env["OPD_WAITS"], "rb") as stream:
        data = bytearray(stream.read())
    begin, size = Object(bytes(data)).function(name)
    calls = [place for place in range(begin, begin + size, 8) if data[place] == CALL and not data[place + 1] >> 4]
    if name == "on_sample":
        struct.pack_into("<Q", data, begin, EXIT)
    else:
        struct.pack_into("<i", data, calls[0] + 4, NO_SUCH_FUNCTION)
    path = os.path.join(box.dir, "without-" + name)
    with open(path, "wb") as stream:
        stream.write(data)
    os.chmod(path, 0o755)
    return path


def test_broken(box, name, missing):
    box.configure(Stacks="yes")
    box.start_daemon("--event=default", env={"OPD_WAITS": break_function(box, name)})
    status = box.status()
    reasons = {part: status["no_" + part] for part in ("waits", "deep", "runtimes")}
    print("%s is broken: %s" % (name, reasons))
    for part, why in reasons.items():
        require(bool(why) == (part in missing), "%s is broken, %s: %r" % (name, part, why))
        require(not why or "BPF program load failed" in why, "%s: the reason is %r" % (part, why))
    shown = box.opcontrol("--status")
    for part, words in (("waits", "Waits: +not sampled: "), ("deep", "not deeper than StackBytes=: "),
                        ("runtimes", "Python, PHP, Perl and Ruby have no names: ")):
        require(bool(re.search(words + ".*load", re.sub(r"\n +", " ", shown))) == (part in missing), "%s: %s" % (part, shown))
    require(("WAIT" in [event["name"] for event in status["events"]]) == ("waits" not in missing), "the event WAIT")
    path = box.copy_work("busy-app")
    box.work_until(lambda: next(e["received"] for e in box.status()["events"] if e["role"] == opdtest.STACKS), "no stacks",
                   path, "busy", "200", "0")
    box.opcontrol("--stop")
    box.check_ledger(with_files=False)


def test_verifier(box):
    out = box.good(box.env["OPD_WAITS"], "--check")
    found = {}
    for words in re.split(r"^(?=\w+\n)", out, flags=re.MULTILINE)[1:]:
        name = words.split("\n")[0]
        instructions = int(re.search(r"processed (\d+) insns", words).group(1))
        stack = [int(number) for number in re.search(r"stack depth ([\d+]+)", words).group(1).split("+")]
        found[name] = instructions, stack
        require(instructions * ROOM <= INSTRUCTIONS_MAX, "%s: the verifier looks at %d instructions" % (name, instructions))
        # of each function; for those that call each other, the kernel keeps to its limit itself
        require(max(stack) <= STACK_MAX * 3 // 4, "%s: %s bytes of stack" % (name, stack))
    print(found, flush=True)
    require({"on_switch", "on_kick", "on_waking", "on_new_task", "waiting", "on_sample"} <= set(found), "programs: " + out)


def test(box):
    if "OPD_WAITS" not in box.env:
        raise opdtest.Skip("opd was built without clang or libbpf")
    box.configure(Stacks="yes")
    box.start_daemon("--event=default", start=False)
    status = box.status()
    box.shutdown()
    if status["no_waits"] or status["no_deep"] or status["no_runtimes"]:
        raise opdtest.Skip("this kernel has not all: %(no_waits)s; %(no_deep)s; %(no_runtimes)s" % status)
    test_verifier(box)
    for name, missing in CASES:
        test_broken(box, name, missing)
        box.shutdown()
        box.opcontrol("--reset")


if __name__ == "__main__":
    opdtest.run(test)
