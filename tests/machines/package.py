#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
A host of stock Debian with its own kernel, which starts with kernel.perf_event_paranoid=3: the package
is installed by apt-get, and opcontrol --start samples. The sysctl stays as it is. opd-events opens
the events, those of a CPU that comes later, too, and ends with opd. What opd needs does not come with
libcurl, LDAP and SASL. Where the level is 2, opd-events does not run.
"""
import glob
import json
import os
import subprocess
import time

PARANOID = "/proc/sys/kernel/perf_event_paranoid"
WORK = "/opd/build/tests/system/work"
HANG_SECONDS = 300
UNWANTED = ("libcurl", "libldap", "libsasl2", "libdebuginfod")


class Failure(Exception):
    """What was tested is wrong."""


def require(condition, text):
    if not condition:
        raise Failure(text)


def run(*words):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    print("$ %s\n%s%s" % (" ".join(words), done.stdout, done.stderr), flush=True)
    return done


def good(*words):
    done = run(*words)
    require(done.returncode == 0, "%s: exit code %d: %s%s" % (" ".join(words), done.returncode, done.stderr, journal()))
    return done.stdout


def journal():
    done = subprocess.run(["journalctl", "--no-pager", "-u", "opd*", "-n", "40"], capture_output=True, text=True, check=False)
    return done.stdout


def await_that(condition, text):
    end = time.monotonic() + HANG_SECONDS
    while not condition():
        require(time.monotonic() < end, "%s: %s" % (text, journal()))
        time.sleep(0.5)


def level():
    with open(PARANOID, encoding="ascii") as stream:
        return int(stream.read())


def status():
    done = subprocess.run(["opcontrol", "--status", "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def cpu_row(cpu):
    return next(row for row in status()["cpus"] if row["cpu"] == cpu)


def is_active(unit):
    return subprocess.run(["systemctl", "is-active", "--quiet", unit], check=False).returncode == 0


def has_whole_stacks():
    good(WORK, "shares", "2000")
    good("opcontrol", "--dump")
    return ";_start;" in good("opreport", "--format=folded", WORK)


def check_later_cpu(cpu):
    path = "/sys/devices/system/cpu/cpu%d/online" % cpu
    for online in (False, True):
        with open(path, "w", encoding="ascii") as stream:
            stream.write("1" if online else "0")
        await_that(lambda state=online: cpu_row(cpu)["online"] == state, "opd does not see that CPU %d %s" % (
            cpu, "comes" if online else "goes"))
    before = cpu_row(cpu)["received"]
    child = subprocess.Popen(["taskset", "-c", str(cpu), WORK, "spin", "600000"])
    try:
        await_that(lambda: cpu_row(cpu)["received"] > before, "CPU %d has no samples after its return" % cpu)
    finally:
        child.kill()
        child.wait()


def check_level_of_two():
    """Where opd may open events itself, nobody does it for opd."""
    with open(PARANOID, "w", encoding="ascii") as stream:
        stream.write("2")
    good("opcontrol", "--start")
    require(not is_active("opd-events.service"), "opd-events runs where it is not needed")
    good("opcontrol", "--shutdown")


def test():
    first = level()
    require(first > 2, "this kernel starts with kernel.perf_event_paranoid=%d: it is not Debian's" % first)
    good("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-y", "-q", "install", *glob.glob("/opd/opd_*.deb"))
    installed = good("dpkg-query", "-W", "-f", "${Package}\n").split()
    require(not [name for name in installed if name.startswith(UNWANTED)], "the package brings %s" % installed)
    good("opcontrol", "--start")
    require(level() == first, "the level is %d now, not %d" % (level(), first))
    require(is_active("opd-events.service"), "opd-events does not run")
    good(WORK, "shares", "5000")
    good("opcontrol", "--dump")
    require("hot_a" in good("opreport", "-l", WORK), "opreport does not show the functions of the work")
    # tables of images come a little later: the first stacks are not whole
    await_that(has_whole_stacks, "no stack of the work is whole")
    now = status()
    require(now["state"] == "running" and all(row["online"] for row in now["cpus"]), "opd does not sample: %s" % now)
    if os.cpu_count() > 1:
        check_later_cpu(os.cpu_count() - 1)
    print(journal())
    good("opcontrol", "--shutdown")
    await_that(lambda: not is_active("opd-events.service"), "opd-events does not end with opd")
    require(level() == first, "the level is %d now, not %d" % (level(), first))
    check_level_of_two()


if __name__ == "__main__":
    try:
        test()
    except Failure as failure:
        raise SystemExit("Failure: %s" % failure) from failure
