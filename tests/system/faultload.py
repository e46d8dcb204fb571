# SPDX-License-Identifier: GPL-3.0-or-later
"""Helpers of the fault tests: work that touches many images and addresses, and a look at a session
that remembers the look before.
"""
import os
import shutil
import signal

from opdtest import Skip, reader, require


class Looks:
    """Sample files as they were at the last look: each file must be there at the next look, and no
    count may be lower.
    """

    def __init__(self, box):
        self.box, self.last, self.nr = box, {}, 0

    def look(self):
        """Reads everything; the number of samples in all files."""
        now = {f.path: f for f in reader.read_session(self.box.session, live=True)}
        for path, before in self.last.items():
            require(path in now, "%s is gone" % path)
            for key, count in before.keys.items():
                found = now[path].keys.get(key, 0)
                require(found >= count, "%s: key 0x%x had %d and has %d" % (path, key, count, found))
        self.last, self.nr = now, self.nr + 1
        return sum(f.total for f in now.values())

    def forget(self):
        self.last = {}


def start_busy(box):
    """Keeps the CPUs at many different addresses until the test ends, or end_busy."""
    script = "while :; do python3 -c 'import json, re, socket, subprocess' ; ls -R /usr/share/doc > /dev/null; done"
    return box.start("sh", "-c", script, start_new_session=True)


def end_busy(child):
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()


class Growing:
    """Programs with a small sample file. After a dump, each call makes the file grow over the next
    size.
    """

    SITES = (60, 300, 1200, 5000, 16000)

    def __init__(self, box, name, nr=1):
        self.box, self.nr_calls = box, 0
        self.apps = [box.copy_work("%s-%d" % (name, i)) for i in range(nr)]
        self.grow()

    def grow(self):
        require(self.nr_calls < len(self.SITES), "files have grown as far as they can")
        self.nr_calls += 1
        self.again()

    def again(self):
        """The same once more, for samples that the rings had no room for."""
        for app in self.apps:
            self.box.good(app, "sites", self.SITES[self.nr_calls - 1])


def nr_sample_files(box, session="current"):
    return len(reader.list_files(os.path.join(box.session, "samples", session)))


def listing(directory):
    """(path, size, mtime) of everything below a directory; directories have their path only."""
    found = []
    for where, dirs, names in os.walk(directory):
        found += [(os.path.join(where, name), 0, 0) for name in dirs]
        for name in names:
            st = os.lstat(os.path.join(where, name))
            found.append((os.path.join(where, name), st.st_size, st.st_mtime_ns))
    return sorted(found)


class Shim:
    """The disk of a daemon that is started in a box: faultshim.c."""

    def __init__(self, box):
        library = os.path.join(os.environ.get("OPD_BUILD", ""), "tests", "system", "faultshim.so")
        if not os.path.exists(library):
            raise Skip("faultshim.so is not built")
        self.control, self.disk = os.path.join(box.dir, "control.txt"), os.path.join(box.dir, "disk")
        os.makedirs(self.disk)
        box.give(self.disk)
        self.say()
        self.env = {"FAULTSHIM_LINK_MAX": "1023", "LD_PRELOAD": library, "FAULTSHIM_CONTROL": self.control,
                    "FAULTSHIM_DISK": self.disk}

    def say(self, *lines):
        """What the disk does from now on; nothing: all is well."""
        with open(self.control + ".new", "w", encoding="ascii") as stream:
            stream.writelines(line + "\n" for line in lines)
        os.rename(self.control + ".new", self.control)

    def cut_power(self, directory, to):
        """Makes `to` a copy of what the disk has of a directory: synced data and nothing else."""
        os.makedirs(to)
        self.restore(os.stat(directory).st_ino, to)

    def cut_power_of_data(self, directory, to):
        """The same for a disk that keeps the order of names, as a journal does: names are as they
        are now, contents are as they were synced. The file system of the directory must use no
        inode twice. The daemon is stopped meanwhile.
        """
        inodes = {}
        for where, dirs, names in os.walk(directory):
            there = os.path.join(to, os.path.relpath(where, directory))
            os.makedirs(there, exist_ok=True)
            for name in names + [d for d in dirs if os.path.islink(os.path.join(where, d))]:
                self.restore_entry(os.path.join(where, name), os.path.join(there, name), inodes)
        tmp = os.path.join(to, "tmp")
        for name in os.listdir(tmp):
            kind, _, rest = name.partition("-")
            inode, _, part = rest.partition(".")
            if kind in ("sample.old", "sample.for") and int(inode, 16) in inodes:
                new = os.stat(inodes[int(inode, 16)]).st_ino
                os.rename(os.path.join(tmp, name), os.path.join(tmp, "new-" + "%s-%x%s" % (kind, new, part and "." + part)))
        for name in os.listdir(tmp):
            if name.startswith("new-sample."):
                os.rename(os.path.join(tmp, name), os.path.join(tmp, name.removeprefix("new-")))

    def restore_entry(self, path, copy, inodes):
        """Links stay links, and what has two names gets two."""
        if os.path.islink(path):
            os.symlink(os.readlink(path), copy)
            return
        inode = os.stat(path).st_ino
        if inode in inodes:
            os.link(inodes[inode], copy)
            return
        inodes[inode] = copy
        synced = os.path.join(self.disk, "file-%d" % inode)
        if os.path.exists(synced):
            shutil.copyfile(synced, copy)
        else:
            with open(copy, "wb"):
                pass

    def restore(self, inode, to):
        try:
            with open(os.path.join(self.disk, "dir-%d" % inode), encoding="utf-8", errors="surrogateescape", newline="") as stream:
                entries = [entry.split(" ", 2) for entry in stream.read().split("\0")[:-1]]
        except FileNotFoundError:
            return
        for kind, number, name in entries:
            path = os.path.join(to, name)
            if kind == "d":
                os.makedirs(path)
                self.restore(int(number), path)
                continue
            copy = os.path.join(self.disk, "file-%s" % number)
            if os.path.exists(copy):
                shutil.copyfile(copy, path)
            else:
                with open(path, "wb"):
                    pass
