/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/symbols/bfd_file.h"

#include <stdarg.h>
#include <sys/stat.h>

#include "libop/base/text.h"
#include "tools/common/log.h"
#include "tools/symbols/module_file.h"

#define MESSAGE_BYTES      512
#define LIBBFD_PREFIX      "BFD: " /* what libbfd's own handler writes before a message */
#define BUILD_ID_BYTES_MIN 2
#define UNREADABLE_NAME    "(null)" /* bfd_elf_sym_name of libbfd */

/* ---- messages of libbfd ---- */

static bfd_error_handler_type libbfd_handler;
static char message[MESSAGE_BYTES];
static bool listens;

/* Only libbfd's handler knows its formats, and it writes to stderr, which is a variable in glibc. */
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

bfd *opr_bfd_open(const char *path)
{
	struct stat st;
	bfd *abfd;
	int fd;

	if (!libbfd_handler) {
		bfd_init();
		libbfd_handler = bfd_set_error_handler(keep_message);
	}
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return NULL;
	if (opr_module_is_packed(path)) {
		fd = opr_module_unpack(path);
		abfd = fd < 0 ? NULL : bfd_fopen(path, NULL, "rb", fd);
	} else {
		abfd = bfd_openr(path, NULL);
	}
	if (!abfd)
		return NULL;
	abfd->flags |= BFD_DECOMPRESS;
	if (!bfd_check_format(abfd, bfd_object)) {
		bfd_close(abfd);
		return NULL;
	}
	return abfd;
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

const char *opr_bfd_symbol_name(const asymbol *symbol)
{
	return symbol->name && !strcmp(symbol->name, UNREADABLE_NAME) ? NULL : symbol->name;
}

/* ---- separate debug files ---- */

static bfd *open_text(const struct op_text *path)
{
	bfd *abfd = path->failed ? NULL : opr_bfd_open(op_text_get(path));

	if (abfd)
		opr_verbose(OPR_TOPIC_bfd, "debug file %s", op_text_get(path));
	return abfd;
}

static bfd *open_by_build_id(bfd *image, const char *root)
{
	const struct bfd_build_id *id = image->build_id;
	struct op_text path = { 0 };
	bfd *abfd;

	if (!id || id->size < BUILD_ID_BYTES_MIN)
		return NULL;
	op_text_printf(&path, "%s" OPR_DEBUG_DIR "/.build-id/%02x/", root, id->data[0]);
	for (size_t i = 1; i < id->size; i++)
		op_text_printf(&path, "%02x", id->data[i]);
	op_text_add(&path, ".debug");
	abfd = open_text(&path);
	op_text_free(&path);
	if (abfd && abfd->build_id && (abfd->build_id->size != id->size || memcmp(abfd->build_id->data, id->data, id->size))) {
		bfd_close(abfd);
		return NULL;
	}
	return abfd;
}

static bool has_crc(const char *path, unsigned long wanted)
{
	unsigned char buffer[65536];
	unsigned long crc = 0;
	FILE *file = fopen(path, "re");
	size_t got;
	bool sound;

	if (!file)
		return false;
	while ((got = fread(buffer, 1, sizeof(buffer), file)) > 0)
		crc = bfd_calc_gnu_debuglink_crc32(crc, buffer, got);
	sound = !ferror(file) && crc == wanted;
	fclose(file);
	return sound;
}

/* Opens ROOT/DIRECTORY OF `file`/SUBDIR/LINK. */
static bfd *open_link(const char *root, const char *file, const char *subdir, const char *link, unsigned long crc)
{
	const char *slash = strrchr(file, '/');
	struct op_text path = { 0 };
	bfd *abfd;

	op_text_add(&path, root);
	op_text_add_bytes(&path, file, slash ? (size_t)(slash - file) : 0);
	op_text_printf(&path, "%s/%s", subdir, link);
	abfd = open_text(&path);
	if (abfd && !has_crc(op_text_get(&path), crc)) {
		bfd_close(abfd);
		abfd = NULL;
	}
	op_text_free(&path);
	return abfd;
}

static bfd *open_by_link(bfd *image, const char *path, const char *name, const char *root)
{
	unsigned long crc;
	char *link = bfd_get_debug_link_info(image, &crc);
	struct op_text global = { 0 };
	bfd *abfd = NULL;

	if (link && *link && !strchr(link, '/')) {
		op_text_printf(&global, "%s" OPR_DEBUG_DIR, root);
		abfd = open_link("", path, "/.debug", link, crc);
		if (!abfd && !global.failed)
			abfd = open_link(global.data, name, "", link, crc);
		if (!abfd)
			abfd = open_link("", path, "", link, crc);
	}
	op_text_free(&global);
	free(link);
	return abfd;
}

bfd *opr_bfd_open_debug_file(bfd *image, const char *path, const char *name, const char *root)
{
	bfd *abfd = open_by_build_id(image, root ? root : "");

	return abfd ? abfd : open_by_link(image, path, name, root ? root : "");
}
