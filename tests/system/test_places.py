#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Programs in chroots, mount namespaces, overlays and containers are filed under the path that the
host has for them; where it has none, under
their own. What is different is never mixed, what is one file is one image.
"""
import os
import re
import shutil
import subprocess

import opdtest
from hot import MS, PERIOD_NS, SHARE, Wanted, compile_to, hot_place, own_places, wrong_with
from opdtest import require
from test_build_ids import can_be_asked

NR_STORM = 40
STORM_MS = 10
FILES_OF_ITS_OWN = (("with", ""), ("without",
                                   "-Wl,--build-id=none"))  # what a container has and the host has not: a build-id, and how


def make_program(box, path, *flags):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    compile_to(box, path, "-static", "-w", "-DVARIANT=\"%s\"" % os.path.relpath(path, box.dir), *flags)
    return path


def in_namespace(script):
    """A shell in a mount namespace of its own, whose mounts the host does not see."""
    return ["unshare", "--mount", "--propagation=private", "sh", "-ec", script]


def own_path(box, name):
    return os.path.join(box.dir, name)


# Each case: the command that runs the program, the path that its samples are filed under, and the
# path by which the test finds the file.


def chroot(box, name):
    path = make_program(box, own_path(box, name + "/usr/bin/app"))
    return ["chroot", own_path(box, name), "/usr/bin/app"], path, path


def bind_on_host(box, name):
    real = make_program(box, own_path(box, name + "-real/app"))
    bound = own_path(box, name + "-bound")
    os.makedirs(bound)
    box.good("mount", "--bind", os.path.dirname(real), bound)
    box.mounts.append(bound)
    return [bound + "/app"], bound + "/app", real


def bind_in_namespace(box, name):
    real = make_program(box, own_path(box, name + "-real/app"))
    inner = own_path(box, name + "-inner")
    os.makedirs(inner)
    return in_namespace("mount --bind %s %s; exec %s/app \"$@\"" % (os.path.dirname(real), inner, inner)) + ["sh"], real, real


def plain_in_namespace(box, name):
    path = make_program(box, own_path(box, name + "/app"))
    return in_namespace("exec %s \"$@\"" % path) + ["sh"], path, path


def private_tmpfs(box, name):
    real = make_program(box, own_path(box, name + "-real/app"))
    inner = own_path(box, name + "-inner")
    os.makedirs(inner)
    script = "mount -t tmpfs opd-test %s; cp %s %s/; exec %s/app \"$@\"" % (inner, real, inner, inner)
    return in_namespace(script) + ["sh"], inner + "/app", real


def overlay(box, name, lower="shared-lower"):
    path = own_path(box, lower + "/usr/bin/app")
    if not os.path.exists(path):
        make_program(box, path)
    for part in ("upper", "work", "merged"):
        os.makedirs(own_path(box, "over/%s/%s" % (name, part)))
    base = own_path(box, "over/" + name)
    options = "lowerdir=%s,upperdir=%s/upper,workdir=%s/work" % (own_path(box, lower), base, base)
    script = "mount -t overlay -o %s opd-test %s/merged; exec chroot %s/merged /usr/bin/app \"$@\"" % (options, base, base)
    return in_namespace(script) + ["sh"], path, path


def overlay_upper(box, name):
    command, _, lower = overlay(box, name, name + "-lower")
    upper = own_path(box, "over/%s/upper/usr/bin/app" % name)
    os.makedirs(os.path.dirname(upper))
    make_program(box, upper)
    os.utime(lower, (1, 1))
    return command, upper, upper


def on_host(box, name, *unshare):
    """As a container engine does it: the host sees the overlay, the container has it as its root."""
    lower, base = own_path(box, name + "-lower/usr/bin/app"), own_path(box, "over/" + name)
    make_program(box, lower)
    for part in ("upper", "work", "merged"):
        os.makedirs(os.path.join(base, part))
    if box.run("mount", "-t", "overlay", "-o", "lowerdir=%s,upperdir=%s/upper,workdir=%s/work" % (
            own_path(box, name + "-lower"), base, base), "opd-test", base + "/merged").rc == 0:
        box.mounts.append(base + "/merged")
    return ["unshare", *unshare, "--mount", "--propagation=private", "chroot", base + "/merged", "/usr/bin/app"], lower, lower


def on_host_of_user(box, name):
    return on_host(box, name, "--user", "--map-root-user")


def pid_namespace(box, name):
    path = make_program(box, own_path(box, name + "/app"))
    return ["unshare", "--mount", "--pid", "--fork", "--mount-proc", path], path, path


def nspawn(box, name):
    path = make_program(box, own_path(box, name + "/usr/bin/app"))
    os.makedirs(own_path(box, name + "/etc"))
    with open(own_path(box, name + "/etc/os-release"), "w", encoding="ascii") as stream:
        stream.write("ID=opd-test\n")
    return ["systemd-nspawn", "--quiet", "--directory=" + own_path(box, name), "--register=no", "--keep-unit", "--console=pipe",
            "/usr/bin/app"], path, path


CASES = [("chroot-one", chroot), ("chroot-second", chroot), ("bind", bind_on_host), ("ns-bind", bind_in_namespace),
         ("ns-plain", plain_in_namespace),
         ("tmpfs", private_tmpfs), ("overlay-one", overlay), ("overlay-two", overlay), ("overlay-upper", overlay_upper),
         ("on-host", on_host), ("on-host-userns", on_host_of_user),
         ("pid-ns", pid_namespace), ("nspawn", nspawn)]
TRIED_FIRST = ("overlay-one", "overlay-two", "overlay-upper", "on-host", "on-host-userns", "nspawn", "pid-ns")


class Case:
    """A program somewhere, started before opd or later."""

    def __init__(self, box, name, make, variant):
        self.what = "%s %s" % (name, variant)
        self.command, self.filed, self.file = make(box, "%s-%s" % (name, variant))
        self.child = None

    def start(self, box, kind):
        self.child = start_piped(box, *self.command, kind, MS)


def works(box, name, make):
    """Whether the host can do it at all."""
    if name == "nspawn" and not shutil.which("systemd-nspawn"):
        return False
    command, _, _ = make(box, "try-" + name)
    return box.run(*command, "plain", "1").rc == 0


def start_piped(box, *command):
    child = subprocess.Popen([str(word) for word in command], env=box.env, cwd="/", stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    box.children.append(child)
    return child


def finish(child, what):
    """Ends its input, and with it the program."""
    _, err = child.communicate(timeout=opdtest.CALL_SECONDS)
    require(child.returncode == 0, "%s: %s %s" % (what, child.returncode, err.decode("utf-8", "replace")))


def await_waiting(children):
    """Until each of them, or a process below it, waits for the end of its input."""
    opdtest.wait_until(lambda: all(child.poll() is not None or opdtest.is_waiting_below(child.pid) for child in children),
                       opdtest.HANG_SECONDS, "not all programs wait")


def run_until_seen(box, *command):
    """A command whose last process waits for the end of its input: opd has looked before that."""
    child = start_piped(box, *command)
    await_waiting([child])
    box.await_look()
    finish(child, command[-1])


def storm(box, name):
    """Short-lived programs in a container whose shell lives on: (wanted path, CPU seconds)."""
    real = make_program(box, own_path(box, name + "-real/app"))
    inner = own_path(box, name + "-inner")
    os.makedirs(inner)
    before = os.times()
    run_until_seen(box, *in_namespace("mount --bind %s %s; i=0; while [ $i -lt %d ]; do %s/app plain %d </dev/null; i=$((i+1)); "
                                      "done; read x || :" % (os.path.dirname(real), inner, NR_STORM, inner, STORM_MS)))
    after = os.times()
    return real, after.children_user - before.children_user


def of_its_own(box, name, flag):
    """A program that only the container has: processes that are gone when opd looks, then one that
    lives. The path.
    """
    real = make_program(box, own_path(box, name + "-real/app"), *flag.split())
    inner = own_path(box, name + "-inner")
    os.makedirs(inner)
    run_until_seen(box, *in_namespace("mount -t tmpfs opd-test %s; cp %s %s/; i=0; while [ $i -lt %d ]; do "
                                      "%s/app plain %d </dev/null; i=$((i+1)); done; %s/app stays %d" % (
        inner, real, inner, NR_STORM, inner, STORM_MS, inner, MS)))
    return inner + "/app"


def samples_per_ms(done, files):
    """What a program gets of the samples here and now, with those of interrupts: a busy machine and
    its host take some.
    """
    paths = [case.filed for case in done]
    totals = sorted(sum(f.total for f in files if f.name.app == ("root", path)) for path in paths if paths.count(path) == 1)
    return min(1e6 / PERIOD_NS, totals[len(totals) // 2] / MS)


def check_of_its_own(box, files, path, per_ms):
    """It is one image, and the table says which file it was."""
    apps = {f.name.app[1]: sum(g.total for g in files if g.name.app == f.name.app and not g.header.is_kernel)
            for f in files if f.name.app[1].startswith(path)}
    with open(os.path.join(box.session, "samples/current/dcookies"), encoding="utf-8", errors="surrogateescape") as stream:
        rows = [dict(zip(("cookie", "inode", "mtime", "size"), (r[0], r[8], r[10], r[11])))
                for r in (line.split("\t") for line in stream) if len(r) > 11 and r[3] == path]
    print("%s: %s, %s" % (os.path.relpath(path, box.dir), list(apps.values()), rows))
    require(list(apps) == [path], "one file of a container has the profiles %s" % apps)
    require(apps[path] >= 0.95 * (NR_STORM * STORM_MS + MS) * per_ms, "%s has %d samples" % (path, apps[path]))
    require(len({r["cookie"] for r in rows}) == 1, "one file of a container has the rows %s" % rows)
    require(int(rows[-1]["inode"]) and int(rows[-1]["size"]), "nobody looked at the file of a container: %s" % rows)


def profile(box, cases):
    """What runs before opd waits for it. What runs later lives until opd has looked: nothing tells of
    the view of a process that has gone.
    """
    early = [Case(box, name, make, "early") for name, make in cases]
    late = [Case(box, name, make, "late") for name, make in cases]
    for case in early:
        case.start(box, "plain")
    await_waiting([case.child for case in early])
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel")
    for case in early:
        case.child.stdin.close()
        case.child.stdin = None
    for case in early:
        finish(case.child, case.what)
    for case in late:
        case.start(box, "stays")
    await_waiting([case.child for case in late])
    box.await_look()
    for case in late:
        finish(case.child, case.what)
    return early + late


def twins(box):
    """One image in two containers: the same build-id at the same path there."""
    paths = [own_path(box, "twin-%s/usr/bin/app" % which) for which in ("one", "two")]
    make_program(box, paths[0])
    os.makedirs(os.path.dirname(paths[1]))
    shutil.copy(paths[0], paths[1])
    for which in ("one", "two"):
        run_until_seen(box, "chroot", own_path(box, "twin-" + which), "/usr/bin/app", "stays", MS)
    return paths


def check_twins(files, paths, per_ms):
    totals = [sum(f.total for f in files if f.name.app == ("root", path)) for path in paths]
    print("twins: %s samples" % totals)
    of_one = 0.95 * MS * per_ms
    if can_be_asked():
        require(totals[0] >= 2 * of_one and not totals[1], "the same image in two containers is two: %s" % totals)
    else:  # before Linux 6.11 the kernel tells no build-id
        require(min(totals) >= of_one, "two images of two containers are not two: %s" % totals)


def check_storm(files, path, cpu_s, per_ms):
    found = sum(f.total for f in files if f.name.app == ("root", path) and not f.header.is_kernel)
    expected = NR_STORM * STORM_MS * per_ms
    print("storm: %d samples, %d expected, %.2f s in all" % (found, expected, cpu_s))
    require(found >= 0.95 * expected, "the storm in a container has %d samples under %s, %d expected" % (found, path, expected))


def test(box):
    box.configure(RingSize="4M", SidebandSize="4M")
    cases = [(n, m) for n, m in CASES if n not in TRIED_FIRST or works(box, n, m)]
    for name in sorted({n for n, _ in CASES} - {n for n, _ in cases}):
        print("left out: %s: this host cannot do it" % name)
    done = profile(box, cases)
    path, cpu_s = storm(box, "storm")
    twin_paths = twins(box)
    own = [of_its_own(box, "own-" + name, flag) for name, flag in FILES_OF_ITS_OWN]
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    box.check_ledger()
    files = box.files()
    wrong = []
    for case in done:
        wrong += wrong_with(case.what, [Wanted(case.filed, [hot_place(case.file, case.filed)], SHARE, MS * 5,
                                               own_places(case.file, case.filed))], files)
    require(not wrong, "\n".join(wrong))
    per_ms = samples_per_ms(done, files)
    print("a program has %.2f samples for 1 ms" % per_ms)
    check_storm(files, path, cpu_s, per_ms)
    check_twins(files, twin_paths, per_ms)
    for path in own:
        check_of_its_own(box, files, path, per_ms)
    strays = sorted({f.name.app[1] for f in files if re.match(r"(%s/.*app \(|/usr/bin/app$)" % re.escape(box.dir), f.name.app[1])})
    require(not strays, "one file is more than one image, or has the name of another: %s" % strays)
    box.check_agreement()
    box.shutdown()


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
