/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/fetch/living.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/atomic.h"
#include "libop/base/grow.h"
#include "libop/base/sys.h"
#include "tools/common/child.h"
#include "tools/common/log.h"

#define COPY_PREFIX "/proc/self/fd/"
#define COPY_BYTES  (sizeof(COPY_PREFIX) + 12)
#define COPY_MODE   0500 /* in an archive, too: the original may be closed to others */

struct opr_mapped_file {
	struct opr_mapping mapping;
	char *path;
	bool hangs; /* its process does */
};

/* ---- a look ---- */

/* The memory that a look shares with its child. NULL: none left. */
static struct opr_look_state *share_state(void)
{
	void *state = mmap(NULL, sizeof(struct opr_look_state), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return state == MAP_FAILED ? NULL : state;
}

static uint64_t time_left(const struct opr_living *living)
{
	return OPR_LIVING_MS_MAX - op_min_u64(living->spent_ms, OPR_LIVING_MS_MAX);
}

/* Warns of the first process that hangs in a report. */
static void warn_hanging(int32_t pid)
{
	static bool has_warned;

	if (!has_warned)
		opr_warn("process %d: its file system does not answer; images that only it, or processes like it, map are skipped",
			 pid);
	has_warned = true;
}

/* Runs one look in a child. 0 with a result, whose err is -ETIME when it hangs; -errno. */
static int look(struct opr_living *living, opr_child_fn *work, void *request, struct opr_look_state *state,
		struct opr_child_result *ret_result)
{
	uint64_t budget_ms = time_left(living), before = budget_ms;
	struct opr_child child;
	int err = opr_child_start(&child, work, request);

	if (!err)
		err = opr_child_wait_awake(&child, &state->beats, OPR_LIVING_PATIENCE_MS, &budget_ms, ret_result);
	living->spent_ms += before - budget_ms;
	if (!err && ret_result->err == -ETIME)
		warn_hanging(op_load_relaxed(&state->pid));
	return err;
}

/* ---- the list of mapped files ---- */

static int take_files(struct opr_living *living, const struct opr_child_result *result)
{
	struct opr_mapping mapping;

	for (size_t at = 0; result->nr_bytes - at >= sizeof(mapping); at += mapping.path_bytes) {
		struct opr_mapped_file *file;

		memcpy(&mapping, result->bytes + at, sizeof(mapping));
		at += sizeof(mapping);
		if (mapping.path_bytes > result->nr_bytes - at)
			break;
		if (!op_grow(&living->files, &living->capacity, living->nr_files + 1))
			return -ENOMEM;
		file = &living->files[living->nr_files];
		*file = (struct opr_mapped_file){ .mapping = mapping, .path = strndup(result->bytes + at, mapping.path_bytes) };
		if (!file->path)
			return -ENOMEM;
		living->nr_files++;
	}
	return 0;
}

/* Lists the files of all processes once. A process that hangs is left out. */
static int scan(struct opr_living *living)
{
	struct opr_look_state *state = living->is_scanned ? NULL : share_state();
	struct opr_list_request request = { state };
	bool hangs = state;
	int err = living->is_scanned || state ? 0 : -ENOMEM;

	living->is_scanned = true;
	while (!err && hangs && time_left(living)) {
		struct opr_child_result result = { 0 };

		err = look(living, opr_mapped_files_list, &request, state, &result);
		if (!err)
			err = take_files(living, &result);
		hangs = result.err == -ETIME;
		opr_child_result_free(&result);
	}
	if (state)
		munmap(state, sizeof(*state));
	opr_verbose(OPR_TOPIC_debug, "%zu files in executable mappings of living processes", living->nr_files);
	return err;
}

/* ---- the copy ---- */

/* A mapped file that may be the wanted one: the same inode, or the same path. */
static bool is_candidate(const struct opr_mapped_file *file, const struct opr_living_wanted *wanted, bool by_inode)
{
	const struct opr_mapping *mapping = &file->mapping;
	bool same_inode = wanted->inode && mapping->inode == wanted->inode && mapping->device == wanted->device;

	if (by_inode || same_inode)
		return by_inode && same_inode;
	return mapping->path_bytes == wanted->path_length && !memcmp(file->path, wanted->path, wanted->path_length);
}

static int keep_copy(struct opr_living *living, int fd, const char *origin, const char **ret_path)
{
	struct opr_living_copy *copy;

	if (!op_grow(&living->copies, &living->copies_capacity, living->nr_copies + 1))
		return -ENOMEM;
	copy = &living->copies[living->nr_copies];
	*copy = (struct opr_living_copy){ .path = malloc(COPY_BYTES), .origin = strdup(origin), .fd = fd };
	if (!copy->path || !copy->origin) {
		free(copy->path);
		free(copy->origin);
		return -ENOMEM;
	}
	snprintf(copy->path, COPY_BYTES, COPY_PREFIX "%d", fd);
	fchmod(fd, COPY_MODE);
	living->copied_bytes += (uint64_t)lseek(fd, 0, SEEK_END);
	living->nr_copies++;
	*ret_path = copy->path;
	return 0;
}

static void forget_process(struct opr_living *living, int32_t pid)
{
	for (size_t i = 0; i < living->nr_files; i++)
		living->files[i].hangs |= living->files[i].mapping.pid == pid;
}

/*
 * Copies one mapped file, if it is the wanted one. The copy is compared again: the file may have
 * changed meanwhile. 0; -ENOENT; -ENOMEM.
 */
static int try_file(struct opr_living *living, const struct opr_mapped_file *file, const struct opr_living_wanted *wanted,
		    const char **ret_path)
{
	struct opr_look_state *state = share_state();
	struct opr_child_result result = { 0 };
	struct opr_copy_request request = { state, &file->mapping, wanted, OPR_LIVING_FILE_BYTES_MAX,
					    op_sys_memfd_create("opd-image", MFD_CLOEXEC) };
	char link[COPY_BYTES];
	int err = state && request.fd >= 0 ? 0 : -ENOMEM;

	request.bytes_max = op_min_u64(request.bytes_max, OPR_LIVING_ALL_BYTES_MAX - living->copied_bytes);
	if (err)
		goto out;
	state->pid = file->mapping.pid;
	err = look(living, opr_mapped_file_copy, &request, state, &result);
	if (!err) /* the child's memory is not ours */
		err = result.err == -ENOMEM ? -ENOENT : result.err;
	snprintf(link, sizeof(link), COPY_PREFIX "%d", request.fd);
	if (!err)
		err = wanted->is_it(link, wanted->arg) ? keep_copy(living, request.fd, result.bytes, ret_path) : -ENOENT;
	if (err == -ETIME)
		forget_process(living, file->mapping.pid);
	if (err == -EFBIG)
		opr_warn("%s of process %d is too large to be copied: its samples are one symbol", file->path, file->mapping.pid);
out:
	if (err && request.fd >= 0)
		close(request.fd);
	opr_child_result_free(&result);
	if (state)
		munmap(state, sizeof(*state));
	return err && err != -ENOMEM ? -ENOENT : err;
}

int opr_living_find(struct opr_living *living, const struct opr_living_wanted *wanted, const char **ret_path)
{
	size_t nr_tries = 0;
	int err = scan(living);

	if (err)
		return err == -ENOMEM ? err : -ENOENT;
	for (int by_inode = 1; by_inode >= 0; by_inode--) {
		for (size_t i = 0; i < living->nr_files && nr_tries < OPR_LIVING_TRIES_MAX && time_left(living); i++) {
			const struct opr_mapped_file *file = &living->files[i];

			if (file->hangs || !is_candidate(file, wanted, by_inode))
				continue;
			nr_tries++;
			err = try_file(living, file, wanted, ret_path);
			if (err != -ENOENT)
				return err;
		}
	}
	return -ENOENT;
}

const char *opr_living_origin(const struct opr_living *living, const char *path)
{
	for (size_t i = 0; i < living->nr_copies && opr_living_is_copy(path); i++)
		if (!strcmp(living->copies[i].path, path))
			return living->copies[i].origin;
	return path;
}

bool opr_living_is_copy(const char *path)
{
	return !strncmp(path, COPY_PREFIX, strlen(COPY_PREFIX));
}

void opr_living_free(struct opr_living *living)
{
	for (size_t i = 0; i < living->nr_files; i++)
		free(living->files[i].path);
	free(living->files);
	for (size_t i = 0; i < living->nr_copies; i++) {
		close(living->copies[i].fd);
		free(living->copies[i].path);
		free(living->copies[i].origin);
	}
	free(living->copies);
	*living = (struct opr_living){ 0 };
}
