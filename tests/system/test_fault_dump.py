#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
What --dump promises, and what waits for the disk. The daemon runs on a disk that remembers what was
synced (faultshim.c): right after a
dump the power is cut, and all that was taken before the call is there. And while the disk does not
answer, samples are counted.
"""
import errno
import os
import shutil
import signal

import faultload
import opdtest
import test_jit
from opdtest import reader, require
from test_fault_rotate import counts, links, start_after_the_cut

FAULTS = 2000
JIT_MS = 1000  # half of it for each of two functions


def read_what_is_whole(session):
    """The files. A file that was made after the dump began may be there by its name only."""
    base, files, nr_empty = os.path.join(session, "samples", "current"), [], 0
    for path in reader.list_files(base):
        with open(os.path.join(base, path), "rb") as stream:
            data = stream.read()
        if not data:
            nr_empty += 1
            continue
        header, keys, nr_nodes = reader.parse_samples(path, data, check_links=False)
        files.append(reader.SampleFile(path, reader.parse_name(path), header, keys, nr_nodes))
    return files, nr_empty


def counts_of(files):
    return {(f.path, key): count for f in files for key, count in f.keys.items()}


def inodes(session):
    base = os.path.join(session, "samples", "current")
    return {path: os.stat(os.path.join(base, path)).st_ino for path in reader.list_files(base)}


def look(box):
    """Inodes first, then counts: a file with the same inode afterwards had at least these counts.
    """
    return inodes(box.session), counts(box.session, ["current"])


def require_all(before, found, when):
    for what, count in before.items():
        require(found.get(what, 0) >= count, "%s: key 0x%x: %d before the dump, %d %s" % (*what, count, found.get(what, 0), when))


def cut(box, shim, name, before):
    """Two disks lose power at once. The first has synced data only, names included: files that did
    not grow are unchanged there. The second keeps the order of names, as a journal does: the next
    daemon finds the contents of every file there, even after a replacement. *before* is what the
    dump promised. Returns the first disk, and how many files were not checked there.
    """
    as_before, promised = before
    strict, ordered = (os.path.join(os.path.dirname(box.session), kind + name) for kind in ("synced-", "ordered-"))
    box.daemon.send_signal(signal.SIGSTOP)
    opdtest.wait_until(lambda: opdtest.is_stopped(box.daemon.pid), opdtest.HANG_SECONDS, "the daemon does not stop")
    now = inodes(box.session)
    shim.cut_power(box.session, strict)
    shim.cut_power_of_data(box.session, ordered)
    box.daemon.send_signal(signal.SIGCONT)
    grown = {path for path, inode in as_before.items() if now.get(path) != inode}
    require_all({what: count for what, count in promised.items() if what[0] not in grown},
                counts_of(read_what_is_whole(strict)[0]), "on the disk after the cut")
    found = start_after_the_cut(ordered, ["current"], promised)
    shutil.rmtree(ordered)
    return strict, found, grown


def samples_of(found, app):
    return sum(count for (path, _), count in found.items() if path.startswith("{root}%s/" % app) and "/page-faults." in path)


def dump_then_cut(box, shim, number):
    app = box.copy_work("dumped-%d" % number)
    lost_before = box.status()["events"][0]["lost_kernel"]
    box.good(app, "faults", FAULTS)
    before = look(box)
    box.opcontrol("--dump")
    after, found, grown = cut(box, shim, str(number), before)
    files, nr_empty = read_what_is_whole(after)
    of_app = samples_of(found, app)
    lost = box.status()["events"][0]["lost_kernel"] - lost_before
    print("cut %d: %d files, %d that grew meanwhile, %d more by name only, %d samples; of %d faults just before the "
          "dump %d are there" %
          (number, len(files), len(grown), nr_empty, sum(found.values()), FAULTS, of_app))
    require(of_app + lost >= FAULTS, "%d faults before the dump, %d after the cut" % (FAULTS, of_app))
    return after, counts_of(files)


def kept_paths(box):
    """The paths of files that wait for the disk, also of those that are in parts."""
    tmp = os.path.join(box.session, "tmp")
    texts = {name: os.readlink(os.path.join(tmp, name)) for name in links(box)}
    for name, text in texts.items():
        if text.startswith("/"):
            yield "".join(texts["%s.%d" % (name, part)] for part in range(1, int(text[1:]) + 1))
        elif name.count(".") == 1:
            yield text


def grow_held(box, growing):
    """While the disk is held: no link goes. A file lacks the samples that the rings had no room for."""
    def have_grown():
        growing.again()
        box.await_look()
        paths = list(kept_paths(box))
        return all(any(app in path for path in paths) for app in growing.apps)
    growing.grow()
    opdtest.wait_until(have_grown, opdtest.HANG_SECONDS, "not every file grew")


def grow_beside_dumps(box, shim):
    """Files of an earlier dump grow while the next dump waits for the disk, and after it has
    failed.
    """
    long = os.path.join(*["d" * 240] * 4)  # links of this disk have no room for its sample files' paths
    os.makedirs(os.path.join(box.dir, long))
    growing = faultload.Growing(box, os.path.join(long, "grows-meanwhile"), 2)
    box.opcontrol("--dump")
    before = look(box)
    shim.say("hold")
    dump = box.start(os.path.join(box.bin, "opcontrol"), "--dump")
    grow_held(box, growing)
    require(dump.poll() is None, "the dump does not wait for the disk")
    shim.say()
    require(dump.wait(opdtest.HANG_SECONDS) == 0, "the dump has failed")
    meanwhile = cut(box, shim, "grown", before)[2]
    before = look(box)
    box.opcontrol("--dump")
    shim.say("hold")
    grow_held(box, growing)
    require(any(name.endswith(".2") for name in links(box)), "no path is in parts: %s" % links(box))
    later = cut(box, shim, "held", before)[2]
    shim.say()
    print("%d files grew during a dump, %d behind it" % (len(meanwhile), len(later)))
    for grown in (meanwhile, later):
        require(all(any(app in path for path in grown) for app in growing.apps), "grown: %s" % grown)


def has_symbol(session, path, name):
    with open(os.path.join(session, path), "rb") as stream:
        return b"\0%s\0" % name in stream.read()


def symbols_beside_dumps(box, shim):
    """The symbols of JIT code that a dump has promised are on the disk, whatever it has of the
    newer ones.
    """
    app = box.copy_work("jit-cut", "jit_work")
    child = test_jit.start(box, app, "turn", JIT_MS)

    def find():
        return [os.path.relpath(path, box.session) for path in test_jit.objects_of(box, app)]

    def has_old():
        box.opcontrol("--dump")
        return find()
    opdtest.wait_until(has_old, opdtest.HANG_SECONDS, "no object of JIT code")
    before, (path,) = look(box), find()
    require(has_symbol(box.session, path, b"jit_old") and not has_symbol(box.session, path, b"jit_new"), "the dump was too late")
    box.opcontrol("--dump")
    shim.say("hold")
    child.send_signal(signal.SIGUSR1)
    opdtest.wait_until(lambda: test_jit.has_lines(test_jit.map_path(child.pid), 2), opdtest.HANG_SECONDS, "no second function")
    require(child.wait(opdtest.HANG_SECONDS) == 0, "jit_work has failed")
    stop = box.start(os.path.join(box.bin, "opcontrol"),
                     "--stop")  # writes the symbols, and then waits for the disk to forget that it profiles
    opdtest.wait_until(lambda: has_symbol(box.session, path, b"jit_new"), opdtest.HANG_SECONDS,
                       "the newer symbols wait for the disk")
    ordered = os.path.join(os.path.dirname(box.session), "ordered-symbols")
    box.daemon.send_signal(signal.SIGSTOP)
    opdtest.wait_until(lambda: opdtest.is_stopped(box.daemon.pid), opdtest.HANG_SECONDS, "the daemon does not stop")
    shim.cut_power_of_data(box.session, ordered)
    box.daemon.send_signal(signal.SIGCONT)
    require(not os.path.getsize(os.path.join(ordered, path)), "the disk has the newer symbols")
    start_after_the_cut(ordered, ["current"], before[1])
    require(has_symbol(ordered, path, b"jit_old"), "the symbols that a dump had promised are gone")
    shim.say()
    require(stop.wait(opdtest.HANG_SECONDS) == 0, "the stop has failed")
    box.opcontrol("--dump")
    after = os.path.join(os.path.dirname(box.session), "synced-symbols")
    shim.cut_power(box.session, after)
    require(has_symbol(after, path, b"jit_new"), "the newer symbols are not on the disk")
    opdtest.wait_until(lambda: not links(box), opdtest.HANG_SECONDS, "links of what is on the disk are left")
    box.opcontrol("--start")


def new_symbols(box, shim):
    """The first object of a process, which no dump has promised: after a power cut its file is
    empty, and the next daemon puts it aside.
    """
    app = box.copy_work("jit-new", "jit_work")
    shim.say("hold")
    child = test_jit.start(box, app, "map", JIT_MS)
    require(child.wait(opdtest.HANG_SECONDS) == 0, "jit_work has failed")
    stop = box.start(os.path.join(box.bin, "opcontrol"), "--stop")
    opdtest.wait_until(lambda: test_jit.objects_of(box, app), opdtest.HANG_SECONDS, "no object of JIT code")
    (path,) = [os.path.relpath(name, box.session) for name in test_jit.objects_of(box, app)]
    ordered = os.path.join(os.path.dirname(box.session), "ordered-new")
    box.daemon.send_signal(signal.SIGSTOP)
    opdtest.wait_until(lambda: opdtest.is_stopped(box.daemon.pid), opdtest.HANG_SECONDS, "the daemon does not stop")
    shim.cut_power_of_data(box.session, ordered)
    box.daemon.send_signal(signal.SIGCONT)
    require(os.path.getsize(os.path.join(ordered, path)) == 0, "the disk has the symbols already")
    start_after_the_cut(ordered, ["current"], {})
    require(not os.path.lexists(os.path.join(ordered, path)), "an object with nothing in it is left")
    shim.say()
    require(stop.wait(opdtest.HANG_SECONDS) == 0, "the stop has failed")
    box.opcontrol("--start")


def total_of(box, app):
    """Reads no other file: there may be thousands."""
    total, base = 0, os.path.join(box.session, "samples", "current")
    for path in reader.list_files(base):
        if reader.parse_name(path).app[1] == app:
            with open(os.path.join(base, path), "rb") as stream:
                total += sum(reader.parse_samples(path, stream.read(), check_links=False)[1].values())
    return total


def counts_while_the_disk_is_held(box, shim):
    """Files that a dump has promised grow: they wait for the disk, the samples do not."""
    growing = faultload.Growing(box, "growing")
    box.opcontrol("--dump")
    shim.say("hold")
    grow_held(box, growing)
    for i in range(3):
        app = box.copy_work("unhindered-%d" % i)
        box.work_until(lambda name=app: total_of(box, name) > 0, "nothing is counted while the disk is held", app, "faults", FAULTS)
    waiting = links(box)
    require(waiting, "what had to wait for the disk did not")
    shim.say()
    opdtest.wait_until(lambda: not set(links(box)) & set(waiting), opdtest.HANG_SECONDS,
                       "%s are left when the disk answers again" % waiting)
    print("%d files waited for the disk" % len(waiting))


def starts_after_the_cut(box, after, found):
    """The next daemon starts on the contents of the disk: every reader accepts the session, and all
    promised samples are there.
    """
    shutil.rmtree(box.session)
    shutil.copytree(after, box.session)
    box.start_daemon(start=False)
    require("did not shut down cleanly" in box.log_text(), "the session was not looked at: %s" % box.log_text())
    have = counts_of(box.files())
    require(have == found, "the start changed what was there: %s" % sorted(set(have.items()) ^ set(found.items()))[:5])
    box.opreport("-n", "-f")
    box.shutdown()


def stop_that_cannot_write(box, shim):
    """The exit code of the daemon reports it, and the lock stays. When opcontrol removes the lock,
    the next daemon checks the session all the same.
    """
    for removed in (False, True):
        box.start_daemon(env=shim.env)
        box.good(box.copy_work("unwritten-%d" % removed), "faults", FAULTS)
        shim.say("fail fsync %d samples/current" % errno.EIO, "fail syncfs %d" % errno.EIO)
        box.daemon.send_signal(signal.SIGTERM)
        code = box.daemon.wait(opdtest.START_SECONDS)
        require(code == 2, "a stop that cannot write ends with %s" % code)
        # the last minute of the timeline cannot be written, either: that is told beside it
        last = box.log_text().splitlines()[-2:]
        require(any("the lock stays" in line and os.strerror(errno.EIO) in line for line in last), "the log says %s" % last)
        require(os.path.exists(os.path.join(box.session, "lock")), "the lock is gone")
        shim.say()
        if removed:
            box.opcontrol("--status")
            require(not os.path.exists(os.path.join(box.session, "lock")), "opcontrol left the stale lock")
        with open(os.path.join(box.session, "tmp", "dcookies-closed-7"), "wb"):
            pass  # of a write-out that a kill has ended: the start removes it
        looks = box.log_text().count("did not shut down cleanly")
        box.start_daemon(start=False)
        require(box.log_text().count("did not shut down cleanly") == looks + 1,
                "the session was not looked at: %s" % box.log_text())
        box.shutdown()


def dump_without_its_ledger(box, shim):
    """The samples can be written, but not their ledger: a dump fails until it can write both, and
    writes the samples all the same.
    """
    for call, part in (("openat", "tmp/stats"), ("renameat", "current/stats"), ("openat", "tmp/ledger"),
                       ("renameat", "current/ledger")):
        app = box.copy_work("unbooked-%s" % part.replace("/", "-"))
        shim.say("fail %s %d %s" % (call, errno.ENOSPC, part))
        box.good(app, "faults", FAULTS)
        line = box.refused(os.path.join(box.bin, "opcontrol"), "--dump")
        require("ledger" in line and os.strerror(errno.ENOSPC) in line, "--dump without %s: %s" % (part, line))
        require(total_of(box, app) > 0, "nothing is counted without %s" % part)
        shim.say()
        box.opcontrol("--dump")


def save_that_cannot_write(box, shim):
    """A session that is closed ends with the whole file system: the syncer, or another dump, may have
    files of it that this write-out does not know. They are few here, so nothing else calls syncfs.
    """
    app = box.copy_work("saved-app")
    box.start_daemon("--image=" + app, env=shim.env)
    box.good(app, "faults", FAULTS)
    box.opcontrol("--dump")
    shim.say("fail syncfs %d" % errno.EIO)
    line = box.refused(os.path.join(box.bin, "opcontrol"), "--save=unwritten")
    require(os.strerror(errno.EIO) in line, "--save without syncfs: %s" % line)
    shim.say()
    box.good(app, "faults", FAULTS)
    box.opcontrol("--save=written")
    box.shutdown()


def test(box):
    shim = faultload.Shim(box)
    box.session = os.path.join(box.tmpfs("volume", "size=400m"), "session")  # that gives no inode twice
    box.configure(RingSize="8M")
    box.start_daemon("--event=page-faults:1", "--event=TIMER:1000000", "--separate=library,kernel", env=shim.env)
    for i in range(3):
        dump_then_cut(box, shim, i)
    grow_beside_dumps(box, shim)
    symbols_beside_dumps(box, shim)
    new_symbols(box, shim)
    busy = faultload.start_busy(box)
    counts_while_the_disk_is_held(box, shim)
    after, found = dump_then_cut(box, shim, 3)
    faultload.end_busy(busy)
    dump_without_its_ledger(box, shim)
    box.shutdown()
    stop_that_cannot_write(box, shim)
    starts_after_the_cut(box, after, found)
    save_that_cannot_write(box, shim)


if __name__ == "__main__":
    try:
        opdtest.run(test)
    finally:
        test_jit.clean()
