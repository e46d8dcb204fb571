dnl SPDX-License-Identifier: GPL-3.0-or-later
dnl What configure.ac of opd needs beyond autoconf's own macros.

dnl OPD_NEED_PKG(PREFIX, MODULES, DEBIAN-PACKAGE): a pkg-config module; stops if it is missing.
AC_DEFUN([OPD_NEED_PKG], [
  PKG_CHECK_MODULES([$1], [$2], [],
    [AC_MSG_ERROR([$2 is missing: install the Debian package $3 (apt-get install $3)])])
])

dnl OPD_NEED_LIB(PREFIX, HEADER, FUNCTION, LIBS, DEBIAN-PACKAGE, MORE-LIBS):
dnl a library without a pkg-config file.
AC_DEFUN([OPD_NEED_LIB], [
  opd_save_LIBS=$LIBS
  AC_CHECK_HEADER([$2], [],
    [AC_MSG_ERROR([$2 is missing: install the Debian package $5 (apt-get install $5)])],
    [[#define PACKAGE "opd"
      #define PACKAGE_VERSION "0"]])
  $1_LIBS=
  for opd_more in "" "$6"; do
    AS_IF([test -z "$$1_LIBS"], [
      LIBS="$4 $opd_more $opd_save_LIBS"
      AC_MSG_CHECKING([for $3 in $4 $opd_more])
      AC_LINK_IFELSE([AC_LANG_CALL([], [$3])],
        [AC_MSG_RESULT([yes]); $1_LIBS="$4 $opd_more"], [AC_MSG_RESULT([no])])
    ])
  done
  LIBS=$opd_save_LIBS
  AS_IF([test -z "$$1_LIBS"],
    [AC_MSG_ERROR([$3 ($4) does not link: install the Debian package $5 (apt-get install $5)])])
  AC_SUBST([$1_LIBS])
])

dnl OPD_FILTER: the system calls of lookers are filtered where libseccomp is. Sanitizers have calls
dnl of their own, and an emulator of programs may have no filters.
AC_DEFUN([OPD_FILTER], [
  opd_filter=no
  AC_ARG_ENABLE([filter],
    [AS_HELP_STRING([--disable-filter], [no filter of system calls, as without libseccomp])])
  AS_IF([test -z "$SAN_CFLAGS" && test "x$enable_filter" != xno],
    [PKG_CHECK_MODULES([SECCOMP], [libseccomp >= 2.5], [opd_filter=yes],
      [AC_MSG_NOTICE([lookers have no filter: libseccomp is in the Debian package libseccomp-dev])])])
  AM_CONDITIONAL([HAVE_SECCOMP], [test "x$opd_filter" = xyes])
])

dnl OPD_BPF: the program in the kernel that samples waits. clang compiles it and libbpf loads it;
dnl the object is inside opd-waits, so that a host needs neither clang nor headers.
AC_DEFUN([OPD_BPF], [
  opd_bpf=no
  AC_ARG_ENABLE([bpf], [AS_HELP_STRING([--disable-bpf], [no program in the kernel: opd samples no waits])])
  AC_ARG_VAR([CLANG], [the clang that compiles for BPF])
  AC_CHECK_PROGS([CLANG], [clang clang-19 clang-16 clang-15 clang-14])
  opd_bpf_target=
  AC_COMPILE_IFELSE([AC_LANG_SOURCE([[#ifndef __x86_64__
    #error
    #endif]])], [opd_bpf_target=x86])
  AC_COMPILE_IFELSE([AC_LANG_SOURCE([[#ifndef __aarch64__
    #error
    #endif]])], [opd_bpf_target=arm64])
  BPF_CPPFLAGS="-D__TARGET_ARCH_$opd_bpf_target"
  opd_multiarch=`$CC -print-multiarch 2>/dev/null`
  AS_IF([test -n "$opd_multiarch"], [BPF_CPPFLAGS="$BPF_CPPFLAGS -I/usr/include/$opd_multiarch"])
  AC_SUBST([BPF_CPPFLAGS])
  AS_IF([test "x$enable_bpf" != xno && test -n "$opd_bpf_target" && test -n "$CLANG"],
    [PKG_CHECK_MODULES([BPF], [libbpf >= 1.0], [opd_bpf=yes], [opd_bpf=no])])
  AS_IF([test "x$opd_bpf" = xno],
    [AC_MSG_NOTICE([opd samples no waits: it needs the Debian packages clang and libbpf-dev, on x86-64 or arm64])])
  AM_CONDITIONAL([HAVE_BPF], [test "x$opd_bpf" = xyes])
])

dnl OPD_PEER(PREFIX, MODULE, DEBIAN-PACKAGE): a pkg-config module that only a benchmark uses.
AC_DEFUN([OPD_PEER], [
  PKG_CHECK_MODULES([$1], [$2], [],
    [AC_MSG_NOTICE([benchmarks go without $2, which is in the Debian package $3])])
])

dnl OPD_WARNINGS: WARN_CFLAGS has every flag that this compiler knows. With --enable-werror a
dnl warning is an error.
AC_DEFUN([OPD_WARNINGS], [
  AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [a warning is an error])])
  WARN_CFLAGS=
  AC_LANG_PUSH([C])
  for opd_flag in -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition \
      -Wpointer-arith -Wwrite-strings -Wundef -Wformat=2 -Wformat-nonliteral -Wvla -Wcast-qual \
      -Wnull-dereference -Wduplicated-cond -Wduplicated-branches -Wlogical-op -Wimplicit-fallthrough \
      -Wswitch-enum -Wstrict-overflow=1 -Walloca -Wdate-time -Wredundant-decls \
      -Wnested-externs -Winit-self -Wfloat-equal -Wunused-macros; do
    opd_save_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS -Werror $opd_flag"
    AC_MSG_CHECKING([whether $CC knows $opd_flag])
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
      [AC_MSG_RESULT([yes]); WARN_CFLAGS="$WARN_CFLAGS $opd_flag"], [AC_MSG_RESULT([no])])
    CFLAGS=$opd_save_CFLAGS
  done
  AC_LANG_POP([C])
  AS_IF([test "x$enable_werror" = xyes], [WARN_CFLAGS="$WARN_CFLAGS -Werror"])
  AC_SUBST([WARN_CFLAGS])
])

dnl OPD_SANITIZERS: --enable-sanitizers (ASan and UBSan) and --enable-tsan, never both. Their
dnl reports need lines alone, and -g1 compiles in three quarters of the time of -g.
AC_DEFUN([OPD_SANITIZERS], [
  AC_ARG_ENABLE([sanitizers], [AS_HELP_STRING([--enable-sanitizers], [build with ASan and UBSan])])
  AC_ARG_ENABLE([tsan], [AS_HELP_STRING([--enable-tsan], [build with ThreadSanitizer])])
  SAN_CFLAGS=
  AS_IF([test "x$enable_sanitizers" = xyes && test "x$enable_tsan" = xyes],
    [AC_MSG_ERROR([--enable-sanitizers and --enable-tsan exclude each other])])
  AS_IF([test "x$enable_sanitizers" = xyes],
    [SAN_CFLAGS="-g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"])
  AS_IF([test "x$enable_tsan" = xyes], [SAN_CFLAGS="-g1 -fsanitize=thread -fno-omit-frame-pointer"])
  AC_ARG_ENABLE([fuzzing],
    [AS_HELP_STRING([--enable-fuzzing], [fuzz targets are programs of libFuzzer; needs clang])])
  FUZZ_ENGINE=
  AS_IF([test "x$enable_fuzzing" = xyes],
    [SAN_CFLAGS="$SAN_CFLAGS -fsanitize=fuzzer-no-link"; FUZZ_ENGINE=-fsanitize=fuzzer])
  AC_SUBST([FUZZ_ENGINE])
  AC_SUBST([SAN_CFLAGS])
  HARDEN_CPPFLAGS= HARDEN_CFLAGS= HARDEN_LDFLAGS=
  AS_IF([test -z "$SAN_CFLAGS"], [
    HARDEN_CPPFLAGS="-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2"
    HARDEN_CFLAGS="-fstack-protector-strong -fPIE"
    HARDEN_LDFLAGS="-pie -Wl,-z,relro -Wl,-z,now -Wl,--as-needed"])
  AC_SUBST([HARDEN_CPPFLAGS])
  AC_SUBST([HARDEN_CFLAGS])
  AC_SUBST([HARDEN_LDFLAGS])
])

dnl OPD_SYSTEMD_DIR(VARIABLE, WHAT, ELSE): where files for systemd go, as pkg-config says, below our
dnl prefix; without systemd.pc PREFIX/ELSE.
AC_DEFUN([OPD_SYSTEMD_DIR], [
  AC_ARG_WITH([$1], [AS_HELP_STRING([--with-$1=DIR], [where $2])], [$1=$withval], [
    AC_MSG_CHECKING([where $2])
    $1=`$PKG_CONFIG --define-variable=prefix='${prefix}' --define-variable=rootprefix='${prefix}' \
      --define-variable=root_prefix='${prefix}' --variable=$1 systemd 2>/dev/null`
    AS_CASE([$$1], ['${prefix}/'*], [], [$1='${prefix}/$3'])
    AC_MSG_RESULT([$$1])])
  AC_SUBST([$1])
])
