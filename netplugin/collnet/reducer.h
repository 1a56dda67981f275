// Adds contributions up, in the memory and by the threads of the implementation's choice.
#ifndef R2CC_NETPLUGIN_COLLNET_REDUCER_H_
#define R2CC_NETPLUGIN_COLLNET_REDUCER_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "netplugin/abi/nccl_types.h"
#include "netplugin/collnet/reduce.h"
#include "netplugin/flow/memory.h"

namespace r2cc::collnet {

class Reducer {
 public:
  class Reduction {
   public:
    virtual ~Reduction() = default;
    // Nothing is read or written any more, and the caller sees what was written.
    virtual bool done() const = 0;
    // Valid when it is done. Not empty: it failed, and the content of `out` is undefined.
    virtual std::string error() const { return ""; }
    // Waits until it is done.
    virtual void Wait() = 0;
  };
  virtual ~Reducer() = default;
  // Begins what Reduce() does: `sources` in this order to `out`, which may be one of them. The reducer outlives the reduction.
  virtual std::unique_ptr<Reduction> Begin(abi::DataType type, abi::RedOp op, const std::vector<net::Buffer>& sources, net::Buffer out,
                                           size_t count) = 0;
};

// Reduces host memory on the caller's thread, before Begin() returns.
class CallersReducer final : public Reducer {
 public:
  std::unique_ptr<Reduction> Begin(abi::DataType type, abi::RedOp op, const std::vector<net::Buffer>& sources, net::Buffer out,
                                   size_t count) override {
    std::vector<const std::byte*> from;
    for (const net::Buffer& source : sources) from.push_back(source.data);
    Reduce(type, op, from, out.data, count);
    return std::make_unique<Ended>();
  }

 private:
  struct Ended final : Reduction {
    bool done() const override { return true; }
    void Wait() override {}
  };
};

}  // namespace r2cc::collnet

#endif  // R2CC_NETPLUGIN_COLLNET_REDUCER_H_
