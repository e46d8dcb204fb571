#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""opreport --format=firefox, checked against the processed profile format of the Firefox Profiler:
docs-developer/processed-profile-format.md, CHANGELOG-formats.md (version 48) and
src/types/profile.js of github.com/firefox-devtools/profiler. tests/system/test_firefox_profiler.py
loads it into the profiler itself.

Run from the build directory by `make check`.
"""
import json
import os
import sys
import unittest

SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path.insert(0, os.path.join(SOURCE, "tests", "unit"))
sys.dont_write_bytecode = True
from stack_session import StackCase  # noqa: E402

COLOURS = {"transparent", "purple", "green", "orange", "yellow", "lightblue", "blue", "brown", "magenta", "red", "lightred",
           "darkgrey", "grey"}
LIBRARY = 1  # type of a resource


class Index:
    """A number of a row in another table, or None or -1 where the format has these."""

    def __init__(self, table, otherwise=()):
        self.table, self.otherwise = table, otherwise


NUMBER, STRING, BOOL, NULL = (int, float), str, bool, type(None)
TABLES = {
    "samples": {"stack": Index("stackTable", (None,)), "time": NUMBER, "weight": int},
    "markers": {"data": object, "name": Index("stringArray"), "startTime": NUMBER, "endTime": NUMBER, "phase": int,
                "category": Index("categories")},
    "stackTable": {"frame": Index("frameTable"), "category": Index("categories"), "subcategory": int,
                   "prefix": Index("stackTable", (None,))},
    "frameTable": {"address": int, "inlineDepth": int, "category": Index("categories", (None,)), "subcategory": int,
                   "func": Index("funcTable"), "nativeSymbol": Index("nativeSymbols", (None,)), "innerWindowID": int,
                   "implementation": Index("stringArray", (None,)), "line": (int, NULL), "column": (int, NULL)},
    "funcTable": {"name": Index("stringArray"), "isJS": BOOL, "relevantForJS": BOOL, "resource": Index("resourceTable", (-1,)),
                  "fileName": Index("stringArray", (None,)), "lineNumber": (int, NULL), "columnNumber": (int, NULL)},
    "resourceTable": {"lib": Index("libs", (None,)), "name": Index("stringArray"), "host": Index("stringArray", (None,)),
                      "type": int},
    "nativeSymbols": {"libIndex": Index("libs"), "address": int, "name": Index("stringArray"), "functionSize": (int, NULL)},
}
THREAD = {"name": STRING, "processName": STRING, "pid": STRING, "tid": STRING, "isMainThread": BOOL, "processType": STRING,
          "processStartupTime": NUMBER, "processShutdownTime": (int, float, NULL), "registerTime": NUMBER,
          "unregisterTime": (int, float, NULL), "pausedRanges": list, "stringArray": list}
META = {"version": int, "preprocessedProfileVersion": int, "product": STRING, "importedFrom": STRING, "interval": NUMBER,
        "startTime": NUMBER, "processType": int, "stackwalk": int, "debug": BOOL, "symbolicated": BOOL,
        "usesOnlyOneStackType": BOOL, "doesNotUseFrameImplementation": BOOL, "sourceCodeIsNotOnSearchfox": BOOL,
        "markerSchema": list, "extensions": dict, "sampleUnits": dict, "categories": list, "extra": list}
LIB = {"arch": STRING, "name": STRING, "path": STRING, "debugName": STRING, "debugPath": STRING, "breakpadId": STRING,
       "codeId": (str, NULL)}


class Firefox(StackCase):
    def check_object(self, found, fields):
        self.assertEqual(set(found), set(fields))
        for name, kind in fields.items():
            self.assertIsInstance(found[name], kind, name)

    def check_table(self, thread, name, rows):
        table, columns = thread[name], TABLES[name]
        extra = {"length"} | ({"weightType"} if name == "samples" else set())
        self.assertEqual(set(table), set(columns) | extra)
        for column, kind in columns.items():
            values = table[column]
            self.assertEqual(len(values), table["length"], (name, column))
            if isinstance(kind, Index):
                self.assertFalse([value for value in values if value not in kind.otherwise and
                                  not (type(value) is int and 0 <= value < rows[kind.table])], (name, column))
            else:
                self.assertTrue(all(isinstance(value, kind) for value in values), (name, column))

    def stacks_of(self, thread):
        """Samples by stack; a stack of a caller comes before that of the callee."""
        table, texts = thread["stackTable"], []
        for prefix, frame in zip(table["prefix"], table["frame"]):
            name = thread["stringArray"][thread["funcTable"]["name"][thread["frameTable"]["func"][frame]]]
            texts.append(name if prefix is None else texts[prefix] + ";" + name)
        return {thread["name"] + ("" if stack is None else ";" + texts[stack]): weight
                for stack, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"])}

    def firefox(self, *options):
        profile = json.loads(self.report("--format=firefox", *options))
        self.assertEqual(set(profile), {"meta", "pages", "counters", "profilerOverhead", "threads", "libs"})
        meta = profile["meta"]
        self.check_object(meta, META)
        self.assertEqual(meta["preprocessedProfileVersion"], 48)
        for category in meta["categories"]:
            self.check_object(category, {"name": STRING, "color": STRING, "subcategories": list})
            self.assertIn(category["color"], COLOURS)
            self.assertEqual(category["subcategories"][0], "Other")
        self.assertIn("grey", [category["color"] for category in meta["categories"]])
        for lib in profile["libs"]:
            self.check_object(lib, LIB)
        stacks = {}
        for thread in profile["threads"]:
            self.check_object({name: value for name, value in thread.items() if name not in TABLES}, THREAD)
            rows = {name: thread[name]["length"] for name in TABLES}
            rows.update(stringArray=len(thread["stringArray"]), libs=len(profile["libs"]), categories=len(meta["categories"]))
            for name in TABLES:
                self.check_table(thread, name, rows)
            self.assertEqual(len(set(thread["stringArray"])), len(thread["stringArray"]))
            self.assertEqual(thread["samples"]["weightType"], "samples")
            self.assertEqual(thread["samples"]["time"], sorted(thread["samples"]["time"]))
            self.assertEqual(set(thread["resourceTable"]["type"]) - {LIBRARY}, set())
            stacks.setdefault(thread["processName"], {}).update(self.stacks_of(thread))
        used = {lib for thread in profile["threads"] for lib in thread["resourceTable"]["lib"]}
        self.assertEqual(used - {None}, set(range(len(profile["libs"]))), "libs that no resource uses")
        pids = [thread["pid"] for thread in profile["threads"]]
        self.assertEqual(len(set(pids)), len(pids))
        self.profile = profile
        return stacks

    def folded(self, *options):
        lines = self.report("--format=folded", *options).splitlines()
        return {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in lines}

    def test_stacks(self):
        self.fill()
        for options in ([], ["--by=comm"], ["--by=thread", "--focus=warm"], ["--threshold=10"], ["--depth=1"]):
            self.assertEqual(self.firefox(*options), {"STACKS:99:0": self.folded(*options)}, options)
        self.assertIn("94 % complete, 6 % cut", self.profile["meta"]["extra"][0]["entries"][0]["value"])

    def test_the_largest_group_alone(self):
        self.fill()
        self.assertEqual(self.firefox("--by=comm", "--top=1"), {"STACKS:99:0": self.folded("--by=comm", "--top=1")})

    def test_interval(self):
        """A sample of STACKS:10101010 stands for so many nanoseconds."""
        self.store.add(self.frames("cold", "hot"), 5, event="STACKS:10101010:0x0")
        self.store.add(self.frames("cold"), 2, event="STACKS:10101010:0x0")
        self.firefox()
        self.assertAlmostEqual(self.profile["meta"]["interval"], 1000 / 99, places=3)
        times = self.profile["threads"][0]["samples"]["time"]
        self.assertIn(round(times[1] * 99 / 1000), (2, 5))

    def test_events(self):
        self.store.add(self.frames("cold", "hot"), 5)
        self.store.add(self.frames("hot"), 2, event="page-faults:100:0")
        self.assertEqual(self.firefox(), {"STACKS:99:0": {"prog;cold;hot": 5}, "page-faults:100:0": {"prog;hot": 2}})

    def test_hostile(self):
        names = ["\"\n\\\x1b", "</script>", "\x01\x7f", "\u202e"]
        for name in names:
            self.store.add(self.frames("cold", "hot"), 2, comm=name)
        self.store.add([], 3, cgroup="/" + 400 * "long name ")
        stacks = self.firefox("--by=comm")["STACKS:99:0"]
        self.assertEqual(sum(stacks.values()), 2 * len(names) + 3)
        self.assertEqual((stacks["</script>;cold;hot"], stacks["prog"]), (2, 3))
        self.assertEqual(sum(self.firefox("--by=cgroup")["STACKS:99:0"].values()), 2 * len(names) + 3)


if __name__ == "__main__":
    unittest.main()
