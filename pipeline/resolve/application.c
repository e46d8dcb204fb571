/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/resolve/application.h"

#define VDSO "[vdso]"

/* ---- names ---- */

static const char *base_name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* ld-linux-x86-64.so.2, ld-2.31.so, ld.so.1, ld64.so.2, ld-musl-x86_64.so.1 */
static bool is_loader(const char *name)
{
	return !strncmp(name, "ld", 2) && name[2] && strchr("-.6", name[2]) && strstr(name, ".so");
}

static bool ends_with(const char *name, const char *end)
{
	size_t length = strlen(name);

	return length > strlen(end) && !strcmp(name + length - strlen(end), end);
}

/* A library, or what no exec runs: code of a virtual machine, a device, memory. */
static bool is_library(const char *path, const char *name)
{
	static const char *const ends[] = { ".so", ".oat", ".odex", ".vdex", ".dex", ".art", ".jar", ".apk", ".dll", ".dump" };

	if (is_loader(name) || strstr(name, ".so."))
		return true;
	for (size_t i = 0; i < op_array_size(ends); i++)
		if (ends_with(name, ends[i]))
			return true;
	return !strncmp(path, "/dev/", strlen("/dev/")) || !strncmp(path, "/memfd:", strlen("/memfd:"));
}

static bool is_in_bin(const char *path)
{
	return strstr(path, "/bin/") || strstr(path, "/sbin/") || strstr(path, "/libexec/");
}

/* The kernel cuts the name of a process. */
static bool is_comm(const char *name, const char *comm)
{
	return *comm && (strlen(comm) == OPD_COMM_BYTES - 1 ? !strncmp(name, comm, OPD_COMM_BYTES - 1) : !strcmp(name, comm));
}

/* ---- addresses ---- */

/*
 * Executables with fixed addresses lie low. Linux puts the others at two thirds of the address
 * space (ELF_ET_DYN_BASE in fs/binfmt_elf.c) plus a random number of at most an eighth of it, and
 * libraries above, or at one third with an unlimited stack.
 */
static const struct {
	uint64_t start, end;
} places[] = {
	{ 0x0, 0x20000000 },
	{ 0x55555000, 0x66556000 },         /* 32 bits, x86 */
	{ 0x5555555000, 0x6555556000 },     /* 39 bits: arm64 */
	{ 0x555555554000, 0x655555555000 }, /* 47 bits: x86-64 */
	{ 0xaaaaaaaaa000, 0xcaaaaaaab000 }, /* 48 bits: arm64 */
};

static bool is_place(uint64_t base)
{
	for (size_t i = 0; i < op_array_size(places); i++)
		if (places[i].start <= base && base < places[i].end)
			return true;
	return false;
}

/* ---- choosing ---- */

unsigned int opd_app_evidence(const char *path, uint64_t base, const char *comm)
{
	const char *name = base_name_of(path);
	unsigned int evidence = 0;

	if (!is_library(path, name))
		evidence |= OPD_APP_NO_LIBRARY;
	if (!is_loader(name))
		evidence |= OPD_APP_NO_LOADER;
	if (is_place(base))
		evidence |= OPD_APP_PLACE;
	if (is_in_bin(path))
		evidence |= OPD_APP_IN_BIN;
	/*
	 * A process may call itself like one of its libraries. The dynamic linker may be what it
	 * runs.
	 */
	if (is_comm(name, comm) && (evidence & (OPD_APP_NO_LIBRARY | OPD_APP_PLACE) || is_loader(name)))
		evidence |= OPD_APP_COMM;
	return evidence;
}

struct choice {
	const struct op_dcookie_table *table;
	const struct opd_app_witness *witness; /* NULL: none is asked */
	uint32_t pid;
	const char *comm;
	unsigned int evidence;   /* for the best file */
	struct opd_mapping best; /* cookie OP_DCOOKIE_NONE: none yet */
	bool has_others;
};

/* Among equal files, the first mapped one wins. */
static bool is_better(const struct choice *choice, const struct opd_mapping *mapping, unsigned int evidence)
{
	if (choice->best.cookie == OP_DCOOKIE_NONE || evidence != choice->evidence)
		return choice->best.cookie == OP_DCOOKIE_NONE || evidence > choice->evidence;
	return mapping->from_ns != choice->best.from_ns ? mapping->from_ns < choice->best.from_ns
							: mapping->start < choice->best.start;
}

static void consider(const struct opd_mapping *mapping, void *arg)
{
	struct choice *choice = arg;
	const struct op_image_id *file = &op_dcookie_row(choice->table, mapping->cookie)->id;
	unsigned int evidence;
	int found = 0;

	if (mapping->region_end || file->is_pseudo || file->name.kind != OP_IMAGE_FILE)
		return;
	evidence = opd_app_evidence(file->name.name, mapping->start - mapping->key, choice->comm);
	if (choice->witness)
		found = choice->witness->look(choice->witness->arg, choice->pid, file, mapping);
	evidence = found < 0 ? evidence & (OPD_APP_COMM | OPD_APP_NO_LOADER) : evidence | (unsigned int)found;
	choice->has_others |= choice->best.cookie != OP_DCOOKIE_NONE && choice->best.cookie != mapping->cookie;
	if (!is_better(choice, mapping, evidence))
		return;
	choice->best = *mapping;
	choice->evidence = evidence;
}

static bool is_sure(unsigned int evidence)
{
	return evidence & OPD_APP_NO_LIBRARY && evidence & (OPD_APP_COMM | OPD_APP_PLACE);
}

uint64_t opd_app_choose(const struct op_dcookie_table *table, uint32_t pid, const struct opd_mm *mm,
			const struct opd_app_witness *witness)
{
	struct choice choice = { .table = table, .pid = pid, .comm = mm->comm };

	opd_mapset_visit(mm->maps, consider, &choice);
	if (witness && choice.best.cookie != OP_DCOOKIE_NONE && !is_sure(choice.evidence)) {
		choice.witness = witness;
		choice.best.cookie = OP_DCOOKIE_NONE;
		opd_mapset_visit(mm->maps, consider, &choice);
	}
	/* Libraries are no applications. A lone file is one, whatever its name. */
	if (choice.has_others && !(choice.evidence & ~(unsigned int)(OPD_APP_NO_LOADER | OPD_APP_IN_BIN)))
		return OP_DCOOKIE_NONE;
	return choice.best.cookie;
}

/* ---- an exec without the mark of an exec ---- */

struct since {
	uint64_t from_ns;
	bool has_file;
};

static void note_file(const struct opd_mapping *mapping, void *arg)
{
	struct since *since = arg;

	since->has_file |= !mapping->region_end && mapping->from_ns >= since->from_ns;
}

bool opd_app_shows_exec(const struct opd_mm *mm, const char *path)
{
	const char *name = base_name_of(path);
	struct since since = { .from_ns = mm->renamed_ns };

	if (!strcmp(path, VDSO) || is_comm(name, mm->new_comm))
		return true;
	if (is_loader(name))
		opd_mapset_visit(mm->maps, note_file, &since);
	return since.has_file;
}
