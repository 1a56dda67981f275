// How long r2ccctl's lists take in a large cluster: a real r2ccd, whose store holds the views of 10,000 nodes of 8 NICs each, asked by the
// real r2ccctl. Prints for each command the median of its runs, and how much it says. Judges nothing but that each command ends well.
//
// Each node writes with a certificate of its own, as nodes do: r2ccd ends a conversation of one that writes for many.
//
//   ./bazelw run //tests/bench:fleet_size -- [NODES [NICS]]
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "daemon/core/convert.h"
#include "daemon/program/r2ccd_trust_rig.h"
#include "daemon/trust/signed_store.h"
#include "proto/store.grpc.pb.h"

namespace r2cc::daemon {
namespace {

constexpr int kRuns = 5;
// One NIC in so many nodes has failed.
constexpr int kFailedEvery = 1000;

std::string Name(int node) { return "node" + std::to_string(node); }

v1::NodeView View(int node, int nics) {
  v1::NodeView view;
  view.set_node(Name(node));
  view.mutable_epoch()->set_incarnation(static_cast<uint64_t>(node) + 1);
  view.mutable_epoch()->set_counter(1);
  view.set_protocol(kPeerProtocol);
  view.set_release("bench");
  view.set_peer_address("10.200.0.1:7460");
  const bool failed = node % kFailedEvery == 0;
  view.set_word(failed ? v1::NODE_DEGRADED : v1::NODE_HEALTHY);
  for (int i = 0; i < nics; ++i) {
    v1::NicView* nic = view.add_nics();
    nic->set_name("rail" + std::to_string(i));
    nic->set_address("10." + std::to_string(i) + "." + std::to_string(node / 250) + "." + std::to_string(node % 250 + 1));
    nic->set_mac("02:00:00:00:00:01");
    nic->set_pci("0000:81:00." + std::to_string(i));
    nic->set_rate_bits_per_s(400'000'000'000);
    nic->set_operator_weight_permille(1000);
    nic->set_link_up(!failed || i != 0);
    nic->set_state(failed && i == 0 ? v1::FAILED : v1::HEALTHY);
    nic->set_reason(failed && i == 0 ? "link down" : "link up");
    nic->set_since_ns(1);
  }
  return view;
}

struct Run {
  double ms = 0;
  size_t lines = 0;
  size_t bytes = 0;
  int code = 0;
};

Run Ask(const std::string& command) {
  Run run;
  const Nanos begin = Now();
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {.code = -1};
  std::array<char, 65'536> part;
  for (size_t got; (got = fread(part.data(), 1, part.size(), pipe)) > 0;) {
    run.bytes += got;
    run.lines += static_cast<size_t>(std::count(part.data(), part.data() + got, '\n'));
  }
  run.code = pclose(pipe);
  run.ms = static_cast<double>(Now() - begin) / kNanosPerMs;
  return run;
}

int Main(int nodes, int nics) {
  std::string folder = "/tmp/r2cc-fleet.XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return 1;
  const int port = FreePort();
  const std::string address = "127.0.0.1:" + std::to_string(port);
  const CertificateAndKey ca = *MakeAuthority("bench", ForDays(NowS(), 1));
  const auto issue = [&](const std::string& node) { return *Issue(ca, {Identity::Kind::kNode, node}, ForDays(NowS(), 1)); };
  PutCertificate(folder, "node", issue("own"), ca.certificate);
  std::ofstream(folder + "/conf") << "node: \"own\"\nlisten: \"" << address << "\"\nnics { name: \"rail0\" address: \"127.7.9.1\" }\n"
                                  << "store { embedded_node: \"own\" }\ntls { directory: \"" << folder << "\" }\nlimits { nodes: 16384 }\n";
  Process daemon({"--config", folder + "/conf", "--run_dir", folder + "/run", "--state_dir", folder + "/kept"}, folder + "/log");
  const std::string ctl = "client/r2ccctl --run_dir " + folder + "/run ";
  if (!WaitUntil([&] { return Ask(ctl + "status 2>&1").code == 0; })) {
    std::fprintf(stderr, "r2ccd does not answer:\n%s", daemon.log().c_str());
    return 1;
  }
  for (int node = 0; node < nodes; ++node) {
    const CertificateAndKey own = issue(Name(node));
    v1::PutRequest put;
    put.set_key("/r2cc/nodes/" + Name(node));
    v1::SignedValue stored;
    stored.set_value(View(node, nics).SerializeAsString());
    stored.set_certificate(own.certificate);
    const KeyPtr key = *ParseKey(own.key);
    stored.set_signature(*Sign(key.get(), SignedText(put.key(), stored.value())));
    put.set_value(stored.SerializeAsString());
    grpc::ClientContext context;
    v1::PutReply reply;
    if (const grpc::Status status = v1::Store::NewStub(TlsChannel(port, &own))->Put(&context, put, &reply); !status.ok()) {
      std::fprintf(stderr, "the store took %d nodes: %s\n", node, status.error_message().c_str());
      return 1;
    }
  }
  const std::string last = Name(nodes - 1);
  if (!WaitUntil([&] { return Ask(ctl + "nic list " + last + " 2>/dev/null").code == 0; })) {
    std::fprintf(stderr, "%s is not in the view:\n%s", last.c_str(), daemon.log().c_str());
    return 1;
  }
  std::printf("%d nodes x %d NICs, median of %d runs of r2ccctl\n%-28s %10s %9s %12s\n", nodes, nics, kRuns, "command", "ms", "lines",
              "bytes");
  bool sound = true;
  for (const char* const command : {"status", "nic list --bad", "nic list --node 'node77*'", "nic list", "status -o json",
                                    "nic list -o json", "plan show", "plan why", "watch --count 1"}) {
    std::vector<Run> runs;
    for (int i = 0; i < kRuns; ++i) runs.push_back(Ask(ctl + command));
    std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.ms < b.ms; });
    const Run& median = runs[kRuns / 2];
    sound = sound && std::all_of(runs.begin(), runs.end(), [](const Run& run) { return run.code == 0; });
    std::printf("%-28s %10.1f %9zu %12zu\n", command, median.ms, median.lines, median.bytes);
  }
  std::filesystem::remove_all(folder);
  if (!sound) std::fprintf(stderr, "a command failed\n");
  return sound ? 0 : 1;
}

}  // namespace
}  // namespace r2cc::daemon

int main(int argc, char** argv) { return r2cc::daemon::Main(argc > 1 ? std::atoi(argv[1]) : 10'000, argc > 2 ? std::atoi(argv[2]) : 8); }
