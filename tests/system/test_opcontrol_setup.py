#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The setup of opcontrol: which options go together, what is kept, and what it does with a damaged
setup.
"""
import json
import os
import re

import opdtest
from opcontroltest import CPU_KEYS, EVENT_KEYS, LOSSES, STATUS_KEYS, kept, opcontrol
from opdtest import require


def what_goes_with_what(box):
    cases = [(("--start", "--stop"), 'Option "--stop" not valid with other options.'),
             (("--dump", "--start-daemon"), 'Option "--start-daemon" not valid with other options.'),
             (("--dump", "--event=TIMER:100000"), 'Option "--setup" not valid with "--dump".'),
             (("--shutdown", "--session-dir=/x"), 'Option "--setup" not valid with "--shutdown".'),
             (("--verbose", "--stop"), 'Option "--verbose" not valid with "--stop".'),
             (("--setup",), "No options specified"), (("--apply",), "--apply"),
             (("--start", "--apply", "-e", "default"), "--apply"),
             (("--json",), "--json"), (("word",), "word"), (("--event",), "--event"), (("-x",), "-x"),
             (("--event=nonsense:100",), "--event=nonsense:100: there is no such event"),
             (("--event=TIMER:1",), "--event=TIMER:1: "),
             (("--event=page-faults:9", "--event=page-faults:9"), "--event=page-faults:9: given twice"),
             (("--event=page-faults:9", "--event=default"), "--event=default: 'default' goes"),
             (("--event=page-faults:9", "--callgraph=4"), "--event=page-faults: with --callgraph")]
    for words, text in cases:
        line = box.refused(opcontrol(box), *words)
        require(text in line, "%r, but expected %r" % (line, text))
    require(not os.path.exists(box.session), "a refused call made the session directory")
    shown, asked = box.run(opcontrol(box)), box.run(opcontrol(box), "--help")
    require((shown.rc, shown.out, asked.rc, asked.err) == (0, "", 0, "") and "--separate" in asked.out
            and shown.err == asked.out, "help: %s, %s" % (shown, asked))
    listed = box.good(opcontrol(box), "--list-events")
    require("TIMER" in listed and "page-faults" in listed, listed)
    require(box.status() == {"state": "not running"}, "status of no daemon: %s" % box.status())
    box.good(opcontrol(box), "--status", "--start", "--event=nonsense")


def what_is_kept(box):
    box.opcontrol("-e", "timer:200000", "-e", "page-faults:30:0:0", "-p", "kernel", "-c", "7")
    setup = kept(box)
    require(setup["CHOSEN_EVENTS_0"] == "TIMER:200000:0:1:1" and setup["CHOSEN_EVENTS_1"] == "page-faults:30:0:0:1", setup)
    require(setup["NR_CHOSEN"] == "2" and setup["CALLGRAPH"] == "7", setup)
    require(setup["SEPARATE_LIB"] == "1" and setup["SEPARATE_KERNEL"] == "1" and setup["SEPARATE_CPU"] == "0", setup)
    box.opcontrol("--separate=thread,cpu")
    setup = kept(box)
    require(setup["NR_CHOSEN"] == "2" and setup["SEPARATE_LIB"] == "0" and setup["SEPARATE_THREAD"] == "1", setup)
    for words in (("--event=TIMER:100000", "--event=timer:100000"), ("--event=default", "--event=TIMER:100000"),
                  ("--separate=all,x",),
                  ("--event=page-faults:1", "--vmlinux=/no/such/file"), ("--callgraph=128",), ("--kernel-range=5,4",),
                  ("--session-dir=/a b",),
                  ("--buffer-size=-1",)):
        box.refused(opcontrol(box), *words)
    require(kept(box) == setup, "a refused call changed the setup: %s" % kept(box))
    box.opcontrol("--event=default", "--no-vmlinux")
    require(kept(box)["NR_CHOSEN"] == "0", kept(box))
    os.unlink(os.path.join(box.session, "daemonrc"))
    out = box.opcontrol("--xen=/no/such", "--active-domains=1,2", "--s390hwsampbufsize", "4")
    inert = {"buffer-size": "100", "buffer-watershed": "50", "cpu-buffer-size": "7"}
    said = box.opcontrol("--setup", *["--%s=%s" % option for option in inert.items()])
    shown = box.opcontrol("--status").splitlines()
    for name, title in (("buffer-size", "Buffer size"), ("buffer-watershed", "CPU buffer watershed"),
                        ("cpu-buffer-size", "CPU buffer size")):
        require("--%s is kept in the setup, but opd ignores it.\n" % name in said, said)
        require("%s: %s (of no effect)" % (title, inert[name]) in shown, "--status claims what is not: %s" % shown)
    for name in ("xen", "active-domains", "s390hwsampbufsize"):
        require("--%s is ignored: " % name in out, "--%s: %r" % (name, out))
    require(box.opcontrol("--init").startswith("--init is ignored: there is no module to load"),
            "--init does not say that it does nothing")
    require(box.opcontrol("--deinit").startswith("There is no module to unload"), "--deinit does not say what it does not do")
    os.unlink(os.path.join(box.session, "daemonrc"))


def added_events(box):
    """--event=+X adds to the events of the setup, also to the default one, which then has its name; without the + it
    replaces them, and says which.
    """
    names = lambda: [value.split(":")[0] for key, value in sorted(kept(box).items()) if key.startswith("CHOSEN_EVENTS_")]
    require(box.opcontrol("--event=+page-faults:1") == "", "adding says something")
    default = kept(box)["CHOSEN_EVENTS_0"]
    require(names() == [default.split(":")[0], "page-faults"] and default.split(":")[0] in ("TIMER", "cycles"), kept(box))
    require("already" in box.opcontrol("--event=+page-faults:1") and len(names()) == 2, "an event that is there: %s" % kept(box))
    said = box.opcontrol("--event=context-switches:1")
    require("context-switches:1 replaces " in said and "page-faults:1" in said and ":".join(default.split(":")[:2]) in said
            and "--event=+context-switches:1" in said, "what is replaced is not said: %r" % said)
    require(names() == ["context-switches"], kept(box))
    require(box.opcontrol("--event=context-switches:5") == "", "another count of an event replaces none")
    require("replaces context-switches:5" in box.opcontrol("--event=default") and kept(box)["NR_CHOSEN"] == "0", kept(box))
    said = box.opcontrol("--event=page-faults:1")
    require("replaces the default event " + default.split(":")[0] in said, said)
    box.opcontrol("--event=+default")
    require(names() == ["page-faults", default.split(":")[0]], kept(box))
    box.opcontrol("--event=context-switches:1", "--event=+page-faults:1")
    require(names() == ["context-switches", "page-faults"], kept(box))
    for words, text in ((("--event=+nonsense:1",), "nonsense"), (("--event=+",), "event"),
                        (("--event=+page-faults:7", "--event=context-switches:1"), "--event=context-switches:1")):
        require(text in box.refused(opcontrol(box), *words), "refused without %s" % text)
    os.unlink(os.path.join(box.session, "daemonrc"))


def names_of_images(box):
    """What is there is kept by its path without links; what is not, with a warning; all is nothing
    to be kept.
    """
    program = box.copy_work("lib++.so")
    link = os.path.join(box.dir, "link")
    os.symlink("lib++.so", link)
    for given, taken, warned in ((link, program, []), (os.path.relpath(program, box.dir), program, []),
                                 ("no-vmlinux,%s,," % link, "no-vmlinux," + program, []),
                                 ("/no/such,%s,no-module" % program, "/no/such,%s,no-module" % program,
                                  ["/no/such", "no-module"]), ("all", "", []),
                                 (link, program, []), ("", "", [])):
        result = box.run(opcontrol(box), "--image=" + given)
        lines = result.err.splitlines()
        require(result.rc == 0 and not result.out and len(lines) == len(warned), "--image=%s: %s" % (given, result))
        require(all("warning: --image: %s: " % name in line for name, line in zip(warned, lines)),
                "--image=%s: %s" % (given, result.err))
        require(kept(box)["IMAGE_FILTER"] == taken, "--image=%s: %s" % (given, kept(box)))
        require("Image filter: %s" % (taken or "none") in box.opcontrol("--status").splitlines(), "--status after --image=" + given)
    require("-_:,./+ only" in box.run(opcontrol(box), "--image=/a b").err, "--image takes a name that the setup cannot keep")
    os.unlink(link)
    os.unlink(program)


def odd_vmlinux(box):
    """What cannot have symbols is kept, with a warning; what can have them without."""
    text = os.path.join(box.dir, "vmlinuz")
    for data, warns in ((b"", True), (b"\x7fEL", True), (b"\x1f\x8b" + bytes(100), True), (b"\x7fELF" + bytes(100), False)):
        with open(text, "wb") as stream:
            stream.write(data)
        result = box.run(opcontrol(box), "--vmlinux=" + text)
        lines = result.err.splitlines()
        require(result.rc == 0 and len(lines) == warns, "%r: %s" % (data, result))
        require(not warns or ("warning: --vmlinux=" + text in lines[0] and "ELF" in lines[0]), result.err)
        require(kept(box)["VMLINUX"] == text, kept(box))
    require(not box.run(opcontrol(box), "--callgraph=0").err, "warned of a --vmlinux that was not given")
    box.opcontrol("--no-vmlinux")
    os.unlink(os.path.join(box.session, "daemonrc"))


def nothing_half_written(box):
    """A setup that cannot be kept leaves nothing, and its error says what helps. What was there
    before stays.
    """
    place = box.tmpfs("full", "size=16k")
    there = os.path.join(place, "there")
    os.mkdir(there)
    with open(os.path.join(place, "ballast"), "wb", buffering=0) as stream:
        try:
            while True:
                stream.write(bytes(4096))
        except OSError:
            pass
    plain = os.path.join(place, "ballast", "session")
    for session, reason in ((os.path.join(there, "a/b/session"), "No space left on device (make room there; "),
                            (there, "No space left on device"),
                            (plain, "Not a directory (")):
        box.configure(session=session)
        line = box.refused(opcontrol(box), "--setup", "--event=TIMER:100000")
        require(session in line and reason in line and "SessionDir= in " + box.config in line, line)
        require(os.listdir(there) == [] and sorted(os.listdir(place)) == ["ballast", "there"], "left: %s" % list(os.walk(place)))
    box.configure()
    box.opcontrol("--session-dir=" + plain, "--event=TIMER:100000")
    line = box.refused(opcontrol(box), "--start")
    require(plain in line and "Not a directory (opcontrol --session-dir=DIR" in line, line)
    os.unlink(os.path.join(box.session, "daemonrc"))


def check_page():
    """opd-status(5) names every key of --status --json; lost_REASON stands for the reasons, and the
    keys of Python for those of each runtime whose name is there.
    """
    with open(os.path.join(os.environ["OPD_SOURCE"], "doc", "opd-status.5"), encoding="utf-8") as stream:
        page = stream.read().replace("\\-", "-").split("\n.SH KEYS\n", 1)[1].split("\n.SH ", 1)[0]
    words = set(re.findall(r"[a-z][a-z_]*", "\n".join(line for line in page.splitlines() if re.match(r"\.(B|BR|RB) ", line))))
    words |= {word.replace("python", name) for name in ("node", "java", "php", "perl", "ruby") if name + "_processes" in words
              for word in words if word.startswith("python_")}
    missing = (STATUS_KEYS | EVENT_KEYS | CPU_KEYS) - LOSSES - words
    require(not missing, "opd-status(5) does not name %s" % sorted(missing))


def setup_while_it_runs(box):
    box.start_daemon("--event=TIMER:300000")
    require("New setup" not in box.opcontrol("--status") and box.status()["setup_waits"] is False, "a setup waits that nobody made")
    box.opcontrol("--event=TIMER:400000")
    waiting = "New setup: waits in %s/daemonrc_new until the daemon is started again\n" % box.session
    require(waiting in box.opcontrol("--status"), "--status does not say that a setup waits")
    require(box.status()["setup_waits"] is True, "--status --json does not say that a setup waits")
    require(kept(box)["CHOSEN_EVENTS_0"].startswith("TIMER:300000"), kept(box))
    require("Event 0: TIMER:300000:0:1:1\n" in box.opcontrol("--status"), "--status shows what is not in use")
    box.opcontrol("--separate=none")
    require(kept(box, "daemonrc_new")["CHOSEN_EVENTS_0"].startswith("TIMER:400000"), "the second setup forgot the first")
    status = box.status()
    require(set(status) == STATUS_KEYS, "keys: %s" % sorted(set(status) ^ STATUS_KEYS))
    require(all(set(e) == EVENT_KEYS for e in status["events"]), "keys of an event: %s" % json.dumps(status["events"]))
    require(all(set(c) == CPU_KEYS for c in status["cpus"]), "keys of a CPU: %s" % json.dumps(status["cpus"]))
    check_page()
    require((len(status["events"]), len(status["cpus"])) == (status["nr_events"], status["nr_cpus"]), "numbers of events and CPUs")


def unreadable_setup(box):
    """What is wrong in daemonrc is said with its line; it does not keep a daemon from being ended.
    """
    box.opcontrol("--stop")
    require(kept(box)["CHOSEN_EVENTS_0"].startswith("TIMER:400000"), "the setup that waited did not take effect")
    box.start_daemon()
    path = os.path.join(box.session, "daemonrc")
    with open(path, "a", encoding="ascii") as stream:
        stream.write("what is this\n")
    with open(path, encoding="ascii") as stream:
        where = "%s:%d" % (path, len(stream.readlines()))
    line = box.refused(opcontrol(box), "--start")
    require(where in line and "opcontrol --setup" in line, line)
    line = box.refused(opcontrol(box), "--event=nonsense")
    require("nonsense" in line and where not in line, line)
    result = box.run(opcontrol(box), "--shutdown")
    require(result.rc == 0 and where in result.err, "--shutdown: %s" % (result,))
    require(box.daemon.wait(opdtest.HANG_SECONDS) == 0, "opd ended with %s" % box.daemon.returncode)
    line = box.refused(box.env["OPD_DAEMON"])
    require(where in line, line)


def damaged_setup(box):
    """A damaged setup is no dead end: setup options begin anew, with and without a daemon, and say
    so.
    """
    path = os.path.join(box.session, "daemonrc")
    for damage, where in ((b"CALLGRAPH=9\nwhat is this\n", ":2: "), (bytes(64), ": holds NUL bytes"), (b"NR_CHOSEN=1\n", ":1: ")):
        for words in (("--setup", "--event=TIMER:500000"), ("--event=default",), ("--no-vmlinux",)):
            with open(path, "wb") as stream:
                stream.write(damage)
            line = box.refused(opcontrol(box), "--start")
            require(path + where in line and "opcontrol --setup" in line, line)
            result = box.run(opcontrol(box), *words)
            require(result.rc == 0 and len(result.err.splitlines()) == 1, "%s: %s" % (words, result))
            require("warning: " + path + where in result.err and "defaults" in result.err, result.err)
            require(kept(box)["CALLGRAPH"] == "0" and kept(box)["NR_CHOSEN"] == ("1" if "--setup" in words else "0"), kept(box))
            require(not box.run(opcontrol(box), "--callgraph=1").err, "the new setup is damaged, too")


def damaged_while_it_runs(box):
    box.start_daemon("--event=TIMER:300000")
    path = os.path.join(box.session, "daemonrc")
    with open(path, "wb") as stream:
        stream.write(bytes(64))
    result = box.run(opcontrol(box), "--event=TIMER:600000")
    require(result.rc == 0 and "warning: " + path in result.err, "%s" % (result,))
    require(not box.run(opcontrol(box), "--separate=none").err, "the setup that waits is damaged, too")
    box.opcontrol("--shutdown")
    require(box.daemon.wait(opdtest.HANG_SECONDS) == 0, "opd ended with %s" % box.daemon.returncode)
    require(not box.run(opcontrol(box), "--stop").rc, "the damaged setup kept the new one from its place")
    require(kept(box)["CHOSEN_EVENTS_0"].startswith("TIMER:600000"), kept(box))


def test(box):
    what_goes_with_what(box)
    what_is_kept(box)
    odd_vmlinux(box)
    added_events(box)
    names_of_images(box)
    nothing_half_written(box)
    setup_while_it_runs(box)
    box.shutdown()
    unreadable_setup(box)
    damaged_setup(box)
    damaged_while_it_runs(box)


if __name__ == "__main__":
    opdtest.run(test)
