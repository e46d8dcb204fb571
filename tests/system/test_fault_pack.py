#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
opd is killed while it packs a session that it closed, at a random moment, beside a dump and a
report. The report beside it, the next daemon, opcheck and all readers find each sample once. Then
the power is cut at such moments: what a dump had promised is in the session afterwards.

usage: test_fault_pack.py [ROUNDS [CUTS]]
"""
import os
import random
import shutil
import signal
import sys
import time

import faultload
import opdtest
from opdtest import reader, require
from test_fault_rotate import close_session, counts, start_after_the_cut

NR_FILES = 1100  # opd packs 1,024 and more
RATE, MS, PAGES = 1000, 1000, 3
POLL_S = 0.0005
SETUP = ("--event=page-faults:1", "--separate=library,kernel,thread")
CUTS = "removal", "packed.new"  # the moments


def total_of(box, session):
    return sum(f.total for f in reader.read_session(box.session, session, strict=True) if not f.name.callee)


def reported(text):
    return sum(int(line.split()[0]) for line in text.splitlines() if line.strip() and line.split()[0].isdigit() and line[0] != "\t")


def fill(box, path):
    """A session with many files: each thread has some of its own."""
    while box.status()["nr_session_files"] < NR_FILES:
        box.good(path, "threads", RATE, MS, PAGES)
        box.opcontrol("--dump")


def nr_tops(session):
    """How much the packer has left: the files of the top directories are removed one by one."""
    return sum(len(names) for _, _, names in os.walk(os.path.join(session, "{root}")))


def await_moment(session, moment, span_s, rng):
    """Until the packer is at the moment, or has ended."""
    if moment == "time":
        time.sleep(rng.random() * span_s)
        return
    end = time.monotonic() + opdtest.HANG_SECONDS
    left = rng.randrange(1, NR_FILES) if moment == "removal" else 0
    while os.path.exists(os.path.join(session, "closing")) and time.monotonic() < end:
        if moment == "removal" and os.path.exists(os.path.join(session, "packed")) and nr_tops(session) <= left:
            return
        if moment != "removal" and os.path.exists(os.path.join(session, moment)):
            return
        time.sleep(POLL_S)


def where(session):
    """What the kill met."""
    names = [name for name in ("closing", "packed.new", "packed") if os.path.exists(os.path.join(session, name))]
    return "%s, %d files" % (" ".join(names) or "nothing", nr_tops(session))


def one_round(box, name, moment, span_s, rng):
    """Returns how long the packer took when nobody killed it."""
    session = os.path.join(box.session, "samples", name)
    box.opcontrol("--stop")
    wanted = total_of(box, "current")
    require(wanted, "the session is empty")
    save = box.start_piped(os.path.join(box.bin, "opcontrol"), "--save=" + name)
    opdtest.wait_until(lambda: os.path.exists(session), opdtest.HANG_SECONDS, "no session is closed")
    begin = time.monotonic()
    opreport = (os.path.join(box.bin, "opreport"), "--session-dir=" + box.session, "-n", "-f", "--merge=all", "session:" + name)
    beside = box.start_piped(*opreport)
    dump = box.start_piped(os.path.join(box.bin, "opcontrol"), "--dump")
    if moment:
        await_moment(session, moment, span_s, rng)
        box.daemon.send_signal(signal.SIGKILL)
        box.daemon.wait()
    else:
        opdtest.wait_until(lambda: not os.path.exists(os.path.join(session, "closing")), opdtest.HANG_SECONDS, "it stays open")
    took_s, met = time.monotonic() - begin, where(session)
    text = beside.communicate(timeout=opdtest.CALL_SECONDS)[0]
    dump.communicate(timeout=opdtest.CALL_SECONDS)  # it and --save fail when opd was killed under them
    save.communicate(timeout=opdtest.CALL_SECONDS)
    for child in (beside, dump, save):
        box.children.remove(child)
    require(beside.returncode == 0 and reported(text.decode()) == wanted,
            "%s: opreport beside the packer ended with %s and has %s samples, not %d" % (
                name, beside.returncode, text, wanted))
    print("%s, %s: killed at %s; %d samples" % (name, moment, met, wanted), flush=True)
    require(total_of(box, name) == wanted, "%s has %d samples after the kill, not %d" % (name, total_of(box, name), wanted))
    if moment:
        box.start_daemon()
    opdtest.wait_until(lambda: not os.path.exists(os.path.join(session, "closing")), opdtest.HANG_SECONDS, "nobody ends the close")
    result = box.run(os.path.join(box.bin, "opcheck"), "--session-dir=" + box.session)
    require(result.rc == 0, "%s: opcheck: %s%s" % (name, result.out, result.err))
    require(total_of(box, name) == wanted, "%s has %d samples after the start, not %d" % (name, total_of(box, name), wanted))
    require(reported(box.good(*opreport)) == wanted, "opreport of %s" % name)
    return took_s


def one_cut(box, shim, path, number, rng):
    """The disk keeps the order of names, as a journal does, and the contents that were synced."""
    name = "cut-%d" % number
    session, after = os.path.join(box.session, "samples", name), os.path.join(os.path.dirname(box.session), "after-" + name)
    fill(box, path)
    box.opcontrol("--stop")
    promised = counts(box.session, ["current"])
    box.opcontrol("--dump")
    saving = close_session(box, name)
    await_moment(session, CUTS[number % len(CUTS)], 0, rng)
    box.daemon.send_signal(signal.SIGSTOP)
    opdtest.wait_until(lambda: opdtest.is_stopped(box.daemon.pid), opdtest.HANG_SECONDS, "the daemon does not stop")
    print("%s: cut at %s; %d counts promised" % (name, where(session), len(promised)), flush=True)
    shim.cut_power_of_data(box.session, after)
    start_after_the_cut(after, [name, "current"], promised)
    shutil.rmtree(after)
    box.daemon.send_signal(signal.SIGCONT)
    require(saving.wait(opdtest.HANG_SECONDS) == 0, "--save failed")
    opdtest.wait_until(lambda: not os.path.exists(os.path.join(session, "closing")), opdtest.HANG_SECONDS, "it stays open")
    shutil.rmtree(session)
    box.opcontrol("--start")


def cut_power(box, path, nr_cuts, rng):
    shim = faultload.Shim(box)
    box.session = os.path.join(box.tmpfs("volume", "size=400m"), "session")  # tmpfs uses no inode twice
    box.configure(RingSize="8M", SidebandSize="8M")
    box.start_daemon(*SETUP, "--image=" + path, env=shim.env)
    for number in range(nr_cuts):
        one_cut(box, shim, path, number, rng)
    box.shutdown()


def rounds(nr_rounds, nr_cuts):
    def test(box):
        rng = random.Random(nr_rounds)
        path = box.copy_work("threads-app", "storm")
        box.configure(RingSize="8M", SidebandSize="8M")
        box.start_daemon(*SETUP, "--image=" + path)
        moments, span_s = ("packed.new", "removal", "time", "packed"), 0
        for i in range(nr_rounds + 1):
            fill(box, path)
            took_s = one_round(box, "round-%d" % i, moments[(i - 1) % len(moments)] if i else None, span_s, rng)
            span_s = span_s or took_s
            shutil.rmtree(os.path.join(box.session, "samples", "round-%d" % i))
            box.opcontrol("--start")
        box.shutdown()
        cut_power(box, path, nr_cuts, rng)
    return test


if __name__ == "__main__":
    opdtest.run(rounds(int(sys.argv[1]) if len(sys.argv) > 1 else 4, int(sys.argv[2]) if len(sys.argv) > 2 else 2))
