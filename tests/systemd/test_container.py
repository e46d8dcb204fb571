#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
opd as a service: a Debian container is booted, opd installed in it, started by systemd, used and
stopped. And opd on the host, which profiles a
service of the container: its program by the path that the host has for it, one in a file system of
the container's own by its path there, and both by
the cgroup of the service.
"""
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import opdtest  # noqa: E402
import own_cgroup  # noqa: E402
import unit_checks  # noqa: E402
from opdtest import HANG_SECONDS, Failure, Skip, require, wait_until  # noqa: E402

SUITE = "bookworm"
# What a booted system needs, the libraries of opd and its tools, and a shell for their completion.
PACKAGES = ("systemd,systemd-sysv,dbus,libpopt0,libsystemd0,libcap2,libbpf1,libbinutils,libpfm4,libmd0,libelf1,libdw1,zlib1g,"
            "libzstd1,liblzma5,libncursesw6,zsh")
BOOT_SECONDS = 600
BUILD_SECONDS = 1800
PERIOD_NS = 500000
PROBE_MS = 2000
COMPILER = ["PATH=/usr/lib/ccache:" + os.environ["PATH"]] if "CCACHE_DIR" in os.environ else []
DROP_IN = "run/systemd/system/opd.service.d"


def build_deb():
    return os.path.join(os.environ["OPD_SOURCE"], "packaging", "build-deb")


class LaterVersion:
    """The package once more under a later version, from the source by dpkg-buildpackage alone; it
    is built beside the first checks. ccache, where scripts/test has it, knows what the gcc build
    compiled with the same flags.
    """

    def __init__(self, box):
        self.directory, self.log = os.path.join(box.dir, "later"), os.path.join(box.dir, "later.log")
        with open(self.log, "wb") as log:
            self.child = box.start("env", *COMPILER,
                                   "DEB_BUILD_OPTIONS=nocheck noautodbgsym parallel=%d" % len(os.sched_getaffinity(0)), build_deb(),
                                   "--version", unit_checks.LATER_VERSION, self.directory, stdout=log, stderr=log,
                                   start_new_session=True)

    def end(self):
        if self.child.poll() is None:
            os.killpg(self.child.pid, signal.SIGTERM)

    def put(self, into):
        rc = self.child.wait(BUILD_SECONDS)
        with open(self.log, encoding="utf-8", errors="replace") as stream:
            require(rc == 0, "the package cannot be built from the source: %s" % stream.read()[-3000:])
        for name in os.listdir(self.directory):
            shutil.copy(os.path.join(self.directory, name), into)


class Container:
    """A booted container; in_() runs a command inside."""

    def __init__(self, box, more_packages=(), more_options=(), env=None):
        """More packages to make it of, more options of systemd-nspawn, more in its environment."""
        self.box, self.root, self.nspawn, self.init = box, os.path.join(box.dir, "root"), None, None
        self.packages, self.options = ",".join((PACKAGES, *more_packages)), list(more_options)
        self.env = {**os.environ, **(env or {})}

    def make(self):
        for tool in ("mmdebstrap", "systemd-nspawn", "nsenter"):
            if not shutil.which(tool):
                raise Skip("%s is not installed" % tool)
        done = self.box.run("mmdebstrap", "--quiet", "--variant=minbase", "--include=" + self.packages, SUITE,
                            self.root, timeout=900)
        if done.rc != 0:
            raise Skip("mmdebstrap cannot make a root file system: %s" % (done.err.strip().splitlines() or ["no reason given"])[-1])

    def package_dir(self):
        return os.path.join(self.root, "var/tmp")

    def install(self):
        """Puts the package of this build into /var/tmp."""
        if not shutil.which("dpkg-buildpackage"):
            raise Skip("dpkg-buildpackage is not installed")
        self.box.good(build_deb(), "--from", os.environ["OPD_BUILD"], self.package_dir(), timeout=600)
        for program in ("system/work", "system/jit_work", "system/hanging", "systemd/reach"):
            shutil.copy(os.path.join(os.environ["OPD_BUILD"], "tests", program), os.path.join(self.root, "usr/local/bin"))
        self.keep_session()

    def keep_session(self):
        """Without this file opd closes the session at midnight, and the reports of a test that runs
        then do not show what was before.
        """
        directory = os.path.join(self.root, "etc/opd/opd.conf.d")
        os.makedirs(directory, exist_ok=True)
        with open(os.path.join(directory, "10-midnight.conf"), "w", encoding="ascii") as stream:
            stream.write("SessionInterval=0\n")

    def find_init(self):
        """The container's PID 1, a descendant of systemd-nspawn that is called systemd."""
        candidates = [self.nspawn.pid]
        while candidates:
            pid = candidates.pop()
            try:
                with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as stream:
                    candidates += [int(p) for p in stream.read().split()]
                with open("/proc/%d/comm" % pid, encoding="ascii") as stream:
                    if stream.read().strip() == "systemd":
                        self.init = pid
                        return True
            except OSError:
                continue
        return False

    def boot(self):
        with open(os.path.join(self.box.dir, "console.log"), "wb") as log:
            self.nspawn = subprocess.Popen(
                [*own_cgroup.make(), "systemd-nspawn", "-D", self.root, "--register=no", "--keep-unit",
                 "--capability=all", "--console=pipe",
                 "--system-call-filter=perf_event_open bpf", *self.options, "--boot"], env=self.env,
                 stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.box.children.append(self.nspawn)
        end = time.monotonic() + BOOT_SECONDS
        while time.monotonic() < end:
            if self.nspawn.poll() is not None:
                raise Skip("the container does not boot here: %s" % self.console()[-300:].strip())
            if self.find_init() and self.state() in ("running", "degraded"):
                return
            time.sleep(0.3)
        raise Skip("the container is not up after %d s: %s" % (BOOT_SECONDS, self.console()[-300:].strip()))

    def console(self):
        with open(os.path.join(self.box.dir, "console.log"), encoding="utf-8", errors="replace") as stream:
            return " ".join(stream.read().split())

    def run(self, *command, timeout=opdtest.CALL_SECONDS):
        return self.box.run("nsenter", "-t", self.init, "-m", "-u", "-i", "-n", "-p", "-C", "-r", "-w",
                            "env", "-i", "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", *command, timeout=timeout)

    def good(self, *command, **more):
        result = self.run(*command, **more)
        require(result.rc == 0, "in the container, %s: exit code %d: %s%s" % (" ".join(command), result.rc, result.out, result.err))
        return result.out

    def state(self):
        return self.run("systemctl", "is-system-running").out.strip()

    def unit(self, *properties):
        out = self.good("systemctl", "show", "opd.service", *["--property=" + p for p in properties])
        return dict(line.split("=", 1) for line in out.splitlines())

    def drop_in(self, text):
        path = os.path.join("/", DROP_IN, "test.conf")
        self.good("mkdir", "-p", "/" + DROP_IN)
        self.good("sh", "-c", 'printf "%s" "$1" >"$2"', "sh", text, path)
        self.good("systemctl", "daemon-reload")

    def remove_drop_in(self):
        self.good("rm", "-rf", "/" + DROP_IN)
        self.good("systemctl", "daemon-reload")

    def opd_pids(self):
        return self.run("sh", "-c", "for e in /proc/[0-9]*/exe; do case $(readlink $e) in */opd*) echo $e;; esac; done").out.split()

    def power_off(self):
        self.run("systemctl", "poweroff")
        wait_until(lambda: self.nspawn.poll() is not None, BOOT_SECONDS, "the container does not go down")


def check_waits_for_ready(container):
    """Before READY the unit is 'activating' and nothing else, however long it takes; after it,
    'active'.
    """
    container.drop_in('[Service]\nExecStart=\nExecStart=/bin/sh -c "while [ ! -e /run/go-on ]; do sleep 0.1; done; '
                      'exec /usr/sbin/opd"\n'
                      "TimeoutStartSec=infinity\n")
    container.good("systemctl", "start", "--no-block", "opd")
    wait_until(lambda: container.unit("MainPID")["MainPID"] != "0", HANG_SECONDS, "the unit does not start")
    for _ in range(20):
        state = container.unit("ActiveState", "SubState")
        require(state == {"ActiveState": "activating", "SubState": "start"}, "before READY the unit is %s" % state)
        time.sleep(0.1)
    container.good("touch", "/run/go-on")
    wait_until(lambda: container.unit("ActiveState")["ActiveState"] != "activating", HANG_SECONDS, "the unit never becomes active")
    require(container.unit("ActiveState")["ActiveState"] == "active", "after READY: %s" % journal(container))
    container.good("systemctl", "stop", "opd")
    container.remove_drop_in()


def check_ready_is_needed(container):
    """A daemon that runs but never says READY does not become active: it is READY that counts."""
    container.drop_in('[Service]\nExecStart=\nExecStart=/bin/sh -c "unset NOTIFY_SOCKET; exec /usr/sbin/opd"\nTimeoutStartSec=5\n')
    result = container.run("systemctl", "start", "opd")
    require(result.rc != 0, "the unit became active without READY")
    container.run("systemctl", "reset-failed", "opd")
    container.remove_drop_in()
    require(not container.opd_pids(), "opd is left after the failed start")


def journal(container):
    return container.run("journalctl", "-u", "opd", "--no-pager", "-n", "40").out


def check_profile(container):
    container.good("systemctl", "start", "opd")
    require(container.unit("ActiveState")["ActiveState"] == "active", "not active: %s" % journal(container))
    pid = container.unit("MainPID")["MainPID"]
    container.good("opcontrol", "--start")
    container.good("work", "shares", "2000")
    container.good("opcontrol", "--dump")
    status = container.good("opcontrol", "--status", "--json")
    require('"state":"running"' in status.replace(" ", ""), "status: %s" % status)
    report = container.good("opreport", "-f")
    require("/usr/local/bin/work" in report, "opreport does not show the work:\n%s" % report)
    symbols = container.good("opreport", "-l", "/usr/local/bin/work")
    require("hot_a" in symbols and "hot_b" in symbols, "opreport -l does not show the functions:\n%s" % symbols)
    print(report.splitlines()[:12], symbols.splitlines()[:6], sep="\n")
    return pid


def check_stop(container, pid):
    container.good("systemctl", "stop", "opd")
    state = container.unit("ActiveState", "SubState", "Result")
    require(state == {"ActiveState": "inactive", "SubState": "dead", "Result": "success"}, "after stop: %s" % state)
    require(container.run("test", "-d", "/proc/" + pid).rc != 0, "process %s is still there after stop" % pid)
    require(not container.opd_pids(), "an opd is left after stop")
    require(container.run("test", "-e", "/var/lib/oprofile/lock").rc != 0, "the lock is left after stop")
    report = container.good("opreport", "-f")
    require("/usr/local/bin/work" in report, "the profile is gone after stop")


def check_opcontrol_uses_the_unit(container):
    """opcontrol starts the daemon as the unit and says why when that fails; a shutdown is a clean
    end of the unit.
    """
    out = container.good("opcontrol", "--start")
    require("Daemon started." in out and "Profiler running." in out, "opcontrol --start says %r" % out)
    pid = container.unit("MainPID")["MainPID"]
    require(container.unit("ActiveState")["ActiveState"] == "active", "opcontrol started no unit: %s" % journal(container))
    require("Daemon running: pid %s" % pid in container.good("opcontrol", "--status"), "another daemon than the unit's answers")
    container.good("opcontrol", "--shutdown")
    wait_until(lambda: container.unit("ActiveState")["ActiveState"] == "inactive", HANG_SECONDS,
               "the unit does not end with the daemon")
    require(container.unit("Result")["Result"] == "success" and not container.opd_pids(),
            "the shutdown was no clean end of the unit")
    unit_checks.check_shut_down_for_good(container)
    container.drop_in("[Service]\nExecStart=\nExecStart=/bin/false\n")
    result = container.run("opcontrol", "--start-daemon")
    require(result.rc == 1 and "systemctl status opd.service" in result.err and len(result.err.splitlines()) == 1, "%s" % (result,))
    container.good("systemctl", "stop", "opd")
    container.run("systemctl", "reset-failed", "opd")
    container.remove_drop_in()


class Probe:
    """A service of the container that uses the CPU: its unit, its program there, and what the host
    knows of its process.
    """

    def __init__(self, container, unit, program):
        self.container, self.unit, self.program = container, unit, program
        container.good("systemd-run", "--unit=" + unit, "--service-type=exec", program, "shares", str(PROBE_MS))
        self.pid = self.host_pid()
        with open("/proc/%d/cgroup" % self.pid, encoding="utf-8") as stream:
            self.cgroups = {line.rstrip("\n").split(":", 2)[2] for line in stream}

    def host_pid(self):
        """The process in the container whose program it is, by its number here."""
        here = os.stat("/proc/%d/ns/pid" % self.container.init).st_ino
        for pid in [int(p) for p in os.listdir("/proc") if p.isdigit()]:
            try:
                if os.stat("/proc/%d/ns/pid" % pid).st_ino == here and os.readlink("/proc/%d/exe" % pid).endswith(self.program):
                    return pid
            except OSError:
                continue
        raise Failure("%s does not run" % self.program)

    def wait(self):
        wait_until(lambda: not opdtest.is_alive(self.pid), HANG_SECONDS, "%s does not end" % self.unit)


def check_from_host(container):
    """opd on the host sees two services: one whose program is in the container's root directory,
    one whose program is in its /run.
    """
    box = container.box
    container.good("mkdir", "-p", "/run/probe")
    container.good("mount", "-t", "tmpfs", "-o", "mode=755", "probe", "/run/probe")
    container.good("cp", "/usr/local/bin/work", "/run/probe/inside")
    container.good("cp", "/usr/local/bin/work", "/usr/local/bin/outside")
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel,cgroup")
    probes = [Probe(container, "probe-outside", "/usr/local/bin/outside"), Probe(container, "probe-inside", "/run/probe/inside")]
    for probe in probes:
        probe.wait()
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    box.check_ledger()
    listed = {line.split(None, 2)[2]: int(line.split()[0]) for line in box.opreport("--cgroups", "-n").splitlines()}
    for probe, path in zip(probes, (container.root + "/usr/local/bin/outside", "/run/probe/inside")):
        found = sum(f.total for f in box.files() if f.name.app == ("root", path))
        groups = [name for name in listed if name.endswith("/%s.service" % probe.unit)]
        print("%s: %d samples, in the cgroup %s" % (path, found, {name: listed[name] for name in groups}))
        require(found >= 0.5 * PROBE_MS * 1e6 / PERIOD_NS, "%s of the container has %d samples" % (path, found))
        require(len(groups) == 1 and groups[0] in probe.cgroups, "%s is in %s, opd says %s of %s" % (
            probe.unit, probe.cgroups, groups, sorted(listed)))
        require(path in box.opreport("-f", "cgroup:" + groups[0]), "opreport cgroup:%s does not show %s" % (groups[0], path))
    require("hot_a" in box.opreport("-l", container.root + "/usr/local/bin/outside"), "no symbols of the program in the container")
    strays = [f.name.app[1] for f in box.files() if f.name.app[1] == "/usr/local/bin/outside"
              or f.name.app[1].startswith("/outside")]
    require(not strays, "a program of the container is filed under its path there: %s" % strays)
    box.check_agreement()
    box.shutdown()


def test(box):
    container = Container(box)
    container.make()
    container.install()
    container.boot()
    later = LaterVersion(box)
    try:
        unit_checks.check_install(container)
        check_waits_for_ready(container)
        check_ready_is_needed(container)
        check_stop(container, check_profile(container))
        check_opcontrol_uses_the_unit(container)
        check_stop(container, check_profile(container))
        later.put(container.package_dir())
        check_from_host(container)
        unit_checks.check_all(container)
    except Failure as failure:
        raise Failure("%s\njournal of opd:\n%s" % (failure, journal(container))) from failure
    finally:
        later.end()
    container.power_off()


if __name__ == "__main__":
    opdtest.run(test)
