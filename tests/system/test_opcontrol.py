#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""opcontrol by itself: what goes with what, what is kept of a setup, and how it speaks of a daemon
that is not as it should be.
"""
import errno
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import time

import opdtest
import test_cgroup
from opdtest import require, wait_until

STATUS_KEYS = {"state", "setup_waits", "pid", "uptime_ns", "running_ns", "cpu_ns", "rss_bytes", "nr_files",
               "nr_processes", "nr_images", "dumps", "has_pmu",
               "session_dir", "vmlinux", "kernel_note", "separate_lib", "separate_kernel", "separate_thread",
               "separate_cpu", "separate_name", "separate_user", "nr_programs", "nr_events",
               "nr_cpus", "events", "cpus", "ring_bytes", "ring_need_bytes", "ring_is_auto", "swap_threads",
               "event_wait_ns", "visits", "visits_ns", "swapping_ns", "turns",
               "turn_ns", "turn_longest_ns", "turn_planned_ns", "maps_reread", "separate_cgroup", "nr_cgroups", "not_split",
               "of_unknown_cgroups", "image_filter", "stack_wanted_hz", "stack_rate_hz", "stack_bytes", "stack_ring_bytes",
               "stack_walks", "stack_frames", "stack_walk_ns", "stacks_waiting",
               "stack_stops", "tables_made", "tables_from_cache", "tables_failed", "tables_waiting"}
JIT_KEYS = {"jit_" + n for n in ("processes", "functions", "sampled", "objects", "bytes", "code_bytes",
                                 "refused_files", "refused_records", "refused_size", "refused_memory",
                                 "refused_processes", "failed_objects", "functions_forgotten", "put_off",
                                 "cpu_ns", "cpu_longest_ns", "waiting", "named_late", "unnamed_samples",
                                 "refused_waiting")}
BOUND_KEYS = {"dcookie_errors", "dcookie_lines_damaged", "files_forgotten", "images_forgotten", "images_refused",
              "mappings_dropped",
              "nr_images_counted", "places_dropped", "processes_dropped", "too_many_images",
              "cgroup_slots_taken_back", "cgroups_forgotten", "classes_merged",
              "memory_dropped", "looks_unanswered", "programs_refused", "process_names_skipped",
              "tables_crashed", "tables_timed_out", "tables_uncached",
              "sessions_not_written", "too_many_sample_files", "nr_session_files", "max_session_files"}
BOUND_KEYS |= {"ibs_" + n for n in ("cut", "decoded", "extra", "missing", "no_address", "no_caps", "not_valid",
                                    "old_fetch", "redacted", "short",
                                     "uneven", "unknown_caps")}
BOUND_KEYS |= {"callgraph"} | {"arcs_" + n for n in ("stored", "ended_no_mapping", "ended_other", "of_nowhere",
                                                     "of_another", "filtered", "undecodable", "not_split",
                                                      "lost_no_room", "lost_no_space", "lost_too_many_files",
                                                      "lost_file_limit", "lost_io_error", "lost_no_memory")}
STATUS_KEYS |= JIT_KEYS | BOUND_KEYS
LOSSES = {"lost_undecodable", "lost_no_space", "lost_too_many_files", "lost_file_limit", "lost_io_error",
          "lost_no_memory"}
EVENT_KEYS = LOSSES | {"name", "role", "count", "unit_mask", "every_event", "taken", "received", "stored",
                       "unattributed", "filtered", "lost_kernel",
                       "outstanding", "throttled_ns", "nr_throttles", "enabled_ns", "counted_ns"}
EVENT_KEYS |= {"end_" + n for n in ("complete", "cut", "no_row", "left_code", "no_table_yet", "too_deep", "no_room")}
CPU_KEYS = LOSSES | {"cpu", "online", "swaps", "swap_wait_ns", "swap_longest_ns", "bytes_read", "records_read",
                     "turn_bytes", "turn_records",
                     "turn_most_bytes", "turn_most_records", "sideband_bytes", "sideband_lost", "late", "damaged",
                     "received", "lost_kernel", "throttled_ns"}


STATUS, START, STOP, DUMP, SHUTDOWN = 1, 2, 3, 4, 6


def opcontrol(box):
    return os.path.join(box.bin, "opcontrol")


def check_page():
    """The man page names every key of --status --json; lost_REASON stands for the reasons."""
    with open(os.path.join(os.environ["OPD_SOURCE"], "doc", "opcontrol.1"), encoding="utf-8") as stream:
        page = stream.read().replace("\\-", "-").split("\n.SH STATUS\n", 1)[1].split("\n.SH ", 1)[0]
    words = set(re.findall(r"[a-z][a-z_]*", "\n".join(line for line in page.splitlines() if re.match(r"\.(B|BR|RB) ", line))))
    missing = (STATUS_KEYS | EVENT_KEYS | CPU_KEYS) - LOSSES - words
    require(not missing, "opcontrol(1) does not name %s" % sorted(missing))


def kept(box, name="daemonrc"):
    with open(os.path.join(box.session, name), encoding="ascii") as stream:
        return dict(line.rstrip("\n").split("=", 1) for line in stream)


def what_goes_with_what(box):
    cases = [(("--start", "--stop"), 'Option "--stop" not valid with other options.'),
             (("--dump", "--start-daemon"), 'Option "--start-daemon" not valid with other options.'),
             (("--dump", "--event=TIMER:100000"), 'Option "--setup" not valid with "--dump".'),
             (("--shutdown", "--session-dir=/x"), 'Option "--setup" not valid with "--shutdown".'),
             (("--verbose", "--stop"), 'Option "--verbose" not valid with "--stop".'),
             (("--setup",), "No options specified"), (("--apply",), "--apply"),
             (("--start", "--apply", "-e", "default"), "--apply"),
             (("--json",), "--json"), (("word",), "word"), (("--event",), "--event"), (("-x",), "-x")]
    for words, text in cases:
        line = box.refused(opcontrol(box), *words)
        require(text in line, "%r, but expected %r" % (line, text))
    require(not os.path.exists(box.session), "a refused call made the session directory")
    shown, asked = box.run(opcontrol(box)), box.run(opcontrol(box), "--help")
    require((shown.rc, shown.out, asked.rc, asked.err) == (0, "", 0, "") and "--separate" in asked.out
            and shown.err == asked.out, "help: %s, %s" % (shown, asked))
    listed = box.good(opcontrol(box), "--list-events")
    require("TIMER" in listed and "page-faults" in listed, listed)
    require(box.status() == {"state": "not running"}, "status of no daemon: %s" % box.status())
    box.good(opcontrol(box), "--status", "--start", "--event=nonsense")


def what_is_kept(box):
    box.opcontrol("-e", "timer:200000", "-e", "page-faults:30:0:0", "-p", "kernel", "-c", "7")
    setup = kept(box)
    require(setup["CHOSEN_EVENTS_0"] == "TIMER:200000:0:1:1" and setup["CHOSEN_EVENTS_1"] == "page-faults:30:0:0:1", setup)
    require(setup["NR_CHOSEN"] == "2" and setup["CALLGRAPH"] == "7", setup)
    require(setup["SEPARATE_LIB"] == "1" and setup["SEPARATE_KERNEL"] == "1" and setup["SEPARATE_CPU"] == "0", setup)
    box.opcontrol("--separate=thread,cpu")
    setup = kept(box)
    require(setup["NR_CHOSEN"] == "2" and setup["SEPARATE_LIB"] == "0" and setup["SEPARATE_THREAD"] == "1", setup)
    for words in (("--event=TIMER:100000", "--event=timer:100000"), ("--event=default", "--event=TIMER:100000"),
                  ("--separate=all,x",),
                  ("--event=page-faults:1", "--vmlinux=/no/such/file"), ("--callgraph=128",), ("--kernel-range=5,4",),
                  ("--session-dir=/a b",),
                  ("--buffer-size=-1",)):
        box.refused(opcontrol(box), *words)
    require(kept(box) == setup, "a refused call changed the setup: %s" % kept(box))
    box.opcontrol("--event=default", "--no-vmlinux")
    require(kept(box)["NR_CHOSEN"] == "0", kept(box))
    os.unlink(os.path.join(box.session, "daemonrc"))
    out = box.opcontrol("--xen=/no/such", "--active-domains=1,2", "--s390hwsampbufsize", "4")
    inert = {"buffer-size": "100", "buffer-watershed": "50", "cpu-buffer-size": "7"}
    said = box.opcontrol("--setup", *["--%s=%s" % option for option in inert.items()])
    shown = box.opcontrol("--status").splitlines()
    for name, title in (("buffer-size", "Buffer size"), ("buffer-watershed", "CPU buffer watershed"),
                        ("cpu-buffer-size", "CPU buffer size")):
        require("--%s is kept in the setup, but has no effect in opd.\n" % name in said, said)
        require("%s: %s (of no effect)" % (title, inert[name]) in shown, "--status claims what is not: %s" % shown)
    for name in ("xen", "active-domains", "s390hwsampbufsize"):
        require("--%s is ignored: " % name in out, "--%s: %r" % (name, out))
    require(box.opcontrol("--init").startswith("--init is ignored: there is no module to load"),
            "--init does not say that it does nothing")
    require(box.opcontrol("--deinit").startswith("There is no module to unload"), "--deinit does not say what it does not do")
    os.unlink(os.path.join(box.session, "daemonrc"))


def names_of_images(box):
    """What is there is kept by its path without links; what is not, with a warning; all is nothing
    to be kept.
    """
    program = box.copy_work("lib++.so")
    link = os.path.join(box.dir, "link")
    os.symlink("lib++.so", link)
    for given, taken, warned in ((link, program, []), (os.path.relpath(program, box.dir), program, []),
                                 ("no-vmlinux,%s,," % link, "no-vmlinux," + program, []),
                                 ("/no/such,%s,no-module" % program, "/no/such,%s,no-module" % program,
                                  ["/no/such", "no-module"]), ("all", "", []),
                                 (link, program, []), ("", "", [])):
        result = box.run(opcontrol(box), "--image=" + given)
        lines = result.err.splitlines()
        require(result.rc == 0 and not result.out and len(lines) == len(warned), "--image=%s: %s" % (given, result))
        require(all("warning: --image: %s: " % name in line for name, line in zip(warned, lines)),
                "--image=%s: %s" % (given, result.err))
        require(kept(box)["IMAGE_FILTER"] == taken, "--image=%s: %s" % (given, kept(box)))
        require("Image filter: %s" % (taken or "none") in box.opcontrol("--status").splitlines(), "--status after --image=" + given)
    require("-_:,./+ only" in box.run(opcontrol(box), "--image=/a b").err, "--image takes a name that the setup cannot keep")
    os.unlink(link)
    os.unlink(program)


STUB_FDS = "echo \"$(ls -l /proc/$$/fd | grep -c /callers-own) of the caller's\" >&2; exit 1\n"


def odd_vmlinux(box):
    """What cannot have symbols is kept, with a warning; what can have them without."""
    text = os.path.join(box.dir, "vmlinuz")
    for data, warns in ((b"", True), (b"\x7fEL", True), (b"\x1f\x8b" + bytes(100), True), (b"\x7fELF" + bytes(100), False)):
        with open(text, "wb") as stream:
            stream.write(data)
        result = box.run(opcontrol(box), "--vmlinux=" + text)
        lines = result.err.splitlines()
        require(result.rc == 0 and len(lines) == warns, "%r: %s" % (data, result))
        require(not warns or ("warning: --vmlinux=" + text in lines[0] and "ELF" in lines[0]), result.err)
        require(kept(box)["VMLINUX"] == text, kept(box))
    require(not box.run(opcontrol(box), "--callgraph=0").err, "warned of a --vmlinux that was not given")
    box.opcontrol("--no-vmlinux")
    os.unlink(os.path.join(box.session, "daemonrc"))


def nothing_half_written(box):
    """A setup that cannot be kept leaves nothing, and its error says what helps. What was there
    before stays.
    """
    place = box.tmpfs("full", "size=16k")
    there = os.path.join(place, "there")
    os.mkdir(there)
    with open(os.path.join(place, "ballast"), "wb", buffering=0) as stream:
        try:
            while True:
                stream.write(bytes(4096))
        except OSError:
            pass
    plain = os.path.join(place, "ballast", "session")
    for session, reason in ((os.path.join(there, "a/b/session"), "No space left on device (make room there; "),
                            (there, "No space left on device"),
                            (plain, "Not a directory (")):
        box.configure(session=session)
        line = box.refused(opcontrol(box), "--setup", "--event=TIMER:100000")
        require(session in line and reason in line and "SessionDir= in " + box.config in line, line)
        require(os.listdir(there) == [] and sorted(os.listdir(place)) == ["ballast", "there"], "left: %s" % list(os.walk(place)))
    box.configure()
    box.opcontrol("--session-dir=" + plain, "--event=TIMER:100000")
    line = box.refused(opcontrol(box), "--start")
    require(plain in line and "Not a directory (opcontrol --session-dir=DIR" in line, line)
    os.unlink(os.path.join(box.session, "daemonrc"))


def stub(box, text):
    path = os.path.join(box.dir, "stub")
    with open(path, "w", encoding="ascii") as stream:
        stream.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return {"OPD_DAEMON": path}


def bad_daemons(box):
    """A daemon that ends before it is ready: its last line is the reason."""
    line = box.refused(opcontrol(box), "--start-daemon", "--event=TIMER:100000",
                       env=stub(box, "echo 'opd: all is well' >&2; echo 'opd: the disk burns' >&2; exit 1\n"))
    require(line == "opcontrol: opd does not start: the disk burns", line)
    line = box.refused(opcontrol(box), "--start-daemon", env=stub(box, "exit 3\n"))
    require("exit code 3" in line, line)
    line = box.refused(opcontrol(box), "--start-daemon", env=stub(box, "kill -9 $$\n"))
    require("signal 9" in line, line)
    line = box.refused(opcontrol(box), "--start-daemon", env={"OPD_DAEMON": "/no/such/opd"})
    require("/no/such/opd" in line, line)


def no_foreign_descriptors(box):
    """The daemon does not inherit the caller's open files: it would keep a lock, or keep a pipe
    from ending.
    """
    with open(os.path.join(box.dir, "callers-own"), "w", encoding="ascii") as stream:
        done = subprocess.run([opcontrol(box), "--start-daemon"], env={**box.env, **stub(box, STUB_FDS)}, cwd=box.dir,
                              pass_fds=[stream.fileno()], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=opdtest.CALL_SECONDS, check=False)
    require(done.stderr == "opcontrol: opd does not start: 0 of the caller's\n", done.stderr)


def with_systemctl(box, text, *words, before=""):
    """
    opcontrol where systemd is said to have been booted and to have the units of opd, and systemctl
    is a shell script with this in it, after `before`; None without a mount
    name space. Only its own processes are seen there.
    """
    if box.run("unshare", "--mount", "--pid", "--fork", "--mount-proc", "mount", "-t", "tmpfs", "opd-test", "/run").rc != 0:
        print("no mount name space here: systemctl's words are not looked at")
        return None
    path = os.path.join(box.dir, "systemctl")
    with open(path, "w", encoding="ascii") as stream:
        stream.write("#!/bin/sh\n%s\n" % text)
    os.chmod(path, 0o755)
    script = ("mount -t tmpfs opd-test /run && mount -t tmpfs opd-test /var/lib && mkdir -p /run/systemd/system && "
              "touch /run/systemd/system/opd.service /run/systemd/system/opd.socket && { " + (before or ":") + "\n\"$@\"; }")
    env = {k: v for k, v in box.env.items() if k not in ("OPD_CONFIG", "OPD_DAEMON")}
    env["PATH"] = box.dir + ":" + os.environ["PATH"]
    return subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
                           script, "sh", opcontrol(box), *words], env=env, cwd=box.dir, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=opdtest.CALL_SECONDS, check=False)


def at_systemds_word(box):
    """Where the daemon is systemd's, what systemctl says against it is handed on."""
    for text, rc, words in (("echo Unit $2 is masked. >&2; echo See the journal. >&2; exit 5", 1,
                             ": Unit opd.service is masked. ("),
                            ("case $*:$1 in *StatusText*:show) echo the disk burns;; *:start) echo Job for $2 failed. "
                             ">&2; exit 1;; esac", 1,
                             ": opd does not start: the disk burns ("),
                            ("case $*:$1 in *StatusText*:show) echo It ran once.;; *:start) echo Unit $2 is masked. "
                             ">&2; exit 1;; esac", 1,
                             "failed: Unit opd.service is masked. ("),
                            ("exit 1", 1, "failed ("), ("echo a warning >&2", 0, "")):
        done = with_systemctl(box, text, "--start-daemon")
        require(not done or (done.returncode == rc and words in done.stderr and len(done.stderr.splitlines()) == rc),
                "%s: %s" % (text, done))


def shut_down_for_good(box):
    """What root ends stays so: --shutdown and --deinit close the socket by which systemd would
    start it for whoever connects, also when nothing runs.
    """
    said = os.path.join(box.dir, "systemctl.said")
    for request in ("--shutdown", "--deinit"):
        done = with_systemctl(box, "echo $* >>%s" % said, request)
        if done:
            require(done.returncode == 0, "%s: %s" % (request, done))
            with open(said, encoding="ascii") as stream:
                require([line for line in stream if not line.startswith("show ")] == ["stop opd.socket\n"],
                        "%s does not close the socket" % request)
            os.unlink(said)
        done = with_systemctl(box, "echo no bus >&2; exit 1", request)
        require(not done or (done.returncode == 1 and "no bus: a connection to it starts opd "
                                                      "again" in done.stderr), "%s: %s" % (request, done))


LISTENER = """
import fcntl, os, socket, sys
session, control, pid, cgroup, lock = sys.argv[1:]
os.makedirs(os.path.dirname(control))
os.makedirs(session)
held = open(session + "/lock", "w")
if lock:
    fcntl.flock(held, fcntl.LOCK_EX)
if pid:
    held.write(str(os.getpid()))
    held.flush()
if cgroup:
    with open(cgroup + "/cgroup.procs", "w") as stream:
        stream.write("0")
listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listening.bind(control + ".new")
listening.listen()
os.rename(control + ".new", control)
listening.accept()[0].close()
listening.accept()
"""


def without_systemctls_word(box):
    """A user whom systemctl does not answer, for example without D-Bus, asks a running daemon at
    the socket, and starts no other one.
    """
    session = re.search("^Session-dir: (.*)$", box.good("env", "-u", "OPD_CONFIG", opcontrol(box), "--status"), re.M).group(1)
    state = os.path.dirname(os.path.dirname(session))
    control = os.path.join("/run" if state == "/var" else state + "/run", "opd", "control")
    while not os.path.isdir(state):
        state = os.path.dirname(state)
    mount = "" if state == "/var" else "mount -t tmpfs opd-test %s && " % state
    if state in ("/", "/usr"):
        print("there is no place for a file system instead of %s: what is asked without systemctl's word is not "
              "looked at" % session)
        return
    path = os.path.join(box.dir, "listener.py")
    with open(path, "w", encoding="ascii") as stream:
        stream.write(LISTENER)
    top = test_cgroup.hierarchy()
    group = test_cgroup.Groups(top, "opd-test-%d" % os.getpid()) if top and os.access(os.path.join(top,
            "cgroup.procs"), os.W_OK) else None
    try:
        unit = group.top + group.make("opd.service") if group else None
        for pid, cgroup, lock, is_asked in (("", "", "lock", False), ("pid", "", "", False),
                                            ("pid", "", "lock", True), ("", unit, "", True)):
            if cgroup is None:
                print("no cgroup to move processes to: one case is left out")
                continue
            before = "%s{ python3 %s %s %s '%s' '%s' '%s' & } && while ! [ -e %s ]; do sleep 0.05; done" % (
                mount, path, session, control, pid, cgroup, lock, control)
            done = with_systemctl(box, "exit 1", "--dump", before=before)
            require(not done or (done.returncode == 1 and ("closed the connection" in done.stderr) == is_asked),
                    "%s: %s" % ((pid, cgroup, lock), done))
    finally:
        if group:
            group.close()


def stale_locks(box):
    """The number of a process that has ended, of one that is no opd, and no number."""
    child = subprocess.Popen(["true"])
    child.wait()
    for text in (str(child.pid), str(os.getpid()), "x"):
        with open(os.path.join(box.session, "lock"), "w", encoding="ascii") as stream:
            stream.write(text)
        require(box.status() == {"state": "not running"}, "lock %r: %s" % (text, box.status()))
        result = box.run(opcontrol(box), "--stop")
        require("Detected stale lock file. Removing." in result.out and result.rc == 0, "lock %r: %r" % (text, result))
        require(not os.path.exists(os.path.join(box.session, "lock")), "lock %r is still there" % text)
        require(os.path.exists(os.path.join(box.session, "unclean")),
                "lock %r: the next daemon does not look at the session" % text)


def held_by_a_tool(box):
    """A lock that something else than the daemon whose pid is in it holds."""
    path = os.path.join(box.session, "lock")
    with FakeDaemon(box, {}) as other, open(path, "w", encoding="ascii") as stream:
        os.unlink(box.socket)
        stream.write(str(other.pid))
        stream.flush()
        fcntl.flock(stream, fcntl.LOCK_EX)
        for request in ("--stop", "--shutdown"):
            result = box.run(opcontrol(box), request)
            require((result.rc, result.out, result.err) == (0, "", "Daemon not running\n"), "%s: %s" % (request, result))
        require(os.path.exists(path) and opdtest.is_alive(other.pid), "the lock or a daemon that does not hold it is gone")
    os.unlink(path)


def copied_lock(box):
    """The lock of a daemon that runs, in a copy of its session directory: nobody holds that one,
    and the daemon is not that session's.
    """
    running, copy, away = box.session, os.path.join(box.dir, "copy"), box.socket + ".copy"
    box.start_daemon("--event=TIMER:300000", start=False)
    os.mkdir(copy)
    shutil.copy(os.path.join(running, "lock"), copy)
    box.configure(session=copy, ControlSocket=away)
    require(box.status() == {"state": "not running"}, "status of the copy: %s" % box.status())
    result = box.run(opcontrol(box), "--shutdown")
    require(result.rc == 0 and "Killing" not in result.out and "Removing" in result.out, "--shutdown of the copy: %s" % (result,))
    box.configure()
    require(box.status()["pid"] == box.daemon.pid, "the daemon of another session was ended")
    box.shutdown()


class FakeDaemon:
    """A process that gives these answers at the control socket: {command:
    (error, payload)}; it does not answer other commands. locked: it also holds the lock; linger:
    seconds that it takes to end; version: of the protocol, else that of the request.
    """

    def __init__(self, box, answers, end_after=None, locked=False, linger=0, version=None):
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listening.bind(box.socket)
        listening.listen()
        self.lock = lock = self.hold_lock(box) if locked else None
        self.version = version
        self.path, self.ended, self.pid = box.socket, False, os.fork()
        if not self.pid:
            try:
                self.serve(listening, answers, end_after)
                time.sleep(linger)
            finally:
                os._exit(0)
        listening.close()
        if lock:
            lock.write(str(self.pid))
            lock.close()

    @staticmethod
    def hold_lock(box):
        """The child's, when the parent has closed it."""
        lock = open(os.path.join(box.session, "lock"), "w", encoding="ascii")
        fcntl.flock(lock, fcntl.LOCK_EX)
        return lock

    def ended_by(self):
        """The signal that has ended it, 0 for none."""
        self.ended = True
        return os.WTERMSIG(os.waitpid(self.pid, 0)[1])

    def serve(self, listening, answers, end_after):
        command = None
        while command is None or command != end_after:
            client = listening.accept()[0]
            magic, version, command = struct.unpack("<IHH8x", client.recv(16))
            if command in answers:
                error, payload = answers[command]
                if callable(payload):
                    payload = payload()
                if self.lock and command == end_after:
                    self.lock.close()  # whoever has the answer finds a lock that nobody holds
                client.send(struct.pack("<IHHiI", magic, self.version or version, command, -error, len(payload)) + payload)
            client.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if not self.ended:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        if os.path.exists(self.path):
            os.unlink(self.path)


def status_payload(state=1):
    """Of the calling process, which runs, or is paused, and has neither events nor CPUs."""
    return struct.pack("<8I%dQ6I14688x" % (23 + len(JIT_KEYS | BOUND_KEYS)), os.getpid(), state,
                       *[0] * (35 + len(JIT_KEYS | BOUND_KEYS)))


def told_by_the_daemon(box):
    """An error in the daemon's reply is not taken for a missing daemon, whatever its number is.
    Requests have the names of their options.
    """
    for error in (errno.ENOENT, errno.ECONNREFUSED, errno.ENOSPC):
        with FakeDaemon(box, {STATUS: (0, status_payload), STOP: (error, b"a file\nis missing"),
                              DUMP: (error, b"a file\nis missing")}):
            for request in ("--dump", "--stop"):
                result = box.run(opcontrol(box), request)
                require((result.rc, result.err) == (1, "opcontrol: %s: a file is missing\n" % request),
                        "%s: %s" % (request, result))
    line = box.refused(opcontrol(box), "--dump")
    require("is the oprofile daemon running?" in line, line)


def asked_twice_to_end(box):
    """A daemon that somebody else has asked to end is waited for, in silence."""
    ending = (errno.ESHUTDOWN, b"opd is shutting down")
    for answers in ({STATUS: (0, status_payload), STOP: ending, SHUTDOWN: ending}, {STATUS: (0, status_payload),
            STOP: (0, b""), SHUTDOWN: ending}):
        with FakeDaemon(box, answers, end_after=SHUTDOWN):
            result = box.run(opcontrol(box), "--shutdown")
            require((result.rc, result.err) == (0, ""), "--shutdown: %s" % (result,))
    with FakeDaemon(box, {STATUS: ending}, locked=True) as daemon:
        line = box.refused(opcontrol(box), "--start")
        require("opd (pid %d) is shutting down" % daemon.pid in line, line)
        os.chmod(os.path.join(box.session, "lock"), 0o600)
        os.chmod(box.socket, 0o666)
        os.chmod(box.session, 0o755)  # a new one is closed to others, and so are its files
        os.chmod(os.path.join(box.session, "daemonrc"), 0o644)
        line = box.refused(opcontrol(box), "--status", user=65534)
        require(line == "opcontrol: opd is shutting down", "what a user is told who may not read the lock: " + line)
    os.unlink(os.path.join(box.session, "lock"))


def another_version(box):
    """Every request reports an opd with another version of the protocol, with both versions and the
    remedy, and can end it.
    """
    for version in (1, 60000):
        answers = {STATUS: (errno.EPROTO, b"what a strange request"), DUMP: (errno.EPROTO, b"")}
        with FakeDaemon(box, answers, locked=True, version=version) as daemon:
            for request in ("--start", "--stop", "--reset", "--dump", "--save=some"):
                line = box.refused(opcontrol(box), request)
                require("speaks version %d " % version in line and "systemctl restart opd" in line, "%s: %s" % (request, line))
            require(box.status() == {"state": "another version", "pid": daemon.pid}, "status: %s" % box.status())
            result = box.run(opcontrol(box), "--status")
            require("Daemon running: pid %d" % daemon.pid in result.out
                    and "speaks version %d " % version in result.err, "--status: %s" % (result,))
        os.unlink(os.path.join(box.session, "lock"))
    with FakeDaemon(box, answers, version=3):
        line = box.refused(opcontrol(box), "--start")
        require("speaks version 3 " in line, "with a lock elsewhere: " + line)


def not_kept(box):
    """That --start and --stop hold for the next opd cannot be written: what they do is done, and
    the answer says both.
    """
    box.start_daemon()
    path = os.path.join(box.session, "profiling")
    os.unlink(path)
    os.mkdir(path)
    for request, state, words in (("--stop", "paused", "stopped, but the next opd may begin with it"),
                                  ("--start", "running", "begun, but the next opd may begin without it")):
        result = box.run(opcontrol(box), request)
        require(result.rc == 1 and words in result.err and path in result.err, "%s: %s" % (request, result))
        require(box.status()["state"] == state, "%s: %s" % (request, box.status()["state"]))
    os.rmdir(path)
    box.opcontrol("--stop")
    box.shutdown()


def ended_as_another_version(box):
    """The real one is ended in order, although it does not understand who asks."""
    box.start_daemon()
    os.rename(box.socket, box.socket + ".away")
    with FakeDaemon(box, {STATUS: (errno.EPROTO, b"")}, version=1):
        require("Daemon stopped." in box.opcontrol("--shutdown"), "nothing is said")
    require(box.daemon.wait(opdtest.HANG_SECONDS) == 0, "opd ended with %s" % box.daemon.returncode)
    os.unlink(box.socket + ".away")
    box.check_rest()


def setup_while_it_runs(box):
    box.start_daemon("--event=TIMER:300000")
    require("New setup" not in box.opcontrol("--status") and box.status()["setup_waits"] is False, "a setup waits that nobody made")
    box.opcontrol("--event=TIMER:400000")
    waiting = "New setup: waits in %s/daemonrc_new until the daemon is started again\n" % box.session
    require(waiting in box.opcontrol("--status"), "--status does not say that a setup waits")
    require(box.status()["setup_waits"] is True, "--status --json does not say that a setup waits")
    require(kept(box)["CHOSEN_EVENTS_0"].startswith("TIMER:300000"), kept(box))
    require("Event 0: TIMER:300000:0:1:1\n" in box.opcontrol("--status"), "--status shows what is not in use")
    box.opcontrol("--separate=none")
    require(kept(box, "daemonrc_new")["CHOSEN_EVENTS_0"].startswith("TIMER:400000"), "the second setup forgot the first")
    status = box.status()
    require(set(status) == STATUS_KEYS, "keys: %s" % sorted(set(status) ^ STATUS_KEYS))
    require(all(set(e) == EVENT_KEYS for e in status["events"]), "keys of an event: %s" % json.dumps(status["events"]))
    require(all(set(c) == CPU_KEYS for c in status["cpus"]), "keys of a CPU: %s" % json.dumps(status["cpus"]))
    check_page()
    require((len(status["events"]), len(status["cpus"])) == (status["nr_events"], status["nr_cpus"]), "numbers of events and CPUs")


def mute_daemon(box):
    """A daemon whose socket has gone is neither taken for dead nor started twice, and it can be
    ended.
    """
    os.rename(box.socket, box.socket + ".away")
    for request in ("--start", "--stop", "--reset"):
        line = box.refused(opcontrol(box), request)
        require("pid %d" % box.daemon.pid in line and box.socket in line, line)
    require(box.status() == {"state": "not answering", "pid": box.daemon.pid}, "status: %s" % box.status())
    require("Daemon stopped." in box.opcontrol("--shutdown"), "nothing is said")
    require(box.daemon.wait(opdtest.HANG_SECONDS) == 0, "opd ended with %s" % box.daemon.returncode)
    os.unlink(box.socket + ".away")
    box.check_rest()


def under_another_name(box):
    """The daemon is the process that holds the lock, whatever its program is called: it is ended by
    a request, and by signals when it does not answer, by the lock of its session directory and by
    that of its socket.
    """
    link = os.path.join(box.dir, "oprofiled")
    os.symlink(box.env["OPD_DAEMON"], link)
    box.env["OPD_DAEMON"] = link
    for make_mute, codes in ((None, (0,)), (lambda: os.rename(box.socket, box.socket + ".away"), (0,)),
                             (lambda: (box.daemon.send_signal(signal.SIGSTOP), os.rename(box.session, box.session + ".away")),
                              (0, 1))):  # 1: it has noticed first that its session directory is gone
        box.start_daemon(start=False)
        with open("/proc/%d/comm" % box.daemon.pid, encoding="ascii") as stream:
            require(box.run_as != "root" or stream.read() == "oprofiled\n", "the name of the daemon is opd all the same")
        if make_mute:
            make_mute()
        require("Daemon stopped." in box.opcontrol("--shutdown"), "nothing is said")
        require(box.daemon.wait(opdtest.HANG_SECONDS) in codes, "opd ended with %s" % box.daemon.returncode)
        if os.path.exists(box.socket + ".away"):
            os.unlink(box.socket + ".away")
        if os.path.exists(box.session + ".away"):
            os.rename(box.session + ".away", box.session)
        if box.daemon.returncode == 0:
            box.check_rest()
        else:
            os.unlink(os.path.join(box.session, "lock"))
    box.env["OPD_DAEMON"] = os.path.realpath(link)


def unreadable_setup(box):
    """What is wrong in daemonrc is said with its line; it does not keep a daemon from being ended.
    """
    box.opcontrol("--stop")
    require(kept(box)["CHOSEN_EVENTS_0"].startswith("TIMER:400000"), "the setup that waited did not take effect")
    box.start_daemon()
    path = os.path.join(box.session, "daemonrc")
    with open(path, "a", encoding="ascii") as stream:
        stream.write("what is this\n")
    with open(path, encoding="ascii") as stream:
        where = "%s:%d" % (path, len(stream.readlines()))
    line = box.refused(opcontrol(box), "--start")
    require(where in line and "opcontrol --setup" in line, line)
    line = box.refused(opcontrol(box), "--event=nonsense")
    require("nonsense" in line and where not in line, line)
    result = box.run(opcontrol(box), "--shutdown")
    require(result.rc == 0 and where in result.err, "--shutdown: %s" % (result,))
    require(box.daemon.wait(opdtest.HANG_SECONDS) == 0, "opd ended with %s" % box.daemon.returncode)
    line = box.refused(box.env["OPD_DAEMON"])
    require(where in line, line)


def damaged_setup(box):
    """A damaged setup is no dead end: setup options begin anew, with and without a daemon, and say
    so.
    """
    path = os.path.join(box.session, "daemonrc")
    for damage, where in ((b"CALLGRAPH=9\nwhat is this\n", ":2: "), (bytes(64), ": holds NUL bytes"), (b"NR_CHOSEN=1\n", ":1: ")):
        for words in (("--setup", "--event=TIMER:500000"), ("--event=default",), ("--no-vmlinux",)):
            with open(path, "wb") as stream:
                stream.write(damage)
            line = box.refused(opcontrol(box), "--start")
            require(path + where in line and "opcontrol --setup" in line, line)
            result = box.run(opcontrol(box), *words)
            require(result.rc == 0 and len(result.err.splitlines()) == 1, "%s: %s" % (words, result))
            require("warning: " + path + where in result.err and "defaults" in result.err, result.err)
            require(kept(box)["CALLGRAPH"] == "0" and kept(box)["NR_CHOSEN"] == ("1" if "--setup" in words else "0"), kept(box))
            require(not box.run(opcontrol(box), "--callgraph=1").err, "the new setup is damaged, too")


def pipe_as_log(box, path):
    """What nobody reads would hold the daemon up."""
    if os.path.exists(path):
        os.unlink(path)
    for make in (os.mkfifo, lambda pipe: os.symlink("/dev/null", pipe)):
        make(path)
        line = box.refused(opcontrol(box), "--start-daemon", "--event=TIMER:100000", env=stub(box, "exit 3\n"), timeout=60)
        require("cannot open the log %s: " % path in line, line)
        os.unlink(path)


def foreign_things(box):
    """What the owner of the session directory has put into it leads root nowhere else, and does not
    make him wait; no daemon runs.
    """
    victim = os.path.join(box.dir, "victim")
    below = os.path.join(victim, "current", "{root}", "bin")
    os.makedirs(below)
    os.makedirs(os.path.join(victim, "{root}", "bin"))
    before = sorted(path for path, _, _ in os.walk(victim))
    samples, kept_samples = os.path.join(box.session, "samples"), os.path.join(box.dir, "kept")
    os.rename(samples, kept_samples)
    for make in (lambda: os.symlink(victim, samples), lambda: (os.unlink(samples), os.mkdir(samples),
                                                               os.symlink(victim, samples + "/current"))):
        make()
        for request in ("--reset", "--save=taken"):
            box.refused(opcontrol(box), request)
        box.refused(opcontrol(box), "--start-daemon", "--event=TIMER:100000", env=stub(box, "echo opd: stub >&2; exit 3\n"))
        require(not os.path.exists(os.path.join(victim, "oprofiled.log")), "the log is where a link of the session directory leads")
        require(sorted(path for path, _, _ in os.walk(victim)) == before, "opcontrol follows a link of the session directory")
    os.unlink(samples + "/current")
    shutil.rmtree(samples)
    os.rename(kept_samples, samples)
    pipe_as_log(box, os.path.join(samples, "oprofiled.log"))
    for name in ("daemonrc", "lock"):
        path = os.path.join(box.session, name)
        if os.path.exists(path):
            os.unlink(path)
        os.mkfifo(path)
        box.run(opcontrol(box), "--status", timeout=60)
        if os.path.lexists(path):
            os.unlink(path)


def damaged_while_it_runs(box):
    box.start_daemon("--event=TIMER:300000")
    path = os.path.join(box.session, "daemonrc")
    with open(path, "wb") as stream:
        stream.write(bytes(64))
    result = box.run(opcontrol(box), "--event=TIMER:600000")
    require(result.rc == 0 and "warning: " + path in result.err, "%s" % (result,))
    require(not box.run(opcontrol(box), "--separate=none").err, "the setup that waits is damaged, too")
    box.opcontrol("--shutdown")
    require(box.daemon.wait(opdtest.HANG_SECONDS) == 0, "opd ended with %s" % box.daemon.returncode)
    require(not box.run(opcontrol(box), "--stop").rc, "the damaged setup kept the new one from its place")
    require(kept(box)["CHOSEN_EVENTS_0"].startswith("TIMER:600000"), kept(box))


def test(box):
    what_goes_with_what(box)
    what_is_kept(box)
    odd_vmlinux(box)
    names_of_images(box)
    nothing_half_written(box)
    bad_daemons(box)
    no_foreign_descriptors(box)
    at_systemds_word(box)
    shut_down_for_good(box)
    without_systemctls_word(box)
    stale_locks(box)
    held_by_a_tool(box)
    copied_lock(box)
    told_by_the_daemon(box)
    asked_twice_to_end(box)
    another_version(box)
    ended_as_another_version(box)
    not_kept(box)
    under_another_name(box)
    setup_while_it_runs(box)
    mute_daemon(box)
    unreadable_setup(box)
    damaged_setup(box)
    damaged_while_it_runs(box)
    foreign_things(box)


if __name__ == "__main__":
    opdtest.run(test)
