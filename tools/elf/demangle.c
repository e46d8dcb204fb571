/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/elf/demangle.h"

#include <ctype.h>
#include <errno.h>
#include <libiberty/demangle.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "libop/base/atomic.h"
#include "libop/base/clock.h"
#include "libop/base/grow.h"
#include "tools/common/log.h"
#include "tools/common/option_values.h"
#include "tools/common/words.h"

#define CPU_MS_MAX          20u  /* for a name; the longest names of LLVM take 0.1 ms */
#define NR_SLOW_MAX         100u /* then this process demangles only what cannot be slow */
#define REFERENCES_FREE     12u  /* cannot make a name slow: each one doubles it at most */
#define LIFETIME_DIGITS_MAX 2u
#define D_BYTES_MAX         4096u      /* libiberty recurses without a limit */
#define D_WORK_MAX          (1u << 22) /* characters; it refuses 9 of 16,571 names in libgphobos */

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

/* ---- names that fit ---- */

#define ELIDED "..."

/* The next arguments of a template from `c` on, without the brackets. NULL: there are none. */
static const char *next_arguments(const char *name, const char *c, size_t *ret_length)
{
	const char *begin;
	size_t depth = 1;

	for (; *c; c++) {
		size_t nr_operator = c == name || !opr_is_of_name(c[-1]) ? opr_operator_length(c) : 0;

		if (nr_operator)
			c += nr_operator - 1;
		else if (*c == '<')
			break;
	}
	if (!*c)
		return NULL;
	begin = ++c;
	for (; *c && depth; c++) {
		depth += *c == '<';
		depth -= *c == '>' && c[-1] != '-';
	}
	*ret_length = depth ? (size_t)(c - begin) : (size_t)(c - 1 - begin);
	return begin;
}

static bool is_inside_character(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* The arguments of a template that is not itself an argument. */
struct arguments {
	size_t begin, length;
	size_t nr_kept; /* of them, without the mark; their length: all */
};

struct argument_lists {
	struct arguments *all;
	size_t nr, capacity;
};

_Thread_local uint64_t opr_demangle_elide_steps;

static int longest_first(const void *left, const void *right)
{
	const struct arguments *a = left, *b = right;

	if (a->length != b->length)
		return a->length > b->length ? -1 : 1;
	return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static int first_first(const void *left, const void *right)
{
	const struct arguments *a = left, *b = right;

	return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static bool find_arguments(const char *name, struct argument_lists *lists)
{
	const char *next = name;
	size_t length;

	while ((next = next_arguments(name, next, &length))) {
		if (!op_grow(&lists->all, &lists->capacity, lists->nr + 1))
			return false;
		lists->all[lists->nr++] = (struct arguments){ (size_t)(next - name), length, length };
		next += length;
	}
	opr_demangle_elide_steps += strlen(name);
	return true;
}

/* The longest ones become the mark alone, until the next one need not be cut as a whole. */
static void choose_cuts(const struct argument_lists *lists, size_t nr_excess)
{
	struct arguments *all = lists->all;

	if (!lists->nr)
		return;
	qsort(all, lists->nr, sizeof(*all), longest_first);
	for (size_t i = 0; i < lists->nr && nr_excess && all[i].length > strlen(ELIDED); i++) {
		size_t nr_cut = op_min_u64(nr_excess, all[i].length - strlen(ELIDED));

		all[i].nr_kept = all[i].length - strlen(ELIDED) - nr_cut;
		nr_excess -= nr_cut;
	}
	qsort(all, lists->nr, sizeof(*all), first_first);
}

static void add_cut(struct op_text *text, const char *arguments, size_t length, size_t nr_kept)
{
	size_t head = nr_kept - nr_kept / 2, tail = nr_kept / 2;

	while (head && is_inside_character(arguments[head]))
		head--;
	while (tail && is_inside_character(arguments[length - tail]))
		tail--;
	op_text_add_bytes(text, arguments, head);
	op_text_add(text, ELIDED);
	op_text_add_bytes(text, arguments + length - tail, tail);
}

char *opr_demangle_elide(const char *name, size_t max_bytes)
{
	size_t nr_bytes = strlen(name), at = 0;
	struct argument_lists lists = { 0 };
	struct op_text text = { 0 };

	if (nr_bytes > max_bytes && !find_arguments(name, &lists)) {
		free(lists.all);
		return NULL;
	}
	choose_cuts(&lists, nr_bytes > max_bytes ? nr_bytes - max_bytes : 0);
	for (size_t i = 0; i < lists.nr; i++) {
		const struct arguments *list = &lists.all[i];

		if (list->nr_kept == list->length)
			continue;
		op_text_add_bytes(&text, name + at, list->begin - at);
		add_cut(&text, name + list->begin, list->length, list->nr_kept);
		at = list->begin + list->length;
	}
	op_text_add(&text, name + at);
	opr_demangle_elide_steps += nr_bytes;
	free(lists.all);
	return op_text_steal(&text);
}

/* ---- limits ---- */

/*
 * A few bytes of a hostile name may stand for gigabytes, or for hours without a byte: a name refers
 * to its earlier parts. libiberty has no limits, and its callbacks cannot end it, so the sink and a
 * timer jump out of it. That is safe for C++ and for Rust: they allocate nothing. The exception is
 * a Rust name with Punycode, which has no timer.
 */
struct sink {
	char bytes[OPR_DEMANGLED_BYTES_MAX];
	size_t nr_bytes;
	sigjmp_buf stop;
};

enum stop { STOP_LONG = 1, STOP_SLOW };

static _Thread_local struct sink *volatile running; /* the timer's signal ends this */
static uint32_t nr_slow;
static pthread_once_t has_handler = PTHREAD_ONCE_INIT;

static void take_piece(const char *piece, size_t nr_bytes, void *opaque)
{
	struct sink *sink = opaque;

	if (nr_bytes > sizeof(sink->bytes) - sink->nr_bytes)
		siglongjmp(sink->stop, STOP_LONG);
	memcpy(sink->bytes + sink->nr_bytes, piece, nr_bytes);
	sink->nr_bytes += nr_bytes;
}

static void end_slow(int number OP_UNUSED)
{
	if (running)
		siglongjmp(running->stop, STOP_SLOW);
}

static void set_handler(void)
{
	const struct sigaction action = { .sa_handler = end_slow, .sa_flags = SA_RESTART };
	sigset_t unblocked;

	sigaction(SIGVTALRM, &action, NULL);
	sigemptyset(&unblocked);
	sigaddset(&unblocked, SIGVTALRM);
	pthread_sigmask(SIG_UNBLOCK, &unblocked, NULL);
}

/* The CPU time of this thread, so that the result does not depend on the load of the machine. */
static bool start_timer(timer_t *timer)
{
	const struct itimerspec limit = { .it_value.tv_nsec = CPU_MS_MAX * OP_NS_PER_MS };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGVTALRM };

	pthread_once(&has_handler, set_handler);
	event._sigev_un._tid = gettid();
	if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, timer) < 0)
		return false;
	if (!timer_settime(*timer, 0, &limit, NULL))
		return true;
	timer_delete(*timer);
	return false;
}

typedef int demangle_fn(const char *name, int flags, demangle_callbackref callback, void *opaque);

/* 1: demangled; 0: not a name of this language; -E2BIG: over a limit. */
static int demangle_into(struct sink *sink, demangle_fn *demangle, const char *name, int flags, bool is_timed)
{
	timer_t timer;
	int stop, result = 0;

	sink->nr_bytes = 0;
	if (is_timed && (op_load_relaxed(&nr_slow) > NR_SLOW_MAX || !start_timer(&timer)))
		return -E2BIG;
	stop = sigsetjmp(sink->stop, is_timed);
	if (!stop) {
		running = is_timed ? sink : NULL;
		result = demangle(name, flags, take_piece, sink) ? 1 : 0;
	}
	running = NULL;
	if (is_timed)
		timer_delete(timer);
	if (stop == STOP_SLOW)
		op_fetch_add_relaxed(&nr_slow, 1);
	return stop ? -E2BIG : result;
}

/* ---- languages ---- */

/* An upper limit: nearly each reference of C++ and Rust ends with '_'. */
static size_t nr_references(const char *name)
{
	size_t nr = 0;

	for (const char *c = name; *c; c++)
		nr += *c == '_';
	return nr;
}

/* A Rust name says a number of lifetimes ('G', a number, '_'), which may be 2^64. */
static bool has_many_lifetimes(const char *name)
{
	for (const char *c = strchr(name, 'G'); c; c = strchr(c + 1, 'G')) {
		size_t nr_digits = 0;

		while (isalnum((unsigned char)c[1 + nr_digits]))
			nr_digits++;
		if (nr_digits > LIFETIME_DIGITS_MAX && c[1 + nr_digits] == '_')
			return true;
	}
	return false;
}

static bool has_punycode(const char *name)
{
	for (const char *c = strchr(name, 'u'); c; c = strchr(c + 1, 'u'))
		if (isdigit((unsigned char)c[1]))
			return true;
	return false;
}

static int demangle_rust(struct sink *sink, const char *name, int flags)
{
	bool is_slow = nr_references(name) > REFERENCES_FREE || has_many_lifetimes(name);

	if (name[1] != 'R') /* the older form refers to nothing */
		is_slow = false;
	if (is_slow && has_punycode(name))
		return has_many_lifetimes(name) ? -E2BIG : demangle_into(sink, rust_demangle_callback, name, flags, false);
	return demangle_into(sink, rust_demangle_callback, name, flags, is_slow);
}

/* A name that is too long or too slow is shown without its parameters. */
static int demangle_cplus(struct sink *sink, const char *name, int flags)
{
	bool is_slow = nr_references(name) > REFERENCES_FREE;
	int result = demangle_into(sink, cplus_demangle_v3_callback, name, flags, is_slow);

	return result == -E2BIG ? demangle_into(sink, cplus_demangle_v3_callback, name, flags & ~DMGL_PARAMS, is_slow) : result;
}

/*
 * The work for a D name, at most. "Q" and a number to base 26 refer back to an identifier, or to a
 * type. Such a type ends before the reference, so it costs no more than all between.
 */
static uint64_t work_of_d(const char *name, size_t nr_bytes, uint64_t *sums)
{
	sums[0] = 0;
	for (size_t i = 0; i < nr_bytes; i++) {
		size_t back = 0, at = i + 1;

		while (name[i] == 'Q' && isupper((unsigned char)name[at]) && back < nr_bytes)
			back = back * 26 + (size_t)(name[at++] - 'A');
		if (name[i] == 'Q' && islower((unsigned char)name[at]))
			back = back * 26 + (size_t)(name[at] - 'a');
		if (back > i || isdigit((unsigned char)name[i - back]))
			back = 0;
		sums[i + 1] = op_min_u64(sums[i] + 1 + sums[i] - sums[i - back], D_WORK_MAX + 1);
	}
	return sums[nr_bytes];
}

/* libiberty has no callback for D: what costs too much is found before. */
static int demangle_d(struct sink *sink, const char *name, int flags)
{
	size_t nr_bytes = strnlen(name, D_BYTES_MAX + 1);
	uint64_t sums[D_BYTES_MAX + 1];
	char *plain;
	int result;

	if (name[1] != 'D')
		return 0;
	if (nr_bytes > D_BYTES_MAX || work_of_d(name, nr_bytes, sums) > D_WORK_MAX)
		return -E2BIG;
	plain = cplus_demangle(name, flags | DMGL_DLANG);
	result = plain ? 1 : 0;
	sink->nr_bytes = plain ? strlen(plain) : 0;
	if (sink->nr_bytes > sizeof(sink->bytes))
		result = -E2BIG;
	else if (plain)
		memcpy(sink->bytes, plain, sink->nr_bytes);
	free(plain);
	return result;
}

/* Mangled names begin with an underscore. The order is that of cplus_demangle(). */
static bool demangle_any(struct op_text *text, const char *name)
{
	static int (*const languages[])(struct sink *, const char *, int) = { demangle_rust, demangle_cplus, demangle_d };
	int result = 0;
	struct sink sink;

	if (name[0] != '_')
		return false;
	for (size_t i = 0; i < op_array_size(languages) && !result; i++)
		result = languages[i](&sink, name, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);
	if (result <= 0)
		return false;
	op_text_add_bytes(text, sink.bytes, sink.nr_bytes);
	return true;
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
