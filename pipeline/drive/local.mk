# SPDX-License-Identifier: GPL-3.0-or-later
pipeline_libpipeline_a_SOURCES += \
	pipeline/drive/arcs.c pipeline/drive/arcs.h \
	pipeline/drive/attribute.h \
	pipeline/drive/drain.c pipeline/drive/drain.h \
	pipeline/drive/ibs_sample.c pipeline/drive/ibs_sample.h \
	pipeline/drive/loop.c pipeline/drive/loop.h \
	pipeline/drive/note_record.h \
	pipeline/drive/notes.c pipeline/drive/notes.h \
	pipeline/drive/pipeline.c pipeline/drive/pipeline.h \
	pipeline/drive/record_source.h \
	pipeline/drive/interpreter_notes.c pipeline/drive/interpreter_notes.h \
	pipeline/drive/sources.c pipeline/drive/sources.h \
	pipeline/drive/stack_booking.c pipeline/drive/stack_booking.h \
	pipeline/drive/stack_records.c pipeline/drive/stack_records.h \
	pipeline/drive/visit.c pipeline/drive/visit.h
EXTRA_DIST += pipeline/drive/README.md
