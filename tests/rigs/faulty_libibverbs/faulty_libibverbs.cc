// The wrapper: shows ibv_open_device() alone, and leaves all else to the machine's library, which it needs by its path. In the context that
// it hands out the operations that poll and post are its own, because the calls of ibverbs' header go through these and through no symbol.
//
// Faults come from R2CC_VERBS_FAULTS (plan.h), counted over the whole process. Each is told on standard error as it happens, and at the end
// how many there were. A completion that was made to fail did succeed: what it stands for is where it belongs, as after a lost answer.
#include <dlfcn.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "tests/rigs/faulty_libibverbs/plan.h"

namespace r2cc::rig {
namespace {

constexpr const char* kMachines = "/usr/lib/x86_64-linux-gnu/libibverbs.so.1";
constexpr size_t kContextsMax = 64;  // open at a time

class Injector {
 public:
  Injector() {
    const char* const text = std::getenv("R2CC_VERBS_FAULTS");
    std::string error;
    if (ParseFaults(text != nullptr ? text : "", &faults_, &error)) return;
    std::fprintf(stderr, "faulty_libibverbs: %s\n", error.c_str());
    std::_Exit(2);
  }
  ~Injector() { std::fprintf(stderr, "faulty_libibverbs: injected %d of %zu faults\n", injected_.load(), faults_.size()); }

  // Counts one more of `kind`. The value of the fault that it is to have; 0: none.
  int Next(FaultKind kind) {
    const uint64_t number = ++counts_[static_cast<size_t>(kind)];
    for (const Fault& fault : faults_) {
      if (fault.kind != kind || fault.number != number) continue;
      ++injected_;
      constexpr std::array kNames = {"completion", "post_send", "post_receive", "the queue pair of post_send"};
      std::fprintf(stderr, "faulty_libibverbs: %s %llu gets %d\n", kNames[static_cast<size_t>(kind)],
                   static_cast<unsigned long long>(number), fault.value);
      return fault.value;
    }
    return 0;
  }
  int injected() const { return injected_; }

 private:
  std::vector<Fault> faults_;
  std::array<std::atomic<uint64_t>, 4> counts_{};
  std::atomic<int> injected_ = 0;
};

Injector injector;

// What a context's operations were before. An entry is taken over by a later context at the same address.
struct Original {
  std::atomic<ibv_context*> context = nullptr;
  decltype(ibv_context_ops::poll_cq) poll_cq = nullptr;
  decltype(ibv_context_ops::post_send) post_send = nullptr;
  decltype(ibv_context_ops::post_recv) post_recv = nullptr;
};
std::array<Original, kContextsMax> originals;
std::mutex originals_mutex;

Original& Of(const ibv_context* context) {
  return *std::find_if(originals.begin(), originals.end(), [&](const Original& entry) { return entry.context == context; });
}

// A function of the machine's library.
template <typename Function>
Function* Machines(const char* name) {
  void* const library = dlopen(kMachines, RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<Function*>(dlvsym(library, name, "IBVERBS_1.1"));
}

int Poll(ibv_cq* queue, int room, ibv_wc* completions) {
  const int count = Of(queue->context).poll_cq(queue, room, completions);
  for (int i = 0; i < count; ++i) {
    const int status = injector.Next(FaultKind::kCompletion);
    if (status == 0) continue;
    // As from a device: nothing but these says anything of one that failed.
    completions[i] = {.wr_id = completions[i].wr_id, .status = static_cast<ibv_wc_status>(status), .qp_num = completions[i].qp_num};
  }
  return count;
}

int PostSend(ibv_qp* pair, ibv_send_wr* list, ibv_send_wr** bad) {
  if (const int error = injector.Next(FaultKind::kPostSend); error != 0) {
    *bad = list;
    return error;
  }
  if (const int state = injector.Next(FaultKind::kPairState); state != 0) {
    ibv_qp_attr attributes{.qp_state = static_cast<ibv_qp_state>(state)};
    Machines<int(ibv_qp*, ibv_qp_attr*, int)>("ibv_modify_qp")(pair, &attributes, IBV_QP_STATE);
  }
  return Of(pair->context).post_send(pair, list, bad);
}

int PostReceive(ibv_qp* pair, ibv_recv_wr* list, ibv_recv_wr** bad) {
  if (const int error = injector.Next(FaultKind::kPostReceive); error != 0) {
    *bad = list;
    return error;
  }
  return Of(pair->context).post_recv(pair, list, bad);
}

ibv_context* Open(ibv_device* device) {
  ibv_context* const context = Machines<ibv_context*(ibv_device*)>("ibv_open_device")(device);
  if (context == nullptr) return nullptr;
  const std::lock_guard lock(originals_mutex);
  auto entry = std::find_if(originals.begin(), originals.end(), [&](const Original& original) { return original.context == context; });
  if (entry == originals.end())
    entry = std::find_if(originals.begin(), originals.end(), [](const Original& original) { return original.context == nullptr; });
  if (entry == originals.end()) {
    std::fprintf(stderr, "faulty_libibverbs: more than %zu contexts\n", kContextsMax);
    std::abort();
  }
  entry->poll_cq = context->ops.poll_cq;
  entry->post_send = context->ops.post_send;
  entry->post_recv = context->ops.post_recv;
  entry->context = context;
  context->ops.poll_cq = Poll;
  context->ops.post_send = PostSend;
  context->ops.post_recv = PostReceive;
  return context;
}

}  // namespace
}  // namespace r2cc::rig

extern "C" {

ibv_context* ibv_open_device(ibv_device* device) { return r2cc::rig::Open(device); }

// How many so far: for tests that have to know.
int faulty_libibverbs_injected() { return r2cc::rig::injector.injected(); }

}  // extern "C"
