# SPDX-License-Identifier: GPL-3.0-or-later
dist_doc_DATA += doc/internals.md doc/format.md
