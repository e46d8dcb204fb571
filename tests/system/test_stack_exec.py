#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Stacks of processes that begin and end: a stack that was taken in execve has no user part, and is
complete at the entry of the kernel. So is one whose memory is gone. The dynamic linker begins with
_start. On a host with many short processes these are most of the stacks that are not cut short by
the length of the copy.
"""
import collections

import opdtest
from opdtest import require
from test_stack_shares import check_ledger, make_tables

RATE = 997
LEAST = 20
SCRIPT = "i=0; while [ $i -lt 400 ]; do /bin/true; i=$((i+1)); done"
IN_EXEC = ("load_elf_binary_[k]", "begin_new_exec_[k]")
ENDS = ("[cut]", "[no_row]", "[left_code]", "[too_deep]", "[guessed]")


def check(lines):
    nr = collections.Counter()
    for line in lines:
        names, count = line.rsplit(" ", 1)
        names = names.split(";")[1:]
        end = next((name for name in names[:1] if name in ENDS), None)
        user = [name for name in names if not name.endswith("_[k]") and name not in ENDS]
        if "[no_table_yet]" in names:
            continue
        if set(IN_EXEC) & set(names):
            nr["exec"] += int(count)
            require(not end and not user, "in execve: %s" % line)
        elif "_dl_start" in names:
            nr["linker"] += int(count)
            require(not end and user[0] == "_start", "in the dynamic linker: %s" % line)
    print(dict(nr))
    return nr


def test(box):
    if not open("/proc/kallsyms", encoding="ascii").readline().split()[0].strip("0"):
        raise opdtest.Skip("the addresses of the kernel's functions are hidden")
    make_tables(box, "/bin/true")
    box.start_daemon("--event=default", "--stacks=%d" % RATE)
    nr = collections.Counter()
    for _ in range(20):
        box.good("/bin/sh", "-c", SCRIPT)
        box.opcontrol("--dump")
        nr = check(box.opreport("--format=folded").splitlines())
        if min(nr["exec"], nr["linker"]) >= LEAST:
            break
    require(min(nr["exec"], nr["linker"]) >= LEAST, "samples: %s" % nr)
    box.opcontrol("--stop")
    check_ledger(box.check_ledger(with_files=False))
    box.shutdown()


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
