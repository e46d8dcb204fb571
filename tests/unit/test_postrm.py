#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Debian package, purged, leaves of the session directory what is the user's, and takes each
other file that doc/format.md has. Installed where the kernel does not let opd start, it says so.
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
KEPT = {"abi", "damaged", "samples"}
SYNCED = ("clock", "daemonrc", "daemonrc_new", "paused", "profiling")  # written under another name first


def text_of(*path):
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as stream:
        return stream.read()


def files_of_the_format():
    table = text_of("doc", "format.md").split("## The session directory\n", 1)[1].split("\n\n")[1]
    return {path.split("/")[0] for row in re.findall(r"^\| (`[^|]*) \|", table, re.M) for path in re.findall(r"`([^`]+)`", row)}


class Purge(unittest.TestCase):
    def purge(self, word):
        """What is left of a session directory that had everything."""
        with tempfile.TemporaryDirectory() as root:
            session = root + "/var/lib/oprofile"
            for path in (session + "/tmp", session + "/samples/current", session + "/damaged", root + "/run/opd",
                         root + "/etc/opd", root + "/var/cache/opd/tables/ab"):
                os.makedirs(path)
            for name in files_of_the_format() - {"tmp", "samples", "damaged"} | {name + ".tmp" for name in SYNCED} | {"abi.tmp"}:
                with open(os.path.join(session, name), "w", encoding="ascii"):
                    pass
            script = re.sub(r"(?<!\w)/(var|run|etc)/", r"$ROOT/\1/", text_of("packaging", "debian", "opd.postrm"))
            self.assertEqual(set(re.findall(r"(?<!\w)/\w+", script)), {"/bin"}, "what would be removed of this host")
            subprocess.run(["sh", "-uc", script, "opd.postrm", word], env={**os.environ, "ROOT": root}, check=True)
            rest = set(os.listdir(session))
            if word == "purge":
                self.assertFalse(os.path.exists(root + "/run/opd") or os.path.exists(root + "/etc/opd") or
                                 os.path.exists(root + "/var/cache/opd"))
        return rest

    def test_purge(self):
        self.assertTrue({"abi", "lock", "paused", "profiling", "samples", "tmp"} <= files_of_the_format())
        self.assertEqual(self.purge("purge"), KEPT)

    def test_remove(self):
        self.assertTrue(self.purge("remove") >= files_of_the_format())


class Install(unittest.TestCase):
    def install(self):
        """What the script says: nothing, whatever the kernel allows, since opd works with all."""
        script = text_of("packaging", "debian", "opd.postinst").replace("systemd-sysusers", "true")
        self.assertNotIn("/proc", script)
        done = subprocess.run(["sh", "-uc", script, "opd.postinst", "configure"], check=True, capture_output=True, text=True)
        return done.stdout + done.stderr

    def test_quiet(self):
        self.assertEqual(self.install(), "")


if __name__ == "__main__":
    unittest.main()
