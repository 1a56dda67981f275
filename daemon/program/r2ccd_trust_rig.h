// r2ccd as a process with certificates, and an attacker's end of its port.
#ifndef R2CC_DAEMON_PROGRAM_R2CCD_TRUST_RIG_H_
#define R2CC_DAEMON_PROGRAM_R2CCD_TRUST_RIG_H_

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "base/tls/authority.h"
#include "daemon/program/r2ccd_rig.h"
#include "proto/store.grpc.pb.h"

namespace r2cc::daemon {

inline int64_t NowS() { return std::time(nullptr); }

// Runs r2ccctl: its exit code, and all that it prints. `before`: put in front of the command.
inline std::string Ctl(const std::string& arguments, const std::string& before = "") {
  FILE* pipe = popen((before + "client/r2ccctl " + arguments + " 2>&1").c_str(), "r");
  std::string output;
  char text[4096];
  while (pipe != nullptr && fgets(text, sizeof(text), pipe) != nullptr) output += text;
  return std::to_string(WEXITSTATUS(pclose(pipe))) + " " + output;
}

// The attacker's connection to a daemon's port; no pair: without a certificate. It accepts any certificate of the server.
inline std::shared_ptr<grpc::Channel> TlsChannel(int port, const CertificateAndKey* pair) {
  grpc::experimental::TlsChannelCredentialsOptions options;
  if (pair != nullptr) {
    options.set_certificate_provider(std::make_shared<grpc::experimental::StaticDataCertificateProvider>(
        std::vector<grpc::experimental::IdentityKeyCertPair>{{pair->key, pair->certificate}}));
    options.watch_identity_key_cert_pairs();
  }
  options.set_verify_server_certs(false);
  options.set_check_call_host(false);
  options.set_certificate_verifier(std::make_shared<grpc::experimental::NoOpCertificateVerifier>());
  return grpc::CreateChannel("127.0.0.1:" + std::to_string(port), grpc::experimental::TlsCredentials(options));
}

// Into `directory`, as `r2ccctl certs issue` does it: whole files, the key first.
inline void PutCertificate(const std::string& directory, const std::string& name, const CertificateAndKey& pair,
                           const std::string& authority) {
  std::filesystem::create_directories(directory);
  for (const auto& [file, text] : {std::pair(name + ".key", pair.key), {name + ".crt", pair.certificate}, {"ca.crt", authority}}) {
    std::ofstream(directory + "/fresh") << text;
    std::filesystem::permissions(directory + "/fresh", std::filesystem::perms(0600));
    std::filesystem::rename(directory + "/fresh", directory + "/" + file);
  }
}

class TrustTest : public R2ccdTest {
 protected:
  void SetUp() override {
    R2ccdTest::SetUp();
    for (int node = 0; node < nodes_; ++node) IssueTo(node);
  }

  std::string TlsDirectory(int node) const { return folder_ + "/tls-" + Node(node); }
  std::string Tls(int node) const { return "tls { directory: \"" + TlsDirectory(node) + "\" }\n"; }
  void Put(const std::string& directory, const std::string& name, const CertificateAndKey& pair) {
    PutCertificate(directory, name, pair, ca_.certificate);
  }
  void IssueTo(int node) { Put(TlsDirectory(node), "node", *Issue(ca_, {Identity::Kind::kNode, Node(node)}, ForDays(NowS(), 10))); }
  // All nodes use only TLS from their next start on.
  void UseTls() {
    trust_ = "";
    for (int node = 0; node < nodes_; ++node) WriteConfig(node, Tls(node));
  }

  std::shared_ptr<grpc::Channel> Channel(int node, const CertificateAndKey* pair, bool tls = true) {
    if (tls) return TlsChannel(ports_[node], pair);
    return grpc::CreateChannel("127.0.0.1:" + std::to_string(ports_[node]), grpc::InsecureChannelCredentials());
  }
  static void SetDeadline(grpc::ClientContext* context) {
    context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  }

  grpc::Status ActAsPeer(const std::shared_ptr<grpc::Channel>& channel, const std::string& node, v1::NicAction action = v1::FAIL) {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::NicActionRequest request;
    request.set_node(node);
    request.set_nic("rail0");
    request.set_action(action);
    request.mutable_asker()->set_node("n2");  // and uid 0
    v1::NicActionReply reply;
    return v1::Peer::NewStub(channel)->ActOnNic(&context, request, &reply);
  }
  // Pushes views until the daemon ends the stream, or has answered after all of them; its answers.
  grpc::Status Push(const std::shared_ptr<grpc::Channel>& channel, const std::vector<v1::NodeView>& views,
                    std::vector<v1::NodeView>* answers) {
    grpc::ClientContext context;
    SetDeadline(&context);
    const auto stub = v1::Peer::NewStub(channel);
    const auto stream = stub->Exchange(&context);
    for (const v1::NodeView& view : views) {
      v1::PushRequest request;
      *request.mutable_view() = view;
      if (!stream->Write(request)) break;
    }
    v1::PushReply reply;
    if (stream->Read(&reply)) answers->push_back(reply.view());
    stream->WritesDone();
    while (stream->Read(&reply)) answers->push_back(reply.view());
    return stream->Finish();
  }
  // The view of a daemon that does not exist.
  static v1::NodeView Forged(const std::string& node) {
    v1::NodeView view;
    view.set_node(node);
    view.mutable_epoch()->set_incarnation(9'000'000'000);
    view.set_word(v1::NODE_UNHEALTHY);
    for (const char* name : {"rail0", "rail1"}) {
      v1::NicView* nic = view.add_nics();
      nic->set_name(name);
      nic->set_state(v1::FAILED);
      nic->set_operator_weight_permille(1000);
    }
    return view;
  }
  grpc::Status PutIntoStore(const std::shared_ptr<grpc::Channel>& channel, const std::string& key) {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::PutRequest request;
    request.set_key(key);
    request.set_value("x");
    v1::PutReply reply;
    return v1::Store::NewStub(channel)->Put(&context, request, &reply);
  }
  grpc::Status ReadStore(const std::shared_ptr<grpc::Channel>& channel, int* entries) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(3));
    v1::WatchRequest request;
    request.set_prefix("/r2cc/");
    const auto stub = v1::Store::NewStub(channel);
    const auto stream = stub->Watch(&context, request);
    for (v1::WatchReply reply; stream->Read(&reply);) ++*entries;
    return stream->Finish();
  }
  // How often `node` has refused something for `reason`, by its status.
  uint64_t Refused(int node, const std::string& reason, std::string* last = nullptr) {
    const v1::StatusReply status = Status(node);
    for (const v1::Refusal& refusal : status.refusals())
      if (refusal.reason() == reason) {
        if (last != nullptr) *last = refusal.last();
        return refusal.times();
      }
    return 0;
  }
  v1::NicState StateOf(int asked, const std::string& node, const std::string& nic) {
    const v1::StatusReply status = Status(asked);
    for (const v1::NodeView& view : status.nodes())
      for (const v1::NicView& nic_view : view.nics())
        if (view.node() == node && nic_view.name() == nic) return nic_view.state();
    return v1::NIC_STATE_UNSPECIFIED;
  }

  const CertificateAndKey ca_ = *MakeAuthority("r2cc test", ForDays(NowS(), 100));
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_PROGRAM_R2CCD_TRUST_RIG_H_
