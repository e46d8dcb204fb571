/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Writes the timeline of a session for bench_timeline.py: busy blocks one after the other, as large
 * as opd makes them. Arguments: a directory, when the first one begins (seconds since 1970), how
 * many, the seconds of each, how many nodes of samples and of stacks, and a number that makes this
 * session differ from others. Standard input has a line "OFFSET OFFSET..." for the functions of
 * each image; the first image is number 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/grow.h"
#include "libop/timeline/append.h"
#include "tests/die.h"

#define NR_APPS     60u
#define DEPTH       12u
#define FAMILIES    400u /* call chains that come again in each block */

struct image {
	uint64_t *starts;
	size_t nr, capacity;
};

static struct image *images;
static size_t nr_images, image_capacity;
static uint64_t state;

/* Small numbers are much more frequent, as with functions. */
static uint32_t draw(uint64_t most)
{
	double at;

	state = state * 6364136223846793005u + 1442695040888963407u;
	at = (double)(state >> 11) / (double)(1ull << 53);
	return (uint32_t)(at * at * at * (double)most);
}

static void read_images(void)
{
	char *line = NULL, *word, *rest;
	size_t capacity = 0;

	while (getline(&line, &capacity, stdin) > 0) {
		struct image *image;

		if (!op_grow(&images, &image_capacity, nr_images + 1))
			die("images", -ENOMEM);
		image = &images[nr_images++];
		*image = (struct image){ 0 };
		for (rest = line; (word = strsep(&rest, " \n")) && *word;) {
			if (!op_grow(&image->starts, &image->capacity, image->nr + 1))
				die("images", -ENOMEM);
			image->starts[image->nr++] = strtoull(word, NULL, 10);
		}
	}
	free(line);
	if (!nr_images || !images[0].nr)
		die("images", -ENODATA);
}

static struct op_minute_step function(uint64_t family)
{
	uint64_t image = draw(nr_images) * (family % 7 + 1) % nr_images;

	return (struct op_minute_step){ OP_MINUTE_FUNCTION, images[image].starts[draw(images[image].nr)], image + 1 };
}

static void add_sample(struct op_minute *minute, uint64_t *sum)
{
	struct op_minute_step code = function(0);
	struct op_minute_step steps[] = {
		{ OP_MINUTE_SAMPLES, 0, 0 },
		{ OP_MINUTE_APP, 0, 1 + draw(NR_APPS) % nr_images },
		{ OP_MINUTE_IMAGE, 0, code.image },
		code,
	};
	uint64_t amount = 1 + draw(9);

	op_minute_add(minute, steps, op_array_size(steps), amount);
	*sum += amount;
}

/* A chain of a family, and a leaf of its own. */
static void add_stack(struct op_minute *minute, uint64_t *sum)
{
	struct op_minute_step steps[DEPTH + 3] = { { OP_MINUTE_STACKS, 1, 0 } };
	uint64_t family = draw(FAMILIES), next = state;

	steps[1] = (struct op_minute_step){ OP_MINUTE_APP, 0, 1 + family % NR_APPS % nr_images };
	state = family + 1;
	for (size_t i = 0; i < DEPTH; i++)
		steps[i + 2] = function(family);
	state = next;
	steps[DEPTH + 2] = function(0);
	op_minute_add(minute, steps, op_array_size(steps), 1);
	++*sum;
}

static int write_block(struct op_timeline_writer *writer, struct op_minute *minute, const uint32_t nr_nodes[2], uint64_t before[2])
{
	const struct op_encode_limits limits = { .max_samples = nr_nodes[0], .max_stacks = nr_nodes[1] };
	uint64_t sums[2] = { 0 };
	uint32_t event;
	int err = op_minute_event(minute, "TIMER:1000000:0x0", OP_UNIT_SAMPLES, 0, &event);

	if (!err)
		err = op_minute_event(minute, "STACKS:99:0x0", OP_UNIT_SAMPLES, 4, &event);
	for (uint32_t i = 0; i < 3 * nr_nodes[0]; i++)
		add_sample(minute, &sums[0]);
	for (uint32_t i = 0; i < nr_nodes[1]; i++)
		add_stack(minute, &sums[1]);
	for (uint32_t e = 0; e < 2 && !err; e++) {
		err = op_minute_add_row(minute, e, "before", (int64_t)before[e]);
		if (!err)
			err = op_minute_add_row(minute, e, "stored", (int64_t)sums[e]);
		if (!err)
			err = op_minute_add_row(minute, e, "received", (int64_t)sums[e]);
		before[e] += sums[e];
	}
	return err ? err : op_timeline_append(writer, minute, &limits);
}

int main(int argc, char **argv)
{
	int dir_fd = argc == 8 ? open(argv[1], O_RDONLY | O_DIRECTORY) : -1;
	uint64_t begin_ns = argc == 8 ? strtoull(argv[2], NULL, 10) * OP_NS_PER_S : 0, before[2] = { 0 };
	uint64_t step_ns = argc == 8 ? strtoull(argv[4], NULL, 10) * OP_NS_PER_S : 0;
	uint32_t nr_blocks, nr_nodes[2];
	struct op_timeline_writer *writer;
	struct op_minute minute;

	if (dir_fd < 0)
		die("usage: make_days DIRECTORY BEGIN BLOCKS SECONDS SAMPLE-NODES STACK-NODES SEED", -EINVAL);
	nr_blocks = (uint32_t)strtoul(argv[3], NULL, 10);
	nr_nodes[0] = (uint32_t)strtoul(argv[5], NULL, 10);
	nr_nodes[1] = (uint32_t)strtoul(argv[6], NULL, 10);
	state = strtoull(argv[7], NULL, 10);
	read_images();
	if (op_minute_init(&minute, 0) || op_timeline_append_open(dir_fd, "timeline", &writer, NULL))
		die(argv[1], -EIO);
	op_timeline_append_together(writer);
	for (uint32_t i = 0; i < nr_blocks; i++) {
		uint64_t at_ns = begin_ns + i * step_ns;

		op_minute_clear(&minute);
		minute.begin = (struct op_timeline_clocks){ at_ns, at_ns, at_ns };
		minute.end = (struct op_timeline_clocks){ at_ns + step_ns, at_ns + step_ns, at_ns + step_ns };
		minute.gap = i ? OP_GAP_NONE : OP_GAP_FIRST;
		minute.flags = step_ns > 60 * (uint64_t)OP_NS_PER_S ? OP_TIMELINE_IS_MERGED : 0;
		if (write_block(writer, &minute, nr_nodes, before))
			die("block", -EIO);
	}
	op_timeline_append_close(writer);
	op_minute_free(&minute);
	printf("%llu %llu\n", (unsigned long long)before[0], (unsigned long long)before[1]);
	return EXIT_SUCCESS;
}
