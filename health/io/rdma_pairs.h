// Queue pairs that carry nothing: zero-byte RDMA writes go over them, as probes. Such a write needs no memory at either end, no receive and
// no process that looks at it: the other device answers alone.
//
// A device is opened while there is a queue pair on it, apart from the RdmaWatch. Calls that may block are made on a thread of their own.
#ifndef R2CC_HEALTH_IO_RDMA_PAIRS_H_
#define R2CC_HEALTH_IO_RDMA_PAIRS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/core/verbs/verbs.h"
#include "base/executor.h"
#include "health/io/rdma_class.h"
#include "health/io/rdma_end.h"

namespace r2cc::health {

// Outstanding writes of one queue pair; more are not posted.
constexpr uint32_t kRdmaWritesMost = 16;

// A port, and by which of its addresses it is to be reached.
struct RdmaPlace {
  std::string device;
  uint8_t port = 1;
  std::string address;  // of its interface; on InfiniBand its first GID is meant

  friend bool operator==(const RdmaPlace&, const RdmaPlace&) = default;
};

// Core thread only.
class RdmaPairs {
 public:
  enum class Id : uint64_t {};  // 0: none

  // They outlive it, and `verbs` what is posted to `blocking`, which runs its tasks in order.
  RdmaPairs(verbs::Verbs* verbs, Executor* core, Executor* blocking, const RdmaClass& marked = {})
      : verbs_(verbs), core_(core), blocking_(blocking), class_(marked) {}
  ~RdmaPairs();
  RdmaPairs(const RdmaPairs&) = delete;
  RdmaPairs& operator=(const RdmaPairs&) = delete;

  // `done` gets the end of the new pair, which is connected to none, or nothing if it could not be made. It is not called after Drop.
  Id Make(const RdmaPlace& place, uint32_t psn, std::function<void(Id, const std::optional<RdmaEnd>&)> done);
  // REQUIRES: `id` was made, and is not connected.
  void Connect(Id id, const RdmaEnd& peer, std::function<void(bool connected)> done);
  // One zero-byte write. False: it was not posted. REQUIRES: it is connected.
  bool Write(Id id);
  // Results of the writes since the last call, in order. REQUIRES: the pair was made.
  std::vector<verbs::Status> Poll(Id id);
  void Drop(Id id);

 private:
  struct Pair {
    verbs::QueuePairId queue_pair{};
    verbs::CompletionQueueId completions{};
    std::string device;
    verbs::Path path;  // without the other end
    uint32_t psn = 0;
    uint32_t mtu_bytes = 0;
  };
  // Blocking thread only.
  struct Open {
    verbs::ContextId context{};
    verbs::DomainId domain{};
    int pairs = 0;
  };
  using Devices = std::map<std::string, Open>;

  static int OpenDevice(verbs::Verbs* verbs, const std::string& name, Devices* devices);
  static void Unuse(verbs::Verbs* verbs, const std::string& name, Devices* devices);
  static int MakePair(verbs::Verbs* verbs, const Open& open, const RdmaPlace& place, uint16_t pkey_index, Pair* pair, RdmaEnd* end);
  static void End(verbs::Verbs* verbs, const Pair& pair, Devices* devices);

  verbs::Verbs* const verbs_;
  Executor* const core_;
  Executor* const blocking_;
  const RdmaClass class_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  const std::shared_ptr<Devices> devices_ = std::make_shared<Devices>();
  std::map<Id, std::optional<Pair>> pairs_;  // nothing: it is being made
  uint64_t last_id_ = 0;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_IO_RDMA_PAIRS_H_
