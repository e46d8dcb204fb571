#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What opcontrol says and does when a daemon answers with an error, in another version of the
protocol, or not at all.
"""
import errno
import json
import os
import re
import struct
import time

import opdtest
from opcontroltest import DUMP, SHUTDOWN, STATUS, STOP, FakeDaemon, opcontrol, status_payload
from opdtest import require


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


def at_another_socket(box):
    """--dump names the daemon that --status finds by its lock."""
    box.start_daemon()
    pid = box.status()["pid"]
    other = os.path.join(box.dir, "other.conf")
    with open(other, "w", encoding="ascii") as stream:
        stream.write("SessionDir=%s\nControlSocket=%s/nobody\n" % (box.session, box.dir))
    for request in ("--status", "--dump"):
        shown = box.run(opcontrol(box), request, env={"OPD_CONFIG": other})
        require("opd (pid %d)" % pid in shown.err and box.dir + "/nobody" in shown.err and box.session in shown.err,
                "%s does not name the daemon: %s" % (request, shown))
    box.shutdown()
    line = box.refused(opcontrol(box), "--dump", env={"OPD_CONFIG": other})
    require("is the oprofile daemon running?" in line, line)


def names_of_images(box):
    """Any user names the images in which walks of stacks end."""
    name = b"/tmp/a\x9b31m\xc2\x9b\x1b[2J\xe2\x80\xae\xe2\x80\xa8"
    shown = "/tmp/a\\x9b31m\\xc2\\x9b\\x1b[2J\\xe2\\x80\\xae\\xe2\\x80\\xa8"

    def answer():
        payload = bytearray(status_payload())
        waits = 15 * 8 + 256  # struct op_status: from waits to no_waits
        deep = 13 * 8 + 2 * 256 + 7 * 9 * 8  # deep, no_deep, no_runtimes and runtimes
        at = len(payload) - 3 * 4096 - 256 - waits - 4 * 8 - deep - 8 * 256  # stack_stops
        payload[at:at + 256] = struct.pack("<240sQQ", name, 1, 7)
        return bytes(payload)

    with FakeDaemon(box, {STATUS: (0, answer)}):
        out = box.good(opcontrol(box), "--status")
        require("Callers are missing, most often above:\n  %s (7)\n      cut: the caller is beyond" % shown in out, out)
        require(not re.search("[\x1b\x80-\x9f\u2028\u202e]", out), "raw: %r" % out)
        out = box.good(opcontrol(box), "--status", "--json")
        require(json.loads(out)["stack_stops"][0]["image"] == shown, out)


METRIC = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\\\n]|\\\\[\\\\"n])*",?)*)\})? (-?[0-9][0-9.e+-]*)$')


def metrics(text):
    """{(name, labels): value} of Prometheus' text format; each metric has its HELP and TYPE first."""
    found, types = {}, {}
    for line in text.splitlines():
        if line.startswith("# "):
            word, name, rest = line[2:].split(" ", 2)
            require(word == "HELP" or (name not in types and rest in ("gauge", "counter")), line)
            if word == "TYPE":
                types[name] = rest
            continue
        match = METRIC.match(line)
        require(match and match.group(1) in types, "no line of a metric: %r" % line)
        name, labels, value = match.groups()
        require((types[name] == "counter") == name.endswith("_total"), "name and type: " + line)
        require((name, labels) not in found, "twice: " + line)
        found[name, labels] = float(value)
    return found


def for_prometheus(box):
    """The numbers of --json under names with units; labels are escaped; 0 without a daemon, which is no error. The
    rules in doc/ use metrics that there are.
    """
    ask = (opcontrol(box), "--status", "--format=prometheus")
    quoted = os.path.join(box.dir, 'a "b" \\ c\nd')
    none = metrics(box.good(*ask))
    require(none["opd_up", None] == 0 and ("opd_profiling", None) not in none, none)
    box.configure(session=quoted)
    text = box.good(*ask)
    require('session_dir="%s/a \\"b\\" \\\\ c' % box.dir in text, text)
    box.configure()
    box.start_daemon("--event=page-faults:1", "--stacks=99")

    def has_stacks():
        box.good(box.work, "faults", "3000")
        box.opcontrol("--dump")
        return any(name == "opd_stacks_total" for name, _ in metrics(box.good(*ask)))

    opdtest.wait_until(has_stacks, opdtest.HANG_SECONDS, "there are no stacks")
    status, found = box.status(), metrics(box.good(*ask))
    event = 'event="page-faults",period="1",unit_mask="0"'
    faults = [row for row in status["events"] if row["name"] == "page-faults"][0]
    require(found["opd_up", None] == found["opd_profiling", None] == 1, found)
    require(found["opd_samples_stored_total", event] >= faults["stored"] >= 3000, found)
    reasons = {labels.rsplit("reason=", 1)[1].strip('"') for name, labels in found
               if name == "opd_samples_lost_total" and labels.startswith(event)}
    require(reasons == {name[5:] for name in faults if name.startswith("lost_")}, "reasons: %s" % reasons)
    require(("opd_stacks_total", 'event="STACKS",period="10101010",unit_mask="0",end="complete"') in found, found)
    require(found["opd_sessions_bytes", None] > 0 and found["opd_resident_memory_bytes", None] > 1e6, found)
    require(0 <= time.time() - found["opd_oldest_session_timestamp_seconds", None] < opdtest.HANG_SECONDS, found)
    box.opcontrol("--stop")
    require(metrics(box.good(*ask))["opd_profiling", None] == 0, "paused")
    box.shutdown()
    with open(os.path.join(os.environ["OPD_SOURCE"], "doc", "opd-alerts.yml"), encoding="utf-8") as stream:
        used = set(re.findall(r"\bopd_[a-z_]+", stream.read()))
    require(used and used <= {name for name, _ in found}, "the rules use %s" % (used - {name for name, _ in found}))
    for words, wanted in ((("--format=xml", "--status"), "--format=xml"), (("--format=json", "--dump"), "--status"),
                          (("--status", "--json", "--format=json"), "--json")):
        require(wanted in box.refused(opcontrol(box), *words), words)
    require(json.loads(box.good(opcontrol(box), "--status", "--format=json")) == {"state": "not running"}, "json")


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


def ended_as_another_version(box):
    """The real one is ended in order, although it does not understand who asks."""
    box.start_daemon()
    os.rename(box.socket, box.socket + ".away")
    with FakeDaemon(box, {STATUS: (errno.EPROTO, b"")}, version=1):
        require("Daemon stopped." in box.opcontrol("--shutdown"), "nothing is said")
    require(box.daemon.wait(opdtest.HANG_SECONDS) == 0, "opd ended with %s" % box.daemon.returncode)
    os.unlink(box.socket + ".away")
    box.check_rest()


def not_kept(box):
    """That --start and --stop hold for the next opd cannot be written: what they do is done, and
    the answer says both.
    """
    box.start_daemon()
    path = os.path.join(box.session, "profiling")
    os.unlink(path)
    os.mkdir(path)
    for request, state, words in (("--stop", "paused", "stopped, but the next opd may start with it"),
                                  ("--start", "running", "begun, but the next opd may start without it")):
        result = box.run(opcontrol(box), request)
        require(result.rc == 1 and words in result.err and path in result.err, "%s: %s" % (request, result))
        require(box.status()["state"] == state, "%s: %s" % (request, box.status()["state"]))
    os.rmdir(path)
    box.opcontrol("--stop")
    box.shutdown()


def mute_daemon(box):
    """A daemon whose socket has gone is neither taken for dead nor started twice, and it can be
    ended.
    """
    box.start_daemon()
    os.rename(box.socket, box.socket + ".away")
    for request in ("--start", "--stop", "--reset"):
        line = box.refused(opcontrol(box), request)
        require("pid %d" % box.daemon.pid in line and box.socket in line, line)
    require(box.status() == {"state": "not answering", "pid": box.daemon.pid}, "status: %s" % box.status())
    require("Daemon stopped." in box.opcontrol("--shutdown"), "nothing is said")
    require(box.daemon.wait(opdtest.HANG_SECONDS) == 0, "opd ended with %s" % box.daemon.returncode)
    os.unlink(box.socket + ".away")
    box.check_rest()


def test(box):
    box.opcontrol("--setup", "--event=TIMER:300000")
    told_by_the_daemon(box)
    at_another_socket(box)
    for_prometheus(box)
    names_of_images(box)
    asked_twice_to_end(box)
    another_version(box)
    ended_as_another_version(box)
    not_kept(box)
    mute_daemon(box)


if __name__ == "__main__":
    opdtest.run(test)
