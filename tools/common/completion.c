/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/common/completion.h"

#include <ctype.h>
#include <errno.h>
#include <strings.h>

/* What may follow an option. */
enum value_kind { VALUE_NONE, VALUE_ANY, VALUE_FILE, VALUE_DIRECTORY, VALUE_TIME, VALUE_EVENT, VALUE_WORDS };

#define TIMES      "now today yesterday" /* some that --since takes */
#define EVENTS     "ophelp --names 2>/dev/null"
#define ZSH_EVENTS ":event:{local -a names; names=(${(f)\"$(" EVENTS ")\"}); compadd -a names}"

static enum value_kind kind_of(const struct poptOption *option)
{
	static const struct {
		const char *description;
		enum value_kind kind;
	} kinds[] = { { "file", VALUE_FILE },     { "patterns", VALUE_FILE },  { "directory", VALUE_DIRECTORY },
		      { "dir", VALUE_DIRECTORY }, { "path", VALUE_DIRECTORY }, { "time", VALUE_TIME },
		      { "event", VALUE_EVENT } };

	if ((option->argInfo & POPT_ARG_MASK) == POPT_ARG_NONE)
		return VALUE_NONE;
	if (!option->argDescrip)
		return VALUE_ANY;
	for (size_t i = 0; i < op_array_size(kinds); i++)
		if (!strcasecmp(option->argDescrip, kinds[i].description))
			return kinds[i].kind;
	return strpbrk(option->argDescrip, "|,") && islower((unsigned char)*option->argDescrip) ? VALUE_WORDS : VALUE_ANY;
}

/* Calls for each option that has a name and is shown, those of included tables too. */
typedef void visit_fn(FILE *out, const struct poptOption *option);

static void visit(FILE *out, const struct poptOption *table, visit_fn *fn)
{
	for (const struct poptOption *option = table; option->longName || option->shortName || option->arg; option++) {
		if ((option->argInfo & POPT_ARG_MASK) == POPT_ARG_INCLUDE_TABLE)
			visit(out, option->arg == poptHelpOptions ? poptHelpOptions : option->arg, fn);
		else if (option->longName && !(option->argInfo & POPT_ARGFLAG_DOC_HIDDEN))
			fn(out, option);
	}
}

static bool has_events(const struct poptOption *table)
{
	for (; table->longName || table->shortName || table->arg; table++)
		if ((table->argInfo & POPT_ARG_MASK) != POPT_ARG_INCLUDE_TABLE && kind_of(table) == VALUE_EVENT)
			return true;
	return false;
}

static void write_words(FILE *out, const char *words)
{
	for (; *words; words++)
		fputc(strchr("|,", *words) ? ' ' : *words, out);
}

/* Calls for each tag of a kind, with what is to stand before all but the first. */
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

static void write_bash_name(FILE *out, const struct poptOption *option)
{
	fprintf(out, " --%s%s", option->longName, kind_of(option) == VALUE_NONE ? "" : "=");
	if (option->shortName)
		fprintf(out, " -%c", option->shortName);
}

/* A number, or the name of a symbol, is no file. */
static void write_bash_value(FILE *out, const struct poptOption *option)
{
	enum value_kind kind = kind_of(option);

	if (kind == VALUE_NONE || (kind == VALUE_ANY && option->argInfo & POPT_ARGFLAG_OPTIONAL))
		return;
	fprintf(out, "\t--%s", option->longName);
	if (option->shortName)
		fprintf(out, "|-%c", option->shortName);
	if (kind == VALUE_ANY) {
		fputs(") kind=none ;;\n", out);
	} else if (kind == VALUE_TIME) {
		fputs(") values=\"" TIMES "\" ;;\n", out);
	} else if (kind == VALUE_EVENT) {
		fputs(") kind=events count=: ;;\n", out);
	} else if (kind == VALUE_WORDS) {
		fputs(") values=\"", out);
		write_words(out, option->argDescrip);
		fputs("\" ;;\n", out);
	} else {
		fprintf(out, ") kind=%s ;;\n", kind == VALUE_FILE ? "-f" : "-d");
	}
}

/* A tag and its value are one word or three, as readline is told to cut at colons or not. */
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

/* readline cuts a word at colons, which names of tracepoints have: `head` is what stands before the one before the word. */
static void write_bash_colons(FILE *out)
{
	fputs("\tlocal head= count= name at=$COMP_CWORD\n"
	      "\tif [ \"$word\" = : ]; then word= at=$((at - 1)) head=${COMP_WORDS[at]}:\n"
	      "\telif [ \"$option\" = : ]; then at=$((at - 2)) head=${COMP_WORDS[at]}:; fi\n"
	      "\toption=${COMP_WORDS[at - 1]}\n"
	      "\tif [ \"$word\" = = ]; then word=; elif [ \"$option\" = = ]; then option=${COMP_WORDS[at - 2]}; fi\n",
	      out);
}

/* A count follows a name that is an option's value. */
static void write_bash_events(FILE *out)
{
	fputs("\tif [ \"$kind\" = events ]; then\n\t\t[ -z \"$count\" ] || compopt -o nospace\n"
	      "\t\twhile IFS= read -r name; do\n"
	      "\t\t\t[[ $name = \"$head$word\"* ]] && COMPREPLY+=(\"${name#\"$head\"}$count\")\n"
	      "\t\tdone < <(" EVENTS ")\n\t\treturn\n\tfi\n",
	      out);
}

/* Files, and tags where there are any: what is no whole word is completed on. */
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

/* readline splits --name=value into three words, and a value may be a list: what stands before its last comma stays. */
static void write_bash(FILE *out, const struct opr_completion *completion)
{
	const char *program = completion->program, *rest = completion->takes_files ? "-f" : "none";
	bool events = completion->takes_events || has_events(completion->table);

	fprintf(out, "# bash completion for %s, made from its table of options\n_opd_%s() {\n", program, program);
	fputs("\tlocal word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} before= kind= values=", out);
	fprintf(out, " rest=%s\n", completion->takes_events ? "events" : rest);
	if (events)
		write_bash_colons(out);
	else
		fputs("\tif [ \"$word\" = = ]; then word=; elif [ \"$option\" = = ]; then option=${COMP_WORDS[COMP_CWORD - 2]}; "
		      "fi\n",
		      out);
	fputs("\tcase $option in\n", out);
	visit(out, completion->table, write_bash_value);
	if (events)
		fputs("\t:) kind=none ;;\n", out);
	fputs("\tesac\n", out);
	if (completion->tag)
		write_bash_tags(out, completion->tag);
	fputs("\tif [ -n \"$values\" ]; then\n"
	      "\t\tcase $word in *,*) before=${word%,*}, ;; esac\n"
	      "\t\tCOMPREPLY=($(compgen -P \"$before\" -W \"$values\" -- \"${word##*,}\"))\n"
	      "\telif [ \"${word:0:1}\" = - ] || [ \"$word$kind$rest\" = none ]; then\n\t\tCOMPREPLY=($(compgen -W \"",
	      out);
	visit(out, completion->table, write_bash_name);
	fputs("\" -- \"$word\"))\n\t\tcase ${COMPREPLY[0]} in *=) compopt -o nospace ;; esac\n"
	      "\t\treturn\n\tfi\n\t: \"${kind:=$rest}\"\n",
	      out);
	if (events)
		write_bash_events(out);
	fputs("\tif [ -z \"$values\" ] && [ \"$kind\" != none ]; then\n", out);
	write_bash_words(out, completion->tag);
	fputs("\tfi\n}\n", out);
	fprintf(out, "complete -F _opd_%s %s\n", program, program);
}

/* ---- zsh ---- */

/* In a specification of _arguments between single quotes. */
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

static void write_zsh_value(FILE *out, const struct poptOption *option)
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
		fprintf(out, ":%s:", strchr(option->argDescrip, '|') ? "word" : "list");
		fputs(strchr(option->argDescrip, '|') ? "(" : "_values -s , list ", out);
		write_words(out, option->argDescrip);
		if (strchr(option->argDescrip, '|'))
			fputc(')', out);
		break;
	}
}

static void write_zsh_spec(FILE *out, const struct poptOption *option, const char *name)
{
	fprintf(out, " \\\n\t'%s", name);
	if (kind_of(option) != VALUE_NONE)
		fputs(name[1] == '-' ? "=" : "+", out);
	fputc('[', out);
	write_zsh_text(out, option->descrip ? option->descrip : "");
	fputc(']', out);
	write_zsh_value(out, option);
	fputc('\'', out);
}

static void write_zsh_option(FILE *out, const struct poptOption *option)
{
	char name[64];

	snprintf(name, sizeof(name), "--%s", option->longName);
	write_zsh_spec(out, option, name);
	if (!option->shortName)
		return;
	snprintf(name, sizeof(name), "-%c", option->shortName);
	write_zsh_spec(out, option, name);
}

/* A function for words that are no options. */
static void write_zsh_tags(FILE *out, const struct opr_completion *completion)
{
	static const char *const kinds[] = {
		[OPR_TAG_ANY] = "_message value",
		[OPR_TAG_FILE] = "compset -P '*,'; _files",
		[OPR_TAG_DIRECTORY] = "_directories",
		[OPR_TAG_SESSION] =
			"compset -P '*,'\n\t\tnames=(${(f)\"$(${(Q)words[1]/#\\~\\//$HOME/} ${where:+--session-dir=$where} "
			"--completion=" OPR_COMPLETION_SESSIONS " 2>/dev/null)\"})\n\t\tcompadd -a names",
	};

	fprintf(out, "_opd_%s_word() {\n\tlocal -a names\n\tlocal where=${(Q)opt_args[--session-dir]}\n\t", completion->program);
	for (size_t i = 0; i < op_array_size(kinds); i++) {
		fputs("if compset -P '(", out);
		write_tags(out, completion->tag, (enum opr_tag_kind)i, "|");
		fprintf(out, ")'; then\n\t\t%s\n\tel", kinds[i]);
	}
	fputs("se\n\t\tcompadd -S '' -- ", out);
	write_all_tags(out, completion->tag, " ");
	fputs("\n\t\t_files\n\tfi\n}\n", out);
}

static void write_zsh(FILE *out, const struct opr_completion *completion)
{
	fprintf(out, "#compdef %s\n# made from the table of options of %s\n", completion->program, completion->program);
	if (completion->tag)
		write_zsh_tags(out, completion);
	fputs("_arguments -s", out);
	visit(out, completion->table, write_zsh_option);
	if (completion->tag)
		fprintf(out, " \\\n\t'*:profile specification:_opd_%s_word'\n", completion->program);
	else
		fputs(completion->takes_events  ? " \\\n\t'*" ZSH_EVENTS "'\n"
		      : completion->takes_files ? " \\\n\t'*:file:_files'\n"
						: "\n",
		      out);
}

int opr_completion_write(FILE *out, const struct opr_completion *completion, const char *shell)
{
	static const struct {
		const char *shell;
		void (*write)(FILE *out, const struct opr_completion *completion);
	} writers[] = { { "bash", write_bash }, { "zsh", write_zsh } };

	for (size_t i = 0; i < op_array_size(writers); i++) {
		if (strcmp(shell, writers[i].shell))
			continue;
		writers[i].write(out, completion);
		return 0;
	}
	return -EINVAL;
}
