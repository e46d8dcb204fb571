#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
The system tests against opd.service: a Debian container is booted, opd installed in it, and each
test of tests/system runs there with a daemon that systemd
starts as user opd, with the capabilities and in the sandbox of the unit.

long_unit.py [WORD...]: only the tests with one of the words in their names.
"""
import collections
import glob
import os
import re
import shutil
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import opdtest  # noqa: E402
import unit_checks  # noqa: E402
from opdtest import Skip, require  # noqa: E402
from test_container import Container  # noqa: E402

# What the tests need beside opd: they compile programs, record with perf, run a container and look
# at symbols.
PACKAGES = ("python3", "gcc", "libc6-dev", "binutils", "linux-perf", "systemd-container", "procps")
TEST_SECONDS = 900
BOXES = "/srv/opd-test"  # not below /tmp, which is another one for the unit
SKIPPED = 77
Outcome = collections.namedtuple("Outcome", "name word text")


def check_places():
    """The unit has a /tmp and a /var/tmp of its own: what lies in the host's it cannot run."""
    for name in ("OPD_SOURCE", "OPD_BUILD"):
        path = os.path.realpath(os.environ[name])
        require(not path.startswith(("/tmp/", "/var/tmp/")),
                "%s=%s cannot be seen inside the unit (PrivateTmp=): use a directory elsewhere" % (name, path))


def inside(box):
    """A container that sees source and build directory where they are, and in which tests may
    change the kernel's settings as on the host.
    """
    binds = {os.path.realpath(os.environ[name]) for name in ("OPD_SOURCE", "OPD_BUILD")}
    return Container(box, PACKAGES, ["--system-call-filter=@module",
                                     *["--bind=" + path for path in sorted(binds)]], {"SYSTEMD_NSPAWN_API_VFS_WRITABLE": "1"})


def is_for_usr(build):
    with open(os.path.join(build, "Makefile"), encoding="utf-8") as stream:
        return re.search("^prefix = /usr$", stream.read(), re.M) is not None


def make_package(container):
    """The package of this build, or, when that is made for another place than a package's, of one
    that is made for it.
    """
    if not shutil.which("dpkg-buildpackage"):
        raise Skip("dpkg-buildpackage is not installed")
    build = os.environ["OPD_BUILD"]
    from_build = ["--from", build] if is_for_usr(build) else []
    container.box.good(os.path.join(os.environ["OPD_SOURCE"], "packaging", "build-deb"), *from_build,
                       os.path.join(container.root, "var/tmp"), timeout=3600)


def install(container):
    unit_checks.install(container, unit_checks.debs(os.path.join(container.root, "var/tmp"))[0])
    container.good("systemctl", "disable", "--now", "opd.service", "opd.socket")
    container.good("mkdir", "-p", BOXES)


def excerpt(lines):
    """What the test says of its failure comes before the daemon's log, which may be long."""
    end = lines.index(opdtest.LOG_HEADING) if opdtest.LOG_HEADING in lines else len(lines)
    return "\n".join(lines[:end][-20:] + lines[end:][-20:])


def run_test(container, path):
    """One test as a service of its own, so that nothing of it is left at its end."""
    env = {"OPD_RUN_AS": "unit", "OPD_BINDIR": "/usr/bin", "OPD_SBINDIR": "/usr/sbin", "TMPDIR": BOXES, "LC_ALL": "C",
           "PYTHONDONTWRITEBYTECODE": "1"}
    env.update((name, os.path.realpath(os.environ[name])) for name in ("OPD_SOURCE", "OPD_BUILD"))
    limits = ("RuntimeMaxSec=%d" % TEST_SECONDS, "TasksMax=infinity", "LimitNOFILE=524288", "LimitMEMLOCK=infinity")
    result = container.run("systemd-run", "--quiet", "--wait", "--pipe", "--collect", "--unit=opd-system-test",
                           *["--property=" + p for p in limits],
                           *["--setenv=%s=%s" % row for row in env.items()], "python3", path, timeout=TEST_SECONDS + 120)
    lines = (result.out + result.err).strip().splitlines()
    name = os.path.basename(path)
    if result.rc == SKIPPED:
        return Outcome(name, "skip", lines[-1].partition("skip: ")[2])
    return Outcome(name, "FAIL", excerpt(lines)) if result.rc else Outcome(name, "ok", "")


def tests(words):
    paths = sorted(glob.glob(os.path.join(os.path.realpath(os.environ["OPD_SOURCE"]), "tests", "system", "test_*.py")))
    return [path for path in paths if not words or any(word in os.path.basename(path) for word in words)]


def run_tests(container, words):
    outcomes = []
    for path in tests(words):
        begin = time.monotonic()
        outcome = run_test(container, path)
        print("%-4s %-28s %4d s%s" % (outcome.word, outcome.name, time.monotonic() - begin, outcome.text
                                      and "  " + outcome.text), flush=True)
        outcomes.append(outcome)
    number = collections.Counter(outcome.word for outcome in outcomes)
    print("inside the unit: %d ok, %d skipped, %d failed" % (number["ok"], number["skip"], number["FAIL"]))
    return number


def test(box):
    check_places()
    container = inside(box)
    container.make()
    make_package(container)
    container.boot()
    install(container)
    number = run_tests(container, sys.argv[1:])
    container.power_off()
    require(number["ok"] and not number["FAIL"], "%d system tests fail inside the unit" % number["FAIL"])


if __name__ == "__main__":
    opdtest.run(test)
