"""One rule around protoc and its gRPC plugin: a folder's messages and services as a cc_library."""

def cc_grpc_library(name, protos, visibility = None):
    """C++ messages and gRPC stubs of .proto files.

    Args:
      name: the cc_library to make.
      protos: .proto files of this package, with all that they import of it.
      visibility: who may depend on it.
    """
    stems = [proto[:-len(".proto")] for proto in protos]
    sources = [stem + suffix for stem in stems for suffix in [".pb.cc", ".grpc.pb.cc"]]
    headers = [stem + suffix for stem in stems for suffix in [".pb.h", ".grpc.pb.h"]]
    native.genrule(
        name = name + "_generated",
        srcs = protos,
        outs = sources + headers,
        cmd = "/usr/bin/protoc --proto_path=. --cpp_out=$(GENDIR) --grpc_out=$(GENDIR) " +
              "--plugin=protoc-gen-grpc=/usr/bin/grpc_cpp_plugin $(SRCS)",
        visibility = ["//visibility:private"],
    )
    native.cc_library(
        name = name,
        srcs = sources,
        hdrs = headers,
        copts = ["-Wno-error", "-w"],
        visibility = visibility,
        deps = ["@system//:grpc"],
    )
