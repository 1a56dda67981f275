#!/bin/bash
# In the guest, on the host's files: makes the rails, runs the command, and powers off. /run/guest is shared with guest.py:
# `settings` and `command` come from there; `output`, `status`, `kernel.log` and what the command leaves in $R2CC_GUEST_OUT go there.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
export R2CC_GUEST_OUT=/run/guest/out
. /run/guest/settings

leave() {
  dmesg > /run/guest/kernel.log
  sync
  /bin/busybox poweroff -f
}

hostname guest
ip link set lo up
if ! bash /run/rails.sh "$rails" "$wiring" > /run/rails.log 2>&1; then
  echo "@@failed: rails: $(tail -n 1 /run/rails.log)"
  leave
fi
echo "@@rails are up"
cd "$folder" || { echo "@@failed: no folder $folder"; leave; }
# A session of its own: the command has no terminal, and what it starts can be told from us.
setsid --wait bash /run/guest/command > /run/guest/output 2>&1 < /dev/null
echo $? > /run/guest/status
leave
