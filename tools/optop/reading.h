/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What has most samples since the reading before: rows of the current session. Functions and images
 * come from the sample files, process names, cgroups, paths and waits from the stacks. A reading
 * of one of these sources has the rows of all views, so that a change of the view has its rows at
 * once. One thread.
 */
#ifndef TOP_READING_H
#define TOP_READING_H

#include "tools/profile/query.h"

/* id, key, word of --by, title of the rows */
#define TOP_VIEWS(X)                                                                                                               \
	X(FUNCTIONS, 'f', "function", "FUNCTION")                                                                                  \
	X(IMAGES, 'i', "image", "IMAGE")                                                                                           \
	X(NAMES, 'n', "comm", "PROCESS NAME")                                                                                      \
	X(CGROUPS, 'c', "cgroup", "CGROUP")                                                                                        \
	X(PATHS, 'p', "path", "APPLICATION, FUNCTION > CALLED FUNCTION")                                                           \
	X(WAITS, 'w', "wait", "FUNCTION THAT WAITED")

enum top_view {
#define X(id, key, word, title) TOP_##id,
	TOP_VIEWS(X)
#undef X
		TOP_NR_VIEWS,
};

/* Between the functions of a path. Names have " > " in templates. */
#define TOP_STEP "\x1f"

struct top_row {
	char *name;
	char *image; /* "": none, or that of the row above */
	uint64_t count;     /* samples; of waits microseconds */
	uint64_t key;       /* rows with one key are one */
	unsigned int depth; /* of a path: lines above it that it belongs to */
};

/* A view of one event; of stacks: of all events. */
struct top_table {
	enum top_view view;
	char *event;          /* "TIMER:1000000" */
	struct top_row *rows; /* most samples first; paths: a tree, parents first */
	size_t nr_rows, capacity;
	uint64_t total;
	uint64_t idle_us; /* of waits for work, which have no row and are not in the total */
};

/* Zeroed at first; top_reading_free in any case. */
struct top_reading {
	struct top_table *tables; /* of a view: in the order of the events */
	size_t nr_tables, capacity;
	size_t nr_put_off; /* images whose symbols there was no time to read */
};

enum top_source { TOP_SAMPLES, TOP_STACKS, TOP_NR_SOURCES };

/* Where the rows of a view come from. */
enum top_source top_source_of(enum top_view view);

struct top_query {
	struct opr_query report; /* of samples, or of stacks; `earlier`: the base, or NULL */
	uint32_t views; /* bit v: view v is wanted; those of the source are read */
	bool keep_base; /* counts go on from the same base */
};

/*
 * Reads the current session and counts from the base, which becomes this reading, unless it is to
 * be kept. The first reading sets the base and has no rows. 0; -ENOENT after a message: the session
 * has no samples yet, or no stacks; another -errno after a message. After an error the reading is
 * empty.
 */
int top_read(struct top_reading *reading, const struct top_query *query) OP_NONNULL OP_MUST_CHECK;

/* `event`: an index, modulo the number of events. NULL: the reading has no such table. */
const struct top_table *top_reading_find(const struct top_reading *reading, enum top_view view, size_t event) OP_NONNULL;

/* How many events the view can show one by one. */
size_t top_reading_nr_events(const struct top_reading *reading, enum top_view view) OP_NONNULL;

/* The index of the first event that has samples in this view; without one: 0. */
size_t top_reading_busy_event(const struct top_reading *reading, enum top_view view) OP_NONNULL;

void top_reading_free(struct top_reading *reading) OP_NONNULL;

#endif
