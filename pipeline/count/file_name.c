/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/count/file_name.h"

#include <errno.h>

#include "libop/odb/mangle.h"
#include "libop/session/memory_view.h"
#include "libop/session/layout.h"

int opd_file_path(const struct opd_count *count, const struct opd_file_key *key, char **ret_path)
{
	const struct op_event *event = &count->events[key->event];
	struct op_text path = { 0 };
	struct op_sample_name name = {
		.app = op_dcookie_name(op_dcookie_row(count->table, key->app_cookie)),
		.image = op_dcookie_name(op_dcookie_row(count->table, key->image_cookie)),
		.has_callee = opd_is_of_calls(key),
		.event = event->name,
		.count = event->count,
		.unit_mask = event->unit_mask,
		.tgid = key->tgid,
		.tid = key->tid,
		.cpu = key->cpu,
	};

	if (opd_is_of_calls(key))
		name.callee = op_dcookie_name(op_dcookie_row(count->table, key->callee_cookie));
	op_text_add(&path, OP_SESSION_CURRENT "/");
	if (opd_is_of_memory(count, key->event))
		op_text_add(&path, OP_MEM_DIR "/");
	if (key->cgroup_slot != OPD_CGROUP_NONE)
		op_mangle_cgroup(opd_cgroups_path(count->cgroups, key->cgroup_slot), &path);
	op_mangle(&name, &path);
	*ret_path = op_text_steal(&path);
	return *ret_path ? 0 : -ENOMEM;
}

int opd_file_plain_path(const struct opd_count *count, const struct opd_file *file, uint64_t image_cookie, char **ret_path)
{
	struct opd_file_key key = file->key;

	key.image_cookie = image_cookie;
	key.callee_cookie = OP_DCOOKIE_NONE;
	return opd_file_path(count, &key, ret_path);
}

static uint64_t start_of(const struct op_dcookie_row *image)
{
	return image->id.name.kind == OP_IMAGE_ANON ? image->id.name.start : 0;
}

void opd_file_header(const struct opd_count *count, const struct opd_file *file, struct op_odb_header *ret_header)
{
	const struct op_dcookie_row *image = op_dcookie_row(count->table, file->key.image_cookie);
	const struct op_event *event = &count->events[file->key.event];

	*ret_header = (struct op_odb_header){
		.version = OP_ODB_VERSION,
		.cpu_type = event->role == OP_EVENT_DERIVED ? event->cpu_type : OP_CPU_TYPE_TIMER,
		.ctr_event = event->number,
		.ctr_um = event->unit_mask,
		.ctr_count = (uint32_t)op_min_u64(event->count, UINT32_MAX),
		.is_kernel = image->id.is_kernel,
		.cpu_speed_mhz = count->cpu_speed_mhz,
		.mtime = op_dcookie_mtime(image),
		.anon_start = start_of(image),
	};
	if (opd_is_of_calls(&file->key)) {
		const struct op_dcookie_row *callee = op_dcookie_row(count->table, file->key.callee_cookie);

		ret_header->cg_to_is_kernel = callee->id.is_kernel;
		ret_header->cg_to_anon_start = start_of(callee);
	}
	memcpy(ret_header->magic, OP_ODB_MAGIC, sizeof(ret_header->magic));
}
