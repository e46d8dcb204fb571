#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
What opd may do. With each capability of doc/security.md left out, what that page says breaks, and
nothing else: opd names the capability and what it means, profiles, and keeps
its ledger. Started by root it becomes the owner of its session directory, and what that owner
writes there neither makes an opd root's nor has root's opcontrol write elsewhere.
"""
import os
import shutil

import opdtest
from opdtest import CAPABILITIES, DAEMON_UID, require
from test_dcookies import read_table, unescape
from test_jit import jit_functions

PERIOD_NS = 497000
SHORT_NS = 20000  # needs rings of a megabyte
JIT_MS, WORK_MS = 2000, 300  # several visits of opd, on an emulated machine too
SOME_STACKS = 100
RING = "16M"  # two for each CPU are more than kernel.perf_event_mlock_kb allows anybody
IN_CONTAINER = "/mnt/jit"
OLD = {"open file", "closed directory", "removed file"}  # programs from before opd
NO_MAPPING = "{kern}/no-mapping"
KERNEL, NO_KERNEL = "/proc/kallsyms", "/no-vmlinux"

# What is not known without them. Those of others are known.
WITHOUT = {
    None: set(),
    "sys_ptrace": {"removed file", "JIT code of a container"},
    "checkpoint_restore": {"removed file"},
    "dac_read_search": {"closed directory", "removed file", "JIT code of mode 0600"},
    "syslog": {"kernel"},
}


def sysctl(name):
    with open("/proc/sys/kernel/" + name, encoding="ascii") as stream:
        return int(stream.read())


def maps_are_open(box):
    """Whether CAP_PERFMON is enough for /proc/PID/maps of another user, as on newer kernels."""
    only = ["--%s=-all,+perfmon" % caps for caps in ("inh-caps", "ambient-caps", "bounding-set")]
    return box.run("setpriv", "--reuid=%d" % DAEMON_UID, "--clear-groups", *only,
                   "head", "-c1", "/proc/%d/maps" % os.getpid()).rc == 0


def use_capabilities(box, left_out, locked_kib=64):
    """The daemon is a user of its own with the capabilities of the unit but one, and with a limit
    on locked memory.
    """
    path = os.path.join(box.dir, "opd-without")
    caps = ",".join("+" + name for name in CAPABILITIES if name != left_out)
    with open(path, "w", encoding="ascii") as stream:
        stream.write(opdtest.AS_USER.format(uid=DAEMON_UID, caps=caps, program=box.program).replace("exec setpriv",
                "ulimit -l %d\nexec setpriv" % locked_kib))
    os.chmod(path, 0o755)
    box.env["OPD_DAEMON"] = path
    shutil.rmtree(box.session, ignore_errors=True)
    with open(box.log, "w", encoding="ascii"):
        pass


def is_identified(box, path):
    """That opd has looked at the file: its size is in the table of images."""
    rows = [row for row in read_table(box.session).values() if unescape(row["path"]) == os.fsencode(path)]
    require(rows, "there is no sample of %s" % path)
    return all(int(row["size"]) for row in rows)


def make_old_ones(box, part):
    """Programs from before opd: an open file, one in a closed directory, one that is removed.
    {what: (path, process)}.
    """
    closed = os.path.join(box.dir, "closed-" + part)
    os.mkdir(closed, 0o700)
    paths = {"open file": box.copy_work("open-" + part), "closed directory": os.path.join(closed, "work"),
             "removed file": box.copy_work("removed-" + part)}
    shutil.copy(box.work, paths["closed directory"])
    old = {what: (path, box.busy_until_ended(path)) for what, path in paths.items()}
    for path, process in old.values():
        opdtest.wait_until(lambda p=path, c=process: os.path.realpath("/proc/%d/exe" % c.pid) == p,
                           opdtest.HANG_SECONDS, "%s does not run" % path)
    os.unlink(paths["removed file"])
    return old


def end_when_profiled(box, old, unseen):
    """The old ones, so that the new ones have the CPUs. `unseen`: opd cannot tell what they are."""
    def is_profiled(place):
        return box.opcontrol("--dump") == "" and os.path.isdir(os.path.join(box.session, "samples", "current", place))

    for path, process in old.values():
        place = NO_MAPPING if unseen else "{root}" + path
        opdtest.wait_until(lambda p=place: is_profiled(p), opdtest.HANG_SECONDS, "%s gets no CPU" % path)
        box.end_busy(process)


def run_new_ones(box, part):
    """A JIT compiler in a container with a /tmp of its own, one whose map is its own to read, and
    work in the kernel. The path of the second.
    """
    app = box.copy_work("jit-" + part, "jit_work")
    script = "mount -t tmpfs opd-test /mnt; cp %s %s; mount -t tmpfs opd-test /tmp; exec %s map %d" % (app,
            IN_CONTAINER, IN_CONTAINER, JIT_MS)
    box.good("unshare", "--mount", "--propagation=private", "sh", "-ec", script)
    box.good("sh", "-c", "umask 077; %s map %d & wait $!; status=$?; rm /tmp/perf-$!.map; exit $status" % (app, JIT_MS))
    box.good(box.work, "kernel", WORK_MS)
    return app


def names_of(box, app):
    return set(jit_functions(box, app)[0])


def known_of(box, old, app, unseen):
    known = set() if unseen else {what for what, (path, _) in old.items() if is_identified(box, path)}
    if names_of(box, IN_CONTAINER):
        known.add("JIT code of a container")
    if names_of(box, app):
        known.add("JIT code of mode 0600")
    images = {f.name.image[1] for f in box.files() if f.header.is_kernel}
    require((KERNEL in images) != (images == {NO_KERNEL}), "the kernel's samples are in %s" % images)
    if KERNEL in images:
        known.add("kernel")
    return known


def profile_without(box, capability, part):
    use_capabilities(box, capability)
    old = make_old_ones(box, part)
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel,thread")
    unseen = capability == "sys_ptrace" and not maps_are_open(box)
    end_when_profiled(box, old, unseen)
    app = run_new_ones(box, part)
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    status = box.check_ledger()
    lost = any(cpu["sideband_lost"] or cpu["lost_kernel"] for cpu in status["cpus"])
    known = known_of(box, old, app, unseen)
    warnings = [line for line in box.log_text().splitlines() if line.startswith("opd: without CAP_")]
    print("without %s: %s known; %s" % (part, sorted(known), warnings))
    box.shutdown()
    return known, warnings, lost


def known_without(box, capability, expected):
    """Returns whether exactly this is known. On a busy machine records may be lost under a name,
    and with them what they said; then the test runs again with larger rings.
    """
    for size in ("auto", "4M", "16M"):
        box.configure(RingSize=size, SidebandSize=size)
        known, warnings, lost = profile_without(box, capability, "%s-%s" % (capability or "nothing", size))
        if known == expected or not lost:
            break
    require(known == expected, "without %s: %s is known, not %s" % (capability, known, expected))
    return warnings


def left_out(box):
    expected = {"open file", "closed directory", "removed file", "JIT code of a container", "JIT code of mode 0600"}
    if sysctl("kptr_restrict") < 2:
        expected.add("kernel")
    warnings = known_without(box, None, expected)
    require(not warnings, "with all capabilities: %s" % warnings)
    for capability, lost in WITHOUT.items():
        if capability is None:
            continue
        if capability == "syslog" and sysctl("kptr_restrict") == 0 and sysctl("perf_event_paranoid") <= 1:
            lost = set()
        if capability == "sys_ptrace" and not maps_are_open(box):
            lost = lost | OLD
        warnings = known_without(box, capability, expected - lost)
        require(len(warnings) == 1 and warnings[0].startswith("opd: without CAP_%s " % capability.upper()),
                "without %s: %s" % (capability, warnings))


def refused_without(box):
    """Where nothing can be sampled opd ends with a line that names what it needs."""
    use_capabilities(box, "perfmon")
    if sysctl("perf_event_paranoid") > 0:
        line = box.refused(box.env["OPD_DAEMON"])
        require("CAP_PERFMON" in line, line)
    box.configure(RingSize=RING)
    use_capabilities(box, "ipc_lock")
    line = box.refused(box.env["OPD_DAEMON"])
    require("CAP_IPC_LOCK" in line, line)
    use_capabilities(box, None)
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS)
    box.shutdown()
    box.configure()


def smaller_rings(box):
    """Rings whose size opd chooses become smaller where it may not lock more memory. The log says
    so where they are less than needed.
    """
    for period_ns, is_enough in ((PERIOD_NS, True), (SHORT_NS, False)):
        use_capabilities(box, "ipc_lock")
        box.start_daemon("--event=TIMER:%d" % period_ns, start=False)
        status = box.status()
        print("rings without CAP_IPC_LOCK: %d bytes of %d" % (status["ring_bytes"], status["ring_need_bytes"]))
        require((status["ring_bytes"] >= status["ring_need_bytes"]) == is_enough, status)
        require("without CAP_IPC_LOCK" in box.log_text(), box.log_text())
        log = box.log_text()
        require(("until the next visit" in log and "larger ones do not fit" in log) != is_enough, log)
        require("side-band rings have" in log, log)
        box.shutdown()
    use_capabilities(box, None)


def stacks_leave_room(box):
    """The limits of containers, before Linux 5.16 and since. Flat samples keep the room that they
    have without stacks and more than stacks where all memory is taken; none is lost, and the rate of
    stacks is what their ring holds.
    """
    for locked_kib in (64, 8192):
        use_capabilities(box, "ipc_lock", locked_kib)
        box.configure(Stacks="yes")
        box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel")
        status = box.status()
        nr_cpus = sum(cpu["online"] for cpu in status["cpus"])
        share = (sysctl("perf_event_mlock_kb") * nr_cpus + locked_kib) * 1024 // nr_cpus
        print("%d KiB for a CPU: rings of %d bytes, of %d for stacks at %d Hz" % (share // 1024, status["ring_bytes"],
              status["stack_ring_bytes"], status["stack_rate_hz"]))
        require(2 * status["ring_bytes"] >= min(share // 6, 16 * status["ring_need_bytes"]),
                "flat samples have a ring of %(ring_bytes)d bytes, stacks %(stack_ring_bytes)d" % status)
        require(status["stack_rate_hz"] <= status["stack_wanted_hz"], status)
        box.work_until(lambda: sum(e["stored"] for e in box.status()["events"] if e["name"] == "STACKS") >= SOME_STACKS,
                       "no stacks", box.work, "kernel", WORK_MS)
        box.opcontrol("--stop")
        lost = {event["name"]: event["lost_kernel"] for event in box.check_ledger()["events"]}
        require(not lost.pop("TIMER"), "flat samples are lost")
        box.shutdown()
    box.configure()
    use_capabilities(box, None)


def status_of(pid):
    with open("/proc/%d/status" % pid, encoding="ascii", errors="replace") as stream:
        return dict(line.split(":", 1) for line in stream.read().splitlines() if ":" in line)


def helpers_of(pid, name):
    """Processes of a name that opd's nursery has started."""
    every = {int(n): n for n in os.listdir("/proc") if n.isdigit()}
    found = []
    for number in every:
        try:
            fields = status_of(number)
            if fields["Name"].strip() == name and int(status_of(int(fields["PPid"]))["PPid"]) == pid:
                found.append(fields)
        except OSError:
            pass
    return found


def shared_rights(box):
    """opd leaves to lookers what only they need, and lookers have a filter for their calls."""
    use_capabilities(box, None)
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS)
    box.busy_until_ended(box.copy_work("looked-at")).kill()
    opdtest.wait_until(lambda: helpers_of(box.daemon.pid, "opd-looker"), opdtest.HANG_SECONDS, "no looker runs")
    opd, lookers = status_of(box.daemon.pid), helpers_of(box.daemon.pid, "opd-looker")
    only_theirs = 1 << 19 | 1 << 40  # CAP_SYS_PTRACE, CAP_CHECKPOINT_RESTORE
    with open("/proc/%d/exe" % box.daemon.pid, "rb") as stream:
        wanted = int(b"libseccomp.so" in stream.read())
    require(not int(opd["CapPrm"], 16) & only_theirs, "opd has kept %s" % opd["CapPrm"])
    for looker in lookers:
        require(int(looker["CapEff"], 16) == only_theirs | 1 << 2, "a looker has %s" % looker["CapEff"])
        filters = int(looker["Seccomp_filters"]) - int(opd["Seccomp_filters"])
        print("a looker has %d filters of its own, wanted %d" % (filters, wanted))
        require(filters == wanted, "a looker has %d filters of its own" % filters)
    box.shutdown()


def uid_of(pid):
    with open("/proc/%d/status" % pid, encoding="ascii", errors="replace") as stream:
        fields = dict(line.split(":", 1) for line in stream.read().splitlines())
    return {int(uid) for uid in fields["Uid"].split()}


def lead_to(box, path):
    """The owner of the session directory writes its setup."""
    setup = os.path.join(box.session, "daemonrc")
    if os.path.lexists(setup):
        os.unlink(setup)
    with open(setup, "w", encoding="ascii") as stream:
        stream.write("SESSION_DIR=%s\nNR_CHOSEN=0\n" % path)
    os.chown(setup, DAEMON_UID, DAEMON_UID)


def tree(path):
    return sorted((name, os.lstat(os.path.join(top, name)).st_mtime_ns) for top, dirs, files in os.walk(path)
                  for name in dirs + files)


def owner_of_the_session(box):
    """opd is the owner's, wherever his setup leads to; to a directory of root's, or of another
    user's, it does not lead.
    """
    opcontrol = os.path.join(box.bin, "opcontrol")
    box.run_as = "root"  # it is root who starts it here, also for make check-user
    box.use_program(os.path.join(box.sbin, "opd"))
    shutil.rmtree(box.session, ignore_errors=True)
    os.mkdir(box.session)
    os.chown(box.session, DAEMON_UID, DAEMON_UID)
    box.opcontrol("--start", "--event=TIMER:%d" % PERIOD_NS)
    require(uid_of(box.status()["pid"]) == {DAEMON_UID}, "opd is not the owner of its session directory")
    box.opcontrol("--shutdown")
    roots = os.path.join(box.dir, "roots")
    samples = os.path.join(roots, "samples", "current", "{root}")
    os.makedirs(samples)
    os.chown(roots, 0, 0)
    os.symlink(roots, os.path.join(box.session, "link"))
    before = tree(roots)
    for path in (roots, os.path.join(roots, "new", "er"), os.path.join(box.session, "link"), "/"):
        lead_to(box, path)
        for request in ("--start", "--start-daemon", "--reset", "--save=taken"):
            line = box.refused(opcontrol, request)
            require("daemonrc: SESSION_DIR: %s belongs to user 0, but this file to user %d" % (path, DAEMON_UID) in line, line)
        require(box.status() == {"state": "not running"} if path != "/" else True, "somebody runs")
        line = box.refused(box.env["OPD_DAEMON"])
        require("SESSION_DIR: %s belongs to user 0" % path in line, line)
    os.unlink(os.path.join(box.session, "daemonrc"))
    for running in (False, True):
        if running:
            box.opcontrol("--start", "--event=TIMER:%d" % PERIOD_NS)
        setups = sorted(name for name in os.listdir(box.session) if name.startswith("daemonrc"))
        line = box.refused(opcontrol, "--session-dir=" + roots)
        require("SESSION_DIR: %s belongs to user 0, but this file to user %d" % (roots, DAEMON_UID) in line, line)
        require(sorted(name for name in os.listdir(box.session) if name.startswith("daemonrc")) == setups,
                "a setup is kept that is refused")
    box.opcontrol("--shutdown")
    require(tree(roots) == before, "root's directory is not as it was: %s" % tree(roots))
    made = os.path.join(box.session, "made", "below")
    lead_to(box, made)
    box.opcontrol("--start")
    status = box.status()
    require(uid_of(status["pid"]) == {DAEMON_UID} and status["session_dir"] == made, "%s: %s" % (made, status))
    require(os.stat(made).st_uid == DAEMON_UID and os.stat(os.path.dirname(made)).st_uid == DAEMON_UID,
            "directories that root made are not the owner's")
    box.opcontrol("--shutdown")
    lead_to(box, roots)
    result = box.run(opcontrol, "--setup", "--separate=none")
    require(result.rc == 0 and "begins with the defaults" in result.err, "%s" % (result,))
    box.opcontrol("--start")
    require(uid_of(box.status()["pid"]) == {DAEMON_UID}, "the setup that root began anew is not the owner's")
    box.opcontrol("--shutdown")


def test(box):
    box.not_as_unit("its capabilities are the unit's")
    os.chown(box.dir, DAEMON_UID, DAEMON_UID)
    left_out(box)
    refused_without(box)
    smaller_rings(box)
    stacks_leave_room(box)
    shared_rights(box)
    os.chown(box.dir, 0, 0)
    owner_of_the_session(box)


if __name__ == "__main__":
    opdtest.run(test)
