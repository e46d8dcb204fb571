#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
JIT code that is named late: by a map that is written after the code ran, that grows, is written
anew, or comes at the end of the process, also in a container; and by a jitdump whose records come at
the end. Every sample gets its name where it is certain, and none where other code took the place of
the first.
All counts are in the sample files before the names come: a dump, a new session, and a kill of opd
lose nothing and count nothing twice.
"""
import glob
import os
import shutil
import signal
import subprocess
import tempfile

import elfsyms
import opdtest
from opdtest import Skip, require

PERIOD_NS = 497000
MS = 1500
POINTS = 10.0  # two clocks on a busy machine; what is wrong, or has no name, is a share of 25 or more
ALPHA, BETA = "jit_alpha", 'jit_beta of a "file" /x/y.js:1'
MIN_WAITING = 100
LEFT = []  # maps that the processes of this test leave in /tmp


def functions_of(box, app, live=False):
    """({function: samples}, samples without a name) of an application, outside of files."""
    found, rest = {}, 0
    for sample_file in box.files(live=live):
        kind, image = sample_file.name.image
        if sample_file.name.app[1] != app or kind not in ("jo", "anon") or "[v" in image:
            continue
        ranges = elfsyms.all_ranges(image, by_address=True) if kind == "jo" else []
        for key, count in sample_file.keys.items():
            names = [n for n, start, end in ranges if start <= key + sample_file.header.anon_start < end]
            require(len(names) <= 1, "%s: key 0x%x is in %d functions" % (image, key, len(names)))
            if names:
                found[names[0]] = found.get(names[0], 0) + count
            else:
                rest += count
    return found, rest


def start(box, app, *args):
    child = box.start(app, *args, stdout=subprocess.PIPE)
    LEFT.append("/tmp/perf-%d.map" % child.pid)
    return child


def finish(box, child):
    out, _ = child.communicate(timeout=opdtest.CALL_SECONDS)
    box.children.remove(child)
    if child.returncode == 77:
        raise Skip("the tests make no code for this machine")
    require(child.returncode == 0, "jit_work: exit code %d" % child.returncode)
    return [int(n) for n in out.split()]


def work(box, kind, *args):
    app = box.copy_work("late-" + kind, "jit_work")
    return app, finish(box, start(box, app, kind, MS, *args))


def in_container(box):
    """The map is empty until the process ends, and then only the container sees it."""
    elsewhere = tempfile.mkdtemp(prefix="opd-test.", dir="/var/tmp")
    os.chmod(elsewhere, 0o755)
    app = shutil.copy(os.path.join(os.path.dirname(box.work), "jit_work"), elsewhere)
    directory = os.path.join(box.dir, "private")
    os.makedirs(directory)
    script = 'mount --bind "$1" /tmp && shift && "$@" & wait $!'
    done = box.run("unshare", "--pid", "--fork", "--mount", "--mount-proc", "sh", "-c", script, "sh", directory, app, "exit", MS)
    require(done.rc == 0, "unshare: exit code %d: %s" % (done.rc, done.err))
    require(os.path.getsize(glob.glob(os.path.join(directory, "perf-*.map"))[0]), "the container wrote nothing into its map")
    return app, [int(n) for n in done.out.split()]


def check_names(box, app, spent, names, others=()):
    """All samples have the names of their functions, in the shares that the program measured. Returns
    the samples without a name, and those of other functions.
    """
    found, rest = functions_of(box, app)
    of_others = [found.pop(name, 0) for name in others]
    print("%s: %s, %d without a name" % (os.path.basename(app), found, rest))
    require(sorted(found) == sorted(names), "%s has the functions %s" % (app, sorted(found)))
    total = sum(found.values())
    for name, ns in zip(names, spent):
        wanted, percent = 100.0 * ns / sum(spent), 100.0 * found[name] / total
        require(abs(wanted - percent) < POINTS, "%s: %s has %.2f %%, not %.2f %%" % (app, name, percent, wanted))
    expected = sum(spent) / PERIOD_NS
    require(0.8 * expected < total < 1.25 * expected + 50, "%s: %d samples of about %d" % (app, total, expected))
    return rest, of_others


def check_all_named(box, app, spent):
    rest, _ = check_names(box, app, spent, (ALPHA, BETA))
    require(not rest, "%s has %d samples without a name" % (app, rest))


def check_buffered(box, app, spent):
    """What two functions have at one address can belong to either. Samples that opd reads after the
    jitdump have the name of their time.
    """
    *named, reused = spent
    rest, of_others = check_names(box, app, named, ("jit_alpha", "jit_beta"), ("jit_old", "jit_new"))
    expected = reused / PERIOD_NS
    require(all(nr < 0.5 * (1.25 * expected + 50) for nr in of_others), "one of two functions has too much: %s" % of_others)
    rest += sum(of_others)
    require(0.8 * expected < rest < 1.25 * expected + 50, "%s: %d samples without a name of about %d" % (app, rest, expected))
    objects = glob.glob(os.path.join(glob.escape(box.session), "samples/current/{root}" + app, "{dep}/*/*.jo"))
    require(len(objects) == 1, "one process has the objects %s" % objects)
    text = box.good("objdump", "-d", objects[0])
    require("<jit_alpha>:" in text and "imul" in text or os.uname().machine != "x86_64", "the object has no code:\n" + text)
    lines = box.opreport("-l", "-g", app)
    require("alpha.js:10" in lines, "opreport -g does not know the line of jit_alpha:\n" + lines)


def one_row(box, app):
    """A function that had samples before and after its name came is one row of the report."""
    rows = [line.split()[-1] for line in box.opreport("-l", app).splitlines() if line.endswith("jit_alpha")]
    require(len(rows) == 1, "jit_alpha has %d rows" % len(rows))


def wait_for_rest(box, app, nr, live=True):
    def has_rest():
        box.opcontrol("--dump")
        return functions_of(box, app, live)[1] >= nr
    opdtest.wait_until(has_rest, opdtest.HANG_SECONDS, "%s has no samples that wait" % app)


def over_sessions(box):
    """Names come after the session was closed and another opd was killed: each count stays where it
    was, and only what this opd saw wait in its session has a name.
    """
    app = box.copy_work("late-sessions", "jit_work")
    child = box.start_piped(app, "pipe")
    LEFT.append("/tmp/perf-%d.map" % child.pid)
    wait_for_rest(box, app, MIN_WAITING)
    box.opcontrol("--save=before")
    wait_for_rest(box, app, MIN_WAITING)
    box.daemon.send_signal(signal.SIGKILL)
    box.daemon.wait()
    before = functions_of(box, app)
    require(before[1] >= MIN_WAITING and not before[0], "after the kill there are %s" % (before,))
    box.start_daemon()
    wait_for_rest(box, app, before[1] + MIN_WAITING)
    finish(box, child)
    # opd may put off reading the list of a process that has ended, for 10 s at most.
    opdtest.wait_until(lambda: not box.opcontrol("--dump") and functions_of(box, app, live=True)[0], opdtest.HANG_SECONDS,
                       "what waited has no name")
    box.opcontrol("--stop")
    found, rest = functions_of(box, app)
    print("sessions: %s, %d without a name, %d of them from before the kill" % (found, rest, before[1]))
    require(sorted(found) == [ALPHA, BETA] and rest == before[1], "what waited after the kill is %s, %d" % (found, rest))
    box.check_agreement()
    box.shutdown()
    result = box.run(os.path.join(box.bin, "opcheck"), "--session-dir=" + box.session)
    require(result.rc == 0, "opcheck: %s%s" % (result.out, result.err))


def test(box):
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel")
    named = {kind: work(box, kind) for kind in ("late", "exit", "after", "grow", "rewrite")}
    buffered = work(box, "buffered", box.dir)
    container = in_container(box)
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    status = box.check_ledger()
    for app, spent in named.values():
        check_all_named(box, app, spent)
    check_buffered(box, *buffered)
    check_all_named(box, *container)
    shutil.rmtree(os.path.dirname(container[0]))
    one_row(box, named["late"][0])
    print("%d samples named late" % status["jit_named_late"])
    require(status["jit_named_late"] > 3 * MS * 1000000 / PERIOD_NS, "the status says %d samples" % status["jit_named_late"])
    box.check_agreement()
    box.shutdown()
    shutil.rmtree(box.session)
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel")
    over_sessions(box)


if __name__ == "__main__":
    try:
        opdtest.run(test, larger_rings=True)
    finally:
        for path in LEFT:
            if os.path.lexists(path):
                os.unlink(path)
