/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The screen of optop, with ncurses. A second thread reads, so that keys act at once. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include <wchar.h>

#include <curses.h>

#include "libop/base/clock.h"
#include "tools/common/log.h"
#include "tools/optop/top.h"

#define MESSAGE_LINES 3 /* at most */
#define HOT       5.0 /* percent, from here on rows are in red */
#define WARM      1.0

/* A step. While `runs`, all but `runs` and `done` belongs to its thread. */
struct step {
	struct top *top;
	pthread_t thread;
	bool runs, keep_base;
	struct top_move move;
	int done; /* an eventfd that becomes readable at the end; -1: none */
	struct top_display display;
	int err;
	int errors; /* what stands in for standard error meanwhile; -1: none */
	char messages[TOP_NR_SOURCES][512]; /* the last line that each source wrote to it */
};

struct screen {
	struct top *top;
	struct step step;
	SCREEN *terminal;
	int true_errors; /* standard error as it was */
	char messages[TOP_NR_SOURCES][512]; /* of the step that is shown */
	char filter[64];   /* "": none */
	size_t first;      /* rows above the screen */
	bool helps;
	uint64_t due_ns;   /* time of the next reading */
	struct top_move move; /* of the next reading */
	uint64_t nr_shown;
	bool step_ended, quits;
};

/* ---- standard error ---- */

/* Warnings would spoil the screen. The last one of a source gets a line of it. */
static int catch_errors(struct screen *screen)
{
	struct step *step = &screen->step;

	step->errors = memfd_create("optop-messages", MFD_CLOEXEC);
	screen->true_errors = step->errors < 0 ? -1 : dup(STDERR_FILENO);
	if (screen->true_errors < 0 || dup2(step->errors, STDERR_FILENO) < 0)
		return opr_error(-errno, "cannot keep messages off the screen: %s", strerror(errno));
	return 0;
}

static void take_message(void *arg, enum top_source source)
{
	struct step *step = arg;
	off_t end = lseek(step->errors, 0, SEEK_END);
	char text[sizeof(step->messages[source])], *line;
	ssize_t nr;

	step->messages[source][0] = '\0';
	if (end <= 0)
		return;
	nr = pread(step->errors, text, sizeof(text) - 1, end < (off_t)sizeof(text) ? 0 : end - (off_t)sizeof(text) + 1);
	if (nr > 0) {
		text[nr - (text[nr - 1] == '\n')] = '\0';
		line = strrchr(text, '\n');
		snprintf(step->messages[source], sizeof(step->messages[source]), "%s", line ? line + 1 : text);
	}
	(void)!ftruncate(step->errors, 0);
	lseek(step->errors, 0, SEEK_SET);
}

static void release_errors(const struct screen *screen)
{
	if (screen->true_errors >= 0) {
		dup2(screen->true_errors, STDERR_FILENO);
		close(screen->true_errors);
	}
	if (screen->step.errors >= 0)
		close(screen->step.errors);
}

/* ---- steps ---- */

static void *run_step(void *arg)
{
	struct step *step = arg;

	step->err = top_step(step->top, step->keep_base, &step->move, &step->display);
	(void)!eventfd_write(step->done, 1);
	return NULL;
}

/* Signals that end or resize a screen go to its thread, which waits for them. */
static int begin_step(struct step *step, struct top_move *move)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH };
	sigset_t set, before;
	int err;

	step->keep_base = top_keeps_base(step->top);
	step->move = *move;
	*move = (struct top_move){ 0 };
	sigemptyset(&set);
	for (size_t i = 0; i < op_array_size(signals); i++)
		sigaddset(&set, signals[i]);
	pthread_sigmask(SIG_BLOCK, &set, &before);
	err = pthread_create(&step->thread, NULL, run_step, step);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		return opr_error(-err, "cannot start a thread: %s", strerror(err));
	step->runs = true;
	return 0;
}

/* A step that has ended becomes what is shown. */
static int end_step(struct screen *screen)
{
	struct step *step = &screen->step;
	eventfd_t nr;

	pthread_join(step->thread, NULL);
	step->runs = false;
	(void)!eventfd_read(step->done, &nr);
	top_take(screen->top, &step->display);
	memcpy(screen->messages, step->messages, sizeof(screen->messages));
	if (!screen->move.blocks && !screen->move.to_live)
		screen->due_ns = op_now_ns() + (uint64_t)top_wait_ms(screen->top) * OP_NS_PER_MS;
	return step->err;
}

/* ---- drawing ---- */

/* One line, cut at the right edge. What the terminal has no character for is a question mark. */
static void draw_line(int y, const char *text, int attributes)
{
	mbstate_t state = { 0 };
	int x = 0;

	move(y, 0);
	clrtoeol();
	attron(attributes);
	while (*text) {
		wchar_t wide[2] = { L'?', L'\0' };
		size_t nr = mbrtowc(wide, text, strlen(text), &state);
		int width = nr && nr <= strlen(text) ? wcwidth(wide[0]) : -1;

		if (width < 0) {
			wide[0] = L'?';
			width = 1;
			nr = 1;
			state = (mbstate_t){ 0 };
		}
		if (x + width > COLS)
			break;
		mvaddwstr(y, x, wide);
		x += width;
		text += nr;
	}
	for (; attributes & (int)A_REVERSE && x < COLS; x++)
		mvaddch(y, x, ' ');
	attroff(attributes);
}

static bool is_shown(const struct screen *screen, const struct top_row *row)
{
	return !screen->filter[0] || strstr(row->name, screen->filter) || strstr(row->image, screen->filter);
}

static int colour_of(const struct top_table *table, const struct top_row *row)
{
	double percent = table->total ? 100.0 * (double)row->count / (double)table->total : 0;

	if (!has_colors())
		return percent >= HOT ? (int)A_BOLD : 0;
	return percent >= HOT ? COLOR_PAIR(1) | (int)A_BOLD : percent >= WARM ? COLOR_PAIR(2) : 0;
}

static const char *message_of(const struct screen *screen)
{
	return screen->messages[top_source_of(screen->top->view)];
}

/* That the message takes, also when it is empty. Names in it may be wider than their bytes. */
static int nr_message_lines(const struct screen *screen)
{
	size_t nr = (strlen(message_of(screen)) + (size_t)COLS - 1) / (size_t)COLS;

	return nr < 1 ? 1 : nr > MESSAGE_LINES ? MESSAGE_LINES : (int)nr;
}

/* Draws the message in lines of whole words. Returns the line below it. */
static int draw_message(const struct screen *screen, int y)
{
	const char *text = message_of(screen);
	int end = y + nr_message_lines(screen);

	for (; y < end && *text; y++) {
		char line[sizeof(screen->messages[0])];
		size_t nr = strlen(text), room = (size_t)COLS;

		if (nr > room && y + 1 < end) {
			for (nr = room; nr && text[nr] != ' '; nr--)
				;
			nr = nr ? nr : room;
		}
		snprintf(line, sizeof(line), "%.*s", (int)nr, text);
		draw_line(y, line, (int)A_BOLD);
		text += nr;
		text += *text == ' ';
	}
	return end;
}

/* Below the header, the message and the title. */
static int first_row(const struct screen *screen)
{
	return TOP_HEADER_LINES + nr_message_lines(screen) + 1;
}

static size_t nr_visible(const struct screen *screen)
{
	return LINES > first_row(screen) + 1 ? (size_t)(LINES - first_row(screen) - 1) : 0;
}

static void draw_rows(struct screen *screen)
{
	const struct top_table *table = top_table(screen->top);
	size_t nr_matching = 0, room = nr_visible(screen), left = room;

	if (!table)
		return;
	for (size_t i = 0; i < table->nr_rows; i++)
		nr_matching += is_shown(screen, &table->rows[i]);
	if (screen->first + room > nr_matching)
		screen->first = nr_matching > room ? nr_matching - room : 0;
	for (size_t i = 0, nr = 0; i < table->nr_rows && left; i++) {
		struct op_text text = { 0 };

		if (!is_shown(screen, &table->rows[i]) || nr++ < screen->first)
			continue;
		top_add_row(screen->top, &table->rows[i], (size_t)COLS, &text);
		draw_line(first_row(screen) + (int)(room - left--), op_text_get(&text), colour_of(table, &table->rows[i]));
		op_text_free(&text);
	}
}

static const char *const help[] = {
	"f  functions             i  images (programs, libraries, the kernel)",
	"n  process names         c  cgroups (services, containers)",
	"p  paths: who called whom, from the root; less than 1 % is added up",
	"w  waits: functions in which threads waited, in time",
	"",
	"e  the next event        a  count from now on, or from one display to the next",
	"<  a minute back in time, of those that opd keeps",
	">  a minute forward      l  live again",
	"/  only rows with a text; ENTER alone shows all rows",
	"+  a longer time from one display to the next     -  a shorter one",
	"SPACE  stop and go on    arrows, Page Up and Down, Home  scroll",
	"q  quit                  h, ?  this help",
	"",
	"Functions and images are counted from all samples. Process names, cgroups, paths",
	"and waits come from the stacks.",
};

static void draw_help(const struct screen *screen)
{
	uint64_t rate_hz = screen->top->display.stack_rate_hz;
	struct op_text text = { 0 };

	for (size_t i = 0; i < op_array_size(help) && i < nr_visible(screen); i++) {
		op_text_truncate(&text, 0);
		op_text_add(&text, help[i]);
		if (i + 1 == op_array_size(help) && rate_hz)
			op_text_printf(&text, " opd takes %llu of them per second on a busy CPU.", (unsigned long long)rate_hz);
		draw_line(first_row(screen) + (int)i, op_text_get(&text), 0);
	}
	op_text_free(&text);
}

static void draw(struct screen *screen)
{
	const struct top *top = screen->top;
	struct op_text text = { 0 };

	erase();
	for (int i = 0; i < TOP_HEADER_LINES; i++) {
		top_add_header(top, (size_t)i, &text);
		draw_line(i, op_text_get(&text), 0);
		op_text_truncate(&text, 0);
	}
	top_add_title(top, &text);
	if (screen->filter[0])
		op_text_printf(&text, "  (with %s)", screen->filter);
	draw_line(draw_message(screen, TOP_HEADER_LINES), op_text_get(&text), (int)A_REVERSE);
	op_text_truncate(&text, 0);
	if (screen->helps)
		draw_help(screen);
	else
		draw_rows(screen);
	op_text_printf(&text, "f function i image n name c cgroup p path w wait  %s  %.3g s  h help  q quit",
		       top->accumulates ? "a: sum" : "a sum", top->delay);
	draw_line(LINES - 1, op_text_get(&text), (int)A_REVERSE);
	op_text_free(&text);
	refresh();
}

/* ---- keys ---- */

static void change_view(struct screen *screen, enum top_view view)
{
	screen->top->view = view;
	screen->top->chose_event = false;
	screen->first = 0;
}

static void ask_filter(struct screen *screen)
{
	draw_line(LINES - 1, "only rows with: ", (int)A_REVERSE);
	move(LINES - 1, 16);
	echo();
	curs_set(1);
	timeout(-1);
	if (getnstr(screen->filter, sizeof(screen->filter) - 1) == ERR)
		screen->filter[0] = '\0';
	timeout(0);
	curs_set(0);
	noecho();
	screen->first = 0;
}

static void change_delay(struct screen *screen, double factor)
{
	double *delay = &screen->top->delay;

	*delay *= factor;
	if (*delay < TOP_DELAY_MIN)
		*delay = TOP_DELAY_MIN;
	if (*delay > TOP_DELAY_MAX)
		*delay = TOP_DELAY_MAX;
	screen->due_ns = op_now_ns() + (uint64_t)(*delay * OP_NS_PER_S);
}

/* The next reading goes there, and begins at once. */
static void move_in_time(struct screen *screen, int key)
{
	if (key == 'l')
		screen->move = (struct top_move){ .to_live = true };
	else
		screen->move.blocks += key == '<' ? -1 : 1;
	screen->top->is_paused = false;
	screen->due_ns = 0;
	screen->first = 0;
}

static void scroll_rows(struct screen *screen, int key)
{
	size_t page = nr_visible(screen), up = key == KEY_UP ? 1 : key == KEY_PPAGE ? page : key == KEY_HOME ? SIZE_MAX : 0;

	screen->first -= up < screen->first ? up : screen->first;
	screen->first += key == KEY_DOWN ? 1 : key == KEY_NPAGE ? page : 0;
}

static bool take_view_key(struct screen *screen, int key)
{
	static const int keys[] = {
#define X(id, key, word, title) [TOP_##id] = key,
		TOP_VIEWS(X)
#undef X
	};

	for (enum top_view view = 0; view < TOP_NR_VIEWS; view++)
		if (key == keys[view]) {
			change_view(screen, view);
			return true;
		}
	return false;
}

static void take_key(struct screen *screen, int key)
{
	struct top *top = screen->top;

	if (screen->helps) {
		screen->helps = false;
		if (key == 'h' || key == '?')
			return;
	}
	if (take_view_key(screen, key))
		return;
	switch (key) {
	case 'q':
		screen->quits = true;
		break;
	case 'h':
	case '?':
		screen->helps = true;
		break;
	case 'e':
		top_next_event(top);
		screen->first = 0;
		break;
	case 'a':
		top->accumulates = !top->accumulates;
		break;
	case ' ':
		top->is_paused = !top->is_paused;
		break;
	case '+':
	case '-':
		change_delay(screen, key == '+' ? 2 : 0.5);
		break;
	case '/':
		ask_filter(screen);
		break;
	case '<':
	case '>':
	case 'l':
		move_in_time(screen, key);
		break;
	default:
		scroll_rows(screen, key);
		break;
	}
}

/* ---- the loop ---- */

/* Until a key, a signal, a new size of the terminal, the end of a step, or the time of the next. */
static void wait_for_key(struct screen *screen)
{
	uint64_t now_ns = op_now_ns();
	bool is_paused = screen->top->is_paused, runs = screen->step.runs;
	struct pollfd wait[] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = screen->top->stop->fd, .events = POLLIN },
		{ .fd = is_paused || !runs ? -1 : screen->step.done, .events = POLLIN },
	};
	int ms = is_paused || runs ? -1 : now_ns < screen->due_ns ? (int)((screen->due_ns - now_ns) / OP_NS_PER_MS) + 1 : 0;
	int key;

	(void)!poll(wait, op_array_size(wait), ms);
	if (wait[0].revents & (POLLHUP | POLLERR))
		screen->quits = true; /* the terminal is gone */
	screen->step_ended = wait[2].revents & POLLIN;
	while (!screen->quits && (key = getch()) != ERR)
		take_key(screen, key);
}

static int show(struct screen *screen)
{
	struct top *top = screen->top;
	int err = 0;

	while (!err && !screen->quits && !op_stop_is_set(top->stop)) {
		if (screen->step_ended) {
			screen->step_ended = false;
			err = end_step(screen);
			if (!err && !top_found(top)->err && !top_found(top)->is_new && top->options->iterations &&
			    ++screen->nr_shown > top->options->iterations)
				return 0;
		}
		if (!err && !screen->step.runs && !top->is_paused && op_now_ns() >= screen->due_ns)
			err = begin_step(&screen->step, &screen->move);
		draw(screen);
		wait_for_key(screen);
	}
	return err;
}

static int open_terminal(struct screen *screen)
{
	const char *type = getenv("TERM");

	screen->terminal = newterm(NULL, stdout, stdin);
	if (!screen->terminal)
		return opr_error(-ENOTTY, "the terminal '%s' (TERM) is not known: --batch writes text instead of a screen",
				 type ? type : "");
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, true);
	timeout(0);
	curs_set(0);
	if (has_colors()) {
		start_color();
		use_default_colors();
		init_pair(1, COLOR_RED, -1);
		init_pair(2, COLOR_GREEN, -1);
	}
	return 0;
}

int top_show(struct top *top)
{
	static struct screen screen; /* `top` keeps a pointer to it */
	int err;

	screen = (struct screen){ .top = top, .step = { .top = top, .errors = -1 }, .true_errors = -1 };
	screen.step.done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (screen.step.done < 0)
		return opr_error(-errno, "cannot make an eventfd: %s", strerror(errno));
	top->take_message = take_message;
	top->take_message_arg = &screen.step;
	err = open_terminal(&screen);
	if (!err) {
		err = catch_errors(&screen);
		if (!err)
			err = show(&screen);
		endwin();
		release_errors(&screen);
		/* A step may take seconds. It only reads, so it needs no end. */
		if (screen.step.runs)
			_exit(0);
		delscreen(screen.terminal);
	}
	close(screen.step.done);
	for (enum top_source source = 0; err && source < TOP_NR_SOURCES; source++)
		if (screen.messages[source][0])
			fprintf(stderr, "%s\n", screen.messages[source]);
	return err;
}
