/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/runtimes/java_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libop/base/clock.h"
#include "libop/base/grow.h"
#include "libop/base/log.h"
#include "pipeline/readers/far_memory.h"

#define CHECK_NS       (4 * (uint64_t)OP_NS_PER_S) /* so long an answer is taken for true */
#define RETRY_NS       ((uint64_t)OP_NS_PER_S)     /* a machine that is not ready is asked again */
#define BLOBS_MAX      16384u                      /* with more than so many all are forgotten */
#define PLACES_MAX     65536u
#define METHODS_MAX    32768u
#define LINE_BYTES_MAX (8u << 20) /* of all tables of lines of a process */
#define QUESTION_NS    20000u     /* what a question costs beside its answer */
#define WORD           8u

struct opd_java *opd_java_begin(struct opd_runtime_host *host, const struct opd_runtime_process *process)
{
	struct opd_java *java = calloc(1, sizeof(*java));

	if (!java)
		return NULL;
	java->host = host;
	java->about = (struct opd_look_about){ .pid = process->pid, .user_ns = process->user_ns };
	java->image_address = process->image_address;
	java->who = process->who;
	java->owner = opd_look_owner(&java->about);
	return java;
}

/* ---- what is kept ---- */

static void free_places(struct opd_java *java, struct opd_java_blob *blob)
{
	for (size_t i = 0; i < blob->nr_places; i++)
		free(blob->places[i].scopes);
	java->nr_places -= blob->nr_places;
	free(blob->places);
	blob->places = NULL;
	blob->nr_places = blob->places_capacity = 0;
}

static void free_blob(struct opd_java *java, struct opd_java_blob *blob)
{
	free_places(java, blob);
	free(blob);
}

static void free_lines(struct opd_java *java, struct opd_java_function *method)
{
	java->line_bytes -= method->nr_lines * sizeof(*method->lines);
	free(method->lines);
	method->lines = NULL;
	method->nr_lines = 0;
}

static void free_method(struct op_hlink *link, void *arg)
{
	struct opd_java_function *method = op_container_of(link, struct opd_java_function, link);

	free_lines(arg, method);
	free(method);
}

static void forget_code(struct opd_java *java)
{
	for (size_t i = 0; i < java->nr_blobs; i++)
		free_blob(java, java->blobs[i]);
	java->nr_blobs = 0;
}

static void forget_methods(struct opd_java *java)
{
	op_htable_visit(&java->methods, free_method, java);
	op_htable_free(&java->methods);
	java->methods = (struct op_htable){ 0 };
}

void opd_java_end(struct opd_java *java)
{
	forget_code(java);
	forget_methods(java);
	free(java->blobs);
	free(java);
}

/* ---- questions ---- */

/* What is left of an answer. */
struct parts {
	struct op_text answer;
	const char *at;
	size_t nr_bytes;
};

static int take(void *to, size_t size, const char **at, size_t *nr_bytes)
{
	if (*nr_bytes < size)
		return -EBADMSG;
	memcpy(to, *at, size);
	*at += size;
	*nr_bytes -= size;
	return 0;
}

/* 0; -EAGAIN: later; -errno. The caller frees parts->answer. */
static int ask_looker(struct opd_java_asking *asking, struct opd_java_ask *ask, struct parts *parts)
{
	struct opd_java *java = asking->java;
	struct iovec iov[] = { { &ask->question, sizeof(ask->question) },
			       { ask->items, ask->question.nr_items * sizeof(ask->items[0]) } };
	struct opd_java_answer head = { 0 };
	uint32_t serial = 0;
	int err;

	if (!opd_runtime_may_spend(java->host, java->owner, OP_RUNTIME_java, asking->now_ns)) {
		asking->must_wait = true;
		return -EAGAIN;
	}
	ask->question.pid = java->about.pid;
	ask->question.layout = java->layout;
	ask->question.who = java->who;
	err = opd_look(java->host->lookers, &java->about, OPD_LOOK_JAVA, iov, op_array_size(iov), -1, &serial, &parts->answer);
	if (err == -EBUSY) {
		java->host->is_out = true;
		asking->must_wait = true;
		return -EAGAIN;
	}
	java->host->has_changed |= err == -ESTALE;
	/* the process is gone; of an item -ENOENT means that no code is there */
	if (err == -ENOENT || err == -ESTALE)
		err = -ESRCH;
	parts->at = parts->answer.data;
	parts->nr_bytes = parts->answer.length;
	if (!err)
		err = take(&head, sizeof(head), &parts->at, &parts->nr_bytes);
	opd_runtime_spend(java->host, java->owner, OP_RUNTIME_java, head.cpu_ns + QUESTION_NS,
			  (uint64_t)head.nr_pages * OPD_FAR_PAGE_BYTES);
	return err ? err : head.nr_items == ask->question.nr_items ? 0 : -EBADMSG;
}

/* The answer to the next item: its bytes, or what is wrong. */
static int take_part(struct parts *parts, const char **ret_at, size_t *ret_nr_bytes)
{
	struct opd_java_part part;
	int err = take(&part, sizeof(part), &parts->at, &parts->nr_bytes);

	if (err || part.nr_bytes > parts->nr_bytes)
		return -EBADMSG;
	*ret_at = parts->at;
	*ret_nr_bytes = part.nr_bytes;
	parts->at += part.nr_bytes;
	parts->nr_bytes -= part.nr_bytes;
	return part.err > 0 || part.err == -EAGAIN ? -ENOENT : part.err;
}

int opd_java_get_layout(struct opd_java_asking *asking)
{
	struct opd_java *java = asking->java;
	struct opd_java_ask *ask = &java->ask;
	struct parts parts = { 0 };
	const char *at;
	size_t nr_bytes;
	static struct op_rate rate;
	uint64_t suppressed;
	int err;

	if (java->is_refused || asking->now_ns < java->retry_ns)
		return java->is_refused ? -EPROTONOSUPPORT : -ENOENT;
	ask->question = (struct opd_java_question){ .what = OPD_JAVA_LAYOUT, .nr_items = 1 };
	ask->items[0] = (struct opd_java_item){ .address = java->image_address };
	err = ask_looker(asking, ask, &parts);
	if (!err)
		err = take_part(&parts, &at, &nr_bytes);
	if (!err)
		err = take(&java->layout, sizeof(java->layout), &at, &nr_bytes);
	op_text_free(&parts.answer);
	java->has_layout = !err;
	java->is_refused = err && err != -EAGAIN && err != -ENOENT && err != -ESRCH && err != -EFAULT && err != -ENODATA;
	java->host->nr_refused[OP_RUNTIME_java] += java->is_refused;
	if (java->is_refused && op_rate_allows(&rate, asking->now_ns, OP_LOG_INTERVAL_NS, &suppressed))
		op_log(OP_LOG_WARNING,
		       "process %u: this Java is not known (%s; OpenJDK %d and %d are): its functions have no names",
		       java->about.pid, strerror(-err), OPD_JAVA_OLD, OPD_JAVA_NEW);
	if (err && !asking->must_wait)
		java->retry_ns = asking->now_ns + RETRY_NS;
	return java->is_refused ? -EPROTONOSUPPORT : err;
}

/* ---- code ---- */

/* The index of the first blob that ends behind the address. */
static size_t blob_index(const struct opd_java *java, uint64_t address)
{
	size_t low = 0, high = java->nr_blobs;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (java->blobs[middle]->end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct opd_java_blob *find_blob(const struct opd_java *java, uint64_t address)
{
	size_t i = blob_index(java, address);

	return i < java->nr_blobs && java->blobs[i]->start <= address ? java->blobs[i] : NULL;
}

static struct opd_java_range *find_place(const struct opd_java_blob *blob, uint64_t pc, bool is_exact)
{
	size_t low = 0, high = blob->nr_places;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		struct opd_java_range *place = &blob->places[middle];

		if (place->is_exact < is_exact || (place->is_exact == is_exact && place->to <= pc))
			low = middle + 1;
		else
			high = middle;
	}
	if (low < blob->nr_places && blob->places[low].is_exact == is_exact && blob->places[low].from <= pc)
		return &blob->places[low];
	return NULL;
}

/* Removes all blobs that lie in a range, and returns where one of the range belongs. */
static size_t remove_range(struct opd_java *java, uint64_t start, uint64_t end)
{
	size_t first = blob_index(java, start), last = first;

	while (last < java->nr_blobs && java->blobs[last]->start < end)
		free_blob(java, java->blobs[last++]);
	memmove(java->blobs + first, java->blobs + last, (java->nr_blobs - last) * sizeof(java->blobs[0]));
	java->nr_blobs -= last - first;
	return first;
}

static struct opd_java_blob *add_blob(struct opd_java *java, const struct opd_java_place *read, uint64_t now_ns)
{
	struct opd_java_blob *blob;
	size_t at;

	if (java->nr_blobs >= BLOBS_MAX)
		forget_code(java);
	at = remove_range(java, read->start, read->end);
	blob = calloc(1, sizeof(*blob));
	if (!blob || !op_grow(&java->blobs, &java->blobs_capacity, java->nr_blobs + 1)) {
		free(blob);
		return NULL;
	}
	memmove(java->blobs + at + 1, java->blobs + at, (java->nr_blobs - at) * sizeof(java->blobs[0]));
	java->blobs[at] = blob;
	java->nr_blobs++;
	*blob = (struct opd_java_blob){ .at = read->blob,
					.start = read->start,
					.end = read->end,
					.fingerprint = read->fingerprint,
					.checked_ns = now_ns,
					.used_ns = now_ns,
					.code = read->code,
					.frame_bytes = read->frame_bytes };
	return blob;
}

static struct opd_java_range *add_place(struct opd_java *java, struct opd_java_blob *blob, const struct opd_java_place *read,
					const struct opd_java_scope *scopes, bool is_exact)
{
	struct opd_java_scope *copy = NULL;
	size_t at = 0;

	if (!op_grow(&blob->places, &blob->places_capacity, blob->nr_places + 1))
		return NULL;
	if (read->nr_scopes) {
		copy = malloc(read->nr_scopes * sizeof(*copy));
		if (!copy)
			return NULL;
		memcpy(copy, scopes, read->nr_scopes * sizeof(*copy));
	}
	while (at < blob->nr_places && (blob->places[at].is_exact < is_exact ||
					(blob->places[at].is_exact == is_exact && blob->places[at].from < read->from)))
		at++;
	memmove(blob->places + at + 1, blob->places + at, (blob->nr_places - at) * sizeof(blob->places[0]));
	blob->nr_places++;
	java->nr_places++;
	blob->places[at] = (struct opd_java_range){ .from = read->from,
						    .to = read->to,
						    .is_exact = is_exact,
						    .is_behind_call = read->is_behind_call,
						    .shape = (uint8_t)read->shape,
						    .original_pc = read->original_pc,
						    .nr_scopes = read->nr_scopes,
						    .scopes = copy };
	return &blob->places[at];
}

/* What a looker says must make sense for the address, because the process may have said it. */
static bool is_sound(const struct opd_java_place *place, uint64_t pc)
{
	return place->code <= OPD_JAVA_CALL_STUB && place->shape <= OPD_JAVA_MADE_ROOM && place->nr_scopes <= OPD_JAVA_SCOPES_MAX &&
	       place->start < place->end && place->from <= pc && pc < place->to && place->from >= place->start &&
	       place->to <= place->end + 1 && place->original_pc >= -1;
}

/* Keeps what a looker says of an address. -ENOENT: no code of the machine is there. */
static int keep_place(struct opd_java_asking *asking, const struct opd_java_item *item, const char *at, size_t nr_bytes)
{
	struct opd_java *java = asking->java;
	struct opd_java_place read;
	struct opd_java_blob *blob;
	int err = take(&read, sizeof(read), &at, &nr_bytes);

	if (err)
		return err;
	java->low = read.low;
	java->high = read.high;
	java->bounds_ns = asking->now_ns;
	if (read.code == OPD_JAVA_NO_CODE)
		return -ENOENT;
	if (!is_sound(&read, item->address) || nr_bytes != read.nr_scopes * sizeof(struct opd_java_scope))
		return -EBADMSG;
	if (java->nr_places >= PLACES_MAX)
		forget_code(java);
	blob = find_blob(java, read.start);
	if (!blob || blob->fingerprint != read.fingerprint || blob->start != read.start || blob->end != read.end || blob->moved_ns)
		blob = add_blob(java, &read, asking->now_ns);
	if (!blob)
		return -ENOMEM;
	if (find_place(blob, item->address, item->is_exact))
		return 0;
	return add_place(java, blob, &read, (const void *)at, item->is_exact) ? 0 : -ENOMEM;
}

/* Asks about the addresses of java->ask. The result is that of the first one. */
static int read_places(struct opd_java_asking *asking)
{
	struct opd_java_ask *ask = &asking->java->ask;
	struct parts parts = { 0 };
	const char *at;
	size_t nr_bytes;
	int err, first = 0;

	ask->question.what = OPD_JAVA_PLACES;
	err = ask_looker(asking, ask, &parts);
	if (err)
		first = err;
	for (uint32_t i = 0; !err && i < ask->question.nr_items; i++) {
		int one = take_part(&parts, &at, &nr_bytes);

		one = one ? one : keep_place(asking, &ask->items[i], at, nr_bytes);
		first = i ? first : one;
	}
	op_text_free(&parts.answer);
	return first;
}

/* ---- whether what is kept still holds ---- */

struct checking {
	struct opd_java_ask *ask;
	struct opd_java_blob *blobs[OPD_JAVA_CHECKS_MAX];
	struct opd_java_function *methods[OPD_JAVA_CHECKS_MAX];
	uint64_t now_ns;
};

/* Those that are due soon are taken along. */
static bool is_due(uint64_t checked_ns, uint64_t used_ns, uint64_t now_ns)
{
	return now_ns - checked_ns >= CHECK_NS / 2 && now_ns - used_ns < CHECK_NS;
}

static void want_check(struct checking *checking, uint64_t address, uint64_t fingerprint, struct opd_java_blob *blob,
		       struct opd_java_function *method)
{
	uint32_t nr = checking->ask->question.nr_items++;

	checking->blobs[nr] = blob;
	checking->methods[nr] = method;
	checking->ask->items[nr] =
		(struct opd_java_item){ .address = address, .fingerprint = fingerprint, .is_method = method != NULL };
}

static void want_method(struct op_hlink *link, void *arg)
{
	struct opd_java_function *method = op_container_of(link, struct opd_java_function, link);
	struct checking *checking = arg;

	if (checking->ask->question.nr_items < OPD_JAVA_CHECKS_MAX && !method->moved_ns && method != checking->methods[0] &&
	    is_due(method->checked_ns, method->used_ns, checking->now_ns))
		want_check(checking, method->at, method->fingerprint, NULL, method);
}

static void set_checked(struct opd_java *java, struct opd_java_blob *blob, struct opd_java_function *method, int err,
			uint64_t now_ns)
{
	uint64_t moved_ns = err == -ESTALE ? now_ns : 0;

	if (blob) {
		blob->checked_ns = now_ns;
		blob->moved_ns = moved_ns;
		if (moved_ns)
			free_places(java, blob);
	} else {
		method->checked_ns = now_ns;
		method->moved_ns = moved_ns;
	}
}

/*
 * Asks about all that is due and was lately used, in one question. What cannot be read any more is
 * of a process that ends, and stays as it was. 0 or -EAGAIN.
 */
static int check_all(struct opd_java_asking *asking, struct opd_java_blob *first_blob, struct opd_java_function *first_method)
{
	struct opd_java *java = asking->java;
	struct checking checking = { .ask = &java->ask, .now_ns = asking->now_ns };
	struct parts parts = { 0 };
	const char *at;
	size_t nr_bytes;
	int err;

	java->ask.question = (struct opd_java_question){ .what = OPD_JAVA_CHECK };
	if (first_blob)
		want_check(&checking, first_blob->at, first_blob->fingerprint, first_blob, NULL);
	else
		want_check(&checking, first_method->at, first_method->fingerprint, NULL, first_method);
	for (size_t i = 0; i < java->nr_blobs && java->ask.question.nr_items < OPD_JAVA_CHECKS_MAX; i++) {
		struct opd_java_blob *blob = java->blobs[i];

		if (blob != first_blob && !blob->moved_ns && is_due(blob->checked_ns, blob->used_ns, asking->now_ns))
			want_check(&checking, blob->at, blob->fingerprint, blob, NULL);
	}
	op_htable_visit(&java->methods, want_method, &checking);
	err = ask_looker(asking, &java->ask, &parts);
	for (uint32_t i = 0; err != -EAGAIN && i < java->ask.question.nr_items; i++)
		set_checked(java, checking.blobs[i], checking.methods[i], err ? err : take_part(&parts, &at, &nr_bytes),
			    asking->now_ns);
	op_text_free(&parts.answer);
	return err == -EAGAIN ? err : 0;
}

/* ---- methods ---- */

static struct opd_java_function *find_method(const struct opd_java *java, uint64_t at)
{
	for (struct op_hlink *link = op_htable_first(&java->methods, op_hash_u64(at)); link; link = op_htable_next(link)) {
		struct opd_java_function *method = op_container_of(link, struct opd_java_function, link);

		if (method->at == at)
			return method;
	}
	return NULL;
}

static bool take_lines(struct opd_java *java, struct opd_java_function *method, uint32_t nr, const char **bytes, size_t *nr_bytes)
{
	size_t size = nr * sizeof(*method->lines);

	if (nr > OPD_JAVA_LINES_MAX || size > *nr_bytes)
		return false;
	if (nr && java->line_bytes + size <= LINE_BYTES_MAX) {
		method->lines = malloc(size);
		if (method->lines) {
			memcpy(method->lines, *bytes, size);
			method->nr_lines = nr;
			java->line_bytes += size;
		}
	}
	*bytes += size;
	*nr_bytes -= size;
	return true;
}

uint32_t opd_java_line(const struct opd_java_function *method, int64_t bci)
{
	uint32_t line = method->nr_lines ? method->lines[0].line : 0;

	for (uint32_t i = 0; i < method->nr_lines && method->lines[i].bci <= bci; i++)
		line = method->lines[i].line;
	return line;
}

/* Two texts, each with its NUL, and nothing behind them. */
static bool take_names(struct opd_java *java, struct opd_java_function *method, const char *bytes, size_t nr_bytes)
{
	const char *end = memchr(bytes, '\0', nr_bytes), *function = end ? end + 1 : NULL;

	if (!nr_bytes || !end || bytes[nr_bytes - 1] || function >= bytes + nr_bytes ||
	    strlen(function) + 1 != (size_t)(bytes + nr_bytes - function))
		return false;
	method->name = opd_runtime_names_add(java->host->names, OP_RUNTIME_java, bytes, function, opd_java_line(method, 0));
	return method->name;
}

static int keep_method(struct opd_java_asking *asking, uint64_t at, const char *bytes, size_t nr_bytes)
{
	struct opd_java *java = asking->java;
	struct opd_java_method read;
	struct opd_java_function *method;
	int err = take(&read, sizeof(read), &bytes, &nr_bytes);

	if (err || find_method(java, at))
		return err;
	if (java->methods.nr_entries >= METHODS_MAX)
		forget_methods(java);
	method = calloc(1, sizeof(*method));
	if (!method)
		return -ENOMEM;
	*method = (struct opd_java_function){ .at = at,
					      .fingerprint = read.fingerprint,
					      .checked_ns = asking->now_ns,
					      .code_start = read.code_start,
					      .code_bytes = read.code_bytes };
	if (!take_lines(java, method, read.nr_lines, &bytes, &nr_bytes) || !take_names(java, method, bytes, nr_bytes))
		err = -EBADMSG;
	else
		err = op_htable_insert(&java->methods, &method->link, op_hash_u64(at));
	if (err)
		free_method(&method->link, java);
	return err;
}

/* Asks about the methods of java->ask. The result is that of the first one. */
static int read_methods(struct opd_java_asking *asking)
{
	struct opd_java_ask *ask = &asking->java->ask;
	struct parts parts = { 0 };
	const char *at;
	size_t nr_bytes;
	int err, first = 0;

	ask->question.what = OPD_JAVA_METHODS;
	err = ask_looker(asking, ask, &parts);
	if (err)
		first = err;
	for (uint32_t i = 0; !err && i < ask->question.nr_items; i++) {
		int one = take_part(&parts, &at, &nr_bytes);

		one = one ? one : keep_method(asking, ask->items[i].address, at, nr_bytes);
		first = i ? first : one;
	}
	op_text_free(&parts.answer);
	return first;
}

static void want_item(struct opd_java *java, uint64_t address)
{
	struct opd_java_ask *ask = &java->ask;

	for (uint32_t i = 0; i < ask->question.nr_items; i++)
		if (ask->items[i].address == address)
			return;
	if (ask->question.nr_items < OPD_JAVA_ITEMS_MAX)
		ask->items[ask->question.nr_items++] = (struct opd_java_item){ .address = address };
}

/*
 * A question about one frame takes those of the rest of the stack along: words that may be return
 * addresses. Most stacks then need one question for their code, and one for their methods.
 */
static void add_callers(struct opd_java_asking *asking)
{
	const struct opd_runtime_frame *frame = asking->frame;
	struct opd_java *java = asking->java;
	uint64_t first = (frame->sp - frame->stack_start) & ~(uint64_t)(WORD - 1), word;
	struct opd_java_blob *blob;

	if (!frame->has_sp || frame->sp < frame->stack_start)
		return;
	for (uint64_t at = first; at + WORD <= frame->nr_stack_bytes; at += WORD) {
		memcpy(&word, frame->stack + at, WORD);
		if (word <= java->low || word >= java->high)
			continue;
		blob = find_blob(java, word - 1);
		if (!blob || (!blob->moved_ns && !find_place(blob, word, false)))
			want_item(java, word);
	}
}

/*
 * The same for methods: that of an interpreted frame has the caller's sp and fp and a return
 * address above it.
 */
static void add_interpreted(struct opd_java_asking *asking)
{
	const struct opd_runtime_frame *frame = asking->frame;
	struct opd_java *java = asking->java;
	uint64_t stack_end = frame->stack_start + frame->nr_stack_bytes, words[5];

	for (uint64_t at = 0; at + sizeof(words) <= frame->nr_stack_bytes; at += WORD) {
		uint64_t address = frame->stack_start + at;

		memcpy(words, frame->stack + at, sizeof(words)); /* method, (none), sp, fp, pc */
		if (words[4] > java->low && words[4] < java->high && words[2] > address && words[2] <= stack_end &&
		    words[3] > address && !(words[0] % WORD) && words[0] > OPD_FAR_PAGE_BYTES &&
		    (words[0] < frame->stack_start || words[0] >= stack_end) && !find_method(java, words[0]))
			want_item(java, words[0]);
	}
}

/* The methods of the places that were asked for. */
static void read_new_methods(struct opd_java_asking *asking)
{
	struct opd_java *java = asking->java;
	struct opd_java_item items[OPD_JAVA_ITEMS_MAX];
	uint32_t nr = java->ask.question.nr_items;

	memcpy(items, java->ask.items, nr * sizeof(items[0]));
	java->ask.question = (struct opd_java_question){ .nr_items = 0 };
	for (uint32_t i = 0; i < nr; i++) {
		const struct opd_java_blob *blob = find_blob(java, items[i].is_exact ? items[i].address : items[i].address - 1);
		const struct opd_java_range *place = blob ? find_place(blob, items[i].address, items[i].is_exact) : NULL;

		for (uint32_t j = 0; place && j < place->nr_scopes; j++)
			if (!find_method(java, place->scopes[j].method))
				want_item(java, place->scopes[j].method);
	}
	add_interpreted(asking);
	if (java->ask.question.nr_items)
		(void)!read_methods(asking);
}

int opd_java_get_place(struct opd_java_asking *asking, uint64_t pc, bool is_exact, struct opd_java_blob **ret_blob,
		       struct opd_java_range **ret_place)
{
	struct opd_java *java = asking->java;
	uint64_t address = is_exact ? pc : pc - 1, moved_ns = 0;
	struct opd_java_blob *blob = find_blob(java, address);
	int err;

	*ret_place = NULL;
	if (java->bounds_ns && asking->now_ns - java->bounds_ns < CHECK_NS && (pc < java->low || pc >= java->high))
		return 0;
	if (blob && !blob->moved_ns && asking->now_ns - blob->checked_ns >= CHECK_NS) {
		err = check_all(asking, blob, NULL);
		if (err)
			return err;
	}
	if (blob && blob->moved_ns) {
		moved_ns = blob->moved_ns;
		if (asking->frame->time_ns <= moved_ns)
			return -ESTALE;
		remove_range(java, blob->start, blob->end);
		blob = NULL;
	}
	*ret_place = blob ? find_place(blob, pc, is_exact) : NULL;
	*ret_blob = blob;
	if (!*ret_place) {
		java->ask.question = (struct opd_java_question){ .nr_items = 1 };
		java->ask.items[0] = (struct opd_java_item){ .address = pc, .is_exact = is_exact };
		add_callers(asking);
		err = read_places(asking);
		if (err)
			return err == -ENOENT ? 0 : err;
		*ret_blob = find_blob(java, address);
		*ret_place = *ret_blob ? find_place(*ret_blob, pc, is_exact) : NULL;
		if (!*ret_place)
			return -EBADMSG;
		read_new_methods(asking);
	}
	(*ret_blob)->used_ns = asking->now_ns;
	return 0;
}

int opd_java_get_method(struct opd_java_asking *asking, uint64_t at, struct opd_java_function **ret_method)
{
	struct opd_java *java = asking->java;
	struct opd_java_function *method = find_method(java, at);
	int err;

	if (method && !method->moved_ns && asking->now_ns - method->checked_ns >= CHECK_NS) {
		err = check_all(asking, NULL, method);
		if (err)
			return err;
	}
	if (method && method->moved_ns && asking->frame->time_ns <= method->moved_ns)
		return -ESTALE;
	if (method && method->moved_ns) {
		op_htable_remove(&java->methods, &method->link);
		free_method(&method->link, java);
		method = NULL;
	}
	if (!method) {
		java->ask.question = (struct opd_java_question){ .nr_items = 1 };
		java->ask.items[0] = (struct opd_java_item){ .address = at };
		add_interpreted(asking);
		err = read_methods(asking);
		method = find_method(java, at);
		if (err || !method)
			return err ? err : -EBADMSG;
	}
	method->used_ns = asking->now_ns;
	*ret_method = method;
	return 0;
}
