# SPDX-License-Identifier: GPL-3.0-or-later
# What a system needs to run opd: service, user and group, directories, configuration. make fills in
# the paths, since they depend on its directories.
EXTRA_DIST += init/opd.service.in init/opd.socket.in init/opd-events.service.in \
	init/opd-events.socket.in init/opd.preset init/opd.sysusers init/opd.tmpfiles.in init/opd.conf.in

init_built = init/opd.service init/opd.socket init/opd-events.service init/opd-events.socket \
	init/system-preset/90-opd.preset init/opd.conf init/sysusers.d/opd.conf init/tmpfiles.d/opd.conf
CLEANFILES += $(init_built)

systemdsystemunit_DATA = init/opd.service init/opd.socket init/opd-events.service init/opd-events.socket
systemdsystempreset_DATA = init/system-preset/90-opd.preset
sysusers_DATA = init/sysusers.d/opd.conf
tmpfiles_DATA = init/tmpfiles.d/opd.conf
noinst_DATA = init/opd.conf

# The table in daemon/privileges.c, but for CAP_IPC_LOCK. CAP_BPF is for opd-waits alone.
opd_capabilities = CAP_BPF CAP_PERFMON CAP_SYS_PTRACE CAP_CHECKPOINT_RESTORE CAP_DAC_READ_SEARCH CAP_SYSLOG

fill_paths = $(AM_V_GEN)$(MKDIR_P) $(@D) && $(SED) \
	-e 's|@sbindir[@]|$(sbindir)|g' \
	-e 's|@pkglibexecdir[@]|$(pkglibexecdir)|g' \
	-e 's|@localstatedir[@]|$(localstatedir)|g' \
	-e 's|@runstatedir[@]|$(runstatedir)|g' \
	-e 's|@capabilities[@]|$(opd_capabilities)|g'

init/opd.service: $(srcdir)/init/opd.service.in Makefile
	$(fill_paths) $(srcdir)/init/opd.service.in >$@.tmp && mv $@.tmp $@

init/opd.socket: $(srcdir)/init/opd.socket.in Makefile
	$(fill_paths) $(srcdir)/init/opd.socket.in >$@.tmp && mv $@.tmp $@

init/opd-events.service: $(srcdir)/init/opd-events.service.in Makefile
	$(fill_paths) $(srcdir)/init/opd-events.service.in >$@.tmp && mv $@.tmp $@

init/opd-events.socket: $(srcdir)/init/opd-events.socket.in Makefile
	$(fill_paths) $(srcdir)/init/opd-events.socket.in >$@.tmp && mv $@.tmp $@

init/system-preset/90-opd.preset: $(srcdir)/init/opd.preset Makefile
	$(fill_paths) $(srcdir)/init/opd.preset >$@.tmp && mv $@.tmp $@

init/opd.conf: $(srcdir)/init/opd.conf.in Makefile
	$(fill_paths) $(srcdir)/init/opd.conf.in >$@.tmp && mv $@.tmp $@

init/tmpfiles.d/opd.conf: $(srcdir)/init/opd.tmpfiles.in Makefile
	$(fill_paths) $(srcdir)/init/opd.tmpfiles.in >$@.tmp && mv $@.tmp $@

init/sysusers.d/opd.conf: $(srcdir)/init/opd.sysusers Makefile
	$(fill_paths) $(srcdir)/init/opd.sysusers >$@.tmp && mv $@.tmp $@

# A configuration that the administrator wrote stays as it is, at installation and at removal.
opdconfdir = $(sysconfdir)/opd

install-data-local: init/opd.conf
	$(MKDIR_P) $(DESTDIR)$(opdconfdir)
	test -e $(DESTDIR)$(opdconfdir)/opd.conf || $(INSTALL_DATA) init/opd.conf $(DESTDIR)$(opdconfdir)/opd.conf

uninstall-local:
	if cmp -s init/opd.conf $(DESTDIR)$(opdconfdir)/opd.conf; then rm -f $(DESTDIR)$(opdconfdir)/opd.conf; fi
