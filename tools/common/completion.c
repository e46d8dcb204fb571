/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/common/completion.h"

#include <ctype.h>
#include <errno.h>
#include <strings.h>

/* The values of an option. */
enum value_kind { VALUE_NONE, VALUE_ANY, VALUE_FILE, VALUE_DIRECTORY, VALUE_TIME, VALUE_EVENT, VALUE_WORDS };

#define TIMES      "now today yesterday" /* some of the values of --since */
#define EVENTS     "ophelp --names 2>/dev/null"
#define ZSH_EVENTS ":event:{local -a names; names=(${(f)\"$(" EVENTS ")\"}); compadd -a names}"

static enum value_kind kind_of(const struct opr_option *option)
{
	static const struct {
		const char *description;
		enum value_kind kind;
	} kinds[] = { { "file", VALUE_FILE },     { "patterns", VALUE_FILE },  { "directory", VALUE_DIRECTORY },
		      { "dir", VALUE_DIRECTORY }, { "path", VALUE_DIRECTORY }, { "time", VALUE_TIME },
		      { "event", VALUE_EVENT } };

	if (!option->value_help)
		return VALUE_NONE;
	for (size_t i = 0; i < op_array_size(kinds); i++)
		if (!strcasecmp(option->value_help, kinds[i].description))
			return kinds[i].kind;
	return strpbrk(option->value_help, "|,") && islower((unsigned char)*option->value_help) ? VALUE_WORDS : VALUE_ANY;
}

/* Calls fn for each option that is shown. */
static void visit(FILE *out, const struct opr_command *command, void (*fn)(FILE *out, const struct opr_option *option))
{
	const struct opr_option *option;

	for (size_t i = 0; (option = opr_command_row(command, i)); i++)
		if (option->name && option->help)
			fn(out, option);
}

/* True when names of events are completed anywhere on the command line. */
static bool has_events(const struct opr_command *command)
{
	const struct opr_option *option;

	for (size_t i = 0; (option = opr_command_row(command, i)); i++)
		if (kind_of(option) == VALUE_EVENT)
			return true;
	return command->words == OPR_WORDS_EVENTS;
}

static void write_words(FILE *out, const char *words)
{
	for (; *words; words++)
		if (!strchr("[]", *words)) /* the value is optional */
			fputc(strchr("|,", *words) ? ' ' : *words, out);
}

/* Writes the tags of a kind with `between` between them. */
static void write_tags(FILE *out, opr_tag_fn *tag, enum opr_tag_kind kind, const char *between)
{
	enum opr_tag_kind this_kind;
	const char *name, *before = "";

	for (size_t i = 0; (name = tag(i, &this_kind)); i++) {
		if (this_kind != kind)
			continue;
		fprintf(out, "%s%s", before, name);
		before = between;
	}
}

static void write_all_tags(FILE *out, opr_tag_fn *tag, const char *between)
{
	enum opr_tag_kind kind;
	const char *name;

	for (size_t i = 0; (name = tag(i, &kind)); i++)
		fprintf(out, "%s%s", i ? between : "", name);
}

/* ---- bash ---- */

static void write_bash_name(FILE *out, const struct opr_option *option)
{
	fprintf(out, " --%s%s", option->name, kind_of(option) == VALUE_NONE ? "" : "=");
	if (option->short_name)
		fprintf(out, " -%c", option->short_name);
}

/* Without a case for a number or a symbol, the shell would offer files. */
static void write_bash_value(FILE *out, const struct opr_option *option)
{
	enum value_kind kind = kind_of(option);

	if (kind == VALUE_NONE || (kind == VALUE_ANY && *option->value_help == '['))
		return;
	fprintf(out, "\t--%s", option->name);
	if (option->short_name)
		fprintf(out, "|-%c", option->short_name);
	if (kind == VALUE_ANY) {
		fputs(") kind=none ;;\n", out);
	} else if (kind == VALUE_TIME) {
		fputs(") values=\"" TIMES "\" ;;\n", out);
	} else if (kind == VALUE_EVENT) {
		fputs(") kind=events count=: ;;\n", out);
	} else if (kind == VALUE_WORDS) {
		fputs(") values=\"", out);
		write_words(out, option->value_help);
		fputs("\" ;;\n", out);
	} else {
		fprintf(out, ") kind=%s ;;\n", kind == VALUE_FILE ? "-f" : "-d");
	}
}

/* readline may cut words at colons. Then a tag and its value are three words, else one. */
static void write_bash_tags(FILE *out, opr_tag_fn *tag)
{
	static const char *const kinds[] = {
		[OPR_TAG_ANY] = "none", [OPR_TAG_FILE] = "-f", [OPR_TAG_DIRECTORY] = "-d", [OPR_TAG_SESSION] = "sessions"
	};

	fputs("\tlocal tag= tags= name i where=\n\tif [ \"$word\" = : ]; then tag=$option: word=\n"
	      "\telif [ \"$option\" = : ]; then tag=${COMP_WORDS[COMP_CWORD - 2]}:\n"
	      "\telif [[ $word = @(",
	      out);
	write_all_tags(out, tag, "|");
	fputs(")* ]]; then tag=${word%%:*}: before=${word%%:*}: word=${word#*:}; fi\n\tcase $tag in\n", out);
	for (size_t i = 0; i < op_array_size(kinds); i++) {
		fputc('\t', out);
		write_tags(out, tag, (enum opr_tag_kind)i, "|");
		fprintf(out, ") kind=%s ;;\n", kinds[i]);
	}
	fputs("\tesac\n\t[ -n \"$tag$kind$values\" ] || tags=\"", out);
	write_all_tags(out, tag, " ");
	fputs("\"\n\tcase $tag$word in *:*,*) before=$before${word%,*}, word=${word##*,} ;; esac\n"
	      "\tif [ \"$kind\" = sessions ]; then\n\t\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	      "\t\t\t[ \"${COMP_WORDS[i]}\" = --session-dir ] || continue\n"
	      "\t\t\twhere=${COMP_WORDS[i + 1]}\n\t\t\t[ \"$where\" != = ] || where=${COMP_WORDS[i + 2]}\n\t\tdone\n"
	      "\t\twhile IFS= read -r name; do\n"
	      "\t\t\t[[ $name = \"$word\"* ]] && printf -v name %q \"$name\" && COMPREPLY+=(\"$before$name\")\n"
	      "\t\tdone < <(\"${COMP_WORDS[0]/#~\\//$HOME/}\" ${where:+\"--session-dir=${where/#~\\//$HOME/}\"} "
	      "--completion=" OPR_COMPLETION_SESSIONS " 2>/dev/null)\n\t\treturn\n\tfi\n",
	      out);
}

/* readline cuts names of tracepoints at their colon. `head` is the part before the cut. */
static void write_bash_colons(FILE *out)
{
	fputs("\tlocal head= count= name at=$COMP_CWORD\n"
	      "\tif [ \"$word\" = : ]; then word= at=$((at - 1)) head=${COMP_WORDS[at]}:\n"
	      "\telif [ \"$option\" = : ]; then at=$((at - 2)) head=${COMP_WORDS[at]}:; fi\n"
	      "\toption=${COMP_WORDS[at - 1]}\n"
	      "\tif [ \"$word\" = = ]; then word=; elif [ \"$option\" = = ]; then option=${COMP_WORDS[at - 2]}; fi\n",
	      out);
}

/* The name of an event as the value of an option is followed by a count. */
static void write_bash_events(FILE *out)
{
	fputs("\tif [ \"$kind\" = events ]; then\n\t\t[ -z \"$count\" ] || compopt -o nospace\n"
	      "\t\twhile IFS= read -r name; do\n"
	      "\t\t\t[[ $name = \"$head$word\"* ]] && COMPREPLY+=(\"${name#\"$head\"}$count\")\n"
	      "\t\tdone < <(" EVENTS ")\n\t\treturn\n\tfi\n",
	      out);
}

/* Completes files, and tags where the tool has them. A tag gets no blank behind it. */
static void write_bash_words(FILE *out, opr_tag_fn *tag)
{
	if (!tag) {
		fputs("\t\tcompopt -o filenames\n\t\tmapfile -t COMPREPLY < <(compgen $kind -- \"$word\")\n", out);
		return;
	}
	fputs("\t\tCOMPREPLY=($(compgen -W \"$tags\" -- \"$word\"))\n\t\tif [ ${#COMPREPLY[@]} -gt 0 ]; then compopt -o nospace; "
	      "else compopt -o filenames; fi\n"
	      "\t\tmapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -P \"$before\" $kind -- \"$word\")\n",
	      out);
}

/*
 * readline splits --name=value into three words. Of a list, only the last part changes.
 */
static void write_bash(FILE *out, const struct opr_command *command)
{
	static const char *const rests[] = {
		[OPR_WORDS_FILES] = "-f", [OPR_WORDS_EVENTS] = "events", [OPR_WORDS_NONE] = "none", [OPR_WORDS_COMMAND] = "'-c -f'"
	};
	const char *program = command->program;
	bool events = has_events(command);

	fprintf(out, "# bash completion for %s, made from its table of options\n_opd_%s() {\n", program, program);
	fputs("\tlocal word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} before= kind= values=", out);
	fprintf(out, " rest=%s\n", rests[command->words]);
	if (events)
		write_bash_colons(out);
	else
		fputs("\tif [ \"$word\" = = ]; then word=; elif [ \"$option\" = = ]; then option=${COMP_WORDS[COMP_CWORD - 2]}; "
		      "fi\n",
		      out);
	fputs("\tcase $option in\n", out);
	visit(out, command, write_bash_value);
	if (events)
		fputs("\t:) kind=none ;;\n", out);
	fputs("\tesac\n", out);
	if (command->tag)
		write_bash_tags(out, command->tag);
	fputs("\tif [ -n \"$values\" ]; then\n"
	      "\t\tcase $word in *,*) before=${word%,*}, ;; esac\n"
	      "\t\tCOMPREPLY=($(compgen -P \"$before\" -W \"$values\" -- \"${word##*,}\"))\n"
	      "\telif [ \"${word:0:1}\" = - ] || [ \"$word$kind$rest\" = none ]; then\n\t\tCOMPREPLY=($(compgen -W \"",
	      out);
	visit(out, command, write_bash_name);
	fputs("\" -- \"$word\"))\n\t\tcase ${COMPREPLY[0]} in *=) compopt -o nospace ;; esac\n"
	      "\t\treturn\n\tfi\n\t: \"${kind:=$rest}\"\n",
	      out);
	if (events)
		write_bash_events(out);
	fputs("\tif [ -z \"$values\" ] && [ \"$kind\" != none ]; then\n", out);
	write_bash_words(out, command->tag);
	fputs("\tfi\n}\n", out);
	fprintf(out, "complete -F _opd_%s %s\n", program, program);
}

/* ---- zsh ---- */

/* Quotes text for a specification of _arguments between single quotes. */
static void write_zsh_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", out);
		else if (strchr("[]:\\", *text))
			fprintf(out, "\\%c", *text);
		else
			fputc(*text, out);
	}
}

static void write_zsh_value(FILE *out, const struct opr_option *option)
{
	switch (kind_of(option)) {
	case VALUE_NONE:
		break;
	case VALUE_ANY:
		fputs(":value:", out);
		break;
	case VALUE_FILE:
		fputs(":file:_files", out);
		break;
	case VALUE_DIRECTORY:
		fputs(":directory:_directories", out);
		break;
	case VALUE_EVENT:
		fputs(ZSH_EVENTS, out);
		break;
	case VALUE_TIME:
		fputs(":time:(" TIMES ")", out);
		break;
	case VALUE_WORDS:
		fprintf(out, ":%s:", strchr(option->value_help, '|') ? "word" : "list");
		fputs(strchr(option->value_help, '|') ? "(" : "_values -s , list ", out);
		write_words(out, option->value_help);
		if (strchr(option->value_help, '|'))
			fputc(')', out);
		break;
	}
}

static void write_zsh_spec(FILE *out, const struct opr_option *option, const char *name)
{
	fprintf(out, " \\\n\t'%s", name);
	if (kind_of(option) != VALUE_NONE)
		fputs(name[1] == '-' ? "=" : "+", out);
	fputc('[', out);
	write_zsh_text(out, option->help);
	fputc(']', out);
	write_zsh_value(out, option);
	fputc('\'', out);
}

static void write_zsh_option(FILE *out, const struct opr_option *option)
{
	char name[64];

	snprintf(name, sizeof(name), "--%s", option->name);
	write_zsh_spec(out, option, name);
	if (!option->short_name)
		return;
	snprintf(name, sizeof(name), "-%c", option->short_name);
	write_zsh_spec(out, option, name);
}

/* Writes a function that completes words that are no options. */
static void write_zsh_tags(FILE *out, const struct opr_command *command)
{
	static const char *const kinds[] = {
		[OPR_TAG_ANY] = "_message value",
		[OPR_TAG_FILE] = "compset -P '*,'; _files",
		[OPR_TAG_DIRECTORY] = "_directories",
		[OPR_TAG_SESSION] =
			"compset -P '*,'\n\t\tnames=(${(f)\"$(${(Q)words[1]/#\\~\\//$HOME/} ${where:+--session-dir=$where} "
			"--completion=" OPR_COMPLETION_SESSIONS " 2>/dev/null)\"})\n\t\tcompadd -a names",
	};

	fprintf(out, "_opd_%s_word() {\n\tlocal -a names\n\tlocal where=${(Q)opt_args[--session-dir]}\n\t", command->program);
	for (size_t i = 0; i < op_array_size(kinds); i++) {
		fputs("if compset -P '(", out);
		write_tags(out, command->tag, (enum opr_tag_kind)i, "|");
		fprintf(out, ")'; then\n\t\t%s\n\tel", kinds[i]);
	}
	fputs("se\n\t\tcompadd -S '' -- ", out);
	write_all_tags(out, command->tag, " ");
	fputs("\n\t\t_files\n\tfi\n}\n", out);
}

static void write_zsh(FILE *out, const struct opr_command *command)
{
	static const char *const words[] = { [OPR_WORDS_FILES] = " \\\n\t'*:file:_files'\n",
					     [OPR_WORDS_EVENTS] = " \\\n\t'*" ZSH_EVENTS "'\n",
					     [OPR_WORDS_NONE] = "\n",
					     [OPR_WORDS_COMMAND] =
						     " \\\n\t'(-):command: _command_names -e' \\\n\t'*::arguments: _normal'\n" };

	fprintf(out, "#compdef %s\n# made from the table of options of %s\n", command->program, command->program);
	if (command->tag)
		write_zsh_tags(out, command);
	fputs("_arguments -s", out);
	visit(out, command, write_zsh_option);
	if (command->tag)
		fprintf(out, " \\\n\t'*:profile specification:_opd_%s_word'\n", command->program);
	else
		fputs(words[command->words], out);
}

int opr_completion_write(FILE *out, const struct opr_command *command, const char *shell)
{
	static const struct {
		const char *shell;
		void (*write)(FILE *out, const struct opr_command *command);
	} writers[] = { { "bash", write_bash }, { "zsh", write_zsh } };

	for (size_t i = 0; i < op_array_size(writers); i++) {
		if (strcmp(shell, writers[i].shell))
			continue;
		writers[i].write(out, command);
		return 0;
	}
	return -EINVAL;
}
