/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What program.bpf.c knows of the structures of the kernel: the members that it uses. The loader
 * finds their places by name (CO-RE).
 */
#include <linux/types.h>

#define PF_KTHREAD     0x00200000u
#define STATE_D	       0x0002u
#define STATE_STOPPED  (0x0004u | 0x0008u) /* by a signal, or by a debugger */
#define STATE_DEAD     (0x0010u | 0x0020u | 0x0080u)
#define STATE_FROZEN   0x8000u

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, orig_ax, ip, sp;
};
#else
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp, pc;
};
struct pt_regs {
	struct user_pt_regs user_regs;
};
#endif

struct kernfs_node {
	__u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

enum cgroup_subsys_id {
	perf_event_cgrp_id,
};

struct css_set {
	struct cgroup_subsys_state *subsys[1];
};

struct super_block {
	__u32 s_dev;
};

struct inode {
	unsigned long i_ino;
	struct super_block *i_sb;
};

struct dentry {
	struct inode *d_inode;
};

struct path {
	struct dentry *dentry;
};

struct file {
	unsigned int f_mode;
	struct inode *f_inode;
};

struct backing_file {
	struct file file;
	struct path user_path;
};

struct vm_area_struct {
	unsigned long vm_start, vm_pgoff;
	struct file *vm_file;
};

struct mm_struct {
	unsigned long start_stack, start_code;
	struct file *exe_file;
};

#if defined(__TARGET_ARCH_x86)
struct thread_struct {
	unsigned long fsbase;
};
#else
struct thread_struct {
	struct {
		unsigned long tp_value;
	} uw;
};
#endif

struct task_struct {
	unsigned int __state;
	unsigned int flags;
	int on_cpu;
	int pid, tgid;
	struct css_set *cgroups;
	struct mm_struct *mm;
	struct thread_struct thread;
	void *stack;
	unsigned int in_iowait : 1;
	unsigned int frozen : 1;
};

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop
