#!/bin/bash
# cables.sh up INTERFACE:INTERFACE... | route RAIL INTERFACE:INTERFACE | down
# As root: both nodes in this network namespace. Rail k goes from the first interface of the k-th pair, which is node a's, to the second,
# node b's; both are NICs, cabled to each other. The rails that are missing of RAILS, and the out-of-band cable, which is the last, are veth
# pairs through a bridge: hw2a is plugged in as hwp2a at hwbr2. `route` makes the routes again that went with an interface that was down.
# `down` takes all of it away again, with what was changed of the NICs.
set -eu
RAILS=4
# Below the table of local addresses, which is moved to the last of them: packets between two local addresses leave by the cable.
PREF=21300
LOCAL=21399
STATE=/run/r2cc-cables
settings=/proc/sys/net/ipv4/conf

set_back() {
  while ip rule del pref $PREF 2> /dev/null; do :; done
  if [ -e $STATE/local_was_first ]; then
    ip rule add pref 0 lookup local
    ip rule del pref $LOCAL
  fi
  if [ -e $STATE/undo ]; then tac $STATE/undo | bash; fi
  rm -rf $STATE
}

# set_to FILE VALUE: until `down`.
set_to() {
  echo "echo $(cat "$1") > $1 2> /dev/null || true" >> $STATE/undo
  echo "$2" > "$1"
}

address_of() { ip -4 -o addr show dev "$1" | awk '{sub("/.*", "", $4); print $4; exit}'; }

# route RAIL A B: by which packets between the ends leave by the cable.
route() {
  local a b
  a=$(address_of "$2") b=$(address_of "$3")
  ip route replace "$b" dev "$2" src "$a" table $((PREF + 2 * $1))
  ip route replace "$a" dev "$3" src "$b" table $((PREF + 2 * $1 + 1))
}

# rule INTERFACE TABLE PEER: of one end.
rule() {
  ip rule add pref $PREF iif "$1" lookup local
  ip rule add pref $PREF iif lo to "$(address_of "$3")" lookup "$2"
}

prepare() {
  set_to "$settings/$2/rp_filter" 0
  set_to "$settings/$2/accept_local" 1
  set_to "$settings/$2/arp_ignore" 1
  if [ -z "$(address_of "$2")" ]; then
    ip addr add "10.213.$1.$3/24" dev "$2" noprefixroute
    echo "ip addr del 10.213.$1.$3/24 dev $2 2> /dev/null || true" >> $STATE/undo
  fi
  ip link set "$2" up
}

up() {
  set_back
  mkdir -p $STATE
  if ip rule show pref 0 | grep -q 'lookup local'; then
    ip rule add pref $LOCAL lookup local
    ip rule del pref 0
    touch $STATE/local_was_first
  fi
  ip rule add pref $PREF iif lo to 127.0.0.0/8 lookup local
  set_to $settings/all/rp_filter 0
  set_to $settings/all/arp_ignore 1
  local rail=0 a b
  while [ $rail -le $RAILS ]; do
    if [ $# -gt 0 ]; then
      a=${1%:*} b=${1#*:}
      shift
    else
      ip link add "hwbr$rail" type bridge
      echo "ip link del hwbr$rail" >> $STATE/undo
      ip link set "hwbr$rail" up
      for a in a b; do
        ip link add "hw$rail$a" type veth peer name "hwp$rail$a"
        echo "ip link del hw$rail$a" >> $STATE/undo
        ip link set "hwp$rail$a" master "hwbr$rail" up
      done
      a=hw${rail}a b=hw${rail}b
    fi
    prepare $rail "$a" 1
    prepare $rail "$b" 2
    rule "$a" $((PREF + 2 * rail)) "$b"
    rule "$b" $((PREF + 2 * rail + 1)) "$a"
    route $rail "$a" "$b"
    rail=$((rail + 1))
  done
}

case ${1:-} in
  up) shift; up "$@" ;;
  route) route "$2" "${3%:*}" "${3#*:}" ;;
  down) set_back ;;
  *) echo "usage: cables.sh up INTERFACE:INTERFACE... | route RAIL INTERFACE:INTERFACE | down" >&2; exit 2 ;;
esac
