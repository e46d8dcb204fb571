#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks how production files use each other: usage: layers.py SOURCE-DIR BUILD-DIR.

A unit is a .c file with the header of the same name. A unit uses another one when it includes its
header or when its object needs a symbol that the other object defines (nm). The rules:

  room     a room uses only itself and the rooms on the "May use:" line of its README.md
  top      libop/ uses nothing outside libop/, pipeline/ only libop/, daemon/ and tools/ only
           pipeline/ and libop/
  tool     the room of a tool is used by no other room
  circle   no units and no rooms use each other in a circle

Each finding is one line that names two files. Exit code 1 when there is one.
"""
import os
import re
import subprocess
import sys

TOPS = ("libop", "pipeline", "daemon", "tools")
# What each top-level folder may use beside itself.
MAY_USE_TOPS = {
    "libop": (),
    "pipeline": ("libop",),
    "daemon": ("pipeline", "libop"),
    "tools": ("pipeline", "libop"),
}
INCLUDE = re.compile(r'^#include "((?:%s)/[^"]+)\.h"' % "|".join(TOPS), re.M)
MAY_USE = re.compile(r"^May use:(.*(?:\n  +\S.*)*)", re.M)


def production_units(source):
    """{unit: [its files]}, a unit being a path without its ending."""
    units = {}
    for top in TOPS:
        for directory, _, names in os.walk(os.path.join(source, top)):
            for name in names:
                if name.endswith((".c", ".h")):
                    path = os.path.relpath(os.path.join(directory, name), source)
                    units.setdefault(path[:-2], []).append(path)
    return units


def included(source, units):
    """{(user, used): why} by include lines."""
    uses = {}
    for unit, paths in units.items():
        for path in paths:
            with open(os.path.join(source, path), encoding="utf-8") as stream:
                for used in INCLUDE.findall(stream.read()):
                    if used != unit:
                        uses.setdefault((unit, used), "%s includes %s.h" % (path, used))
    return uses


def object_symbols(build, units):
    """(defined, needed): {symbol: unit}, {unit: symbols}, of the objects below the build directory."""
    defined, needed = {}, {}
    objects = {}
    for top in TOPS:
        for directory, _, names in os.walk(os.path.join(build, top)):
            for name in names:
                if name.endswith(".o"):
                    unit = os.path.join(os.path.relpath(directory, build), name[:-2].rsplit("-", 1)[-1])
                    if unit in units:
                        objects[os.path.join(directory, name)] = unit
    if not objects:
        sys.exit("layers.py: no objects below %s" % build)
    output = subprocess.run(["nm", "-g", "-A", *sorted(objects)], capture_output=True, text=True, check=True).stdout
    for line in output.splitlines():
        path, words = line.split(":", 1)[0], line.split(":", 1)[1].split()
        unit = objects[path]
        if words[-2] in "Uvw":
            needed.setdefault(unit, set()).add(words[-1])
        elif words[-1] != "main":
            defined.setdefault(words[-1], unit)
    return defined, needed


def linked(build, units):
    """{(user, used): why} by symbols."""
    defined, needed = object_symbols(build, units)
    uses = {}
    for unit, symbols in needed.items():
        for symbol in sorted(symbols):
            used = defined.get(symbol, unit)
            if used != unit:
                uses.setdefault((unit, used), "%s.c needs %s of %s.c" % (unit, symbol, used))
    return uses


def strongly_connected(nodes, edges):
    """The sets of nodes that reach each other, those of one node left out (Tarjan)."""
    following = {}
    for user, used in edges:
        following.setdefault(user, []).append(used)
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in following.get(node, ()):
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            group = set(stack[stack.index(node):])
            del stack[stack.index(node):]
            if len(group) > 1:
                found.append(group)

    for node in sorted(nodes):
        if node not in index:
            visit(node)
    return found


def room_of(unit):
    return os.path.dirname(unit)


def allowed_rooms(source, room):
    """The rooms that a room's README.md lists, None when there is no such line."""
    try:
        with open(os.path.join(source, room, "README.md"), encoding="utf-8") as stream:
            line = MAY_USE.search(stream.read())
    except FileNotFoundError:
        return None
    return re.findall(r"[a-z_]+(?:/[a-z_]+)*", line.group(1)) if line else None


def forbidden(user, used):
    """Which rule of the whole house two rooms break, or None."""
    top, other = user.split("/")[0], used.split("/")[0]
    if other != top and other not in MAY_USE_TOPS[top]:
        return "%s/ uses nothing of %s/" % (top, other)
    if top == "tools" and used.startswith("tools/op"):
        return "the room of a tool is used by no other room"
    return None


def findings(source, build):
    units = production_units(source)
    uses = included(source, units)
    for pair, why in linked(build, units).items():
        uses.setdefault(pair, why)
    allowed = {room: allowed_rooms(source, room) for room in {room_of(unit) for unit in units}}
    for room in sorted(room for room, rooms in allowed.items() if rooms is None):
        yield '%s/README.md: no line "May use: ROOM, ROOM"' % room
    room_uses = {}
    for (user, used), why in sorted(uses.items()):
        rooms = room_of(user), room_of(used)
        if rooms[0] == rooms[1]:
            continue
        room_uses.setdefault(rooms, why)
        rule = forbidden(*rooms)
        if rule:
            yield "%s: %s" % (why, rule)
        elif allowed[rooms[0]] is not None and rooms[1] not in allowed[rooms[0]]:
            yield "%s: %s/README.md does not list %s" % (why, rooms[0], rooms[1])
    for name, nodes, edges in (("files", units, uses), ("rooms", allowed, room_uses)):
        for group in strongly_connected(nodes, edges):
            for pair in sorted(edges):
                if pair[0] in group and pair[1] in group:
                    yield "%s: in a circle of %d %s" % (edges[pair], len(group), name)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.setrecursionlimit(10000)
    found = list(findings(sys.argv[1], sys.argv[2]))
    print("\n".join(found) if found else "layers: ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
