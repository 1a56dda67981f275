// libnccl.so.2 for tests without a GPU: all ranks are threads of one process, and each operation is done when it returns.
#include "tests/seat/stub_nccl.h"

#include <netinet/in.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

using r2cc::nccl::Comm;
using r2cc::nccl::Result;
using r2cc::nccl::Stream;
using r2cc::nccl::UniqueId;

namespace {

std::atomic<bool> hangs{false};

// Of all ranks of a communicator: what the last one to come does for all.
struct Meeting {
  std::mutex mutex;
  std::condition_variable all_here;
  size_t ranks = 0, here = 0, number = 0;
  std::vector<const void*> sent;
  std::vector<void*> received;
  size_t elements = 0;                          // of the first one to come; 0: no AllReduce
  std::map<int, std::pair<int, Comm*>> splits;  // by rank: key, and where the child goes
  bool is_child = false;

  template <typename Come, typename Act>
  void Meet(Come come, Act act) {
    std::unique_lock lock(mutex);
    come();
    const size_t own = number;
    // An operation that hangs is under way all the same.
    if (hangs) {
      all_here.notify_all();
    } else if (++here == ranks) {
      act();
      here = 0;
      ++number;
      all_here.notify_all();
    } else {
      all_here.wait(lock, [&] { return number != own || hangs; });
    }
  }
};

std::atomic<int> alive{0};
thread_local int redirected = 0;
std::atomic<int (*)()> takes_collnet{nullptr};

}  // namespace

struct r2cc::nccl::ncclComm {
  std::shared_ptr<Meeting> meeting;
  int rank;
};

namespace {

std::shared_ptr<Meeting> NewMeeting(size_t ranks, bool is_child) {
  auto meeting = std::make_shared<Meeting>();
  meeting->ranks = ranks;
  meeting->sent.resize(ranks);
  meeting->received.resize(ranks);
  meeting->is_child = is_child;
  return meeting;
}

Comm NewComm(const std::shared_ptr<Meeting>& meeting, int rank) {
  ++alive;
  return new r2cc::nccl::ncclComm{meeting, rank};
}

}  // namespace

extern "C" {

int stub_redirected() { return redirected; }
int stub_hangs() { return hangs; }
void stub_set_tuner(int (*asked)()) { takes_collnet = asked; }
int stub_alive() { return alive; }

// NCCL asks so before most calls, and by its public function: whoever stands before that is asked.
static Result EnsureReady(Comm comm) {
  Result error = Result::kSuccess;
  const Result result = ncclCommGetAsyncError(comm, &error);
  return result == Result::kSuccess ? error : result;
}

Result pncclGetVersion(int* version) {
  const char* const other = std::getenv("STUB_NCCL_VERSION");
  *version = other == nullptr ? 22809 : std::atoi(other);
  return Result::kSuccess;
}

// As NCCL's: a number, and the address where the ranks meet.
Result pncclGetUniqueId(UniqueId* id) {
  static std::atomic<uint64_t> made{0};
  const uint64_t number = ++made;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(1);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  *id = {};
  std::memcpy(id->bytes, &number, sizeof(number));
  std::memcpy(id->bytes + sizeof(number), &address, sizeof(address));
  return Result::kSuccess;
}
Result pncclCommInitRank(Comm* comm, int ranks, UniqueId id, int rank) {
  static std::mutex mutex;
  static std::map<uint64_t, std::shared_ptr<Meeting>> meetings;
  uint64_t number = 0;
  std::memcpy(&number, id.bytes, sizeof(number));
  std::shared_ptr<Meeting> meeting;
  {
    const std::lock_guard lock(mutex);
    std::shared_ptr<Meeting>& of_id = meetings[number];
    if (of_id == nullptr) of_id = NewMeeting(static_cast<size_t>(ranks), false);
    meeting = of_id;
  }
  meeting->Meet([] {}, [] {});
  *comm = NewComm(meeting, rank);
  return Result::kSuccess;
}

// Of floats the first one alone.
Result pncclAllReduce(const void* send, void* receive, size_t count, int type, int, Comm comm, Stream) {
  if (const Result ready = EnsureReady(comm); ready != Result::kSuccess) return ready;
  if (hangs) return Result::kSuccess;
  Meeting& meeting = *comm->meeting;
  redirected += meeting.is_child;
  // NCCL refuses CollNet to a child whose parent has it.
  if (const auto ask = takes_collnet.load(); ask != nullptr && !meeting.is_child) redirected += ask();
  meeting.Meet(
      [&] {
        hangs = hangs || (meeting.here > 0 && meeting.elements != count);
        meeting.elements = count;
        meeting.sent[static_cast<size_t>(comm->rank)] = send;
        meeting.received[static_cast<size_t>(comm->rank)] = receive;
      },
      [&] {
        if (hangs) return;
        if (type == static_cast<int>(r2cc::nccl::DataType::kUint32)) {
          std::vector<uint32_t> minimum(count, UINT32_MAX);
          for (const void* one : meeting.sent)
            for (size_t i = 0; i < count; ++i) minimum[i] = std::min(minimum[i], static_cast<const uint32_t*>(one)[i]);
          for (void* one : meeting.received) std::copy(minimum.begin(), minimum.end(), static_cast<uint32_t*>(one));
          return;
        }
        float sum = 0;
        for (const void* one : meeting.sent) sum += *static_cast<const float*>(one);
        for (void* one : meeting.received) *static_cast<float*>(one) = sum;
      });
  return Result::kSuccess;
}

Result pncclAllGather(const void*, void*, size_t, int, Comm comm, Stream) {
  if (const Result ready = EnsureReady(comm); ready != Result::kSuccess) return ready;
  if (hangs) return Result::kSuccess;
  Meeting& meeting = *comm->meeting;
  meeting.Meet(
      [&] {
        hangs = hangs || (meeting.here > 0 && meeting.elements != 0);
        meeting.elements = 0;
      },
      [] {});
  return Result::kSuccess;
}
Result pncclGroupStart() { return Result::kSuccess; }
Result pncclGroupEnd() { return Result::kSuccess; }
Result pncclCommCount(Comm comm, int* ranks) {
  if (const Result ready = EnsureReady(comm); ready != Result::kSuccess) return ready;
  *ranks = static_cast<int>(comm->meeting->ranks);
  return Result::kSuccess;
}
Result pncclCommUserRank(Comm comm, int* rank) {
  if (const Result ready = EnsureReady(comm); ready != Result::kSuccess) return ready;
  *rank = comm->rank;
  return Result::kSuccess;
}
Result pncclCommSplit(Comm comm, int, int key, Comm* child, void* config) {
  if (const Result ready = EnsureReady(comm); ready != Result::kSuccess) return ready;
  Meeting& meeting = *comm->meeting;
  meeting.Meet(
      [&] {
        meeting.splits[comm->rank] = {key, child};
      },
      [&] {
        std::vector<std::pair<int, int>> by_key;
        for (const auto& [rank, split] : meeting.splits) by_key.emplace_back(split.first, rank);
        std::sort(by_key.begin(), by_key.end());
        const auto made = NewMeeting(meeting.ranks, config == nullptr);
        for (size_t at = 0; at < by_key.size(); ++at) *meeting.splits[by_key[at].second].second = NewComm(made, static_cast<int>(at));
        meeting.splits.clear();
      });
  return Result::kSuccess;
}
Result pncclCommFinalize(Comm) { return Result::kSuccess; }
Result pncclCommDestroy(Comm comm) {
  --alive;
  delete comm;
  return Result::kSuccess;
}
Result pncclCommAbort(Comm comm) { return pncclCommDestroy(comm); }
Result pncclCommGetAsyncError(Comm, Result* error) {
  *error = Result::kSuccess;
  return Result::kSuccess;
}

// As in NCCL, a program reaches these unless somebody stands before them.
Result ncclGetUniqueId(UniqueId* id) { return pncclGetUniqueId(id); }
Result ncclCommInitRank(Comm* comm, int ranks, UniqueId id, int rank) { return pncclCommInitRank(comm, ranks, id, rank); }
Result ncclCommSplit(Comm comm, int color, int key, Comm* child, void* config) { return pncclCommSplit(comm, color, key, child, config); }
Result ncclAllReduce(const void* send, void* receive, size_t count, int type, int operation, Comm comm, Stream stream) {
  return pncclAllReduce(send, receive, count, type, operation, comm, stream);
}
Result ncclAllGather(const void* send, void* receive, size_t count, int type, Comm comm, Stream stream) {
  return pncclAllGather(send, receive, count, type, comm, stream);
}
Result ncclGroupStart() { return pncclGroupStart(); }
Result ncclGroupEnd() { return pncclGroupEnd(); }
Result ncclCommDestroy(Comm comm) { return pncclCommDestroy(comm); }
Result ncclCommGetAsyncError(Comm comm, Result* error) { return pncclCommGetAsyncError(comm, error); }

}  // extern "C"
