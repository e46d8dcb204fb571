#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Limits of the host, and sessions that somebody made to keep the tools busy: each program comes to an
end and says what is wrong.
"""
import errno
import os
import re
import shutil
import struct
import subprocess

import opdtest
from opdtest import require
from test_headers import perf_data

TIB = 1 << 40
HOLE = 8 * TIB  # takes hours to read
DEPTH = 3000
HEADER_BYTES, DESCR_BYTES, NODE_BYTES, BUCKET_BYTES = 72, 32, 16, 4
MANY_NODES, SPARSE_NODES = 1 << 28, 1 << 26
FSIZE = 16 * 1024
NR_SITES = 2000  # nodes of a sample file, more than there is room for
LONG_LINE = 1200  # no message is longer
PEAK_BYTES = 256 << 20  # of a tool that reads a sparse file


def tool(box, name):
    return os.path.join(box.bin, name)


def current(box, *path):
    return os.path.join(box.session, "samples", "current", *path)


def a_sample_file(box):
    return next(os.path.join(d, n) for d, _, names in os.walk(current(box, "{root}")) for n in names)


def every_tool(box):
    """What each tool that reads sessions says; each must come to an end."""
    archive = os.path.join(box.dir, "archive")
    said = {"opreport": box.run(tool(box, "opreport"), "-l", "--session-dir=" + box.session),
            "opcheck": box.run(tool(box, "opcheck"), "--session-dir=" + box.session),
            "oparchive": box.run(tool(box, "oparchive"), "--session-dir=" + box.session, "-o", archive)}
    shutil.rmtree(archive, ignore_errors=True)
    for name, result in said.items():
        require(result.rc >= 0, "%s was ended by a signal: %s" % (name, result))
        messages = result.err + (result.out if name == "opcheck" else "")  # a report may have long names
        require(all(len(line) <= LONG_LINE for line in messages.splitlines()), "%s: %s" % (name, messages))
    return said


def small_files(box):
    """No file may grow beyond the limit of the process: opd goes on, and says which limit it is.
    The tools that write files fail with a line.
    """
    program = os.path.join(box.dir, "few-bytes")
    with open(program, "w", encoding="ascii") as stream:
        stream.write("#!/bin/sh\nexec prlimit --fsize=%d:%d \"%s\" \"$@\"\n" % (FSIZE, FSIZE, box.launcher))
    os.chmod(program, 0o755)
    box.env["OPD_DAEMON"], normal = program, box.env["OPD_DAEMON"]
    box.start_daemon("--event=page-faults:1")
    require("the limit of file size is %d KiB" % (FSIZE // 1024) in box.log_text(), "the log does not tell of the limit")
    require("lost_file_limit" in box.log_text(), "the log does not name the loss")
    box.work_until(lambda: sum(e["lost_file_limit"] for e in box.status()["events"]) > 0, "nothing is lost beyond the limit",
                   box.work, "sites", NR_SITES)
    opdtest.wait_until(lambda: "samples lost (lost_file_limit)" in box.log_text(), opdtest.HANG_SECONDS, "the log tells of no loss")
    for event in box.status()["events"]:
        ends = sum(event[key] for key in event if key.startswith("lost_") and key != "lost_kernel")
        require(event["received"] == event["stored"] + event["filtered"] + ends, "samples without an end: %s" % event)
    require(os.strerror(errno.ENOSPC) not in box.log_text(), "the log takes the limit for a full disk: %s" % box.log_text())
    result = box.run(tool(box, "opcontrol"), "--dump")
    require(result.rc == 0 or "LimitFSIZE=" in result.err, "--dump: %s" % (result,))
    result = box.run(tool(box, "opcontrol"), "--shutdown")
    require(result.rc == 0 or "LimitFSIZE=" in result.err, "--shutdown: %s" % (result,))
    require(box.daemon.wait(opdtest.HANG_SECONDS) in (0, 2), "opd ended with %s" % box.daemon.returncode)
    box.env["OPD_DAEMON"] = normal
    shutil.rmtree(box.session)


def few_descriptors(box):
    """The message has the limit that there is, and not the one that opd asked for."""
    result = box.run("setpriv", "--bounding-set=-sys_resource", "--inh-caps=-sys_resource", "prlimit", "--nofile=24:24",
                     os.path.join(box.sbin, "opd"))
    require(result.rc == 1 and "the limit is 24:" in result.err, "24 descriptors: %s" % (result,))


def make_session(box):
    box.start_daemon("--event=TIMER:300000")
    box.good(box.work, "shares", "300")
    box.opcontrol("--dump")
    box.shutdown()
    shutil.copytree(box.session, box.session + ".kept")


def make_anew(box):
    """shutil.rmtree does not remove as many directories in each other."""
    box.good("rm", "-rf", box.session)
    shutil.copytree(box.session + ".kept", box.session)


def sparse_files(box):
    """Lengths that take no room on the disk take no time and no memory."""
    make_anew(box)
    os.truncate(current(box, "dcookies"), TIB)
    said = every_tool(box)
    for name in ("opreport", "oparchive"):
        require("dcookies:" in said[name].err and "more than 64 MiB of damaged lines" in said[name].err,
                "%s: %s" % (name, said[name]))
    make_anew(box)
    for name in ("ledger", *(os.path.join("stats", n) for n in os.listdir(current(box, "stats")))):
        os.truncate(current(box, name), TIB)
    os.truncate(os.path.join(box.session, "abi"), TIB)
    every_tool(box)
    make_anew(box)
    make_sparse(a_sample_file(box), MANY_NODES)
    result = box.run("prlimit", "--as=%d" % (MANY_NODES * NODE_BYTES // 2), tool(box, "opreport"),
                    "--session-dir=" + box.session, "-n")
    require(result.rc == 0 and "memory" not in result.err, "a sparse sample file: %s" % (result,))
    every_tool(box)
    make_anew(box)
    check_peak(box)


def make_sparse(path, nr_nodes):
    """As many nodes in use, nearly all in a hole, and the hash table, too."""
    with open(path, "r+b") as stream:
        stream.seek(HEADER_BYTES)
        stream.truncate(HEADER_BYTES + DESCR_BYTES + struct.unpack("=I", stream.read(4))[0] * NODE_BYTES)
        stream.seek(HEADER_BYTES)
        stream.write(struct.pack("=II", nr_nodes, nr_nodes))
        stream.truncate(HEADER_BYTES + DESCR_BYTES + nr_nodes * (NODE_BYTES + BUCKET_BYTES))


def check_peak(box):
    """opcheck reads no hole. It finds that nodes are missing, and its repair keeps the others."""
    whole = sum(f.total for f in box.files())
    make_sparse(a_sample_file(box), SPARSE_NODES)
    for repair, rc in ((), 2), (("--repair",), 1), ((), 0):
        with subprocess.Popen([tool(box, "opcheck"), "--session-dir=" + box.session, *repair], stdout=subprocess.PIPE,
                              env=box.env) as child:
            out = child.stdout.read().decode()
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        print("opcheck %s of a sparse file: peak %d MiB, %.2f s of CPU" % (
            " ".join(repair), usage.ru_maxrss >> 10, usage.ru_utime + usage.ru_stime))
        require(child.returncode == rc, "opcheck %s: %s %s" % (repair, child.returncode, out))
        require(rc == 0 or "a node of which a part is missing" in out, "opcheck %s: %s" % (repair, out))
        require(usage.ru_maxrss << 10 < PEAK_BYTES, "opcheck %s used %d KiB" % (repair, usage.ru_maxrss))
    left = sum(f.total for f in box.files())
    require(left == whole, "the repair leaves %d samples of %d" % (left, whole))


def many_directories(box):
    """Directories in each other, deeper than a path can be. The tools leave them out, say so in a
    line of a usual length, and go on; --reset removes them.
    """
    make_anew(box)
    nr_files = len(box.files())
    fd = os.open(current(box, "{root}"), os.O_RDONLY)
    for _ in range(DEPTH):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    said = every_tool(box)
    require("File name too long" in said["opreport"].err, "directories in each other: %s" % (said["opreport"],))
    files = re.search(r"current: damaged: (\d+) sample files", said["opcheck"].out)
    require(said["opcheck"].rc == 2 and files and int(files.group(1)) == nr_files and
            "longer than that of any sample file" in said["opcheck"].out, "opcheck: %s" % (said["opcheck"],))
    box.good(tool(box, "opcontrol"), "--reset")
    require("{root}" not in os.listdir(current(box)), "--reset leaves %s" % os.listdir(current(box)))


def recording(ids, features, records, area=0):
    """A perf.data file with one event, whose identifiers lie in `ids` (offset, length), with feature
    sections (number, offset, length), and with records that an area of some length follows.
    """
    attr = struct.pack("<IIQQQQQ", 1, 112, 0, 1000000, 1 | 2 | 4, 0, 1 << 18).ljust(112, b"\0") + struct.pack("<QQ", *ids)
    offset = 104 + len(attr)
    head = struct.pack("<8sQQQQQQQQ", b"PERFILE2", 104, len(attr), 104, len(attr), offset, len(records) + area, 0, 0)
    bits = sum(1 << number for number, _, _ in features).to_bytes(32, "little")
    return head + bits + attr + records + b"".join(struct.pack("<QQ", *section[1:]) for section in sorted(features))


def holes_in_recordings(box):
    """Sizes in the header and in the records that lead into a hole of TiB, which nobody reads."""
    a_round = struct.pack("<IHH", 68, 0, 8)
    damaged = "a feature section is damaged"
    cases = (("identifiers", recording((4096, HOLE), (), a_round), "its list of events is damaged"),
             ("many identifiers", recording((4096, 1 << 26), (), a_round), "its list of events is damaged"),
             ("features that opd does not use", recording((0, 0), [(n, 4096, 65 << 20) for n in (10, 13, 200)], a_round), None),
             ("a feature", recording((0, 0), [(3, 4096, HOLE)], a_round), damaged),
             ("an AUX area", recording((0, 0), (), struct.pack("<IHHQ32x", 71, 0, 48, HOLE), HOLE), None),
             ("more than an AUX area", recording((0, 0), (), struct.pack("<IHHQ32x", 71, 0, 48, 2 * HOLE), 2 * HOLE),
              "the file ends inside the data after a record"))
    path = os.path.join(box.dir, "holes.data")
    for name, data, words in cases:
        with open(path, "wb") as stream:
            stream.write(data)
            stream.truncate(HOLE + 4096)
        result = box.run(tool(box, "opimport"), "--session-dir=" + box.session, "--output=holes", path)
        print("holes in %s: %d %s" % (name, result.rc, result.err.strip()[-120:]))
        require(words is None or (result.rc == 1 and words in result.err), "%s: %s" % (name, result))
        require(words or (damaged not in result.err and "ends within" not in result.err), "%s: %s" % (name, result))
        shutil.rmtree(os.path.join(box.session, "samples", "holes"), ignore_errors=True)
    os.unlink(path)


def others_in_the_place_of_files(box):
    """Nobody waits for the other end of a pipe or reads a device without end."""
    for name in ("dcookies", "ledger", "{root}"):
        for make in (os.mkfifo, lambda path: os.mknod(path, 0o20644, os.makedev(1, 5))):
            make_anew(box)
            path = current(box, name) if name != "{root}" else a_sample_file(box)
            os.unlink(path)
            make(path)
            every_tool(box)
    make_anew(box)
    for name, target in (("loop", ".."), ("host", "/"), ("kernel", "/proc")):
        os.symlink(target, current(box, "{root}", name))
    every_tool(box)


def whole_host(box):
    """--image-path=/ leaves out /proc and its like, lists each directory once however many links
    lead there, and not more than a number of them.
    """
    make_anew(box)
    place, kept = os.path.join(box.dir, "images"), box.session
    os.makedirs(os.path.join(place, "bin"))
    shutil.copy(box.work, os.path.join(place, "bin", "work-elsewhere"))
    for number in range(40):
        os.symlink("..", os.path.join(place, "bin", "up-%d" % number))
        os.symlink("/proc", os.path.join(place, "proc-%d" % number))
        os.symlink(os.path.join(place, "bin"), os.path.join(place, "again-%d" % number))
    for path in (place, "/"):
        result = box.run(tool(box, "opreport"), "-l", "--session-dir=" + kept, "--image-path=" + path)
        require(result.rc == 0, "--image-path=%s: %s" % (path, result))
        require("more than" not in result.err or ("--image-path" in result.err and path == "/"),
                "--image-path=%s: %s" % (path, result))


def names_like_options(box):
    """A session whose name begins with a dash would be an option to whoever lists sessions."""
    make_anew(box)
    for running in (False, True):
        if running:
            box.start_daemon("--event=TIMER:300000")
            box.good(box.work, "shares", "100")
        for name in ("-x", "--help"):
            line = box.refused(tool(box, "opcontrol"), "--save=" + name)
            require("begins with a dash" in line, "--save=%s: %s" % (name, line))
    box.shutdown()
    require(sorted(os.listdir(os.path.join(box.session, "samples"))) == ["current"], "a session has such a name")
    data = os.path.join(box.dir, "perf.data")
    with open(data, "wb") as stream:
        stream.write(perf_data())
    result = box.run(tool(box, "opimport"), "--output=-x", data)
    require(result.rc == 1 and "a dash" in result.err, "opimport: %s" % (result,))


def test(box):
    if box.run_as == "root":
        small_files(box)
        few_descriptors(box)
    make_session(box)
    sparse_files(box)
    many_directories(box)
    others_in_the_place_of_files(box)
    whole_host(box)
    holes_in_recordings(box)
    names_like_options(box)


if __name__ == "__main__":
    opdtest.run(test)
