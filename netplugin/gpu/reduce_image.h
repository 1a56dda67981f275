// What reduce_kernels.cu was compiled to, as the driver loads it: for Ampere and Hopper, and for the driver to compile for what comes
// later. Empty where this was built without CUDA's compiler.
#ifndef R2CC_NETPLUGIN_GPU_REDUCE_IMAGE_H_
#define R2CC_NETPLUGIN_GPU_REDUCE_IMAGE_H_

#include <span>

namespace r2cc::gpu {

std::span<const unsigned char> ReduceImage();

}  // namespace r2cc::gpu

#endif  // R2CC_NETPLUGIN_GPU_REDUCE_IMAGE_H_
