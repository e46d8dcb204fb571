# SPDX-License-Identifier: GPL-3.0-or-later
pipeline_libpipeline_a_SOURCES += pipeline/runtimes/names.c pipeline/runtimes/names.h
EXTRA_DIST += pipeline/runtimes/README.md
