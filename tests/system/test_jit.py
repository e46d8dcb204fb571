#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
JIT code is found by /tmp/perf-PID.map and by jitdump: shares of functions, code that takes the
place of other code, memory mapped twice, forks, a container; and a map that belongs to another user,
to an earlier process or to the program before exec, or is no regular file, names nothing.

Code may be named late: by a map that is written after the code ran, that grows, is written anew, or
comes at the end of the process, also in a container; and by a jitdump whose records come at the end.
Every sample gets its name where it is certain, and none where other code took the place of the
first. All counts are in the sample files before the names come: a dump, a new session, another opd
and a kill of opd lose nothing and count nothing twice.

Where descriptors are few, crowds of processes with such memory do not take them from samples, nor
places from those that have JIT code.
"""
import concurrent.futures
import glob
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

import elfsyms
import opdtest
from opdtest import Skip, require

PERIOD_NS = 497000
MS = 1500
SHORT_MS = 500
APART_S = 0.3  # between a map and the program that it is not of
POINTS = 4.0
LATE_POINTS = 10.0  # what is wrong, or has no name, is a share of 25 or more
ALPHA, BETA = "jit_alpha", 'jit_beta of a "file" /x/y.js:1'
NOBODY = 65534
NR_REFUSED = 3  # maps: of another owner, a link, a FIFO
MIN_WAITING = 100
ENDING_SECONDS = 10  # opd reads files of a process that has ended for so long
TRIES = 5
MIN_BOTH = 200  # samples of which the smaller function has 50 on average
RANGE_START = 0x6a69 << 48  # where functions have places; other addresses are those of the process
WAIT_SECONDS = opdtest.HANG_SECONDS
NR_CROWD, CROWD_MS = 120, 5
NR_CROWDS = 8
NR_NEEDED, NR_NEEDED_BY_CPU = 80, 4  # descriptors of opd, with one event
NR_FOR_JIT = 30
LEFT = []  # files that the processes of this test may leave in /tmp; another test of JIT code may run beside it


def jit_functions(box, app, live=False):
    """({function: samples} by the objects beside the sample files of an application, samples of it
    in anonymous regions).
    """
    found, rest = {}, 0
    for sample_file in box.files(live=live):
        kind, name = sample_file.name.image
        if sample_file.name.app[1] != app:
            continue
        if kind == "anon" and name.startswith("anon "):
            rest += sample_file.total
        if kind != "jo":
            continue
        ranges = elfsyms.all_ranges(name, by_address=True)
        for key, count in sample_file.keys.items():
            inside = [n for n, start, end in ranges if start <= key + sample_file.header.anon_start < end]
            if not inside and sample_file.header.anon_start < RANGE_START:  # at an address that nobody named
                rest += count
                continue
            require(len(inside) == 1, "%s: key 0x%x is in %d functions" % (name, key, len(inside)))
            found[inside[0]] = found.get(inside[0], 0) + count
    return found, rest


def check_shares(box, app, spent, names, points=POINTS, others=()):
    """The samples of each function agree with the CPU time that the program measured in it. Returns
    them, the samples without a name, and those of other functions.
    """
    found, rest = jit_functions(box, app)
    of_others = [found.pop(name, 0) for name in others]
    print("%s: %s, %d in no function, %s ms spent" % (os.path.basename(app), found, rest, [n // 1000000 for n in spent]))
    require(sorted(found) == sorted(names), "%s has the functions %s, not %s" % (app, sorted(found), sorted(names)))
    total = sum(found.values())
    for name, ns in zip(names, spent):
        wanted, percent = 100.0 * ns / sum(spent), 100.0 * found[name] / total
        require(abs(wanted - percent) < points, "%s: %s has %.2f %%, not %.2f %%" % (app, name, percent, wanted))
    expected = sum(spent) / PERIOD_NS
    require(0.8 * expected < total < 1.25 * expected + 50,
            "%s: %d samples of about %d" % (app, total, expected))
    return found, rest, of_others


def check_unnamed(box, app, spent):
    """All of it is in a region of the process, and nothing is named."""
    found, rest = jit_functions(box, app)
    print("%s: %d in a region, %s named" % (os.path.basename(app), rest, found))
    require(not found, "%s has named functions: %s" % (app, found))
    require(rest > 0.8 * sum(spent) / PERIOD_NS, "%s has %d samples in its region" % (app, rest))


def map_path(pid):
    return "/tmp/perf-%d.map" % pid


def start(box, *command, **more):
    child = box.start(*command, **more)
    LEFT.append(map_path(child.pid))
    return child


def finish(box, child):
    out, err = child.communicate(timeout=opdtest.CALL_SECONDS)
    box.children.remove(child)
    if child.returncode == 77:
        raise Skip("the tests make no code for this machine")
    require(child.returncode == 0, "jit_work: exit code %d: %s" % (child.returncode, err))
    return [int(n) for n in out.split()]


def work(box, kind, *args, prefix=(), name=None, ms=MS):
    """Runs one kind of work in an application of its own; its path and the nanoseconds that it
    printed.
    """
    app = box.copy_work("jit-" + (name or kind), "jit_work")
    return app, finish(box, start(box, *prefix, app, kind, ms, *args, stdout=subprocess.PIPE, stderr=subprocess.PIPE))


def work_in_container(box, kind):
    """Process numbers and a /tmp of its own: the map is where only the container sees it. With `exit`
    it is empty until the process ends.
    """
    elsewhere = tempfile.mkdtemp(prefix="opd-test.", dir="/var/tmp")  # the container has another /tmp
    os.chmod(elsewhere, 0o755)
    program = shutil.copy(os.path.join(os.path.dirname(box.work), "jit_work"), elsewhere)
    directory = tempfile.mkdtemp(prefix="private.", dir=box.dir)
    os.chmod(directory, 0o755)
    # The program is not process 1 there, and not the number that it has here.
    script = 'mount --bind "$1" /tmp && shift && "$@" & wait $!'
    done = box.run("unshare", "--pid", "--fork", "--mount", "--mount-proc", "sh", "-c", script, "sh", directory, program, kind, MS)
    require(done.rc == 0, "unshare: exit code %d: %s" % (done.rc, done.err))
    paths = glob.glob(os.path.join(directory, "perf-*.map"))
    require(paths and os.path.getsize(paths[0]), "the container wrote no map into its /tmp")
    return program, [int(n) for n in done.out.split()]


def map_of_others(box):
    """Maps with the right name and owner that describe other programs at the same addresses.
    Returns (application, nanoseconds) of the program after exec, and of a process whose number
    another process had in a container.
    """
    directory = tempfile.mkdtemp(prefix="opd-test.", dir="/var/tmp")
    fixed = ("setarch", "-R")
    container = (*fixed, "unshare", "--pid", "--fork", "--mount", "--mount-proc", "sh", "-c",
                 'mount --bind "$0" /tmp; exec "$@"', directory)
    programs = [shutil.copy(os.path.join(os.path.dirname(box.work), "jit_work"), os.path.join(directory, name))
                for name in ("one", "two")]
    box.good(*container, programs[0], "map", 1)
    path = os.path.join(directory, "perf-1.map")
    require(os.path.exists(path), "the first process of a container wrote no map")
    time.sleep(APART_S)
    reused = programs[1], [int(n) for n in box.good(*container, programs[1], "silent", SHORT_MS).split()]
    script = 'cp "$0" /tmp/perf-$$.map; sleep %s; exec "$@"' % APART_S
    return [reused, work(box, "silent", prefix=(*fixed, "sh", "-c", script, path), name="execed", ms=SHORT_MS)], path


def check_other_map(box, app, path):
    """The code does lie where the map has functions."""
    with open(path, encoding="utf-8") as stream:
        named = [int(line.split()[0], 16) for line in stream]
    ranges = [re.search(r"range:0x([0-9a-f]+)-0x([0-9a-f]+)", f.name.image[1]) for f in box.files()
              if f.name.app[1] == app and f.name.image[0] == "anon" and f.total > SHORT_MS * 1000000 / PERIOD_NS / 2]
    require(any(int(r.group(1), 16) <= n < int(r.group(2), 16) for r in ranges for n in named),
            "%s has no code where the map has: %s" % (app, named))


def code_of(path):
    """The bytes of .text as objdump shows them, by function."""
    text = subprocess.run(["objdump", "-d", path], capture_output=True, check=True, encoding="utf-8").stdout
    functions, name = {}, None
    for line in text.splitlines():
        head = re.match(r"^[0-9a-f]+ <(.*)>:$", line)
        code = re.match(r"^ *[0-9a-f]+:\t([0-9a-f ]+)", line)
        if head:
            name = head.group(1)
            functions[name] = b""
        elif code and name:
            functions[name] += bytes.fromhex(code.group(1))
    return functions


def check_dump(box, app):
    """The object of a jitdump has the code and its lines."""
    objects = objects_of(box, app)
    require(len(objects) == 1, "%s has the objects %s" % (app, objects))
    code = code_of(objects[0])
    require(sorted(code) == ["jit_alpha", "jit_beta"], "objdump finds %s" % sorted(code))
    require(code["jit_alpha"].rstrip(b"\0") == code["jit_beta"].rstrip(b"\0") != b"",
            "the code is not what was in the dump: %s" % code)
    lines = box.opreport("-l", "-g", app)
    require(re.search(r"alpha\.js:10 .*jit_alpha$", lines, re.MULTILINE),
            "opreport -g does not know the line of jit_alpha:\n" + lines)
    require("damaged" not in box.opreport("--images", app), "opreport --images takes the object's lines for damaged")
    text, errors = annotate(box, app)
    require(re.search(r"<jit_alpha>: /\* jit_alpha total: ", text) and not re.search(r"no code is shown for .*\.jo: ", errors),
            "opannotate does not have the code of the dump:\n%s%s" % (text, errors))


def annotate(box, app):
    """What opannotate -a prints, and what it says."""
    result = box.run(os.path.join(box.bin, "opannotate"), "--session-dir=" + box.session, "-a", app)
    require(result.rc == 0, "opannotate -a: exit code %d: %s" % (result.rc, result.err))
    return result.out, result.err


def check_report(box, app, found):
    """opreport's list has the same counts, under the name of the object."""
    text = box.opreport("-l", "-n", app)
    for name, count in found.items():
        pattern = r"^%d +[0-9.e+-]+ +[0-9]+\.jo +%s$" % (count, re.escape(name))
        require(re.search(pattern, text, re.MULTILINE), "opreport -l does not have %d of %s:\n%s" % (count, name, text))
    require(re.search(r"^\t *[0-9]+ +[0-9.e+-]+ +[0-9]+\.jo$", box.opreport("-n", app), re.MULTILINE), "the summary has no object")
    text, errors = annotate(box, app)
    for name, count in found.items():
        require(re.search(r"^ *%d +[0-9.]+ :/\* %s total: +%d " % (count, re.escape(name), count), text,
                          re.MULTILINE), "opannotate has no total of %s:\n%s" % (name, text))
    require(re.search(r"no code is shown for %d samples .*\.jo: .*a perf map has names$" % sum(found.values()),
                      errors, re.MULTILINE),
            "opannotate does not say that there is no code:\n" + errors)


def objects_of(box, app):
    return sorted(glob.glob(os.path.join(glob.escape(box.session), "samples/current/{root}" + glob.escape(app), "{dep}/*/*.jo")))


def has_lines(path, number):
    if not os.path.exists(path):
        return False
    with open(path, encoding="utf-8") as stream:
        return stream.read().count("\n") == number


def wait_for_both(box, app, already=0):
    """Runs until the session has so many more samples of the code that each function has some, and
    they are written.
    """
    def has_both():
        box.opcontrol("--dump")
        return sum(f.total for f in box.files(live=True) if f.name.app[1] == app and f.name.image[0] == "jo") >= already + MIN_BOTH
    opdtest.wait_until(has_both, WAIT_SECONDS, "%s has no samples" % app)


def wait_for_rest(box, app, nr):
    """Until there are so many samples without a name."""
    def has_rest():
        box.opcontrol("--dump")
        return jit_functions(box, app, live=True)[1] >= nr
    opdtest.wait_until(has_rest, WAIT_SECONDS, "%s has no samples that wait" % app)


def outlives(box):
    """Processes that go on while the session is emptied, and while one opd follows the other: what
    each counted has its names. Then over_sessions.
    """
    app, late_app = box.copy_work("jit-long", "jit_work"), box.copy_work("late-sessions", "jit_work")
    child = start(box, app, "map", 4 * WAIT_SECONDS * 1000)
    opdtest.wait_until(lambda: has_lines(map_path(child.pid), 2), WAIT_SECONDS, "no map is written")
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel")
    wait_for_both(box, app)
    before = objects_of(box, app)
    box.opcontrol("--reset")
    require(not objects_of(box, app), "--reset leaves %s" % objects_of(box, app))
    wait_for_both(box, app)
    require(len(before) == 1 and objects_of(box, app) == before, "after --reset there is %s" % objects_of(box, app))
    box.shutdown()
    already = sum(jit_functions(box, app)[0].values())
    box.start_daemon()
    late_child = box.start_piped(late_app, "pipe")
    LEFT.append(map_path(late_child.pid))
    wait_for_both(box, app, already)
    wait_for_rest(box, late_app, MIN_WAITING)
    box.opcontrol("--stop")
    require(len(objects_of(box, app)) == 2, "two opds left the objects %s" % objects_of(box, app))
    found, rest = jit_functions(box, app)
    require(sorted(found) == [ALPHA, BETA] and min(found.values()) > 10 and not rest,
            "two opds found %s, %d elsewhere" % (found, rest))
    box.check_agreement()
    box.end_process(child.pid)
    child.wait()
    box.opcontrol("--start")
    over_sessions(box, late_app, late_child)


def over_sessions(box, app, child):
    """Names come after the session was closed and another opd was killed: each count stays where it
    was, and only what this opd saw wait in its session has a name.
    """
    box.opcontrol("--save=before")
    wait_for_rest(box, app, MIN_WAITING)
    box.daemon.send_signal(signal.SIGKILL)
    box.daemon.wait()
    before = jit_functions(box, app)
    require(before[1] >= MIN_WAITING and not before[0], "after the kill there are %s" % (before,))
    box.start_daemon()
    wait_for_rest(box, app, before[1] + MIN_WAITING)
    finish(box, child)
    opdtest.wait_until(lambda: not box.opcontrol("--dump") and jit_functions(box, app, live=True)[0], WAIT_SECONDS,
                       "what waited has no name")
    box.opcontrol("--stop")
    found, rest = jit_functions(box, app)
    print("sessions: %s, %d without a name, %d of them from before the kill" % (found, rest, before[1]))
    require(sorted(found) == [ALPHA, BETA] and rest == before[1], "what waited after the kill is %s, %d" % (found, rest))
    box.check_agreement()
    box.shutdown()
    result = box.run(os.path.join(box.bin, "opcheck"), "--session-dir=" + box.session)
    require(result.rc == 0, "opcheck: %s%s" % (result.out, result.err))


def ends_early(box):
    """A process that has ended before opd looks for the first time: its map, its dump and its
    parent are still there.
    """
    box.configure(RingSize="8M", SidebandSize="8M", VisitInterval="10000")
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel")
    named = [(work(box, "map"), (ALPHA, BETA)), (work(box, "kept", box.dir), ("jit_alpha", "jit_beta"))]
    alien = work(box, "alien", NOBODY)
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    for (app, spent), names in named:
        check_shares(box, app, spent, names)
    check_unnamed(box, *alien)
    box.check_ledger()
    box.shutdown()
    shutil.rmtree(box.session)
    box.configure(RingSize="8M", SidebandSize="8M")


def check_processes(box, status, mine):
    """Each process whose code is named has an object of its own. Who else runs code here is not the
    test's business, and may be refused, too.
    """
    apps = sorted({f.name.image[1]: f.name.app[1] for f in box.files() if f.name.image[0] == "jo"}.values())
    others = [app for app in apps if app not in mine] + [path for path in glob.glob("/tmp/perf-*.map") if path not in LEFT]
    print("processes with JIT code: %d, of others: %s" % (len(apps), others or "none"))
    require([app for app in apps if app in mine] == sorted(mine), "there are objects of %s" % apps)
    require(status["jit_processes"] == len(apps),
            "the status says %d processes with JIT code, not %d" % (status["jit_processes"], len(apps)))
    refused = status["jit_refused_files"]
    require(refused == NR_REFUSED or (others and refused > NR_REFUSED), "the status says %d refused files" % refused)
    require("refused_files: %d" % refused in box.opcontrol("--status"), "opcontrol --status does not show what was refused")


def start_with_few_descriptors(box, *setup):
    """An opd with some descriptors for JIT code, but fewer than a crowd has processes. It keeps as
    many for the CPUs and for new files.
    """
    few = NR_NEEDED + 2 * NR_NEEDED_BY_CPU * os.cpu_count() + NR_FOR_JIT
    if box.run_as == "unit":
        box.unit_lines = ["LimitNOFILE=%d" % few]
    else:
        box.env["OPD_DAEMON"] = os.path.join(box.dir, "with-few")
        with open(box.env["OPD_DAEMON"], "w", encoding="utf-8") as stream:
            stream.write('#!/bin/sh\nulimit -n %d\nexec "%s" "$@"\n' % (few, box.launcher))
        os.chmod(box.env["OPD_DAEMON"], 0o755)
    box.start_daemon(*setup)
    box.unit_lines, box.env["OPD_DAEMON"] = [], box.launcher


def beside_crowd(box, kind):
    """JIT code of another program while a crowd is there: (application, nanoseconds), and the
    descriptors that opd has then.
    """
    child = box.start_piped(box.copy_work("jit-" + kind, "jit_work"), kind, CROWD_MS, NR_CROWD)
    require(int(child.stdout.readline()) == NR_CROWD, "not all of the crowd is there")
    with open("/proc/%d/task/%d/children" % (child.pid, child.pid), encoding="ascii") as stream:
        LEFT.extend(map_path(int(pid)) for pid in stream.read().split())
    box.opcontrol("--dump")
    nr_descriptors = len(os.listdir("/proc/%d/fd" % box.lock_pid()))
    beside = work(box, "map", name="beside-" + kind)
    box.opcontrol("--dump")
    child.stdin.close()
    require(child.wait(opdtest.CALL_SECONDS) == 0, "the crowd ended with exit code %s" % child.returncode)
    box.children.remove(child)
    return beside, nr_descriptors


def crowds(box):
    """Processes with memory for code, without a map and with one each, more than opd has
    descriptors.
    """
    box.configure(RingSize="8M", SidebandSize="8M")
    start_with_few_descriptors(box, "--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel")
    nr_before = len(os.listdir("/proc/%d/fd" % box.lock_pid()))
    beside, nr_silent = beside_crowd(box, "crowd")
    refused = box.status()["jit_refused_processes"]
    nr_named = 0
    for _ in range(NR_CROWDS):  # an emulated machine puts off the looks at some, which then have no more samples
        nr_named = max(nr_named, beside_crowd(box, "maps")[1])
        if nr_named >= nr_before + 10 and box.status()["jit_refused_processes"] > refused:
            break
    box.opcontrol("--stop")
    status = box.check_ledger()
    print("descriptors: %d, %d beside a crowd without maps, %d with maps; %d and %d processes refused" % (
        nr_before, nr_silent, nr_named, refused, status["jit_refused_processes"]))
    lost = {e["name"]: e["lost_too_many_files"] for e in status["events"]}
    require(not any(lost.values()) and not status["dcookie_errors"],
            "a crowd costs samples: %s, %d times no table" % (lost, status["dcookie_errors"]))
    require("Too many open files" not in box.log_text(), "a crowd costs descriptors: " + box.log_text())
    require(nr_silent <= nr_before + 5 and not refused,
            "a crowd without maps has %d descriptors, %d refused" % (nr_silent - nr_before, refused))
    # An emulated machine has no time to look at more of them than opd has descriptors.
    require(nr_named >= nr_before + 10 and (status["jit_refused_processes"] > refused or opdtest.is_emulated()),
            "a crowd with maps has %d descriptors" % (nr_named - nr_before))
    check_shares(box, *beside, (ALPHA, BETA))
    named = jit_functions(box, os.path.join(box.dir, "jit-maps"))[0]
    require(sum(named.values()) > 0, "no code of the crowd is named")
    box.check_agreement()
    box.shutdown()
    shutil.rmtree(box.session)


def check_buffered(box, app, spent):
    """What two functions have at one address can belong to either. Samples that opd reads after the
    jitdump have the name of their time.
    """
    *named, reused = spent
    _, rest, of_others = check_shares(box, app, named, ("jit_alpha", "jit_beta"), LATE_POINTS, ("jit_old", "jit_new"))
    expected = reused / PERIOD_NS
    require(all(nr < 0.5 * (1.25 * expected + 50) for nr in of_others), "one of two functions has too much: %s" % of_others)
    rest += sum(of_others)
    require(0.8 * expected < rest < 1.25 * expected + 50, "%s: %d samples without a name of about %d" % (app, rest, expected))
    objects = objects_of(box, app)
    require(len(objects) == 1, "one process has the objects %s" % objects)
    text = box.good("objdump", "-d", objects[0])
    require("<jit_alpha>:" in text and "imul" in text or os.uname().machine != "x86_64", "the object has no code:\n" + text)
    lines = box.opreport("-l", "-g", app)
    require("alpha.js:10" in lines, "opreport -g does not know the line of jit_alpha:\n" + lines)


def check_late(box, late, app):
    """Each sample has a name. A function of `app` that had samples before and after its name came is
    one row of the report.
    """
    for late_app, spent in late.values():
        _, rest, _ = check_shares(box, late_app, spent, (ALPHA, BETA), LATE_POINTS)
        require(not rest, "%s has %d samples without a name" % (late_app, rest))
    rows = [line.split()[-1] for line in box.opreport("-l", app).splitlines() if line.endswith("jit_alpha")]
    require(len(rows) == 1, "jit_alpha has %d rows" % len(rows))
    named = box.status()["jit_named_late"]
    print("%d samples named late" % named)
    require(named > 3 * MS * 1000000 / PERIOD_NS, "the status says %d samples" % named)


def all_named(box, works):
    box.opcontrol("--dump")
    return all(not jit_functions(box, app, live=True)[1] for app, _ in works)


def await_names(box, works):
    """opd reads files of a process that has ended for some seconds. What has no name then is judged
    later.
    """
    end = time.monotonic() + ENDING_SECONDS
    while any(jit_functions(box, app, live=True)[1] for app, _ in works) and time.monotonic() < end:
        box.opcontrol("--dump")


def work_all(box):
    """(work by kind, work whose names come late, programs that a map of another one does not name,
    that map), as many at once as there are CPUs.
    """
    elsewhere = "/tmp/perf-elsewhere-%d.map" % os.getpid()
    LEFT.append(elsewhere)
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        late = {kind: pool.submit(work, box, kind) for kind in ("exit", "after", "grow", "rewrite")}
        late["container"] = pool.submit(work_in_container, box, "exit")
        runs = {kind: pool.submit(work, box, kind, *args) for kind, *args in (
            ("map",), ("dual",), ("fork",), ("replace",), ("late",), ("dump", box.dir), ("buffered", box.dir),
            ("silent",), ("alien", NOBODY), ("link", elsewhere), ("fifo",))}
        runs["container"] = pool.submit(work_in_container, box, "map")
        others, other_map = map_of_others(box)
        late = {kind: run.result() for kind, run in late.items()}
        runs = {kind: run.result() for kind, run in runs.items()}
    return runs, late, others, other_map


def check_all(box):
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel")
    done, late, others, other_map = work_all(box)
    await_names(box, late.values())
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    status = box.check_ledger()
    for kind in "map", "dual", "fork":
        found, rest, _ = check_shares(box, *done[kind], (ALPHA, BETA))
        require(rest <= 0.02 * sum(found.values()), "%s has %d samples in no function" % (kind, rest))
    check_report(box, done["map"][0], jit_functions(box, done["map"][0])[0])
    check_shares(box, *done["replace"], ("jit_old", "jit_new"))
    _, rest, _ = check_shares(box, *done["late"], (ALPHA, BETA))
    require(not rest, "what ran before there was a map has no name: %d samples" % rest)
    check_shares(box, *done["dump"], ("jit_alpha", "jit_beta"))
    check_dump(box, done["dump"][0])
    check_shares(box, *done["container"], (ALPHA, BETA))
    for app, spent in (*others, *(done[kind] for kind in ("silent", "alien", "link", "fifo"))):
        check_unnamed(box, app, spent)
    for app, _ in others:
        check_other_map(box, app, other_map)
    check_late(box, late, done["late"][0])
    check_buffered(box, *done["buffered"])
    check_processes(box, status, [done[kind][0] for kind in ("map", "dual", "fork", "replace", "late", "dump", "buffered",
                                                            "container")] + [app for app, _ in late.values()])
    for path in (done["container"][0], late["container"][0], other_map):
        shutil.rmtree(os.path.dirname(path))
    box.check_agreement()
    box.shutdown()


def run_part(box, part):
    """Where opd had no time to look at all processes, which it counts, a part that failed runs again.
    """
    for nr_left in reversed(range(TRIES)):
        try:
            part(box)
            return
        except opdtest.Failure as failure:
            status = box.status() if box.daemon.poll() is None else None
            if not nr_left or not status or not status["jit_put_off"] + status["looks_unanswered"]:
                raise
            print("%s: opd had no time for all looks: once more" % failure, flush=True)
        for child in box.children:
            box.end_process(child.pid)
            child.wait()
        box.children.clear()
        box.shutdown()
        shutil.rmtree(box.session)


def test(box):
    if shutil.which("objdump") is None:
        raise Skip("no objdump here")
    for part in (crowds, ends_early, check_all, outlives):
        run_part(box, part)


def clean():
    for path in LEFT:
        if os.path.lexists(path):
            os.unlink(path)


if __name__ == "__main__":
    try:
        opdtest.run(test, larger_rings=True)
    finally:
        clean()
