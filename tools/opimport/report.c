/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/common/formatting.h"
#include "tools/opimport/event_match.h"
#include "tools/opimport/opimport.h"
#include "tools/common/log.h"
#include "tools/common/progress.h"

#define BYTES_PER_MB 1000000u

void opi_progress(const struct op_perf_data *data)
{
	uint64_t offset, end;

	op_perf_data_progress(data, &offset, &end);
	if (end)
		opr_progress("%3llu %% of %llu MB", (unsigned long long)(offset * 100 / end),
			     (unsigned long long)(end / BYTES_PER_MB));
	else
		opr_progress("%llu MB", (unsigned long long)(offset / BYTES_PER_MB));
}

/* ---- the ledger ---- */

static void print_word(const char *what, const char *value)
{
	if (!value || !*value)
		return;
	printf("%s", what);
	opr_write_escaped(stdout, value);
}

static void print_file(const struct op_perf_data *data)
{
	const struct op_perf_features *features = op_perf_data_features(data);
	const struct op_perf_counts *counts = op_perf_data_counts(data);

	printf("%s%s", op_perf_data_is_pipe(data) ? "perf.data from a pipe" : "perf.data",
	       op_perf_data_is_swapped(data) ? ", of the other byte order" : "");
	if (op_perf_data_nr_files(data) > 1)
		printf(", a directory of %zu files", op_perf_data_nr_files(data));
	printf(": %llu records", (unsigned long long)counts->nr_records);
	print_word(", taken on ", features->hostname);
	print_word(", Linux ", features->os_release);
	print_word(", ", features->arch);
	print_word("\ncommand: ", features->cmdline);
	putchar('\n');
}

static void print_count(const char *what, uint64_t count)
{
	if (count)
		printf("%12llu %s\n", (unsigned long long)count, what);
}

static void print_counts(const struct op_perf_data *data, const struct opi_import *import)
{
	const struct op_perf_counts *counts = op_perf_data_counts(data);
	struct opi_import_counts imported;

	opi_import_counts(import, &imported);
	print_count("samples", counts->nr_samples);
	print_count("records of processes and mappings", imported.sideband_records);
	print_count("records that opd does not use", counts->nr_passed_over);
	print_count("damaged records", counts->nr_bad);
	print_count("compressed records", counts->nr_compressed);
	print_count("bytes of text behind the records, ignored", counts->text_bytes);
	print_count("AUX area traces, ignored", counts->nr_aux);
	print_count("bytes in them", counts->aux_bytes);
	print_count("records that came after younger ones were counted", imported.nr_late);
	print_count("samples of events that the file lists too late", imported.nr_unannounced);
	for (size_t i = 0; i < OP_NR_IBS_STATS; i++)
		if (imported.ibs[i])
			printf("%12llu IBS records: %s\n", (unsigned long long)imported.ibs[i],
			       op_ibs_stat_meaning((enum op_ibs_stat)i));
	print_count("facts for opreport --mem lost: no room, or their file failed", imported.nr_memory_dropped);
	print_count("calls of all events together, for opreport --callgraph", imported.nr_calls);
	print_count("call chains that cannot be read", imported.nr_bad_chains);
	print_count("images with a table for whole stacks", imported.nr_tables);
	print_count("images in stacks without one", imported.nr_no_table);
	print_count("images with samples", imported.nr_images);
	print_count("CPUs", imported.nr_cpus);
}

static void print_event(const struct op_ledger_event *event, bool is_read)
{
	const struct op_ibs_event *derived = event->role == OP_EVENT_DERIVED ? op_ibs_event_of_session(event->name) : NULL;

	printf("%s:%llu received %llu, stored %llu", event->name, (unsigned long long)event->count,
	       (unsigned long long)event->received, (unsigned long long)event->stored);
	if (event->unattributed)
		printf(", unattributed %llu", (unsigned long long)event->unattributed);
	if (event->lost_kernel)
		printf(", lost_kernel %llu", (unsigned long long)event->lost_kernel);
	if (derived && derived->amount != OP_IBS_SAMPLES)
		printf(" %s, not samples", op_ibs_event_unit(derived));
	if (is_read)
		printf(" events, not samples: the samples of its group have read their number");
	for (size_t i = 0; i < OP_NR_LOSS; i++)
		if (event->lost[i])
			printf(", lost_%s %llu", op_loss_name((enum op_loss)i), (unsigned long long)event->lost[i]);
	putchar('\n');
}

static void print_stacks(const struct op_ledger_event *event)
{
	uint64_t nr_complete, nr = op_ledger_stacks(event, &nr_complete);

	if (!nr)
		return;
	printf("%s:%llu stacks: %llu", event->name, (unsigned long long)event->count, (unsigned long long)nr);
	for (enum op_stack_end end = 0; end < OP_NR_STACK_ENDS; end++)
		if (event->ends[end])
			printf(", %s %llu", op_stack_end_name(end), (unsigned long long)event->ends[end]);
	putchar('\n');
}

/* perf records the registers of IBS only with --raw-samples. */
static void print_lacking(const struct op_perf_data *data)
{
	const struct op_perf_events *events = op_perf_data_events(data);

	for (size_t i = 0; i < events->nr_events; i++) {
		struct op_event event;

		if (!op_perf_lacks_registers(op_perf_data_features(data), &events->events[i]))
			continue;
		opi_event_name(&events->events[i], &event);
		printf("%s: recorded without the registers of IBS (perf record --raw-samples), so no IBS_ events and nothing for "
		       "opreport --mem\n",
		       event.name);
	}
}

void opi_report(const struct op_perf_data *data, const struct opi_import *import)
{
	print_file(data);
	print_counts(data, import);
	for (size_t i = 0; i < opi_import_nr_events(import); i++) {
		struct op_ledger_event event;

		opi_import_ledger(import, i, &event);
		if (opi_import_is_read(import, i) && !event.received)
			printf("%s:%llu takes no samples, and no sample has read its counter\n", event.name,
			       (unsigned long long)event.count);
		if (event.role == OP_EVENT_MEMORY || !(event.received || event.lost_kernel))
			continue;
		print_event(&event, opi_import_is_read(import, i));
		print_stacks(&event);
	}
	print_lacking(data);
	opi_report_guesses(data);
}

bool opi_report_trouble(const struct op_perf_data *data, const char *file)
{
	const struct op_perf_trouble *trouble = op_perf_data_trouble(data);
	char more[64] = "";

	if (!trouble->what)
		return false;
	if (trouble->nr_more)
		snprintf(more, sizeof(more), ", and %llu more fault%s behind it", (unsigned long long)trouble->nr_more,
			 trouble->nr_more == 1 ? "" : "s");
	opr_error(trouble->err, "%s%s%s: at byte %llu: %s%s%s%s: what could be read is in the session", file,
		  *trouble->file ? "/" : "", trouble->file, (unsigned long long)trouble->offset, trouble->what,
		  trouble->err ? ": " : "", trouble->err ? strerror(-trouble->err) : "", more);
	return true;
}
