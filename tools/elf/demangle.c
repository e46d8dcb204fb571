/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/elf/demangle.h"

#include <ctype.h>
#include <errno.h>
#include <libiberty/demangle.h>

#include "tools/common/log.h"
#include "tools/common/option_values.h"

/* ---- short spellings of the standard library ---- */

struct spelling {
	const char *from, *to;
};

/* A longer spelling stands before its prefixes. */
static const struct spelling spellings[] = {
	{ "std::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string" },
	{ "std::basic_string<wchar_t, std::char_traits<wchar_t>, std::allocator<wchar_t> >", "std::wstring" },
	{ "std::basic_string_view<char, std::char_traits<char> >", "std::string_view" },
	{ "std::basic_ostream<char, std::char_traits<char> >", "std::ostream" },
	{ "std::basic_istream<char, std::char_traits<char> >", "std::istream" },
	{ "std::basic_iostream<char, std::char_traits<char> >", "std::iostream" },
	{ "std::basic_ofstream<char, std::char_traits<char> >", "std::ofstream" },
	{ "std::basic_ifstream<char, std::char_traits<char> >", "std::ifstream" },
	{ "std::basic_stringstream<char, std::char_traits<char>, std::allocator<char> >", "std::stringstream" },
	{ "std::basic_ostringstream<char, std::char_traits<char>, std::allocator<char> >", "std::ostringstream" },
	{ "std::basic_istringstream<char, std::char_traits<char>, std::allocator<char> >", "std::istringstream" },
	{ "std::basic_streambuf<char, std::char_traits<char> >", "std::streambuf" },
};

/* Inline namespaces, which only name the ABI. */
static const struct spelling namespaces[] = {
	{ "std::__cxx11::", "std::" },
	{ "std::__1::", "std::" },
	{ "std::__8::", "std::" },
};

/* Default arguments of containers, which are dropped unless they are the first argument. */
static const char *const default_arguments[] = {
	"std::allocator<", "std::char_traits<", "std::less<", "std::equal_to<", "std::hash<", "std::default_delete<",
};

static bool begins_with(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

static bool is_word_start(const char *name, const char *at)
{
	return at == name || (!isalnum((unsigned char)at[-1]) && at[-1] != '_' && at[-1] != ':');
}

static char *replace_spellings(const char *name, const struct spelling *table, size_t nr_spellings)
{
	struct op_text text = { 0 };

	for (const char *c = name; *c;) {
		size_t i = 0;

		while (i < nr_spellings && !(is_word_start(name, c) && begins_with(c, table[i].from)))
			i++;
		if (i < nr_spellings) {
			op_text_add(&text, table[i].to);
			c += strlen(table[i].from);
		} else {
			op_text_add_char(&text, *c++);
		}
	}
	return op_text_steal(&text);
}

/* The length of an argument "NAME<...>"; 0: the brackets do not close. */
static size_t argument_bytes(const char *argument)
{
	size_t depth = 0;

	for (const char *c = argument; *c; c++) {
		if (*c == '<')
			depth++;
		else if (*c == '>' && !--depth)
			return (size_t)(c + 1 - argument);
	}
	return 0;
}

/* The length of ", DEFAULT<...>" when a whole argument of that form begins here, else 0. */
static size_t default_bytes(const char *at)
{
	size_t bytes = 0;

	if (!begins_with(at, ", "))
		return 0;
	for (size_t i = 0; i < op_array_size(default_arguments) && !bytes; i++)
		if (begins_with(at + 2, default_arguments[i]))
			bytes = argument_bytes(at + 2);
	if (!bytes)
		return 0;
	bytes += 2;
	return at[bytes] == ',' || at[bytes] == '>' || begins_with(at + bytes, " >") ? bytes : 0;
}

/* Only between < and >: the parameters of a function are no default arguments. */
static char *drop_defaults(const char *name)
{
	struct op_text text = { 0 };
	size_t depth = 0, bytes;

	for (const char *c = name; *c; c++) {
		while (depth && (bytes = default_bytes(c))) {
			c += bytes;
			if (begins_with(c, " >") && text.length && text.data[text.length - 1] != '>')
				c++;
		}
		depth += *c == '<';
		depth -= *c == '>' && depth;
		if (*c == '(')
			depth = 0;
		op_text_add_char(&text, *c);
	}
	return op_text_steal(&text);
}

char *opr_demangle_simplify(const char *name)
{
	char *spaces = replace_spellings(name, namespaces, op_array_size(namespaces));
	char *spelled = spaces ? replace_spellings(spaces, spellings, op_array_size(spellings)) : NULL;
	char *simple = spelled ? drop_defaults(spelled) : NULL;

	free(spaces);
	free(spelled);
	return simple;
}

/* ---- languages ---- */

static void take_piece(const char *piece, size_t nr_bytes, void *text)
{
	op_text_add_bytes(text, piece, nr_bytes);
}

static bool demangle_d(struct op_text *text, const char *name)
{
	char *plain = name[1] == 'D' ? cplus_demangle(name, DMGL_PARAMS | DMGL_DLANG) : NULL;

	if (!plain)
		return false;
	op_text_add(text, plain);
	free(plain);
	return true;
}

/*
 * Mangled names begin with an underscore. The order is that of cplus_demangle(), which allocates a
 * string for each name; the callbacks append to one text. D has no callback.
 */
static bool demangle_any(struct op_text *text, const char *name)
{
	const int flags = DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO;

	if (name[0] != '_')
		return false;
	if (rust_demangle_callback(name, flags, take_piece, text))
		return true;
	text->length = 0;
	if (cplus_demangle_v3_callback(name, flags, take_piece, text))
		return true;
	text->length = 0;
	return demangle_d(text, name);
}

bool opr_demangle(struct op_text *text, const char *name, enum opr_demangle how)
{
	char *simple;

	text->length = 0;
	if (how == OPR_DEMANGLE_NONE || !demangle_any(text, name))
		return false;
	simple = how == OPR_DEMANGLE_SMART && text->length && !text->failed ? opr_demangle_simplify(text->data) : NULL;
	if (simple) {
		text->length = 0;
		op_text_add(text, simple);
	}
	free(simple);
	return true;
}

/* ---- the option ---- */

int opr_take_demangle(void *field, const char *value)
{
	static const char *const words[] = {
		[OPR_DEMANGLE_NONE] = "none",
		[OPR_DEMANGLE_NORMAL] = "normal",
		[OPR_DEMANGLE_SMART] = "smart",
	};

	for (enum opr_demangle how = OPR_DEMANGLE_NONE; how <= OPR_DEMANGLE_SMART; how++) {
		if (strcmp(value, words[how]) != 0)
			continue;
		*(enum opr_demangle *)field = how;
		return 0;
	}
	return opr_refuse_word("invalid demangle option", value, words, op_array_size(words));
}
