# SPDX-License-Identifier: GPL-3.0-or-later
pipeline_libpipeline_a_SOURCES += \
	pipeline/runtimes/host.c pipeline/runtimes/host.h \
	pipeline/runtimes/java.c pipeline/runtimes/java.h \
	pipeline/runtimes/java_state.c pipeline/runtimes/java_state.h \
	pipeline/runtimes/names.c pipeline/runtimes/names.h \
	pipeline/runtimes/interpreters.c pipeline/runtimes/interpreters.h \
	pipeline/runtimes/perl.c pipeline/runtimes/perl.h \
	pipeline/runtimes/php.c pipeline/runtimes/php.h \
	pipeline/runtimes/python.c pipeline/runtimes/python.h \
	pipeline/runtimes/node.c pipeline/runtimes/node.h \
	pipeline/runtimes/runtimes.c pipeline/runtimes/runtimes.h \
	pipeline/runtimes/ruby.c pipeline/runtimes/ruby.h \
	pipeline/runtimes/shared.h \
	pipeline/runtimes/step.h
EXTRA_DIST += pipeline/runtimes/README.md pipeline/runtimes/interpreters.bpf.h pipeline/runtimes/perl.bpf.h \
	pipeline/runtimes/php.bpf.h pipeline/runtimes/ruby.bpf.h
