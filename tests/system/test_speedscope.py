#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
opreport --format=speedscope in speedscope itself: the package that npm has, opened from the disk in
a real browser. Its table of functions has the samples of opreport --stacks --format=json, alone and
with what they call, of a real session and of hostile names. SPEEDSCOPE=DIR is its dist/release, else
npm fetches it. --shots=DIR keeps pictures.
"""
import base64
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import time

import browser
import opdtest
from hot import compile_to
from opdtest import Skip, require

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "unit"))
SHOTS = next((word[8:] for word in sys.argv if word.startswith("--shots=")), None)
PACKAGE = "speedscope@1"
HOSTILE = ("</script><script>alert(1)</script>", "a;b\n1", "\"\\\x01\x7f", "\u202eevil")
# It tells its version and times on the console, and the browser how it draws.
PROBLEMS = ('"type": "error"', '"level": "error"', '"exceptionDetails"', "request of http")
# The rows of its table of functions: "12 (34%)" for all samples, the same for its own, the name.
TABLE = """[...document.querySelectorAll('table tr')].map(row => [...row.querySelectorAll('td')].map(cell => cell.textContent))
           .filter(row => row.length === 3)"""


def needs_browser():
    if not browser.program():
        raise Skip("there is no Chromium")
    if not os.environ.get("SPEEDSCOPE") and not shutil.which("npm"):
        raise Skip("there is no npm, and SPEEDSCOPE= names no directory")
    opdtest.needs_perf()


def fetch(box, package):
    """The directory of modules with a package of npm."""
    home = os.path.join(box.dir, "npm")
    os.mkdir(home)
    done = subprocess.run(["npm", "install", "--prefix", home, "--cache", os.path.join(home, "cache"), "--ignore-scripts",
                           "--no-audit", "--no-fund", "--fetch-retries=1", "--fetch-timeout=30000", package], check=False,
                          capture_output=True, text=True, timeout=300, cwd=home, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise Skip("npm has no %s here: %s" % (package, (re.findall("npm (?:ERR!|error) code (.*)", done.stderr) or ["?"])[0]))
    return os.path.join(home, "node_modules")


def site(box):
    """The page of speedscope."""
    place = os.environ.get("SPEEDSCOPE") or os.path.join(fetch(box, PACKAGE), "speedscope", "dist", "release")
    page = os.path.join(place, "index.html")
    require(os.path.exists(page), "there is no " + page)
    return page


def functions(nodes):
    """Samples of each name, with those of what it calls and alone. Recursion counts once."""
    paths, total, own = {0: ()}, collections.Counter(), collections.Counter()
    for node in nodes:
        paths[node["node"]] = paths[node["parent"]] + (node["name"],)
        own[node["name"]] += node["self"]
        total.update({name: node["self"] for name in set(paths[node["node"]])})
    return {name: (total[name], own[name]) for name in total}


def shown(tab):
    until = time.monotonic() + browser.HANG_SECONDS
    while not (rows := tab.run(TABLE)):
        require(time.monotonic() < until, "speedscope shows no table: %s" % tab.complaints)
        time.sleep(0.1)
    numbers = collections.Counter(), collections.Counter()
    for row in rows:
        for counter, text in zip(numbers, row):
            counter[row[2]] += int(re.match(r"([\d,]+)", text).group(1).replace(",", ""))
    return {name: (numbers[0][name], numbers[1][name]) for name in numbers[0]}


def open_in(tab, page, form, view):
    """As the command of speedscope does it: a script beside the page has the file."""
    with open(form, "rb") as stream, open(form + ".js", "w", encoding="ascii") as out:
        data = base64.b64encode(stream.read()).decode()
        out.write("speedscope.loadFileFromBase64(%s, %s)" % (json.dumps(os.path.basename(form)), json.dumps(data)))
    tab.open(page, "#localProfilePath=%s.js&view=%s" % (form.lstrip("/"), view))
    return shown(tab) if view == "sandwich" else tab.run("new Promise(done => setTimeout(done, 1000))")


def check(tab, page, form, opreport, *words):
    """`opreport` runs it and returns what it prints."""
    opreport("--format=speedscope", "--output-file=" + form, *words)
    stacks = json.loads(opreport("--stacks", "--format=json", *words))["stacks"]
    want = functions(stacks["nodes"])
    require(stacks["samples"] == sum(own for _, own in want.values()), "the nodes have all samples")
    tab.size(1280, 300 + 30 * len(want))  # its table has only the rows that are seen
    found = open_in(tab, page, form, "sandwich")
    require(found == want, "speedscope has %s, opreport %s" % (found, want))
    errors = [text for text in tab.complaints if any(word in text for word in PROBLEMS)]
    require(not errors, errors)
    print("%s: %d samples of %d functions" % (os.path.basename(form), stacks["samples"], len(want)))
    if SHOTS:
        name = os.path.join(SHOTS, os.path.splitext(os.path.basename(form))[0])
        tab.shot(name + "-sandwich.png")
        tab.size(1280, 900)
        open_in(tab, page, form, "left-heavy")
        tab.shot(name + ".png")


def take_real(box):
    """Stacks of a program; its path."""
    path = os.path.join(box.dir, "stacks")
    compile_to(box, path, "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", file="stacks.c")
    box.start_daemon("--event=default", "--stacks=499")
    box.good(path, 1000)
    box.opcontrol("--stop")
    return path


def make_hostile(box):
    """A session with hostile names; what runs opreport on it and returns what it prints."""
    os.environ["OPD_BINDIR"] = box.bin
    import page_data  # pylint: disable=import-outside-toplevel
    sessions, store = page_data.Sessions(box.dir), page_data.Store()
    page_data.fill(store)
    for name in HOSTILE:
        store.add(page_data.START("_start", "cold", "cold", "hot"), 7, cgroup="/" + name)
    sessions.write(store)

    def opreport(*words):
        done = sessions.opreport(*words)
        require(not done.returncode, done.stderr)
        return done.stdout
    return opreport


def test(box):
    page = site(box)
    with browser.Browser() as tab:
        path = take_real(box)
        check(tab, page, os.path.join(box.dir, "speedscope.json"), box.opreport, path)
        box.shutdown()
        check(tab, page, os.path.join(box.dir, "speedscope-hostile.json"), make_hostile(box), "--by=cgroup")


if __name__ == "__main__":
    opdtest.run(test, needs=needs_browser)
