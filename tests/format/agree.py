#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares what opreport prints with what the independent reader counts.

usage: agree.py OPREPORT SESSION-DIR

Runs OPREPORT -n -f on the session; every application and dependent image must have the reader's
count, and none be missing.
"""
import collections
import os
import re
import subprocess
import sys

import reader

LINE = re.compile(r"^(\t?)((?: *\d+ +[0-9.e+-]+ )+)(.*)$")
CELL = re.compile(r" *(\d+) +([0-9.e+-]+) ")
UNSAFE = "\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufffe\uffff"


class Disagreement(Exception):
    """opreport and the reader differ."""


def escaped(name):
    """What cannot be shown, or would reorder or end a line, by its bytes in hexadecimal."""
    text = ""
    for char in os.fsencode(name).decode("utf-8", "surrogateescape"):
        code = ord(char)
        if 0xdc80 <= code <= 0xdcff:
            text += "\\x%02x" % (code - 0xdc00)
        elif code < 0x20 or 0x7f <= code < 0xa0 or char in UNSAFE:
            text += "".join("\\x%02x" % byte for byte in char.encode("utf-8"))
        else:
            text += char
    return text


def shown(name):
    """A name as opreport(1), NAMES, says: a backslash that would look like the beginning of an
    escape is one, too.
    """
    return "\\x5c".join(escaped(part) for part in re.split(r"\\(?=x[0-9a-f]{2})", name))


def application_of(name):
    """A kernel thread is not an image: opreport shows it without the slash that images have."""
    if name.app[0] == "kern" and name.app != name.image and name.app[1].startswith("/["):
        return shown(name.app[1][1:])
    return shown(name.app[1])


def parse_summary(text):
    """[(application, image or None, [(count, percent), one for each class])] of the output of
    opreport -n -f.
    """
    rows, app = [], None
    for line in text.split("\n")[:-1]:
        match = LINE.match(line)
        if not match:
            raise Disagreement("opreport prints a line that is no line of the summary: %r" % line)
        cells = [(int(count), float(percent)) for count, percent in CELL.findall(match.group(2))]
        if match.group(1):
            rows.append((app, match.group(3), cells))
        else:
            app = match.group(3)
            rows.append((app, None, cells))
    return rows


def class_key(name):
    return (name.event, str(name.count), name.unit_mask, name.tgid, name.tid, name.cpu)


def expected(files):
    """Classes in opreport's order; {application: [count per class]}; {application: {image: [count
    per class]}}.
    """
    files = [f for f in files if f.name.callee is None]
    classes = sorted({class_key(f.name) for f in files}, key=lambda k: (k[2], k[0], k[1]))
    apps = collections.defaultdict(lambda: [0] * len(classes))
    images = collections.defaultdict(lambda: collections.defaultdict(lambda: [0] * len(classes)))
    for sample_file in files:
        name, column = sample_file.name, classes.index(class_key(sample_file.name))
        app, image = application_of(name), shown(name.image[1])
        apps[app][column] += sample_file.total
        images[app][image][column] += sample_file.total
    return classes, apps, images


def check_cells(where, cells, counts, bases):
    if [c for c, _ in cells] != counts:
        raise Disagreement("%s: opreport says %s, the files %s" % (where, [c for c, _ in cells], counts))
    for (_, percent), count, base in zip(cells, counts, bases):
        right = 100.0 * count / base if base else 0.0
        if abs(percent - right) > 0.06 * right + 0.00006 or (right > 0.01 and abs(percent - right) > 0.001):
            raise Disagreement("%s: opreport says %g %%, it is %g %%" % (where, percent, right))


def check_order(rows):
    """Applications come by falling count of the first class, dependents too."""
    last_app, last_image = None, {}
    for app, image, cells in rows:
        last = last_app if image is None else last_image.get(app)
        if last is not None and cells[0][0] > last:
            raise Disagreement("%s is not in order" % (image or app))
        if image is None:
            last_app = cells[0][0]
        else:
            last_image[app] = cells[0][0]


def compare_summary(files, text):
    """Raises Disagreement unless the summary `text` has exactly what the sample files have."""
    _, apps, images = expected(files)
    rows = parse_summary(text)
    totals = [sum(column) for column in zip(*apps.values())]
    seen_apps, seen_images = set(), collections.defaultdict(set)
    for app, image, cells in rows:
        if app not in apps or (image is not None and image not in images[app]):
            raise Disagreement("no file has %s of %s" % (image, app))
        if image is None:
            seen_apps.add(app)
            check_cells(app, cells, apps[app], totals)
        else:
            seen_images[app].add(image)
            check_cells("%s of %s" % (image, app), cells, images[app][image], apps[app])
    for app in apps:
        wanted = {i for i, counts in images[app].items() if any(counts)} if set(images[app]) != {app} else set()
        if app not in seen_apps or wanted != seen_images[app]:
            raise Disagreement("opreport shows %s with %s, not %s" % (app, sorted(seen_images[app]), sorted(wanted)))
    check_order(rows)
    return len(rows)


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: agree.py OPREPORT SESSION-DIR")
    done = subprocess.run([sys.argv[1], "--session-dir=" + sys.argv[2], "-n", "-f"], capture_output=True, check=False)
    if done.returncode:
        sys.exit("agree.py: opreport: exit code %d: %s" % (done.returncode, done.stderr.decode("utf-8", "replace")))
    try:
        rows = compare_summary(reader.read_session(sys.argv[2]), done.stdout.decode("utf-8", "replace"))
    except (Disagreement, reader.FormatError) as error:
        sys.exit("agree.py: %s" % error)
    print("%d lines agree" % rows)


if __name__ == "__main__":
    main()
