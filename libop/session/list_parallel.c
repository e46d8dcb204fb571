/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * op_session_list_sound: the walk of walk.h by several threads. One thread reads the first directories, until there are enough side by side; those, the branches, are then walked by all. What a
 * branch has to tell is kept with it and told in the end, in the order in which one walk would have come to it.
 */
#include "libop/session/list.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "libop/base/atomic.h"
#include "libop/session/walk.h"
#include "libop/base/threads.h"

#define BRANCHES_MIN 64 /* fewer of them may have one that is most of the tree */
#define HELD_FDS     32 /* of directories that branches lie in, */
#define DIRS_OF_HELD 8  /* as many at least */

struct misfit {
	char *path;
	int why;
};

struct branch {
	char *path;
	int parent_fd1; /* as in struct op_walk */
	int err;
	struct misfit *misfits;
	size_t nr_misfits;
	bool is_read;     /* what lies in it are branches of their own, and not walked with it */
	size_t first, nr; /* those */
	bool has_files;   /* it, or what was walked with it */
};

struct grove {
	int dir_fd;
	struct branch *branches; /* each before its own ones, which stand together */
	size_t nr_branches, capacity, nr_read;
	int fds[HELD_FDS];
	size_t nr_fds;
	struct op_session_list list;
	size_t list_capacity;
	pthread_mutex_t lock;           /* of the list, while there are threads */
	uint64_t next;                  /* branch, of all threads together */
	bool failed;                    /* to put the files of a thread into the list */
};

static void note_misfit(const char *path, int why, void *arg)
{
	struct branch *branch = arg;
	struct misfit *misfits = reallocarray(branch->misfits, branch->nr_misfits + 1, sizeof(*misfits));

	if (misfits) {
		branch->misfits = misfits;
		misfits[branch->nr_misfits] = (struct misfit){ strdup(path), why };
	}
	if (misfits && misfits[branch->nr_misfits].path)
		branch->nr_misfits++;
	else
		branch->err = -ENOMEM;
}

/* Takes `path` over, also when it fails. */
static int add_branch(struct grove *grove, char *path, int parent_fd1)
{
	if (grove->nr_branches == grove->capacity) {
		size_t capacity = grove->capacity ? 2 * grove->capacity : 2 * BRANCHES_MIN;
		struct branch *branches = reallocarray(grove->branches, capacity, sizeof(*branches));

		if (!branches) {
			free(path);
			return -ENOMEM;
		}
		grove->branches = branches;
		grove->capacity = capacity;
	}
	grove->branches[grove->nr_branches++] = (struct branch){ .path = path, .parent_fd1 = parent_fd1 };
	return path ? 0 : -ENOMEM;
}

/* ---- the trunk ---- */

/* 1 + the descriptor, where it is kept for those that lie in the directory. */
static int keep_fd(struct grove *grove, int fd, size_t nr_dirs)
{
	if (fd < 0)
		return 0;
	if (nr_dirs < DIRS_OF_HELD || grove->nr_fds == HELD_FDS) {
		close(fd);
		return 0;
	}
	grove->fds[grove->nr_fds++] = fd;
	return 1 + fd;
}

/* Takes the directories of the walk over. */
static int add_branches(struct grove *grove, size_t index, struct op_walk *walk, int fd)
{
	int fd1 = keep_fd(grove, fd, walk->nr_dirs), err = 0;

	grove->branches[index].first = grove->nr_branches;
	grove->branches[index].nr = walk->nr_dirs;
	for (size_t i = 0; i < walk->nr_dirs && !err; i++) {
		err = add_branch(grove, walk->dirs[i], fd1);
		walk->dirs[i] = NULL;
	}
	return err;
}

static int read_branch(struct grove *grove, size_t index)
{
	struct branch *branch = &grove->branches[index];
	const struct op_session_misfits misfits = { note_misfit, branch };
	struct op_walk walk = { .dir_fd = grove->dir_fd,
				.visit = op_walk_list_entry,
				.list = &grove->list,
				.list_capacity = grove->list_capacity,
				.parent_fd1 = branch->parent_fd1,
				.misfits = &misfits };
	size_t nr_files = grove->list.nr_files;
	int fd, err = op_walk_one(&walk, branch->path, &fd);

	branch->is_read = true;
	branch->has_files = grove->list.nr_files > nr_files;
	grove->list_capacity = walk.list_capacity;
	err = err ? err : branch->err;
	if (!err)
		err = add_branches(grove, index, &walk, fd);
	else if (fd >= 0)
		close(fd);
	op_walk_free(&walk);
	return err;
}

static int read_trunk(struct grove *grove)
{
	int err = 0;

	for (size_t i = 0; i < op_array_size(op_walk_sample_dirs) && !err; i++)
		err = add_branch(grove, strdup(op_walk_sample_dirs[i]), 0);
	while (!err && grove->nr_read < grove->nr_branches && grove->nr_branches - grove->nr_read < BRANCHES_MIN)
		err = read_branch(grove, grove->nr_read++);
	return err;
}

/* ---- the branches ---- */

static void walk_branch(struct op_walk *walk, struct op_session_misfits *misfits, struct branch *branch)
{
	size_t nr_files = walk->list->nr_files;
	int err;

	walk->parent_fd1 = branch->parent_fd1;
	misfits->arg = branch;
	err = op_walk_tree(walk, branch->path);
	branch->err = err ? err : branch->err;
	branch->has_files = walk->list->nr_files > nr_files;
	op_walk_forget(walk);
}

static bool take_files(struct op_session_list *list, const struct op_session_list *more)
{
	struct op_session_file *files = reallocarray(list->files, list->nr_files + more->nr_files + 1, sizeof(*files));

	if (!files)
		return false;
	list->files = files;
	if (more->nr_files)
		memcpy(files + list->nr_files, more->files, more->nr_files * sizeof(*files));
	list->nr_files += more->nr_files;
	return true;
}

static void walk_branches(void *arg)
{
	struct grove *grove = arg;
	struct op_session_list list = { 0 };
	struct op_session_misfits misfits = { note_misfit, NULL };
	struct op_walk walk = { .dir_fd = grove->dir_fd,
				.visit = op_walk_list_entry,
				.list = &list,
				.misfits = &misfits };
	bool taken;
	size_t i;

	while ((i = op_fetch_add_relaxed(&grove->next, 1)) < grove->nr_branches)
		walk_branch(&walk, &misfits, &grove->branches[i]);
	pthread_mutex_lock(&grove->lock);
	taken = take_files(&grove->list, &list);
	grove->failed |= !taken;
	pthread_mutex_unlock(&grove->lock);
	op_walk_free(&walk);
	if (taken)
		free(list.files);
	else
		op_session_list_free(&list);
}

/* ---- the end ---- */

/* The first error of a branch, in their order. */
static int first_error(const struct grove *grove)
{
	if (grove->failed)
		return -ENOMEM;
	for (size_t i = 0; i < grove->nr_branches; i++)
		if (grove->branches[i].err)
			return grove->branches[i].err;
	return 0;
}

/* What one walk would have told, in its order: of a directory, of what lies in it, and that there was no file. True when there was one. */
static bool tell_branch(const struct grove *grove, const struct branch *branch, const struct op_session_misfits *misfits)
{
	bool has_files = branch->has_files;

	for (size_t i = 0; i < branch->nr_misfits; i++)
		misfits->tell(branch->misfits[i].path, branch->misfits[i].why, misfits->arg);
	for (size_t i = 0; i < branch->nr; i++)
		has_files |= tell_branch(grove, &grove->branches[branch->first + i], misfits);
	if (branch->is_read && !has_files)
		op_walk_tell_of_directory(misfits, branch->path);
	return has_files;
}

static void free_grove(struct grove *grove)
{
	for (size_t i = 0; i < grove->nr_branches; i++) {
		struct branch *branch = &grove->branches[i];

		for (size_t j = 0; j < branch->nr_misfits; j++)
			free(branch->misfits[j].path);
		free(branch->misfits);
		free(branch->path);
	}
	for (size_t i = 0; i < grove->nr_fds; i++)
		close(grove->fds[i]);
	free(grove->branches);
	op_session_list_free(&grove->list);
}

/* Nothing is told when it fails. */
static int list_by_threads(int dir_fd, size_t nr_threads, struct op_session_list *ret_list,
			   const struct op_session_misfits *misfits)
{
	struct grove grove = { .dir_fd = dir_fd, .lock = PTHREAD_MUTEX_INITIALIZER };
	int err = read_trunk(&grove);

	grove.next = grove.nr_read;
	if (!err && grove.nr_read < grove.nr_branches)
		op_run_threads(nr_threads, walk_branches, &grove);
	if (!err)
		err = first_error(&grove);
	for (size_t i = 0; i < op_array_size(op_walk_sample_dirs) && !err; i++)
		tell_branch(&grove, &grove.branches[i], misfits);
	if (!err) {
		*ret_list = grove.list;
		grove.list = (struct op_session_list){ 0 };
	}
	free_grove(&grove);
	return err;
}

static int list_alone(int dir_fd, struct op_session_list *ret_list, const struct op_session_misfits *misfits)
{
	struct op_session_list list = { 0 };
	struct op_walk walk = { .dir_fd = dir_fd, .visit = op_walk_list_entry, .list = &list, .misfits = misfits };
	int err = 0;

	for (size_t i = 0; i < op_array_size(op_walk_sample_dirs) && !err; i++)
		err = op_walk_tree(&walk, op_walk_sample_dirs[i]);
	op_walk_free(&walk);
	if (err)
		op_session_list_free(&list);
	else
		*ret_list = list;
	return err;
}

/* Several threads have more descriptors. */
int op_session_list_sound(int dir_fd, struct op_session_list *ret_list, const struct op_session_misfits *misfits)
{
	size_t nr_threads = op_nr_cpus();
	struct op_session_list list;
	int err = nr_threads > 1 ? list_by_threads(dir_fd, nr_threads, &list, misfits) : -EMFILE;

	if (err == -EMFILE || err == -ENFILE)
		err = list_alone(dir_fd, &list, misfits);
	if (err)
		return err;
	op_session_list_sort(&list);
	*ret_list = list;
	return 0;
}
