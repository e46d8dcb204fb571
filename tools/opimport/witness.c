/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opimport/witness.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/sys.h"

#define PROGRAMS_MAX   128u
#define NOTE_BYTES_MAX 65536u
#define DYNAMIC_MAX    4096u        /* entries */
#define DELETED        " (deleted)" /* the name of the image has no such mark */
#define STAT_STARTTIME 20           /* words behind the name in /proc/PID/stat */

/* ---- program headers ---- */

struct object {
	int fd;
	Elf64_Ehdr header;
	bool has_interpreter, is_pie, has_soname;
};

static bool read_at(int fd, void *bytes, size_t nr_bytes, uint64_t offset)
{
	return offset <= INT64_MAX && pread(fd, bytes, nr_bytes, (off_t)offset) == (ssize_t)nr_bytes;
}

static void look_at_dynamic(struct object *object, const Elf64_Phdr *program)
{
	for (uint64_t i = 0; i < program->p_filesz / sizeof(Elf64_Dyn) && i < DYNAMIC_MAX; i++) {
		Elf64_Dyn entry;

		if (!read_at(object->fd, &entry, sizeof(entry), program->p_offset + i * sizeof(entry)) || entry.d_tag == DT_NULL)
			return;
		object->has_soname |= entry.d_tag == DT_SONAME;
		object->is_pie |= entry.d_tag == DT_FLAGS_1 && entry.d_un.d_val & DF_1_PIE;
	}
}

static void look_at_notes(const struct object *object, const Elf64_Phdr *program, struct op_build_id *ret_id)
{
	uint8_t *notes = ret_id->nr_bytes || program->p_filesz > NOTE_BYTES_MAX ? NULL : malloc(program->p_filesz + 1);

	if (notes && (!read_at(object->fd, notes, program->p_filesz, program->p_offset) ||
		      !op_build_id_in_notes(notes, program->p_filesz, ret_id)))
		ret_id->nr_bytes = 0;
	free(notes);
}

static bool is_native(const Elf64_Ehdr *header)
{
	const unsigned char data = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;

	return !memcmp(header->e_ident, ELFMAG, SELFMAG) && header->e_ident[EI_CLASS] == ELFCLASS64 &&
	       header->e_ident[EI_DATA] == data && header->e_phentsize == sizeof(Elf64_Phdr);
}

enum opi_elf_kind opi_elf_look(int fd, struct op_build_id *ret_id)
{
	struct object object = { .fd = fd };
	const Elf64_Ehdr *header = &object.header;

	*ret_id = (struct op_build_id){ 0 };
	if (!read_at(fd, &object.header, sizeof(object.header), 0) || !is_native(header))
		return OPI_ELF_UNKNOWN;
	for (uint64_t i = 0; i < header->e_phnum && i < PROGRAMS_MAX; i++) {
		Elf64_Phdr program;

		if (!read_at(fd, &program, sizeof(program), header->e_phoff + i * sizeof(program)))
			return OPI_ELF_UNKNOWN;
		object.has_interpreter |= program.p_type == PT_INTERP;
		if (program.p_type == PT_DYNAMIC)
			look_at_dynamic(&object, &program);
		else if (program.p_type == PT_NOTE)
			look_at_notes(&object, &program, ret_id);
	}
	if (header->e_type == ET_EXEC || object.is_pie || (object.has_interpreter && !object.has_soname))
		return OPI_ELF_EXECUTABLE;
	return object.has_soname || !header->e_entry ? OPI_ELF_LIBRARY : OPI_ELF_UNKNOWN;
}

static bool is_this_host(const struct op_perf_features *features)
{
	struct utsname own;

	return uname(&own) == 0 && features->hostname && !strcmp(features->hostname, own.nodename);
}

/* True when the file is the recorded one: it has the build-id or, on the same host, the inode. */
static bool is_recorded(const struct opi_witness *witness, const struct op_image_id *file, const struct stat *st,
			const struct op_build_id *id)
{
	if (file->build_id_bytes)
		return id->nr_bytes == file->build_id_bytes && !memcmp(id->bytes, file->build_id, id->nr_bytes);
	return file->inode && st->st_ino == file->inode && st->st_dev == file->device && st->st_mtime <= witness->recorded_at &&
	       is_this_host(witness->features);
}

static enum opi_elf_kind kind_of(const struct opi_witness *witness, const struct op_image_id *file)
{
	int fd = op_sys_openat(AT_FDCWD, file->name.name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
	enum opi_elf_kind kind = OPI_ELF_UNKNOWN;
	struct op_build_id id;
	struct stat st;

	if (fd < 0)
		return kind;
	if (!op_sys_fstat(fd, &st) && S_ISREG(st.st_mode))
		kind = opi_elf_look(fd, &id);
	if (kind != OPI_ELF_UNKNOWN && !is_recorded(witness, file, &st, &id))
		kind = OPI_ELF_UNKNOWN;
	close(fd);
	return kind;
}

/* ---- processes ---- */

/* When the process began; 0: it has ended. After a reboot this is later than the recording. */
static time_t began_at(uint32_t pid)
{
	char path[64], line[1024] = "", *at;
	unsigned long long ticks = 0;
	struct timespec up;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	file = fopen(path, "re");
	at = file && fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
	if (file)
		fclose(file);
	for (int i = 0; at && i < STAT_STARTTIME; i++)
		at = strchr(at + 1, ' ');
	if (!at || sscanf(at, "%llu", &ticks) != 1 || clock_gettime(CLOCK_BOOTTIME, &up) < 0)
		return 0;
	return time(NULL) - up.tv_sec + (time_t)(ticks / (unsigned long long)sysconf(_SC_CLK_TCK));
}

/*
 * Addresses are random, so the mapping at the same address proves that this is the process. Without
 * random addresses it proves that it runs the same program.
 */
static bool has_mapping(uint32_t pid, const struct op_image_id *file, const struct opd_mapping *mapping)
{
	char path[64], *line = NULL;
	size_t capacity = 0;
	bool found = false;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	maps = fopen(path, "re");
	while (maps && !found && getline(&line, &capacity, maps) >= 0) {
		unsigned long long start, end, offset, inode;
		unsigned int maj, min;

		found = sscanf(line, "%llx-%llx %*4s %llx %x:%x %llu", &start, &end, &offset, &maj, &min, &inode) == 6 &&
			start <= mapping->start && mapping->start < end && start - offset == mapping->start - mapping->key &&
			inode && (!file->inode || (file->inode == inode && file->device == makedev(maj, min)));
	}
	if (maps)
		fclose(maps);
	free(line);
	return found;
}

static bool runs(const struct opi_witness *witness, uint32_t pid, const struct op_image_id *file, const struct opd_mapping *mapping)
{
	const char *name = file->name.name;
	char path[64], exe[PATH_MAX];
	time_t began;
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	length = readlink(path, exe, sizeof(exe) - 1);
	if (length < 0)
		return false;
	exe[length] = '\0';
	if (strncmp(exe, name, strlen(name)) != 0 || (exe[strlen(name)] && strcmp(exe + strlen(name), DELETED) != 0))
		return false;
	began = began_at(pid);
	return began && began <= witness->recorded_at && has_mapping(pid, file, mapping);
}

static int look(void *arg, uint32_t pid, const struct op_image_id *file, const struct opd_mapping *mapping)
{
	const struct opi_witness *witness = arg;

	if (runs(witness, pid, file, mapping))
		return OPD_APP_EXE;
	switch (kind_of(witness, file)) {
	case OPI_ELF_EXECUTABLE:
		return OPD_APP_HEADERS;
	case OPI_ELF_LIBRARY:
		return -1;
	case OPI_ELF_UNKNOWN:
		break;
	}
	return 0;
}

void opi_witness_init(struct opi_witness *witness, const struct op_perf_features *features, int fd)
{
	struct stat st;

	*witness = (struct opi_witness){
		.witness = { .look = look, .arg = witness },
		.features = features,
		.recorded_at = !op_sys_fstat(fd, &st) && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) ? st.st_mtime : time(NULL),
	};
}

/* Until the second of recorded_at has passed. */
uint64_t opi_witness_recorded_ns(const struct opi_witness *witness)
{
	bool is_here = witness->recorded_at > 0 && is_this_host(witness->features);

	return is_here ? ((uint64_t)witness->recorded_at + 1) * OP_NS_PER_S : 0;
}
