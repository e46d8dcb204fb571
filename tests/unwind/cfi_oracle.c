// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * cfi_oracle IMAGE TABLE [ROWS]: compares the rows of a table with what libdw says of the same
 * image: at the start of every n-th row, at its last byte, and behind each function. Prints the
 * numbers of positions that agree and that differ, and the first differences. Exit code 1 when one
 * differs.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/unwind/row_table.h"

#define SHOWN 10
#define X86_RBX 3

struct oracle {
	Elf *elf;
	Dwarf_CFI *eh, *debug;
	struct op_row_table table;
	int ra, fp;
	bool is_x86;
	uint64_t nr_same, nr_different, nr_unknown;
};

/* The address of a position; 0: it is not loaded as code. */
static uint64_t address_of(Elf *elf, uint64_t position)
{
	size_t nr;
	GElf_Phdr header;

	elf_getphdrnum(elf, &nr);
	for (size_t i = 0; i < nr; i++)
		if (gelf_getphdr(elf, (int)i, &header) && header.p_type == PT_LOAD && header.p_flags & PF_X &&
		    position >= header.p_offset && position - header.p_offset < header.p_filesz)
			return position - header.p_offset + header.p_vaddr;
	return 0;
}

static bool is_breg(const Dwarf_Op *op, int *ret_reg, int64_t *ret_offset)
{
	if (op->atom == DW_OP_bregx) {
		*ret_reg = (int)op->number;
		*ret_offset = (int64_t)op->number2;
		return true;
	}
	if (op->atom < DW_OP_breg0 || op->atom > DW_OP_breg31)
		return false;
	*ret_reg = op->atom - DW_OP_breg0;
	*ret_offset = (int64_t)op->number;
	return true;
}

/* Whether libdw's CFA is the one of the rule; -1: the rule does not know it. */
static int same_cfa(const struct op_row_rule *rule, const Dwarf_Op *ops, size_t nr_ops)
{
	int64_t offset;
	int reg;

	if (!rule)
		return -1;
	if (!nr_ops || !is_breg(&ops[0], &reg, &offset))
		return rule->cfa_how == OP_CFA_NONE;
	if (reg != rule->cfa_reg || offset != rule->cfa_offset)
		return 0;
	switch (rule->cfa_how) {
	case OP_CFA_REG:
		return nr_ops == 1;
	case OP_CFA_DEREF:
		return ops[1].atom == DW_OP_deref &&
		       (nr_ops == 2 ? !rule->cfa_more
				    : nr_ops == 3 && ops[2].atom == DW_OP_plus_uconst && (int64_t)ops[2].number == rule->cfa_more);
	case OP_CFA_PLT:
		return nr_ops == 9 && ops[4].atom == DW_OP_lit0 + rule->cfa_more && ops[5].atom == DW_OP_ge;
	}
	return 0;
}

static int same_value(uint8_t how, uint8_t value_reg, int32_t value_offset, Dwarf_Frame *frame, int reg)
{
	Dwarf_Op space[3], *ops;
	size_t nr_ops;
	int64_t offset;
	int base;

	if (dwarf_frame_register(frame, reg, space, &ops, &nr_ops) < 0)
		return -1;
	if (!nr_ops)
		return how == (ops ? OP_VALUE_UNDEFINED : OP_VALUE_SAME);
	if (ops[0].atom == DW_OP_regx || (ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31))
		return how == OP_VALUE_IN_REG &&
		       value_reg == (ops[0].atom == DW_OP_regx ? (int)ops[0].number : ops[0].atom - DW_OP_reg0);
	if (ops[0].atom == DW_OP_call_frame_cfa &&
	    (nr_ops == 1 || ops[1].atom == DW_OP_plus_uconst || ops[1].atom == DW_OP_stack_value)) {
		bool is_value = ops[nr_ops - 1].atom == DW_OP_stack_value;

		offset = nr_ops > 1 && ops[1].atom == DW_OP_plus_uconst ? (int64_t)ops[1].number : 0;
		return how == (is_value ? OP_VALUE_IS_CFA : OP_VALUE_AT_CFA) && offset == value_offset;
	}
	/* an expression: libdw puts the CFA before it */
	if (ops[0].atom == DW_OP_call_frame_cfa && nr_ops == 2 && is_breg(&ops[1], &base, &offset))
		return how == OP_VALUE_AT_REG && base == value_reg && offset == value_offset;
	return how == OP_VALUE_UNKNOWN ? -1 : 0;
}

/* A function that does not save rbx keeps it (psABI, section 3.2.1). libdw says that of rax. */
static int same_bx(const struct op_row_rule *rule, Dwarf_Frame *frame)
{
	Dwarf_Op space[3], *ops;
	size_t nr_ops;

	if (rule->bx_how == OP_VALUE_UNKNOWN || dwarf_frame_register(frame, X86_RBX, space, &ops, &nr_ops) < 0)
		return -1;
	return nr_ops ? same_value(rule->bx_how, 0, rule->bx_offset, frame, X86_RBX) : rule->bx_how == OP_VALUE_SAME;
}

static void check(struct oracle *oracle, uint64_t position)
{
	const struct op_row_rule *rule = op_row_table_find(&oracle->table, position);
	uint64_t address = address_of(oracle->elf, position);
	Dwarf_Frame *frame = NULL;
	Dwarf_Op *ops;
	size_t nr_ops;
	int cfa, ra = 1, fp = 1, bx = 1;

	if (!address)
		return;
	if (!oracle->eh || dwarf_cfi_addrframe(oracle->eh, address, &frame) < 0)
		if (!oracle->debug || dwarf_cfi_addrframe(oracle->debug, address, &frame) < 0)
			frame = NULL;
	if (!frame) {
		/* padding behind a function has the rule of the function */
		oracle->nr_unknown += rule != NULL;
		oracle->nr_same += !rule;
		return;
	}
	cfa = dwarf_frame_cfa(frame, &ops, &nr_ops) < 0 ? -1 : same_cfa(rule, ops, nr_ops);
	if (rule && rule->cfa_how != OP_CFA_NONE) {
		ra = same_value(rule->ra_how, rule->ra_reg, rule->ra_offset, frame, oracle->ra);
		fp = same_value(rule->fp_how, rule->fp_reg, rule->fp_offset, frame, oracle->fp);
		if (oracle->is_x86)
			bx = same_bx(rule, frame);
		if (rule->ra_how == OP_VALUE_UNDEFINED)
			cfa = fp = bx = 1;
	}
	free(frame);
	if (cfa == 1 && ra == 1 && fp == 1 && bx == 1)
		oracle->nr_same++;
	else if (cfa && ra && fp && bx)
		oracle->nr_unknown++;
	else if (oracle->nr_different++ < SHOWN)
		printf("differs at %#" PRIx64 " (address %#" PRIx64
		       "): cfa %d, return address %d, frame pointer %d, rbx %d; rule %d r%d%+d %d%+d %d%+d\n",
		       position, address, cfa, ra, fp, bx, rule ? rule->cfa_how : -1, rule ? rule->cfa_reg : 0,
		       rule ? rule->cfa_offset : 0, rule ? rule->ra_how : -1, rule ? rule->ra_offset : 0, rule ? rule->fp_how : -1,
		       rule ? rule->fp_offset : 0);
}

static const void *map(const char *path, size_t *ret_nr_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		perror(path);
		exit(2);
	}
	*ret_nr_bytes = (size_t)st.st_size;
	return mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
}

int main(int argc, char **argv)
{
	struct oracle oracle = { 0 };
	size_t nr_bytes, step;
	const void *bytes;
	GElf_Ehdr header;
	Dwarf *dwarf;
	int fd;

	if (argc < 3) {
		fprintf(stderr, "usage: cfi_oracle IMAGE TABLE [ROWS]\n");
		return 2;
	}
	elf_version(EV_CURRENT);
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	oracle.elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!oracle.elf || !gelf_getehdr(oracle.elf, &header)) {
		fprintf(stderr, "%s: not an ELF file\n", argv[1]);
		return 2;
	}
	oracle.is_x86 = header.e_machine == EM_X86_64;
	oracle.ra = oracle.is_x86 ? 16 : 30;
	oracle.fp = oracle.is_x86 ? 6 : 29;
	oracle.eh = dwarf_getcfi_elf(oracle.elf);
	dwarf = dwarf_begin_elf(oracle.elf, DWARF_C_READ, NULL);
	oracle.debug = dwarf ? dwarf_getcfi(dwarf) : NULL;
	bytes = map(argv[2], &nr_bytes);
	if (op_row_table_open(&oracle.table, bytes, nr_bytes) < 0) {
		fprintf(stderr, "%s: damaged\n", argv[2]);
		return 2;
	}
	step = argc > 3 && oracle.table.nr_rows > strtoul(argv[3], NULL, 10) ? oracle.table.nr_rows / strtoul(argv[3], NULL, 10)
									     : 1;
	for (size_t i = 0; i < oracle.table.nr_rows; i += step) {
		check(&oracle, oracle.table.starts[i]);
		if (oracle.table.starts[i])
			check(&oracle, oracle.table.starts[i] - 1);
	}
	printf("%s: %zu rows, %u rules, %zu functions, %zu bytes: %" PRIu64 " the same, %" PRIu64 " not known, %" PRIu64
	       " differ\n",
	       argv[1], oracle.table.nr_rows, oracle.table.header->nr_rules, oracle.table.nr_functions, nr_bytes, oracle.nr_same,
	       oracle.nr_unknown, oracle.nr_different);
	dwarf_cfi_end(oracle.eh);
	dwarf_end(dwarf);
	elf_end(oracle.elf);
	close(fd);
	return oracle.nr_different != 0;
}
