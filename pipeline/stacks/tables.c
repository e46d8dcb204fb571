/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/stacks/tables.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/htable.h"
#include "libop/base/log.h"
#include "libop/base/sys.h"
#include "libop/process/guard.h"
#include "pipeline/stacks/disk.h"
#include "pipeline/stacks/maker.h"
#include "pipeline/stacks/tabler.h"
#include "pipeline/stacks/vdso.h"

#define IMAGES_MAX       20000u       /* remembered; the least recently used ones are forgotten */
#define IDLE_NS          (60u * (uint64_t)OP_NS_PER_S)
#define UNUSED_NS        (10 * IDLE_NS)
#define TRIMS            10u          /* looks at what is in memory, in that time */
#define UNNAMED_MIN      (64u << 10)  /* bytes; smaller tables without a build-id stay in memory */
#define MAPPED_BYTES_MAX (192u << 20) /* of all tables in memory */
#define STARTS_MAX       16u          /* files that are tried in a turn */
#define STARTS_NS        (20u * OP_NS_PER_MS) /* and how long */
#define DISK_NS          (5u * (uint64_t)OP_NS_PER_S) /* then images do not wait for the disk */
#define RETRY_MIN_NS     ((uint64_t)OP_NS_PER_S)
#define LATER_NS         (60u * (uint64_t)OP_NS_PER_S) /* perhaps others use memory or CPUs now */
#define RETRIES_MAX      8u /* each pause is twice as long as the one before */

/* LOOKED_UP: the cache is looked at. CHECKED: it has no table. */
enum state { NEW, WANTED, LOOKED_UP, CHECKED, MAKING, READY, NONE };

struct image {
	struct op_hlink link; /* by cookie */
	uint64_t cookie;
	enum state state;
	bool asked_header;   /* MAKING: only the header */
	bool is_vdso_region; /* the table is that of the vdso */
	bool has_header;     /* the build-id is known, or that there is none */
	uint32_t nr_tries;
	uint64_t retry_ns; /* NONE: the file may be there later; 0: it is for good */
	uint64_t used_ns; /* the turn in which it was asked about last */
	/* WANTED, MAKING */
	uint64_t nr_waiting; /* questions */
	struct opd_table_source source;
	/* which file; 0 and NULL: unknown */
	struct op_build_id build_id;
	struct opd_file_identity file;
	bool is_owners; /* only its user can have made its contents: the cache may have it */
	char *path;
	/* READY */
	struct op_row_table table;
	void *map;
	size_t map_bytes;
	struct op_guard *guard; /* the file may lose pages; NULL: it is in memory */
};

struct opd_tables {
	struct opd_tables_config config;
	const struct op_dcookie_table *dcookies;
	struct op_htable images;
	struct image *last; /* that was found; NULL: none */
	struct image vdso;  /* one for all processes */
	struct image *making;
	struct opd_maker maker;
	struct opd_disk *disk;
	struct image *on_disk; /* whose table the disk reads or writes; NULL: none */
	uint64_t on_disk_ns;   /* since then */
	struct image *kept;    /* whose table the disk takes next; NULL: none */
	struct opd_disk_job keep_job;
	uint32_t nr_broken; /* mappings of this process when it was looked last */
	uint64_t now_ns, trim_ns; /* of this turn; of the next look at what is in memory */
	size_t nr_wanted;
	struct opd_tables_counts counts;
};

int opd_tables_new(const struct opd_tables_config *config, struct opd_tables **ret_tables)
{
	struct opd_tables *tables = calloc(1, sizeof(*tables));
	struct epoll_event event = { .events = EPOLLIN };
	int err;

	if (!tables)
		return -ENOMEM;
	tables->config = *config;
	if (!config->unused_ns)
		tables->config.unused_ns = UNUSED_NS;
	tables->now_ns = op_now_ns();
	err = opd_maker_init(&tables->maker, config->nursery, config->lookers, config->wait_ns,
			     config->is_recording);
	if (err) {
		free(tables);
		return err;
	}
	err = opd_disk_new(config->cache_dir, config->max_use, &tables->disk);
	if (!err && opd_disk_fd(tables->disk) >= 0 &&
	    epoll_ctl(tables->maker.epoll_fd, EPOLL_CTL_ADD, opd_disk_fd(tables->disk), &event) < 0)
		err = -errno;
	if (err) {
		opd_tables_free(tables);
		return err;
	}
	*ret_tables = tables;
	return 0;
}

void opd_tables_set_images(struct opd_tables *tables, const struct op_dcookie_table *images)
{
	tables->dcookies = images;
}

int opd_tables_fd(const struct opd_tables *tables)
{
	return tables->maker.epoll_fd;
}

bool opd_tables_is_busy(const struct opd_tables *tables)
{
	return tables->making || tables->nr_wanted || tables->on_disk || tables->kept;
}

void opd_tables_get_counts(const struct opd_tables *tables, struct opd_tables_counts *ret_counts)
{
	*ret_counts = tables->counts;
	ret_counts->nr_waiting = tables->nr_wanted;
	ret_counts->nr_ended = tables->maker.nr_ended;
}

/* ---- images ---- */

static bool is_wanted(enum state state)
{
	return state == WANTED || state == LOOKED_UP || state == CHECKED || state == MAKING;
}

static void set_state(struct opd_tables *tables, struct image *image, enum state state)
{
	tables->nr_wanted -= is_wanted(image->state);
	tables->nr_wanted += is_wanted(state);
	image->state = state;
}

static void unmap(struct opd_tables *tables, struct image *image)
{
	if (!image->map)
		return;
	op_guard_free(image->guard);
	image->guard = NULL;
	munmap(image->map, image->map_bytes);
	tables->counts.mapped_bytes -= image->map_bytes;
	tables->counts.nr_mapped--;
	image->map = NULL;
}

static void free_image(struct opd_tables *tables, struct image *image)
{
	unmap(tables, image);
	set_state(tables, image, NONE);
	if (tables->last == image)
		tables->last = NULL;
	free(image->path);
	free(image);
}

/* False: any file with that path would do, which for a recording is not enough. */
static bool is_provable(const struct opd_tables_config *config, const struct op_image_id *id)
{
	return !config->is_recording || id->build_id_bytes || (id->inode && config->recorded_ns);
}

/* Which image it is, and whether it can have a table. */
static void identify(struct opd_tables *tables, struct image *image)
{
	const struct op_dcookie_row *row = op_dcookie_row(tables->dcookies, image->cookie);
	const struct op_image_id *id = &row->id;

	image->is_vdso_region = id->name.kind == OP_IMAGE_ANON && !strcmp(id->name.name, OPD_VDSO_NAME) &&
				(!tables->config.is_recording || tables->config.has_vdso);
	if (id->name.kind != OP_IMAGE_FILE || id->is_kernel || id->is_pseudo || op_dcookie_is_program(id) ||
	    !is_provable(&tables->config, id)) {
		set_state(tables, image, NONE);
		return;
	}
	memcpy(image->build_id.bytes, id->build_id, id->build_id_bytes);
	image->build_id.nr_bytes = id->build_id_bytes;
	image->has_header = id->build_id_bytes;
}

/*
 * Which file the image has now. The file was looked at when it was mapped; what a mapping or a path
 * leads to later counts only when it is the same file. For a recording, and for a file that was not
 * looked at, there is the record alone.
 */
static void note_file(const struct opd_tables *tables, struct image *image)
{
	const struct op_dcookie_row *row = op_dcookie_row(tables->dcookies, image->cookie);
	const struct op_image_file *file = &row->file;
	const char *prefix = tables->config.host_prefix ? tables->config.host_prefix : "";
	const char *path = file->path ? file->path : row->host_path ? row->host_path : row->id.name.name;

	image->file = (struct opd_file_identity){
		.device = row->id.device,
		.inode = row->id.inode,
		.generation = row->id.inode_generation,
		.mtime_ns = row->id.mtime_ns,
		.nr_bytes = row->id.bytes,
	};
	if (file->inode && !tables->config.is_recording)
		image->file = (struct opd_file_identity){
			.device = file->device,
			.inode = file->inode,
			.generation = file->inode_generation,
			.mtime_ns = file->mtime_ns,
			.ctime_ns = file->ctime_ns,
			.nr_bytes = file->bytes,
			.uid = file->uid,
		};
	image->is_owners = file->inode && file->is_owners;
	free(image->path);
	if (asprintf(&image->path, "%s%s", prefix, path) < 0)
		image->path = NULL;
}

static struct image *add(struct opd_tables *tables, uint64_t cookie)
{
	struct image *image = calloc(1, sizeof(*image));

	if (!image)
		return NULL;
	image->cookie = cookie;
	if (op_htable_insert(&tables->images, &image->link, op_hash_u64(cookie)) < 0) {
		free(image);
		return NULL;
	}
	identify(tables, image);
	return image;
}

/* NULL: it was not asked about. */
static struct image *find_image(struct opd_tables *tables, uint64_t cookie)
{
	if (op_likely(tables->last && tables->last->cookie == cookie))
		return tables->last;
	for (struct op_hlink *link = op_htable_first(&tables->images, op_hash_u64(cookie)); link; link = op_htable_next(link)) {
		struct image *image = op_container_of(link, struct image, link);

		if (image->cookie == cookie)
			return image;
	}
	return NULL;
}

static struct image *image_of(struct opd_tables *tables, uint64_t cookie)
{
	struct image *image = find_image(tables, cookie);

	return image ? image : add(tables, cookie);
}

const struct op_row_table *opd_tables_peek(struct opd_tables *tables, uint64_t cookie)
{
	struct image *image = find_image(tables, cookie);

	if (image && image->is_vdso_region)
		image = &tables->vdso;
	return image && image->state == READY ? &image->table : NULL;
}

enum opd_walk_code opd_tables_find(struct opd_tables *tables, uint64_t cookie, const struct opd_table_source *source,
				   const struct op_row_table **ret_table)
{
	struct image *image = image_of(tables, cookie);

	if (!image)
		return OPD_CODE_NO_TABLE;
	tables->last = image;
	image->used_ns = tables->now_ns;
	if (image->is_vdso_region)
		image = &tables->vdso;
	if (op_likely(image->state == READY)) {
		image->used_ns = tables->now_ns;
		*ret_table = &image->table;
		return OPD_CODE_TABLE;
	}
	if (!tables->config.nursery || (image->state == NONE && (!image->retry_ns || tables->now_ns < image->retry_ns)))
		return OPD_CODE_NO_TABLE;
	if (!is_wanted(image->state)) {
		set_state(tables, image, WANTED);
		image->nr_waiting = 0;
		if (image != &tables->vdso)
			note_file(tables, image);
	}
	if (source->pid || !image->nr_waiting)
		image->source = *source;
	image->nr_waiting++;
	return OPD_CODE_PENDING;
}

/* ---- what leaves the memory ---- */

struct oldest {
	struct image *image;
};

static void find_oldest(struct op_hlink *link, void *arg)
{
	struct image *image = op_container_of(link, struct image, link);
	struct oldest *oldest = arg;

	if (image->state == READY && (!oldest->image || image->used_ns < oldest->image->used_ns))
		oldest->image = image;
}

static void make_room(struct opd_tables *tables)
{
	while (tables->counts.mapped_bytes > MAPPED_BYTES_MAX) {
		struct oldest oldest = { 0 };

		op_htable_visit(&tables->images, find_oldest, &oldest);
		if (!oldest.image || tables->counts.nr_mapped < 2)
			return;
		unmap(tables, oldest.image);
		set_state(tables, oldest.image, NEW);
		tables->counts.dropped++;
	}
}

/* A file on the disk was cut, or cannot be read. */
static void forget_broken(struct op_hlink *link, void *arg)
{
	struct image *image = op_container_of(link, struct image, link);
	struct opd_tables *tables = arg;

	if (image->state != READY || !image->guard || !op_guard_is_broken(image->guard))
		return;
	unmap(tables, image);
	set_state(tables, image, NEW);
}

/* What is used comes back by itself, from the page cache. */
static void trim(struct op_hlink *link, void *arg)
{
	struct image *image = op_container_of(link, struct image, link);
	struct opd_tables *tables = arg;

	if (image->state != READY || image == tables->on_disk)
		return;
	if (tables->now_ns - image->used_ns > tables->config.unused_ns) {
		unmap(tables, image);
		set_state(tables, image, NEW);
		tables->counts.dropped++;
	} else if (image->guard) {
		(void)op_sys_release_pages(image->map, image->map_bytes);
	}
}

static void forget_idle(struct op_hlink *link, void *arg)
{
	struct image *image = op_container_of(link, struct image, link);
	struct opd_tables *tables = arg;

	if (image->state == READY || image == tables->on_disk || image == tables->kept || image == tables->making ||
	    tables->now_ns - image->used_ns < IDLE_NS)
		return;
	op_htable_remove(&tables->images, link);
	free_image(tables, image);
}

/* ---- what became of an image ---- */

/* retry_ns: until it is tried again, each time twice as long; 0: it is not. */
static void give_up(struct opd_tables *tables, struct image *image, uint64_t retry_ns)
{
	bool for_good = !retry_ns || tables->config.is_recording || image->nr_tries >= RETRIES_MAX;

	set_state(tables, image, NONE);
	image->retry_ns = for_good ? 0 : tables->now_ns + (retry_ns << image->nr_tries);
	image->nr_tries++;
	if (!image->retry_ns) {
		free(image->path);
		image->path = NULL;
	}
	tables->counts.failed++;
}

/* Anybody can give a file any build-id, but here it says that the file is another one. */
static bool is_of(const struct op_row_table *table, const struct op_build_id *id, uint16_t machine)
{
	const struct op_row_table_header *header = table->header;

	if (machine && le16toh(header->machine) != machine)
		return false;
	return !id->nr_bytes || (header->build_id_bytes == id->nr_bytes && !memcmp(header->build_id, id->bytes, id->nr_bytes));
}

/* 0; -EBADMSG: it is no table; -ESTALE: of another image, or in the cache from an older maker. */
static int map_table(struct opd_tables *tables, struct image *image, int fd, uint64_t nr_bytes, bool is_on_disk)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct op_guard *guard = NULL;
	void *map;
	int err = -EBADMSG;

	if (nr_bytes >= sizeof(struct op_row_table_header) && nr_bytes <= OP_ROW_TABLE_BYTES_MAX)
		err = op_sys_mmap(NULL, nr_bytes, PROT_READ, MAP_SHARED, fd, 0, &map);
	if (err)
		return err;
	if (is_on_disk)
		err = op_guard_new(map, (nr_bytes + page - 1) / page * page, &guard);
	if (!err)
		err = op_row_table_open(&image->table, map, nr_bytes);
	if (!err && (!is_of(&image->table, &image->build_id, tables->config.machine) ||
		     (image->state == LOOKED_UP && image->table.header->flags >> OP_ROW_TABLE_MAKER_SHIFT < OP_ROW_TABLE_MAKER)))
		err = -ESTALE;
	if (err) {
		op_guard_free(guard);
		munmap(map, nr_bytes);
		return err;
	}
	if (is_on_disk)
		(void)op_sys_release_pages(map, nr_bytes); /* a walk needs few of them */
	image->map = map;
	image->map_bytes = nr_bytes;
	image->guard = guard;
	tables->counts.mapped_bytes += nr_bytes;
	tables->counts.nr_mapped++;
	set_state(tables, image, READY);
	return 0;
}

/* ---- the disk ---- */

static bool submit(struct opd_tables *tables, struct image *image, const struct opd_disk_job *job)
{
	if (!opd_disk_submit(tables->disk, job))
		return false;
	tables->on_disk = image;
	tables->on_disk_ns = tables->now_ns;
	return true;
}

/* Gives the disk the table that waits for it. */
static void keep_next(struct opd_tables *tables)
{
	struct image *image = tables->kept;

	if (!image || tables->on_disk)
		return;
	tables->kept = NULL;
	if (!submit(tables, image, &tables->keep_job)) {
		tables->counts.uncached++;
		close(tables->keep_job.table_fd);
	}
}

/*
 * What a user can change is kept apart. The name says the owner of the file that was read, which
 * must be the owner of the file that was mapped. What a file server says, and what has no build-id,
 * is not found again: it is in a file without a name, which takes no memory.
 */
static void keep(struct opd_tables *tables, struct image *image, int table_fd, const struct opd_file_identity *read)
{
	const struct op_row_table_header *header = image->table.header;
	struct opd_disk_job job = { .is_add = true, .users = { read->uid }, .nr_users = 1, .nr_bytes = image->map_bytes };

	if (image->is_owners && opd_file_is_owners(read) && read->uid == image->file.uid)
		job.id.nr_bytes = header->build_id_bytes;
	memcpy(job.id.bytes, header->build_id, sizeof(job.id.bytes));
	if (!tables->config.cache_dir || (!job.id.nr_bytes && image->map_bytes < UNNAMED_MIN))
		return;
	job.table_fd = tables->kept ? -EBUSY : op_sys_fcntl(table_fd, F_DUPFD_CLOEXEC, 0);
	if (job.table_fd < 0) {
		tables->counts.uncached++;
		return;
	}
	tables->kept = image;
	tables->keep_job = job;
	keep_next(tables);
}

/* The cache has tables of files that are gone, too. False: the disk is not asked. */
static bool look_up(struct opd_tables *tables, struct image *image)
{
	struct opd_disk_job job = { .id = image->build_id, .nr_users = 1 };

	if (image->is_owners && image->file.uid)
		job.users[job.nr_users++] = image->file.uid;
	if (!job.id.nr_bytes || !submit(tables, image, &job))
		return false;
	set_state(tables, image, LOOKED_UP);
	return true;
}

/* The table takes the place of the one in memory, if that is there. */
static void take_from_disk(struct opd_tables *tables, struct image *image, const struct opd_disk_job *job)
{
	bool is_better = job->is_add ? image->state == READY : image->state == LOOKED_UP;

	if (is_better && job->fd >= 0) {
		unmap(tables, image);
		if (map_table(tables, image, job->fd, job->nr_bytes, true) < 0)
			set_state(tables, image, job->is_add ? NEW : CHECKED);
		else if (!job->is_add)
			tables->counts.from_cache++;
	} else if (is_better && !job->is_add) {
		set_state(tables, image, CHECKED);
	} else if (job->is_add && job->fd < 0) {
		tables->counts.uncached++;
	}
	if (job->fd >= 0)
		close(job->fd);
}

/* True: an image got its table. A disk that takes long is not waited for. */
static bool ask_disk(struct opd_tables *tables)
{
	struct image *image = tables->on_disk;
	struct opd_disk_job job;

	if (image && opd_disk_take(tables->disk, &job)) {
		tables->on_disk = NULL;
		take_from_disk(tables, image, &job);
		keep_next(tables);
		return !job.is_add && image->state == READY;
	}
	if (image && image->state == LOOKED_UP && tables->now_ns - tables->on_disk_ns > DISK_NS)
		set_state(tables, image, CHECKED);
	return false;
}

/* ---- making ---- */

static void report(const char *program, const struct image *image, const char *what)
{
	static struct op_rate rate;
	uint64_t suppressed;

	if (op_rate_allows(&rate, op_now_ns(), OP_LOG_INTERVAL_NS, &suppressed))
		op_log(OP_LOG_WARNING, "%s %s: stacks of samples end in %s", program, what, image->path ? image->path : "the vdso");
}

static int take_table(struct opd_tables *tables, struct image *image, int fd, const struct opd_file_identity *read)
{
	struct stat st;
	int err = op_sys_fstat(fd, &st);

	if (!err)
		err = map_table(tables, image, fd, (uint64_t)st.st_size, false);
	if (err)
		return err;
	tables->counts.made++;
	keep(tables, image, fd, read);
	return 0;
}

/* Then the cache can be asked. */
static int take_header(struct opd_tables *tables, struct image *image, int fd)
{
	struct op_row_table_header header;

	if (op_sys_pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
	    memcmp(header.magic, OP_ROW_TABLE_MAGIC, OP_ROW_TABLE_MAGIC_BYTES) != 0 ||
	    header.build_id_bytes > OP_BUILD_ID_BYTES_MAX)
		return -EBADMSG;
	memcpy(image->build_id.bytes, header.build_id, sizeof(image->build_id.bytes));
	image->build_id.nr_bytes = header.build_id_bytes;
	image->has_header = true;
	set_state(tables, image, WANTED);
	return 0;
}

static void finish(struct opd_tables *tables, struct image *image, enum opd_make_result result, int fd,
		   const struct opd_file_identity *read)
{
	int err = 0;

	if (result == OPD_MAKE_MADE)
		err = image->asked_header ? take_header(tables, image, fd) : take_table(tables, image, fd, read);
	if (err == -EBADMSG)
		result = OPD_MAKE_CRASHED;
	switch (result) {
	case OPD_MAKE_MADE:
		if (err)
			give_up(tables, image, RETRY_MIN_NS);
		break;
	case OPD_MAKE_CHANGED:
		give_up(tables, image, RETRY_MIN_NS);
		break;
	case OPD_MAKE_FAILED:
		give_up(tables, image, 0);
		break;
	case OPD_MAKE_NO_SANDBOX:
		report("opd-tables", image, "may not set its limits, or its filter of system calls (seccomp)");
		give_up(tables, image, LATER_NS);
		break;
	case OPD_MAKE_CRASHED:
		tables->counts.crashed++;
		report("opd-tables", image, "crashed, or wrote what is no table");
		give_up(tables, image, 0);
		break;
	case OPD_MAKE_KILLED:
		tables->counts.crashed++;
		report("opd-tables", image, "was killed");
		give_up(tables, image, LATER_NS);
		break;
	case OPD_MAKE_HELPER_ENDED:
		tables->counts.crashed++;
		report("the helper of opd-tables", image, "has ended");
		give_up(tables, image, RETRY_MIN_NS);
		break;
	case OPD_MAKE_TIMED_OUT:
		tables->counts.timed_out++;
		report("opd-tables", image, "took too long");
		give_up(tables, image, 0);
		break;
	case OPD_MAKE_NO_ANSWER:
		tables->counts.timed_out++;
		report("opd-tables", image, "does not answer");
		give_up(tables, image, LATER_NS);
		break;
	case OPD_MAKE_NOT_STARTED:
		report(opd_tabler_program(), image, "cannot be executed: 'make install', or " OPD_TABLES_ENV "= names another");
		give_up(tables, image, RETRY_MIN_NS);
		break;
	}
}

static bool take(struct opd_tables *tables)
{
	struct image *image = tables->making;
	struct opd_file_identity read = { 0 };
	enum opd_make_result result;
	int fd;

	if (!image || opd_maker_take(&tables->maker, &result, &fd, &read) == -EAGAIN)
		return false;
	tables->making = NULL;
	finish(tables, image, result, fd, &read);
	if (fd >= 0)
		close(fd);
	return true;
}

static int start_vdso(struct opd_tables *tables)
{
	int image_fd = opd_vdso_copy(), err;

	if (image_fd < 0)
		return image_fd;
	err = opd_maker_start_memory(&tables->maker, image_fd);
	close(image_fd);
	return err;
}

/* A kernel before 6.11 does not tell the build-id, by which the cache knows the table. */
static bool needs_header(const struct opd_tables *tables, const struct image *image)
{
	return !image->has_header && image->is_owners && opd_disk_fd(tables->disk) >= 0;
}

/* Looks into the cache first, then begins to make the table. */
static int start(struct opd_tables *tables, struct image *image)
{
	bool is_recording = tables->config.is_recording, is_known = is_recording || image->file.inode;
	const struct opd_table_source none = { 0 }, *source = is_recording ? &none : &image->source;
	const struct opd_pass_wanted wanted = {
		.about = { .pid = source->pid, .user_ns = source->user_ns },
		.start = source->start,
		.end = source->end,
		.path = image->path,
		.identity = image->file,
		.max_mtime_ns = is_recording && image->file.inode ? tables->config.recorded_ns : 0,
	};
	int err = 0;

	if (image == &tables->vdso)
		err = start_vdso(tables);
	if (image != &tables->vdso && image->state != CHECKED && look_up(tables, image))
		return 0;
	if (tables->making)
		return 0;
	if (image != &tables->vdso) {
		image->asked_header = needs_header(tables, image);
		err = is_known ? opd_maker_start(&tables->maker, &wanted, image->asked_header) : -ESTALE;
	}
	if (!err) {
		set_state(tables, image, MAKING);
		tables->making = image;
	}
	return err;
}

struct search {
	struct image *best;
	bool is_for_cache;
};

static void find_wanted(struct op_hlink *link, void *arg)
{
	struct image *image = op_container_of(link, struct image, link);
	struct search *search = arg;

	if (image->state != WANTED && image->state != CHECKED)
		return;
	if (search->is_for_cache && (image->state != WANTED || !image->build_id.nr_bytes))
		return;
	if (!search->best || image->state > search->best->state ||
	    (image->state == search->best->state && image->nr_waiting > search->best->nr_waiting))
		search->best = image;
}

/* While a table is made, the cache can have those of others. */
static struct image *next_wanted(struct opd_tables *tables, bool can_make)
{
	struct search search = { .is_for_cache = !can_make };

	if (!can_make && (tables->on_disk || opd_disk_fd(tables->disk) < 0))
		return NULL;
	if (can_make && tables->vdso.state == WANTED)
		return &tables->vdso;
	if (tables->nr_wanted)
		op_htable_visit(&tables->images, find_wanted, &search);
	return search.best;
}

/* The disk is asked for one image at a time, and is not waited for when it takes long. */
static bool may_start(const struct opd_tables *tables)
{
	return !tables->on_disk || tables->now_ns - tables->on_disk_ns > DISK_NS;
}

/* True: some image is not pending any more. */
static bool start_next(struct opd_tables *tables)
{
	bool is_known = false;

	for (size_t i = 0; i < STARTS_MAX && op_now_ns() - tables->now_ns < STARTS_NS && may_start(tables); i++) {
		bool can_make = opd_maker_can(&tables->maker);
		struct image *image = next_wanted(tables, can_make);
		int err;

		if (!image) {
			if (can_make && !tables->on_disk)
				opd_maker_rest(&tables->maker);
			break;
		}
		err = start(tables, image);
		if (err == -EAGAIN)
			break;
		if (err)
			give_up(tables, image, err == -ENOEXEC ? 0 : RETRY_MIN_NS);
		is_known |= err < 0;
	}
	make_room(tables);
	return is_known;
}

bool opd_tables_turn(struct opd_tables *tables)
{
	bool is_known;

	tables->now_ns = op_now_ns();
	if (op_guard_nr_broken() != tables->nr_broken) {
		tables->nr_broken = op_guard_nr_broken();
		op_htable_visit(&tables->images, forget_broken, tables);
	}
	if (tables->now_ns >= tables->trim_ns) {
		tables->trim_ns = tables->now_ns + tables->config.unused_ns / TRIMS;
		op_htable_visit(&tables->images, trim, tables);
	}
	is_known = ask_disk(tables);
	is_known |= take(tables);
	if (tables->images.nr_entries > IMAGES_MAX)
		op_htable_visit(&tables->images, forget_idle, tables);
	return start_next(tables) || is_known;
}

static void free_one(struct op_hlink *link, void *arg)
{
	free_image(arg, op_container_of(link, struct image, link));
}

void opd_tables_free(struct opd_tables *tables)
{
	if (!tables)
		return;
	opd_maker_free(&tables->maker);
	opd_disk_free(tables->disk);
	if (tables->kept)
		close(tables->keep_job.table_fd);
	op_htable_visit(&tables->images, free_one, tables);
	op_htable_free(&tables->images);
	unmap(tables, &tables->vdso);
	free(tables);
}
