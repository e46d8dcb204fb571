# SPDX-License-Identifier: GPL-3.0-or-later
dist_man_MANS += doc/opd.8 doc/opcontrol.1 doc/opd.conf.5 doc/opd-dcookies.5 doc/opd-table.5 doc/opd-stacks.5 doc/opd-timeline.5 \
	doc/opd-status.5
dist_doc_DATA += doc/guide.md doc/internals.md doc/format.md doc/limits.md doc/measurements.md doc/ring.md \
	doc/security.md
dist_doc_DATA += doc/ibs.md
dist_doc_DATA += doc/opd-alerts.yml
EXTRA_DIST += doc/page.png doc/page-dark.png doc/page-change.png doc/page-map.png
dist_pkgdata_DATA = doc/opreport.xsd
