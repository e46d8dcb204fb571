#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
A program in the place of opd-tables that crashes, lies, stops or sleeps with some images, and runs
the real one for all others. opd lives and answers, each fault is counted under a name, samples of
stacks are all there, and the stacks of programs beside them are right. A helper that hangs does not
keep opd from ending, and ends with it.
"""
import collections
import os
import shutil
import signal
import subprocess
import time

import elfsyms
import opdtest
from hot import compile_to
from opdtest import require, wait_until
from test_build_ids import can_be_asked
from test_stack_shares import FLAGS, NEEDED, check_ledger, functions_of, stacks_of

RATE = 997
MS = 500  # of each program
ANSWER_SECONDS = 1  # of --status, and it may be the fastest of a few
END_SECONDS = 2
TRIES = 5
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
# What the program does with an image, and what counts it: crashed, failed, or made, where only the
# image itself can show that the table is a lie.
CRASHED, FAILED, MADE = "tables_crashed", "tables_failed", "tables_made"
FAULTS = {"killed": CRASHED, "segv": CRASHED, "garbage": CRASHED, "empty": CRASHED, "short": CRASHED, "endless": CRASHED,
          "huge": FAILED, "counts": CRASHED, "refused": FAILED, "another": FAILED, "changed": FAILED, "offsets": MADE,
          "loops": MADE, "nonsense": MADE}
ANY_END = ["nonsense"]  # walks with that table may end in any way
if not can_be_asked():  # before Linux 6.11 the kernel tells no build-id: the table may be the image's
    FAULTS["another"] = MADE
    ANY_END.append("another")
# How walks end in such an image, when it has rows that opd took.
ENDS = {"offsets": "cut", "loops": "too_deep"}
SYMBOLS = ("_start", "main", "leaf", "direct", "compare", "sorted", "deep")
# What the C runtime runs before and after main.
RUNTIME = ("_init", "_fini", "frame_dummy", "register_tm_clones", "deregister_tm_clones", "__do_global_dtors_aux")


class Liar:
    """The program in the place of opd-tables, and the programs that it lies about."""

    def __init__(self, box):
        self.box, self.program = box, os.path.join(box.dir, "opd-tables")
        real = box.env.get("OPD_TABLES")
        if not real:
            raise opdtest.Skip("no opd-tables of a build")
        shutil.copy(real, os.path.join(box.dir, "real"))
        os.mkdir(os.path.join(box.dir, "said"))
        os.chmod(os.path.join(box.dir, "said"), 0o777)
        compile_to(box, self.program, "-I" + SOURCE, file="table_liar.c")
        box.env["OPD_TABLES"] = self.program
        self.faults, self.nr = {}, 0
        self.save()

    def save(self):
        path = os.path.join(self.box.dir, "faults")
        with open(path + ".new", "w", encoding="ascii") as stream:
            stream.writelines("%d %s\n" % row for row in self.faults.items())
        os.replace(path + ".new", path)

    def make(self, name, how=None):
        """An image of its own: its build-id is no other's."""
        path, self.nr = os.path.join(self.box.dir, name), self.nr + 1
        compile_to(self.box, path, *FLAGS, "-Wl,--build-id=0x%08x%032x" % (self.nr, os.getpid()), file="stacks.c")
        if how:
            self.faults[os.stat(path).st_ino] = how
            self.save()
        return path

    def process(self, how):
        """The process that does it, when it has begun."""
        path = os.path.join(self.box.dir, "said", how)
        wait_until(lambda: os.path.exists(path) and os.path.getsize(path), opdtest.HANG_SECONDS, "nobody wants the table of " + how)
        with open(path, encoding="ascii") as stream:
            return int(stream.read())


def start(box, path, ms=MS):
    return box.start(path, ms, stdout=subprocess.DEVNULL)


def check_answers(box):
    """--status is asked a few times: who hangs, hangs each time."""
    took = []
    for _ in range(TRIES):
        begin = time.monotonic()
        box.status()
        took.append(time.monotonic() - begin)
    require(min(took) < ANSWER_SECONDS, "--status takes %s s" % took)
    return min(took)


def check_right(box, path):
    """The stacks of a program that nobody lies about."""
    symbols, ends = elfsyms.symbol_ranges(path, SYMBOLS + RUNTIME), collections.Counter()
    for (end, frames), count in stacks_of(box.session, os.path.basename(path)).items():
        names = functions_of(frames, symbols)
        ends[end] += count
        require(end != "complete" or "main" not in names or names[0] == "_start", "a complete stack is %s" % names)
        require("?" not in names or names[0] == "?", "a frame in no function: %s" % names)
    total = sum(ends.values()) - ends["no_table_yet"]
    require(total >= 50 and ends["complete"] >= NEEDED * total, "the stacks of %s: %s" % (path, dict(ends)))
    return dict(ends)


def await_tables(box):
    wait_until(lambda: not box.status()["tables_waiting"], opdtest.HANG_SECONDS, "tables are not made")


def check_fault(box, how):
    """What is stored of the image that it is about."""
    symbols, ends, whole = elfsyms.symbol_ranges(os.path.join(box.dir, "v-" + how), SYMBOLS + RUNTIME), collections.Counter(), []
    for (end, frames), count in stacks_of(box.session, "v-" + how).items():
        names = functions_of(frames, symbols)
        is_ours = names not in ([], ["_start"])
        ends[end, is_ours] += count
        whole += [names] * (end == "complete" and is_ours)
    print("%-9s %s" % (how, {end: count for (end, _), count in ends.items()}))
    total, wanted = sum(ends.values()), ENDS.get(how)
    require(total >= RATE * MS / 1000 / 10, "%s: only %d stacks" % (how, total))
    if wanted:
        require(ends[wanted, True] >= 0.8 * (total - ends["no_table_yet", True]), "%s: %s" % (how, dict(ends)))
    # Before main a stack is in the loader alone or in _start, whose row says so, and whole.
    require(how in ANY_END or not whole, "%s: whole stacks without a table: %s of %s" % (how, whole, dict(ends)))


def run_faults(box, liar, beside):
    """All faults that are over at once; the answer about `changed` comes when its image is another one."""
    for how, counter in FAULTS.items():
        path, before = liar.make("v-" + how, how), box.status()
        child, other = start(box, path), start(box, beside)
        if how == "changed":
            liar.process(how)
            os.utime(path)
            open(os.path.join(box.dir, "go"), "w", encoding="ascii").close()
        for process in (child, other):
            require(process.wait(opdtest.CALL_SECONDS) == 0, "%s ended with %s" % (path, process.returncode))
        wait_until(lambda: box.status()[counter] > before[counter], opdtest.HANG_SECONDS,
                   "%s is not counted as %s" % (how, counter))
        after = box.status()
        require(after[CRASHED] - before[CRASHED] == (counter == CRASHED),
                "%s: %d crashes" % (how, after[CRASHED] - before[CRASHED]))
        require(not after["tables_timed_out"], how + " is counted as an image without an answer in time")
    check_answers(box)


def check_stopped(box, liar):
    """A helper that stops for a minute: meanwhile opd works, then other images have their turn."""
    stopped, later = liar.make("v-stopped", "stopped"), liar.make("later")
    child = start(box, stopped)
    pid = liar.process("stopped")
    wait_until(lambda: opdtest.is_stopped(pid), opdtest.HANG_SECONDS, "the helper does not stop")
    before = box.status()
    box.good(later, MS)
    require(child.wait(opdtest.CALL_SECONDS) == 0, "%s ended with %s" % (stopped, child.returncode))
    print("--status beside a helper that is stopped: %.3f s" % check_answers(box))
    after = box.status()
    require(after["tables_waiting"] >= 2 and not after["tables_timed_out"], "nothing waits for the helper: %s" % after)
    for event, old in zip(after["events"], before["events"]):
        require(event["received"] > old["received"], "nothing is received beside a helper that is stopped: %s" % event)
    wait_until(lambda: box.status()["tables_timed_out"] == 1, opdtest.HANG_SECONDS, "nobody gives the helper up")
    wait_until(lambda: not opdtest.is_alive(pid), opdtest.HANG_SECONDS, "the helper that was given up is there")
    await_tables(box)
    box.opcontrol("--dump")
    have = collections.Counter(stacks_of(box.session, "later"))
    box.good(later, MS)
    box.opcontrol("--dump")
    ends = collections.Counter()
    for (end, _), count in (collections.Counter(stacks_of(box.session, "later")) - have).items():
        ends[end] += count
    require(ends["complete"] >= NEEDED * sum(ends.values()) > 50, "after the hang: %s" % dict(ends))


def descendants(pid):
    found, wanted = set(), [pid]
    while wanted:
        for _, text in opdtest.each_thread(wanted.pop(), "children"):
            wanted += [int(word) for word in text.split()]
            found.update(int(word) for word in text.split())
    return found


def end_of(box, end):
    """The seconds that opd takes to end, and its processes that were there."""
    processes, begin = descendants(box.daemon.pid), time.monotonic()
    end()
    require(box.daemon.wait(opdtest.START_SECONDS) == 0, "opd ended with %s: %s" % (box.daemon.returncode, box.log_text()))
    took = time.monotonic() - begin
    wait_until(lambda: not [pid for pid in processes if opdtest.is_alive(pid)], opdtest.HANG_SECONDS,
               "processes of opd are left: %s" % processes)
    box.check_rest()
    return took, processes


def rights_of(pid):
    with open("/proc/%d/status" % pid, encoding="ascii", errors="replace") as stream:
        return {key: words.split() for key, _, words in (line.partition(":") for line in stream)}


def check_rights(box, pid):
    """What runs opd-tables has no rights; where opd may change users, it is another one."""
    rights, own = rights_of(pid), rights_of(box.daemon.pid)
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        require(int(rights[name][0], 16) == 0, "the helper has %s %s" % (name, rights[name]))
    require(rights["NoNewPrivs"] == ["1"], "the helper may gain rights")
    require(box.run_as != "root" or not set(rights["Uid"] + rights["Gid"]) & set(own["Uid"] + own["Gid"]),
            "the helper is user %s, opd is %s" % (rights["Uid"], own["Uid"]))
    require(os.listdir("/proc/%d/fd" % pid) and all(
        os.readlink("/proc/%d/fd/%s" % (pid, fd)).startswith((box.dir, "/memfd:opd-table", "/dev/null"))
        for fd in os.listdir("/proc/%d/fd" % pid)), "the helper has other files")


def check_program(box):
    """The real program, at work: nobody but root can look into it, and it has its filter."""
    libraries = [os.path.join(where, name) for where in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64")
                 if os.path.isdir(where) for name in os.listdir(where) if ".so" in name]
    image = max((path for path in libraries if os.path.isfile(path)), key=os.path.getsize)
    for _ in range(100):
        with open(image, "rb") as stream:
            child = subprocess.Popen(["setpriv", "--reuid=%d" % opdtest.DAEMON_UID, "--clear-groups",
                                      os.path.join(box.dir, "real")],
                                     stdin=stream, stdout=subprocess.DEVNULL, env={})
        is_closed = False
        while child.poll() is None and not is_closed:
            try:
                is_closed = rights_of(child.pid)["Seccomp"] == ["2"]
                owner = os.stat("/proc/%d/environ" % child.pid).st_uid
            except OSError:
                break
        if is_closed:
            child.kill()
            child.wait()
            require(owner == 0, "others of user %d can look into opd-tables" % owner)
            return
    raise opdtest.Skip("opd-tables has no filter here, or is too fast to be seen")


def check_ends(box, liar, beside):
    """opd ends while the helper sleeps, however it is told to, as soon as it does without one."""
    ways = {"--shutdown": lambda: box.opcontrol("--shutdown"), "SIGTERM": lambda: box.daemon.send_signal(signal.SIGTERM)}
    asleep, said = liar.make("v-asleep", "asleep"), os.path.join(box.dir, "said", "asleep")
    for name, way in ways.items():
        took = {}
        for path in (beside, asleep):
            if os.path.exists(said):
                os.unlink(said)
            box.start_daemon("--event=default", "--stacks=%d" % RATE)
            child = start(box, path, 1000 * opdtest.CALL_SECONDS)
            pid = liar.process("asleep") if path == asleep else 0
            if pid:
                check_rights(box, pid)
            took[path], processes = end_of(box, way)
            require(not pid or (pid in processes and not opdtest.is_alive(pid)), "the helper is no process of opd, or is left")
            box.end_busy(child)
        print("%s beside a helper that sleeps: %.2f s, without one %.2f s" % (name, took[asleep], took[beside]))
        require(took[asleep] < max(END_SECONDS, 1 + 3 * took[beside]), "%s takes %.1f s" % (name, took[asleep]))


def test(box):
    liar = Liar(box)
    check_program(box)
    beside = liar.make("beside")
    box.start_daemon("--event=default", "--stacks=%d" % RATE)
    box.good(beside, 1000)
    await_tables(box)
    run_faults(box, liar, beside)
    check_stopped(box, liar)
    box.opcontrol("--stop")
    status = box.check_ledger()
    check_ledger(status)
    for how in FAULTS:
        check_fault(box, how)
    print("beside them: %s" % check_right(box, beside))
    box.good(os.path.join(box.bin, "opcheck"), "--session-dir=" + box.session)
    box.shutdown()
    check_ends(box, liar, beside)


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
