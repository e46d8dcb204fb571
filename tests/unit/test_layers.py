#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The layering of the production code, and that its check (tests/layers.py) finds each kind of fault.

Run from the build directory by `make check`.
"""
import os
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.abspath(os.environ.get("srcdir", "."))
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import layers  # noqa: E402  (after the path is set)

# A sound tree: tool -> report room -> pipeline room -> libop.
SOUND = {
    "libop/base/README.md": "May use: nothing.\n",
    "libop/base/text.h": "int op_text(void);\n",
    "libop/base/text.c": '#include "libop/base/text.h"\nint op_text(void) { return 1; }\n',
    "daemon/README.md": "May use: pipeline/count, libop/base\n",
    "daemon/sync.h": "int opd_sync(void);\n",
    "daemon/sync.c": '#include "daemon/sync.h"\n#include "pipeline/count/count.h"\nint opd_sync(void) { return opd_count(); }\n',
    "pipeline/count/README.md": "May use: libop/base\n",
    "pipeline/count/count.h": "int opd_count(void);\n",
    "pipeline/count/count.c": '#include "libop/base/text.h"\nint opd_count(void) { return op_text(); }\n',
    "tools/report/README.md": "May use: libop/base\n",
    "tools/report/rows.c": '#include "libop/base/text.h"\nint opr_rows(void) { return op_text(); }\n',
    "tools/opreport/README.md": "May use: libop/base,\n  tools/report\n",
    "tools/opreport/main.c": "int opr_rows(void);\nint main(void) { return opr_rows(); }\n",
}


def findings_of(files):
    """The findings of the check in a tree of these files. C files are compiled."""
    with tempfile.TemporaryDirectory() as top:
        source, build = os.path.join(top, "source"), os.path.join(top, "build")
        for path, text in files.items():
            os.makedirs(os.path.join(source, os.path.dirname(path)), exist_ok=True)
            os.makedirs(os.path.join(build, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(source, path), "w", encoding="utf-8") as stream:
                stream.write(text)
        for path in files:
            if path.endswith(".c"):
                made = os.path.join(build, os.path.dirname(path), "lib-" + os.path.basename(path)[:-2] + ".o")
                subprocess.run([os.environ.get("CC", "cc").split()[-1], "-I" + source, "-c", "-o", made,
                                os.path.join(source, path)], check=True)
        return "\n".join(layers.findings(source, build))


class BrokenRules(unittest.TestCase):
    def assert_found(self, changes, *texts):
        found = findings_of({**SOUND, **changes})
        for text in texts:
            self.assertIn(text, found)

    def test_sound(self):
        self.assertEqual(findings_of(SOUND), "")

    def test_unlisted_room(self):
        self.assert_found({"tools/report/README.md": "May use: nothing.\n"},
                          "tools/report/rows.c includes libop/base/text.h: tools/report/README.md does not list libop/base")

    def test_unlisted_room_by_symbol(self):
        self.assert_found({"tools/opreport/README.md": "May use: libop/base\n"},
                          "tools/opreport/main.c needs opr_rows of tools/report/rows.c: tools/opreport/README.md does not list")

    def test_no_list(self):
        self.assert_found({"tools/report/README.md": "# report\n"}, 'tools/report/README.md: no line "May use:')

    def test_libop_uses_daemon(self):
        self.assert_found({"libop/base/text.c": "int opd_sync(void);\nint op_text(void) { return opd_sync(); }\n"},
                          "libop/base/text.c needs opd_sync of daemon/sync.c: libop/ uses nothing of daemon/")

    def test_pipeline_uses_daemon(self):
        self.assert_found({"pipeline/count/count.c": '#include "daemon/sync.h"\nint opd_count(void) { return 0; }\n'},
                          "pipeline/count/count.c includes daemon/sync.h: pipeline/ uses nothing of daemon/")

    def test_tool_uses_daemon(self):
        self.assert_found({"tools/report/rows.c": '#include "daemon/sync.h"\nint opr_rows(void) { return opd_sync(); }\n'},
                          "tools/report/rows.c includes daemon/sync.h: tools/ uses nothing of daemon/")

    def test_room_uses_tool(self):
        self.assert_found({"tools/opreport/text.h": "\n",
                           "tools/report/rows.c": '#include "tools/opreport/text.h"\nint opr_rows(void) { return 0; }\n'},
                          "tools/report/rows.c includes tools/opreport/text.h: the room of a tool is used by no other room")

    def test_circle_of_files(self):
        self.assert_found({"libop/base/text.c": "int op_file(void);\nint op_text(void) { return op_file(); }\n",
                           "libop/base/file.c": '#include "libop/base/text.h"\nint op_file(void) { return op_text(); }\n'},
                          "libop/base/text.c needs op_file of libop/base/file.c: in a circle of 2 files",
                          "libop/base/file.c includes libop/base/text.h: in a circle of 2 files")

    def test_circle_of_rooms(self):
        self.assert_found({"libop/base/README.md": "May use: libop/ring\n",
                           "libop/ring/README.md": "May use: libop/base\n",
                           "libop/ring/reader.h": "\n",
                           "libop/ring/pair.c": '#include "libop/base/text.h"\nint op_pair(void) { return op_text(); }\n',
                           "libop/base/file.c": '#include "libop/ring/reader.h"\nint op_file(void) { return 0; }\n'},
                          "libop/base/file.c includes libop/ring/reader.h: in a circle of 2 rooms",
                          "libop/ring/pair.c includes libop/base/text.h: in a circle of 2 rooms")


class ThisHouse(unittest.TestCase):
    def test_layers(self):
        self.assertEqual("\n".join(layers.findings(SOURCE, os.getcwd())), "")


if __name__ == "__main__":
    unittest.main()
