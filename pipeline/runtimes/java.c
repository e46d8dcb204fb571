/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/runtimes/java.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "libop/base/clock.h"
#include "libop/perf/stack_record.h"
#include "pipeline/runtimes/java_state.h"

#define WORD      8u
#define STACK_MAX (64u << 20) /* a frame further up is none */
#define X86_RAX   0
#define X86_RBX   3
#define X86_R13   13

/* frame_x86.hpp of OpenJDK 17 and 21: in words from rbp. */
#define SENDER_SP_WORD (-1)
#define METHOD_WORD    (-3)
#define BYTECODE_WORD  (-8)
#define FRAME_WORDS    9

static bool is_libjvm(const char *base_name)
{
	return !strcmp(base_name, "libjvm.so");
}

static void *begin(struct opd_runtime_host *host, const struct opd_runtime_process *process)
{
	return opd_java_begin(host, process);
}

static void end(void *process)
{
	opd_java_end(process);
}

static void set_fault(struct opd_java_asking *asking, enum opd_runtime_fault fault)
{
	if (fault > *asking->fault)
		*asking->fault = fault;
}

static void add_function(struct opd_java_asking *asking, uint32_t name, uint32_t line)
{
	struct opd_runtime_answer *answer = asking->answer;

	if (answer->nr_functions < OPD_RUNTIME_INLINED_MAX)
		answer->functions[answer->nr_functions++] = (struct opd_runtime_function){ name, line };
}

/* A frame that has no name, and why. */
static void add_unreadable(struct opd_java_asking *asking, int err)
{
	uint32_t name = opd_runtime_names_add(asking->java->host->names, OP_RUNTIME_java, "", "[java: not readable]", 0);

	set_fault(asking, err == -ESTALE                     ? OPD_RUNTIME_MOVED
			  : err == -EAGAIN || err == -ENOMEM ? OPD_RUNTIME_NAMELESS
							     : OPD_RUNTIME_FAULT);
	if (name)
		add_function(asking, name, 0);
}

static void add_scope(struct opd_java_asking *asking, const struct opd_java_scope *scope)
{
	struct opd_java_function *method;
	int err = opd_java_get_method(asking, scope->method, &method);

	if (err)
		add_unreadable(asking, err);
	else
		add_function(asking, method->name, opd_java_line(method, scope->bci));
}

static bool word_at(const struct opd_java_asking *asking, uint64_t address, uint64_t *ret_word)
{
	return opd_runtime_read_word(asking->frame, address, ret_word);
}

static enum opd_runtime_how set_caller(struct opd_java_asking *asking, uint64_t pc, uint64_t sp, uint64_t fp, bool has_fp)
{
	asking->answer->pc = pc;
	asking->answer->sp = sp;
	asking->answer->fp = fp;
	asking->answer->has_fp = has_fp;
	return OPD_RUNTIME_CALLER;
}

/* The caller is behind the copy, if the address is one of the stack. */
static enum opd_runtime_how cut_or_guess(const struct opd_java_asking *asking, uint64_t address)
{
	const struct opd_runtime_frame *frame = asking->frame;

	return address + 2 * WORD - frame->stack_start - frame->nr_stack_bytes < STACK_MAX ? OPD_RUNTIME_CUT : OPD_RUNTIME_GUESS;
}

/*
 * The position in the bytecode is in r13 while it runs, and in the frame during calls. While a
 * method is entered r13 has something else, and the frame is still that of the caller.
 */
static uint32_t interpreted_line(const struct opd_java_asking *asking, const struct opd_java_function *method)
{
	const struct opd_runtime_frame *frame = asking->frame;
	uint64_t at = frame->registers[X86_R13];

	if (frame->is_exact && frame->known >> X86_R13 & 1 && at - method->code_start < method->code_bytes)
		return opd_java_line(method, (int64_t)(at - method->code_start));
	if (!word_at(asking, frame->fp + (uint64_t)(int64_t)(BYTECODE_WORD * (int)WORD), &at) ||
	    at - method->code_start >= method->code_bytes)
		return opd_java_line(method, 0);
	return opd_java_line(method, (int64_t)(at - method->code_start));
}

static bool is_return_address(struct opd_java_asking *asking, uint64_t pc)
{
	struct opd_java_range *place;
	struct opd_java_blob *blob;

	if (pc < asking->java->low || pc >= asking->java->high || opd_java_get_place(asking, pc, false, &blob, &place) || !place)
		return false;
	/* calls of the interpreter return to another place than the one behind them */
	return blob->code == OPD_JAVA_INTERPRETER || blob->code == OPD_JAVA_CALL_STUB ||
	       (blob->code == OPD_JAVA_COMPILED && place->is_behind_call);
}

/*
 * Interpreted code that is entered, and adapters on the way there, have the caller's sp in r13. The
 * return address is below that, or in rax. While the bytecode runs, r13 points into it.
 */
static bool find_entered(struct opd_java_asking *asking, uint64_t *ret_pc, uint64_t *ret_sp)
{
	const struct opd_runtime_frame *frame = asking->frame;
	uint64_t sp = frame->registers[X86_R13];

	if (!frame->is_exact || !(frame->known >> X86_R13 & 1) || sp < frame->sp || !word_at(asking, sp - WORD, ret_pc))
		return false;
	*ret_sp = sp;
	if (is_return_address(asking, *ret_pc))
		return true;
	*ret_pc = frame->registers[X86_RAX];
	return frame->known >> X86_RAX & 1 && is_return_address(asking, *ret_pc);
}

/* The method is in rbx. */
static enum opd_runtime_how step_entered(struct opd_java_asking *asking)
{
	const struct opd_runtime_frame *frame = asking->frame;
	struct opd_java_function *method;
	uint64_t pc, sp, fp = frame->fp;
	bool is_made = frame->fp >= frame->sp && frame->fp - frame->sp < FRAME_WORDS * WORD;

	if (!find_entered(asking, &pc, &sp)) {
		/* its frame is nearly made */
		if (!is_made || !word_at(asking, frame->fp + WORD, &pc) || !is_return_address(asking, pc) ||
		    !word_at(asking, frame->fp + (uint64_t)(int64_t)(SENDER_SP_WORD * (int)WORD), &sp))
			return OPD_RUNTIME_GUESS;
		sp = op_max_u64(sp, frame->fp + 2 * WORD);
	}
	if (is_made && frame->fp < sp && !word_at(asking, frame->fp, &fp))
		return OPD_RUNTIME_GUESS;
	if (!opd_java_get_method(asking, frame->registers[X86_RBX], &method))
		add_function(asking, method->name, opd_java_line(method, 0));
	return set_caller(asking, pc, sp, fp, true);
}

static enum opd_runtime_how step_interpreted(struct opd_java_asking *asking)
{
	const struct opd_runtime_frame *frame = asking->frame;
	uint64_t at, sender_sp, pc, fp;
	struct opd_java_function *method;
	int err;

	if (frame->is_exact) {
		enum opd_runtime_how how = step_entered(asking);

		if (how != OPD_RUNTIME_GUESS)
			return how;
	}
	if (!frame->has_fp || frame->fp < frame->sp)
		return OPD_RUNTIME_GUESS;
	if (!word_at(asking, frame->fp, &fp) || !word_at(asking, frame->fp + WORD, &pc) ||
	    !word_at(asking, frame->fp + (uint64_t)(int64_t)(SENDER_SP_WORD * (int)WORD), &sender_sp) ||
	    !word_at(asking, frame->fp + (uint64_t)(int64_t)(METHOD_WORD * (int)WORD), &at))
		return cut_or_guess(asking, frame->fp);
	err = opd_java_get_method(asking, at, &method);
	if (!err)
		add_function(asking, method->name, interpreted_line(asking, method));
	else
		add_unreadable(asking, err);
	/* A method handle takes words off the stack of its caller, which is interpreted then. */
	return set_caller(asking, pc, op_max_u64(sender_sp, frame->fp + 2 * WORD), fp, true);
}

/*
 * Stubs without a frame size: they make a frame by the frame pointer, or none. A word that is
 * behind a call of a method or of the interpreter is the return address.
 */
static enum opd_runtime_how step_stub(struct opd_java_asking *asking)
{
	const struct opd_runtime_frame *frame = asking->frame;
	uint64_t pc, sp, fp;

	if (frame->is_exact && frame->has_sp && word_at(asking, frame->sp, &pc) && is_return_address(asking, pc))
		return set_caller(asking, pc, frame->sp + WORD, frame->fp, frame->has_fp);
	if (find_entered(asking, &pc, &sp))
		return set_caller(asking, pc, sp, frame->fp, frame->has_fp);
	if (frame->has_fp && frame->fp >= frame->sp && word_at(asking, frame->fp, &fp) && word_at(asking, frame->fp + WORD, &pc) &&
	    is_return_address(asking, pc))
		return OPD_RUNTIME_PASS;
	return OPD_RUNTIME_GUESS;
}

/* Code with a frame of fixed size. */
static enum opd_runtime_how step_sized(struct opd_java_asking *asking, const struct opd_java_blob *blob, enum opd_java_shape shape)
{
	const struct opd_runtime_frame *frame = asking->frame;
	uint64_t sp = frame->sp, pc, fp = frame->fp;
	bool has_fp = frame->has_fp;

	if (!frame->has_sp)
		return OPD_RUNTIME_GUESS;
	switch (shape) {
	case OPD_JAVA_NO_FRAME:
		sp += WORD;
		break;
	case OPD_JAVA_PUSHED:
		sp += 2 * WORD;
		break;
	case OPD_JAVA_FULL:
	case OPD_JAVA_MADE_ROOM:
		sp += blob->frame_bytes;
		break;
	}
	if (!word_at(asking, sp - WORD, &pc))
		return cut_or_guess(asking, sp - WORD);
	if (shape == OPD_JAVA_FULL || shape == OPD_JAVA_PUSHED)
		has_fp = word_at(asking, sp - 2 * WORD, &fp);
	return set_caller(asking, pc, sp, fp, has_fp);
}

static enum opd_runtime_how step_compiled(struct opd_java_asking *asking, const struct opd_java_blob *blob,
					  const struct opd_java_range *place)
{
	/* asking for methods may forget what is kept */
	struct opd_java_scope scopes[OPD_JAVA_SCOPES_MAX];
	const struct opd_runtime_frame *frame = asking->frame;
	enum opd_java_shape shape = place->shape;
	struct opd_java_blob copy = *blob;
	uint32_t nr = place->nr_scopes;
	uint64_t pc;
	int err = 0;

	if (place->original_pc >= 0) {
		struct opd_java_blob *of;

		if (!frame->has_sp || !word_at(asking, frame->sp + (uint32_t)place->original_pc, &pc))
			return cut_or_guess(asking, frame->sp + (uint32_t)place->original_pc);
		if (pc <= copy.start || pc > copy.end)
			err = -EBADMSG;
		else
			err = opd_java_get_place(asking, pc, false, &of, (struct opd_java_range **)(uintptr_t)&place);
		err = err ? err : !place || place->original_pc >= 0 ? -EBADMSG : 0;
		nr = err ? 0 : place->nr_scopes;
	} else if (!frame->is_exact && !place->is_behind_call) {
		err = -ESTALE; /* it is other code */
	}
	if (err) {
		add_unreadable(asking, err);
		return err == -ESTALE ? OPD_RUNTIME_GUESS : step_sized(asking, &copy, shape);
	}
	if (nr)
		memcpy(scopes, place->scopes, nr * sizeof(scopes[0]));
	for (uint32_t i = 0; i < nr; i++)
		add_scope(asking, &scopes[i]);
	return step_sized(asking, &copy, shape);
}

/* It keeps fp, which leads to the native code that called Java. */
static enum opd_runtime_how step_call_stub(struct opd_java_asking *asking)
{
	const struct opd_runtime_frame *frame = asking->frame;
	uint64_t pc;

	if (!frame->has_fp)
		return OPD_RUNTIME_GUESS;
	return word_at(asking, frame->fp + WORD, &pc) ? OPD_RUNTIME_PASS : cut_or_guess(asking, frame->fp + WORD);
}

static enum opd_runtime_how step_code(struct opd_java_asking *asking)
{
	const struct opd_runtime_frame *frame = asking->frame;
	enum opd_runtime_how how = OPD_RUNTIME_GUESS;
	struct opd_java_range *place;
	struct opd_java_blob *blob;
	int err = opd_java_get_place(asking, frame->pc, frame->is_exact, &blob, &place);

	if (err) {
		add_unreadable(asking, err);
		return OPD_RUNTIME_GUESS;
	}
	if (!place)
		return OPD_RUNTIME_GUESS;
	switch (blob->code) {
	case OPD_JAVA_INTERPRETER:
		how = step_interpreted(asking);
		break;
	case OPD_JAVA_COMPILED:
		how = step_compiled(asking, blob, place);
		break;
	case OPD_JAVA_CALL_STUB:
		how = step_call_stub(asking);
		break;
	case OPD_JAVA_STUB:
		how = blob->frame_bytes ? step_sized(asking, blob, place->shape) : step_stub(asking);
		break;
	case OPD_JAVA_NO_CODE:
		break;
	}
	if (how == OPD_RUNTIME_GUESS)
		set_fault(asking, OPD_RUNTIME_NO_CALLER);
	return how;
}

static enum opd_runtime_how ask(void *process, const struct opd_runtime_frame *frame, struct opd_runtime_answer *ret_answer,
				enum opd_runtime_fault *fault)
{
	struct opd_java_asking asking = {
		.java = process, .frame = frame, .answer = ret_answer, .fault = fault, .now_ns = op_now_ns()
	};
	enum opd_runtime_how how = OPD_RUNTIME_GUESS;
	int err = asking.java->has_layout ? 0 : opd_java_get_layout(&asking);

	if (op_stack_machine() != EM_X86_64)
		err = -EPROTONOSUPPORT;
	if (!err)
		how = step_code(&asking);
	else if (err == -EPROTONOSUPPORT) /* another reader, as of a perf map, may know its code */
		set_fault(&asking, frame->is_region ? OPD_RUNTIME_FAULT : OPD_RUNTIME_NO_FAULT);
	else if (frame->is_region)
		add_unreadable(&asking, err);
	if (!asking.must_wait || !frame->may_wait)
		return how;
	ret_answer->nr_functions = 0;
	*fault = OPD_RUNTIME_NO_FAULT;
	return OPD_RUNTIME_WAIT;
}

const struct opd_runtime_kind opd_runtime_java = {
	.runtime = OP_RUNTIME_java,
	.is_image = is_libjvm,
	.begin = begin,
	.ask = ask,
	.end = end,
};
