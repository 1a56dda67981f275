// Adds up contributions in host memory on the process's reduction threads.
#ifndef R2CC_NETPLUGIN_TRANSPORT_COLLECTIVE_WORKERS_REDUCER_H_
#define R2CC_NETPLUGIN_TRANSPORT_COLLECTIVE_WORKERS_REDUCER_H_

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "netplugin/collnet/reducer.h"
#include "netplugin/transport/collective/reduce_workers.h"

namespace r2cc::net {

// Any thread.
class WorkersReducer final : public collnet::Reducer {
 public:
  // `workers` outlives this.
  explicit WorkersReducer(ReduceWorkers* workers) : workers_(workers) {}

  std::unique_ptr<Reduction> Begin(abi::DataType type, abi::RedOp op, const std::vector<Buffer>& sources, Buffer out,
                                   size_t count) override {
    std::vector<const std::byte*> from;
    for (const Buffer& source : sources) from.push_back(source.data);
    auto reduction = std::make_shared<net::Reduction>(type, op, std::move(from), out.data, count);
    workers_->Submit(reduction);
    return std::make_unique<Begun>(std::move(reduction));
  }

 private:
  class Begun final : public Reduction {
   public:
    explicit Begun(std::shared_ptr<net::Reduction> of) : of_(std::move(of)) {}
    bool done() const override { return of_->done(); }
    void Wait() override { of_->Wait(); }

   private:
    const std::shared_ptr<net::Reduction> of_;
  };

  ReduceWorkers* const workers_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_COLLECTIVE_WORKERS_REDUCER_H_
