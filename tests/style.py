#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks for what the house style forbids: usage: style.py FILE-WITH-PATHS. One line for each
finding, exit code 1 when there is one.
"""
import os
import re
import sys

SOURCES = (".c", ".h", ".sh", ".py", ".mk")  # of others, texts for the most part, only that they are whole
WEB = (".js", ".css", ".html")
MAX_FILE_LINES = 800
MAX_FUNCTION_LINES = 80
MAX_CODE_COLUMNS = 132
MAX_TEXT_COLUMNS = 100  # comments and documents
TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Files of this tree that a text names; tools/perf and others are the kernel's.
NAMED_FILE = re.compile(r"(?<![\w/.-])(?:libop|pipeline|daemon|tools(?!/(?:perf|lib|include)/)|tests|scripts|doc)"
                        r"/[\w/]+\.(?:[ch]|py|sh|md|mk)\b")
UNMERGED = re.compile(r"^(<<<<<<<|>>>>>>>) ")
RECORDED = "/golden/src/"  # sources whose lines the recorded outputs quote
CHAINED = re.compile(r"\bif \(!err\b")
MAX_CHAINED = 2
# Rooms that still have functions with longer chains of `if (!err)`; all others are clean. This list
# only becomes shorter.
ROOMS_WITH_CHAINS = (
    "pipeline/drive",
    *("tools/" + room for room in ("opreport", "page", "profile", "stacks")))
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b")


def long_functions(lines):
    """(line, length) of the functions of a C file that are too long: from the line before '{' in
    column 0 to its '}'.
    """
    start = None
    for number, line in enumerate(lines, 1):
        if line.startswith("{"):
            start = number
        elif line.startswith("}") and start is not None:
            if number - start > MAX_FUNCTION_LINES:
                yield start, number - start
            start = None


def chains(path, lines):
    """(line, number) of the functions of a clean room with too many `if (!err)`: they return early, or
    go to one label.
    """
    room = os.path.dirname(os.path.relpath(os.path.abspath(path), TOP))
    if not room.startswith(("libop/", "pipeline/", "daemon", "tools/")) or room in ROOMS_WITH_CHAINS:
        return
    start, found = 0, 0
    for number, line in enumerate(lines, 1):
        if line.startswith("{"):
            start, found = number, 0
        elif line.startswith("}") and found > MAX_CHAINED:
            yield start, found
        else:
            found += len(CHAINED.findall(line))


def commented(path, lines):
    """For each line of a source whether it is a comment, or ends with one."""
    if path.endswith((".c", ".h")):
        inside = False
        for line in lines:
            code = re.sub(r'"(\\.|[^"\\])*"', '""', line)
            yield inside or "/*" in code
            inside = code.rfind("/*") > code.rfind("*/") or inside and "*/" not in code
    else:
        for line in lines:
            yield line.lstrip().startswith(("//", "/*") if path.endswith(WEB) else ("#", "dnl "))


def prose(path, lines):
    """For each line of a document whether it is text: no table, no example, no link that cannot be
    cut.
    """
    fenced = False
    for line in lines:
        if line.startswith("```"):
            fenced = not fenced
        if path.endswith(".md"):
            yield not (fenced or line.startswith(("|", "    ", "\t")) or " " not in line.strip())
        else:
            yield "\t" not in line  # a row of a table of tbl(1)


def too_wide(path, lines):
    is_source = path.endswith(SOURCES + WEB + (".am", ".ac", ".m4"))
    for number, (line, is_text) in enumerate(zip(lines, commented(path, lines) if is_source else prose(path, lines)), 1):
        columns = len(line.expandtabs(8))
        if is_text and columns > MAX_TEXT_COLUMNS:
            yield number, "%d columns of text, %d are the limit" % (columns, MAX_TEXT_COLUMNS)
        elif is_source and columns > MAX_CODE_COLUMNS:
            yield number, "%d columns, %d are the limit" % (columns, MAX_CODE_COLUMNS)


def findings(path):
    try:
        with open(path, encoding="utf-8") as stream:
            lines = stream.read().split("\n")
    except UnicodeDecodeError:
        return  # no text: the seed of a fuzzer
    for number, line in enumerate(lines, 1):
        if UNMERGED.search(line):
            yield number, "mark of a merge"
        for name in NAMED_FILE.findall(line) if path.endswith((".c", ".h", ".md")) else ():
            if not os.path.exists(os.path.join(TOP, name)):
                yield number, "there is no %s" % name
    yield from too_wide(path, lines)
    if not path.endswith(SOURCES):
        return
    if not any("SPDX-License-Identifier: GPL-3.0-or-later" in line for line in lines[:3]):
        yield 1, "no SPDX line"
    if len(lines) > MAX_FILE_LINES:
        yield 1, "%d lines" % len(lines)
    for number, line in enumerate(lines, 1):
        if UNFINISHED.search(line):
            yield number, "mark of unfinished work"
        if line != line.rstrip():
            yield number, "blanks at the end"
    if path.endswith((".c", ".h")):
        for number, length in long_functions(lines):
            yield number, "function of %d lines" % length
        for number, found in chains(path, lines):
            yield number, "%d times 'if (!err' in a function, %d are the limit" % (found, MAX_CHAINED)
    if path.endswith(".py"):
        compile("\n".join(lines), path, "exec")


def main():
    bad = 0
    with open(sys.argv[1], encoding="utf-8") as stream:
        for path in stream.read().splitlines():
            if RECORDED in path:
                continue
            for number, text in findings(path):
                print("%s:%d: %s" % (path, number, text))
                bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
