/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/oparchive/earlier.h"

#include <errno.h>
#include <fcntl.h>
#include <sha2.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "tools/common/log.h"

/* ---- lines, by their subject ---- */

struct opr_earlier_line {
	struct op_hlink link;
	const char *word, *subject;
};

/* The path of "NUMBER PATH"; nothing for the only session-dir; else the value. */
static const char *subject_of(const char *word, const char *value)
{
	const char *blank = strchr(value, ' ');

	if (!strcmp(word, "session-dir"))
		return "";
	return !strcmp(word, "inode") && blank ? blank + 1 : value;
}

/* Lines "WORD<TAB>PATH<TAB>VALUE". */
static bool is_of_image(const char *word)
{
	static const char *const words[] = { "package", "debug", "absent", "cut" };

	for (size_t i = 0; i < op_array_size(words); i++)
		if (!strcmp(word, words[i]))
			return true;
	return false;
}

static uint64_t hash_of(const char *word, const char *subject)
{
	return op_hash_bytes(op_hash_bytes(0, word, strlen(word)), subject, strlen(subject));
}

static int add_lines(struct opr_earlier *earlier)
{
	struct opr_earlier_line *line;
	size_t nr_lines = 1;
	int err = 0;

	for (const char *at = earlier->text; (at = strchr(at, '\n')); at++)
		nr_lines++;
	earlier->lines = line = calloc(nr_lines, sizeof(*earlier->lines));
	earlier->line_text = strdup(earlier->text);
	if (!earlier->lines || !earlier->line_text)
		return -ENOMEM;
	for (char *rest = earlier->line_text, *value; !err && (value = strsep(&rest, "\n"));) {
		line->word = strsep(&value, "\t");
		if (!value)
			continue;
		if (is_of_image(line->word))
			value[strcspn(value, "\t")] = '\0';
		line->subject = subject_of(line->word, value);
		err = op_htable_insert(&earlier->by_subject, &line->link, hash_of(line->word, line->subject));
		line++;
	}
	return err;
}

bool opr_earlier_has_line(const struct opr_earlier *earlier, const char *word, const char *value)
{
	const char *subject = subject_of(word, value);

	for (struct op_hlink *link = op_htable_first(&earlier->by_subject, hash_of(word, subject)); link;
	     link = op_htable_next(link)) {
		const struct opr_earlier_line *line = op_container_of(link, struct opr_earlier_line, link);

		if (!strcmp(line->word, word) && !strcmp(line->subject, subject))
			return true;
	}
	return false;
}

/* ---- files ---- */

bool opr_earlier_has(const struct opr_earlier *earlier, const char *name)
{
	return opr_sums_find(&earlier->sums, name + strspn(name, "/")) != NULL;
}

bool opr_earlier_has_session(const struct opr_earlier *earlier, const char *session)
{
	static const char samples[] = OPR_ARCHIVE_SAMPLES "/";
	size_t length = strlen(session);

	for (size_t i = 0; i < earlier->sums.nr_sums; i++) {
		const char *name = earlier->sums.sums[i].name;

		if (!strncmp(name, samples, strlen(samples)) && !strncmp(name + strlen(samples), session, length) &&
		    name[strlen(samples) + length] == '/')
			return true;
	}
	return false;
}

uint64_t opr_earlier_inode(const struct opr_earlier *earlier, const char *path)
{
	for (size_t i = 0; i < earlier->facts.nr_inodes; i++)
		if (!strcmp(earlier->facts.inodes[i].path, path))
			return earlier->facts.inodes[i].inode;
	return 0;
}

void opr_earlier_write_sums(const struct opr_earlier *earlier, struct op_text *text)
{
	for (size_t i = 0; i < earlier->sums.nr_sums; i++)
		if (strcmp(earlier->sums.sums[i].name, OPR_ARCHIVE_FACTS))
			opr_sums_write(text, earlier->sums.sums[i].digits, earlier->sums.sums[i].name);
}

/* ---- reading ---- */

static bool has_good_sum(const struct opr_earlier *earlier)
{
	const struct opr_sum *sum = opr_sums_find(&earlier->sums, OPR_ARCHIVE_FACTS);
	char digits[OPR_SUM_DIGITS + 1];

	SHA256Data((const uint8_t *)earlier->text, strlen(earlier->text), digits);
	return sum && earlier->sums.has_end && !earlier->sums.nr_damaged && !strncmp(sum->digits, digits, OPR_SUM_DIGITS);
}

static int read_files(struct opr_earlier *earlier, int dir_fd)
{
	int err = op_file_read(dir_fd, OPR_ARCHIVE_FACTS, OPR_FACTS_BYTES_MAX, &earlier->text);

	if (err == -ENOENT && faccessat(dir_fd, OPR_ARCHIVE_SUMS, F_OK, AT_SYMLINK_NOFOLLOW) && errno == ENOENT)
		return 0;
	if (!err)
		err = opr_sums_read(&earlier->sums, dir_fd);
	if (!err)
		err = has_good_sum(earlier) ? add_lines(earlier) : -EBADMSG;
	earlier->is_there = !err;
	return err;
}

int opr_earlier_read(struct opr_earlier *earlier, int dir_fd, const char *dir)
{
	int err;

	*earlier = (struct opr_earlier){ 0 };
	err = read_files(earlier, dir_fd);
	if (err == -ENOMEM)
		return opr_no_memory();
	if (err)
		return opr_error(err,
				 "the archive that is in %s is damaged (" OPR_ARCHIVE_FACTS " and " OPR_ARCHIVE_SUMS
				 ": %s): nothing is added to it",
				 dir, err == -EBADMSG ? "a checksum is wrong or missing" : strerror(-err));
	return earlier->is_there ? opr_archive_open(&earlier->facts, dir) : 0;
}

void opr_earlier_free(struct opr_earlier *earlier)
{
	if (!earlier)
		return;
	op_htable_free(&earlier->by_subject);
	free(earlier->lines);
	free(earlier->line_text);
	free(earlier->text);
	opr_archive_free(&earlier->facts);
	opr_sums_free(&earlier->sums);
	*earlier = (struct opr_earlier){ 0 };
}
