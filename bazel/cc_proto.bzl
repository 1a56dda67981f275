"""One rule around protoc and its gRPC plugin: messages and services of a .proto file as a cc_library."""

def cc_grpc_library(name, proto, imports = {}, visibility = None):
    """C++ messages and gRPC stubs of one .proto file.

    Args:
      name: the cc_library to make.
      proto: a .proto file of this package.
      imports: the .proto files of this package that it imports, by their libraries.
      visibility: who may depend on it.
    """
    stem = "%s/%s" % (native.package_name(), proto[:-len(".proto")])
    local_stem = proto[:-len(".proto")]
    native.genrule(
        name = name + "_generated",
        srcs = [proto] + imports.values(),
        outs = [local_stem + suffix for suffix in [".pb.h", ".pb.cc", ".grpc.pb.h", ".grpc.pb.cc"]],
        cmd = "/usr/bin/protoc --proto_path=. --cpp_out=$(GENDIR) --grpc_out=$(GENDIR) " +
              "--plugin=protoc-gen-grpc=/usr/bin/grpc_cpp_plugin $(location %s)" % proto,
        visibility = ["//visibility:private"],
    )
    native.cc_library(
        name = name,
        srcs = [local_stem + ".pb.cc", local_stem + ".grpc.pb.cc"],
        hdrs = [local_stem + ".pb.h", local_stem + ".grpc.pb.h"],
        copts = ["-Wno-error", "-w"],
        deps = ["@system//:grpc"] + imports.keys(),
        visibility = visibility,
    )
