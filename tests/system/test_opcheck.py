#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
opcheck on a real session and on copies of it that were damaged in every way that is repaired: what
it finds, what it leaves, what it makes up (nothing), and the
exit codes.
"""
import fcntl
import json
import os
import re
import shutil
import struct

import opdtest
import reader
from opdtest import require
from test_rotation import read_ledger

NODES = 104
SOUND, REPAIRED, DAMAGED, FAILED = range(4)


def biggest(session, app=""):
    """The path of the sample file with the most nodes, of those with this in their path, and its
    nodes.
    """
    best = max((f for f in reader.read_session(session) if app in f.path), key=lambda f: f.nr_nodes)
    return os.path.join(session, "samples", "current", best.path), best


def patch(path, offset, data):
    with open(path, "r+b") as stream:
        stream.seek(offset)
        stream.write(data)


def read(path):
    with open(path, "rb") as stream:
        return stream.read()


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as stream:
        stream.write(data)


def size_of(path):
    return struct.unpack_from("<I", read(path), 72)[0]


def break_magic(path):
    patch(path, 0, b"XXXX")


def break_short(path):
    os.truncate(path, 60)


def break_truncated(path):
    os.truncate(path, NODES + 16 * 3 + 5)


def break_longer(path):
    os.truncate(path, os.path.getsize(path) + 4096)


def break_size(path):
    patch(path, 72, struct.pack("<I", 3000000001))


def break_current(path):
    patch(path, 76, struct.pack("<I", 0xffffffff))


def break_hash(path):
    size = size_of(path)
    patch(path, NODES + 16 * size, b"\xff" * 4 * size)


def break_unlinked(path):
    size = size_of(path)
    patch(path, NODES + 16 * size, bytes(4 * size))


def break_circle(path):
    patch(path, NODES + 16 + 12, struct.pack("<I", 1))


def break_torn(path):
    patch(path, NODES + 16 + 8, struct.pack("<I", 0))


def break_twice(path):
    patch(path, NODES + 32, read(path)[NODES + 16:NODES + 24])


# What is done to the file, and whether samples are certainly lost by it.
FILES = [(break_truncated, True), (break_longer, False), (break_size, False), (break_current, False),
         (break_hash, False), (break_unlinked, False),
         (break_circle, False), (break_torn, True), (break_twice, False)]


class Copies:
    """Fresh copies of the good session, each damaged in one way."""

    def __init__(self, box):
        self.box, self.number = box, 0

    def fresh(self):
        self.number += 1
        path = os.path.join(self.box.dir, "copy-%d" % self.number)
        shutil.copytree(self.box.session, path, symlinks=True)
        return path

    def opcheck(self, session, code, *options):
        result = self.box.run(os.path.join(self.box.bin, "opcheck"), "--session-dir=" + session, "--json", *options)
        require(result.rc == code, "opcheck %s: exit code %d, not %d: %s%s" % (options, result.rc, code, result.out, result.err))
        report = json.loads(result.out)
        require(report["exit_code"] == code, "the report says exit code %d" % report["exit_code"])
        return report["sessions"]

    def repaired(self, session, what):
        """Damaged, then repaired, then sound, and read by every reader; the files of it."""
        found = self.opcheck(session, DAMAGED)
        require(any(p["outcome"] == "damaged" for s in found for p in s["problems"]), "%s: nothing is told" % what)
        before = {p: read(os.path.join(d, p)) for d, _, names in os.walk(session) for p in names if d.endswith("current")}
        mended = self.opcheck(session, REPAIRED, "--repair")
        for problem in (p for s in mended for p in s["problems"]):
            print("%s: %s: %s (%s)" % (what, problem["outcome"], problem["fault"], problem["detail"]))
        require(before.keys() >= {"ledger"}, "the session has no ledger")
        self.opcheck(session, SOUND)
        self.opcheck(session, SOUND, "--repair")
        files = reader.read_session(session, strict=True)
        self.box.good(os.path.join(self.box.bin, "opreport"), "--session-dir=" + session)
        return files


def stored_and_lost(session):
    """What the ledger of the current session has as received, stored and lost_io_error."""
    rows = read_ledger(os.path.join(session, "samples", "current"))[1].values()
    return tuple(sum(row[name] for row in rows) for name in ("received", "stored", "lost_io_error"))


def check_files(copies, good):
    for damage, loses in FILES:
        session = copies.fresh()
        path, before = biggest(session)
        require(before.nr_nodes >= 4, "the largest file has only %d nodes" % before.nr_nodes)
        damage(path)
        after = {f.path: f for f in copies.repaired(session, damage.__name__)}
        for old in good:
            new = after[old.path]
            if old.path != before.path:
                require(new.keys == old.keys, "%s changed beside the damaged one" % old.path)
            elif damage is not break_twice:
                require(all(old.keys.get(k) == v for k, v in new.keys.items()), "%s: counts were made up" % damage.__name__)
                require(loses == (new.keys != old.keys), "%s: %d of %d samples are left" % (damage.__name__, new.total, old.total))
            else:
                require(new.total == old.total, "%s: %d samples, not %d" % (damage.__name__, new.total, old.total))


def check_lost(copies, good):
    """What is no sample file is kept aside, and nothing else is touched."""
    for damage in (break_magic, break_short):
        session = copies.fresh()
        path, before = biggest(session)
        damage(path)
        content = read(path)
        book = stored_and_lost(session)
        after = copies.repaired(session, damage.__name__)
        require(stored_and_lost(session) == (book[0], book[1] - before.total, book[2] + before.total),
                "%d samples are gone with a file: received, stored and lost were %s and are %s" % (before.total, book,
                        stored_and_lost(session)))
        require({f.path for f in after} == {f.path for f in good} - {before.path}, "other files went")
        aside = os.path.join(session, "samples", "current", "damaged")
        require([read(os.path.join(aside, n)) for n in os.listdir(aside)] == [content], "it was not kept")
    session = copies.fresh()
    current = os.path.join(session, "samples", "current")
    write(os.path.join(current, "{root}", "bin", "stray"), b"what")
    elsewhere = os.path.join(session, "elsewhere")
    write(elsewhere, b"not opd's")
    before = os.lstat(elsewhere)
    os.symlink(elsewhere, os.path.join(current, "{root}", "link"))
    os.makedirs(os.path.join(current, "{kern}"), exist_ok=True)
    os.mkfifo(os.path.join(current, "{kern}", "pipe"))
    copies.repaired(session, "strangers")
    after = os.lstat(elsewhere)
    require(read(elsewhere) == b"not opd's" and (after.st_ino, after.st_mode, after.st_mtime_ns) == (before.st_ino,
            before.st_mode, before.st_mtime_ns),
            "the link was followed")
    links = [e for e in os.scandir(os.path.join(current, "damaged")) if e.is_symlink()]
    require([os.readlink(e.path) for e in links] == [elsewhere], "the link itself was not kept")


def leave_pending(session, torn):
    """A file that had grown, and a power cut took the new one's pages: the old one is in tmp/, by a
    name that has the new one's inode.
    """
    path, _ = biggest(session)
    content = read(path)
    kept = os.path.join(session, "tmp", "kept")
    os.rename(path, kept)
    whole = NODES + 16 * 3 if torn else 0
    write(path, content[:whole] + bytes(len(content) - whole))
    name = os.path.join(session, "tmp", "sample.%s-%x")
    inode = os.stat(path).st_ino
    os.rename(kept, name % ("old", inode))
    os.symlink(os.path.relpath(path, session), name % ("for", inode))


def check_pending(copies, good):
    """After a power cut tmp/ has what a dump has promised: a repair takes it from there, in
    whatever session the file is now.
    """
    for torn in (False, True):
        for name in ("current", "2026-11-21T03:00Z"):
            session = copies.fresh()
            leave_pending(session, torn)
            if name != "current":
                os.rename(os.path.join(session, "samples", "current"), os.path.join(session, "samples", name))
                write(os.path.join(session, "samples", name, "closing"), b"")
            found = copies.opcheck(session, REPAIRED, "--repair", name)[0]["problems"]
            require(any("being replaced" in p["fault"] and p["outcome"] == "repaired" for p in found),
                    "what was put back is not told: %s" % found)
            require(not os.listdir(os.path.join(session, "tmp")), "something is left in tmp/")
            after = {f.path: f.keys for f in reader.read_session(session, session=name, strict=True)}
            require(after == {f.path: f.keys for f in good}, "samples that were on the disk are gone")
            copies.opcheck(session, SOUND, name)


def check_beside(copies):
    """Ledger and table of images."""
    for name, change in (("ledger", lambda t: t.replace(b"\tstored=", b"\tstored=1")), ("ledger", lambda t: t[:-20]),
                         ("ledger", lambda t: b"\0" * len(t)), ("dcookies", lambda t: t[:-5]),
                         ("dcookies", lambda t: t + b"7\tjunk\n"),
                         ("dcookies", lambda t: b"something else\n")):
        session = copies.fresh()
        path = os.path.join(session, "samples", "current", name)
        write(path, change(read(path)))
        copies.repaired(session, name)


HEADER = {8: "processor", 12: "event", 16: "unit mask", 20: "count", 24: "kernel", 40: "time", 48: "called", 56: "start"}


def check_headers(copies):
    """The name and the table of images give the contents of a header: a repair takes them from
    there and keeps every count.
    """
    session = copies.fresh()
    current = os.path.join(session, "samples", "current")
    paths = [path for path in reader.list_files(current) if any(read(os.path.join(current, path))[40:48])]
    damaged = dict(zip(HEADER, paths))
    before = {path: read(os.path.join(current, path))[:72] for path in paths}
    for offset, path in damaged.items():
        patch(os.path.join(current, path), offset, struct.pack("<I", 0x5eed))
    problems = {p["file"]: p for p in copies.opcheck(session, DAMAGED)[0]["problems"]}
    for offset, path in damaged.items():
        require(HEADER[offset] in problems[path]["fault"] and problems[path]["offset"] == offset,
                "%s: %s" % (HEADER[offset], problems.get(path)))
    require(len(damaged) == len(HEADER) == len(problems), "%d problems in %d files" % (len(problems), len(damaged)))
    copies.repaired(session, "headers")
    require({path: read(os.path.join(current, path))[:72] for path in paths} == before, "the headers are not what they were")


def exchange(path, other):
    os.rename(path, path + ".aside")
    os.rename(other, path)
    os.rename(path + ".aside", other)


def told_apart(session):
    """Pairs of paths of files whose headers are known to be different: of two images, of two events
    of one image.
    """
    files = [f for f in reader.read_session(session) if f.header.mtime]
    pairs = [(a, b) for a in files for b in files if "/TIMER." in a.path and a.keys != b.keys]
    image = next((a.path, b.path) for a, b in pairs if "/TIMER." in b.path and a.header.mtime != b.header.mtime)
    event = next((a.path, b.path) for a, b in pairs if "/page-faults." in b.path
                 and (a.name.app, a.name.image) == (b.name.app, b.name.image))
    return [image, event]


def check_exchanged(copies, good):
    """A file in the place of another one: two files that changed places go back. The counts of a
    copied file are not counted for its new place.
    """
    for path, other in told_apart(copies.box.session):
        session = copies.fresh()
        current = os.path.join(session, "samples", "current")
        exchange(os.path.join(current, path), os.path.join(current, other))
        problems = copies.opcheck(session, DAMAGED)[0]["problems"]
        require({(p["file"], p["detail"]) for p in problems if "another file" in p["fault"]} == {(path, other),
                (other, path)}, "%s" % problems)
        after = copies.repaired(session, "exchanged")
        require({f.path: f.keys for f in after} == {f.path: f.keys for f in good}, "not all files are what they were")
        session = copies.fresh()
        current = os.path.join(session, "samples", "current")
        shutil.copyfile(os.path.join(current, other), os.path.join(current, path))
        after = copies.repaired(session, "copied")
        require({f.path: f.keys for f in after} == {f.path: f.keys for f in good if f.path != path}, "counts were made up")


def check_beside_files(copies):
    """Symbols of JIT code that are not whole, or something else by their name; files that were in
    the making.
    """
    def stray(path):
        write(path, b"")

    def cut(path):
        shutil.copyfile(copies.box.work, path)
        os.truncate(path, os.path.getsize(path) - 1)
    for make in (stray, cut, os.mkfifo, lambda path: os.symlink("/etc/passwd", path)):
        session = copies.fresh()
        region = os.path.join(session, "samples", "current", "{root}", "bin", "app", "{dep}", "{anon:jit-1}")
        os.makedirs(region)
        shutil.copyfile(copies.box.work, os.path.join(region, "1.jo"))
        copies.opcheck(session, SOUND)
        make(os.path.join(region, "2.jo"))
        copies.repaired(session, "object")
        require(os.listdir(region) == ["1.jo"], "left: %s" % os.listdir(region))
    session = copies.fresh()
    current = os.path.join(session, "samples", "current")
    left = ["opcheck.new", "opcheck.tmp", "ledger.tmp", "dcookies.tmp", "stats/total_samples.tmp"]
    for name in left:
        write(os.path.join(current, name), b"half")
    problems = copies.opcheck(session, SOUND)[0]["problems"]
    require([(p["file"], p["outcome"]) for p in problems] == [(name, "note") for name in left],
            "of files in the making: %s" % problems)
    copies.opcheck(session, REPAIRED, "--repair")
    require(not any(os.path.exists(os.path.join(current, name)) for name in left), "files in the making are left")
    require(copies.opcheck(session, SOUND)[0]["problems"] == [], "something is left")


def old_file(data):
    """A sample file as oprofile 0.9 had it: a longer header, and the same behind it."""
    rest = struct.pack("<IQQQII", 0, 2**64 - 1, *struct.unpack_from("<QQ", data, 56), 0, 0)
    return data[:4] + struct.pack("<I", 0x12) + data[8:52] + rest + data[72:]


def check_old(copies, good):
    """A session of oprofile 0.9 is none of opd's to mend: what can be read is sound, and stays."""
    session = copies.fresh()
    current = os.path.join(session, "samples", "current")
    for name in ("dcookies", "ledger", "stats"):
        path = os.path.join(current, name)
        (shutil.rmtree if os.path.isdir(path) else os.unlink)(path)
    for f in good:
        path = os.path.join(current, f.path)
        write(path, old_file(read(path)))
    total = sum(f.total for f in good)
    for words in ((), ("--repair",)):
        (state,) = copies.opcheck(session, SOUND, *words)
        require(state["samples"] == total and state["files"] == len(good), "%s" % state)
    os.truncate(os.path.join(current, good[0].path), 130)
    copies.opcheck(session, DAMAGED)


def give_all(directory, owner):
    for where, _, names in os.walk(directory):
        for path in [where] + [os.path.join(where, name) for name in names]:
            os.chown(path, owner, owner, follow_symlinks=False)


def check_owners(copies, good):
    """A session of a daemon that is not root, with things in it that he cannot write; a repair
    gives them back.
    """
    def foreign(path):
        os.chown(path, 0, 0)

    def locked(path):
        os.chmod(path, 0o555 if os.path.isdir(path) else 0o444)
    files = [f.path for f in good]
    for change in (foreign, locked):
        session = copies.fresh()
        give_all(session, 65534)
        current = os.path.join(session, "samples", "current")
        some = {".", "stats", "{root}", os.path.dirname(files[0]), files[0], files[-1], "dcookies"}
        for what in some:
            change(os.path.join(current, what))
        problems = copies.opcheck(session, DAMAGED)[0]["problems"]
        require({p["file"] for p in problems} == some and len(problems) == len(some), "%s" % problems)
        require({f.path: f.keys for f in copies.repaired(session, change.__name__)} == {f.path: f.keys for f in good},
                "counts were changed")
        states = [(what, os.stat(os.path.join(current, what))) for what in some]
        require(all(st.st_uid == 65534 and st.st_mode & 0o600 == 0o600 for _, st in states), "not given back: %s" % states)
    session = copies.fresh()
    give_all(session, 65534)
    current = os.path.join(session, "samples", "current")
    write(os.path.join(current, "{root}", "stray"), b"what")
    os.unlink(os.path.join(current, "ledger"))
    shutil.rmtree(os.path.join(current, "stats"))
    copies.opcheck(session, REPAIRED, "--repair")
    made = {name: os.stat(os.path.join(current, name)).st_uid for name in ("ledger", "damaged", "stats", "stats/total_samples")}
    require(set(made.values()) == {65534}, "what root made is not the daemon's: %s" % made)


def check_places(copies):
    """Directories and files that are something else, or gone; nothing is lost without a name."""
    def become(kind, part):
        session = copies.fresh()
        path, aside = os.path.join(session, "samples", "current", part), os.path.join(copies.box.dir,
                "elsewhere-%d" % copies.number)
        os.rename(path, aside)
        if kind == "link":
            os.symlink(aside, path)
        elif kind == "file":
            write(path, b"what")
        elif kind == "directory":
            os.mkdir(path)
        return session
    book = stored_and_lost(copies.box.session)
    for kind, part in (("link", "{root}"), ("file", "{root}"), ("link", "ledger"), ("directory", "ledger"), ("none", "ledger")):
        session = become(kind, part)
        for code, words in ((DAMAGED, ()), (REPAIRED, ("--repair",)), (SOUND, ())):
            copies.opcheck(session, code, *words)
        found = sum(f.total for f in reader.read_session(session, strict=True))
        wanted = (found, found, 0) if part == "ledger" else (book[0], found, book[2] + book[1] - found)
        require(stored_and_lost(session) == wanted, "%s at %s: %s, before %s" % (kind, part, stored_and_lost(session), book))
    problems = copies.opcheck(become("none", "dcookies"), SOUND)[0]["problems"]
    require([(p["file"], p["outcome"]) for p in problems] == [("dcookies", "note")],
            "no word of the table that is gone: %s" % problems)


def make_file(header, nodes):
    """A sample file of 128 nodes from (key, count) in their order, each at the front of its bucket.
    """
    buckets, data = [0] * 128, bytearray(header[:72] + struct.pack("<II24x", 128, len(nodes) + 1) + bytes(16 * 128))
    for index, (key, count) in enumerate(nodes, 1):
        bucket = reader.bucket_of(key, 128)
        struct.pack_into("<QII", data, NODES + 16 * index, key, count, buckets[bucket])
        buckets[bucket] = index
    return bytes(data) + struct.pack("<128I", *buckets)


def check_fillers(copies):
    """Key 0 is not put where it would look torn: a node that holds the place is no damage, and key
    0 there is.
    """
    ones = [(key, 1) for key in range(1, 25)]
    for nodes, code in ((ones + [(24, 0), (0, -24)], SOUND), (ones + [(0, -24)], DAMAGED), (ones + [(23, 0), (0, -24)], DAMAGED)):
        session = copies.fresh()
        path, before = biggest(session)
        rest = [(key, count if count >= 0 else before.total + count) for key, count in nodes]
        write(path, make_file(read(path), rest))
        copies.opcheck(session, code)


def check_stats(copies):
    """What the genuine tools warn by says no less than the ledger."""
    stats = os.path.join("samples", "current", "stats")
    with open(os.path.join(copies.box.session, stats, "total_samples"), encoding="ascii") as stream:
        total = int(stream.read())
    for text in (b"%d\n" % (total - 1), b"", b"many\n"):
        session = copies.fresh()
        write(os.path.join(session, stats, "total_samples"), text)
        copies.repaired(session, "stats %r" % text)
        require(int(read(os.path.join(session, stats, "total_samples"))) == total, "total_samples is not repaired")
    session = copies.fresh()
    write(os.path.join(session, stats, "total_samples"), b"%d\n" % (total + 7))
    copies.opcheck(session, SOUND)
    check_stats_places(copies, stats, total)


def check_stats_places(copies, stats, total):
    """Whatever stands where the numbers belong makes room, also in a session whose ledger is open.
    """
    def link(path):
        os.symlink("/etc/passwd", path)
    for end, name, make in ((b"stopped", "total_samples", os.mkdir), (b"stopped", "total_samples", link),
                            (b"open", "lost_samplefile", os.mkdir),
                            (b"stopped", ".", os.mkfifo)):
        session = copies.fresh()
        ledger = os.path.join(session, "samples", "current", "ledger")
        write(ledger, read(ledger).replace(b"stopped", end))
        path = os.path.normpath(os.path.join(session, stats, name))
        (shutil.rmtree if name == "." else os.unlink)(path)
        make(path)
        copies.opcheck(session, DAMAGED)
        copies.opcheck(session, REPAIRED, "--repair")
        copies.opcheck(session, SOUND)
        number = os.path.join(session, stats, "total_samples")
        require(end == b"open" or int(read(number)) == total, "total_samples is not there again")
        require(os.path.isdir(path) if name == "." else not os.path.lexists(path) or os.path.isfile(path)
                and not os.path.islink(path),
                "%s is still in the way" % path)


def check_behind(copies):
    """A ledger that lacks samples and says that its daemon was stopped is no damage when the mark
    of a killed daemon is beside it: the next daemon counts anew.
    """
    def less(match):
        return b"\treceived=%d\tstored=%d\t" % (int(match[1]) - 1, int(match[2]) - 1)
    for mark, code in ((None, DAMAGED), ("lock", SOUND), ("unclean", SOUND)):
        session = copies.fresh()
        ledger = os.path.join(session, "samples", "current", "ledger")
        text = re.sub(rb"\treceived=([1-9]\d*)\tstored=([1-9]\d*)\t", less, read(ledger), count=1)
        require(text != read(ledger) and b"ended\tstopped\n" in text, "the ledger is another one: %s" % text)
        write(ledger, text)
        if mark:
            write(os.path.join(session, mark), b"4194303")
        problems = copies.opcheck(session, code)[0]["problems"]
        require([p["outcome"] for p in problems] == ["note" if mark else "damaged"], "beside %s: %s" % (mark, problems))
        copies.opcheck(session, REPAIRED, "--repair")
        require(stored_and_lost(session) == stored_and_lost(copies.box.session),
                "not what it was: %s" % (stored_and_lost(session),))


def check_usage(copies, box):
    opcheck = os.path.join(box.bin, "opcheck")
    empty = os.path.join(box.dir, "empty")
    os.mkdir(empty)
    here = "--session-dir=" + box.session
    for words in (["--nonsense"], [here, "nobody"], ["--session-dir=/nowhere/at/all"], [here, "/etc"],
                  [here, "-r", "/etc"], [here, empty]):
        result = box.run(opcheck, *words)
        require(result.rc == FAILED and len(result.err.splitlines()) == 1, "opcheck %s: %r" % (words, result))
    session = copies.fresh()
    for name in ("current", os.path.join(session, "samples", "current")):
        require(copies.opcheck(session, SOUND, name)[0]["session"] == name, "another session was checked")
    result = box.run(opcheck, here, box.session)
    require(result.rc == FAILED and here in result.err, "what to do with a session directory is not told: %r" % (result,))
    require("sound" in box.good(opcheck, "--session-dir=" + session), "no word of a sound session")
    require(box.good(opcheck, "-q", "--session-dir=" + session) == "", "not quiet")
    os.rename(os.path.join(session, "samples", "current"), os.path.join(session, "samples", "saved"))
    os.mkdir(os.path.join(session, "samples", "current"))
    require(len(copies.opcheck(session, SOUND)) == 2 and copies.opcheck(session, SOUND, "current"),
            "an empty current session is none")


def check_stale_lock(copies, box):
    """The lock of a daemon that was killed: a repair may remove it, and the next daemon looks at
    the session all the same.
    """
    for repair in (False, True):
        session = copies.fresh()
        write(os.path.join(session, "lock"), b"4194303")
        words = ["--repair"] if repair else []
        result = box.run(os.path.join(box.bin, "opcheck"), "--session-dir=" + session, *words)
        require(result.rc == SOUND, "opcheck beside a stale lock: %r" % (result,))
        left = [name for name in ("lock", "unclean") if os.path.exists(os.path.join(session, name))]
        require(left == (["unclean"] if repair else ["lock"]), "left of the lock: %s" % left)
    session = copies.fresh()
    box.good(os.path.join(box.bin, "opcheck"), "--session-dir=" + session, "--repair")
    require(not any(os.path.exists(os.path.join(session, name)) for name in ("lock", "unclean")), "a repair leaves a mark")


def check_live(copies, box):
    """A session that is being written is looked at and not touched."""
    require(copies.opcheck(box.session, SOUND)[0]["live"], "the session is not live")
    current = os.path.join(box.session, "samples", "current")
    link = os.path.join(box.dir, "link")
    os.symlink(current, link)
    for name in ("current", "current/", "current/.", current, current + "//", link, link + "/"):
        require(copies.opcheck(box.session, SOUND, name)[0]["live"], "%s is not live" % name)
        result = box.run(os.path.join(box.bin, "opcheck"), "--session-dir=" + box.session, "--repair", name)
        require(result.rc == FAILED and "daemon" in result.err and "sound" not in result.out,
                "opcheck repairs under the daemon: %s: %r" % (name, result))
    mode = os.stat(os.path.join(box.session, "lock")).st_mode & 0o777
    require(mode == 0o600, "everybody may lock the lock: mode %o" % mode)


def check_replaced(box):
    """Somebody put a copy in the place of a file that is being counted in: a dump finds out, what
    is gone is lost_io_error, and the rest is in the copy.
    """
    work = [box.copy_work("replaced-app"), "busy", 500, min(os.sched_getaffinity(0))]
    box.good(*work)
    busiest = max((f for f in box.files(live=True) if "/replaced-app/TIMER" in f.path), key=lambda f: f.total)
    path = os.path.join(box.session, "samples", "current", busiest.path)
    copy = os.path.join(box.session, "copy")
    shutil.copy(path, copy)
    os.chown(copy, os.stat(path).st_uid, os.stat(path).st_gid)
    os.rename(copy, path)
    box.good(*work)
    box.opcontrol("--dump")
    lost = sum(e["lost_io_error"] for e in box.check_ledger(with_files=False)["events"])
    require(lost > 0, "a dump does not see that %s was replaced" % path)
    box.good(*work)
    box.opcontrol("--stop")
    box.check_ledger()


def check_look(copies, box):
    """Whoever only looks keeps no daemon out: in the middle of a check the lock is free."""
    session = copies.fresh()
    lock = os.path.join(session, "lock")
    write(lock, b"4194303")
    for i in range(400):
        write(os.path.join(session, "samples", "current", "{root}", "stray", "%d" % i), b"what")
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    os.write(writing, bytes(fcntl.fcntl(writing, fcntl.F_GETPIPE_SZ)))
    os.set_blocking(writing, True)
    child = box.start(os.path.join(box.bin, "opcheck"), "--session-dir=" + session, stdout=writing)
    os.close(writing)
    opdtest.wait_until(lambda: is_writing(child.pid), opdtest.HANG_SECONDS, "opcheck does not come to write")
    with open(lock, "rb") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise opdtest.Failure("opcheck holds the lock while it looks") from None
    with open(reading, "rb") as stream:
        stream.read()
    require(child.wait() == DAMAGED, "opcheck ended with %s" % child.returncode)


def room(path):
    """Bytes on the disk beside those of the pages with nodes in use, and whether there is a hash
    table.
    """
    data = read(path)
    size, current_size = struct.unpack_from("<II", data, 72)
    page = os.sysconf("SC_PAGESIZE")
    used = (NODES + 16 * current_size + page - 1) // page * page
    return os.stat(path).st_blocks * 512 - used, any(data[NODES + 16 * size:])


def count_sites(box):
    """A file that is larger than a new one."""
    box.start_daemon("--event=page-faults:1")
    box.good(box.copy_work("many-sites"), "sites", 600)
    box.opcontrol("--dump")
    box.shutdown()


def check_closed(copies, box):
    """A session that is closed, by the daemon or without one, has no room for more, nor a hash
    table where that takes blocks; it is sound, and what was in it is there.
    """
    count_sites(box)
    for name, with_daemon in (("by-daemon", True), ("without", False)):
        path, best = biggest(box.session,
                             "many-sites/page-faults")  # of others' large files the file system may have a block of extents
        current = os.path.join(box.session, "samples", "current")
        before, total = room(path), sum(f.total for f in reader.read_session(box.session))
        require(best.nr_nodes > 127 and before[0] > 0 and before[1], "%s, %d nodes: no room for more: %s" % (path,
                best.nr_nodes, before))
        if with_daemon:
            shutil.copytree(current, os.path.join(box.dir, "kept"), symlinks=True)
            box.start_daemon(start=False)
        box.opcontrol("--save=" + name)
        if with_daemon:
            box.shutdown()
        closed = os.path.join(box.session, "samples", name)
        after = room(os.path.join(closed, best.path))
        require(after[0] <= 0 and not after[1],
                "a closed session takes %d bytes too many, %s a hash table" % (after[0], "with" if after[1] else "without"))
        require(sum(f.total for f in reader.read_session(box.session, session=name, strict=True)) == total, "closing lost samples")
        require(copies.opcheck(box.session, SOUND, name) and copies.opcheck(box.session, SOUND, "--repair", name),
                "%s is not sound" % name)
        if with_daemon:
            shutil.rmtree(current)
            shutil.copytree(os.path.join(box.dir, "kept"), current, symlinks=True)


def is_writing(pid):
    """Whether it waits until somebody reads from the pipe."""
    with open("/proc/%d/syscall" % pid, encoding="ascii") as stream:
        return stream.read().split()[:2] in (["1", "0x1"], ["4", "0x1"], ["64", "0x1"])


def test(box):
    copies = Copies(box)
    box.start_daemon("--event=TIMER:1000000", "--event=page-faults:20")
    for child in box.busy_cpus(1.5):
        child.wait()
    box.good("/bin/sh", "-c", "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done")
    box.opcontrol("--dump")
    check_live(copies, box)
    check_replaced(box)
    box.shutdown()
    good = box.files()
    copies.opcheck(box.session, SOUND)
    check_files(copies, good)
    check_lost(copies, good)
    check_pending(copies, good)
    check_beside(copies)
    check_headers(copies)
    check_exchanged(copies, good)
    check_beside_files(copies)
    check_owners(copies, good)
    check_old(copies, good)
    check_places(copies)
    check_stats(copies)
    check_fillers(copies)
    check_usage(copies, box)
    check_behind(copies)
    check_stale_lock(copies, box)
    check_look(copies, box)
    check_closed(copies, box)


if __name__ == "__main__":
    opdtest.run(test)
