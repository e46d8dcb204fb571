/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Setup options: each function applies one of them. */
#include <errno.h>
#include <limits.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/parse.h"
#include "libop/events/event_list.h"
#include "libop/events/tracepoint.h"
#include "libop/perf/chain.h"
#include "tools/common/log.h"
#include "tools/events/user_events.h"
#include "tools/opcontrol/opcontrol.h"

#define EVENT_DEFAULT "default"

/* "event NAME: ..." of libop begins with the option here. Frees `why`. 1 after a message. */
static int refuse_event(int err, char *why)
{
	static const char title[] = "event ";

	if (!err || !why || strncmp(why, title, strlen(title)) != 0)
		return opr_error_why(err, why) ? 1 : 0;
	opr_error(err, "--event=%s", why + strlen(title));
	free(why);
	return 1;
}

/* Derived events of IBS come from the same samples, so they must agree about them. */
static int check_together(const struct op_setup *setup)
{
	struct op_event_list list;
	char *why = NULL;
	int err = op_event_list_make(setup->events, setup->nr_events, &list, &why);

	if (!err)
		op_event_list_free(&list);
	return refuse_event(err, why);
}

static int add_event(struct op_setup *setup, const char *spec)
{
	struct op_event event;
	char *why = NULL;
	int err;

	if (setup->nr_events == OP_EVENTS_MAX)
		return opr_error(1, "--event=%s: no more than %d events", spec, OP_EVENTS_MAX);
	err = opr_event_parse(spec, &event, &why);
	if (!err)
		err = op_event_check(&event, &why);
	if (refuse_event(err, why) || opr_event_check_new(setup->events, setup->nr_events, &event, "--event=", spec))
		return 1;
	setup->events[setup->nr_events++] = event;
	return check_together(setup);
}

static bool has_event(const struct op_setup *setup, const struct op_event *event)
{
	for (size_t i = 0; i < setup->nr_events; i++)
		if (!strcmp(setup->events[i].name, event->name) && setup->events[i].count == event->count &&
		    setup->events[i].unit_mask == event->unit_mask)
			return true;
	return false;
}

/* --event=+EVENT: the events of the setup stay. The default one becomes an event by name. */
static int add_to_events(struct op_setup *setup, const char *spec)
{
	struct op_event event;
	char *why = NULL;
	bool has_pmu;
	int err;

	op_event_default(&event, &has_pmu);
	if (!setup->nr_events || !strcmp(spec, EVENT_DEFAULT)) {
		if (setup->nr_events == OP_EVENTS_MAX)
			return opr_error(1, "--event=+%s: no more than %d events", spec, OP_EVENTS_MAX);
		if (!has_event(setup, &event))
			setup->events[setup->nr_events++] = event;
	}
	if (!strcmp(spec, EVENT_DEFAULT))
		return check_together(setup);
	err = opr_event_parse(spec, &event, &why);
	if (refuse_event(err, why))
		return 1;
	if (!has_event(setup, &event))
		return add_event(setup, spec);
	printf("%s is in the setup already.\n", spec);
	return 0;
}

/* The first --event of a call without a + removes the events of the setup. */
int ctl_edit_event(struct ctl_editing *editing, const struct ctl_option *option, const char *arg)
{
	bool is_default = !strcmp(arg, EVENT_DEFAULT);

	(void)option;
	if (*arg == '+') {
		editing->adds_events = true;
		return add_to_events(editing->setup, arg + 1);
	}
	if (editing->adds_events)
		return opr_error(1, "--event=%s: replaces all events, and the option before it adds one: begin both with a +", arg);
	if (editing->has_events && (is_default || editing->has_default))
		return opr_error(1, "--event=%s: 'default' goes with no other event", arg);
	if (!editing->has_events)
		editing->setup->nr_events = 0;
	editing->has_events = true;
	editing->has_default = is_default;
	return is_default ? 0 : add_event(editing->setup, arg);
}

/* The default event is in no list of a setup. */
static size_t list_events(const struct op_setup *setup, struct op_event *ret_default, const struct op_event **ret_events)
{
	bool has_pmu;

	*ret_events = setup->nr_events ? setup->events : ret_default;
	if (!setup->nr_events)
		op_event_default(ret_default, &has_pmu);
	return setup->nr_events ? setup->nr_events : 1;
}

void ctl_tell_replaced(const struct op_setup *before, const struct op_setup *after)
{
	const struct op_event *old, *new;
	struct op_event old_default, new_default;
	size_t nr_old = list_events(before, &old_default, &old), nr_new = list_events(after, &new_default, &new);
	struct op_text gone = { 0 };

	for (size_t i = 0; i < nr_old; i++) {
		bool is_kept = false;

		for (size_t j = 0; j < nr_new; j++)
			is_kept |= !strcmp(old[i].name, new[j].name);
		if (!is_kept)
			op_text_printf(&gone, "%s%s:%ju", gone.length ? ", " : "", old[i].name, (uintmax_t)old[i].count);
	}
	if (gone.length) {
		printf("%s:%ju%s replaces %s%s.", new->name, (uintmax_t)new->count, nr_new > 1 ? " and what follows" : "",
		       before->nr_events ? "" : "the default event ", op_text_get(&gone));
		if (after->nr_events)
			printf(" To count both: --event=+%s:%ju", new->name, (uintmax_t)new->count);
		putchar('\n');
	}
	op_text_free(&gone);
}

int ctl_edit_separate(struct ctl_editing *editing, const struct ctl_option *option, const char *arg)
{
	char *bad_word = NULL;
	int err = op_setup_set_separate(editing->setup, arg, &bad_word);

	(void)option;
	if (!err)
		return 0;
	if (err == -ENOMEM)
		return opr_no_memory();
	opr_error(1,
		  "--separate=%s: unknown word '%s'; allowed: none, library, kernel, thread, cpu, cgroup, process-name, "
		  "user, all",
		  arg, bad_word);
	free(bad_word);
	return 1;
}

/* Sets a field to `value`, which may be NULL and is freed on an error. */
static int set_field(char **field, char *value, const char *option)
{
	if (value && !op_setup_value_ok(value)) {
		opr_error(1, "--%s=%s: the setup can keep letters, digits and -_:,./ only", option, value);
		free(value);
		return 1;
	}
	free(*field);
	*field = value;
	return 0;
}

int ctl_edit_vmlinux(struct ctl_editing *editing, const struct ctl_option *option, const char *arg)
{
	struct stat st;
	char *path;

	if (!strcmp(arg, "none"))
		return set_field(&editing->setup->vmlinux, NULL, option->row.name);
	path = realpath(arg, NULL);
	if (!path)
		return opr_error(1, "--vmlinux=%s: %s", arg, strerror(errno));
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode)) {
		free(path);
		return opr_error(1, "--vmlinux=%s: not a file", arg);
	}
	return set_field(&editing->setup->vmlinux, path, option->row.name);
}

int ctl_edit_no_vmlinux(struct ctl_editing *editing, const struct ctl_option *option, const char *arg)
{
	(void)arg;
	return set_field(&editing->setup->vmlinux, NULL, option->row.name);
}

/* The daemon runs in another directory, so a relative path becomes absolute. */
int ctl_edit_session_dir(struct ctl_editing *editing, const struct ctl_option *option, const char *arg)
{
	struct op_text path = { 0 };
	char *cwd = NULL, *value;
	size_t length = strlen(arg);

	if (!length)
		return opr_error(1, "--session-dir: the path is empty");
	while (length > 1 && arg[length - 1] == '/')
		length--;
	if (arg[0] != '/') {
		cwd = getcwd(NULL, 0);
		if (!cwd)
			return opr_error(1, "--session-dir=%s: %s", arg, strerror(errno));
		op_text_printf(&path, "%s/", cwd);
		free(cwd);
	}
	op_text_add_bytes(&path, arg, length);
	value = op_text_steal(&path);
	return value ? set_field(&editing->setup->session_dir, value, option->row.name) : opr_no_memory();
}

static int parse_limited(const struct ctl_option *option, const char *arg, uint64_t max, uint64_t *ret_value)
{
	if (!op_parse_u64(arg, 0, max, ret_value))
		return 0;
	return opr_error(1, "--%s=%s: not a number from 0 to %ju", option->row.name, arg, (uintmax_t)max);
}

int ctl_edit_callgraph(struct ctl_editing *editing, const struct ctl_option *option, const char *arg)
{
	uint64_t depth, max_stack = op_chain_max_stack();

	if (parse_limited(option, arg, OP_CHAIN_DEPTH_MAX, &depth))
		return 1;
	if (depth > max_stack)
		return opr_error(1, "--%s=%s: this kernel records at most %ju callers: raise kernel.perf_event_max_stack",
				 option->row.name, arg, (uintmax_t)max_stack);
	editing->setup->callgraph = depth;
	return 0;
}

int ctl_edit_stacks(struct ctl_editing *editing, const struct ctl_option *option, const char *arg)
{
	if (op_stack_setup_parse(arg, &editing->setup->stacks))
		return 0;
	return opr_error(1,
			 "--%s=%s: unknown value; allowed: on, off, event, RATE[:BYTES], with 1 to %u samples per second and "
			 "%u bytes at most",
			 option->row.name, arg, OP_STACK_RATE_MAX, OP_STACK_BYTES_MAX);
}

int ctl_check_counts(const struct op_setup *setup)
{
	const char *option = setup->callgraph ? "--callgraph" : setup->stacks.mode == OP_STACKS_EVENT ? "--stacks=event" : NULL;

	for (size_t i = 0; option && i < setup->nr_events; i++) {
		const struct op_event *event = &setup->events[i];
		uint64_t min = op_event_min_count(event) * OP_EVENT_CALLGRAPH_FACTOR;

		if (event->count < min)
			return opr_error(1, "--event=%s: with %s the count must be %ju or more, %d times the usual minimum",
					 event->name, option, (uintmax_t)min, OP_EVENT_CALLGRAPH_FACTOR);
	}
	return 0;
}

int ctl_edit_number(struct ctl_editing *editing, const struct ctl_option *option, const char *arg)
{
	return parse_limited(option, arg, UINT32_MAX, (uint64_t *)(void *)((char *)editing->setup + option->row.offset));
}

/* An image may come later, but a misspelt name would filter out all samples. */
static void check_image(const char *name)
{
	struct op_text path = { 0 };

	op_text_printf(&path, "/sys/module/%s", name);
	if (strchr(name, '/'))
		opr_warn("--image: %s: %s", name, strerror(ENOENT));
	else if (strcmp(name, "no-vmlinux") && access(op_text_get(&path), F_OK) < 0)
		opr_warn("--image: %s: neither a file nor a loaded module", name);
	op_text_free(&path);
}

/* The kernel names a file by its path without links. A file that does not exist keeps its name. */
static void add_image(struct op_text *list, const char *name)
{
	char *path = realpath(name, NULL);

	if (!path)
		check_image(name);
	op_text_printf(list, "%s%s", list->length ? "," : "", path && !strchr(path, ',') ? path : name);
	free(path);
}

int ctl_edit_image(struct ctl_editing *editing, const struct ctl_option *option, const char *arg)
{
	bool is_all = !strcmp(arg, "all"), is_empty;
	struct op_text list = { 0 };
	char *copy = strdup(arg), *images;

	for (char *rest = copy, *name; !is_all && (name = strsep(&rest, ","));)
		if (*name)
			add_image(&list, name);
	free(copy);
	is_empty = !list.length && !list.failed;
	images = is_empty ? NULL : op_text_steal(&list);
	if (!copy || (!is_empty && !images))
		return opr_no_memory();
	if (images && !op_setup_images_ok(images)) {
		opr_error(1, "--%s=%s: the setup can keep letters, digits and -_:,./+ only", option->row.name, images);
		free(images);
		return 1;
	}
	free(editing->setup->image_filter);
	editing->setup->image_filter = images;
	return 0;
}

int ctl_edit_nothing(struct ctl_editing *editing, const struct ctl_option *option, const char *arg)
{
	(void)editing;
	(void)option;
	(void)arg;
	return 0;
}

int ctl_edit_kernel_range(struct ctl_editing *editing, const struct ctl_option *option, const char *arg)
{
	unsigned long long start, end = 0;
	const char *second = NULL;
	char *rest, *copy;

	start = strtoull(arg, &rest, 16);
	if (rest != arg && *rest == ',') {
		second = rest + 1;
		end = strtoull(second, &rest, 16);
	}
	if (!second || rest == second || *rest || end <= start)
		return opr_error(1, "--kernel-range=%s: not START,END in hexadecimal", arg);
	copy = strdup(arg);
	return copy ? set_field(&editing->setup->kernel_range, copy, option->row.name) : opr_no_memory();
}
