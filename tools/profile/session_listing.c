/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/session_listing.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "libop/base/atomic.h"
#include "libop/base/file.h"
#include "libop/session/memory_view.h"
#include "libop/base/threads.h"
#include "tools/common/cache_dir.h"
#include "tools/common/log.h"

#define SUBDIR         "sessions"
#define NAME_BYTES     96
#define DIRS_MIN       256 /* fewer of them are read at once */
#define DIRS_OF_THREAD 64
#define SETTLED_NS     2000000000u
#define FILE_BYTES_MAX (64u << 20)
#define KEPT_BYTES_MAX (64u << 20) /* of all sessions */

static_assert(sizeof(struct opr_listing_header) == 40 && sizeof(struct op_session_dir) == 40, "no holes");

/* What stands in a file. */
struct listing {
	char *bytes;
	struct opr_listing_header header;
	const struct op_session_dir *dirs;
	const uint64_t *files;
	const char *strings;
};

/* ---- reading ---- */

static bool is_sound(struct listing *listing, size_t nr_bytes)
{
	struct opr_listing_header *header = &listing->header;
	uint64_t left = nr_bytes - sizeof(*header);

	memcpy(header, listing->bytes, sizeof(*header));
	if (memcmp(header->magic, OPR_LISTING_MAGIC, OPR_LISTING_MAGIC_BYTES) || header->nr_dirs > left / sizeof(*listing->dirs) ||
	    header->nr_files > left / sizeof(*listing->files) || header->nr_string_bytes > left || header->spare ||
	    header->nr_dirs * sizeof(*listing->dirs) + header->nr_files * sizeof(*listing->files) + header->nr_string_bytes !=
		    left ||
	    (uint32_t)crc32_z(0, (const Bytef *)listing->bytes + sizeof(*header), left) != header->sum)
		return false;
	listing->dirs = (const void *)(listing->bytes + sizeof(*header));
	listing->files = (const void *)(listing->dirs + header->nr_dirs);
	listing->strings = (const char *)(listing->files + header->nr_files);
	if (!header->nr_string_bytes || listing->strings[header->nr_string_bytes - 1])
		return false;
	for (uint64_t i = 0; i < header->nr_dirs; i++)
		if (listing->dirs[i].path >= header->nr_string_bytes)
			return false;
	for (uint64_t i = 0; i < header->nr_files; i++)
		if (listing->files[i] >= header->nr_string_bytes ||
		    (i && strcmp(listing->strings + listing->files[i - 1], listing->strings + listing->files[i]) >= 0))
			return false;
	return true;
}

/* 0; -EBADMSG: it is damaged; -ENOENT: there is none; another -errno. `bytes` is to be freed in any case. */
static int read_listing(int cache_fd, const char *name, struct listing *listing)
{
	int fd = op_sys_openat(cache_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0), err;
	size_t nr_read = 0;
	struct stat st;

	if (fd < 0)
		return fd;
	err = op_sys_fstat(fd, &st);
	if (!err && (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(listing->header) || st.st_size > (off_t)FILE_BYTES_MAX))
		err = -EBADMSG;
	if (!err) {
		listing->bytes = malloc((size_t)st.st_size);
		err = listing->bytes ? op_file_read_at(fd, listing->bytes, (size_t)st.st_size, 0, &nr_read) : -ENOMEM;
	}
	close(fd);
	if (!err && (nr_read != (size_t)st.st_size || !is_sound(listing, nr_read)))
		err = -EBADMSG;
	return err;
}

/* ---- whether it still holds ---- */

struct check {
	int dir_fd;
	const struct listing *listing;
	uint64_t next; /* of all threads together */
	uint64_t nr_others;
};

static bool is_as_it_was(int dir_fd, const char *path, const struct op_sys_stamp *before)
{
	static const struct op_sys_stamp none;
	struct op_sys_stamp now;
	int err = op_sys_stamp(dir_fd, path, &now);

	if (err)
		return err == -ENOENT && !memcmp(before, &none, sizeof(none));
	return !memcmp(before, &now, sizeof(now));
}

static void check_some(void *arg)
{
	struct check *check = arg;
	const struct listing *listing = check->listing;
	uint64_t i;

	while (!op_load_relaxed(&check->nr_others) && (i = op_fetch_add_relaxed(&check->next, 1)) < listing->header.nr_dirs)
		if (!is_as_it_was(check->dir_fd, listing->strings + listing->dirs[i].path, &listing->dirs[i].stamp))
			op_fetch_add_relaxed(&check->nr_others, 1);
}

static bool holds(const struct listing *listing, int dir_fd)
{
	struct check check = { .dir_fd = dir_fd, .listing = listing };

	op_run_threads(op_min_u64(op_nr_cpus(), listing->header.nr_dirs / DIRS_OF_THREAD), check_some, &check);
	return !check.nr_others;
}

static int make_list(const struct listing *listing, struct op_session_list *ret_list)
{
	struct op_session_list list = { 0 };
	int err = 0;

	for (uint64_t i = 0; i < listing->header.nr_files && !err; i++)
		err = op_session_list_add(&list, listing->header.nr_files, listing->strings + listing->files[i]);
	if (err)
		op_session_list_free(&list);
	else
		*ret_list = list;
	return err;
}

static int get_list(int cache_fd, const char *name, int dir_fd, struct op_session_list *ret_list)
{
	struct listing listing = { 0 };
	int err = read_listing(cache_fd, name, &listing);

	if (!err)
		err = holds(&listing, dir_fd) ? make_list(&listing, ret_list) : -ESTALE;
	free(listing.bytes);
	return err;
}

/* ---- keeping ---- */

/* The clock may have been set back since, or a directory changed while it was read: both look as if it had been changed just now. */
static bool may_be_kept(const struct op_session_trace *trace, uint64_t begun_ns)
{
	if (trace->is_partial || trace->nr_dirs < DIRS_MIN)
		return false;
	for (size_t i = 0; i < trace->nr_dirs; i++) {
		const struct op_sys_stamp *stamp = &trace->dirs[i].stamp;

		if (stamp->modified_ns + SETTLED_NS > begun_ns || stamp->changed_ns + SETTLED_NS > begun_ns)
			return false;
	}
	return true;
}

static uint32_t sum_of(const struct op_session_trace *trace, const uint64_t *files, size_t nr_files)
{
	uLong sum = crc32_z(0, (const Bytef *)trace->dirs, trace->nr_dirs * sizeof(*trace->dirs));

	sum = crc32_z(sum, (const Bytef *)files, nr_files * sizeof(*files));
	return (uint32_t)crc32_z(sum, (const Bytef *)trace->paths.data, trace->paths.length);
}

static int write_listing(int fd, const struct op_session_trace *trace, const uint64_t *files, size_t nr_files)
{
	const struct opr_listing_header header = { .magic = OPR_LISTING_MAGIC,
						   .nr_dirs = trace->nr_dirs,
						   .nr_files = nr_files,
						   .nr_string_bytes = trace->paths.length,
						   .sum = sum_of(trace, files, nr_files) };
	int err = op_sys_write_all(fd, &header, sizeof(header));

	if (!err)
		err = op_sys_write_all(fd, trace->dirs, trace->nr_dirs * sizeof(*trace->dirs));
	if (!err)
		err = op_sys_write_all(fd, files, nr_files * sizeof(*files));
	return err ? err : op_sys_write_all(fd, trace->paths.data, trace->paths.length);
}

/* Nobody sees half of one: it is written under a name of its own. */
static void put_listing(const char *name, const struct op_session_trace *trace, const uint64_t *files, size_t nr_files)
{
	int cache_fd = opr_cache_dir_open(SUBDIR, true), fd, err;
	char temporary[NAME_BYTES + 32];

	if (cache_fd < 0)
		return;
	snprintf(temporary, sizeof(temporary), "%s.%x.new", name, (unsigned int)getpid());
	fd = op_sys_openat(cache_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0) {
		err = write_listing(fd, trace, files, nr_files);
		close(fd);
		err = err ? err : op_sys_renameat(cache_fd, temporary, cache_fd, name);
		if (err)
			op_sys_unlinkat(cache_fd, temporary, 0);
		opr_cache_dir_prune(cache_fd, KEPT_BYTES_MAX);
	}
	close(cache_fd);
}

static void keep_list(const char *name, const struct op_session_list *list, struct op_session_trace *trace)
{
	uint64_t *files = calloc(list->nr_files + 1, sizeof(*files));

	for (size_t i = 0; i < list->nr_files && files; i++) {
		files[i] = trace->paths.length;
		op_text_add_bytes(&trace->paths, list->files[i].path, strlen(list->files[i].path) + 1);
	}
	if (files && !trace->paths.failed)
		put_listing(name, trace, files, list->nr_files);
	free(files);
}

/* By the inode of the session's directory, whatever it is called. */
static bool make_name(int dir_fd, char name[NAME_BYTES])
{
	struct op_sys_stamp stamp;

	if (op_sys_stamp(dir_fd, "", &stamp) < 0)
		return false;
	snprintf(name, NAME_BYTES, "%" PRIx64 "-%" PRIx64 ".list", stamp.device, stamp.inode);
	return true;
}

int opr_session_list(int dir_fd, struct op_session_list *ret_list, const struct op_session_misfits *misfits)
{
	struct op_session_trace trace = { 0 };
	uint64_t begun_ns = op_sys_wall_ns();
	int cache_fd = opr_cache_dir_open(SUBDIR, false), err = -ENOENT;
	char name[NAME_BYTES];

	if (!make_name(dir_fd, name))
		name[0] = '\0';
	if (cache_fd >= 0) {
		err = name[0] ? get_list(cache_fd, name, dir_fd, ret_list) : -ENOENT;
		opr_verbose(OPR_TOPIC_sfile, "the list of sample files %s kept", err ? "is not" : "was");
		close(cache_fd);
	}
	if (!err || err == -ENOMEM)
		return err;
	err = op_session_list_traced(dir_fd, ret_list, misfits, &trace);
	if (!err && name[0] && may_be_kept(&trace, begun_ns))
		keep_list(name, ret_list, &trace);
	op_session_trace_free(&trace);
	return err;
}
