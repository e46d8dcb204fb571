#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Damaged images: the reporting tools go on, and the sound ones are shown. Run from the build directory by `make check`.

usage: test_bad_images.py [COUNT]      so many mutants, 120 when nothing is said; make check-long
has 10,000
"""
import concurrent.futures
import itertools
import json
import lzma
import os
import random
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path[:0] = [os.path.join(SOURCE, "tests", "system"), os.path.join(SOURCE, "tests", "unit")]
import elfsyms  # noqa: E402
from sample_files import put_image  # noqa: E402

TOOLS = os.path.abspath(os.environ.get("TOOLS", "bin"))
PROGRAM = """struct node { struct node *next; int value; };
static int sum(struct node *n) { int s = 0; while (n) { s += n->value; n = n->next; } return s; }
int hot(int n) { struct node a = { 0, n }; struct node b = { &a, 2 * n }; return sum(&b); }
int main(int argc, char **argv) { (void)argv; return hot(argc); }
"""
BATCH = 60 # mutants in one session
SEED = 20261121
# The tools that run, and what each must print of the sound program; {} is a directory for their
# output.
RUNS = ((("opreport", "-l"), (b"hot",)), (("opreport", "-d", "-g"), (b"hot",)), (("opreport", "-X", "-d"), (b"hot",)),
        (("opreport", "-c"), (b"hot",)), (("opreport", "--inline", "-X", "-d", "-g"), (b"hot",)),
        (("opannotate", "-s"), (b"hot", b" 7 ")), (("opannotate", "-s", "-a", "--inline"), (b"hot", b" 7 ")),
        (("opannotate", "--html={}/page"), ()),
        (("opreport", "--images"), (b"prog",)), (("opgprof", "-o", "{}/gmon.out", "image:{image}"), ()),
        (("oparchive", "-o", "{}/archive"), ()))
# A section with debugging information, how many of its bytes stay, what replaces the others, and a
# part of the expected warning.
DAMAGES = ((".debug_info", 0, 0xff, "the unit at 0x0 of .debug_info"),
           (".debug_info", 0, 0, "the unit at 0x0 of .debug_info is too short"),
           (".debug_info", 11, 0xff, "the unit at 0x0 of .debug_info has no abbreviations"),
           (".debug_abbrev", 0, 0xff, "a unit of .debug_info has no entry"),
           (".debug_line", 0, 0xff, "invalid .debug_line section"), (".debug_line", 40, 0, "invalid DWARF"))
DAMAGE_RUNS = (("opreport", "-l", "-g"), ("opreport", "-d", "-g"), ("opreport", "-c", "-g"), ("opreport", "--inline", "-g"),
               ("opreport", "--images", "--format=json"), ("opannotate", "-s"), ("opannotate", "-s", "-a"),
               ("opannotate", "--html={}/page"))
PLACES = ("/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib/debug", "/usr/libexec")
NR_DRAWN = 24
MEMORY_MIB = 1024 # that a bomb may take
SIZE_LIMIT = 3 << 20 # of images of this machine


def build(directory):
    source, program = os.path.join(directory, "prog.c"), os.path.join(directory, "prog")
    with open(source, "w", encoding="utf-8") as stream:
        stream.write(PROGRAM)
    subprocess.run([shutil.which("gcc") or shutil.which("clang") or "cc", "-g", "-O0", "-o", program, source], check=True)
    return program


def is_image(path):
    try:
        if os.path.islink(path) or not os.path.isfile(path) or not 64 <= os.path.getsize(path) < SIZE_LIMIT:
            return False
        with open(path, "rb") as stream:
            return stream.read(6) == b"\x7fELF\2\1"
    except OSError:
        return False


def strip(program):
    """The program with the functions that are not exported packed in .gnu_debugdata."""
    stripped = program + ".stripped"
    subprocess.run(["objcopy", "--only-keep-debug", program, program + ".debug"], check=True)
    subprocess.run(["strip", "--strip-debug", program + ".debug"], check=True)
    with open(program + ".debug", "rb") as stream, open(program + ".xz", "wb") as packed:
        packed.write(lzma.compress(stream.read()))
    subprocess.run(["strip", "-o", stripped, program], check=True)
    subprocess.run(["objcopy", "--add-section", ".gnu_debugdata=%s.xz" % program, stripped], check=True)
    return stripped


def originals(program, chance):
    """The program with its debugging information and without it, opreport, and files chosen from
    this machine's programs, libraries, objects and debug files.
    """
    stripped = strip(program)
    paths = [program, program, stripped, stripped, stripped, os.path.join(TOOLS, "opreport")]
    for place in PLACES:
        found = sorted(os.path.join(where, name) for where, _, names in os.walk(place) for name in names)
        chance.shuffle(found)
        paths += list(itertools.islice(filter(is_image, found), NR_DRAWN // len(PLACES)))
    return [open(path, "rb").read() for path in paths if is_image(path)]


def section_fields(data):
    """Positions of the numbers in the section table, which a reader of ELF reads first."""
    offset, count = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<H", data, 60)[0]
    return [offset + 64 * i + field for i in range(count) for field in (0, 4, 16, 24, 32, 40, 44, 48, 56)
            if offset + 64 * i + 64 <= len(data)]


def tables(data):
    """Where the tables are that symbols of a stripped image come from."""
    places = []
    for name in (".dynsym", ".dynstr", ".eh_frame", ".rela.plt", ".plt", ".plt.sec", ".gnu_debugdata"):
        try:
            places.append(section_place(data, name))
        except (KeyError, ValueError, IndexError, struct.error):
            continue
    return [(place, size) for place, size in places if size and place + size <= len(data)]


def mutate(chance, data):
    data = bytearray(data)
    kind = chance.randrange(8)
    places = tables(data) if kind > 5 else []
    values = (0, 1, 2 ** 16 - 1, 2 ** 31, 2 ** 32 - 1, 2 ** 63, 2 ** 64 - 1, chance.getrandbits(64), chance.getrandbits(24))
    if kind == 0:
        return bytes(data[:chance.randrange(len(data))])
    if kind == 1:
        for _ in range(chance.randrange(1, 4)):
            struct.pack_into("<Q", data, chance.choice(range(16, 56, 8)), chance.choice(values))
    elif kind in (2, 3):
        fields = section_fields(data)
        for _ in range(chance.randrange(1, 4)):
            at = chance.choice(fields)
            struct.pack_into("<I", data, at, chance.choice(values) & 0xffffffff)
    elif places:
        place, size = chance.choice(places)
        for _ in range(chance.randrange(1, 20)):
            at = place + chance.randrange(size) // 4 * 4
            data[at:at + 4] = struct.pack("<I", chance.choice(values) & 0xffffffff)
    elif kind == 4:
        for _ in range(chance.randrange(1, 200)):
            data[chance.randrange(len(data))] = chance.randrange(256)
    else:
        size = chance.randrange(1, 4096)
        at, other = chance.randrange(len(data)), chance.randrange(len(data))
        data[at:at + size] = data[other:other + size]
    return bytes(data)


def run(directory, *command):
    return subprocess.run([os.path.join(TOOLS, command[0]), "--session-dir=" + directory, *command[1:]], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, env=dict(os.environ, OPD_CACHE_DIR=""))


def has_written(words, results):
    """The page has the function of the sound program; the other tools print something."""
    if words[0] == "opgprof":
        return os.path.getsize(os.path.join(results, "gmon.out")) > 0
    if words[0] == "oparchive":
        return run(os.path.join(results, "archive"), "oparchive", "--check", os.path.join(results, "archive")).returncode == 0
    if "--html={}/page" in words:
        with open(os.path.join(results, "page"), "rb") as stream:
            return b"hot" in stream.read()
    return True


def check_batch(chance, texts, program, hot, nr_mutants):
    """The random choice depends on the batch only, so batches can be checked at the same time."""
    with tempfile.TemporaryDirectory() as directory:
        put_image(directory, program, [(hot, 7)])
        for i in range(nr_mutants):
            image = os.path.join(directory, "mutant%d" % i)
            text = mutate(chance, chance.choice(texts))
            with open(image, "wb") as stream:
                stream.write(text)
            put_image(directory, image, sorted({chance.randrange(len(text) + 64): 1 + i for _ in range(10)}.items()))
        with tempfile.TemporaryDirectory() as results:
            for words, wanted in RUNS:
                command = [word.replace("{image}", program).replace("{}", results) for word in words]
                done = run(directory, *command)
                if done.returncode != 0 or not all(text in done.stdout for text in wanted) or not has_written(words, results):
                    keep = tempfile.mkdtemp(prefix="opd-mutants-")
                    shutil.copytree(directory, keep, dirs_exist_ok=True)
                    print("%s: exit %d, the session is in %s\n%s" % (" ".join(command), done.returncode, keep,
                                                                     done.stderr.decode("utf-8", "replace")[-2000:]))
                    return False
    return True


def section_place(data, name):
    """File offset and size of a section, from the names in an ELF file."""
    offset, = struct.unpack_from("<Q", data, 40)
    _, number, names = struct.unpack_from("<3H", data, 58)
    headers = [elfsyms.SECTION.unpack_from(data, offset + 64 * i) for i in range(number)]
    for at, _, _, _, place, size, *_ in headers:
        start = headers[names][4] + at
        if data[start:data.index(b"\0", start)] == name.encode():
            return place, size
    raise KeyError(name)


def damage(path, name, skipped, byte):
    with open(path, "r+b") as stream:
        place, size = section_place(stream.read(), name)
        stream.seek(place + skipped)
        stream.write(bytes([byte]) * (size - skipped))


def warned(text, path, words):
    """There is one line about this file, and none about any other file."""
    lines = [line for line in text.decode().split("\n") if "the debugging information of" in line
             and "cannot be read completely" in line]
    return (len(lines) == 1 and words in lines[0]
            and "the debugging information of %s cannot be read completely: " % path in lines[0])


def check_debug_damage(program, hot):
    """Damaged debugging information is reported once for each image, with its name and fault, and
    is not called whole.
    """
    for name, skipped, byte, words in DAMAGES:
        with tempfile.TemporaryDirectory() as directory:
            bad, apart = (shutil.copy(program, os.path.join(directory, name)) for name in ("bad", "apart"))
            debug = os.path.join(directory, "apart.debug")
            subprocess.run(["objcopy", "--only-keep-debug", apart, debug], check=True)
            subprocess.run(["strip", "-g", apart], check=True)
            damage(bad, name, skipped, byte)
            damage(debug, name, skipped, byte)
            subprocess.run(["objcopy", "--remove-section=.note.gnu.build-id", "--add-gnu-debuglink=" + debug, apart], check=True)
            for image, told in ((bad, bad), (apart, debug)):
                session = os.path.join(directory, os.path.basename(image) + "-session")
                put_image(session, image, [(hot, 5)])
                put_image(session, program, [(hot, 7)])
                for run_words in DAMAGE_RUNS:
                    done = run(session, *(word.replace("{}", directory) for word in run_words))
                    wanted = {image: "damaged", program: "debug info"}
                    states = {row["name"]: row["symbols"]
                              for row in json.loads(done.stdout)["images"]} if "--images" in run_words else wanted
                    if done.returncode or states != wanted or not warned(done.stderr, told, words):
                        print("%s of %s: exit %d\n%s%s" % (" ".join(run_words), name, done.returncode,
                                                           done.stderr.decode(), done.stdout.decode()[:2000]))
                        return False
                alone = run(session, "opannotate", "-s", image)
                if b"the debugging information of 1 binary is damaged" not in alone.stderr:
                    print("opannotate -s: %s" % alone.stderr.decode())
                    return False
    return True


def make_bombs(directory, program):
    """Files whose tables would take more time or memory than an image may: packed symbols of
    2 GiB, a million exported functions with one name of 64 KiB, and frames that begin anew.
    """
    stripped = strip(program)
    bombs = [os.path.join(directory, "bomb%d" % i) for i in range(3)]
    packer = lzma.LZMACompressor(preset=0)
    with open(program + ".xz", "wb") as packed:
        for _ in range(2048):
            packed.write(packer.compress(bytes(1 << 20)))
        packed.write(packer.flush())
    subprocess.run(["objcopy", "--update-section", ".gnu_debugdata=%s.xz" % program, stripped, bombs[0]], check=True)
    for bomb, name, content in ((bombs[1], ".dynsym", None), (bombs[2], ".eh_frame", bytes(4) * (8 << 20))):
        shutil.copy(stripped, bomb)
        with open(bomb, "r+b") as stream:
            data = bytearray(stream.read())
            end = len(data)
            if content is None:
                text, = struct.unpack_from("<Q", data, 24)
                content = elfsyms.SYMBOL.pack(0, 18, 0, 1, text, 1) + b"".join(
                    elfsyms.SYMBOL.pack(1, 18, 0, 1, text + i % 64, 1) for i in range(1 << 20))
                set_section(data, ".dynstr", end + len(content), (1 << 16) + 2)
                content += b"\0" + b"x" * (1 << 16) + b"\0"
                set_section(data, name, end, elfsyms.SYMBOL.size * ((1 << 20) + 1))
            else:
                set_section(data, name, end, len(content))
            stream.seek(0)
            stream.write(data + content)
    return bombs


def set_section(data, name, place, size):
    """Moves a section of the section table."""
    offset, = struct.unpack_from("<Q", data, 40)
    _, number, names = struct.unpack_from("<3H", data, 58)
    headers = [elfsyms.SECTION.unpack_from(data, offset + 64 * i) for i in range(number)]
    for i, header in enumerate(headers):
        start = headers[names][4] + header[0]
        if data[start:data.index(b"\0", start)] == name.encode():
            struct.pack_into("<QQ", data, offset + 64 * i + 24, place, size)


def check_bombs(program, hot):
    """An image that takes too much is named in a warning or shown without these symbols, and the
    sound image is shown. No process has more than its limit, and none stays.
    """
    with tempfile.TemporaryDirectory() as directory:
        for bomb in make_bombs(directory, program):
            session = bomb + "-session"
            put_image(session, bomb, [(hot, 5)])
            put_image(session, program, [(hot, 7)])
            start = time.time()
            done = run(session, "opreport", "-l")
            most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
            print("%s: %.1f s, %d MiB at most: %s" % (os.path.basename(bomb), time.time() - start, most,
                                                      done.stderr.decode().splitlines()[-1:]))
            if done.returncode or b"hot" not in done.stdout or most > MEMORY_MIB:
                print("exit %d\n%s%s" % (done.returncode, done.stderr.decode(), done.stdout.decode()))
                return False
    return True


def main():
    count, start = int(sys.argv[1]) if len(sys.argv) > 1 else 30 if "OPD_QUICK" in os.environ else 120, time.time()
    with tempfile.TemporaryDirectory() as directory:
        program = build(directory)
        hot = elfsyms.symbol_ranges(program, ("hot",))["hot"][0]
        if not check_debug_damage(program, hot) or not check_bombs(program, hot):
            return 1
        texts = originals(program, random.Random(SEED))
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            batches = [pool.submit(check_batch, random.Random(SEED + i), texts, program, hot, min(BATCH, count - i))
                       for i in range(0, count, BATCH)]
            if not all(batch.result() for batch in concurrent.futures.as_completed(batches)):
                pool.shutdown(cancel_futures=True)
                return 1
    print("%d damaged images through %d runs each in %.0f s" % (count, len(RUNS), time.time() - start))
    return 0


if __name__ == "__main__":
    sys.exit(main())
