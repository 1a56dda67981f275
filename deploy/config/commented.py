"""Writes r2ccd's configuration as a package installs it: every field of DaemonConfig with what config.proto says of it, all commented out.

    commented.py proto/config.proto > r2ccd.textproto
"""

import dataclasses
import re
import sys

ROOT = "DaemonConfig"
COLUMNS = 118

HEAD = """\
# The configuration of r2ccd: text format of r2cc.v1.DaemonConfig. Every field is here; a field that is absent has its default.
# Without any field: this host's name, no other nodes, and every usable interface as a NIC, the management network's too. Name `nics`.
# The files r2ccd.d/*.textproto next to this file add to it, in the order of their names: repeated fields grow, all other fields are
# replaced. `r2ccctl config check` lists each mistake with file and line. After the first edit run `systemctl restart r2ccd`.
"""

# What stands behind each field, so that it can be used by taking the comment signs away. A field without an example is an error.
EXAMPLES = {
    "DaemonConfig.node": '"node0"',
    "DaemonConfig.listen": '"10.9.0.10:7460"',
    "DaemonConfig.insecure": "false",
    "DaemonConfig.nice": "-20",
    "DaemonConfig.realtime_priority": "1",
    "DaemonConfig.log_level": '"info"',
    "PeerConfig.node": '"node1"',
    "PeerConfig.address": '"node1.example.org:7460"',
    "NicConfig.name": '"rail0"',
    "NicConfig.interface": '"eth1"',
    "NicConfig.address": '"10.1.0.10"',
    "NicConfig.rate_bits_per_s": "100000000000",
    "NicConfig.port_guid": '"0x0002c9030000abcd"',
    "NicConfig.cable_to": '"node1/rail0"',
    "StoreConfig.embedded_node": '"node0"',
    "StoreConfig.etcd_endpoints": '"10.9.0.1:2379"',
    "StoreConfig.prefix": '"/r2cc/"',
    "TlsConfig.certificate_file": '"/etc/r2cc/tls/node.crt"',
    "TlsConfig.key_file": '"/etc/r2cc/tls/node.key"',
    "TlsConfig.ca_file": '"/etc/r2cc/tls/ca.crt"',
    "TlsConfig.directory": '"/etc/r2cc/tls"',
    "GrantConfig.roles": "VIEW",
    "GrantConfig.users": '"alice"',
    "GrantConfig.groups": '"netops"',
    "GrantConfig.everyone": "false",
    "GrantConfig.on_nodes": '"node1"',
    "GrantConfig.operators": '"bob"',
    "DrillConfig.allow": "true",
    "AttachConfig.uids": "1000",
    "AttachConfig.gids": "4242",
    "HttpConfig.listen": '"10.9.0.10:9460"',
    "HttpConfig.off": "false",
    "HttpConfig.hosts": '"node0.example.org"',
    "RdmaConfig.traffic_class": "106",
    "RdmaConfig.service_level": "3",
    "RdmaConfig.pkey_index": "0",
    "LimitsConfig.nics_per_node": "16",
    "LimitsConfig.nodes": "8192",
    "LimitsConfig.forget_nodes_after_h": "72",
}

@dataclasses.dataclass
class Field:
  """One field: its comment, and the message that it is of, if it is one."""
  name: str
  type: str
  repeated: bool
  comment: list[str]

@dataclasses.dataclass
class Message:
  """One message or enum: its comment, and its fields or values in the order of the file."""
  comment: list[str]
  fields: list[Field]

_FIELD = re.compile(r"(repeated |optional )?(\w+) (\w+) = \d+;")

def read(text: str) -> dict[str, Message]:
  """The messages of a .proto file that keeps to one declaration a line."""
  messages: dict[str, Message] = {}
  comment: list[str] = []
  message = None
  for line in text.splitlines():
    line = line.strip()
    if line.startswith("//"):
      comment.append(line[2:].strip())
      continue
    opened = re.fullmatch(r"message (\w+) \{", line)
    field = _FIELD.fullmatch(line)
    if opened:
      message = messages[opened.group(1)] = Message(comment, [])
    elif line == "}":
      message = None
    elif message is not None and field:
      message.fields.append(Field(field.group(3), field.group(2), field.group(1) == "repeated ", comment))
    elif message is not None and line and not line.startswith("reserved"):
      raise ValueError(f"not understood: {line}")
    comment = []
  return messages

def wrapped(words: str, indent: str) -> list[str]:
  """Comment lines with `words`, a double sign each: those stay comments when one sign is taken away."""
  lines, line = [], ""
  for word in words.split():
    if line and len(indent) + len(line) + len(word) + 4 > COLUMNS:
      lines.append(line)
      line = word
    else:
      line = f"{line} {word}".strip()
  return [f"#{indent}# {line}" for line in lines + [line] if line]

def block(messages: dict[str, Message], name: str, indent: str) -> list[str]:
  """The fields of message `name`, commented out."""
  lines = []
  for field in messages[name].fields:
    of = messages.get(field.type)
    comment = " ".join(field.comment) or (" ".join(of.comment) if of else "")
    if not indent:
      lines.append("")
    lines += wrapped(comment + (" May be repeated." if field.repeated else ""), indent)
    if of:
      lines += [f"#{indent}{field.name} {{", *block(messages, field.type, indent + "  "), f"#{indent}}}"]
    else:
      lines.append(f"#{indent}{field.name}: {EXAMPLES[f'{name}.{field.name}']}")
  return lines

def commented(proto: str) -> str:
  """The whole file, of config.proto's text."""
  return HEAD + "\n".join(block(read(proto), ROOT, "")) + "\n"

def main() -> None:
  with open(sys.argv[1], encoding="utf-8") as file:
    sys.stdout.write(commented(file.read()))

if __name__ == "__main__":
  main()
