#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
The dcookie table of a session: a row for every image with samples, there before a kill and after
it; cookies and names go on with the next daemon;
a replaced file is another image, also when it has the inode of the one before; a full disk stops
nothing; --reset empties it.
"""
import os
import signal

import opdtest
from opdtest import require

PERIOD_NS = 100000


def read_table(session):
    """{cookie: {column: text}}, by the description in opd-dcookies(5) only. Every line must be
    right.
    """
    with open(os.path.join(session, "samples", "current", "dcookies"), "rb") as stream:
        lines = stream.read().split(b"\n")
    if lines == [b""]:
        return {}  # made on a disk that had no room for a line
    require(lines[0] == b"opd-dcookies 1" and lines.pop() == b"", "first or last line: %r %r" % (lines[0], lines[-1]))
    columns = lines[1].lstrip(b"#").decode().split("\t")
    rows = {}
    for line in lines[2:]:
        words = line.split(b"\t")
        if words[0] == b"next":
            continue
        first = columns.index("program_of")  # and the columns behind it: of programs only
        require(len(words) == (len(columns) if words[1] == b"program" else first), "columns of %r" % line)
        rows[int(words[0])] = dict(zip(columns, words))
    return rows


def unescape(text):
    out, at = b"", 0
    while at < len(text):
        if text[at:at + 2] == b"\\x":
            out, at = out + bytes([int(text[at + 2:at + 4], 16)]), at + 4
        elif text[at:at + 2] == b"\\\\":
            out, at = out + b"\\", at + 2
        else:
            out, at = out + text[at:at + 1], at + 1
    return out


def rows_and_missing(box):
    """({name in the session: cookie} of files, names that have a sample file and no row)."""
    # The files are read first: a row is there before the first sample of its image, and the daemon
    # goes on.
    used = {image[1] for f in box.files(live=True) for image in (f.name.app, f.name.image) if image[0] == "root"}
    names = {}
    for cookie, row in read_table(box.session).items():
        if row["kind"] == b"file":
            name = unescape(row["name"])
            require(name not in names, "%r stands twice" % name)
            names[name] = cookie
    return names, [name for name in used if os.fsencode(name) not in names]


def check_rows(box):
    """Every image that has a sample file has a row of its own. {name in the session: cookie} of
    files.
    """
    names, missing = rows_and_missing(box)
    require(not missing, "%s have samples and no row: %s" % (missing, sorted(names)))
    return names


def kill(box):
    box.daemon.send_signal(signal.SIGKILL)
    box.daemon.wait()


def check_restart(box, path):
    """kill -9 without a dump, three times. Each daemon knows the names of the one before, and a
    replaced file is a new image once.
    """
    before = {}
    for turn in range(3):
        box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel")
        if turn == 1:
            box.good("objcopy", "--remove-section=.note.gnu.build-id", path, path + ".new")
            os.rename(path + ".new", path)
        box.good(path, "spin", 300)
        box.opcontrol("--stop")
        kill(box)
        names = check_rows(box)
        own = {name: cookie for name, cookie in names.items() if name.startswith(os.fsencode(path))}
        print("turn %d: %d images, %s" % (turn, len(names), own))
        require(all(names.get(name) == cookie for name, cookie in before.items()), "cookies changed: %s, %s" % (before, names))
        require(len(own) == (1 if turn == 0 else 2), "images of the program: %s" % own)
        before = names
    shown = box.opreport("--images", "-f")
    lines = [line for line in shown.splitlines() if path.replace("\t", "\\x09") in line]
    require(len(lines) == 2 and lines[0].split()[2] != lines[1].split()[2], "opreport --images: %s" % shown)


def check_dump_and_reset(box, path):
    box.start_daemon()
    box.good(path, "spin", 100)
    box.opcontrol("--dump")
    check_rows(box)
    size = os.path.getsize(os.path.join(box.session, "samples", "current", "dcookies"))
    box.opcontrol("--dump")
    require(os.path.getsize(os.path.join(box.session, "samples", "current", "dcookies")) <= size + 4096,
            "the table grows with each dump")
    highest = max(read_table(box.session))
    box.opcontrol("--stop")
    box.opcontrol("--reset")
    require(not os.path.exists(os.path.join(box.session, "samples", "current", "dcookies")), "the table is there after --reset")
    box.opcontrol("--start")
    box.good(path, "spin", 100)
    box.opcontrol("--stop")
    require(box.status()["dcookie_errors"] == 0, "dcookie_errors")
    names = check_rows(box)
    require(os.fsencode(path) in names, "after --reset the program has no plain name: %s" % names)
    print("highest cookie before --reset %d" % highest)
    box.check_ledger()
    box.shutdown()


def ext4(box, name):
    """An empty ext4, which gives the inode of a removed file to the next file; None where it cannot
    be made.
    """
    image, path = os.path.join(box.dir, name + ".img"), os.path.join(box.dir, name)
    with open(image, "wb") as stream:
        stream.truncate(16 << 20)
    os.mkdir(path)
    if box.run("mkfs.ext4", "-q", image).rc or box.run("mount", "-o", "loop", image, path).rc:
        print("SKIP of an inode that is given again: no ext4 can be made here")
        return None
    box.mounts.append(path)
    return path


def check_inode_given_again(box, program):
    """A program without a build-id is removed. Another one with its size and date gets its inode at
    once: only the generation tells them apart.
    """
    disks = [path for path in (ext4(box, "disk"), box.tmpfs("memory", "size=8m")) if path]
    bare = os.path.join(box.dir, "bare-app")
    box.good("objcopy", "--remove-section=.note.gnu.build-id", program, bare)
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel")
    for disk in disks:
        path = os.path.join(disk, "app")
        inodes = []
        for _ in range(2):
            if os.path.exists(path):
                os.unlink(path)
            box.good("cp", bare, path)
            os.utime(path, (1000000000, 1000000000))
            inodes.append(os.stat(path).st_ino)
            box.good(path, "spin", 300)
        box.opcontrol("--dump")
        rows = [row for row in read_table(box.session).values() if row["path"] == os.fsencode(path)]
        print("%s: inodes %s, generations %s" % (os.path.basename(disk), inodes, [row["generation"] for row in rows]))
        require(disk.endswith("memory") or inodes[0] == inodes[1], "ext4 gave another inode: the test shows nothing")
        require(len(rows) == 2 and sorted(int(row["inode"]) for row in rows) == sorted(inodes),
                "not two images of %s: %s" % (path, rows))
        require(len({row["generation"] for row in rows} - {b"0"}) == 2, "generations: %s" % rows)
    box.opcontrol("--stop")
    check_rows(box)
    box.check_ledger(with_files=False)
    box.shutdown()


def check_full_disk(box, path):
    """The file system has no room for the table. Samples of existing files go on, and the rows come
    when there is room.
    """
    mount = box.tmpfs("small", "size=2m")
    box.session = os.path.join(mount, "session")
    box.configure(session=box.session)
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel")
    box.good(path, "spin", 100)
    filler = os.path.join(mount, "filler")
    with open(filler, "wb", buffering=0) as stream:
        try:
            while stream.write(b"x" * 4096):
                pass
        except OSError:
            pass
    other = box.copy_work("late-app")
    box.good(other, "spin", 200)
    stored = box.status()["events"][0]["stored"]
    os.unlink(filler)
    box.good(other, "spin", 200)
    box.opcontrol("--stop")
    opdtest.wait_until(lambda: not rows_and_missing(box)[1], opdtest.HANG_SECONDS, "the rows of images with samples do not come")
    require(os.fsencode(other) in check_rows(box), "the program has no row")
    status = box.check_ledger()
    print("stored %d, then %d; dcookie_errors %d" % (stored, status["events"][0]["stored"], status["dcookie_errors"]))
    require(status["events"][0]["lost_no_space"] > 0, "the disk was not full")
    box.shutdown()


def check_without_build_ids(box):
    """BuildIds=no: no row of a file has a build-id, and none of a program that ran."""
    path = box.copy_work("no-ids")
    box.configure(BuildIds="no")
    before = box.busy_until_ended(path)
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS)
    after = box.busy_until_ended(path)
    box.await_look()
    box.await_look()
    box.end_busy(before)
    box.end_busy(after)
    box.opcontrol("--dump")
    rows = {unescape(row["name"]): row for row in read_table(box.session).values() if row["kind"] == b"file"
            and unescape(row["name"]) == os.fsencode(path)}
    require(len(rows) == 1 and all(row["build_id"] == b"-" for row in rows.values()), "rows of a file: %s" % rows)
    box.shutdown()


def test(box):
    path = box.copy_work("odd \t name\\x")
    check_restart(box, path)
    check_dump_and_reset(box, path)
    check_inode_given_again(box, path)
    check_without_build_ids(box)
    box.configure()
    check_full_disk(box, path)


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
