// Fakes the flows between the members of a group in one process: messages arrive when a test moves the network, in any order between flows.
#ifndef R2CC_NETPLUGIN_COLLNET_FAKE_GROUP_H_
#define R2CC_NETPLUGIN_COLLNET_FAKE_GROUP_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "netplugin/collnet/group_flows.h"

namespace r2cc::collnet {

// Both ends of one flow.
struct FakeFlow {
  struct Post {
    net::Buffer buffer;
    uint64_t bytes = 0;
    std::vector<std::byte> copy;  // of what is left when a sender closes
  };
  uint32_t from = 0, to = 0;
  bool accepted = false;
  std::deque<Post> sends, receives;
  uint64_t sent = 0, received = 0;  // done
  std::vector<uint64_t> sizes;      // of what was received
  bool send_closed = false, receive_closed = false;
  double weight = 1;
  bool dealt = false;
  std::string error;
};

class FakeNetwork {
 public:
  explicit FakeNetwork(uint64_t seed) : random_(seed) {}

  FakeFlow* Open(uint32_t from, uint32_t to) {
    FakeFlow& flow = *flows_.emplace_back(std::make_unique<FakeFlow>());
    flow.from = from;
    flow.to = to;
    return &flow;
  }
  FakeFlow* Accept(uint32_t member) {
    for (const auto& flow : flows_)
      if (flow->to == member && !flow->accepted) {
        flow->accepted = true;
        return flow.get();
      }
    return nullptr;
  }
  // A message arrives at some of the flows.
  void Move() {
    for (const auto& flow : flows_) {
      if (flow->error.empty() && (flow->receive_closed || (flow->send_closed && flow->sends.empty()))) flow->error = "R2CC: closed";
      if (!HavePath(flow->from, flow->to) || flow->receive_closed || flow->sends.empty() || flow->receives.empty()) continue;
      if (random_() % 2 == 0) continue;
      const FakeFlow::Post &send = flow->sends.front(), &receive = flow->receives.front();
      if (send.bytes > receive.bytes) {
        flow->error = "R2CC: a message is larger than the buffer that the receiver posted for it";
        continue;
      }
      const uint64_t bytes = send.bytes - (send.bytes == short_bytes_ ? 1 : 0);
      std::memcpy(receive.buffer.data, send.buffer.data, bytes);
      flow->sizes.push_back(bytes);
      flow->sends.pop_front();
      flow->receives.pop_front();
      ++flow->sent;
      ++flow->received;
    }
  }
  void Fail(uint32_t a, uint32_t b, const std::string& error) {
    for (const auto& flow : flows_)
      if ((flow->from == a && flow->to == b) || (flow->from == b && flow->to == a)) flow->error = error;
  }
  // Messages of `bytes` bytes come with one byte less.
  void Shorten(uint64_t bytes) { short_bytes_ = bytes; }
  // What was posted between the two waits until the path is back.
  void Cut(uint32_t a, uint32_t b) { cut_.insert(std::minmax(a, b)); }
  void Heal(uint32_t a, uint32_t b) { cut_.erase(std::minmax(a, b)); }
  bool HavePath(uint32_t a, uint32_t b) const { return !cut_.contains(std::minmax(a, b)); }
  const std::vector<std::unique_ptr<FakeFlow>>& flows() const { return flows_; }

 private:
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<FakeFlow>> flows_;
  std::set<std::pair<uint32_t, uint32_t>> cut_;
  uint64_t short_bytes_ = UINT64_MAX;
};

class FakeGroup final : public GroupFlows, private net::FlowPort {
 public:
  // How many requests of a flow fit at one end.
  static constexpr size_t kRoom = 3;
  static constexpr uint64_t kCopiedBytesMax = 1000;

  FakeGroup(FakeNetwork* network, uint32_t member) : network_(network), member_(member) {}

  net::FlowPort* port() override { return this; }
  net::FlowRef Open(uint32_t member) override { return Add(network_->Open(member_, member)); }
  std::optional<net::FlowRef> Accept() override {
    FakeFlow* const flow = network_->Accept(member_);
    return flow == nullptr ? std::nullopt : std::optional(Add(flow));
  }

 private:
  net::FlowRef Add(FakeFlow* flow) {
    flows_.push_back(flow);
    return static_cast<net::FlowRef>(flows_.size() - 1);
  }
  bool Send(net::FlowRef flow, const net::Buffer& from, uint64_t bytes) override { return Post(&flows_[flow]->sends, from, bytes); }
  bool Receive(net::FlowRef flow, const net::Buffer& to, uint64_t bytes) override { return Post(&flows_[flow]->receives, to, bytes); }
  static bool Post(std::deque<FakeFlow::Post>* posts, const net::Buffer& buffer, uint64_t bytes) {
    if (posts->size() >= kRoom) return false;
    posts->push_back({buffer, bytes, {}});
    return true;
  }
  uint64_t DoneThrough(net::FlowRef flow) override { return flows_[flow]->from == member_ ? flows_[flow]->sent : flows_[flow]->received; }
  uint64_t SizeOf(net::FlowRef flow, uint64_t number) override { return flows_[flow]->sizes.at(number); }
  std::string Error(net::FlowRef flow) override { return flows_[flow]->error; }
  bool HasPath(net::FlowRef flow) override { return network_->HavePath(flows_[flow]->from, flows_[flow]->to); }
  bool SetWeight(net::FlowRef flow, double weight) override {
    flows_[flow]->weight = weight;
    return true;
  }
  void SetDealt(net::FlowRef flow, bool dealt) override { flows_[flow]->dealt = dealt; }
  // Small messages are done as copies, which are still delivered.
  void Close(net::FlowRef ref) override {
    FakeFlow& flow = *flows_[ref];
    if (flow.from != member_) {
      flow.receive_closed = true;
      return;
    }
    flow.send_closed = true;
    std::erase_if(flow.sends, [](const FakeFlow::Post& send) { return send.bytes > kCopiedBytesMax; });
    for (FakeFlow::Post& send : flow.sends) {
      send.copy.assign(send.buffer.data, send.buffer.data + send.bytes);
      send.buffer = send.copy.data();
    }
  }

  FakeNetwork* const network_;
  const uint32_t member_;
  std::vector<FakeFlow*> flows_;
};

}  // namespace r2cc::collnet

#endif  // R2CC_NETPLUGIN_COLLNET_FAKE_GROUP_H_
