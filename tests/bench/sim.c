/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/capture/memory_source.h"
#include "pipeline/count/file_sinks.h"
#include "tests/bench/sim.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "libop/base/sys.h"
#include "libop/odb/read.h"
#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "pipeline/resolve/sideband.h"

#define MAX_IMAGES	 20000
#define MAX_CLOSED_FILES 16384
#define OPEN_AT_ONCE 16

static int open_rings(struct sim *sim, const struct sim_config *config, uint32_t index)
{
	struct sim_cpu *cpu = &sim->cpus[index];
	/*
	 * A writer that rests most of the time fences for itself: the reader would have to
	 * interrupt it for each swap.
	 */
	int err = op_mring_pair_create(config->ring_bytes, OP_MRING_FENCE | OP_MRING_OWN_WRITER, &cpu->pair);

	if (!err)
		err = op_mring_create(config->sideband_bytes, 0, OP_MRING_OWN_WRITER, &cpu->sideband);
	if (!err)
		err = op_mring_pair_writer_open(&cpu->pair, &cpu->writer);
	if (!err)
		err = op_mring_writer_open(&cpu->sideband, &cpu->sideband_writer);
	if (!err)
		load_set_sideband(sim->load, index, &cpu->sideband_writer);
	return err;
}

static int open_capture(struct sim *sim)
{
	static const uint64_t id = LOAD_EVENT_ID;
	struct opd_memory_cpu *cpus = calloc(sim->nr_cpus, sizeof(*cpus));
	int err;

	if (!cpus)
		return -ENOMEM;
	for (uint32_t i = 0; i < sim->nr_cpus; i++)
		cpus[i] = (struct opd_memory_cpu){
			.cpu = i, .pair = &sim->cpus[i].pair, .sideband = &sim->cpus[i].sideband, .ids = &id
		};
	err = opd_capture_open_memory(&sim->pipeline.capture, &sim->event, 1, cpus, sim->nr_cpus);
	free(cpus);
	return err;
}

static int open_session(struct sim *sim)
{
	const char *base = getenv("TMPDIR");

	snprintf(sim->dir, sizeof(sim->dir), "%s/opd-sim.XXXXXX", base ? base : P_tmpdir);
	if (!mkdtemp(sim->dir)) {
		sim->dir[0] = '\0';
		return -errno;
	}
	sim->dir_fd = op_session_open(sim->dir);
	return sim->dir_fd < 0 ? sim->dir_fd : 0;
}

static int open_pipeline(struct sim *sim, const struct sim_config *config)
{
	struct opd_resolver *resolver = &sim->pipeline.resolver;
	struct op_dcookie_table *table = op_dcookie_table_new();
	int err;

	if (!table)
		return -ENOMEM;
	err = opd_resolver_init(resolver, table, MAX_IMAGES, NULL);
	if (err) {
		op_dcookie_table_free(table);
		resolver->table = NULL;
		return err;
	}
	resolver->kernel.text_start = LOAD_KERNEL_START;
	resolver->kernel.text_end = LOAD_KERNEL_END;
	sim->pipeline.count = (struct opd_count){
		.session_fd = sim->dir_fd,
		.table = resolver->table,
		.events = &sim->event,
		.separate_lib = true,
		.separate_kernel = true,
		.no_process_cookie = resolver->pseudo[OPD_PSEUDO_NO_PROCESS],
		.max_open = config->max_open_files,
		.max_closed = MAX_CLOSED_FILES,
	};
	opd_file_sinks_open(&sim->pipeline.count);
	return 0;
}

int sim_open(const struct sim_config *config, struct sim *ret_sim)
{
	int err;

	*ret_sim = (struct sim){ .nr_cpus = config->load.nr_cpus, .dir_fd = -1, .keep_session = config->keep_session };
	load_event(&ret_sim->event);
	ret_sim->cpus = calloc(ret_sim->nr_cpus, sizeof(*ret_sim->cpus));
	err = ret_sim->cpus ? load_new(&config->load, &ret_sim->load) : -ENOMEM;
	for (uint32_t i = 0; !err && i < ret_sim->nr_cpus; i++)
		err = open_rings(ret_sim, config, i);
	if (!err)
		err = open_capture(ret_sim);
	if (!err)
		err = open_session(ret_sim);
	if (!err)
		err = open_pipeline(ret_sim, config);
	if (err)
		sim_close(ret_sim);
	return err;
}

static int remove_entry(const char *path, const struct stat *st OP_UNUSED, int type OP_UNUSED, struct FTW *ftw OP_UNUSED)
{
	return remove(path);
}

void sim_close(struct sim *sim)
{
	opd_count_close_files(&sim->pipeline.count);
	op_dcookie_table_free(sim->pipeline.resolver.table);
	opd_resolver_free(&sim->pipeline.resolver);
	opd_capture_close(&sim->pipeline.capture);
	for (uint32_t i = 0; sim->cpus && i < sim->nr_cpus; i++) {
		op_mring_pair_destroy(&sim->cpus[i].pair);
		op_mring_destroy(&sim->cpus[i].sideband);
	}
	free(sim->cpus);
	load_free(sim->load);
	if (sim->dir_fd >= 0)
		close(sim->dir_fd);
	if (sim->dir[0] && !sim->keep_session)
		nftw(sim->dir, remove_entry, OPEN_AT_ONCE, FTW_DEPTH | FTW_PHYS);
	*sim = (struct sim){ .dir_fd = -1 };
}

size_t sim_room(struct sim *sim, uint32_t cpu)
{
	struct op_mring_pair_writer *writer = &sim->cpus[cpu].writer;
	const struct op_mring_writer *ring = op_mring_pair_enter(writer);
	/* A, pairs with D in op_ring_end. */
	size_t room = ring->data_bytes - (size_t)(ring->head - op_load_acquire(&ring->control->data_tail));

	op_mring_pair_leave(writer);
	return room;
}

int sim_visit(struct sim *sim, uint32_t cpu_index, uint64_t now_ns)
{
	struct opd_pipeline *pipeline = &sim->pipeline;
	struct opd_cpu *cpu = &pipeline->capture.cpus[cpu_index];
	struct op_ring *ring;
	struct opd_sideband_loss loss;
	int err;

	if (!cpu->source->pending(cpu))
		return 0;
	err = cpu->source->swap(cpu);
	if (err)
		return err;
	ring = cpu->source->read_ring(cpu);
	pipeline->resolver.now_ns = pipeline->count.now_ns = now_ns;
	err = opd_sideband_drain(&pipeline->capture, &pipeline->resolver, now_ns, &loss);
	if (!ring)
		return -EAGAIN;
	opd_drain_ring(pipeline, cpu, ring);
	return err;
}

int sim_quit(struct opd_sync *sync)
{
	struct opd_job *job = calloc(1, sizeof(*job));
	int err;

	if (!job)
		return -ENOMEM;
	job->kind = OPD_JOB_QUIT;
	opd_job_queue_submit(&sync->queue, job);
	opd_sync_stop(sync);
	/* nobody takes it from the list of what is done any more */
	err = job->error;
	free(job);
	return err;
}

uint64_t sim_dropped(const struct sim *sim)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < sim->nr_cpus; i++)
		sum += op_mring_pair_dropped(&sim->cpus[i].pair);
	return sum;
}

/* ---- checking ---- */

struct checking {
	const struct sim *sim;
	struct sim_check check;
};

static char *path_of(const struct sim *sim, const struct load_file *file)
{
	struct op_sample_name name = {
		.app = { .kind = OP_IMAGE_FILE, .name = file->program },
		.image = { .kind = OP_IMAGE_FILE, .name = file->image },
		.event = sim->event.name,
		.count = sim->event.count,
		.tgid = OP_CLASS_ALL,
		.tid = OP_CLASS_ALL,
		.cpu = OP_CLASS_ALL,
	};
	struct op_text path = { 0 };

	op_text_add(&path, OP_SESSION_CURRENT "/");
	op_mangle(&name, &path);
	return op_text_steal(&path);
}

static int compare_keys(const void *a, const void *b)
{
	const struct op_odb_node *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

/*
 * Keys of a load file grow with its places: both are gone through side by side, and whoever is
 * behind has too much.
 */
static void compare(struct sim_check *check, const struct load_file *file, struct op_odb_samples *samples)
{
	uint32_t n = 0;

	qsort(samples->nodes, samples->nr_nodes, sizeof(*samples->nodes), compare_keys);
	for (uint32_t place = 0; place < LOAD_PLACES; place++) {
		uint64_t key = load_key(file, place);
		uint64_t found = 0;

		for (; n < samples->nr_nodes && samples->nodes[n].key <= key; n++) {
			if (samples->nodes[n].key == key) {
				found += samples->nodes[n].value;
				continue;
			}
			check->wrong_places++;
			check->wrong_samples += samples->nodes[n].value;
		}
		check->nr_places += found && found == file->counts[place];
		check->nr_samples += op_min_u64(found, file->counts[place]);
		check->wrong_places += found != file->counts[place];
		check->wrong_samples += op_max_u64(found, file->counts[place]) - op_min_u64(found, file->counts[place]);
	}
	for (; n < samples->nr_nodes; n++) {
		check->wrong_places++;
		check->wrong_samples += samples->nodes[n].value;
	}
}

static int check_file(const struct load_file *file, void *arg)
{
	struct checking *checking = arg;
	char *path = path_of(checking->sim, file);
	struct op_odb_samples samples;
	int err = path ? op_odb_read(checking->sim->dir_fd, path, &samples, NULL) : -ENOMEM;

	if (!err) {
		compare(&checking->check, file, &samples);
		checking->check.nr_files++;
		op_odb_samples_free(&samples);
	} else if (path) {
		fprintf(stderr, "%s: %s\n", path, strerror(-err));
	}
	free(path);
	return err;
}

int sim_check(const struct sim *sim, struct sim_check *ret_check)
{
	struct checking checking = { .sim = sim };
	int err = load_visit(sim->load, check_file, &checking);

	if (!err)
		*ret_check = checking.check;
	return err;
}
