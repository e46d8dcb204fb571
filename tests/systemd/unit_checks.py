# SPDX-License-Identifier: GPL-3.0-or-later
"""What test_container.py asks of the package and of the unit: sandbox, reload, restarts, watchdog,
activation, upgrade, purge.
"""
import json
import os
import re
import shutil
import signal
import socket
import struct
import time

import opdtest
import reader
from opdtest import HANG_SECONDS, require, wait_until

CAPABILITIES = {"cap_bpf": 39, "cap_perfmon": 38, "cap_sys_ptrace": 19, "cap_checkpoint_restore": 40, "cap_dac_read_search": 2,
                "cap_syslog": 34}
MAX_EXPOSURE = 2.0
WAYS = {"process_vm_writev", "process_vm_readv", "/proc/PID/mem", "pidfd_getfd", "ptrace"}
UNITS = ("opd.service", "opd.socket", "opd-events.socket")
LATER_VERSION = "99.0-1"
TOOLS = ("opannotate", "oparchive", "opcheck", "opcontrol", "opgprof", "ophelp", "opimport", "opreport")
STOP_SECONDS = 2.0 # more than another unit needs at the same time
START_USEC = 2000000
REQUEST = struct.Struct("=IHHII208x")
MAGIC, STATUS = 0x4443504F, 1
FAST_RESTART = "[Service]\nRestartSec=100ms\n"
NO_HURRY = "[Unit]\nStartLimitIntervalSec=1h\n"  # a busy machine needs long for a start
HANGING = "/var/tmp/hanging"  # devices can be opened there


def debs(directory):
    return sorted(n for n in os.listdir(directory) if n.startswith("opd_") and n.endswith(".deb"))


def apt(container, *words):
    return container.good("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-y", "-q", *words)


def install(container, name):
    apt(container, "install", "/var/tmp/" + name)


def later(container):
    return "opd_%s_%s" % (LATER_VERSION, debs(os.path.join(container.root, "var/tmp"))[0].rpartition("_")[2])


def version(container):
    return container.good("dpkg-query", "--show", "--showformat=${Version}", "opd")


def check_install(container):
    """One command: the unit is there, enabled, and profiles."""
    install(container, debs(os.path.join(container.root, "var/tmp"))[0])
    require(container.unit("ActiveState")["ActiveState"] == "active", "the unit does not run after the installation")
    for unit in UNITS:
        require(container.good("systemctl", "is-enabled", unit).strip() == "enabled", "%s is not enabled" % unit)
    require(status(container)["state"] == "running", "the unit does not profile after the installation")
    require(not os.path.exists("/sys/kernel/btf/vmlinux") or not status(container)["no_waits"],
            "no waits: %s" % status(container)["no_waits"])
    check_confinement(container)
    check_dependencies(container)
    check_completion(container)
    container.good("systemctl", "stop", "opd")


def check_dependencies(container):
    """What apt-get installs with the package by default has no libcurl, LDAP and SASL: libdebuginfod,
    which brings them, is loaded where it is there (tools/fetch/download.c).
    """
    fields = container.good("dpkg-query", "-W", "-f", "${Depends} ${Recommends}", "opd")
    require("libdw1" in fields and not re.search("debuginfod|curl|ldap|sasl", fields), "the package wants: %s" % fields)
    wanted = container.good("dpkg-query", "-W", "-f", "${Suggests}", "opd")
    require("libdebuginfod1" in wanted, "the package does not suggest libdebuginfod1: %s" % wanted)


def check_completion(container):
    """The shells of the distribution find the completion where they look by themselves."""
    words = " ".join('"${_comps[%s]-none}"' % tool for tool in TOOLS)
    found = container.good("zsh", "-fc", "autoload -Uz compinit; compinit -D -u; print -l " + words).split()
    require(found == ["_" + tool for tool in TOOLS], "zsh knows %s" % found)
    for tool in TOOLS:
        container.good("test", "-r", "/usr/share/bash-completion/completions/" + tool)


def status(container):
    return json.loads(container.good("opcontrol", "--status", "--json"))


def in_container(process_name):
    """(pid on the host, fields of its status) of the container's processes of a name."""
    for name in os.listdir("/proc"):
        try:
            with open("/proc/%s/status" % name, encoding="ascii", errors="replace") as stream:
                fields = dict(line.split(":", 1) for line in stream.read().splitlines() if ":" in line)
        except OSError:
            continue
        if fields["Name"].strip() == process_name and len(fields["NSpid"].split()) > 1:
            yield int(name), fields


def host_pid(container):
    """The number that the unit's main process has on the host."""
    inner = container.unit("MainPID")["MainPID"]
    for pid, fields in in_container("opd"):
        if fields["NSpid"].split()[-1] == inner:
            return pid, fields
    raise opdtest.Failure("the unit's process %s is not on the host" % inner)


def check_capabilities(who, fields, names):
    wanted = sum(1 << CAPABILITIES[name] for name in names)
    for name in ("CapPrm", "CapEff"):
        require(int(fields[name], 16) == wanted, "%s: %s is %s, not %016x" % (who, name, fields[name], wanted))
    require(int(fields["CapBnd"], 16) == sum(1 << bit for bit in CAPABILITIES.values()), "%s: CapBnd %s" % (who, fields["CapBnd"]))
    require(int(fields["CapAmb"], 16) == 0, "%s: CapAmb is %s" % (who, fields["CapAmb"]))


def check_confinement(container):
    """User, capabilities, no_new_privs and filter as promised, and what systemd thinks of it."""
    _, fields = host_pid(container)
    user = container.good("id", "-u", "opd").strip()
    require(fields["Uid"].split() == [user] * 4 and user != "0", "opd runs as %s, not as %s" % (fields["Uid"], user))
    check_capabilities("opd", fields, set(CAPABILITIES) - {"cap_bpf", "cap_sys_ptrace", "cap_checkpoint_restore"})
    lookers = [of_looker for _, of_looker in in_container("opd-looker")]
    require(lookers, "no looker runs")
    for looker in lookers:
        check_capabilities("a looker", looker, ("cap_sys_ptrace", "cap_checkpoint_restore", "cap_dac_read_search"))
        require(int(looker["Seccomp_filters"]) == int(fields["Seccomp_filters"]) + 1, "a looker has no filter of its own")
    require(fields["NoNewPrivs"].strip() == "1" and fields["Seccomp"].strip() == "2", "no_new_privs or seccomp: %s" % fields)
    for unit in ("opd.service", "opd-events.service"):
        out = container.good("systemd-analyze", "--no-pager", "security", unit)
        exposure = float(re.search(r"Overall exposure level for %s: ([0-9.]+)" % unit, out).group(1))
        print("%s: exposure %.1f" % (unit, exposure))
        require(exposure <= MAX_EXPOSURE, "systemd-analyze security says %.1f of %s:\n%s" % (exposure, unit, out))
    require(container.run("systemctl", "is-active", "opd-events.service").out.strip() == "inactive",
            "opd-events runs where the kernel lets opd open events")


def check_opener(container):
    """A kernel that refuses opd all events, as Debian's does (tests/system/event_opener.py): the
    units sample all the same, and opd keeps its rights. opd-events has CAP_SYS_ADMIN, a user of its
    own and no other rights, and ends with opd.
    """
    bound = "BindReadOnlyPaths=/run/paranoid:/proc/sys/kernel/perf_event_paranoid\n"
    caps = " ".join(name.upper() for name in CAPABILITIES if name != "cap_perfmon")
    container.good("sh", "-c", "echo 3 >/run/paranoid; mkdir -p /run/systemd/system/opd-events.service.d")
    container.good("sh", "-c", 'printf "[Service]\n%s" "$1" >/run/systemd/system/opd-events.service.d/test.conf', "sh", bound)
    container.drop_in("[Service]\nAmbientCapabilities=\nAmbientCapabilities=%s\nCapabilityBoundingSet=\n"
                      "CapabilityBoundingSet=%s\n%s" % (caps, caps, bound))
    container.good("systemctl", "restart", "opd")
    before = samples_of(container)
    container.good("work", "shares", "1000")
    container.good("opcontrol", "--dump")
    require(status(container)["state"] == "running" and samples_of(container) > before, "no samples: %s" % journal(container))
    openers = list(in_container("opd-events"))
    require(len(openers) == 1, "%d processes opd-events" % len(openers))
    pid, fields = openers[0]
    for name in ("CapPrm", "CapEff", "CapBnd"):
        require(int(fields[name], 16) == 1 << 21, "opd-events: %s is %s" % (name, fields[name]))
    require(int(fields["CapAmb"], 16) == 0 and fields["NoNewPrivs"].strip() == "1" and int(fields["Seccomp_filters"]) > 1,
            "opd-events: %s" % fields)
    user = container.good("id", "-u", "opd").strip()
    require(not {user, "0"} & set(fields["Uid"].split()), "opd-events is the user %s" % fields["Uid"])
    require(int(host_pid(container)[1]["CapBnd"], 16) & 1 << 21 == 0, "opd got CAP_SYS_ADMIN")
    access = container.good("stat", "-c", "%U %a", "/run/opd/events").strip()
    require(access == "opd 600", "the socket of opd-events is of %s" % access)
    container.good("systemctl", "stop", "opd")
    wait_until(lambda: not os.path.exists("/proc/%d" % pid), HANG_SECONDS, "opd-events does not end with opd")
    container.good("rm", "-r", "/run/systemd/system/opd-events.service.d", "/run/paranoid")
    container.remove_drop_in()
    container.good("systemctl", "start", "opd")


def check_reach(container):
    """Whoever has taken opd over cannot write into a process of root, nor have it give him its
    files: a program with all that opd has, in its sandbox.
    """
    container.good("sh", "-c", "work spin 60000 >/dev/null 2>&1 & echo $! >/run/reach-target")
    target = container.good("cat", "/run/reach-target").strip()
    ways = set(container.run("reach", target).out.split())
    require(ways == WAYS, "root has only these ways: %s" % ways)
    container.drop_in("[Service]\nType=exec\nWatchdogSec=0\nRestart=no\nExecStart=\nExecStart=/usr/local/bin/reach "
                      "%s\nStandardOutput=file:/run/reach-ways\n"
                      "RemainAfterExit=yes\n" % target)
    container.good("systemctl", "stop", "opd")
    container.run("systemctl", "start", "opd")
    wait_until(lambda: container.unit("SubState")["SubState"] in ("exited", "failed"), HANG_SECONDS, "reach does not end")
    ended = container.unit("ExecMainCode", "ExecMainStatus")
    ways = container.good("cat", "/run/reach-ways").split()
    require(ended == {"ExecMainCode": "1", "ExecMainStatus": "0"} and not ways, "from the sandbox: %s, %s" % (ended, ways))
    container.good("sh", "-c", "kill " + target)
    container.remove_drop_in()
    container.good("rm", "/run/reach-target", "/run/reach-ways")
    container.good("systemctl", "restart", "opd")


def await_symbols(container, program, *names):
    """Until samples of a program have these functions."""
    def are_there():
        container.good("opcontrol", "--dump")
        report = container.run("opreport", "-l", program).out
        return all(name in report for name in names)
    wait_until(are_there, HANG_SECONDS, "%s has no samples in %s" % (program, names))


def check_stacks(container):
    """opd-tables works in the sandbox of the unit: stacks are whole, from the start of the program."""
    def are_there():
        container.good("work", "shares", "500")
        container.good("opcontrol", "--dump")
        return ";_start;" in container.run("opreport", "--format=folded", "/usr/local/bin/work").out
    wait_until(are_there, HANG_SECONDS, "no stack of the work is whole; %s" % journal(container))


def check_sandbox(container):
    """Profiling of other users' programs in closed directories, of JIT code and of the kernel, from
    within the sandbox.
    """
    container.good("sh", "-c", "mkdir -m 700 /root/closed && cp /usr/local/bin/work /root/closed/secret-work")
    container.good("systemctl", "stop", "opd")
    older = container.good("sh", "-c", "/root/closed/secret-work shares 3600000 >/dev/null 2>&1 & echo $!").strip()
    wait_until(lambda: container.run("readlink", "/proc/%s/exe" % older).out.strip() == "/root/closed/secret-work",
               HANG_SECONDS, "the older program does not start")
    container.good("systemctl", "start", "opd")
    container.good("work", "kernel", "500")
    container.good("jit_work", "map", "1000")
    await_symbols(container, "/root/closed/secret-work", "hot_a", "hot_b")  # of root in a closed directory, older than opd
    container.good("sh", "-c", "kill " + older)
    await_symbols(container, "/usr/local/bin/jit_work", "jit_alpha", "jit_beta")  # made at run time, with a perf map in /tmp
    rows = [line.split() for line in container.good("opreport", "-l").splitlines()]
    kernel = [words for words in rows if words[2:] and words[2].startswith(("kallsyms", "vmlinux"))]
    named = [words for words in kernel if not words[-1].startswith(("/proc", "vmlinux", "kallsyms"))]
    require(named, "no symbol of the kernel:\n%s" % kernel)
    container.run("rm", "-rf", "/root/closed")


def check_group(container):
    """Members of the group opd, the socket's, may ask for status and dump; others may not even
    connect.
    """
    def as_nobody(group, *request):
        return container.run("setpriv", "--reuid=nobody", "--regid=" + group, "--clear-groups", "opcontrol", *request)

    for request in (("--status",), ("--dump",)):
        require(as_nobody("opd", *request).rc == 0, "a member of the group is refused %s" % (request,))
        require(as_nobody("nogroup", *request).rc == 1, "anybody may %s" % (request,))
    require(as_nobody("opd", "--stop").rc == 1 and status(container)["state"] == "running",
            "a member of the group may stop profiling")


def check_readers(container):
    """Sessions are for the user and the group opd; an administrator who opens the directory opens
    what is new in it, and the unit leaves it so.
    """
    base = "/var/lib/oprofile"

    def reads(group):
        return container.run("setpriv", "--reuid=nobody", "--regid=" + group, "--clear-groups", "opreport",
                             "session:readers")

    def new_file():
        container.good("opcontrol", "--reset")
        container.good("work", "shares", "300")
        container.good("opcontrol", "--dump")
        return container.good("find", base + "/samples/current/{root}", "-type", "f").split("\n")[0]

    new_file()
    container.good("opcontrol", "--save=readers")
    for kind, mode in (("d", "750"), ("f", "640")):
        found = set(container.good("find", base, "-type", kind, "!", "-name", "lock", "-printf", "%m %u %g\n").split("\n")) - {""}
        require(found == {mode + " opd opd"}, "below %s: %s" % (base, found))
    refused = reads("nogroup")
    require(refused.rc == 1 and "members of the group opd may read it: 'sudo usermod -aG opd nobody'" in refused.err,
            "what a stranger is told: %s" % (refused,))
    require("work" in reads("opd").out, "a member of the group reads nothing")
    container.good("chmod", "0755", base)
    container.good("systemctl", "restart", "opd")
    require(container.good("stat", "-c", "%a", base).strip() == "755", "the unit changes the mode of its directory")
    path = new_file()
    require(container.good("stat", "-c", "%a", path).strip() == "644", "what is new in an open directory is closed: %s" % path)
    container.good("chmod", "0750", base)
    container.good("systemctl", "stop", "opd")
    container.good("rm", "-rf", base)
    container.good("systemctl", "start", "opd")
    require(container.good("stat", "-c", "%a %U %G", base).strip() == "750 opd opd", "the unit does not make its directory anew")


def check_reload(container):
    pid = container.unit("MainPID")["MainPID"]
    container.good("sh", "-c", "printf 'RingSize=256K\\nNonsense=1\\n' >/etc/opd/opd.conf.d/50-test.conf")
    container.good("systemctl", "reload", "opd")
    wait_until(lambda: "50-test.conf:2: unknown key 'Nonsense'" in journal(container), 20,
               "the reload does not show in the journal")
    require(container.unit("MainPID", "ActiveState") == {"MainPID": pid, "ActiveState": "active"}, "after the reload")
    container.good("rm", "/etc/opd/opd.conf.d/50-test.conf")
    container.good("systemctl", "reload", "opd")


def journal(container, *more):
    return container.run("journalctl", "-u", "opd", "--no-pager", *more).out


def samples_of(container):
    directory = os.path.join(container.root, "var/lib/oprofile")
    return sum(f.total for f in reader.read_session(directory, live=True, strict=True))


def restarted(container, pid, why):
    wait_until(lambda: container.unit("MainPID")["MainPID"] not in ("0", pid) and
               container.unit("ActiveState")["ActiveState"] == "active", HANG_SECONDS, "no restart after " + why)


def check_crash(container, number):
    """The daemon ends by a signal: systemd starts another one, which goes on in the same session
    and profiles.
    """
    pid = container.unit("MainPID")["MainPID"]
    container.good("work", "spin", "300")
    container.good("opcontrol", "--dump")
    before = samples_of(container)
    os.kill(host_pid(container)[0], number)
    restarted(container, pid, number.name)
    require(status(container)["state"] == "running", "after %s nothing is profiled" % number.name)
    container.good("work", "spin", "300")
    container.good("opcontrol", "--dump")
    require(samples_of(container) > before > 0, "%d samples before %s, %d after it" % (before, number.name, samples_of(container)))
    require(os.listdir(os.path.join(container.root, "var/lib/oprofile/samples")) == ["current"], "another session was begun")


def check_crashes(container):
    container.drop_in(FAST_RESTART)
    for number in (signal.SIGKILL, signal.SIGABRT):
        check_crash(container, number)


def number_of(container, interface, name):
    """A property of the unit that systemctl would show in words."""
    return int(container.good("busctl", "get-property", "org.freedesktop.systemd1", "/org/freedesktop/systemd1/unit/opd_2eservice",
                              "org.freedesktop.systemd1." + interface, name).split()[1])


def check_gives_up(container):
    """What no restart can mend is tried a few times and then left alone, until opcontrol is told to
    start: that is not held against it.
    """
    setup = os.path.join(container.root, "var/lib/oprofile/daemonrc")
    tries = number_of(container, "Unit", "StartLimitBurst")
    pause, within = number_of(container, "Service", "RestartUSec"), number_of(container, "Unit", "StartLimitIntervalUSec")
    require(tries * (pause + START_USEC) <= within, "%d starts take too long to be too many in %d us" % (tries, within))
    container.drop_in(NO_HURRY + FAST_RESTART)
    container.good("systemctl", "stop", "opd")
    with open(setup, "w", encoding="ascii") as stream:
        stream.write("CHOSEN_EVENTS_0=no-such-event:1000:0:1:1\nNR_CHOSEN=1\n")
    require(container.run("systemctl", "start", "opd").rc != 0, "it starts with an event that there is not")
    wait_until(lambda: container.unit("SubState")["SubState"] == "failed", HANG_SECONDS, "restarts without an end")
    tried = container.unit("NRestarts", "ExecMainStatus")
    print("a setup that cannot be used: %s" % tried)
    require(tried == {"NRestarts": str(tries), "ExecMainStatus": "1"}, "%d starts, but %s" % (tries, tried))
    time.sleep(1)
    require(not container.opd_pids() and container.unit("NRestarts")["NRestarts"] == tried["NRestarts"], "it goes on")
    refused = container.run("opcontrol", "--start")
    require(refused.rc == 1 and "no-such-event" in refused.err, "opcontrol --start of what cannot start: %s" % (refused,))
    os.unlink(setup)
    container.good("opcontrol", "--start")
    require(status(container)["state"] == "running", "mended, but it does not profile")
    require(container.good("systemctl", "is-active", "opd.socket").strip() == "active", "the socket stays down")
    container.remove_drop_in()


def check_unwritten(container):
    """A daemon that ends as it was asked to, on a full disk, is not wanted back, and says with 2
    that not all is written.
    """
    container.drop_in(FAST_RESTART)
    container.good("systemctl", "stop", "opd")
    container.good("mount", "-t", "tmpfs", "-o", "size=512k,mode=755,uid=opd,gid=opd", "small", "/var/lib/oprofile")
    container.good("systemctl", "start", "opd")
    container.good("work", "spin", "300")
    container.run("sh", "-c", "cat /dev/zero >/var/lib/oprofile/ballast")
    os.kill(host_pid(container)[0], signal.SIGTERM)
    wait_until(lambda: container.unit("ActiveState")["ActiveState"] == "failed", HANG_SECONDS,
               "it does not end, or is started again")
    time.sleep(1)
    ended = container.unit("ActiveState", "ExecMainStatus", "NRestarts")
    require(ended == {"ActiveState": "failed", "ExecMainStatus": "2", "NRestarts": "0"},
            "after a stop that could not write all: %s" % ended)
    container.good("umount", "/var/lib/oprofile")
    container.remove_drop_in()
    container.good("systemctl", "reset-failed", "opd")
    container.good("systemctl", "start", "opd")


def check_watchdog(container):
    """A sync thread that a debugger stops for good: systemd ends the daemon and starts another one.
    """
    container.drop_in("[Service]\nRestartSec=100ms\nWatchdogSec=6\n")
    container.good("systemctl", "restart", "opd")
    pid = container.unit("MainPID")["MainPID"]
    since = container.good("date", "+%s").strip()
    outer, _ = host_pid(container)
    thread = opdtest.thread_of(outer, "opd-sync")
    opdtest.hold(thread, True)
    wait_until(lambda: opdtest.has_ended(thread), HANG_SECONDS, "the watchdog does not end a daemon whose sync thread is stuck")
    restarted(container, pid, "a sync thread that is stuck")
    require("watchdog" in journal(container, "--since=@" + since).lower(),
            "no word of the watchdog:\n%s" % journal(container, "-n", "20"))
    container.remove_drop_in()


def start_hanging(container):
    """Users whose file systems keep opd's helper waiting for ever. Returns why there are none."""
    container.good("sh", "-c", "mkdir -p {0}/point {0}/empty && rm -f {0}/out {0}/err && touch {0}/out {0}/err && "
                   "{{ test -e {0}/fuse || mknod -m 666 {0}/fuse c 10 229; }}".format(HANGING))
    container.good("systemd-run", "--quiet", "--collect", "--unit=hanging", "--property=KillSignal=SIGKILL", "sh", "-c",
                   "sleep 3600 | hanging {0}/fuse {0} 2 0 >{0}/out 2>{0}/err".format(HANGING))
    wait_until(lambda: "asked" in container.good("cat", HANGING + "/out") or container.good("cat", HANGING + "/err"),
               HANG_SECONDS, "nobody looks for the map of code without a file")
    return container.good("cat", HANGING + "/err").strip()


def end_hanging(container):
    container.run("systemctl", "stop", "hanging")


def check_hanging(container):
    """File systems that keep a helper process waiting for ever, where not even SIGKILL ends it:
    stop and restart take no longer than else, and the watchdog and SIGKILL start another daemon.
    """
    refused = start_hanging(container)
    if refused:
        end_hanging(container)
        print("not checked with file systems that hang: " + refused)
        return
    seconds = []
    for verb in ("stop", "start", "restart", "stop", "start"):
        begin = time.monotonic()
        container.good("systemctl", verb, "opd")
        seconds.append("%s %.2f s" % (verb, time.monotonic() - begin))
        state = container.unit("ActiveState", "Result")
        wanted = "inactive" if verb == "stop" else "active"
        require(state == {"ActiveState": wanted, "Result": "success"}, "%s beside file systems that hang: %s" % (verb, state))
        if wanted == "active":
            wait_until(lambda: status(container)["looks_unanswered"] > 0, HANG_SECONDS, "no helper hangs")
    print("beside file systems that hang: " + ", ".join(seconds))
    container.drop_in(FAST_RESTART)
    for number in (signal.SIGKILL, signal.SIGABRT):
        pid = container.unit("MainPID")["MainPID"]
        os.kill(host_pid(container)[0], number)
        restarted(container, pid, number.name)
    container.remove_drop_in()
    check_watchdog(container)
    end_hanging(container)


def is_listened_at(container):
    """True when somebody can connect to the control socket of the container."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        try:
            client.connect("/proc/%d/root/run/opd/control" % container.init)
            return True
        except (FileNotFoundError, ConnectionRefusedError):
            return False


def check_shut_down_for_good(container):
    """After root's --shutdown nobody starts opd by a connection; --start does, and the socket is
    there again.
    """
    require(not is_listened_at(container) and not container.opd_pids(), "somebody listens after --shutdown")
    require(container.run("systemctl", "is-active", "opd.socket").out.strip() == "inactive",
            "the socket is active after --shutdown")
    container.good("opcontrol", "--start")
    require(container.good("systemctl", "is-active", "opd.socket").strip() == "active"
            and status(container)["state"] == "running", "--start after --shutdown")
    container.good("opcontrol", "--shutdown")
    container.good("systemctl", "start", "opd.socket")
    require(is_listened_at(container), "the socket is not back")
    wait_until(lambda: container.unit("ActiveState")["ActiveState"] == "active", HANG_SECONDS, "the socket does not start opd")
    container.good("opcontrol", "--shutdown")
    require(not is_listened_at(container) and not container.opd_pids(), "somebody listens after the second --shutdown")


def check_activation(container):
    """Nothing runs but the socket: who connects gets an answer from an opd that systemd started for
    it.
    """
    container.good("systemctl", "stop", "opd")
    require("Daemon not running" in container.good("opcontrol", "--status"), "opcontrol --status starts the daemon")
    require(container.run("opcontrol", "--dump").rc == 1 and not container.opd_pids(), "opcontrol --dump starts the daemon")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.settimeout(60)
        client.connect("/proc/%d/root/run/opd/control" % container.init)
        with open(os.path.join(os.environ["OPD_SOURCE"], "libop", "control", "protocol.h"), encoding="utf-8") as stream:
            version = int(re.search(r"OP_CONTROL_VERSION (\d+)", stream.read()).group(1))
        client.send(REQUEST.pack(MAGIC, version, STATUS, 0, 0))
        reply = client.recv(1 << 18)
    require(struct.unpack_from("=IHHi", reply) == (MAGIC, version, STATUS, 0), "the answer: %r" % reply[:16])
    require(container.unit("ActiveState")["ActiveState"] == "active", "who answered?")


def check_daemon_elsewhere(container, show):
    """opcontrol finds the daemon wherever its session directory is; a member of the group, too."""
    pid = container.unit("MainPID")["MainPID"]
    require("Daemon running: pid %s\n" % pid in container.good("opcontrol", "--status"), "%s: --status" % show)
    container.good("opcontrol", "--dump")
    container.good("setpriv", "--reuid=nobody", "--regid=opd", "--clear-groups", "opcontrol", "--dump")
    require(container.good("opcontrol", "--stop") == "Stopping profiling.\n", "%s: --stop" % show)
    require(container.good("opcontrol", "--start") == "Profiler running.\n", "%s: --start" % show)
    out = container.good("opcontrol", "--shutdown")
    require("Daemon stopped.\n" in out and not container.opd_pids(), "%s: --shutdown says %r" % (show, out))
    for request in ("--status", "--stop", "--shutdown"):
        result = container.run("opcontrol", request)
        require("Daemon not running\n" in result.out + result.err and not container.opd_pids(),
                "%s: %s: %s" % (show, request, result))
    require(container.run("opcontrol", "--dump").rc == 1 and not container.opd_pids(), "%s: --dump starts the daemon" % show)


def check_elsewhere(container):
    """Session directories that are not the configuration's: of the setup, of a configuration that
    was changed since, of the unit.
    """
    base = "/var/lib/oprofile/"
    container.good("opcontrol", "--session-dir=" + base + "one", "--apply")
    check_daemon_elsewhere(container, "--session-dir")
    container.good("rm", base + "daemonrc")
    container.good("opcontrol", "--start")
    container.good("sh", "-c", "echo SessionDir=%stwo >/etc/opd/opd.conf.d/60-test.conf" % base)
    check_daemon_elsewhere(container, "SessionDir= was changed")
    container.good("rm", "/etc/opd/opd.conf.d/60-test.conf")
    container.drop_in("[Service]\nExecStart=\nExecStart=/usr/sbin/opd --session-dir=%sthree\n" % base)
    container.good("systemctl", "start", "opd")
    check_daemon_elsewhere(container, "the unit's --session-dir")
    container.remove_drop_in()
    container.run("rm", "-rf", base + "one", base + "two", base + "three")


def check_opcontrol_fails(container):
    """Why opd does not start is told in its own words; --apply goes back to what works.
    --start-daemon says nothing for the next daemon.
    """
    container.good("opcontrol", "--start")
    pid = container.unit("MainPID")["MainPID"]
    result = container.run("opcontrol", "--session-dir=/root/none", "--apply")
    require(result.rc == 1 and "SESSION_DIR: /root/none belongs to user 0, but this file to user " in result.err,
            "--apply of root's directory: %s" % (result,))
    require(container.unit("MainPID")["MainPID"] == pid, "--apply of root's directory ends the daemon")
    container.good("install", "-d", "-o", "opd", "-g", "opd", "/srv/closed")  # its own, and not to be written to from the unit
    result = container.run("opcontrol", "--session-dir=/srv/closed", "--apply")
    container.good("rmdir", "/srv/closed")
    lines = result.err.splitlines()
    require(result.rc == 1 and "opd does not start: cannot use the session directory /srv/closed: " in lines[0],
            "--apply of what cannot be: %s" % (result,))
    require(len(lines) == 2 and "the previous setup is in force again" in lines[1], "--apply of what cannot be: %s" % (result,))
    require(status(container)["state"] == "running" and container.unit("MainPID")["MainPID"] not in ("0", pid),
            "nothing is profiled after --apply")
    container.good("opcontrol", "--shutdown")
    container.good("opcontrol", "--start-daemon")
    require(status(container)["state"] == "paused", "--start-daemon profiles")
    container.good("systemctl", "restart", "opd")
    require(status(container)["state"] == "running", "--start-daemon pauses the next daemon, too")


def seconds_to_stop(container, unit):
    begin = time.monotonic()
    container.good("systemctl", "stop", unit)
    return time.monotonic() - begin


def check_stop_under_load(container):
    """systemctl stop while every CPU works: soon, and nothing is lost. The best of three, beside the
    stop of a unit that only sleeps, since others work on this machine, too.
    """
    seconds = []
    while not seconds or (len(seconds) < 3 and min(seconds) > STOP_SECONDS):
        container.good("systemctl", "start", "opd")
        container.good("systemd-run", "--quiet", "--collect", "--unit=sleeping", "sleep", "3600")
        container.good("sh", "-c", "for i in $(seq $(nproc)); do work spin 3600000 >/dev/null 2>&1 & done; sleep 1")
        own, another = seconds_to_stop(container, "opd"), seconds_to_stop(container, "sleeping")
        seconds.append(own - another)
        state = container.unit("ActiveState", "Result")
        require(state == {"ActiveState": "inactive", "Result": "success"}, "stop under load: %s" % state)
        container.good("sh", "-c", "for e in /proc/[0-9]*/exe; do case $(readlink $e) in */bin/work) p=${e%/exe}; "
                       "kill ${p#/proc/};; esac; done")
        print("stop under load: %.2f s, of another unit %.2f s" % (own, another))
    require(min(seconds) <= STOP_SECONDS, "systemctl stop takes %s s more than that of another unit" % seconds)
    check_ledger(container)


def check_ledger(container):
    with open(os.path.join(container.root, "var/lib/oprofile/samples/current/ledger"), encoding="utf-8") as stream:
        text = stream.read()
    lost = re.findall(r"lost_(\w+)=(\d+)", text)
    require(lost and not any(int(n) for _, n in lost), "the ledger after stop:\n%s" % text)


def check_upgrade(container):
    """A later version, built anew from the source, is installed while it profiles: its opd goes on
    with the session.
    """
    container.good("systemctl", "start", "opd")
    pid, before = container.unit("MainPID")["MainPID"], samples_of(container)
    old = (version(container), container.good("sha256sum", "/usr/sbin/opd").split()[0])
    install(container, later(container))
    restarted(container, pid, "the upgrade")
    new = (version(container), container.good("sha256sum", "/proc/%s/exe" % container.unit("MainPID")["MainPID"]).split()[0])
    require(new[0] == LATER_VERSION and old[0] != new[0] and old[1] != new[1], "before the upgrade %s, after it %s" % (old, new))
    require(status(container)["state"] == "running", "after the upgrade nothing is profiled")
    require(samples_of(container) >= before > 0, "the upgrade lost samples")


def check_remove(container):
    """Removed and installed again: the sessions and the user were there all the time, and profiling
    goes on.
    """
    before = samples_of(container)
    apt(container, "remove", "opd")
    require(not container.opd_pids(), "an opd runs after the removal")
    require(samples_of(container) >= before > 0, "the removal takes samples away")
    container.good("id", "opd")
    install(container, later(container))
    require(container.unit("ActiveState")["ActiveState"] == "active" and status(container)["state"] == "running",
            "installed again, it does not profile")
    require(samples_of(container) >= before, "installed again, it has fewer samples")


def check_stays_off(container):
    """Whoever has switched it off finds it so after the package came once more."""
    container.good("systemctl", "disable", "--now", *UNITS)
    apt(container, "install", "--reinstall", "/var/tmp/" + later(container))
    for unit in UNITS:
        state = (container.run("systemctl", "is-enabled", unit).out.strip(), container.run("systemctl", "is-active",
                unit).out.strip())
        require(state == ("disabled", "inactive"), "%s was switched off and is %s" % (unit, state))
    container.good("systemctl", "enable", "--now", *UNITS)


def check_nothing_left(container):
    """After a purge: the sessions, which can be read, the description of their files, and what was
    put aside.
    """
    require(not container.opd_pids(), "an opd runs after the purge")
    left = container.good("sh", "-c", "find /etc /run /usr /lib /var -xdev -name '*opd*' ! -name '*popd*' ! -path "
                                      "'/var/tmp/*' ! -path '/var/lib/dpkg/*' ! -path '/var/lib/oprofile/samples/*' "
                          "! -path '/var/log/*' ! -path '/var/cache/*' 2>/dev/null || :").split()
    require(not left, "purge leaves %s" % left)
    rest = set(os.listdir(os.path.join(container.root, "var/lib/oprofile")))
    require(rest <= {"samples", "abi", "damaged"}, "purge leaves %s in the session directory" % rest)
    require(samples_of(container) > 0, "purge takes the sessions away")


def check_purge_after_kill(container):
    """Nobody ended the daemon in order, a setup waited, a power cut left files in the making, and
    an administrator has a file of his own.
    """
    container.drop_in("[Service]\nRestart=no\n")
    container.good("opcontrol", "--separate=none")
    os.kill(host_pid(container)[0], signal.SIGKILL)
    wait_until(lambda: container.unit("ActiveState")["ActiveState"] == "failed", HANG_SECONDS, "it does not end")
    container.remove_drop_in()
    container.good("systemctl", "stop", "opd.socket")
    container.run("opcheck", "-q", "--repair")  # 1: there was something
    container.good("sh", "-c", "cd /var/lib/oprofile && touch abi.tmp clock.tmp daemonrc.tmp daemonrc_new.tmp paused "
                               "paused.tmp profiling.tmp && echo '# mine' >/etc/opd/opd.conf.d/60-mine.conf")
    there = set(os.listdir(os.path.join(container.root, "var/lib/oprofile")))
    require({"unclean", "daemonrc_new"} <= there, "before the purge there is only %s" % there)
    apt(container, "purge", "opd")
    check_nothing_left(container)
    container.keep_session()
    install(container, later(container))


def check_purge(container):
    """Purged while it runs."""
    apt(container, "purge", "opd")
    check_nothing_left(container)


def check_all(container):
    container.good("systemctl", "start", "opd")
    check_opener(container)
    check_sandbox(container)
    check_stacks(container)
    check_reach(container)
    check_group(container)
    check_readers(container)
    check_reload(container)
    check_crashes(container)
    check_watchdog(container)
    check_hanging(container)
    check_gives_up(container)
    check_unwritten(container)
    check_activation(container)
    check_elsewhere(container)
    check_opcontrol_fails(container)
    check_stop_under_load(container)
    check_upgrade(container)
    check_remove(container)
    check_stays_off(container)
    check_purge_after_kill(container)
    check_purge(container)
