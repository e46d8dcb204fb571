#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares what opd's tools print with what the genuine tools of oprofile 1.4 printed.

usage: run.py --list | LABEL

A recording is a folder with cases.json, sessions/ and root/, the images of the sessions. cases.json
has command lines, and the standard output, standard error and exit code of the genuine tools. The
recordings lie beside this program; $OPD_GOLDEN names a folder that may hold further ones (default:
../shared/golden beside the source tree).

A label is 'TOOL SESSION: ARGUMENTS'. --list prints all labels. Standard output and exit code must
be equal. Standard error is shown and not compared, because its wording is free. The tools are those
of $OPD_BINDIR or of the build $OPD_BUILD.
"""
import difflib
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
FURTHER = os.environ.get("OPD_GOLDEN") or os.path.join(HERE, "..", "..", "..", "shared", "golden")
HANG_SECONDS = 240


def read_cases():
    """Label to folder and case. A further recording with a label that is here adds nothing."""
    cases = {}
    for folder in (HERE, os.path.realpath(FURTHER)):
        path = os.path.join(folder, "cases.json")
        if folder != HERE and not os.path.exists(path):
            continue
        with open(path, encoding="utf-8") as stream:
            for case in json.load(stream):
                cases.setdefault(" ".join([case["tool"], case["session"] + ":"] + case["args"]), (folder, case))
    return cases


def run(folder, case):
    """Exit code, standard output and standard error. The tools print where the recording really is;
    that part of the path is cut out.
    """
    bindir = os.environ.get("OPD_BINDIR") or os.path.join(os.environ["OPD_BUILD"], "bin")
    command = [os.path.join(bindir, case["tool"]), "--session-dir=sessions/" + case["session"], "--root=root"] + case["args"]
    if case["tool"] == "opreport" and "-X" not in case["args"]:  # what opreport of opd shortens for people
        command[1:1] = ["--verbose=details", "--demangle=normal"]
    environment = dict(os.environ, LC_ALL="C", TZ="UTC", COLUMNS="80", OPREPORT_SYMBOLS_FROM="symtab", OPD_CACHE_DIR="")
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=HANG_SECONDS, check=False)
    out = done.stdout.decode("utf-8", "replace").replace(folder + "/", "").replace(bindir + "/", "")
    return done.returncode, out, done.stderr.decode("utf-8", "replace")


def main():
    cases = read_cases()
    if sys.argv[1:] == ["--list"]:
        print("\n".join(cases))
        return
    if len(sys.argv) != 2 or sys.argv[1] not in cases:
        sys.exit("usage: run.py --list | LABEL (unknown: %s)" % " ".join(sys.argv[1:]))
    folder, case = cases[sys.argv[1]]
    rc, out, err = run(folder, case)
    if (rc, out) == (case["rc"], case["stdout"]):
        return
    print("%s: exit code %d, of the genuine tool %d" % (sys.argv[1], rc, case["rc"]))
    sys.stdout.writelines(line + "\n" for line in difflib.unified_diff(
        case["stdout"].splitlines(), out.splitlines(), "genuine", "ours", lineterm="", n=1))
    print("standard error: %s\nof the genuine tool: %s" % (err, case["stderr"]))
    sys.exit(1)


if __name__ == "__main__":
    main()
