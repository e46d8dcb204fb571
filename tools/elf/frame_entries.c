/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/elf/frame_entries.h"

#define IS_64BIT_DWARF 0xffffffffu /* as a length: the real one follows, in 8 bytes */

/* Encodings of pointers: Linux Standard Base, "DWARF Exception Header Encoding". */
enum {
	PE_ULEB = 0x01,
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SLEB = 0x09,
	PE_SDATA2 = 0x0a,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_PCREL = 0x10,
	PE_TEXTREL = 0x20,
	PE_DATAREL = 0x30,
	PE_RELATIVE = 0x70,
	PE_INDIRECT = 0x80,
	PE_OMIT = 0xff,
};

/* Reads the entry at the offset. False: there is none. */
static bool read_entry(const struct opr_frames *frames, uint64_t at, struct opr_frame_entry *ret_entry, uint64_t *ret_next)
{
	struct opr_bytes bytes = { frames->bytes + at, frames->bytes + frames->nr_bytes, false, frames->is_big };
	uint64_t nr_bytes = opr_bytes_unsigned(&bytes, 4), cie_id;
	size_t id_bytes = nr_bytes == IS_64BIT_DWARF ? 8 : 4;

	cie_id = frames->is_eh_frame ? 0 : id_bytes == 8 ? UINT64_MAX : UINT32_MAX;
	if (id_bytes == 8)
		nr_bytes = opr_bytes_unsigned(&bytes, 8);
	*ret_entry = (struct opr_frame_entry){ .at = at, .id_at = (uint64_t)(bytes.at - frames->bytes), .id = cie_id };
	if (bytes.is_bad || nr_bytes > (uint64_t)(bytes.end - bytes.at))
		return false;
	bytes.end = bytes.at + nr_bytes;
	*ret_next = (uint64_t)(bytes.end - frames->bytes);
	if (nr_bytes >= id_bytes)
		ret_entry->id = opr_bytes_unsigned(&bytes, id_bytes);
	ret_entry->bytes = bytes;
	ret_entry->is_fde = ret_entry->id != cie_id;
	return true;
}

bool opr_frame_next(const struct opr_frames *frames, uint64_t *at, struct opr_frame_entry *ret_entry)
{
	return *at < frames->nr_bytes && read_entry(frames, *at, ret_entry, at);
}

/* A pointer, or a length with `is_length`. What it points to is read from the file nowhere. */
static uint64_t read_pointer(const struct opr_frames *frames, struct opr_bytes *bytes, uint8_t encoding, bool is_length)
{
	uint64_t address = frames->address + (uint64_t)(bytes->at - frames->bytes), number = 0;

	switch (encoding & ~(PE_RELATIVE | PE_INDIRECT)) {
	case 0:
		number = opr_bytes_unsigned(bytes, frames->is_32 ? 4 : 8);
		break;
	case PE_UDATA8:
	case PE_SDATA8:
		number = opr_bytes_unsigned(bytes, 8);
		break;
	case PE_UDATA2:
		number = opr_bytes_unsigned(bytes, 2);
		break;
	case PE_UDATA4:
		number = opr_bytes_unsigned(bytes, 4);
		break;
	case PE_SDATA2:
		number = is_length ? opr_bytes_unsigned(bytes, 2) : (uint64_t)opr_bytes_signed(bytes, 2);
		break;
	case PE_SDATA4:
		number = is_length ? opr_bytes_unsigned(bytes, 4) : (uint64_t)opr_bytes_signed(bytes, 4);
		break;
	case PE_ULEB:
		number = opr_bytes_uleb(bytes);
		break;
	case PE_SLEB:
		number = (uint64_t)opr_bytes_sleb(bytes);
		break;
	default:
		bytes->is_bad = true;
	}
	if (is_length)
		return number;
	switch (encoding & PE_RELATIVE) {
	case 0:
		break;
	case PE_PCREL:
		number += address;
		break;
	case PE_TEXTREL:
		number += frames->text;
		break;
	case PE_DATAREL:
		number += frames->data;
		break;
	default:
		bytes->is_bad = true;
	}
	return frames->is_32 ? (uint32_t)number : number;
}

/* The letters of the augmentation say what is in its data. False: an unknown form. */
static bool read_augmentation(const struct opr_frames *frames, struct opr_bytes *bytes, const char *letters, struct opr_cie *cie)
{
	struct opr_bytes data;
	uint64_t nr_bytes;

	cie->has_data_length = letters[0] == 'z';
	if (!*letters)
		return true;
	if (!cie->has_data_length)
		return !strcmp(letters, "eh") && opr_bytes_take(bytes, frames->is_32 ? 4 : 8);
	nr_bytes = opr_bytes_uleb(bytes);
	data = *bytes;
	if (!opr_bytes_take(bytes, nr_bytes))
		return false;
	data.end = bytes->at;
	for (const char *letter = letters + 1; *letter; letter++) {
		uint8_t encoding;

		switch (*letter) {
		case 'R':
			cie->pointer_encoding = (uint8_t)opr_bytes_unsigned(&data, 1);
			break;
		case 'P':
			encoding = (uint8_t)opr_bytes_unsigned(&data, 1);
			if (encoding != PE_OMIT)
				(void)read_pointer(frames, &data, encoding & ~PE_INDIRECT, false);
			break;
		case 'L':
			(void)opr_bytes_unsigned(&data, 1);
			break;
		case 'S':
			cie->is_signal = true;
			break;
		case 'B': /* arm64: return addresses are signed with the B key */
		case 'G': /* arm64: memory tags */
			break;
		default: /* the length says where it ends, so the rest is not needed */
			return !data.is_bad;
		}
	}
	return !data.is_bad;
}

static void read_cie(const struct opr_frames *frames, const struct opr_frame_entry *entry, struct opr_cie *cie)
{
	struct opr_bytes bytes = entry->bytes;
	uint64_t version = opr_bytes_unsigned(&bytes, 1);
	const char *letters = (const char *)bytes.at;

	if (!memchr(bytes.at, '\0', (size_t)(bytes.end - bytes.at)) || (version != 1 && version != 3 && version != 4))
		return;
	opr_bytes_take(&bytes, strlen(letters) + 1);
	if (version == 4 && (opr_bytes_unsigned(&bytes, 1) != (frames->is_32 ? 4 : 8) || opr_bytes_unsigned(&bytes, 1) != 0))
		return; /* sizes of addresses and of segment selectors */
	cie->code_factor = opr_bytes_uleb(&bytes);
	cie->data_factor = opr_bytes_sleb(&bytes);
	cie->ra_reg = version == 1 ? opr_bytes_unsigned(&bytes, 1) : opr_bytes_uleb(&bytes);
	if (bytes.is_bad || !read_augmentation(frames, &bytes, letters, cie))
		return;
	cie->program = bytes;
	cie->is_usable = true;
}

/* False: it cannot be used. */
static bool find_cie(const struct opr_frames *frames, const struct opr_frame_entry *fde, struct opr_cie *cie)
{
	uint64_t at = frames->is_eh_frame ? fde->id_at - fde->id : fde->id, next;
	struct opr_frame_entry entry;

	if (at == cie->at)
		return cie->is_usable;
	if (at >= frames->nr_bytes || !read_entry(frames, at, &entry, &next) || entry.is_fde)
		return false;
	*cie = (struct opr_cie){ .at = at };
	read_cie(frames, &entry, cie);
	return cie->is_usable;
}

bool opr_fde_read(const struct opr_frames *frames, const struct opr_frame_entry *entry, struct opr_cie *cie,
		  struct opr_fde *ret_fde)
{
	struct opr_bytes bytes = entry->bytes;
	struct opr_fde fde;
	uint8_t encoding;

	if (!find_cie(frames, entry, cie))
		return false;
	encoding = frames->is_eh_frame ? cie->pointer_encoding : 0;
	fde.start = read_pointer(frames, &bytes, encoding, false);
	fde.nr_bytes = read_pointer(frames, &bytes, encoding, true);
	if (cie->has_data_length)
		opr_bytes_take(&bytes, opr_bytes_uleb(&bytes));
	if (bytes.is_bad || encoding & PE_INDIRECT || fde.start + fde.nr_bytes < fde.start)
		return false;
	fde.program = bytes;
	*ret_fde = fde;
	return true;
}
