# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash disable=SC2034,SC2154 # some variables are the caller's, some are for it
# What scripts/machines and scripts/foreign are made of: kernels, root file systems, initramfs,
# libraries of other architectures and builds for them. All but the builds is kept in $cache, below
# a name that says what it was made of.

# The kernels come from these suites of the mirror that this host has its packages from.
SUITES="bullseye bullseye-security bookworm bookworm-security trixie trixie-backports"

# What a root has beside the essential packages: what opd and its tools are linked to, and what
# their tests call.
ROOT_PACKAGES="python3-minimal,libpython3-stdlib,libpopt0,libsystemd0,libcap2,libseccomp2,libbinutils,libpfm4,libmd0,libelf1,libdw1"
ROOT_PACKAGES+=",libbpf1,zlib1g,libzstd1,liblzma5,libncursesw6,libdebuginfod1,kmod,iproute2,procps"
# A host that gets the package: what the package depends on, so that apt-get needs no network, and
# systemd. Nothing brings libcurl.
STOCK_PACKAGES="${ROOT_PACKAGES/,libdebuginfod1/},systemd,systemd-sysv,dbus"
TEST_ROOT_PACKAGES="python3,gcc,libc6-dev,binutils,linux-perf,xz-utils,less,tmux,fuse3"

# Modules without which there is no root. A kernel may have them built in.
BOOT_MODULES="virtio_pci virtio_blk virtio_console crc32c_generic ext4"

# Sets cache.
open_cache() {
	cache=${OPD_MACHINES_CACHE:-${XDG_CACHE_HOME:-/var/cache}/opd-machines}
	mkdir -p "$cache" || die "cannot make $cache"
}

key_of() { sha256sum | cut -c1-16; }

# The mirror that apt of this host has.
main_mirror() {
	# shellcheck disable=SC2016 # apt's own fields
	apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(RELEASE)' 'Created-By: Packages' |
		awk '$2 == "Debian" && $3 !~ /security/ { print $1; exit }'
}

# mirrors: "URI SUITE" of each suite, from what apt of this host has.
mirrors() {
	local main security
	main=$(main_mirror)
	# shellcheck disable=SC2016
	security=$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(RELEASE)' 'Created-By: Packages' |
		awk '$2 == "Debian" && $3 ~ /security/ { print $1; exit }')
	[ -n "$main" ] || return 1
	for suite in $SUITES; do
		case $suite in
		*-security) [ -z "$security" ] || echo "$security $suite" ;;
		*) echo "$main $suite" ;;
		esac
	done
}

# Runs a command of apt for another architecture and other suites. The host's lists stay as they
# are.
machine_apt() {
	local arch=$1 command=$2
	shift 2
	"$command" -o APT::Architecture="$arch" -o APT::Architectures::="$arch" -o APT::Sandbox::User=root \
		-o Dir::Etc::sourcelist="$cache/apt-$arch/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::State::lists="$cache/apt-$arch/lists" -o Dir::Cache::archives="$cache/apt-$arch/archives" \
		-o Dir::State::status=/dev/null "$@"
}

# A suite that the mirror does not have is left out.
update_lists() {
	local arch=$1 dir=$cache/apt-$1
	mkdir -p "$dir/lists/partial" "$dir/archives/partial"
	mirrors | sed 's|^|deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] |; s|$| main|' >"$dir/sources.list.new"
	if cmp -s "$dir/sources.list.new" "$dir/sources.list" && [ -n "$(find "$dir/updated" -mmin -1440 2>/dev/null)" ]; then
		return 0
	fi
	mv "$dir/sources.list.new" "$dir/sources.list"
	if machine_apt "$arch" apt-get -qq update >"$dir/update.log" 2>&1; then
		touch "$dir/updated"
	fi
}

# kernel_package ARCH VERSION: the name of the newest kernel of this version, or of all with
# 'newest'.
kernel_package() {
	local arch=$1 version=${2//./\\.}
	[ "$2" != newest ] || version='[0-9.]*'
	machine_apt "$arch" apt-cache search --names-only "^linux-image-[0-9].*-cloud-$arch\$" | cut -d' ' -f1 |
		grep -xE "linux-image-$version([.+-][0-9a-z.+~-]*)?-cloud-$arch" | sort -V | tail -n 1
}

# make_kernel ARCH VERSION: sets kernel_dir, with vmlinuz, config, release, and lib/modules.
make_kernel() {
	local arch=$1 version=$2 package parts
	update_lists "$arch"
	package=$(kernel_package "$arch" "$version")
	[ -n "$package" ] || { reason="no kernel $version for $arch in: $SUITES"; return 1; }
	kernel_dir=$cache/kernel-$package
	[ ! -e "$kernel_dir/release" ] || return 0
	rm -rf "$kernel_dir.new" && mkdir -p "$kernel_dir.new/x"
	# Newer kernels come in parts.
	parts=$(machine_apt "$arch" apt-cache show "$package" | grep -m1 '^Depends:' |
		grep -oE 'linux-(base|binary|modules)-[0-9][^ ,]+')
	# shellcheck disable=SC2086
	if ! (cd "$kernel_dir.new" && machine_apt "$arch" apt-get -qq download "$package" $parts && unpack_kernel); then
		reason="$package cannot be had"
		return 1
	fi
	rm -rf "$kernel_dir.new"/*.deb "$kernel_dir" && mv "$kernel_dir.new" "$kernel_dir"
}

unpack_kernel() {
	local package release
	for package in ./*.deb; do
		dpkg-deb -x "$package" x || return 1
	done
	mkdir lib
	[ ! -d x/usr/lib/modules ] || mv x/usr/lib/modules lib/modules
	[ ! -d x/lib/modules ] || mv x/lib/modules lib/modules
	release=$(basename lib/modules/*)
	find x lib \( -name "vmlinu[xz]-$release" -o -name vmlinuz \) -exec mv {} vmlinuz \;
	find x lib \( -name "config-$release" -o -path "*/$release/config" \) -exec mv {} config \;
	rm -rf x && depmod -b . "$release" && [ -s vmlinuz ] && echo "$release" >release
}

# get_busybox ARCH: sets busybox, a static one for the machine: the host's, or that of root_image.
get_busybox() {
	busybox=/bin/busybox
	[ "$1" != amd64 ] || return 0
	busybox=$cache/busybox-$1
	debugfs -R "dump /usr/bin/busybox $busybox" "$root_image" 2>>"$cache/root.log"
	[ -s "$busybox" ] || { reason="$root_image has no busybox"; return 1; }
}

# make_initramfs BUSYBOX: sets initramfs, for the kernel in kernel_dir. BUSYBOX is a static one for
# the machine.
make_initramfs() {
	local release module path work
	initramfs=$kernel_dir/initramfs-$(cat "$here/boot.sh" "$1" - <<<"$BOOT_MODULES" | key_of)
	[ ! -e "$initramfs" ] || return 0
	release=$(cat "$kernel_dir/release") work=$kernel_dir/initramfs.new
	rm -rf "$work" && mkdir -p "$work"/{bin,dev,lib,proc,root,sys}
	cp "$1" "$work/bin/busybox" && cp "$here/boot.sh" "$work/init" && chmod 755 "$work/init" "$work/bin/busybox" || return 1
	for module in $BOOT_MODULES; do
		modprobe -d "$kernel_dir" -S "$release" --show-depends "$module" 2>/dev/null
	done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++' | while read -r path; do
		case $path in
		*.xz) xz -dc "$path" >"$work/lib/$(basename "$path" .xz)" ;;
		*) cp "$path" "$work/lib/" ;;
		esac
		basename "$path" .xz
	done >"$work/modules"
	(cd "$work" && find . | cpio --quiet -o -H newc) >"$initramfs.new" && mv "$initramfs.new" "$initramfs" && rm -rf "$work"
}

host_suite() { (. /etc/os-release && echo "${VERSION_CODENAME-}"); }

# make_root ARCH PACKAGES: sets root_image, an ext4 file system. The suite is the host's own, since
# the host's build runs in it.
make_root() {
	local arch=$1 packages=$2 suite size dir=$cache/root-$1.new
	suite=$(host_suite)
	root_image=$cache/root-$suite-$arch-$(echo "ext4 $packages" | key_of).ext4
	[ ! -e "$root_image" ] || return 0
	say "making a root of $suite for $arch (log: $cache/root.log)"
	rm -rf "$dir" "$root_image.new"
	if ! make_tree "$arch" "$suite" "$packages" "$dir" >"$cache/root.log" 2>&1; then
		reason="mmdebstrap makes no root: $(tail -n 1 "$cache/root.log")"
		rm -rf "$dir"
		return 1
	fi
	size=$(($(du -sm "$dir" | cut -f1) + 2048))
	mkfs.ext4 -q -d "$dir" "$root_image.new" "${size}M" >>"$cache/root.log" 2>&1 ||
		{ reason="mkfs.ext4 fails"; return 1; }
	rm -rf "$dir"
	mv "$root_image.new" "$root_image"
}

# make_tree ARCH SUITE PACKAGES DIR. Programs of another architecture run here only where
# binfmt_misc is set up for the whole host. So its packages are unpacked only, and what the machine
# needs of the work of their maintainer scripts is done here.
make_tree() {
	local arch=$1 suite=$2 packages=$3 dir=$4
	local options=(--quiet --arch="$arch" --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*')
	if [ "$arch" = amd64 ]; then
		mmdebstrap "${options[@]}" --variant=minbase --include="$packages" "$suite" "$dir"
		return
	fi
	mmdebstrap "${options[@]}" --variant=extract --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr --include='?essential' \
		--include="busybox-static,$packages" "$suite" "$dir" "$(main_mirror)" &&
		cp "$dir/usr/share/base-passwd/passwd.master" "$dir/etc/passwd" &&
		cp "$dir/usr/share/base-passwd/group.master" "$dir/etc/group" &&
		ln -sf mawk "$dir/usr/bin/awk"
}

# Debian names the compiler for an architecture, and the directory of its libraries, so.
triplet_of() {
	case $1 in
	amd64) echo x86_64-linux-gnu ;;
	arm64) echo aarch64-linux-gnu ;;
	i386) echo i686-linux-gnu ;;
	*) echo "$1-linux-gnu" ;;
	esac
}

libraries_of() {
	case $1 in
	i386) echo i386-linux-gnu ;;
	*) triplet_of "$1" ;;
	esac
}

# The program of qemu-user-static that runs programs of an architecture.
emulator_of() {
	case $1 in
	arm64) echo qemu-aarch64-static ;;
	amd64) echo qemu-x86_64-static ;;
	*) echo "qemu-$1-static" ;;
	esac
}

# Debian packages of the host for a cross build.
cross_packages() {
	echo "mmdebstrap qemu-user-static gcc-$(triplet_of "$1" | tr _ -)"
}

# make_sysroot ARCH: sets sysroot, a directory with the libraries that opd and its tests are built
# with. They are only unpacked, so the host need not be able to run programs of ARCH. They have no
# security updates: only tests run with them, and a mirror was seen without some of these.
make_sysroot() {
	local arch=$1 suite packages
	suite=$(host_suite)
	# shellcheck disable=SC2086 # one line of them
	packages=$(echo $LIBRARY_PACKAGES libcmocka-dev libdw-dev | tr ' ' ,)
	sysroot=$cache/sysroot-$suite-$arch-$(echo "$packages" | key_of)
	[ ! -e "$sysroot" ] || return 0
	say "unpacking the libraries of $suite for $arch (log: $cache/sysroot.log)"
	rm -rf "$cache/sysroot.new"
	if ! mmdebstrap --quiet --variant=extract --arch="$arch" --include="$packages" \
		"$suite" "$cache/sysroot.new" "$(main_mirror)" >"$cache/sysroot.log" 2>&1; then
		reason="mmdebstrap unpacks no libraries for $arch: $(tail -n 1 "$cache/sysroot.log")"
		rm -rf "$cache/sysroot.new"
		return 1
	fi
	chmod 755 "$cache/sysroot.new" && mv "$cache/sysroot.new" "$sysroot"
}

# cross_build ARCH DIR JOBS CONFIGURE-OPTION...: build_tree for ARCH with the libraries in sysroot.
cross_build() {
	local arch=$1 dir=$2 jobs=$3 triplet libraries
	triplet=$(triplet_of "$arch")
	libraries=$sysroot/usr/lib/$(libraries_of "$arch")
	shift 3
	PKG_CONFIG_SYSROOT_DIR=$sysroot PKG_CONFIG_LIBDIR=$libraries/pkgconfig:$sysroot/usr/share/pkgconfig \
		build_tree "$top" "$dir" "$jobs" --host="$triplet" CC="$triplet-gcc --sysroot=$sysroot" \
		RUN_BUILT="$(emulator_of "$arch") -L $sysroot" "$@"
}
