/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/opd.h"

int main(int argc, char **argv)
{
	return opd_main(argc, argv);
}
