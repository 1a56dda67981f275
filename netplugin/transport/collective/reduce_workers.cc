#include "netplugin/transport/collective/reduce_workers.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <thread>
#include <utility>

#include "base/core/check.h"
#include "netplugin/collnet/reduce.h"
#include "netplugin/flow/tuning.h"

namespace r2cc::net {
Reduction::Reduction(abi::DataType type, abi::RedOp op, std::vector<const std::byte*> sources, std::byte* out, size_t count)
    : type_(type), op_(op), sources_(std::move(sources)), out_(out), count_(count), pieces_left_(pieces()) {
  R2CC_CHECK(collnet::CanReduce(type, op) && !sources_.empty());
}

void Reduction::Wait() const {
  for (size_t left = pieces_left_.load(std::memory_order_acquire); left != 0; left = pieces_left_.load(std::memory_order_acquire))
    pieces_left_.wait(left, std::memory_order_acquire);
}

size_t Reduction::pieces() const {
  const size_t elements = tuning::kReducePieceBytes / collnet::ElementBytes(type_);
  return (count_ + elements - 1) / elements;
}

void Reduction::ReducePiece(size_t piece) {
  const size_t element_bytes = collnet::ElementBytes(type_), elements = tuning::kReducePieceBytes / element_bytes;
  const size_t first = piece * elements, offset = first * element_bytes;
  std::vector<const std::byte*> sources = sources_;
  for (const std::byte*& source : sources) source += offset;
  collnet::Reduce(type_, op_, sources, out_ + offset, std::min(elements, count_ - first));
  if (pieces_left_.fetch_sub(1, std::memory_order_acq_rel) == 1) pieces_left_.notify_all();
}

// Takes pieces until there are none.
struct ReduceWorkers::Task final : Workers::Task {
  explicit Task(ReduceWorkers* workers) : all(workers) {}
  void Run() override {
    for (Piece piece; all->Take(&piece);) piece.reduction->ReducePiece(piece.number);
  }
  ReduceWorkers* const all;
};

int ReduceWorkers::ThreadsFor(int processors) {
  return std::clamp((processors - tuning::kProcessorsOfNccl) / tuning::kProcessorsPerReduction, 0, tuning::kReduceThreadsMost);
}

std::unique_ptr<ReduceWorkers> ReduceWorkers::Start(int threads, const Processors& processors, std::string* error) {
  std::unique_ptr<ReduceWorkers> all(new ReduceWorkers);
  if (threads == 0) return all;
  // Threads inherit what their parent has, so it is one that has the right things and ends.
  std::thread parent([&] {
    sigset_t signals;
    sigfillset(&signals);
    pthread_sigmask(SIG_SETMASK, &signals, nullptr);
    processors.Use();
    all->workers_ = Workers::Start(threads, tuning::kWorkerAwakeFor, error, "r2cc-reduce");
  });
  parent.join();
  if (all->workers_ == nullptr) return nullptr;
  constexpr int kNoSocket = -1;
  const int senders = threads / 2;  // the pool's halves; both are alike here
  for (int i = 0; i < threads; ++i) {
    const bool sends = i < senders;
    all->tokens_.push_back(all->workers_->Add(sends ? Workers::Way::kSend : Workers::Way::kReceive,
                                              static_cast<size_t>(sends ? i : i - senders), kNoSocket, std::make_shared<Task>(all.get())));
  }
  return all;
}

ReduceWorkers::~ReduceWorkers() = default;

void ReduceWorkers::Submit(std::shared_ptr<Reduction> reduction) {
  const size_t pieces = reduction->pieces();
  if (workers_ == nullptr) {
    for (size_t piece = 0; piece < pieces; ++piece) reduction->ReducePiece(piece);
    return;
  }
  {
    const MutexLock lock(mutex_);
    for (size_t piece = 0; piece < pieces; ++piece) pieces_.push_back({reduction, piece});
  }
  for (size_t i = 0; i < std::min(pieces, tokens_.size()); ++i) workers_->Wake(tokens_[i]);
}

bool ReduceWorkers::Take(Piece* piece) {
  const MutexLock lock(mutex_);
  if (pieces_.empty()) return false;
  *piece = std::move(pieces_.front());
  pieces_.pop_front();
  return true;
}

}  // namespace r2cc::net
