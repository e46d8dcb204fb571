/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/stacks/idle.h"

#include <string.h>

#include "libop/session/wait_states.h"

/* Names of the C library, without leading underscores, "GI_" and a version. */
static const char *const for_work[] = {
	"epoll_wait",   "epoll_pwait", "epoll_pwait2", "poll",		"ppoll",	  "select",
	"pselect",      "pselect64",   "accept",       "accept4",	"sigwait",	  "sigwaitinfo",
	"sigtimedwait", "sigsuspend",  "pause",	       "io_getevents",	"io_pgetevents",  "pthread_cond_wait",
	"pthread_cond_timedwait", "pthread_cond_clockwait", "cnd_wait", "cnd_timedwait",
};

static const char *const sleeps[] = {
	"nanosleep", "clock_nanosleep", "sleep", "usleep", "thrd_sleep",
};

/* Names of the kernel, up to a dot. They tell what a library without names was asked for. */
static const struct {
	const char *kernel, *name;
} by_kernel[] = {
	{ "do_epoll_wait", "epoll_wait" }, { "ep_poll", "epoll_wait" },	     { "do_sys_poll", "poll" },
	{ "do_poll", "poll" },		   { "do_select", "select" },	     { "inet_csk_accept", "accept" },
	{ "do_sigtimedwait", "sigwait" },  { "sigsuspend", "sigsuspend" },   { "read_events", "io_getevents" },
	{ "n_tty_read", "read from a terminal" },
};

static const char *find(const char *const *names, size_t nr, const char *name, size_t length)
{
	for (size_t i = 0; i < nr; i++)
		if (strlen(names[i]) == length && !strncmp(names[i], name, length))
			return names[i];
	return NULL;
}

/* "__GI___clock_nanosleep@@GLIBC_2.17" is clock_nanosleep. */
static const char *bare_name(const char *name, size_t *ret_length)
{
	name += strspn(name, "_");
	if (!strncmp(name, "GI_", 3))
		name += 3;
	if (!strncmp(name, "libc_", 5))
		name += 5;
	name += strspn(name, "_");
	*ret_length = strcspn(name, "@.");
	return name;
}

bool opr_is_c_library(const char *image)
{
	static const char *const names[] = { "libc.so", "libc-", "libpthread", "ld-linux", "ld-musl",
					    "libc.musl", "[vdso", "librt" };
	const char *slash = strrchr(image, '/'), *base = slash ? slash + 1 : image;

	for (size_t i = 0; i < op_array_size(names); i++)
		if (!strncmp(base, names[i], strlen(names[i])))
			return true;
	return false;
}

static bool is_user(const struct opr_call_node *node)
{
	enum opr_call_kind kind = node->function ? node->function->kind : OPR_CALL_GROUP;

	return kind == OPR_CALL_USER || kind == OPR_CALL_INLINED || kind == OPR_CALL_RUNTIME;
}

/* The start of a program or thread: nothing above it is the program's own. */
static bool is_start(const struct opr_call_node *node)
{
	static const char *const starts[] = { "start", "start_main", "start_call_main", "start_thread", "clone", "clone3" };
	const char *name;
	size_t length;

	if (!is_user(node))
		return true;
	name = bare_name(node->function->name, &length);
	return opr_is_c_library(node->function->image) || find(starts, op_array_size(starts), name, length);
}

static bool is_blocked(const struct opr_call_node *node)
{
	static const char blocked[] = "[blocked]";

	while (node->function && node->function->kind != OPR_CALL_STATE)
		node = node->parent;
	return node->function && !strcmp(node->function->name, blocked);
}

const char *opr_idle_blocked(const struct opr_call_node *node)
{
	const char *found = NULL, *sleep = NULL;

	for (; node->function && node->function->kind == OPR_CALL_KERNEL; node = node->parent)
		for (size_t i = 0; i < op_array_size(by_kernel) && !found; i++) {
			size_t length = strcspn(node->function->name, ".");

			found = find(&by_kernel[i].kernel, 1, node->function->name, length) ? by_kernel[i].name : NULL;
		}
	for (bool is_first = true; is_user(node) && !found; node = node->parent, is_first = false) {
		size_t length;
		const char *name = bare_name(node->function->name, &length);
		const char *slept = find(sleeps, op_array_size(sleeps), name, length);

		/* In the library, and the function itself in a program that has it inside. */
		if (!is_first && !slept && !sleep && !opr_is_c_library(node->function->image))
			break;
		if (slept)
			sleep = slept;
		else if (sleep && !opr_is_c_library(node->function->image))
			return is_start(node->parent) ? sleep : NULL;
		else
			found = find(for_work, op_array_size(for_work), name, length);
	}
	return found;
}

const char *opr_idle_wait(const struct opr_call_node *node)
{
	return is_blocked(node) ? opr_idle_blocked(node) : NULL;
}
