# SPDX-License-Identifier: GPL-3.0-or-later
"""File offsets of functions in a 64-bit little-endian ELF file, from the section headers and the
symbol table.
"""
import struct

SHT_SYMTAB = 2
SHF_EXECINSTR = 4
STT_FUNC = 2
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")


def sections_of(data):
    offset, = struct.unpack_from("<Q", data, 40)
    size, number = struct.unpack_from("<HH", data, 58)
    return [SECTION.unpack_from(data, offset + i * size) for i in range(number)]


def function_symbols(data, sections):
    """[(address, section index, name)] of the named symbols in code sections, sorted."""
    found = []
    for _, kind, _, _, offset, size, link, _, _, _ in sections:
        if kind != SHT_SYMTAB:
            continue
        strings = sections[link][4]
        for at in range(offset, offset + size, SYMBOL.size):
            name_at, info, _, index, value, _ = SYMBOL.unpack_from(data, at)
            name = data[strings + name_at:data.index(b"\0", strings + name_at)].decode("utf-8", "replace")
            if name and info & 15 <= STT_FUNC and 0 < index < len(sections) and sections[index][2] & SHF_EXECINSTR:
                found.append((value, index, name))
    return sorted(found)


def all_ranges(path, by_address=False):
    """[(name, first file offset, file offset after the last)], or addresses; a function ends where
    the next one of its section begins.
    """
    with open(path, "rb") as stream:
        data = stream.read()
    sections = sections_of(data)
    symbols = function_symbols(data, sections)
    ranges = []
    for address, index, name in symbols:
        _, _, _, base, offset, size, _, _, _, _ = sections[index]
        following = [a for a, i, _ in symbols if i == index and a > address]
        end = min(following) if following else base + size
        if by_address:
            offset = base
        ranges.append((name, address - base + offset, end - base + offset))
    return ranges


def symbol_ranges(path, names):
    """{name: (first file offset, file offset after the last)} of the functions with these names."""
    return {name: (start, end) for name, start, end in all_ranges(path) if name in names}
