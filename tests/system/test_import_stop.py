#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""opimport is ended by SIGINT, SIGTERM and SIGHUP wherever it waits for its input, and keeps
nothing then; it does not wait for a FIFO where a file should be.
"""
import fcntl
import os
import signal
import struct
import subprocess
import termios

import importtest as made
import opdtest
from opdtest import require

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def status(process):
    with open("/proc/%d/status" % process.pid, encoding="ascii") as lines:
        return dict(line.rstrip("\n").split(":\t", 1) for line in lines if ":\t" in line)


def waits(process):
    """It sleeps, and will hear of every signal."""
    fields = status(process)
    caught = int(fields["SigCgt"], 16)
    return fields["State"].startswith("S") and all(caught >> number - 1 & 1 for number in NUMBERS)


def is_read(pipe):
    """Nothing is in the pipe any more."""
    return not struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]


def check_ended(box, name, number, given, *args):
    """Some of the input comes, then a signal instead of the rest."""
    command = [os.path.join(box.bin, "opimport"), "--session-dir=" + box.session, "-o", name, *args]
    with subprocess.Popen(command, env=box.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            process.stdin.write(given)
            process.stdin.flush()
            opdtest.wait_until(lambda: process.poll() is not None or (is_read(process.stdin) or args)
                               and waits(process), opdtest.HANG_SECONDS, "it does not wait")
            process.send_signal(number)
            process.wait(opdtest.HANG_SECONDS)
        finally:
            if process.poll() is None:
                process.kill()
        out, err = process.stdout.read().decode(), process.stderr.read().decode()
        process.stdin.close()
    require(process.returncode == 1 and err == "opimport: interrupted: nothing was kept\n",
            "%s: exit code %d: %s%s" % (name, process.returncode, out, err))
    samples, tmp = (os.path.join(box.session, part) for part in ("samples", "tmp"))
    require(not os.path.exists(os.path.join(samples, name)), "%s: there is a session" % name)
    require(not os.path.isdir(tmp) or not os.listdir(tmp), "%s: something is left" % name)


def test(box):
    header = struct.pack("<8sQ", b"PERFILE2", 16)
    records = made.put_attr(made.PLAIN, 0) + made.put_mapping() + made.put_sample(made.PLAIN, 10)
    whole = made.file_of(made.put_mapping() + made.put_sample(made.PLAIN, 10), b"")
    fifo, directory = os.path.join(box.dir, "fifo"), os.path.join(box.dir, "directory")
    os.mkfifo(fifo)
    for number in NUMBERS:
        check_ended(box, "nothing", number, b"")
        check_ended(box, "header", number, header)
        check_ended(box, "records", number, header + records + made.put(made.ROUND, 0, b"") * 2 + records)
        check_ended(box, "cut", number, header + records[:-5])
        check_ended(box, "file", number, whole[:150])
        check_ended(box, "fifo", number, b"", fifo)
    os.mkdir(directory)
    os.mkfifo(os.path.join(directory, "data"))
    line = box.refused(os.path.join(box.bin, "opimport"), "--session-dir=" + box.session, "-o", "directory", directory)
    require("data is not a regular file" in line, line)


if __name__ == "__main__":
    opdtest.run(test, lambda: None)
