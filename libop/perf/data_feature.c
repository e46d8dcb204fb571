/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/perf/data_feature.h"

#include <errno.h>

#include "libop/perf/data_input.h"
#include "libop/base/text.h"

#define HEADER_BYTES      sizeof(struct perf_event_header)
/* An entry: header, pid, 20 bytes of build-id, their number, three bytes of padding, name. */
#define BUILD_ID_OFFSET   12u
#define BUILD_ID_NAME     36u
#define BUILD_ID_HAS_SIZE (1u << 15) /* in misc */
#define NAME_MAX_BYTES    4096u

struct named_id {
	struct op_hlink link;
	struct op_build_id id;
	char name[];
};

/* The rest of a section. */
struct cursor {
	const uint8_t *bytes;
	size_t nr_bytes;
	bool swapped;
};

typedef int (*reader)(struct op_perf_features *features, struct op_perf_events *events, struct cursor *cursor);

/* NULL when fewer bytes are left. */
static const uint8_t *take(struct cursor *cursor, size_t nr_bytes)
{
	const uint8_t *bytes = cursor->bytes;

	if (cursor->nr_bytes < nr_bytes)
		return NULL;
	cursor->bytes += nr_bytes;
	cursor->nr_bytes -= nr_bytes;
	return bytes;
}

static bool take_u32(struct cursor *cursor, uint32_t *ret_value)
{
	const uint8_t *bytes = take(cursor, sizeof(*ret_value));

	if (bytes)
		*ret_value = op_perf_u32(bytes, cursor->swapped);
	return bytes;
}

/* A length and as many bytes, which begin with the string and its NUL. */
static bool take_string(struct cursor *cursor, const char **ret_string, size_t *ret_length)
{
	const uint8_t *bytes;
	uint32_t nr_bytes;

	if (!take_u32(cursor, &nr_bytes))
		return false;
	bytes = take(cursor, nr_bytes);
	if (!bytes)
		return false;
	*ret_string = (const char *)bytes;
	*ret_length = strnlen(*ret_string, nr_bytes);
	return true;
}

/* The features that are one string each. The first member is not a string, so 0 means none. */
static const size_t string_members[] = {
	[OP_PERF_FEATURE_HOSTNAME] = offsetof(struct op_perf_features, hostname),
	[OP_PERF_FEATURE_OS_RELEASE] = offsetof(struct op_perf_features, os_release),
	[OP_PERF_FEATURE_VERSION] = offsetof(struct op_perf_features, version),
	[OP_PERF_FEATURE_ARCH] = offsetof(struct op_perf_features, arch),
	[OP_PERF_FEATURE_CPU_DESC] = offsetof(struct op_perf_features, cpu_desc),
	[OP_PERF_FEATURE_CPU_ID] = offsetof(struct op_perf_features, cpu_id),
};

static char **string_member(struct op_perf_features *features, uint64_t feature)
{
	if (feature >= op_array_size(string_members) || !string_members[feature])
		return NULL;
	return (char **)(void *)((char *)features + string_members[feature]);
}

static int read_string(struct cursor *cursor, char **string)
{
	const char *found;
	size_t length;

	if (!take_string(cursor, &found, &length))
		return -EBADMSG;
	free(*string);
	*string = strndup(found, op_min_u64(length, NAME_MAX_BYTES));
	return *string ? 0 : -ENOMEM;
}

/* Possible CPUs, then those that were online. */
static int read_nr_cpus(struct op_perf_features *features, struct op_perf_events *events OP_UNUSED, struct cursor *cursor)
{
	return take_u32(cursor, &features->nr_cpus) ? 0 : -EBADMSG;
}

static int read_cmdline(struct op_perf_features *features, struct op_perf_events *events OP_UNUSED, struct cursor *cursor)
{
	struct op_text line = { 0 };
	uint32_t nr_words;
	int err = take_u32(cursor, &nr_words) ? 0 : -EBADMSG;

	for (uint32_t i = 0; !err && i < nr_words; i++) {
		const char *word;
		size_t length;

		if (!take_string(cursor, &word, &length)) {
			err = -EBADMSG;
			break;
		}
		if (i)
			op_text_add_char(&line, ' ');
		op_text_add_bytes(&line, word, length);
	}
	if (!err && line.length) {
		free(features->cmdline);
		features->cmdline = op_text_steal(&line);
		err = features->cmdline ? 0 : -ENOMEM;
	}
	op_text_free(&line);
	return err;
}

/* For each event: attribute, number of identifiers, name, identifiers. */
static int read_event_desc(struct op_perf_features *features OP_UNUSED, struct op_perf_events *events, struct cursor *cursor)
{
	uint32_t nr_events, attr_bytes, nr_ids;

	if (!take_u32(cursor, &nr_events) || !take_u32(cursor, &attr_bytes))
		return -EBADMSG;
	for (uint32_t i = 0; i < nr_events; i++) {
		const char *name;
		size_t length;
		int err;

		if (!take(cursor, attr_bytes) || !take_u32(cursor, &nr_ids) || !take_string(cursor, &name, &length) ||
		    !take(cursor, (size_t)nr_ids * sizeof(uint64_t)))
			return -EBADMSG;
		err = op_perf_events_name(events, i, name, length);
		if (err)
			return err;
	}
	return 0;
}

/* Number and name of each. */
static int read_pmu_mappings(struct op_perf_features *features, struct op_perf_events *events OP_UNUSED, struct cursor *cursor)
{
	uint32_t nr_pmus, type;

	if (!take_u32(cursor, &nr_pmus))
		return -EBADMSG;
	features->has_pmus = true;
	for (uint32_t i = 0; i < nr_pmus; i++) {
		const char *name;
		size_t length;

		if (!take_u32(cursor, &type) || !take_string(cursor, &name, &length))
			return -EBADMSG;
		for (enum op_ibs_kind kind = 0; kind < OP_IBS_NR_KINDS; kind++)
			if (length == strlen(op_ibs_sampler_name(kind)) && !memcmp(name, op_ibs_sampler_name(kind), length))
				features->ibs_pmu_types[kind] = type;
	}
	return 0;
}

static int read_dir_format(struct op_perf_features *features, struct op_perf_events *events OP_UNUSED, struct cursor *cursor)
{
	const uint8_t *bytes = take(cursor, sizeof(features->dir_version));

	if (!bytes)
		return -EBADMSG;
	features->dir_version = op_perf_u64(bytes, cursor->swapped);
	return 0;
}

/* Version, kind, level, ratio, size of the uncompressed records. */
static int read_compressed(struct op_perf_features *features, struct op_perf_events *events OP_UNUSED, struct cursor *cursor)
{
	return take(cursor, 4 * sizeof(uint32_t)) && take_u32(cursor, &features->compressed_from) ? 0 : -EBADMSG;
}

static int read_build_ids(struct op_perf_features *features, struct op_perf_events *events OP_UNUSED, struct cursor *cursor)
{
	while (cursor->nr_bytes >= HEADER_BYTES) {
		size_t size = op_perf_u16(cursor->bytes + offsetof(struct perf_event_header, size), cursor->swapped);
		const uint8_t *record = size ? take(cursor, size) : NULL;
		int err = record ? op_perf_build_id_read(features, record, size, cursor->swapped) : -EBADMSG;

		if (err)
			return err;
	}
	return 0;
}

static const reader readers[] = {
	[OP_PERF_FEATURE_BUILD_ID] = read_build_ids,
	[OP_PERF_FEATURE_NR_CPUS] = read_nr_cpus,
	[OP_PERF_FEATURE_CMDLINE] = read_cmdline,
	[OP_PERF_FEATURE_EVENT_DESC] = read_event_desc,
	[OP_PERF_FEATURE_PMU_MAPPINGS] = read_pmu_mappings,
	[OP_PERF_FEATURE_DIR_FORMAT] = read_dir_format,
	[OP_PERF_FEATURE_COMPRESSED] = read_compressed,
};

bool op_perf_feature_is_used(uint64_t feature)
{
	if (feature < op_array_size(string_members) && string_members[feature])
		return true;
	return feature < op_array_size(readers) && readers[feature];
}

int op_perf_feature_read(struct op_perf_features *features, struct op_perf_events *events, uint64_t feature, const uint8_t *bytes,
			 size_t nr_bytes, bool swapped)
{
	struct cursor cursor = { .bytes = bytes, .nr_bytes = nr_bytes, .swapped = swapped };
	char **string = string_member(features, feature);

	if (!nr_bytes)
		return 0;
	if (string)
		return read_string(&cursor, string);
	if (feature >= op_array_size(readers) || !readers[feature])
		return 0;
	return readers[feature](features, events, &cursor);
}

/* True for an event of one of the samplers. */
static bool is_sampler(const struct op_perf_features *features, const struct op_perf_event *event, enum op_ibs_kind *ret_kind)
{
	bool has_pmus = features->ibs_pmu_types[OP_IBS_FETCH] || features->ibs_pmu_types[OP_IBS_OP];

	if (event->recognised) {
		*ret_kind = (enum op_ibs_kind)(event->recognised - 1);
		return true;
	}
	if (event->attr.type < PERF_TYPE_MAX)
		return false;
	for (enum op_ibs_kind kind = 0; kind < OP_IBS_NR_KINDS; kind++) {
		const char *name = op_ibs_sampler_name(kind);

		if (has_pmus ? event->attr.type != features->ibs_pmu_types[kind]
			     : !event->name || strncmp(event->name, name, strlen(name)) != 0)
			continue;
		*ret_kind = kind;
		return true;
	}
	return false;
}

bool op_perf_is_ibs(const struct op_perf_features *features, const struct op_perf_event *event, enum op_ibs_kind *ret_kind)
{
	return event->attr.sample_type & PERF_SAMPLE_RAW && is_sampler(features, event, ret_kind);
}

bool op_perf_lacks_registers(const struct op_perf_features *features, const struct op_perf_event *event)
{
	enum op_ibs_kind kind;

	return !(event->attr.sample_type & PERF_SAMPLE_RAW) && is_sampler(features, event, &kind);
}

/* ---- build-ids ---- */

static struct named_id *find(const struct op_perf_features *features, const char *name, size_t length)
{
	struct op_hlink *link = op_htable_first(&features->build_ids, op_hash_bytes(0, name, length));

	for (; link; link = op_htable_next(link)) {
		struct named_id *known = op_container_of(link, struct named_id, link);

		if (!strncmp(known->name, name, length) && !known->name[length])
			return known;
	}
	return NULL;
}

int op_perf_build_id_read(struct op_perf_features *features, const uint8_t *record, size_t nr_bytes, bool swapped)
{
	const char *name = (const char *)record + BUILD_ID_NAME;
	size_t length, id_bytes = OP_BUILD_ID_BYTES_MAX;
	struct named_id *named;

	if (nr_bytes <= BUILD_ID_NAME)
		return -EBADMSG;
	length = strnlen(name, nr_bytes - BUILD_ID_NAME);
	if (op_perf_u16(record + offsetof(struct perf_event_header, misc), swapped) & BUILD_ID_HAS_SIZE)
		id_bytes = record[BUILD_ID_OFFSET + OP_BUILD_ID_BYTES_MAX];
	if (length == nr_bytes - BUILD_ID_NAME || length > NAME_MAX_BYTES || id_bytes > OP_BUILD_ID_BYTES_MAX)
		return -EBADMSG;
	if (!length || !id_bytes || find(features, name, length))
		return 0;
	named = calloc(1, sizeof(*named) + length + 1);
	if (!named)
		return -ENOMEM;
	memcpy(named->name, name, length);
	memcpy(named->id.bytes, record + BUILD_ID_OFFSET, id_bytes);
	named->id.nr_bytes = (uint8_t)id_bytes;
	if (op_htable_insert(&features->build_ids, &named->link, op_hash_bytes(0, name, length)) < 0) {
		free(named);
		return -ENOMEM;
	}
	return 0;
}

const struct op_build_id *op_perf_build_id_of(const struct op_perf_features *features, const char *name)
{
	const struct named_id *named = find(features, name, strlen(name));
	const char *bracket = *name == '[' ? strchr(name, ']') : NULL;

	if (!named && bracket)
		named = find(features, name, (size_t)(bracket + 1 - name));
	return named ? &named->id : NULL;
}

static void free_named(struct op_hlink *link, void *arg OP_UNUSED)
{
	free(op_container_of(link, struct named_id, link));
}

void op_perf_features_free(struct op_perf_features *features)
{
	op_htable_visit(&features->build_ids, free_named, NULL);
	op_htable_free(&features->build_ids);
	for (size_t i = 0; i < op_array_size(string_members); i++) {
		char **string = string_member(features, i);

		if (string)
			free(*string);
	}
	free(features->cmdline);
	*features = (struct op_perf_features){ 0 };
}
