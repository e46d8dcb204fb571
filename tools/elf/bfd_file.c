/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/elf/bfd_file.h"

#include <elfutils/libdwelf.h>
#include <stdarg.h>

#include "libop/base/build_id.h"
#include "libop/base/file.h"
#include "libop/base/text.h"
#include "tools/common/log.h"
#include "tools/elf/debug_path.h"
#include "tools/elf/module_file.h"
#include "tools/elf/open_file.h"

#define MESSAGE_BYTES   512
#define LIBBFD_PREFIX   "BFD: " /* what libbfd's own handler writes before a message */
#define UNREADABLE_NAME "(null)" /* bfd_elf_sym_name of libbfd */

/* ---- messages of libbfd ---- */

static bfd_error_handler_type libbfd_handler;
static char message[MESSAGE_BYTES];
static bool listens;

/* Only libbfd's own handler knows its formats. It writes to stderr, a variable in glibc. */
static void keep_message(const char *format, va_list args)
{
	FILE *old = stderr, *stream = listens && !*message ? fmemopen(message, sizeof(message) - 1, "w") : NULL;

	if (!stream)
		return;
	stderr = stream;
	libbfd_handler(format, args);
	stderr = old;
	fclose(stream);
	message[strcspn(message, "\n")] = '\0';
}

void opr_bfd_listen(void)
{
	memset(message, 0, sizeof(message));
	listens = true;
}

const char *opr_bfd_message(void)
{
	size_t prefix = strlen(LIBBFD_PREFIX);

	if (!*message)
		return NULL;
	return message + (strncmp(message, LIBBFD_PREFIX, prefix) ? 0 : prefix);
}

/* ---- a file ---- */

/* The application's data of a bfd. */
struct opened {
	int fd; /* libbfd owns it, and does not open the path again */
	struct stat st;
};

/* libbfd finds the build-id by the section headers, which a file may lack. */
static void note_build_id(bfd *abfd)
{
	Elf *elf = elf_version(EV_CURRENT) != EV_NONE ? elf_begin(opr_bfd_fd(abfd), ELF_C_READ, NULL) : NULL;
	const void *bytes;
	ssize_t nr_bytes = elf ? dwelf_elf_gnu_build_id(elf, &bytes) : -1;
	struct bfd_build_id *build_id = NULL;

	if (nr_bytes > 0 && nr_bytes <= (ssize_t)OP_BUILD_ID_BYTES_MAX)
		build_id = bfd_alloc(abfd, sizeof(*build_id) + (size_t)nr_bytes);
	if (build_id) {
		build_id->size = (bfd_size_type)nr_bytes;
		memcpy(build_id->data, bytes, (size_t)nr_bytes);
		abfd->build_id = build_id;
	}
	elf_end(elf);
}

/* libbfd closes the descriptor, also when it fails. */
static bfd *open_descriptor(const char *path, int fd, const struct stat *st)
{
	bfd *abfd = bfd_fopen(path, NULL, "rb", fd);
	struct opened *opened = abfd ? bfd_alloc(abfd, sizeof(*opened)) : NULL;

	if (opened) {
		*opened = (struct opened){ fd, *st };
		abfd->usrdata = opened;
		abfd->flags |= BFD_DECOMPRESS;
	}
	if (!opened || !bfd_check_format(abfd, bfd_object)) {
		if (abfd)
			bfd_close(abfd);
		return NULL;
	}
	if (!abfd->build_id)
		note_build_id(abfd);
	return abfd;
}

bfd *opr_bfd_open(const char *path)
{
	struct stat st;
	int fd;

	if (!libbfd_handler) {
		bfd_init();
		libbfd_handler = bfd_set_error_handler(keep_message);
	}
	fd = opr_module_is_packed(path) ? opr_module_unpack(path, &st) : opr_open_regular(path, &st);
	return fd < 0 ? NULL : open_descriptor(path, fd, &st);
}

int opr_bfd_fd(const bfd *abfd)
{
	return ((const struct opened *)abfd->usrdata)->fd;
}

const struct stat *opr_bfd_stat(const bfd *abfd)
{
	return &((const struct opened *)abfd->usrdata)->st;
}

bool opr_bfd_has_debug_info(bfd *abfd)
{
	static const char *const names[] = { ".debug_info", ".zdebug_info", ".stab" };

	for (size_t i = 0; i < op_array_size(names); i++)
		if (bfd_get_section_by_name(abfd, names[i]))
			return true;
	return false;
}

bool opr_bfd_has_addresses(const asection *section)
{
	return bfd_section_vma(section) || !strcmp(bfd_section_name(section), ".text");
}

asymbol **opr_bfd_read_table(bfd *abfd, long *ret_nr_symbols, bool *is_damaged)
{
	long bytes = bfd_get_file_flags(abfd) & HAS_SYMS ? bfd_get_symtab_upper_bound(abfd) : 0;
	asymbol **table = bytes > 0 ? malloc((size_t)bytes) : NULL;
	long nr_symbols = table ? bfd_canonicalize_symtab(abfd, table) : 0;

	*is_damaged |= bytes < 0 || nr_symbols < 0;
	if (nr_symbols <= 0) {
		free(table);
		return NULL;
	}
	*ret_nr_symbols = nr_symbols;
	return table;
}

/* HAS_SYMS says nothing of this table: a program at a fixed address may have it, too. */
asymbol **opr_bfd_read_dynamic(bfd *abfd, long *ret_nr_symbols)
{
	long bytes = bfd_get_dynamic_symtab_upper_bound(abfd);
	asymbol **table = bytes > 0 ? malloc((size_t)bytes) : NULL;
	long nr_symbols = table ? bfd_canonicalize_dynamic_symtab(abfd, table) : 0;

	*ret_nr_symbols = nr_symbols > 0 ? nr_symbols : 0;
	return table;
}

const char *opr_bfd_symbol_name(const asymbol *symbol)
{
	return symbol->name && !strcmp(symbol->name, UNREADABLE_NAME) ? NULL : symbol->name;
}

/* ---- separate debug files ---- */

/* A file without a build-id is believed in a directory of packages, not from a server. */
static bool same_build_id(const bfd *debug, const bfd *image, enum opr_debug_place place)
{
	const struct bfd_build_id *a = debug->build_id, *b = image->build_id;

	if (!a)
		return place == OPR_DEBUG_BY_BUILD_ID;
	return a->size == b->size && !memcmp(a->data, b->data, a->size);
}

static void format_build_id(const bfd *abfd, struct op_text *digits)
{
	for (size_t i = 0; abfd->build_id && i < abfd->build_id->size; i++)
		op_text_printf(digits, "%02x", abfd->build_id->data[i]);
}

bool opr_bfd_is_of_build_id(const char *path, const char *build_id)
{
	bfd *abfd = opr_bfd_open(path);
	struct op_text digits = { 0 };
	bool is_it = false;

	if (abfd) {
		format_build_id(abfd, &digits);
		is_it = !strcmp(op_text_get(&digits), build_id);
		bfd_close(abfd);
	}
	op_text_free(&digits);
	return is_it;
}

static bool has_crc(const bfd *abfd, unsigned long wanted)
{
	unsigned char buffer[65536];
	unsigned long crc = 0;
	size_t got;
	int err;

	for (off_t at = 0; !(err = op_file_read_at(opr_bfd_fd(abfd), buffer, sizeof(buffer), at, &got)) && got; at += (off_t)got)
		crc = bfd_calc_gnu_debuglink_crc32(crc, buffer, got);
	return !err && crc == wanted;
}

/* Downloaded files lie in a directory that the caller chose. */
static bool is_debug_file_of(const bfd *debug, const bfd *image, enum opr_debug_place place, unsigned long crc)
{
	if (place == OPR_DEBUG_DOWNLOADED)
		return same_build_id(debug, image, place);
	if (!opr_may_speak_for(opr_bfd_stat(debug), opr_bfd_stat(image))) {
		opr_verbose(OPR_TOPIC_bfd, "debug file %s belongs to another user and is not used", bfd_get_filename(debug));
		return false;
	}
	return place == OPR_DEBUG_BY_BUILD_ID ? same_build_id(debug, image, place) : has_crc(debug, crc);
}

bfd *opr_bfd_open_debug_file(bfd *image, const char *path, const char *name, const char *root)
{
	unsigned long crc = 0;
	char *link = bfd_get_debug_link_info(image, &crc);
	struct opr_debug_search search = { .path = path, .name = name, .root = root, .link = link };
	struct op_text digits = { 0 }, file = { 0 };
	bfd *debug = NULL;

	format_build_id(image, &digits);
	search.build_id = op_text_get(&digits);
	for (enum opr_debug_place place = 0; place < OPR_DEBUG_NR_PLACES && !debug; place++) {
		if (!opr_debug_path(&search, place, &file))
			continue;
		debug = opr_bfd_open(file.data);
		if (!debug)
			continue;
		opr_verbose(OPR_TOPIC_bfd, "debug file %s", file.data);
		if (is_debug_file_of(debug, image, place, crc))
			break;
		bfd_close(debug);
		debug = NULL;
	}
	op_text_free(&digits);
	op_text_free(&file);
	free(link);
	return debug;
}
