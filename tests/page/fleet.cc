// Puts the views of many nodes into the embedded store of an r2ccd, as their daemons would, and changes them by lines of its input.
//
//   fleet HOST:PORT NODES NICS
//   COMMAND: NODE-FROM NODE-TO NIC STATE REASON, where NODE is a number, NIC a number or -1 for all, and STATE as in r2cc.v1.NicState;
//            or "again", which puts all views into the store once more: the embedded store keeps nothing over a restart
//
// Prints "ready" when all views are in the store, and "done" after each command. Ends with its input.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "daemon/core/convert.h"
#include "proto/store.grpc.pb.h"

namespace r2cc::daemon {
namespace {

constexpr int kTriesMax = 5;

std::string Name(int node) {
  std::string digits = std::to_string(node);
  return "node" + std::string(4 - std::min<size_t>(4, digits.size()), '0') + digits;
}

class Fleet {
 public:
  Fleet(const std::string& address, int nodes, int nics)
      : store_(v1::Store::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))), views_(static_cast<size_t>(nodes)) {
    for (int node = 0; node < nodes; ++node) Fill(node, nics);
  }
  size_t size() const { return views_.size(); }
  bool Put(size_t node) {
    v1::NodeView& view = views_[node];
    view.mutable_epoch()->set_counter(view.epoch().counter() + 1);
    bool failed = false;
    for (const v1::NicView& nic : view.nics()) failed = failed || nic.state() != v1::HEALTHY;
    view.set_word(failed ? v1::NODE_DEGRADED : v1::NODE_HEALTHY);
    v1::SignedValue stored;
    stored.set_value(view.SerializeAsString());
    v1::PutRequest put;
    put.set_key("/r2cc/nodes/" + view.node());
    put.set_value(stored.SerializeAsString());
    grpc::Status status;
    // The daemon ends a conversation that asks nothing for long, and a restart ends all.
    for (int tries = 0; tries < kTriesMax && (tries == 0 || status.error_code() == grpc::StatusCode::UNAVAILABLE); ++tries) {
      grpc::ClientContext context;
      context.set_wait_for_ready(true);
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
      v1::PutReply reply;
      status = store_->Put(&context, put, &reply);
    }
    if (!status.ok()) std::fprintf(stderr, "%s: %s\n", view.node().c_str(), status.error_message().c_str());
    return status.ok();
  }
  void Set(size_t node, int nic, v1::NicState state, const std::string& reason) {
    for (int i = 0; i < views_[node].nics_size(); ++i) {
      if (nic >= 0 && i != nic) continue;
      v1::NicView* const view = views_[node].mutable_nics(i);
      view->set_state(state);
      view->set_reason(reason);
      view->set_link_up(state != v1::FAILED);
      view->set_since_ns(SystemNanos());
    }
  }

 private:
  static int64_t SystemNanos() { return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count(); }
  void Fill(int node, int nics) {
    v1::NodeView& view = views_[static_cast<size_t>(node)];
    view.set_node(Name(node));
    view.mutable_epoch()->set_incarnation(static_cast<uint64_t>(node) + 1);
    view.set_protocol(kPeerProtocol);
    view.set_release("bench");
    view.set_peer_address("10.200.0.1:7460");
    for (int i = 0; i < nics; ++i) {
      v1::NicView* const nic = view.add_nics();
      nic->set_name("rail" + std::to_string(i));
      nic->set_address("10." + std::to_string(i) + "." + std::to_string(node / 250) + "." + std::to_string(node % 250 + 1));
      nic->set_mac("02:00:00:00:00:01");
      nic->set_pci("0000:81:00." + std::to_string(i));
      nic->set_rate_bits_per_s(400'000'000'000);
      nic->set_operator_weight_permille(1000);
    }
    Set(static_cast<size_t>(node), -1, v1::HEALTHY, "link up");
  }

  const std::unique_ptr<v1::Store::Stub> store_;
  std::vector<v1::NodeView> views_;
};

int Main(const std::string& address, int nodes, int nics) {
  Fleet fleet(address, nodes, nics);
  for (size_t node = 0; node < fleet.size(); ++node)
    if (!fleet.Put(node)) return 1;
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    size_t from = 0, to = 0;
    int nic = 0;
    std::string name, reason;
    v1::NicState state;
    if (line == "again") {
      for (size_t node = 0; node < fleet.size(); ++node)
        if (!fleet.Put(node)) return 1;
      std::cout << "done" << std::endl;
      continue;
    }
    words >> from >> to >> nic >> name >> std::ws;
    std::getline(words, reason);
    if (!v1::NicState_Parse(name, &state) || to >= fleet.size()) {
      std::cerr << "not understood: " << line << std::endl;
      return 2;
    }
    for (size_t node = from; node <= to; ++node) {
      fleet.Set(node, nic, state, reason);
      if (!fleet.Put(node)) return 1;
    }
    std::cout << "done" << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace r2cc::daemon

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  return r2cc::daemon::Main(argv[1], std::atoi(argv[2]), std::atoi(argv[3]));
}
