#!/bin/busybox sh
# The guest's first program: loads the modules, puts a writable layer over the host's files, and goes on there with start.sh.
# @@ lines are for guest.py.
b=/bin/busybox
fail() { echo "@@failed: $1"; $b poweroff -f; }

$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mount -t devtmpfs dev /dev
echo "@@kernel is up"
for module in /modules/*; do $b insmod "$module" || fail "insmod $module"; done

$b mkdir -p /lower /upper /root
# The host changes none of the files that a test reads: what was read once need not be asked for again.
$b mount -t 9p -o trans=virtio,version=9p2000.L,msize=1048576,ro,cache=loose host /lower || fail "the host's files"
$b mount -t tmpfs upper /upper
$b mkdir /upper/files /upper/work
$b mount -t overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work overlay /root || fail "the layer over the host's files"
$b mount -t proc proc /root/proc
$b mount --move /sys /root/sys
$b mount --move /dev /root/dev
# Links that udev would make.
$b ln -s /proc/self/fd /root/dev/fd
$b ln -s fd/0 /root/dev/stdin
$b ln -s fd/1 /root/dev/stdout
$b ln -s fd/2 /root/dev/stderr
$b mkdir -p /root/dev/shm
$b mount -t tmpfs shm /root/dev/shm
$b mount -t tmpfs run /root/run
$b mkdir /root/run/guest
# What is written here is on the host at once.
$b mount -t 9p -o trans=virtio,version=9p2000.L,msize=1048576,cache=none guest /root/run/guest || fail "the folder for results"
$b cp /start.sh /rails.sh /root/run/
exec $b switch_root /root /bin/bash /run/start.sh
