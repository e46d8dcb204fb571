/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/odb/mangle.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>

#define DEP  "{dep}"
#define CG   "{cg}"
#define ROOT "{root}"
#define KERN "{kern}"
#define ANON "{anon:"

#define NO_PATH "/(no path)" /* a name without a component */

/* Components that would lead elsewhere, or end the part too early. */
static bool is_special(const char *component, size_t length)
{
	static const char *const special[] = { ".", "..", DEP, CG };

	for (size_t i = 0; i < op_array_size(special); i++)
		if (strlen(special[i]) == length && !memcmp(special[i], component, length))
			return true;
	return false;
}

void op_mangle_path(const char *name, struct op_text *path)
{
	name += strspn(name, "/");
	if (!*name)
		op_text_add(path, NO_PATH);
	while (*name) {
		size_t length = strcspn(name, "/");

		op_text_add_char(path, '/');
		if (is_special(name, length)) {
			op_text_add_char(path, '{');
			op_text_add_bytes(path, name, length);
			op_text_add_char(path, '}');
		} else {
			op_text_add_bytes(path, name, length);
		}
		name += length;
		name += strspn(name, "/");
	}
}

static void add_component(struct op_text *path, const char *name)
{
	for (; *name; name++)
		op_text_add_char(path, *name == '/' ? '_' : *name);
}

void op_mangle_kernel(const char *name, struct op_text *path)
{
	if (is_special(name, strlen(name)) || !*name)
		op_text_printf(path, "{%s}", name);
	else
		add_component(path, name);
}

static void add_anon(struct op_text *path, const struct op_image_name *image)
{
	op_text_add(path, ANON);
	add_component(path, image->name);
	op_text_printf(path, "}/%" PRId32 ".0x%" PRIx64 ".0x%" PRIx64, image->tgid & INT32_MAX, image->start, image->end);
}

static void add_image(struct op_text *path, const struct op_image_name *image)
{
	switch (image->kind) {
	case OP_IMAGE_FILE:
		op_text_add(path, ROOT);
		op_mangle_path(image->name, path);
		break;
	case OP_IMAGE_KERNEL:
		op_text_add(path, KERN "/");
		op_mangle_kernel(image->name, path);
		break;
	case OP_IMAGE_ANON:
		add_anon(path, image);
		break;
	}
	op_text_add_char(path, '/');
}

static void add_class(struct op_text *path, int32_t value)
{
	if (value < 0)
		op_text_add(path, ".all");
	else
		op_text_printf(path, ".%" PRId32, value);
}

void op_mangle(const struct op_sample_name *name, struct op_text *path)
{
	add_image(path, &name->app);
	op_text_add(path, DEP "/");
	add_image(path, &name->image);
	if (name->has_callee) {
		op_text_add(path, CG "/");
		add_image(path, &name->callee);
	}
	op_text_printf(path, "%s.%" PRIu64 ".%" PRIu32, name->event, name->count, name->unit_mask);
	add_class(path, name->tgid);
	add_class(path, name->tid);
	add_class(path, name->cpu);
}

void op_mangle_jit_object(const struct op_image_name *image, struct op_text *path)
{
	op_text_add(path, ROOT "/" ANON);
	add_component(path, image->name);
	op_text_printf(path, "}/%" PRId32 ".jo", image->tgid & INT32_MAX);
}

/* A component that is in braces gets a second pair, so that op_unmangle_cgroup can take one off. */
static bool is_special_cgroup(const char *component, size_t length)
{
	return (length >= 2 && component[0] == '{' && component[length - 1] == '}') || is_special(component, length);
}

void op_mangle_cgroup(const char *cgroup_path, struct op_text *path)
{
	op_text_add(path, OP_CGROUP_DIR "/");
	for (;;) {
		size_t length;
		bool special;

		cgroup_path += strspn(cgroup_path, "/");
		length = strcspn(cgroup_path, "/");
		if (!length)
			return;
		special = is_special_cgroup(cgroup_path, length);
		op_text_add(path, special ? "{" : "");
		op_text_add_bytes(path, cgroup_path, length);
		op_text_add(path, special ? "}/" : "/");
		cgroup_path += length;
	}
}

char *op_unmangle_cgroup(const char *directory)
{
	struct op_text path = { 0 };

	for (;;) {
		size_t length;
		bool braces;

		directory += strspn(directory, "/");
		length = strcspn(directory, "/");
		if (!length)
			break;
		braces = length >= 2 && directory[0] == '{' && directory[length - 1] == '}';
		op_text_add_char(&path, '/');
		op_text_add_bytes(&path, directory + braces, length - 2 * braces);
		directory += length;
	}
	if (!op_text_get(&path)[0])
		op_text_add_char(&path, '/');
	return op_text_steal(&path);
}

/* A copy without doubled slashes, to be cut into strings. */
static char *copy_path(const char *path)
{
	char *copy = malloc(strlen(path) + 1), *out = copy;

	if (!copy)
		return NULL;
	for (; *path; path++)
		if (*path != '/' || path[1] != '/')
			*out++ = *path;
	*out = '\0';
	return copy;
}

/*
 * Cuts `part` before the component `mark` and returns what follows it, or NULL when there is none.
 */
static char *cut_at(char *part, const char *mark)
{
	size_t length = strlen(mark);

	for (char *slash = strchr(part, '/'); slash; slash = strchr(slash + 1, '/')) {
		if (strncmp(slash + 1, mark, length) || slash[1 + length] != '/')
			continue;
		*slash = '\0';
		return slash + 1 + length + 1;
	}
	return NULL;
}

/* A number of the grammar, which has neither sign nor blanks; decimal unless base is 0 or 16. */
static bool parse_number(const char *text, int base, uint64_t max, uint64_t *ret_value)
{
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	*ret_value = strtoull(text, &end, base);
	return !errno && !*end && *ret_value <= max;
}

static bool parse_class(const char *text, int32_t *ret_value)
{
	uint64_t value;

	if (!strcmp(text, "all")) {
		*ret_value = OP_CLASS_ALL;
		return true;
	}
	if (!parse_number(text, 10, INT32_MAX, &value))
		return false;
	*ret_value = (int32_t)value;
	return true;
}

/* Cuts text at each dot; true when that gives exactly nr parts and none is empty. */
static bool split_dots(char *text, char *parts[], size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		char *dot = strchr(text, '.');

		if ((i + 1 < nr) != (dot != NULL))
			return false;
		if (dot)
			*dot = '\0';
		if (!*text)
			return false;
		parts[i] = text;
		text = dot ? dot + 1 : text;
	}
	return true;
}

static const char *parse_anon(char *part, struct op_image_name *image)
{
	char *last = strrchr(part, '/');
	char *numbers[3];
	uint64_t tgid;

	if (!last || last[-1] != '}')
		return "an anonymous region is {anon:LABEL}/TGID.START.END";
	last[-1] = '\0';
	image->kind = OP_IMAGE_ANON;
	image->name = part + strlen(ANON);
	if (!split_dots(last + 1, numbers, 3) || !parse_number(numbers[0], 10, INT32_MAX, &tgid) ||
	    !parse_number(numbers[1], 16, UINT64_MAX, &image->start) || !parse_number(numbers[2], 16, UINT64_MAX, &image->end))
		return "the numbers of an anonymous region are TGID.START.END";
	image->tgid = (int32_t)tgid;
	return NULL;
}

/* Reads one image part; NULL, or what is wrong with it. */
static const char *parse_image(char *part, bool is_app, struct op_image_name *image)
{
	*image = (struct op_image_name){ 0 };
	if (!strncmp(part, ROOT "/", strlen(ROOT "/")) && part[strlen(ROOT "/")]) {
		image->kind = OP_IMAGE_FILE;
		image->name = part + strlen(ROOT);
		return NULL;
	}
	if (!strncmp(part, KERN "/", strlen(KERN "/"))) {
		image->kind = OP_IMAGE_KERNEL;
		image->name = part + strlen(KERN "/");
		return *image->name && !strchr(image->name, '/') ? NULL : "a kernel image is {kern}/NAME";
	}
	if (!is_app && !strncmp(part, ANON, strlen(ANON)))
		return parse_anon(part, image);
	return is_app ? "the name does not start with {root}/ or {kern}/"
		      : "the image does not begin with {root}, {kern} or "
			"{anon:}";
}

static const char *parse_event(char *text, struct op_sample_name *name)
{
	char *parts[6];
	uint64_t unit_mask;

	if (!split_dots(text, parts, op_array_size(parts)))
		return "bad event specification: not EVENT.COUNT.UNITMASK.TGID.TID.CPU";
	name->event = parts[0];
	if (!parse_number(parts[1], 10, UINT64_MAX, &name->count))
		return "bad event specification: the count is not a number";
	if (!parse_number(parts[2], 0, UINT32_MAX, &unit_mask))
		return "bad event specification: the unit mask is not a number";
	name->unit_mask = (uint32_t)unit_mask;
	if (!parse_class(parts[3], &name->tgid) || !parse_class(parts[4], &name->tid) || !parse_class(parts[5], &name->cpu))
		return "bad event specification: tgid, tid and cpu are numbers or `all'";
	return NULL;
}

/* Takes the copy apart, in place. */
static const char *parse_name(char *path, struct op_sample_name *name)
{
	char *event = strrchr(path, '/'), *image, *callee;
	const char *why;

	if (!event)
		return "not a path of image parts and an event";
	*event++ = '\0';
	image = cut_at(path, DEP);
	if (!image)
		return "the {dep} part is missing";
	callee = cut_at(image, CG);
	why = parse_image(path, true, &name->app);
	if (!why)
		why = parse_image(image, false, &name->image);
	name->has_callee = callee != NULL;
	if (!why && callee)
		why = parse_image(callee, false, &name->callee);
	return why ? why : parse_event(event, name);
}

int op_unmangle(const char *path, struct op_sample_name *ret_name, char **ret_storage, const char **ret_why)
{
	struct op_sample_name name = { 0 };
	char *copy = copy_path(path);
	const char *why;

	if (!copy)
		return -ENOMEM;
	why = parse_name(copy, &name);
	if (why) {
		free(copy);
		if (ret_why)
			*ret_why = why;
		return -EINVAL;
	}
	*ret_name = name;
	*ret_storage = copy;
	return 0;
}
