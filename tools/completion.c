/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/completion.h"

#include <ctype.h>
#include <errno.h>
#include <strings.h>

/* What may follow an option. */
enum value_kind { VALUE_NONE, VALUE_ANY, VALUE_FILE, VALUE_DIRECTORY, VALUE_WORDS };

static enum value_kind kind_of(const struct poptOption *option)
{
	static const struct {
		const char *description;
		enum value_kind kind;
	} kinds[] = {
		{ "file", VALUE_FILE }, { "directory", VALUE_DIRECTORY }, { "dir", VALUE_DIRECTORY }, { "path", VALUE_DIRECTORY }
	};

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

static void write_words(FILE *out, const char *words)
{
	for (; *words; words++)
		fputc(strchr("|,", *words) ? ' ' : *words, out);
}

/* ---- bash ---- */

static void write_bash_name(FILE *out, const struct poptOption *option)
{
	fprintf(out, " --%s%s", option->longName, kind_of(option) == VALUE_NONE ? "" : "=");
	if (option->shortName)
		fprintf(out, " -%c", option->shortName);
}

/* What an option takes that says no more of it may be a file for a program that works on files; for another one, nothing is known. */
static void write_bash_value(FILE *out, const struct poptOption *option)
{
	enum value_kind kind = kind_of(option);

	if (kind == VALUE_NONE || (kind == VALUE_ANY && option->argInfo & POPT_ARGFLAG_OPTIONAL))
		return;
	fprintf(out, "\t--%s", option->longName);
	if (option->shortName)
		fprintf(out, "|-%c", option->shortName);
	if (kind == VALUE_ANY) {
		fputs(") kind=$rest ;;\n", out);
	} else if (kind == VALUE_WORDS) {
		fputs(") values=\"", out);
		write_words(out, option->argDescrip);
		fputs("\" ;;\n", out);
	} else {
		fprintf(out, ") kind=%s ;;\n", kind == VALUE_FILE ? "-f" : "-d");
	}
}

/* readline splits --name=value into three words, and a value may be a list: what stands before its last comma stays. */
static void write_bash(FILE *out, const char *program, const struct poptOption *table, bool takes_files)
{
	fprintf(out, "# bash completion for %s, made from its table of options\n_opd_%s() {\n", program, program);
	fputs("\tlocal word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} before= kind= values=", out);
	fprintf(out, " rest=%s\n", takes_files ? "-f" : "none");
	fputs("\tif [ \"$word\" = = ]; then word=; elif [ \"$option\" = = ]; then option=${COMP_WORDS[COMP_CWORD - 2]}; fi\n"
	      "\tcase $option in\n",
	      out);
	visit(out, table, write_bash_value);
	fputs("\tesac\n\tif [ -n \"$values\" ]; then\n"
	      "\t\tcase $word in *,*) before=${word%,*}, ;; esac\n"
	      "\t\tCOMPREPLY=($(compgen -P \"$before\" -W \"$values\" -- \"${word##*,}\"))\n"
	      "\telif [ \"${word:0:1}\" = - ] || [ \"$word$kind$rest\" = none ]; then\n\t\tCOMPREPLY=($(compgen -W \"",
	      out);
	visit(out, table, write_bash_name);
	fputs("\" -- \"$word\"))\n\t\tcase ${COMPREPLY[0]} in *=) compopt -o nospace ;; esac\n"
	      "\telif [ \"${kind:=$rest}\" != none ]; then\n\t\tcompopt -o filenames\n\t\tCOMPREPLY=($(compgen $kind -- "
	      "\"$word\"))\n\tfi\n}\n",
	      out);
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

static void write_zsh(FILE *out, const char *program, const struct poptOption *table, bool takes_files)
{
	fprintf(out, "#compdef %s\n# made from the table of options of %s\n_arguments -s", program, program);
	visit(out, table, write_zsh_option);
	fputs(takes_files ? " \\\n\t'*:file:_files'\n" : "\n", out);
}

int opr_completion_write(FILE *out, const char *program, const struct poptOption *table, bool takes_files, const char *shell)
{
	static const struct {
		const char *shell;
		void (*write)(FILE *out, const char *program, const struct poptOption *table, bool takes_files);
	} writers[] = { { "bash", write_bash }, { "zsh", write_zsh } };

	for (size_t i = 0; i < op_array_size(writers); i++) {
		if (strcmp(shell, writers[i].shell))
			continue;
		writers[i].write(out, program, table, takes_files);
		return 0;
	}
	return -EINVAL;
}
