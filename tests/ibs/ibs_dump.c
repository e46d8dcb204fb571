/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Prints the result of op_ibs_decode for records. Usage: ibs_dump < STREAM. The stream is little
 * endian:
 * family and model, 4 bytes each, then for each record its kind (0 fetch, 1 op) and its length, 4
 * bytes each, and the payload. Prints a line for each record, values in hexadecimal, tab-separated:
 * the reason, then NAME=VALUE for every register field, notes, has, period, width, depth, latency,
 * tlb_refill, source, ip, linear, physical, target, data_src, and a column NUMBER+AMOUNT for each
 * derived event of the record.
 */
#include <inttypes.h>
#include <stdio.h>

#include "libop/events/ibs_derived.h"
#include "tests/ibs/ibs_text.h"

static bool read_u32(uint32_t *ret_value)
{
	return fread(ret_value, sizeof(*ret_value), 1, stdin) == 1;
}

static void show(const char *name, uint64_t value)
{
	printf("\t%s=%" PRIx64, name, value);
}

static void show_fields(const struct op_ibs *ibs)
{
	const struct op_ibs_field *field;

	for (size_t i = 0; (field = op_ibs_field(ibs->kind, i)); i++)
		show(field->name, op_ibs_field_value(ibs, field));
}

static void show_meaning(const struct op_ibs_cpu *cpu, const struct op_ibs *ibs)
{
	const struct op_ibs_event *event;

	show("notes", ibs->notes);
	show("has", ibs->has);
	show("period", ibs->period);
	show("width", ibs->width_bytes);
	show("depth", ibs->depth);
	show("latency", ibs->latency);
	show("tlb_refill", ibs->tlb_refill);
	printf("\tsource=%s", op_ibs_source_text(ibs->source));
	show("ip", ibs->ip);
	show("linear", ibs->linear);
	show("physical", ibs->physical);
	show("target", ibs->target);
	show("data_src", op_ibs_data_src(cpu, ibs));
	for (size_t i = 0; (event = op_ibs_event(i)); i++) {
		uint32_t adds = op_ibs_event_adds(event, ibs);

		if (adds)
			printf("\t%x+%" PRIu32, event->number, adds);
	}
}

int main(void)
{
	static uint8_t payload[1 << 16];
	struct op_ibs_counts counts = { { 0 }, 0, 0, 0, 0 };
	uint32_t family, model, kind, nr_bytes;
	struct op_ibs_cpu cpu;

	if (!read_u32(&family) || !read_u32(&model))
		return 1;
	op_ibs_cpu_init(family, model, &cpu);
	while (read_u32(&kind)) {
		enum op_ibs_reason reason;
		struct op_ibs ibs;

		if (kind >= OP_IBS_NR_KINDS || !read_u32(&nr_bytes) || nr_bytes > sizeof(payload) ||
		    fread(payload, 1, nr_bytes, stdin) != nr_bytes)
			return 1;
		reason = op_ibs_decode(&cpu, (enum op_ibs_kind)kind, payload, nr_bytes, &ibs);
		op_ibs_count(&counts, reason, &ibs);
		printf("%s", op_ibs_reason_text(reason));
		if (reason == OP_IBS_OK) {
			show_fields(&ibs);
			show_meaning(&cpu, &ibs);
		}
		putchar('\n');
	}
	for (unsigned int i = 0; i < OP_IBS_NR_REASONS; i++)
		printf("%s: %" PRIu64 "\n", op_ibs_reason_text((enum op_ibs_reason)i), counts.by_reason[i]);
	return ferror(stdout) ? 1 : 0;
}
