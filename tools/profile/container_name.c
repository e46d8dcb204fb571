/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/container_name.h"

#include <ctype.h>

#include "tools/profile/docker_name.h"

#define ID_SHOWN  12u /* digits: what the runtimes print and take */
#define ID_MIN    12u
#define ID_DIGITS 64u
#define UID_SHOWN 8u  /* the first part of the UUID of a pod */

/* PREFIX ID SUFFIX is one part of the path. The drivers of systemd are on the left. */
static const struct runtime {
	const char *prefix, *suffix, *shown;
} runtimes[] = {
	{ "docker-", ".scope", "docker" },
	{ "cri-containerd-", ".scope", "containerd" },
	{ "nerdctl-", ".scope", "nerdctl" },
	{ "crio-conmon-", ".scope", "crio monitor of" },
	{ "crio-", ".scope", "crio" },
	{ "libpod-conmon-", ".scope", "podman monitor of" },
	{ "libpod-", ".scope", "podman" },
	{ "libpod-", "", "podman" },
	{ "", "", "" }, /* in the directory of a runtime or of a pod */
};

/* A name after the prefix instead of an identifier. */
static const struct runtime named[] = {
	{ "lxc.payload.", "", "lxc" },
	{ "machine-", ".scope", "machine" },
};

static bool has_form(const char *part, size_t length, const struct runtime *runtime, const char **ret_id, size_t *ret_length)
{
	size_t before = strlen(runtime->prefix), behind = strlen(runtime->suffix);

	if (length <= before + behind || memcmp(part, runtime->prefix, before) != 0 ||
	    memcmp(part + length - behind, runtime->suffix, behind) != 0)
		return false;
	*ret_id = part + before;
	*ret_length = length - before - behind;
	return true;
}

static bool is_id(const char *id, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!isdigit((unsigned char)id[i]) && (id[i] < 'a' || id[i] > 'f'))
			return false;
	return length >= ID_MIN;
}

/* "kubepods-burstable-pod1234_5678.slice", "pod1234-5678": the UUID. */
static bool find_pod(const char *part, size_t length, const char **ret_uid)
{
	const char *uid = !strncmp(part, "pod", 3) ? part : NULL;

	if (!strncmp(part, "kubepods", strlen("kubepods")))
		for (const char *c = part; c + 4 < part + length; c++)
			if (!strncmp(c, "-pod", 4))
				uid = c + 1;
	if (!uid || (size_t)(part + length - uid) < 3 + UID_SHOWN)
		return false;
	*ret_uid = uid + 3;
	for (size_t i = 0; i < UID_SHOWN; i++)
		if (!isxdigit((unsigned char)uid[3 + i]))
			return false;
	return true;
}

static void add_part(struct op_text *text, const char *title, const char *id, size_t length)
{
	op_text_add(text, text->length ? "/" : "");
	op_text_printf(text, "%s%s%.*s", title, *title ? " " : "", (int)length, id);
}

/* The container that a part names; false: none. `in_docker`: the part above it is "docker". */
static bool add_container(struct op_text *text, const char *part, size_t length, bool in_docker)
{
	const char *id;
	size_t nr;

	for (size_t i = 0; i < op_array_size(named); i++)
		if (has_form(part, length, &named[i], &id, &nr)) {
			add_part(text, named[i].shown, id, nr);
			return true;
		}
	for (size_t i = 0; i < op_array_size(runtimes); i++) {
		const char *shown = in_docker ? "docker" : runtimes[i].shown;

		if (!has_form(part, length, &runtimes[i], &id, &nr) || !is_id(id, nr) || (!*shown && !text->length))
			continue;
		add_part(text, shown, id, ID_SHOWN);
		if (nr == ID_DIGITS && !strcmp(shown, "docker"))
			opr_docker_name_add(text, id);
		return true;
	}
	return false;
}

void opr_container_name_add(struct op_text *text, const char *cgroup)
{
	struct op_text found = { 0 };
	const char *inside = NULL, *uid;
	bool in_docker = false;

	for (const char *part = cgroup; *part; part += strcspn(part, "/")) {
		size_t length;

		part += strspn(part, "/");
		length = strcspn(part, "/");
		if (find_pod(part, length, &uid))
			add_part(&found, "pod", uid, UID_SHOWN);
		else if (!add_container(&found, part, length, in_docker))
			length = 0;
		inside = length ? part + length : inside;
		in_docker = !strncmp(part, "docker/", strlen("docker/"));
	}
	op_text_add(text, inside ? op_text_get(&found) : cgroup);
	op_text_add(text, inside ? inside : "");
	text->failed |= found.failed;
	op_text_free(&found);
}
