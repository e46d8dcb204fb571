#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
A user gives a program of theirs the path, size, time, inode number or build-id of a file of the
host, in namespaces that any user may make. No sample of it is filed under that file, whoever of the
two runs first.

The user's program has its function hot at another place, so its samples can be told from those of
the host's file.
"""
import os
import re
import shutil
import stat
import subprocess

import opdtest
from hot import compile_to, hot_place
from opdtest import require

USER = 54322  # nobody's
BUILD_IDS = {"copied": "0x" + "5a" * 20, "no": "none"}
PERIOD_NS, MS = 1000000, 100
# Puts a page before hot.
SHIFT = "__attribute__((section(\".text.hot\"), aligned(4096), used)) static void shift(void) {}\n"
NR_SHORT, SHORT_MS = 20, 10
# When the host's file runs: after the impostor; before it; before it in a service with directories
# of its own.
ORDERS = {"first": None, "after the host": (), "after a service": ("unshare", "--mount", "--propagation=private")}
HOST_SHARE = 0.01  # of the samples of an impostor, at the most, for a sample in a moment of exec

# Each attack is a shell script of a user with all rights in new user and mount namespaces. It runs
# with these: $V the host's file, $D its directory, $A the user's directory with the program at
# $A$V and $A/gzip, $T a directory for mounts, $E an empty one.
RUN = " plain $MS"
ATTACKS = {
    # the directories of an overlay are names, and names mean something else in this namespace
    "lower": "mount --bind $A $D; mount -t overlay o -o lowerdir=$D:$E $T; $T/gzip" + RUN,
    "lower-xino": "mount --bind $A $D; mount -t overlay o -o xino=on,lowerdir=$D:$E $T; $T/gzip" + RUN,
    "lower-in-place": "mount --bind $A $D; mount -t overlay o -o lowerdir=$D:$E $D; $V" + RUN,
    "lower-in-memory": "mount -t tmpfs t $D; cp --preserve=timestamps $A/gzip $D; "
                       "mount -t overlay o -o lowerdir=$D:$E $T; $T/gzip" + RUN,
    "upper": "mount -t tmpfs t $T; mkdir -p $T/p/bin $T/p/w $T/m; cp --preserve=timestamps $A/gzip $T/p/bin; "
             "mount --bind $T/p ${D%/*}; "
             "mount -t overlay o -o userxattr,lowerdir=$E,upperdir=$D,workdir=${D%/*}/w $T/m; $T/m/gzip" + RUN,
    # another file at the path
    "bind-file": "mount -t tmpfs t $T; cp --preserve=timestamps $A/gzip $T; mount --bind $T/gzip $V; $V" + RUN,
    "bind-directory": "mount --bind $A $D; $V" + RUN,
    "tmpfs": "mount -t tmpfs t $D; cp --preserve=timestamps $A/gzip $D; $V" + RUN,
    "tmpfs-removed": "mount -t tmpfs t $D; cp --preserve=timestamps $A/gzip $D; exec 3<&0; $V" + RUN + " <&3 & "
                     "until [ $(readlink /proc/$!/exe) = $V ]; do sleep 0.01; done; rm $V; wait $!",
    "chroot": "mount -t tmpfs t $T; mkdir -p $T$D; cp --preserve=timestamps $A/gzip $T$D; chroot $T $V" + RUN,
    "chroot-on-host": "chroot $A $V" + RUN,
    # a mount that nobody can reach is named from its own root
    "detached": "mount -t tmpfs t $T; mkdir -p $T$D; cp --preserve=timestamps $A/gzip $T$D; exec 3<$T$V; umount -l $T; "
                "/proc/self/fd/3" + RUN,
}
# The program begins in the host's mount namespace, by a file of another one.
FROM_HOST = "mount -t tmpfs t $D; cp --preserve=timestamps $A/gzip $D; echo ready; read x"
FUSE_DEVICE = os.makedev(10, 229)
# A file system of the user hides the program while it runs: nobody finds it by its path, and
# everybody else is refused there. test_hanging has file systems that let others wait.
HIDDEN = """mount --bind $A $D; exec python3 -c 'import ctypes, os, subprocess, sys, time
node, directory, program, ms = sys.argv[1:]
child = subprocess.Popen([program, "plain", ms], stdin=subprocess.PIPE)
while os.path.basename(program) not in open("/proc/%d/comm" % child.pid).read(): time.sleep(0.01)
fd = os.open(node, os.O_RDWR)
options = "fd=%d,rootmode=40000,user_id=0,group_id=0" % fd
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(b"fuse", directory.encode(), b"fuse", 0, options.encode()) < 0: sys.exit(os.strerror(ctypes.get_errno()))
print("ready", flush=True)
sys.stdin.readline()
child.stdin.close()
sys.exit(child.wait())' "$NODE" "$D" "$V" $MS"""
# The same inode number, in processes that are gone, in a mount that is gone, when opd looks.
SAME_INODE = """mount -t tmpfs t $T; python3 -c 'import os, sys
while True:
    fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY, 0o755)
    if os.fstat(fd).st_ino >= int(sys.argv[2]): break
    os.close(fd); os.unlink(sys.argv[1])' $T/gzip $(stat -c %i $V)
cat $A/gzip >$T/gzip; mount -t overlay o -o lowerdir=$T:$E $D
i=0; while [ $i -lt NR ]; do $V plain SHORT </dev/null; i=$((i+1)); done; umount $D; read x"""


def fuse_node(box):
    return os.path.join(box.dir, "fuse")


def has_fuse(box):
    """Makes a node of the device that the user may open. Where there is no FUSE says why, and that
    case is left out.
    """
    path = fuse_node(box)
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, FUSE_DEVICE)
        os.chmod(path, 0o666)
        os.close(os.open(path, os.O_RDWR))
    except OSError as error:
        print("SKIP of a FUSE mount that hides the program: %s" % error)
        return False
    return True


def possible_attacks(box):
    """Before Linux 5.11 no user may mount an overlay: those attacks are left out then."""
    script = "mount -t tmpfs t /mnt; mkdir /mnt/a /mnt/b; mount -t overlay o -o lowerdir=/mnt/a:/mnt/b /mnt"
    done = box.run("setpriv", "--reuid=%d" % USER, "--regid=%d" % USER, "--clear-groups", "unshare", "-Urm", "sh", "-ec", script)
    require(done.rc == 0 or tuple(int(n) for n in os.uname().release.split(".")[:2]) < (5, 11), "overlay: %s" % done.err)
    if done.rc:
        print("SKIP of overlays: %s" % done.err.strip())
    every = {**ATTACKS, "from-host": FROM_HOST, "same-inode": SAME_INODE}
    return [name for name, script in every.items() if not done.rc or "overlay" not in script]


class Impostor:
    """One attack on one file of the host."""

    def __init__(self, box, number, attack, build_id):
        self.attack, self.build_id, self.child = attack, build_id, None
        self.victim = os.path.join(box.dir, "host/%d/usr/bin/gzip" % number)
        self.base = os.path.join(box.dir, "user/%d" % number)
        self.program = os.path.join(self.base, "gzip")
        self.command = None
        os.makedirs(os.path.dirname(self.victim))
        for path in (os.path.dirname(self.base + self.victim), self.base + "-mount", self.base + "-empty"):
            os.makedirs(path)
        shutil.copy2(os.path.join(box.dir, "victim-" + build_id), self.victim)
        for path in (self.program, self.base + self.victim):
            shutil.copy2(os.path.join(box.dir, "impostor-" + build_id), path)
        subprocess.run(["chown", "-R", "%d:%d" % (USER, USER), self.base, self.base + "-mount", self.base + "-empty"], check=True)
        self.env = {"V": self.victim, "D": os.path.dirname(self.victim), "A": self.base, "T": self.base + "-mount",
                    "E": self.base + "-empty", "MS": str(MS), "NODE": fuse_node(box)}

    def start(self, box, script, unshare="-Urm"):
        self.child = subprocess.Popen(["setpriv", "--reuid=%d" % USER, "--regid=%d" % USER, "--clear-groups", "unshare", unshare,
                                       "sh", "-ec", script], env={**box.env, **self.env}, cwd="/", stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        box.children.append(self.child)

    def begin(self, box):
        """Until the program waits, with its files mapped."""
        if self.attack == "same-inode":
            self.start(box, SAME_INODE.replace("NR", str(NR_SHORT)).replace("SHORT", str(SHORT_MS)))
        elif self.attack == "hidden":
            self.start(box, HIDDEN)
            self.await_ready()
        elif self.attack == "from-host":
            self.start(box, FROM_HOST)
            self.await_ready()
            keeper, pid = self.child, self.child.pid
            self.command = ["setpriv", "--reuid=%d" % USER, "--regid=%d" % USER, "--clear-groups",
                            "/proc/%d/root%s" % (pid, self.victim), "plain", str(MS)]
            self.child = subprocess.Popen(self.command, env=box.env, cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                          stderr=subprocess.PIPE)
            box.children.append(self.child)
            self.keeper = keeper
        else:
            self.start(box, ATTACKS[self.attack], "-Ur" if self.attack == "chroot-on-host" else "-Urm")
        opdtest.wait_until(lambda: self.child.poll() is not None or opdtest.is_waiting_below(self.child.pid),
                           opdtest.START_SECONDS, "%s does not begin" % self)
        if self.child.poll() is not None:
            raise opdtest.Failure("%s: %s" % (self, self.child.stderr.read()))

    def await_ready(self):
        if self.child.stdout.readline() != b"ready\n":
            raise opdtest.Failure("%s: %s" % (self, self.child.stderr.read()))

    def finish(self):
        _, err = self.child.communicate(b"\n", timeout=opdtest.CALL_SECONDS)
        require(self.child.returncode == 0 or self.attack == "same-inode", "%s: %s %s" % (self, self.child.returncode, err))
        if self.attack == "from-host":
            self.keeper.communicate(b"\n", timeout=opdtest.CALL_SECONDS)

    def __str__(self):
        return "%s, %s build-id" % (self.attack, self.build_id)


def make_programs(box):
    """For each kind of build-id a victim and an impostor of one size and time."""
    shift = os.path.join(box.dir, "shift.h")
    with open(shift, "w", encoding="ascii") as stream:
        stream.write(SHIFT)
    for kind, build_id in BUILD_IDS.items():
        paths = [os.path.join(box.dir, "%s-%s" % (who, kind)) for who in ("victim", "impostor")]
        for path, more in zip(paths, ((), ("-fno-toplevel-reorder", "-include", shift, "-Dgo=impostor"))):
            compile_to(box, path, "-static", "-w", "-Wl,--build-id=" + build_id, *more)
        size = max(os.path.getsize(path) for path in paths)
        for path in paths:
            os.truncate(path, size)
            os.utime(path, (1, 1))


def run_victims(box, impostors, where):
    """Until opd has looked at them."""
    children = [box.start_piped(*where, i.victim, "plain", 20) for i in impostors]
    opdtest.wait_until(lambda: all(opdtest.is_waiting_below(child.pid) for child in children), opdtest.START_SECONDS,
                       "not all programs of the host wait")
    box.await_look()
    for child in children:
        child.communicate(timeout=opdtest.CALL_SECONDS)
        require(child.returncode == 0, "a program of the host ended with %s" % child.returncode)


def run_impostors(box, impostors):
    for impostor in impostors:
        impostor.begin(box)
    box.await_look()
    for impostor in impostors:
        impostor.finish()


def run_orders(box, sets):
    for order, where in ORDERS.items():
        if where is not None:
            run_victims(box, sets[order], where)
        run_impostors(box, sets[order])
    run_victims(box, sets["first"], ())


def judge(box, impostors, files):
    """The attacks that were filed under a file of the host, as texts."""
    fooled = []
    keys = {kind: [hot_place(os.path.join(box.dir, "%s-%s" % (who, kind))) for who in ("victim", "impostor")]
            for kind in BUILD_IDS}
    for order, impostor in impostors:
        victim, own = keys[impostor.build_id]
        require(own.first >= victim.end or victim.first >= own.end, "hot is at one place in both programs")
        where = {}
        for f in files:
            count = sum(n for key, n in f.keys.items() if own.first <= key < own.end)
            if count and re.search(r"/%s[-/]" % re.escape("%s" % os.path.basename(impostor.base)), f.name.image[1]):
                where[f.name.image[1]] = where.get(f.name.image[1], 0) + count
        total, at_host = sum(where.values()), where.get(impostor.victim, 0)
        places = sorted(re.sub(r"^%s" % re.escape(box.dir), "", name) for name in where)
        print("%-35s %-16s %5d samples, %5d under the host's file; %s" % (impostor, order, total, at_host, places))
        wanted = (NR_SHORT * SHORT_MS if impostor.attack == "same-inode" else MS) * 1e6 / PERIOD_NS
        require(total >= 0.5 * wanted, "%s: %d samples of %d" % (impostor, total, wanted))
        if at_host > HOST_SHARE * total:
            fooled.append("%s, %s" % (impostor, order))
    return fooled


def test(box):
    if box.run("setpriv", "--reuid=%d" % USER, "--regid=%d" % USER, "--clear-groups", "unshare", "-Urm", "true").rc:
        raise opdtest.Skip("users may not make user namespaces here")
    box.tmpfs("host", "mode=755")
    make_programs(box)
    attacks = possible_attacks(box)
    numbers = iter(range(100, 1000))
    sets = {order: [Impostor(box, next(numbers), a, b) for a in attacks for b in BUILD_IDS] for order in ORDERS}
    box.configure(RingSize="4M", SidebandSize="4M")
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel")
    run_orders(box, sets)
    if has_fuse(box):
        hidden = {order: [Impostor(box, next(numbers), "hidden", b) for b in BUILD_IDS] for order in ORDERS}
        run_orders(box, hidden)
        for order, impostors in hidden.items():
            sets[order] += impostors
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    box.check_ledger()
    every = [(order, impostor) for order, impostors in sets.items() for impostor in impostors]
    fooled = judge(box, every, box.files())
    print("%d of %d attacks are filed under the host's file" % (len(fooled), len(every)))
    require(not fooled, "programs of a user are filed under files of the host:\n" + "\n".join(fooled))
    box.check_agreement()
    box.shutdown()


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
