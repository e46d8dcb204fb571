/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Appends blocks to a timeline, for test_report_window.py. Argument: a directory. Standard input
 * has lines of words; times are nanoseconds since 1970, and the other clocks run with them.
 *
 *   event NAME [ROLE [UNIT]]
 *   row EVENT NAME AMOUNT
 *   records NUMBER                                      of each "add" behind, until the next one
 *   add AMOUNT KIND VALUE IMAGE [KIND VALUE IMAGE]...   =TEXT may stand for a VALUE
 *   block BEGIN END [GAP]                               ends a block of what came before
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libop/timeline/append.h"

#define WORDS_MAX 256

static uint64_t number(const char *word)
{
	return strtoull(word, NULL, 0);
}

static uint16_t nr_records;

static int add(struct op_minute *minute, char **words, size_t nr_words)
{
	struct op_minute_step steps[WORDS_MAX / 3];
	size_t nr_steps = 0;

	for (size_t i = 2; i + 2 < nr_words; i += 3)
		steps[nr_steps++] = (struct op_minute_step){
			.kind = (uint16_t)number(words[i]),
			.value = words[i + 1][0] == '=' ? op_minute_text(minute, words[i + 1] + 1) : number(words[i + 1]),
			.image = number(words[i + 2]),
		};
	return op_minute_add_waits(minute, steps, nr_steps, number(words[1]), nr_records) ? 0 : -ENOSPC;
}

static int end_block(struct op_timeline_writer *writer, struct op_minute *minute, char **words)
{
	const struct op_encode_limits limits = { 0 };
	uint64_t begin_ns = number(words[1]), end_ns = number(words[2]);
	int err;

	minute->begin = (struct op_timeline_clocks){ begin_ns, begin_ns, begin_ns };
	minute->end = (struct op_timeline_clocks){ end_ns, end_ns, end_ns };
	minute->gap = words[3] ? (uint32_t)number(words[3]) : OP_GAP_NONE;
	err = op_timeline_append(writer, minute, &limits);
	op_minute_clear(minute);
	return err;
}

static int take_line(struct op_timeline_writer *writer, struct op_minute *minute, char *line)
{
	char *words[WORDS_MAX], *rest = line;
	size_t nr_words = 0;
	uint32_t event;

	while (nr_words < WORDS_MAX && (words[nr_words] = strsep(&rest, " \n")) && *words[nr_words])
		nr_words++;
	if (nr_words >= 2 && nr_words <= 4 && !strcmp(words[0], "event"))
		return op_minute_event(minute, words[1], nr_words == 4 ? (uint32_t)number(words[3]) : OP_UNIT_SAMPLES,
				       nr_words >= 3 ? (uint32_t)number(words[2]) : 0, &event);
	if (nr_words == 2 && !strcmp(words[0], "records")) {
		nr_records = (uint16_t)number(words[1]);
		return 0;
	}
	if (nr_words == 4 && !strcmp(words[0], "row"))
		return op_minute_add_row(minute, (uint32_t)number(words[1]), words[2], (int64_t)number(words[3]));
	if (nr_words > 4 && !strcmp(words[0], "add"))
		return add(minute, words, nr_words);
	words[nr_words < WORDS_MAX ? nr_words : 3] = NULL;
	if ((nr_words == 3 || nr_words == 4) && !strcmp(words[0], "block"))
		return end_block(writer, minute, words);
	return -EINVAL;
}

int main(int argc, char **argv)
{
	struct op_timeline_writer *writer;
	struct op_minute minute;
	size_t capacity = 0;
	char *line = NULL;
	int dir_fd = argc == 2 ? open(argv[1], O_RDONLY | O_DIRECTORY) : -1, err;

	if (dir_fd < 0 || op_minute_init(&minute, 0) || op_timeline_append_open(dir_fd, "timeline", &writer, NULL))
		return EXIT_FAILURE;
	for (err = 0; !err && getline(&line, &capacity, stdin) > 0;)
		err = take_line(writer, &minute, line);
	if (err)
		fprintf(stderr, "%s: %s\n", line, strerror(-err));
	free(line);
	op_timeline_append_close(writer);
	op_minute_free(&minute);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
