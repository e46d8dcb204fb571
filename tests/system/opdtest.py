# SPDX-License-Identifier: GPL-3.0-or-later
"""
What the system tests share: a daemon of their own, below a temporary directory, with real perf
events.

A test is a function of one argument, a Box, handed to run(). Exit code 0: passed, 77: skipped with
the reason, 1: failed. The
environment says where the programs are: OPD_BUILD (a build directory), or OPD_BINDIR and
OPD_SBINDIR (an installation). OPD_RUN_AS says
what the daemon is: "root", the default; "user", an ordinary one with the capabilities of the unit;
"unit", the unit itself, where systemd runs it.
"""
import collections
import ctypes
import errno
import json
import os
import pathlib
import platform
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "format"))
import agree  # noqa: E402
import elfsyms  # noqa: E402
import reader  # noqa: E402
import unit_daemon  # noqa: E402

HANG_SECONDS = 240  # ends a test that would wait for ever, and is no measure of anything
START_SECONDS = HANG_SECONDS
CALL_SECONDS = 300
BUSY_SECONDS = 1500  # of a program that the test ends: as long as a case of scripts/test may take
CAPABILITIES = ("perfmon", "sys_ptrace", "checkpoint_restore", "dac_read_search", "syslog", "ipc_lock")
DAEMON_UID = 54320  # nobody's
SANITIZER_WORDS = ("AddressSanitizer", "LeakSanitizer", "ThreadSanitizer", "runtime error:")
TRACEFS = "/sys/kernel/tracing"
PERF_TYPE_SOFTWARE = 1
PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17
WALL = 0x40000000
INIT_PID_NAMESPACE = 0xeffffffc
PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "s390x": 331}
LOG_HEADING = "opd's log:"
LARGER_RINGS = ("16M", "64M")  # for a second and a third try
# what opd logs where the machine kept it, or a process that it asked about, too long from a CPU
BUSY_MACHINE = ("samples lost (lost_kernel)", "the side-band ring was full", "does not answer")
# the roles of events without files: derived events have the samples of a sampler, the stack store
# those of the stack event
SAMPLER, STACKS, WAITS = 1, 4, 5
PIDFD_GETFD = 438  # the number of the system call on each machine


class Skip(Exception):
    """The host cannot do what the test needs."""


class Failure(Exception):
    """What was tested is wrong."""


Result = collections.namedtuple("Result", "rc out err")


AS_USER = """#!/bin/sh
session=$(sed -n 's/^SessionDir=//p' "$OPD_CONFIG")
[ -e "$session" ] || mkdir "$session" 2>/dev/null
[ "$(stat -c %u "$session" 2>/dev/null)" = {uid} ] || chown -hR {uid}:{uid} "$session" 2>/dev/null
exec setpriv --reuid={uid} --regid={uid} --clear-groups --inh-caps=-all,{caps} --ambient-caps=-all,{caps} \\
	--bounding-set=-all,{caps} --no-new-privs "{program}" "$@"
"""


AS_UNIT = """#!/bin/sh
exec {python} {source} {directory} {program} "$@"
"""


def require(condition, text):
    if not condition:
        raise Failure(text)


def state_of(process):
    """The letter in /proc/PROCESS/stat; Z also for one that is not there."""
    try:
        with open("/proc/%s/stat" % process, encoding="ascii", errors="replace") as stream:
            return stream.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"


def is_alive(pid):
    return state_of(pid) != "Z"


def is_stopped(pid):
    """True when SIGSTOP has reached every thread."""
    return all(state_of("%d/task/%s" % (pid, task)) in "TZX" for task in os.listdir("/proc/%d/task" % pid))


def each_thread(pid, name):
    """The thread ids of a process with the text of /proc/PID/task/TID/NAME. A thread that has ended
    between the two is left out, and so is a process that has ended.
    """
    try:
        tasks = os.listdir("/proc/%d/task" % pid)
    except OSError:
        return
    for task in tasks:
        try:
            with open("/proc/%d/task/%s/%s" % (pid, task, name), encoding="ascii", errors="replace") as stream:
                text = stream.read()
        except OSError:
            continue
        yield int(task), text


def is_waiting(pid):
    """True when a thread of the process reads its standard input."""
    return any(text.split()[:2] in (["0", "0x0"], ["3", "0x0"]) for _task, text in each_thread(pid, "syscall"))


def is_waiting_below(pid):
    """The same for a process or one that descends from it."""
    if is_waiting(pid):
        return True
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as stream:
            return any(is_waiting_below(int(child)) for child in stream.read().split())
    except OSError:
        return False


def wait_until(condition, seconds, text):
    """Waits for something that must happen; the limit only ends a test that hangs."""
    end = time.monotonic() + seconds
    while not condition():
        require(time.monotonic() < end, text)
        time.sleep(0.02)


def host_seconds(*columns):
    """The columns of /proc/stat for all CPUs together, since the start of the host: 0 is user, 3
    idle, 4 waiting.
    """
    with open("/proc/stat", encoding="ascii") as stream:
        times = [int(field) for field in stream.readline().split()[1:]]
    return sum(times[column] for column in columns) / os.sysconf("SC_CLK_TCK")


def busy_seconds():
    """The time for which all CPUs together had work: without the time that other virtual machines
    took; user time includes guests.
    """
    return host_seconds(0, 1, 2, 5, 6)


def is_emulated():
    """In a machine of scripts/machines, whose timers come when the host has time."""
    return "OPD_EMULATED" in os.environ


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as stream:
        fields = stream.read().rsplit(")", 1)[1].split()
    return sum(int(t) for t in fields[11:13]) / os.sysconf("SC_CLK_TCK")


def cpu_of_threads(pid):
    """CPU time of the threads that a process has now, in seconds with the scheduler's resolution of
    1 ns. A thread that has ended takes its time with it.
    """
    return sum(int(text.split()[0]) for _task, text in each_thread(pid, "schedstat")) / 1e9


def await_cpu_seconds(pid, seconds):
    """Until a busy process has had a CPU for so long."""
    end = cpu_seconds(pid) + seconds
    wait_until(lambda: cpu_seconds(pid) >= end, HANG_SECONDS, "process %d gets no CPU" % pid)


def open_event(config, period, sample_type, cpu, disabled, flags=0, kind=PERF_TYPE_SOFTWARE):
    """An event of a PMU on one CPU for all processes. Returns its descriptor, or None when the
    kernel refuses it.
    """
    number = PERF_EVENT_OPEN.get(platform.machine())
    if number is None:
        raise Skip("the number of perf_event_open on %s is not known to the tests" % platform.machine())
    attr = struct.pack("<IIQQQQQ", kind, 64, config, period, sample_type, 0,
                       flags | (1 if disabled else 0)).ljust(64, b"\0")
    descriptor = ctypes.CDLL(None, use_errno=True).syscall(number, attr, -1, cpu, -1, 0)
    return None if descriptor < 0 else descriptor


def can_count():
    """True when this process may open a system-wide perf event."""
    descriptor = open_event(0, 1000000, 0, min(os.sched_getaffinity(0)), True)
    if descriptor is None:
        return False
    os.close(descriptor)
    return True


def sees_all_processes():
    """False in a container: processes outside of its pid namespace have no number there, so their
    samples have no place.
    """
    return os.stat("/proc/self/ns/pid").st_ino == INIT_PID_NAMESPACE


def thread_of(pid, name):
    for task, comm in each_thread(pid, "comm"):
        if comm.strip() == name:
            return task
    raise Failure("opd has no thread %s" % name)


def hold(tid, held):
    """Stops one thread of another process, or lets it go on."""
    libc = ctypes.CDLL(None, use_errno=True)
    for request in (PTRACE_SEIZE, PTRACE_INTERRUPT) if held else (PTRACE_DETACH,):
        require(libc.ptrace(request, tid, None, None) == 0, "ptrace(%x): %s" % (request, os.strerror(ctypes.get_errno())))
    if held:
        os.waitpid(tid, WALL)


def has_ended(tid):
    """True when a thread of a held process was killed: it ends after its tracer was told."""
    try:
        return os.waitpid(tid, WALL | os.WNOHANG)[0] == tid
    except ChildProcessError:
        return True


class FaultOracle:
    """A second, independent page-fault event on every CPU. It misses the same faults that the
    kernel counts but does not sample.
    """

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        require(self.process.stdout.readline() == "ready\n", "fault_oracle does not start")

    def not_sampled(self):
        """Ends the oracle. Returns the number of events that the kernel counted but did not sample
        since its start.
        """
        out, _ = self.process.communicate("", timeout=CALL_SECONDS)
        words = out.split()
        require(self.process.returncode == 0 and len(words) == 6, "fault_oracle said %r" % out)
        counted, sampled, lost = int(words[1]), int(words[3]), int(words[5])
        require(lost == 0, "the ring of fault_oracle overflowed")
        print("second opinion: %d counted, %d sampled" % (counted, sampled))
        return counted - sampled


class Box:
    """A temporary directory with a session, a configuration, a daemon and the processes of one
    test.
    """

    def __init__(self, ring_size=None):
        self.ring_size = ring_size
        self.run_as, self.unit_lines = os.environ.get("OPD_RUN_AS", "root"), []
        if self.run_as == "unit" and not unit_daemon.is_installed():
            raise Skip("no opd.service here that systemd could start: tests/systemd/long_unit.py")
        self.dir = tempfile.mkdtemp(prefix="opd-test.")
        os.chmod(self.dir, 0o755)
        self.session = os.path.join(self.dir, "session")
        self.socket = os.path.join(self.dir, "control")
        self.config = os.path.join(self.dir, "opd.conf")
        self.log = os.path.join(self.dir, "opd.log")
        build = os.environ.get("OPD_BUILD", "")
        self.bin = os.environ.get("OPD_BINDIR") or os.path.join(build, "bin")
        self.sbin = os.environ.get("OPD_SBINDIR") or os.path.join(build, "daemon")
        self.work = os.path.join(build, "tests", "system", "work")
        self.crowd = os.path.join(build, "tests", "system", "crowd")
        self.fault_oracle = os.path.join(build, "tests", "system", "fault_oracle")
        self.daemon, self.children, self.mounts, self.known_pids = None, [], [], set()
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("OPD_") and k not in ("NOTIFY_SOCKET", "LISTEN_FDS")}
        self.env["OPD_CACHE_DIR"] = ""  # symbols are read anew
        self.env.update(LC_ALL="C", OPD_CONFIG=self.config)
        for name in ("tables", "waits"):
            helper = os.path.abspath(os.path.join(build, "tools", "opd-" + name, "opd-" + name))
            if os.path.exists(helper):
                self.env["OPD_" + name.upper()] = helper
        self.use_program(os.path.join(self.sbin, "opd"))
        self.configure()

    def use_program(self, path):
        """The daemon is this program, whoever it is to run as."""
        self.program = self.env["OPD_DAEMON"] = path
        if self.run_as != "root":
            self.become_users()
        self.launcher = self.env["OPD_DAEMON"]  # what makes it the user that it is to be

    def give(self, path):
        """A file that this test made becomes the daemon's own."""
        if self.run_as == "unit":
            unit_daemon.own(path)
        elif self.run_as == "user":
            os.chown(path, DAEMON_UID, DAEMON_UID, follow_symlinks=False)

    def become_users(self):
        """The daemon runs as a user of its own: through a program that changes the user, also when
        opcontrol starts it, and that does the work of the unit's StateDirectory=; or through
        systemd.
        """
        self.give(self.dir)
        wrapper = os.path.join(self.dir, "opd-as-" + self.run_as)
        with open(wrapper, "w", encoding="utf-8") as stream:
            if self.run_as == "unit":
                stream.write(AS_UNIT.format(python=sys.executable, source=unit_daemon.__file__, directory=self.dir,
                                            program=self.program))
            else:
                allowed = ",".join("+" + c for c in CAPABILITIES)
                stream.write(AS_USER.format(uid=DAEMON_UID, caps=allowed, program=self.program))
        os.chmod(wrapper, 0o755)
        self.env["OPD_DAEMON"] = wrapper

    def not_as_unit(self, reason):
        """For what the unit cannot be asked."""
        if self.run_as == "unit":
            raise Skip("inside the unit: " + reason)

    # ---- configuration and programs ----

    def configure(self, session=None, **keys):
        """Writes the configuration file; keys as in opd.conf(5). A test that runs at midnight keeps
        its session. On a second try the rings are larger than the test wants them.
        """
        rows = {"SessionDir": session or self.session, "ControlSocket": self.socket, "SessionInterval": "0", "ProfileOnStart": "no",
                "TableDir": os.path.join(self.dir, "tables"), "Stacks": "no"}
        rows.update(keys)
        if self.ring_size:
            rows.update(RingSize=self.ring_size, SidebandSize=self.ring_size)
        with open(self.config, "w", encoding="utf-8") as stream:
            stream.writelines("%s=%s\n" % row for row in rows.items())

    def run(self, *command, env=None, user=None, timeout=CALL_SECONDS):
        """Runs a program to its end; exit code and output, never an exception for a bad exit code.
        """
        words = [str(w) for w in command]
        if user is not None:
            words = ["setpriv", "--reuid=%d" % user, "--regid=%d" % user, "--clear-groups"] + words
        done = subprocess.run(words, env={**self.env, **(env or {})}, cwd=self.dir, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=timeout, check=False)
        result = Result(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))
        require(not any(w in result.err for w in SANITIZER_WORDS), "%s: %s" % (" ".join(words), result.err))
        return result

    def good(self, *command, **more):
        """Runs a program that must succeed; its output."""
        result = self.run(*command, **more)
        require(result.rc == 0, "%s: exit code %d: %s%s" % (" ".join(map(str, command)), result.rc, result.out, result.err))
        return result.out

    def opcontrol(self, *args):
        if args == ("--status",):
            args += ("--verbose",)  # all numbers
        return self.good(os.path.join(self.bin, "opcontrol"), *args)

    def opreport(self, *args):
        return self.good(os.path.join(self.bin, "opreport"), "--session-dir=" + self.session, *args)

    def refused(self, *command, **more):
        """Runs a program that must fail with exit code 1 and one clear line on stderr. Returns that
        line.
        """
        result = self.run(*command, **more)
        words = " ".join(map(str, command))
        require(result.rc == 1, "%s: exit code %d, not 1: %s%s" % (words, result.rc, result.out, result.err))
        lines = result.err.splitlines()
        require(len(lines) == 1 and lines[0].strip(), "%s: not one line on stderr: %r" % (words, result.err))
        require(not result.out, "%s: writes %r beside the error" % (words, result.out))
        return lines[0]

    # ---- the daemon ----

    def start_daemon(self, *setup, start=True, env=None):
        """Keeps `setup` (options of opcontrol --setup), starts opd with these additions to its
        environment, waits for READY, and runs --start.
        """
        if setup:
            self.opcontrol("--setup", *setup)
        self.forget_state(start)
        if self.run_as == "unit":
            self.start_unit({**self.env, **(env or {})})
        else:
            self.start_process({**self.env, **(env or {})})
        if start:
            self.opcontrol("--start")

    def start_unit(self, env):
        program = self.program if self.env["OPD_DAEMON"] == self.launcher else self.env["OPD_DAEMON"]
        self.daemon = unit_daemon.UnitDaemon(unit_daemon.free_unit(), self.dir, [program], env, self.log, more=self.unit_lines)
        wait_until(self.daemon.has_started, 2 * START_SECONDS, "opd is not READY")
        self.require_alive()

    def start_process(self, env):
        ready = os.path.join(self.dir, "ready")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            if os.path.exists(ready):
                os.unlink(ready)
            notify.bind(ready)
            os.chmod(ready, 0o777)
            notify.settimeout(0.1)
            with open(self.log, "ab") as log:
                # The scheduler divides the CPUs among sessions first (sched(7), autogroup), as
                # systemd does among units. Else opd would have one part together with all busy
                # programs of its test.
                self.daemon = subprocess.Popen([self.env["OPD_DAEMON"]], env={**env, "NOTIFY_SOCKET": ready}, cwd="/",
                                               stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
            self.known_pids.add(self.daemon.pid)
            self.await_ready(notify)

    def forget_state(self, start):
        """A daemon that is to start paused does so, whatever the last request to the one before
        was.
        """
        path = os.path.join(self.session, "profiling")
        if not start and os.path.exists(path):
            os.unlink(path)

    def await_ready(self, notify):
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                if b"READY=1" in notify.recv(4096).split(b"\n"):
                    return
            except socket.timeout:
                pass
            self.require_alive()
            require(time.monotonic() < end, "opd is not READY")

    def require_alive(self):
        require(self.daemon.poll() is None, "opd ended with %s before READY: %s" % (self.daemon.returncode, self.log_text()))

    def log_text(self):
        with open(self.log, encoding="utf-8", errors="replace") as stream:
            return stream.read()

    def status(self):
        """opcontrol waits half a minute for the answer. Where opd got no CPU for so long, it is asked
        again.
        """
        end = time.monotonic() + HANG_SECONDS
        while True:
            status = json.loads(self.opcontrol("--status", "--json"))
            if status["state"] != "not answering" or not os.path.exists(self.socket) or time.monotonic() > end:
                return status

    def await_look(self, before=None):
        """The status after opd has looked at all CPUs. `before` is the status at the time of the
        request. Each look reads the side band, in which a process was started. The second look has
        done the work of its turn.
        """
        seen = sum(cpu["sideband_bytes"] for cpu in (before or self.status())["cpus"])
        self.good("/bin/true")
        wait_until(lambda: sum(cpu["sideband_bytes"] for cpu in self.status()["cpus"]) > seen, HANG_SECONDS,
                   "nobody looks at the CPUs")
        return self.status()

    def was_held_up(self):
        """True when a daemon of this test lost samples or side-band records in the kernel, or did not
        learn in time what a process has mapped.
        """
        if self.daemon and self.daemon.poll() is None and os.path.exists(self.socket):
            self.run(os.path.join(self.bin, "opcontrol"), "--shutdown")  # with the last losses it ends
        return os.path.exists(self.log) and any(words in self.log_text() for words in BUSY_MACHINE)

    def lock_pid(self):
        try:
            with open(os.path.join(self.session, "lock"), encoding="ascii") as stream:
                return int(stream.read() or 0)
        except OSError:
            return 0

    def event_count(self):
        """What the kernel has counted for opd's own events, on all CPUs together: read from opd's
        descriptors. The events by which opd follows processes count nothing.
        """
        total, pid, libc = 0, self.lock_pid(), ctypes.CDLL(None, use_errno=True)
        process = os.pidfd_open(pid)
        for number in os.listdir("/proc/%d/fd" % pid):
            try:
                is_event = os.readlink("/proc/%d/fd/%s" % (pid, number)) == "anon_inode:[perf_event]"
            except FileNotFoundError:  # opd has closed it meanwhile
                continue
            if is_event:
                copy = libc.syscall(PIDFD_GETFD, process, int(number), 0)
                require(copy >= 0, "a descriptor of opd cannot be copied")
                total += struct.unpack_from("=Q", os.read(copy, 64))[0]
                os.close(copy)
        os.close(process)
        return total

    def shutdown(self):
        """Ends the daemon as a user would and looks at what it leaves."""
        self.opcontrol("--shutdown")
        require(self.daemon.wait(START_SECONDS) == 0, "opd ended with exit code %s: %s" % (self.daemon.returncode, self.log_text()))
        self.check_rest()

    def stop_on_full_disk(self):
        """Stops profiling. On a full disk opd cannot note that the next opd must start paused. Then
        the answer says so.
        """
        result = self.run(os.path.join(self.bin, "opcontrol"), "--stop")
        path = os.path.join(self.session, "profiling")
        with open(path, encoding="ascii") as stream:
            is_kept = stream.read() == "off\n"
        require(self.status()["state"] == "paused", "--stop on a full disk does not stop: %s" % (result,))
        require(result.rc == (0 if is_kept else 1), "--stop on a full disk, %skept: %s" % ("" if is_kept else "not ", result))
        words = ("profiling has stopped, but the next opd may start with it", path, os.strerror(errno.ENOSPC))
        require(is_kept or all(word in result.err for word in words), "--stop on a full disk says: %s" % result.err)
        return is_kept

    def check_rest(self):
        """After the end of the daemon: no lock, no socket, no temporary files, and no report of a
        sanitizer.
        """
        require(not os.path.exists(os.path.join(self.session, "lock")), "the lock is still there")
        require(not os.path.exists(self.socket), "the control socket is still there")
        unfinished = os.path.join(self.session, "tmp")
        require(not os.path.isdir(unfinished) or not os.listdir(unfinished),
                "unfinished files are left: %s" % [os.path.join(d, n) for d, _,
                                                   f in os.walk(os.path.join(self.session, "tmp")) for n in f])
        require(not any(w in self.log_text() for w in SANITIZER_WORDS), self.log_text())
        self.files()

    # ---- work ----

    def start(self, *command, **more):
        """Starts a process of the test in the background."""
        child = subprocess.Popen([str(w) for w in command], env=self.env, cwd=self.dir, stdin=subprocess.DEVNULL, **more)
        self.children.append(child)
        return child

    def start_piped(self, *command):
        """The same, with its input and output as pipes."""
        child = subprocess.Popen([str(w) for w in command], env=self.env, cwd=self.dir, stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE)
        self.children.append(child)
        return child

    def copy_work(self, name, program="work"):
        """A copy of a work program under another name, so that it is an application of its own."""
        path = os.path.join(self.dir, name)
        shutil.copy(os.path.join(os.path.dirname(self.work), program), path)
        os.chmod(path, 0o755)
        return path

    def work_until(self, is_counted, text, *command):
        """Runs a program until its samples are counted: on a busy machine the rings have no room
        for some samples, and these are lost under a name.
        """
        wait_until(lambda: self.good(*command) is not None and is_counted(), HANG_SECONDS, text)

    def busy_cpus(self, seconds):
        """One busy process on each CPU."""
        path = self.copy_work("busy-app")
        return [self.start(path, "busy", int(seconds * 1000), cpu) for cpu in sorted(os.sched_getaffinity(0))]

    def busy_until_ended(self, path, cpu=None):
        """Starts a busy process of a program on the first CPU. end_busy ends it."""
        return self.start(path, "busy", 1000 * BUSY_SECONDS, min(os.sched_getaffinity(0)) if cpu is None else cpu)

    def end_busy(self, child):
        require(child.poll() is None, "a busy process ended with %s" % child.returncode)
        child.kill()
        child.wait()

    def tmpfs(self, name, options):
        path = os.path.join(self.dir, name)
        os.makedirs(path)
        if self.run("mount", "-t", "tmpfs", "-o", options, "opd-test", path).rc != 0:
            raise Skip("cannot mount a tmpfs here")
        self.mounts.append(path)
        return path

    def bind_mount(self, path, target):
        os.makedirs(target)
        if self.run("mount", "--bind", path, target).rc != 0:
            raise Skip("cannot mount a directory at another place here")
        self.mounts.append(target)

    # ---- what came out ----

    def mount_tracefs(self):
        """For the time of the test, where it is not mounted."""
        if os.path.isdir(os.path.join(TRACEFS, "events")):
            return
        done = self.run("mount", "-t", "tracefs", "tracefs", TRACEFS)
        if done.rc != 0 or not os.path.isdir(os.path.join(TRACEFS, "events")):
            raise Skip("tracefs cannot be mounted: %s" % done.err.strip())
        self.mounts.append(TRACEFS)

    def files(self, live=False):
        """The session as the independent reader sees it, all rules checked. `live`: opd counts. Then a
        file may grow between its first byte and its last, so a new node is in the hash table that
        is read, and not in the descriptor. Tools go by the descriptor.
        """
        return reader.read_session(self.session, live=live, strict=True)

    def samples_in(self, path, symbol):
        """Of all events, at the addresses of a function."""
        start, end = elfsyms.symbol_ranges(path, (symbol,))[symbol]
        return sum(n for f in self.files() if f.name.image[1] == path for key, n in f.keys.items() if start <= key < end)

    def check_ledger(self, with_files=True, not_sampled=0):
        """Checks both lines of the ledger for every event, and that the files have the stored
        samples. Returns the status. not_sampled: the events that the kernel counted without a
        sample, as a FaultOracle saw them. One more is allowed where each event is a sample: the stop
        may have interrupted it on its way from the count to the sample (doc/ring.md). No oracle sees
        that one, since it is stopped at another time.
        """
        status = self.status()
        files = [f for f in self.files() if not f.name.callee] if with_files else []
        for event in status["events"]:
            where = "event %s:%s: %s" % (event["name"], event["count"], json.dumps(event))
            lost = sum(v for k, v in event.items() if k.startswith("lost_") and k != "lost_kernel")
            outstanding = event["taken"] - event["received"] - event["lost_kernel"]
            require(0 <= outstanding <= not_sampled + (1 if event["every_event"] else 0),
                    "taken != received + lost_kernel (%d not sampled), %s" % (not_sampled, where))
            require(event["outstanding"] == outstanding, "outstanding is not taken - received - lost_kernel, " + where)
            require(event["received"] == event["stored"] + event["filtered"] + lost,
                    "received != stored + filtered + lost, " + where)
            require(event["unattributed"] <= event["stored"], "unattributed > stored, " + where)
            if event["role"] in (STACKS, WAITS):
                ends = sum(v for k, v in event.items() if k.startswith("end_"))
                require(event["received"] == ends + event["filtered"] + lost, "received != ends + filtered + lost, " + where)
            if with_files and event["role"] not in (SAMPLER, STACKS, WAITS):
                total = sum(f.total for f in files if (f.name.event, f.name.count) == (event["name"], event["count"]))
                require(total == event["stored"], "the files have %d samples, %s" % (total, where))
        return status

    def check_agreement(self):
        """opreport's summary against the independent reader, every count."""
        agree.compare_summary([f for f in self.files() if not f.name.callee], self.opreport("-n", "-f"))

    # ---- the end ----

    def end_process(self, pid):
        for number in (signal.SIGCONT, signal.SIGTERM, signal.SIGKILL):
            try:
                os.kill(pid, number)
            except OSError:
                return
            end = time.monotonic() + (0 if number == signal.SIGCONT else 10)
            while is_alive(pid) and time.monotonic() < end:
                time.sleep(0.05)

    def is_opd(self, pid):
        """True for an opd of this test. The number of one that has ended may be another test's opd."""
        try:
            with open("/proc/%d/environ" % pid, "rb") as stream:
                is_own = self.dir.encode() in stream.read()
            return is_own and os.path.realpath("/proc/%d/exe" % pid) == os.path.realpath(self.program)
        except OSError:
            return False

    def close(self):
        for child in self.children:
            if child.poll() is None:
                self.end_process(child.pid)
            # Left behind, it would name code of the next process with this number.
            pathlib.Path("/tmp/perf-%d.map" % child.pid).unlink(missing_ok=True)
        for pid in self.known_pids | {self.lock_pid()}:
            if pid > 0 and self.is_opd(pid) and is_alive(pid):
                self.end_process(pid)
        if self.run_as == "unit":
            unit_daemon.remove_units(self.dir)
        for path in reversed(self.mounts):
            subprocess.run(["umount", path], check=False)
        shutil.rmtree(self.dir, ignore_errors=True)


def needs_root():
    if os.geteuid() != 0:
        raise Skip("needs root")


def needs_perf():
    needs_root()
    if not can_count():
        raise Skip("perf_event_open of a system-wide event is refused on this host")


def run_once(test, ring_size, is_last):
    """The exit code of the test. None: it failed where opd was held up, and runs once more."""
    box = None
    try:
        box = Box(ring_size)
        test(box)
        print("ok")
        return 0
    except Skip as reason:
        print("skip: %s" % reason)
        return 77
    except (Failure, reader.FormatError, agree.Disagreement, subprocess.TimeoutExpired) as failure:
        print("%s: %s" % (type(failure).__name__, failure))
        if not is_last and box and box.was_held_up():
            print("the machine held opd up: once more, with larger rings", flush=True)
            return None
        if box and os.path.exists(box.log):
            print("%s\n%s" % (LOG_HEADING, box.log_text()[-4000:]))
        return 1
    finally:
        if box:
            box.close()


def run(test, needs=needs_perf, larger_rings=False):
    """Runs one test and ends the process with its verdict. `larger_rings` is for a test whose verdict
    wants all samples, each at its place: when it fails and opd says that rings were full, or that it
    had no answer about a process, the whole test runs again with larger rings.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as in the background of a shell; children would inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        needs()
    except Skip as reason:
        print("skip: %s" % reason)
        sys.exit(77)
    sizes = (None, *(LARGER_RINGS if larger_rings else ()))
    for size in sizes:
        result = run_once(test, size, size == sizes[-1])
        if result is not None:
            sys.exit(result)
