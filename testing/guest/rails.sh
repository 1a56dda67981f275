#!/bin/bash
# rails.sh RAILS [pair|bridge]: two nodes in one kernel, as root in a guest.
# Node `a` has v0a with 10.0.0.1 and the soft-RoCE device rxe0a, v1a with 10.0.1.1 and rxe1a, ...; node `b` v0b with 10.0.0.2 and rxe0b.
#   pair    a rail is one veth pair: `ip link set v0a down` takes the carrier from both of its ends
#   bridge  each end is plugged into a bridge of the rail: `ip link set p0a down` takes the carrier from node a's end alone,
#           `ip link set p0a nomaster` is silence without an event, `tc qdisc add dev p0a root tbf ...` a slow rail
# Both nodes are in the first network namespace, because soft-RoCE of Linux 6.1 looks up routes and listens nowhere else.
set -eu
rails=$1
wiring=${2:-pair}
case $wiring in pair|bridge) ;; *) echo "the wiring is pair or bridge, not $wiring" >&2; exit 1 ;; esac
mtu=4200  # room for an RDMA packet of 4096 bytes
settings=/proc/sys/net/ipv4/conf

# A packet from one local address to another leaves the machine only if the table of local addresses is asked for what came in alone.
ip rule add pref 32000 lookup local
ip rule del pref 0
ip rule add pref 5 iif lo to 127.0.0.0/8 lookup local
for name in all default; do
  echo 0 > $settings/$name/rp_filter
  echo 1 > $settings/$name/accept_local
done
echo 1 > $settings/all/arp_ignore

# end RAIL NODE OWN PEER: one end of a rail; OWN and PEER are the last numbers of the addresses.
end() {
  local rail=$1 node=$2 own=$3 peer=$4
  local device=v$rail$node table=$((100 + 2 * rail + own))
  if [ "$wiring" = bridge ]; then
    ip link add "$device" type veth peer name "p$rail$node"
    ip link set "p$rail$node" master "bridge$rail" mtu $mtu up
  fi
  echo 0 > "$settings/$device/rp_filter"
  echo 1 > "$settings/$device/accept_local"
  echo 1 > "$settings/$device/arp_ignore"
  # Without a queue of its own a veth device says that it has dropped a packet, as long as its cable is pulled and the kernel has not looked
  # at that; and soft-RoCE of Linux 6.1 sends it again at once, for ever, within the call that posted it.
  tc qdisc add dev "$device" root pfifo
  ip addr add "10.0.$rail.$own/24" dev "$device" noprefixroute
  ip link set "$device" mtu $mtu up
  ip rule add pref 6 iif "$device" lookup local
  ip route add "10.0.$rail.$peer" dev "$device" src "10.0.$rail.$own" table $table
  ip rule add pref 10 iif lo to "10.0.$rail.$peer" lookup $table
}

for ((rail = 0; rail < rails; rail++)); do
  if [ "$wiring" = bridge ]; then
    ip link add "bridge$rail" type bridge
    ip link set "bridge$rail" arp off mtu $mtu up
  else
    ip link add "v${rail}a" type veth peer name "v${rail}b"
  fi
  end "$rail" a 1 2
  end "$rail" b 2 1
  for node in a b; do rdma link add "rxe$rail$node" type rxe netdev "v$rail$node"; done
done
