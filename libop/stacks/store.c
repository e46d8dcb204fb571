/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/stacks/store.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "libop/base/atomic.h"
#include "libop/base/clock.h"
#include "libop/base/file.h"
#include "libop/base/grow.h"
#include "libop/process/guard.h"
#include "libop/base/htable.h"
#include "libop/base/sys.h"
#include "libop/odb/file_image.h"

#define FILE_MODE      0644
#define STEP_BYTES     16384u     /* the file grows by a quarter of itself, at least by this */
#define STEP_BYTES_MAX (1u << 20)
#define SLOTS_MIN      1024u
#define RETRY_NS       100000000u /* what the disk refused is tried again after 100 ms */

/* In-memory index: hash(parent, kind, value, image) to node. */
struct slot {
	uint32_t hash;
	uint32_t node; /* 0: empty; the root is never looked up */
};

struct op_stacks {
	struct op_stacks_header *header; /* start of the mapping, which is longer than the file */
	struct op_stack_node *nodes;
	struct slot *slots; /* a power of two; at most three quarters are in use */
	size_t nr_slots;
	uint64_t seed;      /* random: processes cannot choose frames that share a slot */
	uint32_t nr_nodes;  /* in use; the header must say the same */
	uint32_t nr_backed; /* have blocks; only these may be written */
	uint32_t nr_max;
	uint32_t nr_cut;
	uint32_t *events;   /* their nodes */
	uint64_t *totals;   /* the sums of their counts */
	size_t nr_events;
	uint64_t total;
	uint32_t last_node; /* to which was added last */
	uint32_t *texts;    /* the nodes of runtime functions, by text_id; 0: not known */
	size_t texts_capacity;
	size_t map_bytes;
	struct op_guard *guard;
	int fd;
	int error;          /* of the last attempt to grow */
	uint64_t retry_ns;
	uint64_t disk_bytes;
	struct op_odb_space *space;
	uint64_t (*count_image)(void *arg, uint64_t image);
	void *arg;
};

/* ---- the index ---- */

struct key {
	uint32_t parent;
	uint16_t kind;
	uint64_t value, image;
};

static uint32_t hash_of(const struct op_stacks *stacks, const struct key *key)
{
	uint64_t hash = op_hash_u64(key->value ^ stacks->seed);

	return (uint32_t)op_hash_u64(hash + key->image * 0x9e3779b97f4a7c15u + ((uint64_t)key->parent << 8) + key->kind);
}

static bool is_node(const struct op_stack_node *node, const struct key *key)
{
	return le64toh(node->value) == key->value && le32toh(node->parent) == key->parent && le64toh(node->image) == key->image &&
	       le16toh(node->kind) == key->kind;
}

/* 0: there is none. */
static uint32_t find(const struct op_stacks *stacks, const struct key *key, uint32_t hash)
{
	size_t mask = stacks->nr_slots - 1;

	for (size_t i = hash & mask; stacks->slots[i].node; i = (i + 1) & mask)
		if (stacks->slots[i].hash == hash && is_node(&stacks->nodes[stacks->slots[i].node], key))
			return stacks->slots[i].node;
	return 0;
}

static void enter(struct slot *slots, size_t nr_slots, struct slot slot)
{
	size_t i = slot.hash & (nr_slots - 1);

	while (slots[i].node)
		i = (i + 1) & (nr_slots - 1);
	slots[i] = slot;
}

/* Makes room in the index for so many nodes. 0 or -ENOMEM. */
static int widen_index(struct op_stacks *stacks, uint32_t nr_nodes)
{
	size_t nr_slots = op_max_u64(stacks->nr_slots, SLOTS_MIN);
	struct slot *slots;

	while (nr_slots / 4 * 3 < nr_nodes)
		nr_slots *= 2;
	if (nr_slots == stacks->nr_slots)
		return 0;
	slots = calloc(nr_slots, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < stacks->nr_slots; i++)
		if (stacks->slots[i].node)
			enter(slots, nr_slots, stacks->slots[i]);
	free(stacks->slots);
	stacks->slots = slots;
	stacks->nr_slots = nr_slots;
	return 0;
}

/* ---- the file ---- */

static int note_disk_bytes(struct op_stacks *stacks)
{
	struct stat st;
	int err = op_sys_fstat(stacks->fd, &st);

	if (err)
		return err;
	if (stacks->space)
		stacks->space->taken_bytes += (uint64_t)st.st_blocks * 512 - stacks->disk_bytes;
	stacks->disk_bytes = (uint64_t)st.st_blocks * 512;
	return 0;
}

static bool has_space(const struct op_stacks *stacks, uint64_t more)
{
	const struct op_odb_space *space = stacks->space;

	return !space || !space->max_bytes || space->taken_bytes + space->kept_bytes + more <= space->max_bytes;
}

/* Gives blocks to nodes behind the last one, in whole steps. */
static int back(struct op_stacks *stacks)
{
	uint64_t from = op_stacks_file_bytes(stacks->nr_backed);
	uint64_t step = op_min_u64(op_max_u64(from / 4, STEP_BYTES), STEP_BYTES_MAX);
	uint64_t to = op_min_u64((from + step) / STEP_BYTES * STEP_BYTES, op_stacks_file_bytes(stacks->nr_max));
	int err;

	if (!has_space(stacks, to - from))
		return -EDQUOT;
	err = op_file_allocate(stacks->fd, (off_t)from, (off_t)(to - from));
	if (!err)
		err = note_disk_bytes(stacks);
	if (!err)
		stacks->nr_backed = (uint32_t)((to - sizeof(struct op_stacks_header)) / sizeof(struct op_stack_node));
	return err;
}

/* Room for one node more. A full disk is not asked again with every sample. */
static int extend(struct op_stacks *stacks)
{
	if (stacks->nr_nodes >= stacks->nr_max)
		return -EDQUOT;
	if (stacks->nr_nodes < stacks->nr_backed)
		return 0;
	if (stacks->error && op_now_ns() < stacks->retry_ns)
		return stacks->error;
	stacks->error = back(stacks);
	if (stacks->error)
		stacks->retry_ns = op_now_ns() + RETRY_NS;
	return stacks->error;
}

static bool is_foreign(const struct op_stacks *stacks)
{
	return !op_stacks_is_header(stacks->header) || le32toh(op_load_relaxed(&stacks->header->nr_nodes)) != stacks->nr_nodes;
}

static int map_error(const struct op_stacks *stacks)
{
	return op_unlikely(op_guard_nr_broken()) && op_guard_is_broken(stacks->guard) ? -EIO : 0;
}

/* ---- adding ---- */

static int append(struct op_stacks *stacks, const struct key *key, uint32_t hash)
{
	uint32_t index = stacks->nr_nodes;
	int err = is_foreign(stacks) ? -EIO : extend(stacks);

	if (!err)
		err = widen_index(stacks, index + 1);
	if (err)
		return err;
	stacks->nodes[index] = (struct op_stack_node){
		.parent = htole32(key->parent),
		.kind = htole16(key->kind),
		.value = htole64(key->value),
		.image = htole64(key->image),
	};
	enter(stacks->slots, stacks->nr_slots, (struct slot){ hash, index });
	stacks->nr_nodes = index + 1;
	/* A reader, and whoever opens the file after a kill, sees whole nodes below this number. */
	op_store_release(&stacks->header->nr_nodes, htole32(index + 1));
	return 0;
}

/* Goes from *node to its child, and makes a missing one. After an error *node stays. */
static int step(struct op_stacks *stacks, uint32_t *node, enum op_stack_kind kind, uint64_t value, uint64_t image)
{
	struct key key = { *node, (uint16_t)kind, value, image };
	uint32_t hash = hash_of(stacks, &key), child = find(stacks, &key, hash);

	if (op_unlikely(!child)) {
		int err = append(stacks, &key, hash);

		if (err)
			return err;
		child = stacks->nr_nodes - 1;
	}
	*node = child;
	return 0;
}

/* The same for a node with an image, which may be filed under another one. */
static int step_image(struct op_stacks *stacks, uint32_t *node, enum op_stack_kind kind, uint64_t value, uint64_t image)
{
	struct key key = { *node, (uint16_t)kind, value, image };
	uint32_t child = find(stacks, &key, hash_of(stacks, &key));

	if (op_likely(child)) {
		*node = child;
		return 0;
	}
	if (stacks->count_image) {
		uint64_t filed = stacks->count_image(stacks->arg, image);

		value = filed == image || kind == OP_STACK_RUNTIME_FRAME || kind == OP_STACK_WAKER ? value : 0;
		image = filed;
	}
	return step(stacks, node, kind, value, image);
}

/* 16 bytes as value and image. */
static int step_bytes(struct op_stacks *stacks, uint32_t *node, enum op_stack_kind kind, const char *text, size_t nr_bytes)
{
	uint64_t words[OP_STACK_PIECE_BYTES / sizeof(uint64_t)] = { 0 };

	memcpy(words, text, nr_bytes);
	return step(stacks, node, kind, le64toh(words[0]), le64toh(words[1]));
}

/* The node where a text ends. Texts lie below the root, and share their beginnings. */
static int step_text(struct op_stacks *stacks, const char *text, uint32_t *ret_node)
{
	size_t nr_bytes = strnlen(text, OP_STACK_TEXT_MAX);
	uint32_t node = 0;
	int err = 0;

	for (size_t at = 0; !err && at < nr_bytes; at += OP_STACK_PIECE_BYTES)
		err = step_bytes(stacks, &node, OP_STACK_TEXT, text + at, op_min_u64(nr_bytes - at, OP_STACK_PIECE_BYTES));
	if (!err)
		*ret_node = node;
	return err;
}

/* From the event to the node below which the frames lie. */
static int step_path(struct op_stacks *stacks, uint32_t *node, const struct op_stack_path *path)
{
	uint64_t thread = (uint64_t)path->tgid << 32 | path->tid;
	const char *comm = path->comm ? path->comm : "";
	uint32_t cgroup = 0;
	int err = step_image(stacks, node, OP_STACK_APP, 0, path->app);

	if (err)
		return err;
	err = step_bytes(stacks, node, OP_STACK_COMM, comm, strnlen(comm, OP_STACK_PIECE_BYTES - 1));
	if (err)
		return err;
	err = path->cgroup ? step_text(stacks, path->cgroup, &cgroup) : 0;
	if (err)
		return err;
	err = step(stacks, node, OP_STACK_CGROUP, cgroup, 0);
	if (err)
		return err;
	err = step(stacks, node, OP_STACK_THREAD, thread, path->cpu);
	if (err)
		return err;
	err = path->end ? step(stacks, node, OP_STACK_END, path->end, 0) : 0;
	if (!err && path->state)
		err = step(stacks, node, OP_STACK_STATE, path->state, 0);
	return err;
}

/* The node of the name of a runtime's function. */
static int find_name(struct op_stacks *stacks, const struct op_stack_frame *frame, uint32_t *ret_text)
{
	size_t nr_before = stacks->texts_capacity;
	int err = 0;

	if (!op_grow(&stacks->texts, &stacks->texts_capacity, frame->text_id + 1ull))
		return -ENOMEM;
	memset(stacks->texts + nr_before, 0, (stacks->texts_capacity - nr_before) * sizeof(*stacks->texts));
	if (!stacks->texts[frame->text_id])
		err = step_text(stacks, frame->text, &stacks->texts[frame->text_id]);
	*ret_text = stacks->texts[frame->text_id];
	return err;
}

static int step_runtime(struct op_stacks *stacks, uint32_t *node, const struct op_stack_frame *frame)
{
	uint32_t text;
	int err = find_name(stacks, frame, &text);

	return err ? err : step_image(stacks, node, OP_STACK_RUNTIME_FRAME, frame->value << 32 | text, frame->image);
}

static int step_waker(struct op_stacks *stacks, uint32_t *node, const struct op_stack_path *path)
{
	uint32_t text = 0;
	int err = step_text(stacks, path->waker, &text);

	return err ? err : step_image(stacks, node, OP_STACK_WAKER, text, path->waker_app);
}

static void add_u64(uint64_t *number, uint64_t amount)
{
	op_store_relaxed(number, htole64(le64toh(*number) + amount));
}

static void add_record(struct op_stack_node *node)
{
	uint16_t nr = le16toh(node->records);

	if (nr < OP_STACK_RECORDS_MAX)
		op_store_relaxed(&node->records, htole16((uint16_t)(nr + 1)));
}

int op_stacks_add(struct op_stacks *stacks, const struct op_stack_path *path, const struct op_stack_frame *frames, size_t nr_frames,
		  uint64_t amount)
{
	bool is_full = path->leaf_start && stacks->nr_nodes > stacks->nr_max / 2;
	uint32_t node;
	int err, map_err;

	if (op_unlikely(path->event >= stacks->nr_events))
		return -EIO;
	node = stacks->events[path->event];
	err = step_path(stacks, &node, path);
	for (size_t i = 0; !err && i < nr_frames; i++) {
		enum op_stack_kind kind = frames[i].is_kernel ? OP_STACK_KERNEL_FRAME : OP_STACK_FRAME;
		struct key key = { node, (uint16_t)kind, frames[i].value, frames[i].image };

		if (frames[i].text) {
			err = step_runtime(stacks, &node, &frames[i]);
			continue;
		}

		if (op_unlikely(is_full) && i == nr_frames - 1 && !find(stacks, &key, hash_of(stacks, &key)))
			key.value = path->leaf_start;
		err = step_image(stacks, &node, kind, key.value, key.image);
	}
	/* what is left of the room is for stacks */
	if (!err && path->waker && stacks->nr_nodes <= stacks->nr_max / 2)
		err = step_waker(stacks, &node, path);
	if (op_unlikely(err == -EIO))
		return err;
	add_u64(&stacks->nodes[node].count, amount);
	if (path->state && !path->goes_on)
		add_record(&stacks->nodes[node]);
	stacks->last_node = node;
	if (op_unlikely(err))
		add_u64(path->state ? &stacks->header->no_room_us : &stacks->header->no_room, amount);
	map_err = map_error(stacks);
	if (op_unlikely(map_err))
		return map_err;
	stacks->total += amount;
	stacks->totals[path->event] += amount;
	return err;
}

/* ---- opening ---- */

static int create(int dir_fd, const char *path, const char *tmp_path, struct op_odb_space *space)
{
	static const struct op_stack_node root = { .kind = OP_STACK_ROOT };
	struct op_stacks_header header = { .node_bytes = htole32(sizeof(struct op_stack_node)), .nr_nodes = htole32(1) };
	int fd = op_file_create_below(dir_fd, tmp_path, FILE_MODE), err;
	uint64_t dir_bytes;

	if (fd < 0)
		return fd;
	memcpy(header.magic, OP_STACKS_MAGIC, sizeof(header.magic));
	err = op_sys_pwrite_all(fd, &header, sizeof(header), 0);
	if (!err)
		err = op_sys_pwrite_all(fd, &root, sizeof(root), sizeof(header));
	if (!err)
		err = op_file_publish_below(dir_fd, tmp_path, path, &dir_bytes);
	if (err) {
		close(fd);
		op_file_unlink_below(dir_fd, tmp_path);
		return err;
	}
	if (space)
		space->taken_bytes += dir_bytes;
	return fd;
}

static int map_file(struct op_stacks *stacks)
{
	uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	size_t nr_bytes = (size_t)((op_stacks_file_bytes(stacks->nr_max) + page_bytes - 1) / page_bytes * page_bytes);
	void *start;
	int err = op_sys_mmap(NULL, nr_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, stacks->fd, 0, &start);

	if (err)
		return err;
	stacks->header = start;
	stacks->nodes = (void *)((uint8_t *)start + sizeof(struct op_stacks_header));
	stacks->map_bytes = nr_bytes;
	return op_guard_new(start, nr_bytes, &stacks->guard);
}

/*
 * How many nodes the file says that it has. The header may be damaged, so it says no more than the
 * file has bytes for.
 */
static int read_header(int fd, uint32_t *ret_nr_nodes)
{
	struct op_stacks_header header;
	struct stat st;
	size_t nr_read;
	int err = op_sys_fstat(fd, &st);

	if (!err)
		err = op_file_read_at(fd, &header, sizeof(header), 0, &nr_read);
	if (err < 0)
		return err;
	if (nr_read < sizeof(header) || !op_stacks_is_header(&header) || (uint64_t)st.st_size < op_stacks_file_bytes(1))
		return -EBADMSG;
	*ret_nr_nodes = (uint32_t)op_min_u64(le32toh(header.nr_nodes),
					     ((uint64_t)st.st_size - sizeof(header)) / sizeof(struct op_stack_node));
	return 0;
}

/* Puts the sound nodes into the index and drops the rest. */
static int take_nodes(struct op_stacks *stacks, uint32_t nr_nodes)
{
	uint32_t nr_published = le32toh(stacks->header->nr_nodes);
	int err = widen_index(stacks, nr_nodes);

	if (err)
		return err;
	while (stacks->nr_nodes < nr_nodes && op_stack_is_sound(stacks->nodes, stacks->nr_nodes)) {
		const struct op_stack_node *node = &stacks->nodes[stacks->nr_nodes];
		struct key key = { le32toh(node->parent), le16toh(node->kind), le64toh(node->value), le64toh(node->image) };

		if (stacks->nr_nodes)
			enter(stacks->slots, stacks->nr_slots, (struct slot){ hash_of(stacks, &key), stacks->nr_nodes });
		stacks->total += le64toh(node->count);
		stacks->nr_nodes++;
	}
	err = map_error(stacks);
	if (err || !stacks->nr_nodes)
		return err ? err : -EBADMSG;
	stacks->nr_cut = nr_published - stacks->nr_nodes;
	if (stacks->nr_cut) {
		stacks->header->nr_cut = htole32(le32toh(stacks->header->nr_cut) + stacks->nr_cut);
		op_store_release(&stacks->header->nr_nodes, htole32(stacks->nr_nodes));
	}
	return 0;
}

static int make_events(struct op_stacks *stacks, const struct op_stacks_setup *setup)
{
	stacks->events = calloc(setup->nr_events + 1, sizeof(*stacks->events));
	stacks->totals = calloc(setup->nr_events + 1, sizeof(*stacks->totals));
	if (!stacks->events || !stacks->totals)
		return -ENOMEM;
	for (size_t i = 0; i < setup->nr_events; i++) {
		uint32_t text;
		int err = step_text(stacks, setup->events[i], &text);

		if (!err)
			err = step(stacks, &stacks->events[i], OP_STACK_EVENT, text, 0);
		if (err)
			return err;
	}
	stacks->nr_events = setup->nr_events;
	return 0;
}

/* The sums of the events, of the nodes that were in the file. */
static int sum_events(struct op_stacks *stacks, uint32_t nr_nodes)
{
	uint32_t *places = calloc(nr_nodes, sizeof(*places)); /* index of the event + 1 */

	for (uint32_t i = 0; places && i < stacks->nr_events; i++)
		if (stacks->events[i] < nr_nodes)
			places[stacks->events[i]] = i + 1;
	for (uint32_t i = 1; places && i < nr_nodes; i++) {
		const struct op_stack_node *node = &stacks->nodes[i];

		if (le16toh(node->kind) != OP_STACK_EVENT)
			places[i] = places[le32toh(node->parent)];
		if (places[i])
			stacks->totals[places[i] - 1] += le64toh(node->count);
	}
	free(places);
	return places ? map_error(stacks) : -ENOMEM;
}

/* `stacks` has the descriptor of a regular file, and is closed by the caller after an error. */
static int load(struct op_stacks *stacks, const struct op_stacks_setup *setup)
{
	uint64_t max_bytes = op_max_u64(setup->max_bytes, op_stacks_file_bytes(1));
	uint32_t nr_nodes;
	int err = read_header(stacks->fd, &nr_nodes);

	if (err)
		return err;
	stacks->nr_max = (uint32_t)op_min_u64((max_bytes - sizeof(struct op_stacks_header)) / sizeof(struct op_stack_node),
					      OP_STACKS_NODES_MAX);
	stacks->nr_max = (uint32_t)op_max_u64(stacks->nr_max, nr_nodes);
	stacks->nr_backed = nr_nodes;
	if (getrandom(&stacks->seed, sizeof(stacks->seed), GRND_NONBLOCK) != (ssize_t)sizeof(stacks->seed))
		stacks->seed = (uintptr_t)stacks;
	/* A sparse copy lacks blocks; writing there would be SIGBUS on a full disk. */
	err = op_file_allocate(stacks->fd, 0, (off_t)op_stacks_file_bytes(nr_nodes));
	if (err)
		return err;
	err = note_disk_bytes(stacks);
	if (err)
		return err;
	err = map_file(stacks);
	if (err)
		return err;
	err = take_nodes(stacks, nr_nodes);
	if (err)
		return err;
	nr_nodes = stacks->nr_nodes;
	err = make_events(stacks, setup);
	return err ? err : sum_events(stacks, nr_nodes);
}

int op_stacks_open(int dir_fd, const char *path, const char *tmp_path, const struct op_stacks_setup *setup,
		   struct op_stacks **ret_stacks)
{
	struct op_stacks *stacks = malloc(sizeof(*stacks));
	struct stat st;
	int err;

	if (!stacks)
		return -ENOMEM;
	*stacks = (struct op_stacks){ .space = setup->space, .count_image = setup->count_image, .arg = setup->arg };
	stacks->fd = op_odb_open_regular(dir_fd, path, O_RDWR, &st);
	if (stacks->fd >= 0)
		stacks->disk_bytes = (uint64_t)st.st_blocks * 512; /* already in the space */
	if (stacks->fd == -ENOENT)
		stacks->fd = create(dir_fd, path, tmp_path, setup->space);
	err = stacks->fd < 0 ? stacks->fd : load(stacks, setup);
	if (err) {
		op_stacks_close(stacks);
		return err;
	}
	*ret_stacks = stacks;
	return 0;
}

/* ---- the rest ---- */

uint32_t op_stacks_last_node(const struct op_stacks *stacks)
{
	return stacks->last_node;
}

uint32_t op_stacks_nr_nodes(const struct op_stacks *stacks)
{
	return stacks->nr_nodes;
}

uint32_t op_stacks_nr_cut(const struct op_stacks *stacks)
{
	return stacks->nr_cut;
}

uint64_t op_stacks_total(const struct op_stacks *stacks)
{
	return stacks->total;
}

uint64_t op_stacks_event_total(const struct op_stacks *stacks, uint32_t event)
{
	return stacks->totals[event];
}

bool op_stacks_is_broken(const struct op_stacks *stacks)
{
	struct stat st;

	return map_error(stacks) || is_foreign(stacks) || op_sys_fstat(stacks->fd, &st) < 0 || !st.st_nlink;
}

void op_stacks_drop_pages(const struct op_stacks *stacks)
{
	op_sys_release_pages(stacks->header, stacks->map_bytes);
}

void op_stacks_close(struct op_stacks *stacks)
{
	if (!stacks)
		return;
	if (stacks->nr_nodes && !map_error(stacks) && !is_foreign(stacks) &&
	    !op_sys_ftruncate(stacks->fd, (off_t)op_stacks_file_bytes(stacks->nr_nodes)))
		(void)!note_disk_bytes(stacks);
	op_guard_free(stacks->guard);
	if (stacks->header)
		op_sys_munmap(stacks->header, stacks->map_bytes);
	if (stacks->fd >= 0)
		close(stacks->fd);
	free(stacks->events);
	free(stacks->totals);
	free(stacks->texts);
	free(stacks->slots);
	free(stacks);
}
