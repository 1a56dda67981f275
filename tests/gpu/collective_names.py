"""Names of collectives, for those who have no PyTorch."""

OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all", "sendrecv")
# gloo has no more of them.
CPU_OPERATIONS = ("all_reduce", "all_gather", "broadcast", "reduce", "sendrecv")
# Operations of a loop -> how nccl-tests would count their bytes.
BUS_OPERATIONS = {name: name for name in OPERATIONS} | {"graph": "all_reduce"}
