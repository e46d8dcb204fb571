#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Limits of the host, and sessions that somebody made to keep the tools busy: each program comes to an
end and says what is wrong.
"""
import os
import shutil
import struct

import opdtest
from opdtest import require
from test_headers import perf_data

TIB = 1 << 40
DEPTH = 3000
HEADER_BYTES, DESCR_BYTES, NODE_BYTES, BUCKET_BYTES = 72, 32, 16, 4
MANY_NODES = 1 << 28
FSIZE = 16 * 1024


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
    require("no file may have more than %d KiB" % (FSIZE // 1024) in box.log_text(), "the log does not tell of the limit")
    box.work_until(lambda: sum(e["lost_io_error"] for e in box.status()["events"]) > 0, "nothing is lost beyond the limit",
                   "python3", "-c", "import json, re, socket, subprocess, unittest, xml.dom.minidom, http.client")
    opdtest.wait_until(lambda: "samples lost (lost_io_error)" in box.log_text(), opdtest.HANG_SECONDS, "the log tells of no loss")
    for event in box.status()["events"]:
        ends = sum(event[key] for key in event if key.startswith("lost_") and key != "lost_kernel")
        require(event["received"] == event["stored"] + event["filtered"] + ends, "samples without an end: %s" % event)
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
    path = a_sample_file(box)
    with open(path, "r+b") as stream:
        stream.seek(HEADER_BYTES)
        stream.write(struct.pack("=II", MANY_NODES, MANY_NODES))
        stream.truncate(HEADER_BYTES + DESCR_BYTES + MANY_NODES * (NODE_BYTES + BUCKET_BYTES))
    result = box.run("prlimit", "--as=%d" % (MANY_NODES * NODE_BYTES // 2), tool(box, "opreport"),
                    "--session-dir=" + box.session, "-n")
    require(result.rc == 0 and "memory" not in result.err, "a sparse sample file: %s" % (result,))
    every_tool(box)


def many_directories(box):
    make_anew(box)
    fd = os.open(current(box, "{root}"), os.O_RDONLY)
    for _ in range(DEPTH):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    said = every_tool(box)
    require("File name too long" in said["opreport"].err, "directories in each other: %s" % (said["opreport"],))
    box.run(tool(box, "opcontrol"), "--reset")


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
    names_like_options(box)


if __name__ == "__main__":
    opdtest.run(test)
