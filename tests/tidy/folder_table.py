"""Which folder may include which: one way down, and no cycle."""

# Folder -> the folders and files that its files may include. The longest folder that fits a file is the one that binds it.
MAY_INCLUDE = {
    "base/core": ("base/core",),
    "base": ("base",),
    "health": (),
    "health/evidence": ("base/core", "health/evidence"),
    "health/io": ("base", "health/io"),
    "health/probe": ("base", "health/evidence", "health/io", "health/probe"),
    "health/view": ("base/core", "health/evidence", "health/view"),
    "plan": ("base/core", "plan"),
    "daemon": ("base", "proto", "health", "plan", "daemon"),
    "daemon/core": ("base", "proto", "health/evidence", "health/view", "plan", "daemon/core"),
    "daemon/config": ("base", "proto", "health/io", "daemon/core", "daemon/config"),
    "daemon/io": ("base", "proto", "health/io", "plan", "daemon/config", "daemon/core", "daemon/io"),
    "daemon/metrics": ("base/core", "proto", "daemon/metrics"),
    "daemon/rails": ("base", "health", "plan/page", "daemon/config", "daemon/core", "daemon/rails"),
    "daemon/service": ("base", "daemon/core", "daemon/service"),
    "daemon/state": ("base", "proto", "health/view", "daemon/core", "daemon/io", "daemon/state"),
    "daemon/trust": ("base", "proto", "daemon/config", "daemon/core", "daemon/io", "daemon/trust"),
    "daemon/jobs": ("base", "proto", "health/evidence", "health/probe", "plan/page", "daemon/core", "daemon/io", "daemon/rails",
                    "daemon/jobs"),
    "daemon/nics": ("base", "proto", "health", "daemon/config", "daemon/core", "daemon/io", "daemon/rails", "daemon/nics"),
    "daemon/page": ("base", "proto", "health/io", "health/view", "plan", "daemon/core", "daemon/io", "daemon/page"),
    "daemon/peers": ("base", "proto", "health/view", "daemon/config", "daemon/core", "daemon/io", "daemon/peers"),
    "daemon/reload": ("base", "proto", "health/io", "daemon/config", "daemon/core", "daemon/io", "daemon/state", "daemon/trust",
                      "daemon/reload"),
    "daemon/rpc": ("base", "proto", "daemon/config", "daemon/core", "daemon/io", "daemon/trust", "daemon/rpc"),
    "daemon/http/page": ("daemon/http/page",),
    "daemon/http": ("base", "proto", "daemon/config", "daemon/core", "daemon/metrics", "daemon/rpc", "daemon/trust", "daemon/http"),
    "daemon/services": ("base", "proto", "health", "plan", "daemon/core", "daemon/io", "daemon/jobs", "daemon/metrics", "daemon/nics",
                        "daemon/page", "daemon/peers", "daemon/rails", "daemon/reload", "daemon/rpc", "daemon/state", "daemon/trust",
                        "daemon/services"),
    "daemon/program": ("base", "proto", "plan/page", "daemon/core", "daemon/http", "daemon/rpc", "daemon/state", "daemon/trust",
                       "daemon/program"),
    # The root of a program joins the rooms below it; a room knows those of its row alone, and no two know each other (rules_test).
    "client": ("base", "proto", "plan", "client"),
    "client/core": ("base", "proto", "plan/page", "client/core"),
    "client/plan": ("proto", "plan", "client/core", "client/plan"),
    "client/format": ("proto", "client/core", "client/plan", "client/format"),
    "client/local": ("base", "proto", "client/core", "client/local"),
    "client/conditions": ("base", "proto", "client/core", "client/conditions"),
    "client/doctor": ("base", "proto", "plan/page", "client/core", "client/doctor"),
    "client/health": ("base", "proto", "client/core", "client/health"),
    "client/jobs": ("proto", "plan", "client/core", "client/jobs"),
    "client/parts": ("proto", "client/core", "client/parts"),
    "client/bundle": ("base/core", "proto", "client/core", "client/doctor", "client/format", "client/bundle"),
    "client/commands": ("base", "proto", "client/bundle", "client/conditions", "client/core", "client/doctor", "client/health",
                        "client/jobs", "client/local", "client/plan", "client/commands"),
    "nccl": ("base/core", "plan/collective", "netplugin/abi", "netplugin/config", "nccl"),
    "nccl/profiler": ("base/core", "netplugin/abi", "nccl/loaded_symbol.h", "nccl/profiler"),
    "netplugin": ("base/core", "plan", "netplugin"),
    "netplugin/abi": ("netplugin/abi",),
    "netplugin/attach": ("base/core", "plan/page", "netplugin/attach", "netplugin/config", "netplugin/rails"),
    "netplugin/collnet": ("base/core", "plan", "netplugin/abi", "netplugin/collnet", "netplugin/flow/flow_port.h",
                          "netplugin/flow/memory.h", "netplugin/flow/tuning.h"),
    "netplugin/config": ("netplugin/config",),
    "netplugin/flow": ("base/core", "plan/model.h", "netplugin/flow"),
    "netplugin/gpu": ("base/core", "netplugin/abi", "netplugin/gpu"),
    "netplugin/link": ("base/core", "plan/model.h", "plan/page/ring.h", "netplugin/flow", "netplugin/link"),
    "netplugin/rails": ("base/core", "netplugin/flow/tuning.h", "netplugin/rails"),
    "netplugin/transport": ("base/core", "plan", "netplugin"),
    "netplugin/transport/os": ("base/core", "netplugin/transport/os"),
    "netplugin/transport/tcp": ("base/core", "netplugin/config", "netplugin/flow", "netplugin/link", "netplugin/transport/fake_bugs.h",
                                "netplugin/transport/links.h", "netplugin/transport/oob.h", "netplugin/transport/os",
                                "netplugin/transport/probes.h", "netplugin/transport/tcp"),
    "netplugin/transport/verbs": ("base/core", "netplugin/config", "netplugin/flow", "netplugin/gpu", "netplugin/link", "netplugin/rails",
                                  "netplugin/transport/fake_bugs.h", "netplugin/transport/links.h", "netplugin/transport/os",
                                  "netplugin/transport/verbs"),
    "netplugin/tuner": ("netplugin/abi", "netplugin/tuner"),
    "observe": (),
    "observe/record": ("base/core", "observe/record"),
    "observe/admission": ("observe/record", "observe/admission"),
    "observe/ring": ("base/core", "observe/record", "observe/admission", "observe/ring"),
    "observe/gather": ("observe/record", "observe/admission", "observe/gather"),
    "observe/producer": ("base/core", "observe/record", "observe/admission", "observe/ring", "observe/gather", "observe/producer"),
    "observe/sink": ("base/core", "observe/record", "observe/ring", "observe/sink"),
    "observe/capi": ("base/core", "observe"),
    "observe/cuda": ("base/core", "observe/record", "observe/admission", "observe/ring", "observe/gather", "observe/producer",
                     "observe/cuda"),
    "bazel": ("bazel",),
    "tools": (),
    "tools/perf": ("base/command_line", "base/core", "netplugin/abi", "tools/perf"),
}
# Each folder below these has a row of its own.
NEED_ROWS = ("client", "daemon")
# Folder -> what its files may not include although the row above has it: a transport stands behind the seam.
MAY_NOT_INCLUDE = {
    "netplugin/transport": ("netplugin/transport/tcp", "netplugin/transport/verbs", "netplugin/plugin"),
}


def within(path, folder):
  return path == folder or path.startswith(folder + "/")


def may_include(bound, included):
  return (any(within(included, folder) for folder in MAY_INCLUDE[bound]) and
          not any(within(included, folder) for folder in MAY_NOT_INCLUDE.get(bound, ())))


def cycles(table, below):
  """The rows of `table` at or below folder `below` that reach themselves through what each row may include."""
  rows = [row for row in table if within(row, below)]

  def named(entry):
    """The rows that an entry opens: those below it, and the one that holds it."""
    return {row for row in rows if within(row, entry)} | {max((row for row in rows if within(entry, row)), key=len, default=None)}

  reach = {row: {other for entry in table[row] for other in named(entry)} - {row, None} for row in rows}
  for middle in rows:
    for row in rows:
      if middle in reach[row]:
        reach[row] |= reach[middle]
  return sorted(row for row in rows if row in reach[row])
