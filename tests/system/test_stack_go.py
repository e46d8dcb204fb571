#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
A Go program that was linked without symbols and without DWARF has names and whole stacks: as one
with them, also when it can be loaded anywhere, and when its sections have no names.
"""
import collections
import os
import shutil
import struct

import opdtest
from opdtest import require
from test_stack_shares import check_ledger, make_tables

RATE = 997
MS = 1000     # of CPU time
LEAST = 100   # samples in the two functions of each program
NEEDED = 0.97  # of those: complete ones
PROGRAM = """
package main
import ("os"; "runtime"; "strconv"; "syscall")
type S struct{ x uint64 }
//go:noinline
func (s *S) Method(n int) { for i := 0; i < n; i++ { s.x = s.x*2862933555777941757 + uint64(i) } }
//go:noinline
func work(s *S, f func(int)) { s.Method(1000000); f(1000000) }
func spent() int64 { var usage syscall.Rusage; syscall.Getrusage(0, &usage); return usage.Utime.Nano() }
func main() {
    runtime.LockOSThread()
    ms, _ := strconv.ParseInt(os.Args[1], 10, 64)
    s := &S{}
    for spent() < ms * 1000000 { work(s, func(k int) { for i := 0; i < k; i++ { s.x ^= uint64(i)*7 + s.x>>2 } }) }
}
"""
WANTED = (["main.work", "main.(*S).Method"], ["main.work", "main.main.func1"])


def build(box, name, *flags):
    with open(os.path.join(box.dir, "hot.go"), "w", encoding="ascii") as stream:
        stream.write(PROGRAM)
    path = os.path.join(box.dir, name)
    env = {"GO111MODULE": "off", "GOCACHE": os.path.join(box.dir, "cache"), "CGO_ENABLED": "0"}
    box.good("go", "build", *flags, "-o", path, os.path.join(box.dir, "hot.go"), env=env, timeout=opdtest.HANG_SECONDS)
    return path


def without_section_names(path):
    """A copy whose header names no table of names."""
    with open(path, "rb") as stream:
        data = bytearray(stream.read())
    struct.pack_into("<H", data, 0x3e, 0)
    copy = path + "-nameless"
    with open(copy, "wb") as stream:
        stream.write(data)
    os.chmod(copy, 0o755)
    return copy


def check(box, path):
    total, complete = collections.Counter(), 0
    for line in box.opreport("--format=folded", path).splitlines():
        names, count = line.rsplit(" ", 1)
        names = [name for name in names.split(";") if not name.endswith("_[k]")]
        if names[-2:] in WANTED and "[no_table_yet]" not in names:
            total[names[-1]] += int(count)
            if names[1:] == ["runtime.goexit.abi0" if path.endswith("full") else "runtime.goexit", "runtime.main", "main.main",
                             *names[-2:]]:
                complete += int(count)
    print("%s: %s, %d complete" % (os.path.basename(path), dict(total), complete))
    require(len(total) == 2 and sum(total.values()) >= LEAST, "%s: %s" % (path, total))
    require(complete >= NEEDED * sum(total.values()), "%s: %d of %s are whole" % (path, complete, total))


def test(box):
    if not shutil.which("go"):
        raise opdtest.Skip("Go is not installed")
    paths = [build(box, "full"), build(box, "stripped", "-ldflags=-s -w"), build(box, "pie", "-buildmode=pie", "-ldflags=-s -w")]
    paths.append(without_section_names(paths[1]))
    make_tables(box, *paths)
    box.start_daemon("--event=default", "--stacks=%d" % RATE)
    for path in paths:
        box.good(path, MS)
    box.opcontrol("--stop")
    check_ledger(box.check_ledger(with_files=False))
    for path in paths:
        check(box, path)
    box.shutdown()


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
