/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What V8 tells debuggers of its own layout, as words of a row table (runtime_words.h): numbers in
 * the symbols v8dbg_* of node or libnode.so, and its version. In the sources of Node:
 * deps/v8/tools/gen-postmortem-metadata.py. pipeline/files/node_heap.h says what they are for.
 *
 * X(name, symbol). Symbols whose value is always 0 are left out: they lie in .bss, and a file has
 * no content for them.
 *
 * Numbers are in files: a new word comes at the end.
 */
#ifndef OP_NODE_WORDS_H
#define OP_NODE_WORDS_H

/* clang-format off */
#define OP_NODE_WORDS(X) \
	X(major,                "_ZN2v88internal7Version6major_E") \
	X(minor,                "_ZN2v88internal7Version6minor_E") \
	X(tagged_bytes,         "v8dbg_TaggedSize") \
	X(smi_shift,            "v8dbg_SmiShiftSize") \
	X(fp_context,           "v8dbg_off_fp_context_or_frame_type") \
	X(fp_function,          "v8dbg_off_fp_function") \
	X(fp_bytecode,          "v8dbg_off_fp_bytecode_array") \
	X(fp_bytecode_offset,   "v8dbg_off_fp_bytecode_offset") \
	X(frame_entry,          "v8dbg_frametype_EntryFrame") \
	X(frame_construct_entry, "v8dbg_frametype_ConstructEntryFrame") \
	X(frame_last,           "v8dbg_frametype_NativeFrame") \
	X(map_type,             "v8dbg_class_Map__instance_type__uint16_t") \
	X(function_shared,      "v8dbg_class_JSFunction__shared__SharedFunctionInfo") \
	X(shared_data,          "v8dbg_class_SharedFunctionInfo__function_data__Object") \
	X(shared_name,          "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Object") \
	X(shared_script,        "v8dbg_class_SharedFunctionInfo__script_or_debug_info__HeapObject") \
	X(shared_length,        "v8dbg_class_SharedFunctionInfo__length__uint16_t") \
	X(script_source,        "v8dbg_class_Script__source__Object") \
	X(script_name,          "v8dbg_class_Script__name__Object") \
	X(script_line_ends,     "v8dbg_class_Script__line_ends__Object") \
	X(string_length,        "v8dbg_class_String__length__int32_t") \
	X(string_one_byte,      "v8dbg_class_SeqOneByteString__chars__char") \
	X(string_two_bytes,     "v8dbg_class_SeqTwoByteString__chars__char") \
	X(string_first,         "v8dbg_class_ConsString__first__String") \
	X(string_second,        "v8dbg_class_ConsString__second__String") \
	X(string_parent_offset, "v8dbg_class_SlicedString__offset__SMI") \
	X(string_actual,        "v8dbg_class_ThinString__actual__String") \
	X(string_resource,      "v8dbg_class_ExternalString__resource__Object") \
	X(string_shape_mask,    "v8dbg_StringRepresentationMask") \
	X(string_is_one_byte,   "v8dbg_StringEncodingMask") \
	X(string_cons,          "v8dbg_ConsStringTag") \
	X(string_external,      "v8dbg_ExternalStringTag") \
	X(string_sliced,        "v8dbg_SlicedStringTag") \
	X(string_thin,          "v8dbg_ThinStringTag") \
	X(uncompiled_name,      "v8dbg_class_UncompiledData__inferred_name__String") \
	X(uncompiled_start,     "v8dbg_class_UncompiledData__start_position__int32_t") \
	X(array_length,         "v8dbg_class_FixedArrayBase__length__SMI") \
	X(array_data,           "v8dbg_class_FixedArray__data__uintptr_t") \
	X(scope_nr_locals,      "v8dbg_scopeinfo_idx_ncontextlocals") \
	X(scope_locals,         "v8dbg_scopeinfo_idx_first_vars") \
	X(first_nonstring,      "v8dbg_FirstNonstringType") \
	X(type_function,        "v8dbg_type_JSFunction__JS_FUNCTION_TYPE") \
	X(type_shared,          "v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE") \
	X(type_scope,           "v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE") \
	X(type_script,          "v8dbg_type_Script__SCRIPT_TYPE") \
	X(type_bytecode,        "v8dbg_type_BytecodeArray__BYTECODE_ARRAY_TYPE") \
	X(type_code,            "v8dbg_type_Code__CODE_TYPE") \
	X(type_array,           "v8dbg_type_FixedArray__FIXED_ARRAY_TYPE") \
	X(type_weak_array,      "v8dbg_type_WeakFixedArray__WEAK_FIXED_ARRAY_TYPE") \
	X(type_uncompiled_first, "v8dbg_type_UncompiledDataWithPreparseData__UNCOMPILED_DATA_WITH_PREPARSE_DATA_TYPE") \
	X(type_uncompiled_last, \
	  "v8dbg_type_UncompiledDataWithoutPreparseDataWithJob__UNCOMPILED_DATA_WITHOUT_PREPARSE_DATA_WITH_JOB_TYPE") \
	X(bytecode_data,        "v8dbg_class_BytecodeArray__data__uintptr_t")
/* clang-format on */

#endif
