#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Who may read sessions: a new session directory and what is in it are for its owner and its group;
one that was there keeps its mode, and what is made in it is readable as it is. The tools tell how
to get access.
"""
import grp
import os
import pwd
import shutil
import stat

import opdtest
from opdtest import require

STRANGER, GROUP = 54321, 54322  # nobody's
TOOLS = (("opreport",), ("opreport", "-l", "session:kept"), ("opcheck", "session:kept"), ("oparchive", "-o", "{dir}/archive"))


def session_of(box, *more):
    box.start_daemon("--event=TIMER:300000", *more)
    box.good(box.work, "shares", "200")
    box.opcontrol("--save=kept")
    box.good(box.work, "shares", "200")
    box.opcontrol("--dump")
    box.opcontrol("--reset")
    box.good(box.work, "shares", "200")
    box.opcontrol("--dump")


def modes(box):
    """(path, mode) of all directories and files, but for the lock, which is the owner's alone. A
    daemon that runs may remove some meanwhile.
    """
    for top, _, names in os.walk(box.session):
        for path in (top, *(os.path.join(top, name) for name in names if name != "lock")):
            try:
                st = os.lstat(path)
            except FileNotFoundError:
                continue
            if not stat.S_ISLNK(st.st_mode):  # a file that is being replaced has one
                yield path, st


def check_modes(box, others, group):
    for path, st in modes(box):
        wanted = 0o750 | others if stat.S_ISDIR(st.st_mode) else 0o640 | others & 0o4
        require(stat.S_IMODE(st.st_mode) == wanted, "%s has mode %o, not %o" % (path, stat.S_IMODE(st.st_mode), wanted))
        require(st.st_gid == group, "%s is group %d's, not %d's" % (path, st.st_gid, group))


def own_group(box):
    return os.stat(box.session).st_gid


def new_directory(box):
    """Nobody but the owner and the group reads what ran; without the group, the log says so."""
    session_of(box, "--separate=cgroup,kernel")
    if box.run_as == "root":
        try:
            wanted = (pwd.getpwnam("opd").pw_uid, grp.getgrnam("opd").gr_gid)
        except KeyError:
            wanted = (0, 0)
            require(box.log_text().count("only root may read the sessions") == 1, "the log: %s" % box.log_text())
        st = os.stat(box.session)
        require((st.st_uid, st.st_gid) == wanted, "a new session directory is %d:%d's" % (st.st_uid, st.st_gid))
    check_modes(box, 0, own_group(box))
    box.shutdown()
    for path, st in modes(box):
        require(not st.st_mode & 0o007, "after the end others may read %s: mode %o" % (path, stat.S_IMODE(st.st_mode)))


def what_tools_say(box):
    """A stranger is told which group may read, and how to become a member; a member reads."""
    for path, _ in list(modes(box)):
        os.chown(path, -1, GROUP)
    has_name = True
    try:
        name = grp.getgrgid(GROUP).gr_name
    except KeyError:
        has_name = False
    for tool, *args in TOOLS:
        words = [os.path.join(box.bin, tool), "--session-dir=" + box.session, *(a.format(dir=box.dir) for a in args)]
        result = box.run(*words, user=STRANGER)
        require(result.rc != 0 and "Permission denied" in result.err, "%s: %s" % (tool, result))
        require(not has_name or "members of the group %s" % name in result.err, "%s: %s" % (tool, result))
    for words in (("opreport",), ("opreport", "-l", "session:kept")):
        done = box.good("setpriv", "--reuid=%d" % STRANGER, "--regid=%d" % STRANGER, "--groups=%d" % GROUP,
                        os.path.join(box.bin, words[0]), "--session-dir=" + box.session, *words[1:])
        require("work" in done, "a member of the group sees no samples: %s" % done)


def with_a_group(box):
    """The same with a group that has a name, in a mount namespace of its own."""
    etc = os.path.join(box.dir, "group")
    shutil.copy("/etc/group", etc)
    with open(etc, "a", encoding="ascii") as stream:
        stream.write("opdtest:x:%d:\n" % GROUP)
    session_dir = "--session-dir=" + box.session
    for words in (("opreport", session_dir), ("opreport", session_dir, "session:kept"),
                  ("opcheck", session_dir, "session:kept"), ("opcontrol", "--status")):
        command = " ".join([os.path.join(box.bin, words[0]), *words[1:]])
        result = box.run("unshare", "--mount", "sh", "-c", "mount --bind %s /etc/group && exec setpriv --reuid=%d --regid=%d "
                         "--clear-groups %s" % (etc, STRANGER, STRANGER, command))
        require((result.rc != 0 or "--status" in words) and "log in again" in result.err and
                "members of the group opdtest may read it: 'sudo usermod -aG opdtest " in result.err, "%s: %s" % (words, result))


def directory_that_was_there(box):
    """It keeps its mode, and everybody who may read it may read what is new in it."""
    for mode in (0o755, 0o700):
        box.good("rm", "-rf", box.session)
        os.mkdir(box.session)
        os.chmod(box.session, mode)
        box.give(box.session)
        session_of(box)
        require(stat.S_IMODE(os.stat(box.session).st_mode) == mode, "the mode of the session directory was changed")
        for path, st in modes(box):
            wanted = mode if stat.S_ISDIR(st.st_mode) else mode & 0o644
            require(stat.S_IMODE(st.st_mode) == wanted, "%s has mode %o, not %o" % (path, stat.S_IMODE(st.st_mode), wanted))
        if mode == 0o755:
            box.good(os.path.join(box.bin, "opreport"), "--session-dir=" + box.session, user=STRANGER)
        box.shutdown()


def test(box):
    os.umask(0o022)
    new_directory(box)
    if box.run_as == "root":
        what_tools_say(box)
        with_a_group(box)
    if box.run_as != "unit":
        directory_that_was_there(box)


if __name__ == "__main__":
    opdtest.run(test)
