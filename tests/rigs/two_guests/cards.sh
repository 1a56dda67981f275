#!/bin/bash
# cards.sh RAILS NODE: the cards of one of two guests (two_guests.py), as root in it; NODE is 1 or 2.
# `mgmt` has 10.9.0.NODE; rail K is `railK` with 10.0.K.NODE and the soft-RoCE device rxeK.
set -eu
rails=$1
node=$2
peer=$((3 - node))

# card NUMBER NAME NETWORK: cards are numbered in the order of their slots, and have the hardware addresses that two_guests.py gave them.
card() {
  ip link set "eth$1" name "$2"
  ip addr add "$3.$node/24" dev "$2"
  ip link set "$2" up
  # As in verbs_lab.py: a packet of soft-RoCE must not wait for its neighbour's address, which a NIC knows.
  ip neigh replace "$3.$peer" lladdr "$(printf '52:54:00:00:%02x:%02x' "$1" "$peer")" dev "$2" nud permanent
}

card 0 mgmt 10.9.0
for ((rail = 0; rail < rails; rail++)); do
  card $((rail + 1)) "rail$rail" "10.0.$rail"
  rdma link add "rxe$rail" type rxe netdev "rail$rail"
done
