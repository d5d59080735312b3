#!/usr/bin/env bash
# Makes the packages of the program that CRONWARD names, lets lintian and rpm read them, installs each into a small Debian, runs the program
# there, and removes the package: nothing of it is left. The arguments: that Debian, as a tar, and a folder to work in.
set -euo pipefail

cd "$(dirname "$0")/../.."
debian=$1 work=$2

fail() {
    echo "packages: $1" >&2
    exit 1
}

# Every path, and whom it belongs to. What dpkg, rpm and the account of the daemon write down is not the package's.
listed() {
    (cd "$1" && find . -xdev \( -path ./var/lib/dpkg -o -path ./var/lib/rpm -o -path ./var/log -o -path ./tmp -o -path ./proc -o -path ./dev \) -prune \
        -o -not -path './etc/*passwd*' -not -path './etc/*group*' -not -path './etc/*shadow*' -not -path './etc/subuid*' -not -path './etc/subgid*' \
        -not -name '*.lock' -printf '%p %M %U:%G\n' | sort)
}

# What the README promises to who installs a package: seconds. The promise is 10; on a machine that does nothing else it is one.
first_run() {
    local root=$1 begun=${EPOCHREALTIME/./} took
    shift
    "$@"
    # As the daemon's user and in the folder that the unit gives it.
    chroot "$root" install -d -o cronward -g cronward -m 750 /var/lib/cronward
    chroot "$root" setpriv --reuid cronward --regid cronward --clear-groups env STATE_DIRECTORY=/var/lib/cronward \
        cronward exec --store sqlite --job try -- true || fail "no guarded run"
    took=$(((${EPOCHREALTIME/./} - begun) / 1000))
    echo "from the package to the end of the first guarded run: $took ms"
    ((took <= 10000)) || fail "the first guarded run ended $took ms after the installation began, and 10 s are promised"
}

# What holds for an installed package, whichever made it.
check_installed() {
    local root=$1
    [ "$(chroot "$root" cronward --version)" = "$("$CRONWARD" --version)" ] || fail "another version was installed"
    [ "$(chroot "$root" stat -c '%U:%G %a' /etc/cronward/jobs.toml)" = "root:cronward 640" ] || fail "the rights of jobs.toml are wrong"
    chroot "$root" setpriv --reuid cronward --regid cronward --clear-groups cronward check --config /etc/cronward/jobs.toml ||
        fail "cronward check refuses the installed jobs.toml"
    if find "$root/etc/systemd" -name 'cronward*' | grep -q .; then
        fail "the unit is enabled"
    fi
    # By this machine's systemd: the small Debian has none. That the program is where the unit says is part of what it looks at.
    mkdir -p "$work/unit"
    sed "s#^ExecStart=/#&${root#/}/#" "$(find "$root"/lib/systemd/system "$root"/usr/lib/systemd/system -name cronward.service | head -n 1)" \
        >"$work/unit/cronward.service"
    said=$(SYSTEMD_UNIT_PATH="$work/unit:" systemd-analyze verify --man=no "$work/unit/cronward.service" 2>&1 | grep -F cronward) || true
    [ -z "$said" ] || fail "the installed unit is not right: $said"
    for page in man1/cronward-run.1 man5/jobs.toml.5; do
        gzip -dc "$root/usr/share/man/$page.gz" | grep -q '^.TH' || fail "no manual page $page"
    done
    for file in usr/lib/sysusers.d/cronward.conf usr/share/bash-completion/completions/cronward usr/share/fish/vendor_completions.d/cronward.fish; do
        [ -s "$root/$file" ] || fail "no /$file"
    done
    [ -n "$(find "$root"/usr/share/zsh/vendor-completions/_cronward "$root"/usr/share/zsh/site-functions/_cronward -size +0 2>/dev/null)" ] ||
        fail "no completions for zsh"
}

fresh() {
    mkdir "$1"
    tar -xf "$debian" -C "$1"
    # Whoever calls this gave it mounts of its own: they end with it.
    mount -t proc proc "$1/proc"
}

end() {
    umount "$1/proc"
    rm -rf "$1"
}

# A debug build is large, and xz slow.
COMPRESSION=gzip scripts/deploy/packages.sh "$CRONWARD" "$work"
deb=$(find "$work" -name '*.deb') rpm=$(find "$work" -name '*.rpm')
lintian --fail-on error,warning --tag-display-limit 0 --allow-root "$deb"
echo "lintian: $(basename "$deb") is well"
rpm -qp --info "$rpm"
rpm -K --nosignature "$rpm"
# What is a conf-file is kept when the package is removed, and its changes when it is upgraded.
[ "$(rpm -qp --configfiles "$rpm" | sort | tr '\n' ' ')" = "/etc/cronward/jobs.toml /etc/logrotate.d/cronward " ] || fail "conf-files of the rpm"
[ "$(dpkg-deb -I "$deb" conffiles | sort | tr '\n' ' ')" = "/etc/cronward/jobs.toml /etc/logrotate.d/cronward " ] || fail "conf-files of the deb"

# The texts that a package manager lists are Cargo.toml's.
told=$(sed -n 's/^description = "\([^:"]*\).*/\1/p' Cargo.toml)
[ "$(rpm -qp --queryformat '%{SUMMARY}' "$rpm")" = "$told" ] || fail "the summary of the rpm is not: $told"
[ "A $(dpkg-deb -f "$deb" Description | sed -n 1p)" = "$told" ] || fail "the description of the deb is not: $told"

root=$work/deb
fresh "$root"
listed "$root" >"$work/before"
cp "$root/etc/passwd" "$root/etc/group" "$work/"
cp "$deb" "$root/tmp/cronward.deb"
first_run "$root" chroot "$root" dpkg --install /tmp/cronward.deb
check_installed "$root"
chroot "$root" dpkg --remove cronward
[ -e "$root/etc/cronward/jobs.toml" ] || fail "removal took the file of jobs"
[ -d "$root/var/lib/cronward" ] || fail "removal took the state"
chroot "$root" dpkg --purge cronward
listed "$root" | diff "$work/before" - || fail "the deb left something"
# The account stays, as Debian has it, and nothing else of these files changes.
for file in passwd group; do
    [ "$(diff "$work/$file" "$root/etc/$file" | grep '^[<>]' | cut -d: -f1)" = "> cronward" ] || fail "the deb changed /etc/$file by more than its account"
done
end "$root"

root=$work/rpm
fresh "$root"
# Folders of the system, which another distribution has.
mkdir -p "$root"/usr/lib/sysusers.d "$root"/usr/share/{fish/vendor_completions.d,zsh/site-functions}
rpm --root "$root" --dbpath /var/lib/rpm --initdb
listed "$root" >"$work/before"
# Debian's glibc is none that rpm knows of.
first_run "$root" rpm --root "$root" --dbpath /var/lib/rpm --nodeps --install "$rpm"
check_installed "$root"
rpm --root "$root" --dbpath /var/lib/rpm --nodeps --erase cronward
rm -rf "$root/var/lib/cronward"
listed "$root" | diff "$work/before" - || fail "the rpm left something"
end "$root"
