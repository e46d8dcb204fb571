/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opannotate/runtimes.h"

#include "tools/common/log.h"

static int make_classes(struct opr_classes *classes, const struct opr_words *events)
{
	classes->classes = calloc(events->nr_words + 1, sizeof(*classes->classes));
	classes->cpu_line = strdup("Stacks, each counted for the line of its innermost function of a runtime, also while "
				   "that runs native code");
	if (!classes->classes || !classes->cpu_line)
		return opr_no_memory();
	for (size_t i = 0; i < events->nr_words; i++) {
		struct opr_class *class = &classes->classes[classes->nr_classes++];

		*class = (struct opr_class){ .event = events->words[i], .unit = "samples" };
		if (asprintf(&class->description, "Stacks of %s", events->words[i]) < 0) {
			class->description = NULL;
			return opr_no_memory();
		}
	}
	return 0;
}

int opr_annotate_runtimes_read(struct opr_annotate_runtimes *runtimes, struct opr_selection *selection,
			       const struct opr_query *query)
{
	struct opr_runtime_rows *rows = &runtimes->rows;
	int err = opr_runtime_rows_read(rows, selection, query);

	if (!err)
		err = make_classes(&runtimes->classes, &rows->sums.events);
	return err ? err : opr_annotation_make(&runtimes->annotation, &rows->report);
}

void opr_annotate_runtimes_free(struct opr_annotate_runtimes *runtimes)
{
	opr_annotation_free(&runtimes->annotation);
	opr_classes_free(&runtimes->classes);
	opr_runtime_rows_free(&runtimes->rows);
}
