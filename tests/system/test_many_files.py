#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
More sample files than may be open: usage: test_many_files.py [FILES], default 1500. The daemon has
no descriptor to spare and keeps few files open, processes
make files of their own again and again: all is stored, once, and every file can be read.
And a count that passes 2^32-1: it goes on in a second node, and the sum is right in the files and
in opreport.
"""
import os
import re
import struct
import sys

import opdtest
from opdtest import reader, require

SPARE_FDS = 16  # for what is open for a moment: files in the making, those of /proc, the tool that asks
NODE = struct.Struct("<QII")
FULL = 0xffffffff


def nr_fds(pid):
    return len(os.listdir("/proc/%d/fd" % pid))


def leave_no_descriptors(box):
    """A limit just above what is open now."""
    pid = box.daemon.pid
    limit = max(int(fd) for fd in os.listdir("/proc/%d/fd" % pid)) + 1 + SPARE_FDS
    box.good("prlimit", "--pid", pid, "--nofile=%d:%d" % (limit, limit), user=os.stat("/proc/%d" % pid).st_uid)
    return limit


def many_files(box, nr_wanted):
    box.configure(MaxOpenFiles="100")
    box.start_daemon("--event=page-faults:1", "--separate=library,kernel,thread")
    limit = leave_no_descriptors(box)
    app, nr_runs = box.copy_work("many"), 0
    while len(reader.list_files(os.path.join(box.session, "samples", "current"))) < nr_wanted:
        box.good("sh", "-c", "i=0; while [ $i -lt 50 ]; do %s faults 10; i=$((i+1)); done" % app)
        nr_runs += 50
        require(nr_fds(box.daemon.pid) <= limit, "%d descriptors of %d" % (nr_fds(box.daemon.pid), limit))
    box.opcontrol("--stop")
    status = box.check_ledger(not_sampled=FULL)
    event = status["events"][0]
    files = box.files()
    print("%d files after %d runs, %d samples, limit of descriptors %d" % (len(files), nr_runs, event["stored"], limit))
    require(event["lost_too_many_files"] == 0 and event["lost_io_error"] == 0, "samples are lost: %s" % event)
    tgids = {f.name.tgid for f in files if f.name.app[1] == app}
    require(len(tgids) >= nr_runs * 0.9 or event["lost_kernel"], "%d of %d processes have files" % (len(tgids), nr_runs))
    box.opcontrol("--reset")
    box.shutdown()


# ---- a count that is full ----

def hottest(box, app):
    """Path of the file with the most samples of a program in itself, and the key with the most."""
    f = max((f for f in box.files() if f.name.app[1] == f.name.image[1] == app), key=lambda f: f.total)
    return f.path, max(f.keys, key=f.keys.get)


def values_of(box, path, key):
    with open(os.path.join(box.session, "samples", "current", path), "rb") as stream:
        data = stream.read()
    size, current_size = struct.unpack_from("<II", data, reader.HEADER.size)
    nodes = [NODE.unpack_from(data, reader.NODES_OFFSET + NODE.size * i) for i in range(1, current_size)]
    return [(reader.NODES_OFFSET + NODE.size * (i + 1), value) for i, (k, value, _) in enumerate(nodes) if k == key]


def set_value(box, path, offset, value):
    with open(os.path.join(box.session, "samples", "current", path), "r+b") as stream:
        stream.seek(offset + 8)
        stream.write(struct.pack("<I", value))


def full_count(box):
    box.configure()
    box.start_daemon("--event=page-faults:1", "--separate=library,kernel")
    app = box.copy_work("saturated")
    box.good(app, "faults", 1000)
    box.shutdown()
    path, key = hottest(box, app)
    (offset, _), = values_of(box, path, key)
    set_value(box, path, offset, FULL - 300)
    box.start_daemon()
    box.good(app, "faults", 1000)
    box.opcontrol("--stop")
    event = box.status()["events"][0]
    values = [value for _, value in values_of(box, path, key)]
    print("nodes of key 0x%x: %s; lost by the kernel %d" % (key, values, event["lost_kernel"]))
    require(event["received"] == event["stored"], "samples are lost: %s" % event)
    require(len(values) == 2 and values[0] == FULL, "the nodes of the full key are %s" % values)
    require(FULL + 700 <= sum(values) + event["lost_kernel"] and sum(values) <= FULL + 800, "%d samples" % sum(values))
    total = sum(f.total for f in box.files() if f.name.app[1] == f.name.image[1] == app)
    shown = box.opreport("-n", "-l", app)
    require(re.search(r"^%d\s" % total, shown, re.M) or str(sum(values)) in shown,
            "opreport does not show %d:\n%s" % (total, shown))
    box.check_agreement()
    box.shutdown()


def test(box):
    full_count(box)
    box.start_daemon(start=False)
    box.opcontrol("--reset")
    box.shutdown()
    many_files(box, int(sys.argv[1]) if len(sys.argv) > 1 else 1500)


if __name__ == "__main__":
    opdtest.run(test)
