/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/before.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

struct counts {
	struct opr_count *counts; /* NULL: none */
	size_t nr_counts;
};

struct file {
	struct op_hlink link;
	uint64_t device, inode; /* of the directory */
	struct counts before, now;
	bool is_there, has_changed; /* in this reading; `now` is set when it has changed */
	char path[];
};

/* Of a reading that ends. */
struct ending {
	struct opr_before *earlier;
	bool moves;
};

void opr_before_init(struct opr_before *earlier)
{
	*earlier = (struct opr_before){ .lock = PTHREAD_MUTEX_INITIALIZER };
}

/* The file, which is added when it is not known. NULL: no memory. */
static struct file *find_file(struct opr_before *earlier, const struct stat *dir, const char *path)
{
	size_t nr_bytes = strlen(path) + 1;
	uint64_t hash = op_hash_bytes(op_hash_add(dir->st_dev, dir->st_ino), path, nr_bytes);
	struct file *file;

	for (struct op_hlink *link = op_htable_first(&earlier->files, hash); link; link = op_htable_next(link)) {
		file = op_container_of(link, struct file, link);
		if (file->device == dir->st_dev && file->inode == dir->st_ino && !strcmp(file->path, path))
			return file;
	}
	file = malloc(sizeof(*file) + nr_bytes);
	if (!file)
		return NULL;
	*file = (struct file){ .device = dir->st_dev, .inode = dir->st_ino };
	memcpy(file->path, path, nr_bytes);
	if (!op_htable_insert(&earlier->files, &file->link, hash))
		return file;
	free(file);
	return NULL;
}

static int compare_keys(const void *left, const void *right)
{
	const struct opr_count *a = left, *b = right;

	return a->key < b->key ? -1 : a->key > b->key;
}

/* Subtracts earlier counts that stand at other places. Several counts may have one key. */
static int subtract_by_key(struct opr_count *counts, size_t nr_counts, const struct opr_count *before, size_t nr_before)
{
	struct opr_count *sums = calloc(nr_before, sizeof(*sums));
	size_t nr_sums = 0;

	if (!sums)
		return -ENOMEM;
	memcpy(sums, before, nr_before * sizeof(*sums));
	qsort(sums, nr_before, sizeof(*sums), compare_keys);
	for (size_t i = 0; i < nr_before; i++) {
		if (nr_sums && sums[nr_sums - 1].key == sums[i].key)
			sums[nr_sums - 1].count += sums[i].count;
		else
			sums[nr_sums++] = sums[i];
	}
	for (size_t i = 0; i < nr_counts; i++) {
		struct opr_count *sum = bsearch(&counts[i], sums, nr_sums, sizeof(*sums), compare_keys);
		uint64_t nr = sum ? op_min_u64(sum->count, counts[i].count) : 0;

		counts[i].count -= nr;
		if (sum)
			sum->count -= nr;
	}
	free(sums);
	return 0;
}

/* A count that became less was begun again. */
static int subtract(struct opr_count *counts, size_t nr_counts, const struct counts *before)
{
	size_t i, nr = op_min_u64(nr_counts, before->nr_counts);

	for (i = 0; i < nr && counts[i].key == before->counts[i].key; i++)
		counts[i].count -= counts[i].count < before->counts[i].count ? 0 : before->counts[i].count;
	if (i == before->nr_counts || i == nr_counts)
		return 0;
	return subtract_by_key(counts + i, nr_counts - i, before->counts + i, before->nr_counts - i);
}

static bool are_same(const struct counts *before, const struct opr_count *counts, size_t nr_counts)
{
	return before->nr_counts == nr_counts && (!nr_counts || !memcmp(before->counts, counts, nr_counts * sizeof(*counts)));
}

int opr_before_subtract(struct opr_before *earlier, int dir_fd, const char *path, struct opr_count *counts, size_t nr_counts)
{
	struct stat dir;
	struct file *file;
	bool is_again, has_changed;

	if (fstat(dir_fd, &dir) < 0)
		return -errno;
	pthread_mutex_lock(&earlier->lock);
	file = find_file(earlier, &dir, path);
	is_again = file && file->is_there; /* the user named a session twice */
	if (file)
		file->is_there = true;
	pthread_mutex_unlock(&earlier->lock);
	if (!file)
		return -ENOMEM;
	has_changed = !is_again && !are_same(&file->before, counts, nr_counts);
	if (has_changed)
		file->has_changed = true;
	if (has_changed && nr_counts) {
		file->now = (struct counts){ malloc(nr_counts * sizeof(*counts)), nr_counts };
		if (!file->now.counts)
			return -ENOMEM;
		memcpy(file->now.counts, counts, nr_counts * sizeof(*counts));
	}
	if (earlier->is_set && has_changed)
		return subtract(counts, nr_counts, &file->before);
	for (size_t i = 0; i < nr_counts; i++)
		counts[i].count = 0;
	return 0;
}

int opr_before_keep(struct opr_before *earlier, int dir_fd, const char *path)
{
	struct stat dir;
	struct file *file;

	if (!earlier)
		return 0;
	if (fstat(dir_fd, &dir) < 0)
		return -errno;
	pthread_mutex_lock(&earlier->lock);
	file = find_file(earlier, &dir, path);
	if (file)
		file->is_there = true;
	pthread_mutex_unlock(&earlier->lock);
	return file ? 0 : -ENOMEM;
}

static void free_file(struct op_htable *files, struct file *file)
{
	op_htable_remove(files, &file->link);
	free(file->before.counts);
	free(file->now.counts);
	free(file);
}

static void end_file(struct op_hlink *link, void *arg)
{
	const struct ending *ending = arg;
	struct file *file = op_container_of(link, struct file, link);

	if (ending->moves && !file->is_there) {
		free_file(&ending->earlier->files, file);
		return;
	}
	if (ending->moves && file->has_changed) {
		free(file->before.counts);
		file->before = file->now;
	} else {
		free(file->now.counts);
	}
	file->now = (struct counts){ 0 };
	file->is_there = file->has_changed = false;
}

void opr_before_end(struct opr_before *earlier, bool moves)
{
	struct ending ending = { earlier, moves };

	op_htable_visit(&earlier->files, end_file, &ending);
	earlier->is_set |= moves;
}

static void visit_to_free(struct op_hlink *link, void *arg)
{
	free_file(arg, op_container_of(link, struct file, link));
}

void opr_before_free(struct opr_before *earlier)
{
	op_htable_visit(&earlier->files, visit_to_free, &earlier->files);
	op_htable_free(&earlier->files);
	*earlier = (struct opr_before){ .lock = PTHREAD_MUTEX_INITIALIZER };
}
