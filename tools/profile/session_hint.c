/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/session_hint.h"

#include <sys/stat.h>

#include "libop/base/nearest.h"
#include "tools/common/archive.h"
#include "tools/common/session_dir.h"

#define SHOWN_MAX 10

static bool is_there(const char *dir, const char *below, mode_t type)
{
	struct op_text path = { 0 };
	struct stat st;
	bool there;

	op_text_printf(&path, "%s/%s", dir, below);
	there = !path.failed && !stat(op_text_get(&path), &st) && (st.st_mode & S_IFMT) == type;
	op_text_free(&path);
	return there;
}

static bool is_archive(const char *path)
{
	return is_there(path, OPR_ARCHIVE_FACTS, S_IFREG) || is_there(path, OPR_ARCHIVE_SESSIONS "/samples", S_IFDIR);
}

static bool is_session(const char *session_dir, const char *name)
{
	struct op_text samples = { 0 };
	bool there;

	op_text_printf(&samples, "%s/samples", session_dir);
	there = *name != '.' && !strchr(name, '/') && is_there(op_text_get(&samples), name, S_IFDIR);
	op_text_free(&samples);
	return there;
}

static void add(struct op_text *text, const char *name, const char *what, const char *words)
{
	op_text_add_clean(text, name);
	op_text_printf(text, " is %s: %s", what, words);
	op_text_add_clean(text, name);
	op_text_add(text, " reads it.");
}

void opr_hint_at_name(struct op_text *text, const char *session_dir, const char *name, bool is_session_name)
{
	if (is_archive(name))
		add(text, name, "an archive", "archive:");
	else if (is_there(name, "samples", S_IFDIR))
		add(text, name, "a session directory", "--session-dir=");
	else if (!is_session_name && is_session(session_dir, name))
		add(text, name, "a session", "session:");
	else if (is_archive(session_dir))
		add(text, session_dir, "an archive", "archive:");
}

void opr_hint_at_sessions(struct op_text *text, const char *session_dir, const char *name)
{
	struct op_nearest nearest;
	struct opr_words names = { 0 };

	if (!is_there(session_dir, "samples", S_IFDIR) || opr_session_names(session_dir, &names) < 0 || !names.nr_words) {
		opr_words_free(&names);
		return;
	}
	op_text_add(text, " The sessions there:");
	for (size_t i = 0; i < names.nr_words && i < SHOWN_MAX; i++) {
		op_text_add(text, i ? ", " : " ");
		op_text_add_clean(text, names.words[i]);
	}
	if (names.nr_words > SHOWN_MAX)
		op_text_printf(text, " and %zu more", names.nr_words - SHOWN_MAX);
	op_nearest_init(&nearest, name);
	for (size_t i = 0; i < names.nr_words; i++)
		op_nearest_try(&nearest, names.words[i]);
	op_nearest_add_hint(&nearest, "session:", text);
	op_text_add(text, *nearest.best ? "" : ".");
	opr_words_free(&names);
}
