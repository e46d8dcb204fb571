#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
A session of many images, as a build host makes them. It takes no more than BYTES_MAX for each sample
file when it is saved; reports say the same as before, with the pack, with the sample files that
--unpack makes anew, and from an archive.
"""
import os
import shutil

import opdtest
from opdtest import reader, require

NR_IMAGES = 400  # each has several sample files
BYTES_MAX = 1024
BLOCK = 512      # unit of st_blocks


def disk_bytes(top):
    total = 0
    for directory, _, names in os.walk(top):
        total += sum(os.lstat(os.path.join(directory, name)).st_blocks * BLOCK for name in names + ["."])
    return total


def run_images(box):
    """Like the small programs of a configure script: each runs once, somewhere deep."""
    with open(box.copy_work("work"), "rb") as stream:
        program = stream.read()
    for i in range(NR_IMAGES):
        path = os.path.join(box.dir, "build", "jobs", "work-%d" % (i // 20), "tests", "conftest.%d" % i)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as stream:
            stream.write(program + b"%d" % i)
        os.chmod(path, 0o755)
        box.good(path, "faults", 20)


def contents(box, session):
    return {f.path: (f.header, f.keys) for f in reader.read_session(box.session, session, strict=True)}


def check_damage(box):
    """A pack whose seal is wrong, and a link in its place: oparchive says so and leaves it out, and
    --repair puts it aside.
    """
    for kind in "seal", "link":
        copy, archive = os.path.join(box.dir, "copy-" + kind), os.path.join(box.dir, "archive-" + kind)
        shutil.copytree(box.session, copy)
        os.unlink(os.path.join(copy, "lock"))
        packed, elsewhere = os.path.join(copy, "samples", "build", "packed"), os.path.join(box.dir, "elsewhere")
        with open(packed, "r+b") as stream:
            stream.seek(5000)
            byte = stream.read(1)[0]
            if kind == "seal":
                stream.seek(5000)
                stream.write(bytes([byte ^ 4]))
        if kind == "link":
            os.rename(packed, elsewhere)
            os.symlink(elsewhere, packed)
        result = box.run(os.path.join(box.bin, "oparchive"), "--session-dir=" + copy, "-o", archive, "session:build")
        require(result.rc == 1 and "build/packed" in result.err, "oparchive of a bad %s: %s" % (kind, result))
        files = [name for _, _, names in os.walk(archive) for name in names if name.startswith("page-faults")]
        require(not files, "%d sample files of a bad %s are in the archive" % (len(files), kind))
        opcheck = (os.path.join(box.bin, "opcheck"), "--session-dir=" + copy)
        result = box.run(*opcheck, "build")
        require(result.rc and "packed" in result.out + result.err, "opcheck of a bad %s: %s" % (kind, result))
        box.run(*opcheck, "--repair", "build")
        require(not os.path.lexists(packed), "--repair leaves a bad %s" % kind)
        box.good(*opcheck, "build")
        shutil.rmtree(copy)
    require(os.path.getsize(elsewhere) > 1024, "--repair changed what the link leads to")


def test(box):
    box.configure()
    box.start_daemon("--event=page-faults:1", "--separate=library,kernel")
    run_images(box)
    box.opcontrol("--stop")
    box.check_ledger()
    expected, report = contents(box, "current"), box.opreport("-n", "-f")
    require(len(expected) >= 1024, "%d sample files" % len(expected))
    before = disk_bytes(os.path.join(box.session, "samples", "current"))
    box.opcontrol("--save=build")
    session = os.path.join(box.session, "samples", "build")
    opdtest.wait_until(lambda: not os.path.exists(os.path.join(session, "closing")), 60, "the session is on the disk")
    after = disk_bytes(session)
    print("%d sample files: %d bytes each before, %d in the saved session" %
          (len(expected), before / len(expected), after / len(expected)))
    require(after <= BYTES_MAX * len(expected), "%d bytes in the saved session" % after)
    require(not reader.list_files(session), "files beside the pack: %s" % reader.list_files(session)[:3])
    require(contents(box, "build") == expected, "the pack has other samples")
    require(box.opreport("-n", "-f", "session:build") == report, "the report of the pack differs")
    box.good(os.path.join(box.bin, "opcheck"), "--session-dir=" + box.session, "build")
    archive = os.path.join(box.dir, "archive")
    box.good(os.path.join(box.bin, "oparchive"), "--session-dir=" + box.session, "-o", archive, "session:build")
    require(contents_of_archive(archive) == expected, "the archive has other samples")
    shutil.rmtree(archive)
    check_damage(box)
    os.chmod(box.session, 0o700)
    box.good("/bin/sh", "-c", 'umask 0; exec "$@"', "sh", os.path.join(box.bin, "opcontrol"), "--unpack=build")
    modes = {os.stat(os.path.join(session, path)).st_mode & 0o7077 for path in reader.list_files(session)}
    require(modes == {0}, "files made anew that others may read: modes %s" % modes)
    require(not os.path.exists(os.path.join(session, "packed")), "the pack is still there")
    require(sorted(reader.list_files(session)) == sorted(expected), "other files than before")
    require(contents(box, "build") == expected, "the files that were made anew have other samples")
    require(box.opreport("-n", "-f", "session:build") == report, "the report of the files made anew differs")
    box.refused(os.path.join(box.bin, "opcontrol"), "--unpack=current")
    box.shutdown()


def contents_of_archive(archive):
    session_dir = os.path.join(archive, "var", "lib", "oprofile")
    return {f.path: (f.header, f.keys) for f in reader.read_session(session_dir, "build", strict=True)}


if __name__ == "__main__":
    opdtest.run(test)
