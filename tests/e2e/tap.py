"""A NIC whose speed can be set, as no veth's can: holds a tap interface of its network namespace until its standard input ends.

`tap.py NAME ADDRESS/LENGTH`; each line of standard input is a speed in Mbit/s, answered by a line "ok".
"""

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys

_TUNSETIFF = 0x400454CA
_IFF_TAP_NO_PI = 0x0002 | 0x1000
_SIOCETHTOOL = 0x8946
_ETHTOOL_GSET, _ETHTOOL_SSET = 1, 2
# struct ethtool_cmd: cmd, supported, advertising, speed (low), 6 bytes, 2 * u32, speed (high), 2 bytes, 3 * u32
_COMMAND = struct.Struct("<IIIH6B2IHBB3I")


def set_speed(control: socket.socket, name: str, mbits: int) -> None:
  buffer = bytearray(_COMMAND.pack(_ETHTOOL_GSET, *([0] * 17)))
  request = lambda: struct.pack("16sP16x", name.encode(), ctypes.addressof(ctypes.c_char.from_buffer(buffer)))
  fcntl.ioctl(control, _SIOCETHTOOL, request())
  fields = list(_COMMAND.unpack(buffer))
  fields[0], fields[3], fields[12] = _ETHTOOL_SSET, mbits & 0xFFFF, mbits >> 16
  _COMMAND.pack_into(buffer, 0, *fields)
  fcntl.ioctl(control, _SIOCETHTOOL, request())


def main() -> None:
  name, address = sys.argv[1:]
  tap = os.open("/dev/net/tun", os.O_RDWR)
  fcntl.ioctl(tap, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TAP_NO_PI))
  subprocess.run(["ip", "addr", "add", address, "dev", name], check=True)
  subprocess.run(["ip", "link", "set", name, "up"], check=True)
  control = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
  print("ok", flush=True)
  for line in sys.stdin:
    set_speed(control, name, int(line))
    print("ok", flush=True)


if __name__ == "__main__":
  main()
