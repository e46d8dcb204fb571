/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/resolve/program.h"

#include <stdio.h>
#include <string.h>

#include "pipeline/files/owner_ask.h"

#define KTHREADD_PID 2u /* the parent of all other kernel threads (kernel/kthread.c) */
#define KTHREADD     "kthreadd"
#define SEPARATORS   "-_."
#define DIGITS       "0123456789"

void opd_kernel_thread_name(const char *comm, char ret_name[OPD_KERNEL_THREAD_BYTES])
{
	size_t length = strcspn(comm, "/:");

	if (!comm[length]) {
		while (length && strchr(DIGITS, comm[length - 1]))
			length--;
		while (length && comm[length] && strchr(SEPARATORS, comm[length - 1]))
			length--;
	}
	if (!length)
		length = strlen(comm);
	snprintf(ret_name, OPD_KERNEL_THREAD_BYTES, "[%.*s]", (int)length, comm);
}

/*
 * The kernel says which processes are its threads. Of another machine only records are known: a
 * child of kthreadd, and both have mapped nothing. A helper that the kernel runs in user space has
 * mappings.
 */
static bool is_kernel_thread(const struct opd_processes *processes, const struct opd_process *process, const struct opd_mm *mm,
			     bool is_foreign)
{
	const struct opd_process *parent;

	if (!is_foreign)
		return mm->is_kernel_thread;
	if (opd_mapset_count(mm->maps) || (process->parent_pid != KTHREADD_PID && process->pid != KTHREADD_PID))
		return false;
	parent = opd_process_find(processes, KTHREADD_PID);
	return parent && !opd_mapset_count(parent->mm->maps) && parent->name && !strcmp(parent->name->comm, KTHREADD);
}

/* Not is_kernel: MaxImages= limits these rows. Imported records may have any name. */
static uint64_t kernel_thread_cookie(struct op_dcookie_table *table, const char *comm)
{
	char text[OPD_KERNEL_THREAD_BYTES];
	struct op_image_id id = { .name = { .kind = OP_IMAGE_KERNEL, .name = text } };

	opd_kernel_thread_name(comm, text);
	return op_dcookie_get(table, &id);
}

static void ask_user(const struct opd_processes *processes, const struct opd_process *process, struct opd_mm *mm)
{
	const struct opd_jit_process asked = {
		.pid = process->pid,
		.parent_pid = process->parent_pid,
		.began_ns = mm->from_ns,
		.has_ended = process->exit_ns != UINT64_MAX,
		.about = opd_mount_view_about(mm->mount_view, process->pid),
	};
	struct opd_jit_owner owner;

	mm->user_asked = true;
	if (asked.has_ended && mm->knows_user)
		return;
	opd_jit_owner_ask(&owner, processes->mount_views.lookers, &asked);
	if (owner.is_known) {
		mm->knows_user = true;
		mm->user = owner.uid;
	}
	opd_jit_owner_close(&owner);
}

static uint32_t user_of(const struct opd_processes *processes, const struct opd_process *process, struct opd_mm *mm)
{
	if (!processes->by_user)
		return OP_USER_NONE;
	if (!mm->user_asked)
		ask_user(processes, process, mm);
	return mm->knows_user ? mm->user : OP_USER_NONE;
}

/* Without room in the table the application has the samples. */
static uint64_t program_cookie(struct op_dcookie_table *table, uint64_t app_cookie, const char *comm, uint32_t user)
{
	const struct op_image_id *app = &op_dcookie_row(table, app_cookie)->id;
	struct op_image_id id = { .name = app->name, .program_of = app_cookie, .user = user };
	uint64_t cookie;

	if (app->is_pseudo || app->name.kind != OP_IMAGE_FILE || (!*comm && user == OP_USER_NONE))
		return app_cookie;
	snprintf(id.comm, sizeof(id.comm), "%s", comm);
	cookie = op_dcookie_get(table, &id);
	return cookie == OP_DCOOKIE_NONE || cookie == op_dcookie_overflow(table) ? app_cookie : cookie;
}

/* The last answer stays with the name. */
static uint64_t look_up(const struct opd_processes *processes, struct op_dcookie_table *table, struct opd_name *name,
			uint64_t app_cookie, uint32_t user)
{
	if (name->program_cookie != OP_DCOOKIE_NONE && name->app_cookie == app_cookie && name->user == user)
		return name->program_cookie;
	name->app_cookie = app_cookie;
	name->user = user;
	name->program_cookie = app_cookie == OP_DCOOKIE_NONE
				       ? kernel_thread_cookie(table, name->comm)
				       : program_cookie(table, app_cookie, processes->by_name ? name->comm : "", user);
	return name->program_cookie;
}

struct opd_program opd_program_at(const struct opd_processes *processes, struct op_dcookie_table *table,
				  const struct opd_process *process, struct opd_mm *mm, uint64_t app_cookie, uint64_t time_ns,
				  bool is_foreign)
{
	struct opd_name *name = opd_name_at(process->name, time_ns);
	struct opd_program program = { .cookie = app_cookie, .from_ns = mm->from_ns, .is_newest = mm == process->mm };

	if (!name)
		return program;
	program.is_newest &= name == process->name;
	program.from_ns = op_max_u64(program.from_ns, name->from_ns);
	if (app_cookie == OP_DCOOKIE_NONE) {
		if (is_kernel_thread(processes, process, mm, is_foreign))
			program.cookie = look_up(processes, table, name, OP_DCOOKIE_NONE, OP_USER_NONE);
	} else if (op_unlikely(processes->by_name || processes->by_user)) {
		program.cookie = look_up(processes, table, name, app_cookie, user_of(processes, process, mm));
	}
	return program;
}
