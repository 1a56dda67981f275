// Contributions in the memory of one GPU, added up there one reduction after the other: the seam behind which the kernels are.
// libcuda_reduction_stream.h implements it over the driver's library.
//
// A result has the bits of collnet::Reduce(). Nothing is thrown. Threads: any at once.
#ifndef R2CC_NETPLUGIN_GPU_REDUCTION_STREAM_H_
#define R2CC_NETPLUGIN_GPU_REDUCTION_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "netplugin/abi/nccl_types.h"

namespace r2cc::gpu {

class ReductionStream {
 public:
  // Parameters of a kernel are 4 KiB at most, and hold the sources' addresses: so nothing is uploaded before a launch.
  static constexpr size_t kSourcesMax = 500;
  struct Work {
    abi::DataType type = abi::DataType::kFloat32;
    abi::RedOp op = abi::RedOp::kSum;           // with the type: of collnet::CanReduce()
    std::span<const std::byte* const> sources;  // 1 to kSourcesMax, in memory of the GPU; the list is needed until Begin() returns
    std::byte* out = nullptr;                   // the same; one of the sources, or overlapping none
    size_t count = 0;                           // elements, to whose size all is aligned
  };
  // 1, 2, 3, ...
  using Number = uint64_t;
  enum class State { kRunning, kDone, kFailed };

  virtual ~ReductionStream() = default;
  // 0 and one line in `*error`: it does not begin, and no other ever will. Takes no memory and waits for nothing.
  virtual Number Begin(const Work& work, std::string* error) = 0;
  // kDone: nothing is read or written any more, and whatever reads from the GPU sees the result. kFailed, and one line in `*error`: there
  // is no result, and the job's GPU works no more.
  virtual State Look(Number number, std::string* error) = 0;
};

}  // namespace r2cc::gpu

#endif  // R2CC_NETPLUGIN_GPU_REDUCTION_STREAM_H_
