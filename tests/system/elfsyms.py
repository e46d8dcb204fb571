# SPDX-License-Identifier: GPL-3.0-or-later
"""File offsets of functions in a 64-bit little-endian ELF file, from the section headers and the
symbol table.
"""
import bisect
import struct

SHT_SYMTAB, SHT_NOBITS, SHT_DYNSYM = 2, 8, 11
SHF_EXECINSTR = 4
STT_FUNC, STT_IFUNC = 2, 10
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
    ranges, starts = [], {}
    for address, index, _ in symbols:
        starts.setdefault(index, set()).add(address)
    starts = {index: sorted(addresses) for index, addresses in starts.items()}
    for address, index, name in symbols:
        _, _, _, base, offset, size, _, _, _, _ = sections[index]
        after = bisect.bisect_right(starts[index], address)
        end = starts[index][after] if after < len(starts[index]) else base + size
        if by_address:
            offset = base
        ranges.append((name, address - base + offset, end - base + offset))
    return ranges


def symbol_ranges(path, names):
    """{name: (first file offset, file offset after the last)} of the functions with these names."""
    return {name: (start, end) for name, start, end in all_ranges(path) if name in names}


class Image:
    """The sections of code and the functions of an ELF file; `code` may be of another file, whose
    debug file this is.
    """

    def __init__(self, path, kind=SHT_SYMTAB, code=None):
        with open(path, "rb") as stream:
            data = stream.read()
        self.path = path
        sections = sections_of(data)
        self.code = code or [(vma, offset, size) for _, what, flags, vma, offset, size, *_ in sections
                     if flags & SHF_EXECINSTR and what != SHT_NOBITS]
        self.functions = {}  # (start, end): names
        for _, what, _, _, offset, size, link, *_ in sections:
            if what != kind:
                continue
            strings = sections[link][4]
            for at in range(offset, offset + size, SYMBOL.size):
                name_at, info, _, index, value, length = SYMBOL.unpack_from(data, at)
                if info & 15 in (STT_FUNC, STT_IFUNC) and 0 < index < len(sections):
                    name = data[strings + name_at:data.index(b"\0", strings + name_at)].decode().split("@")[0]
                    self.functions.setdefault((value, value + length), set()).add(name)
        self.without_size = set().union(*(names for (start, end), names in self.functions.items() if start == end))
        self.starts = sorted(self.functions)

    def positions(self):
        return [(offset + i, vma + i) for vma, offset, size in self.code for i in range(size)]

    def ends(self):
        """The first and the last byte of each function, and the byte behind it."""
        wanted = {at for start, end in self.starts for at in (start, end - 1, end)}
        return [(offset + at - vma, at) for vma, offset, size in self.code for at in wanted if vma <= at < vma + size]

    def ranges_of(self, vma):
        """The functions that have the address, with their names."""
        last = bisect.bisect(self.starts, (vma, 1 << 64))
        return [(r, self.functions[r]) for r in self.starts[max(0, last - 8):last] if r[0] <= vma < r[1]]
