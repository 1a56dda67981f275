"""A client of gRPC that has none of our .proto files: asks a daemon for them by reflection, and calls what it finds.

reflection_client.py UNIX_SOCKET VERSION, with Debian's grpcio and the messages of reflection that gRPC publishes. Prints the node's name.
"""

import importlib
import pathlib
import subprocess
import sys
import tempfile

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PUBLISHED = pathlib.Path("/usr/share/grpc-proto")
_TIMEOUT_S = 30


def _published(version: str):
  """The module of grpc.reflection.VERSION's messages."""
  with tempfile.TemporaryDirectory() as folder:
    proto = f"grpc/reflection/{version}/reflection.proto"
    subprocess.run(["protoc", f"--proto_path={_PUBLISHED}", f"--python_out={folder}", proto], check=True)
    sys.path.insert(0, f"{folder}/grpc/reflection/{version}")
    return importlib.import_module("reflection_pb2")


def main(socket: str, version: str) -> None:
  messages = _published(version)
  channel = grpc.insecure_channel(f"unix:{socket}")
  ask = channel.stream_stream(f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
                              request_serializer=messages.ServerReflectionRequest.SerializeToString,
                              response_deserializer=messages.ServerReflectionResponse.FromString)
  questions = [messages.ServerReflectionRequest(list_services=""),
               messages.ServerReflectionRequest(file_containing_symbol="r2cc.v1.Control"),
               messages.ServerReflectionRequest(file_by_filename="no/such.proto"),
               messages.ServerReflectionRequest(all_extension_numbers_of_type="r2cc.v1.Event")]
  listed, described, missing, extensions = ask(iter(questions), timeout=_TIMEOUT_S)
  assert [one.name for one in listed.list_services_response.service] == ["r2cc.v1.Control"], listed
  assert listed.original_request == questions[0], listed
  for answer in (missing, extensions):
    assert answer.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0], answer

  pool = descriptor_pool.DescriptorPool()
  files = [descriptor_pb2.FileDescriptorProto.FromString(one) for one in described.file_descriptor_response.file_descriptor_proto]
  while files:
    ready = [file for file in files if not {other.name for other in files} & set(file.dependency)]
    assert ready, "files that import each other"
    for file in ready:
      pool.Add(file)
      files.remove(file)
  method = pool.FindServiceByName("r2cc.v1.Control").FindMethodByName("GetStatus")
  request, reply = (message_factory.MessageFactory(pool).GetPrototype(one) for one in (method.input_type, method.output_type))
  call = channel.unary_unary("/r2cc.v1.Control/GetStatus", request_serializer=request.SerializeToString,
                             response_deserializer=reply.FromString)
  print(call(request(), timeout=_TIMEOUT_S).node)


if __name__ == "__main__":
  try:
    main(*sys.argv[1:])
  except grpc.RpcError as error:
    sys.exit(f"{error.code().name}: {error.details()}")
