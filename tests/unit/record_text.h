/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Prints every decoded field of a record as text, so that the results of two readers can be
 * compared.
 */
#ifndef RECORD_TEXT_H
#define RECORD_TEXT_H

#include "libop/perf/record.h"
#include "libop/base/text.h"

static inline void tell_sample(const struct perf_event_header *header, struct op_text *text)
{
	struct op_sample s = { 0 };
	int err = op_record_sample(header, &s);

	op_text_printf(text, "sample %d %llu %llx %llu %u %u %d", err, (unsigned long long)s.id, (unsigned long long)s.ip,
		       (unsigned long long)s.time_ns, s.pid, s.tid, s.mode);
}

static inline void tell_who(const struct op_record_id *who, struct op_text *text)
{
	op_text_printf(text, " who %u %u %llu %llu", who->pid, who->tid, (unsigned long long)who->time_ns,
		       (unsigned long long)who->id);
}

static inline void tell_mmap(const struct perf_event_header *header, struct op_text *text)
{
	struct op_mmap_record m = { 0 };
	int err = op_record_mmap(header, &m);

	op_text_printf(text, "mmap %d %u %u %llx %llx %llx %u:%u %llu %llu %u %u %s", err, m.pid, m.tid,
		       (unsigned long long)m.start, (unsigned long long)m.bytes, (unsigned long long)m.offset, m.maj, m.min,
		       (unsigned long long)m.inode, (unsigned long long)m.inode_generation, m.prot, m.flags,
		       m.file_name ? m.file_name : "-");
	for (size_t i = 0; i < m.build_id_bytes; i++)
		op_text_printf(text, " %02x", m.build_id[i]);
	tell_who(&m.who, text);
}

static inline void tell_task(const struct perf_event_header *header, struct op_text *text)
{
	struct op_task_record t = { 0 };
	int err = op_record_task(header, &t);

	op_text_printf(text, "task %d %u %u %u %u %llu", err, t.pid, t.parent_pid, t.tid, t.parent_tid,
		       (unsigned long long)t.time_ns);
}

static inline void tell_comm(const struct perf_event_header *header, struct op_text *text)
{
	struct op_comm_record c = { 0 };
	int err = op_record_comm(header, &c);

	op_text_printf(text, "comm %d %u %u %d %s", err, c.pid, c.tid, c.is_exec, c.comm ? c.comm : "-");
	tell_who(&c.who, text);
}

static inline void tell_lost(const struct perf_event_header *header, struct op_text *text)
{
	struct op_lost_record l = { 0 };
	int err = header->type == PERF_RECORD_LOST ? op_record_lost(header, &l) : op_record_lost_samples(header, &l);

	op_text_printf(text, "lost %d %llu %llu", err, (unsigned long long)l.id, (unsigned long long)l.lost);
}

static inline void tell_throttle(const struct perf_event_header *header, struct op_text *text)
{
	struct op_throttle_record t = { 0 };
	int err = op_record_throttle(header, &t);

	op_text_printf(text, "throttle %d %llu %llu", err, (unsigned long long)t.time_ns, (unsigned long long)t.id);
}

static inline void tell_ksymbol(const struct perf_event_header *header, struct op_text *text)
{
	struct op_ksymbol_record k = { 0 };
	int err = op_record_ksymbol(header, &k);

	op_text_printf(text, "ksymbol %d %llx %u %d %s", err, (unsigned long long)k.start, k.bytes, k.unregister,
		       k.name ? k.name : "-");
	tell_who(&k.who, text);
}

/* One line: the header and the results of all op_record_* decoders, with their errors. */
static inline void record_text_add(struct op_text *text, const struct perf_event_header *header)
{
	static void (*const tell[PERF_RECORD_MAX])(const struct perf_event_header *header, struct op_text *text) = {
		[PERF_RECORD_SAMPLE] = tell_sample,       [PERF_RECORD_MMAP2] = tell_mmap,
		[PERF_RECORD_FORK] = tell_task,           [PERF_RECORD_EXIT] = tell_task,
		[PERF_RECORD_COMM] = tell_comm,           [PERF_RECORD_LOST] = tell_lost,
		[PERF_RECORD_LOST_SAMPLES] = tell_lost,   [PERF_RECORD_THROTTLE] = tell_throttle,
		[PERF_RECORD_UNTHROTTLE] = tell_throttle, [PERF_RECORD_KSYMBOL] = tell_ksymbol,
	};
	struct op_record_id who = { 0 };

	op_text_printf(text, "%u %u %u ", header->type, header->misc, header->size);
	if (header->type < PERF_RECORD_MAX && tell[header->type])
		tell[header->type](header, text);
	op_text_printf(text, " %d", op_record_id(header, &who));
	tell_who(&who, text);
	op_text_add(text, "\n");
}

#endif
