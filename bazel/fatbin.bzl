"""CUDA kernels as bytes of a C++ library: no bytes where the machine has no nvcc."""

load("@nvcc//:nvcc.bzl", "NVCC")

# Ampere and Hopper, and PTX for what comes later.
_COMPILE = " ".join([
    NVCC,
    "-std=c++17 -O3 -I.",
    "-fatbin -Xfatbin -compress-all",
    "-gencode arch=compute_80,code=sm_80",
    "-gencode arch=compute_90,code=sm_90",
    "-gencode arch=compute_90,code=compute_90",
    "-o $@.image $(location %s)",
])

def fatbin_library(name, kernels, function, hdrs = [], testonly = False, visibility = None):
    """A cc_library whose header NAME.h declares `std::span<const unsigned char> r2cc::gpu::FUNCTION()`: an image for cuModuleLoadData().

    Args:
      name: the library's.
      kernels: a .cu file.
      function: the name of the function that returns the image; it is empty where there is no nvcc.
      hdrs: what the .cu file includes, also for the library's users.
      testonly: as in every rule.
      visibility: as in every rule.
    """
    declaration = "std::span<const unsigned char> %s()" % function
    native.genrule(
        name = name + "_header",
        outs = [name + ".h"],
        cmd = "printf '#pragma once\\n#include <span>\\nnamespace r2cc::gpu {\\n%s;\\n}\\n' > $@" % declaration,
        testonly = testonly,
        visibility = ["//visibility:private"],
    )
    native.genrule(
        name = name + "_image",
        srcs = [kernels] + hdrs,
        outs = [name + ".cc"],
        cmd = (_COMPILE % kernels if NVCC else ": > $@.image") + """
          {
            echo '#include "%s/%s.h"'
            echo 'namespace r2cc::gpu {'
            echo 'alignas(16) static constexpr unsigned char kImage[] = {'
            od -An -v -tu1 -w32 $@.image | sed 's/ *\\([0-9][0-9]*\\)/\\1,/g'
            echo '0};'
            echo '%s { return {kImage, sizeof(kImage) - 1}; }'
            echo '}'
          } > $@
        """ % (native.package_name(), name, declaration),
        testonly = testonly,
        visibility = ["//visibility:private"],
    )
    native.cc_library(
        name = name,
        testonly = testonly,
        srcs = [name + ".cc"],
        hdrs = [name + ".h"] + hdrs,
        visibility = visibility,
    )
