#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""opimport --abi: sample files of machines with another byte order, other alignment or the header
of 0.9.x. Run from the build directory.
"""
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path[:0] = [os.path.join(SOURCE, "tests", "format"), os.path.join(SOURCE, "tests", "unit")]
import reader  # noqa: E402

OPIMPORT = os.path.abspath(os.environ.get("OPIMPORT", "bin/opimport"))
SIZES = {"double": 8, "u64": 8, "u8": 1, "u32": 4, "int": 4, "unsigned_int": 4, "odb_key_t": 8, "odb_index_t": 4,
         "odb_value_t": 4, "odb_node_nr_t": 4,
         "odb_descr_t": 32, "odb_node_t": 16}
FIELDS = ("magic", "version", "cpu_type", "ctr_event", "ctr_um", "ctr_count", "is_kernel", "cpu_speed", "mtime",
          "cg_to_is_kernel", "anon_start",
          "cg_to_anon_start")
VALUES = {"version": 0x13, "cpu_type": 4, "ctr_event": 0x76, "ctr_um": 0x3f, "ctr_count": 100000, "is_kernel": 1,
          "cpu_speed": 2400.5,
          "mtime": 0x1122334455, "cg_to_is_kernel": 1, "anon_start": 0x7f0012345000, "cg_to_anon_start": 0x7e0000001000}
NODES = [(0x401126, 3), (0x1112223334445556, 0xfffffff0), (0x10, 1), (0x401126, 4)]
WIDE = {"cpu_speed": "d", "mtime": "Q", "anon_start": "Q", "cg_to_anon_start": "Q"}


class Machine:
    """Where such a machine has what."""

    def __init__(self, little, header_bytes, offsets, key_at=0, value_at=8, next_at=12, version=0x13):
        self.order, self.little, self.header_bytes, self.version = "<" if little else ">", little, header_bytes, version
        self.offsets, self.node = dict(zip(FIELDS, offsets)), {"key": key_at, "value": value_at, "next": next_at}

    def abi(self, **changes):
        lines = {"sizeof_" + name: size for name, size in SIZES.items()}
        lines["sizeof_struct_opd_header"] = self.header_bytes
        lines.update(("offsetof_node_" + name, at) for name, at in self.node.items())
        lines.update(offsetof_descr_size=0, offsetof_descr_current_size=4)
        lines.update(("offsetof_header_" + name, at) for name, at in self.offsets.items())
        lines["little_endian"] = int(self.little)
        lines.update(changes)
        return "".join("%s %d\n" % line for line in lines.items() if line[1] is not None)

    def file(self, nodes=tuple(NODES), size=128, **values):
        header = bytearray(self.header_bytes)
        header[self.offsets["magic"]:self.offsets["magic"] + 4] = b"DAE\n"
        for name, value in {**VALUES, "version": self.version, **values}.items():
            struct.pack_into(self.order + WIDE.get(name, "I"), header, self.offsets[name], value)
        body = bytearray(16 * size)
        for i, (key, value) in enumerate(nodes, 1):
            struct.pack_into(self.order + "Q", body, 16 * i + self.node["key"], key)
            struct.pack_into(self.order + "I", body, 16 * i + self.node["value"], value)
        return bytes(header) + struct.pack(self.order + "II24x", size, len(nodes) + 1) + bytes(body) + bytes(4 * size)


IS_LITTLE = reader.ORDER == "<"
OURS = Machine(IS_LITTLE, 72, (0, 4, 8, 12, 16, 20, 24, 32, 40, 48, 56, 64))
OTHER = Machine(not IS_LITTLE, 72, (0, 4, 8, 12, 16, 20, 24, 32, 40, 48, 56, 64))
PACKED = Machine(not IS_LITTLE, 64, (0, 4, 8, 12, 16, 20, 24, 28, 36, 44, 48, 56), key_at=8, value_at=4, next_at=0)
OLD = Machine(IS_LITTLE, 88, (0, 4, 8, 12, 16, 20, 24, 32, 40, 48, 64, 72), version=0x12)


class Foreign(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.out = os.path.join(self.dir, "out")

    def put(self, name, content):
        path = os.path.join(self.dir, name)
        with open(path, "wb") as stream:
            stream.write(content if isinstance(content, bytes) else content.encode())
        return path

    def opimport(self, abi, content, *options, name="in"):
        return subprocess.run([OPIMPORT, "-a", self.put("abi", abi), "-o", self.out, *options,
                               self.put(name, content)], capture_output=True, text=True,
                              check=False)

    def refused(self, words, *args, **more):
        done = self.opimport(*args, **more)
        self.assertEqual(done.returncode, 1, done)
        self.assertRegex(done.stderr, words)
        self.assertEqual(sorted(set(os.listdir(self.dir)) - {"abi", "in"}), [])

    def check(self, machine, cpu_type=4):
        done = self.opimport(machine.abi(), machine.file())
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        with open(self.out, "rb") as stream:
            header, keys, _ = reader.parse_samples("out", stream.read())
        self.assertEqual(keys, {0x401126: 7, 0x1112223334445556: 0xfffffff0, 0x10: 1})
        with open(self.out, "rb") as stream:
            fields = struct.unpack(reader.ORDER + "4s6I4xdQI4xQQ", stream.read(72))
        self.assertEqual(fields, (b"DAE\n", 0x13, cpu_type) + tuple(VALUES[name] for name in FIELDS[3:]))
        self.assertTrue(header)

    def test_the_other_byte_order(self):
        self.check(OTHER)

    def test_another_alignment(self):
        self.check(PACKED)

    def test_the_header_of_0_9(self):
        self.check(OLD)

    def test_more_nodes_than_are_read_at_once(self):
        nodes = [(i * 3, i + 1) for i in range(20000)]
        done = self.opimport(OTHER.abi(), OTHER.file(nodes, size=32768), "-V")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("20000 nodes, %s bytes first" % ("high" if IS_LITTLE else "low"), done.stdout)
        with open(self.out, "rb") as stream:
            self.assertEqual(reader.parse_samples("out", stream.read())[1], dict(nodes))

    def test_our_own_only_by_force(self):
        self.refused("--force", OURS.abi(), OURS.file())
        self.assertEqual(self.opimport(OURS.abi(), OURS.file(), "-f").returncode, 0)

    def test_jit_objects_are_passed_over(self):
        done = self.opimport(OTHER.abi(), b"\x7fELF", name="1.jo")
        self.assertEqual((done.returncode, done.stdout, done.stderr, os.path.exists(self.out)), (0, "", "", False))

    def test_nothing_is_written_over(self):
        self.put("out", "mine")
        self.assertRegex(self.opimport(OTHER.abi(), OTHER.file()).stderr, "cannot make .*out: File exists")
        with open(self.out, encoding="ascii") as stream:
            self.assertEqual(stream.read(), "mine")

    def test_descriptions_that_make_no_sense(self):
        self.refused("offsetof_header_mtime is missing", OTHER.abi(offsetof_header_mtime=None), OTHER.file())
        self.refused("offsetof_header_mtime makes no sense", OTHER.abi(offsetof_header_mtime=65), OTHER.file())
        self.refused("offsetof_node_key makes no sense", OTHER.abi(sizeof_odb_key_t=3), OTHER.file())
        self.refused("sizeof_odb_node_t makes no sense", OTHER.abi(sizeof_odb_node_t=2 ** 40), OTHER.file())
        self.refused("cannot read .*abi", "sizeof_u64 8\0", OTHER.file())

    def test_files_that_are_none(self):
        whole = OTHER.file()
        self.refused("bad magic number, at byte 0", OTHER.abi(), b"X" + whole[1:])
        self.refused("version mismatch, at byte 4", OTHER.abi(), OTHER.file(version=0x11))
        self.refused("at byte 0", OTHER.abi(), whole[:71])
        self.refused("at byte 72", OTHER.abi(), whole[:100])
        self.refused("at byte 72", OTHER.abi(), whole[:104 + 32])
        self.refused("at byte 72", OTHER.abi(), whole[:72] + struct.pack(OTHER.order + "II", 2 ** 31, 2 ** 31) + whole[80:])
        self.refused("at byte 72", OTHER.abi(), whole[:72] + struct.pack(OTHER.order + "II", 128, 0) + whole[80:])

    def test_the_command_line(self):
        for options, words in ((["-a", "x"], "--output"), (["-a", "x", "-o", "y"], "one sample file"),
                               (["-f", "x"], "go with --abi"),
                               (["-a", "x", "-o", "y", "-k", "z", "w"], "alone")):
            done = subprocess.run([OPIMPORT, *options], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, words)


if __name__ == "__main__":
    unittest.main()
