#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""operf at the limits of the kernel: kernel.perf_event_paranoid from -1 to 4, little memory that
may be locked, few descriptors, a CPU that goes and comes back, set-user-ID programs, another mount
namespace. It changes settings of the kernel, so it runs alone.
"""
import os
import re
import resource
import shutil
import signal

import opdtest
import operftest
from operftest import PARANOID
from opdtest import require

MLOCK = "/proc/sys/kernel/perf_event_mlock_kb"
MS = 300
SECONDS, RATE = 0.6, 1000
ONLY_USER = "operf samples user-space code only"


def kernel_samples(home):
    return sum(f.total for f in home.files() if f.name.image[0] == "kern" or f.name.image[1] == "/proc/kallsyms")


def paranoid(home, root):
    with operftest.Setting(PARANOID) as setting:
        for value in (2, 1, 0, -1):
            setting.set(value)
            result = home.profile(home.work, "kernel", MS)
            home.check(result)
            require((ONLY_USER in result.err) == (value == 2), "at %d operf says: %s" % (value, result.err))
            require(bool(kernel_samples(home)) == (value < 2), "at %d there are %d samples of the kernel" %
                    (value, kernel_samples(home)))
            print("paranoid %d: %d samples of the kernel" % (value, kernel_samples(home)))
            switches = home.run(home.operf, "--events=context-switches:1", "sleep", "0.01")
            require((switches.rc == 1 and "only the kernel has samples of it" in switches.err) if value == 2 else switches.rc == 0,
                    "context-switches at %d: %s" % (value, switches))
            wide = home.run("timeout", "-s", "INT", "1", home.operf, "--system-wide")
            require("--system-wide: not permitted" in wide.err if value > 0 else "profiling all processes" in wide.err,
                    "--system-wide at %d: %s" % (value, wide))
        for value in (3, 4):
            setting.set(value)
            result = root.profile(root.work, "kernel", MS)
            require(ONLY_USER not in result.err and kernel_samples(root), "root at %d: %s" % (value, result))
            result = home.run(home.operf, "true")
            # Linux itself takes 3 for 2; with the patch of Debian users may do nothing.
            require(result.rc == 0 or "'sysctl kernel.perf_event_paranoid=2'" in result.err, "at %d: %s" % (value, result))


def locked_memory(home):
    """The rings become smaller; where none fit, operf says what to raise. ulimit -l does as well."""
    with operftest.Setting(MLOCK) as setting:
        for kib, works in ((516, True), (150, True), (110, True), (4, False)):
            setting.set(kib)
            result = home.run("prlimit", "--memlock=0:0", home.operf, home.work, "spin", MS)
            require((result.rc == 0) == works, "with %d KiB: %s" % (kib, result))
            if works:
                home.check(result)
                require("spin_here" in home.symbols(), "with %d KiB" % kib)
            else:
                require("kernel.perf_event_mlock_kb" in result.err and "ulimit -l" in result.err, result.err)
                # operf raises a soft limit of nothing. The hard limit is set by root.
                home.check(home.profile(home.work, "spin", MS, preexec_fn=lambda: resource.setrlimit(
                    resource.RLIMIT_MEMLOCK, (0, 8 * 1024 * 1024))))


def locked_memory_of_all(home):
    """The same for --system-wide. 64 KiB is the default of Linux before 5.16."""
    with operftest.Setting(PARANOID) as level, operftest.Setting(MLOCK) as setting:
        level.set(0)
        for kib, more, works in ((516, 64, True), (110, 0, True), (4, 0, False)):
            setting.set(kib)
            result = home.run("timeout", "-s", "INT", "1", "prlimit", "--memlock=%d:%d" % (1024 * more, 1024 * more),
                              home.operf, "--system-wide")
            if works:
                require("profiling all processes" in result.err, "with %d KiB and %d: %s" % (kib, more, result))
                home.check(result)
                require(any(row["received"] for row in home.ledger()[0].values()), "no samples with %d KiB and %d" % (kib, more))
            else:
                require(result.rc == 1 and "kernel.perf_event_mlock_kb" in result.err and "ulimit -l" in result.err,
                        "with %d KiB and %d: %s" % (kib, more, result))


def descriptors(home):
    result = home.run("prlimit", "--nofile=20:20", home.operf, "true")
    require(result.rc == 1 and "ulimit -n" in result.err, "with 20 descriptors: %s" % (result,))


def hotplug(home):
    """A CPU goes and comes back while the command runs there: its samples go on, none is lost."""
    cpus = sorted(os.sched_getaffinity(0))
    switch = "/sys/devices/system/cpu/cpu%d/online" % cpus[-1]
    if len(cpus) < 2 or not os.access(switch, os.W_OK):
        print("a CPU cannot be switched off here: hotplug is not tested")
        return
    child, command = busy(home, "--separate-cpu")
    with operftest.Setting(switch) as setting:
        for away in (False, True, False):
            setting.set(0 if away else 1)
            if not away:
                os.sched_setaffinity(command, {cpus[-1]})
            opdtest.await_cpu_seconds(command, SECONDS)
    by_cpu = {}
    home.check(home.end(child, signal.SIGTERM))
    for f in home.files():
        by_cpu[f.name.cpu] = by_cpu.get(f.name.cpu, 0) + f.total
    print("samples by CPU, the last one was away for a third of the time: %s" % by_cpu)
    on_last, elsewhere = by_cpu.pop(cpus[-1], 0), sum(by_cpu.values())
    require(on_last > 1.5 * SECONDS * RATE and elsewhere > 0.5 * SECONDS * RATE, "%d and %d" % (on_last, elsewhere))
    # A CPU that is away at the begin has no events.
    with operftest.Setting(switch) as setting:
        setting.set(0)
        child, command = busy(home)
        setting.set(1)
        os.sched_setaffinity(command, {cpus[-1]})
        wanted = "a CPU came online: what runs on it is not sampled"
        opdtest.await_cpu_seconds(command, 3)
        require(wanted in home.end(child, signal.SIGTERM).err, "no warning of a new CPU")


def busy(home, *options):
    """operf on a command that is busy until SIGTERM, and the pid of the command."""
    ready = os.path.join(home.path, "ready")
    child = home.start(*options, "sh", "-c", "trap 'exit 0' TERM; : > %s; while :; do :; done" % ready)
    opdtest.wait_until(lambda: os.path.exists(ready), opdtest.HANG_SECONDS, "the command does not run")
    os.unlink(ready)
    with open("/proc/%d/task/%d/children" % (child.pid, child.pid), encoding="ascii") as stream:
        return child, int(stream.read().split()[0])


def set_user_id(home, root):
    """The kernel ends the events of such a program. operf says so, and the rest is sampled."""
    path = os.path.join(home.box.dir, "set-user-id")
    shutil.copy(home.work, path)
    os.chmod(path, 0o4755)
    result = home.profile(path, "spin", 2000)
    require("set-user-ID program" in result.err, "no word of the set-user-ID program: %s" % result.err)
    home.check(result)
    result = home.profile("sh", "-c", "%s spin 300; %s spin %d" % (path, home.work, MS))
    home.check(result)
    require("set-user-ID" not in result.err and "spin_here" in home.symbols(home.work), "a child: %s" % result.err)
    hidden = os.path.join(home.box.dir, "hidden")
    shutil.copy(home.work, hidden)
    os.chmod(hidden, 0o711)
    require("may not read" in home.profile(hidden, "spin", 2000).err, "a program that cannot be read")
    # What root runs as another user has no such bit.
    root.check(root.profile("setpriv", "--reuid=65534", "--clear-groups", path.replace("set-user-id", "hidden-no"), rc=127))
    root.check(root.profile("setpriv", "--reuid=65534", "--clear-groups", home.work, "spin", MS))
    require("spin_here" in root.symbols(), "setpriv: %s" % root.symbols())


def user_code_alone(root):
    """Samples of user code need no addresses of the kernel: nothing says that they were hidden."""
    root.check(root.profile("--events=cpu-clock:%d:0:0:1" % (1000000000 // RATE), root.work, "spin", MS))
    result = root.run(os.path.join(root.box.bin, "opreport"), "-l")
    require(result.rc == 0 and "spin_here" in result.out and "kernel" not in result.err, "a warning of the kernel: %s" % (result,))


def namespace(home):
    """A program of a mount of its own: its samples are under its own path, and no file of the host
    with this path gives them names.
    """
    if home.run("unshare", "-Urm", "true").rc:
        print("unshare -Urm is refused here: a mount namespace is not tested")
        return
    inside = os.path.join(home.path, "inside")
    os.mkdir(inside)
    os.chown(inside, home.user, home.user)
    decoy = os.path.join(inside, "program")
    shutil.copy("/bin/true", decoy)
    script = "mount -t tmpfs none %s && cp %s %s && %s spin %d" % (inside, home.work, decoy, decoy, MS)
    result = home.profile("unshare", "-Urm", "sh", "-c", script)
    home.check(result)
    found = {f.name.image: f.total for f in home.files() if "program" in f.name.image[1]}
    require(sum(found.values()) > MS / 2, "no samples of a program in its own mount: %s" % {f.name.image for f in home.files()})
    out = home.opreport("-l")
    require(not re.search(r"program +(?!spin_here)\w*main", out), "names of the host's file: %s" % out)
    print("images of the program in its own mount: %s" % found)


def test(box):
    home, root = operftest.Home(box), operftest.Home(box, user=0, name="root-home")
    paranoid(home, root)
    locked_memory(home)
    locked_memory_of_all(home)
    descriptors(home)
    set_user_id(home, root)
    user_code_alone(root)
    namespace(home)
    hotplug(home)


if __name__ == "__main__":
    opdtest.run(test, operftest.needs_operf)
