#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs one golden case through the comparison program that lies beside the recordings.

usage: run.py LABEL

LABEL is 'TOOL SESSION: ARGUMENTS', a line of cases.txt. The recordings are in $OPD_GOLDEN or in
../shared/golden beside the
source tree; without them the case is skipped (77). Tools are those of $OPD_BINDIR or of the build
$OPD_BUILD.
"""
import json
import os
import subprocess
import sys
import tempfile

TOOL_DIRS = {"opannotate": "bin", "opreport": "bin", "opcontrol": "bin"}


def find_recordings():
    source = os.environ.get("OPD_SOURCE") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    # The comparison program cuts its own folder out of what the tools print, and they print where
    # it really is.
    golden = os.path.realpath(os.environ.get("OPD_GOLDEN") or os.path.join(source, "..", "shared", "golden"))
    if not os.path.exists(os.path.join(golden, "compare")):
        print("skip: no recordings of the genuine tools at %s" % os.path.normpath(golden))
        sys.exit(77)
    return golden


def select(golden, label):
    with open(os.path.join(golden, "cases.json"), encoding="utf-8") as stream:
        cases = json.load(stream)
    chosen = [c for c in cases if " ".join([c["tool"], c["session"] + ":"] + c["args"]) == label]
    if len(chosen) != 1:
        sys.exit("run.py: %d cases are called '%s'" % (len(chosen), label))
    return chosen


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: run.py LABEL")
    label = sys.argv[1].strip()
    golden = find_recordings()
    chosen = select(golden, label)
    bindir = os.environ.get("OPD_BINDIR") or os.path.join(os.environ["OPD_BUILD"], TOOL_DIRS[chosen[0]["tool"]])
    with tempfile.NamedTemporaryFile("w", suffix=".json") as cases:
        json.dump(chosen, cases)
        cases.flush()
        os.environ["OPD_CACHE_DIR"] = ""
        done = subprocess.run([sys.executable, os.path.join(golden, "compare"), "-v", "--cases", cases.name, "--bindir", bindir],
                              check=False)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
