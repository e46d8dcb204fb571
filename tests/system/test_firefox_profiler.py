#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
opreport --format=firefox in the code of the Firefox Profiler itself: its command-line interface, which
npm has, loads the file as the web page does and counts. Its functions have the samples of opreport
--stacks --format=json, alone and with what they call, of a real session and of hostile names.
FIREFOX_PROFILER=FILE is its script, else npm fetches it.
"""
import collections
import json
import os
import shutil
import subprocess

import opdtest
from opdtest import Skip, require
from test_speedscope import fetch, functions, make_hostile, take_real

PACKAGE = "@firefox-devtools/profiler-cli@0.10"


def needs_npm():
    if not os.environ.get("FIREFOX_PROFILER") and not (shutil.which("npm") and shutil.which("node")):
        raise Skip("there is no npm, and FIREFOX_PROFILER= names no script")
    opdtest.needs_perf()


class Profiler:
    """The command-line interface, with its server and its files in a directory of its own."""

    def __init__(self, box):
        self.box = box
        self.script = os.environ.get("FIREFOX_PROFILER") or os.path.join(fetch(box, PACKAGE), "@firefox-devtools", "profiler-cli",
                                                                         "dist", "profiler-cli.js")
        self.env = {"PROFILER_CLI_NO_SYMBOLICATE": "1"}

    def run(self, *words):
        return self.box.good("node", self.script, *words, env=self.env)

    def ask(self, *words):
        return json.loads(self.run(*words, "--session", "test", "--json"))

    def is_loaded(self, server):
        """Whoever asks a server that has not begun to listen, or one that was killed, removes the socket
        of the next one. So each server has a directory, and is asked when its file is there.
        """
        require(server.poll() is None, "the server ended with %s" % server.returncode)
        if not os.path.exists(os.path.join(self.env["PROFILER_CLI_SESSION_DIR"], "test.json")):
            return False
        done = subprocess.run(["node", self.script, "thread", "list", "--session", "test"], capture_output=True, text=True,
                              timeout=opdtest.HANG_SECONDS, check=False, env=dict(os.environ, **self.env))
        require("failed" not in done.stderr, "the server: %s" % done.stderr)
        return not done.returncode

    def functions(self, path):
        """Of all threads: {name: (samples with what it calls, its own)}."""
        total, own = collections.Counter(), collections.Counter()
        self.env["PROFILER_CLI_SESSION_DIR"] = path + ".profiler"
        # Its own `load` gives the server half a second to start, which a busy machine does not.
        server = subprocess.Popen(["node", self.script, "--daemon", path, "--session", "test"], stdin=subprocess.DEVNULL,
                                  env=dict(os.environ, **self.env))
        try:
            opdtest.wait_until(lambda: self.is_loaded(server), opdtest.HANG_SECONDS, "the profile is not loaded")
            for thread in self.ask("thread", "list")["threads"]:
                rows = self.ask("thread", "functions", "--thread", thread["threadHandle"])
                require(rows["weightType"] == "samples", rows["weightType"])
                for row in rows["functions"]:
                    total[row["name"]] += row["totalSamples"]
                    own[row["name"]] += row["selfSamples"]
        finally:
            server.kill()
            server.wait()
        return {name: (total[name], own[name]) for name in total}


def check(profiler, path, opreport, *words):
    """`opreport` runs it and returns what it prints."""
    opreport("--format=firefox", "--output-file=" + path, *words)
    stacks = json.loads(opreport("--stacks", "--format=json", *words))["stacks"]
    threads = {node["name"] for node in stacks["nodes"] if node["kind"] == "group"}
    want = {name: samples for name, samples in functions(stacks["nodes"]).items() if name not in threads}
    found = profiler.functions(path)
    require(found == want, "the profiler has %s, opreport %s" % (found, want))
    require(stacks["samples"] == sum(own for _, own in found.values()), "all samples")
    print("%s: %d samples of %d functions" % (os.path.basename(path), stacks["samples"], len(want)))


def test(box):
    profiler, path = Profiler(box), take_real(box)
    check(profiler, os.path.join(box.dir, "real.json"), box.opreport, path)
    box.shutdown()
    check(profiler, os.path.join(box.dir, "hostile.json"), make_hostile(box), "--by=cgroup")


if __name__ == "__main__":
    opdtest.run(test, needs=needs_npm)
