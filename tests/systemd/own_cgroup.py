# SPDX-License-Identifier: GPL-3.0-or-later
"""
A cgroup for one container. systemd-nspawn makes its own below that of its caller, under fixed
names: two containers of one caller would share them, and the
systemd of one would end the services of the other.
"""
import atexit
import os
import time

ENTER = 'while [ "$1" != -- ]; do echo $$ >"$1/cgroup.procs" || exit 1; shift; done; shift; exec "$@"'
REMOVE_SECONDS = 10


def hierarchy_of(line):
    """The mount point and the name in /proc/PID/cgroup, for a line of mountinfo that is one in
    which systemd has its services; None for others.
    """
    left, _, right = line.partition(" - ")
    kind, _, options = right.split()
    if kind == "cgroup2":
        return left.split()[4], ""
    return (left.split()[4], "name=systemd") if kind == "cgroup" and "name=systemd" in options.split(",") else None


def here():
    """The directories of this process's cgroup, in each such hierarchy."""
    with open("/proc/self/cgroup", encoding="utf-8") as stream:
        mine = {name: path for _, name, path in (line.rstrip("\n").split(":", 2) for line in stream)}
    with open("/proc/self/mountinfo", encoding="utf-8") as stream:
        found = {name: point for point, name in filter(None, map(hierarchy_of, stream))}
    return [point + mine[name].rstrip("/") for name, point in found.items() if name in mine]


def remove(path):
    """With all below it; what ends in it needs a moment."""
    end = time.monotonic() + REMOVE_SECONDS
    for top, _, _ in os.walk(path, topdown=False):
        while True:
            try:
                os.rmdir(top)
                break
            except FileNotFoundError:
                break
            except OSError as error:
                if time.monotonic() > end:
                    print("%s: %s" % (top, error))
                    break
                time.sleep(0.1)


def make():
    """The beginning of a command line that is to run in a new cgroup; [] where none can be made. It
    is removed at the end of the test.
    """
    made = []
    for parent in here():
        path = os.path.join(parent, "opd-test-%d" % os.getpid())
        try:
            os.mkdir(path)
        except OSError as error:
            print("no cgroup of its own for the container: %s" % error)
            continue
        atexit.register(remove, path)
        made.append(path)
    return ["sh", "-c", ENTER, "sh", *made, "--"] if made else []
