// A real etcd on loopback, for one test: one member, or a cluster of them.
#ifndef R2CC_DAEMON_RPC_ETCD_PROCESS_H_
#define R2CC_DAEMON_RPC_ETCD_PROCESS_H_

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/rpc/free_port.h"

namespace r2cc::daemon {

constexpr char kEtcdBinary[] = "/usr/bin/etcd";

struct EtcdMember {
  std::string name = "one";
  int port = FreePort();
  int peer_port = FreePort();

  std::string peer_url() const { return "http://127.0.0.1:" + std::to_string(peer_port); }
};

// Killed in the destructor, and with the test's process.
class EtcdProcess {
 public:
  // `folder`: for data and log. `tls_files`: with the names of a certificate, its key and the authority's certificate it asks each client
  // for one of that authority; empty: in the clear. `others`: the members of its cluster besides it.
  explicit EtcdProcess(std::string folder, std::vector<std::string> tls_files = {}, EtcdMember member = EtcdMember(),
                       std::vector<EtcdMember> others = {})
      : folder_(std::move(folder)), tls_files_(std::move(tls_files)), member_(std::move(member)), others_(std::move(others)) {
    Start("data");
  }
  ~EtcdProcess() { Kill(); }
  EtcdProcess(const EtcdProcess&) = delete;
  EtcdProcess& operator=(const EtcdProcess&) = delete;

  // On the data in `data`, below the folder; the same port each time.
  void Start(const std::string& data) {
    const std::string client = std::string(tls_files_.empty() ? "http" : "https") + "://" + endpoint();
    std::string cluster = member_.name + "=" + member_.peer_url();
    for (const EtcdMember& other : others_) cluster += "," + other.name + "=" + other.peer_url();
    std::vector<std::string> arguments = {kEtcdBinary,
                                          "--name",
                                          member_.name,
                                          "--data-dir",
                                          folder_ + "/" + data + "." + member_.name,
                                          "--listen-client-urls",
                                          client,
                                          "--advertise-client-urls",
                                          client,
                                          "--listen-peer-urls",
                                          member_.peer_url(),
                                          "--initial-advertise-peer-urls",
                                          member_.peer_url(),
                                          "--initial-cluster",
                                          cluster,
                                          "--logger",
                                          "zap",
                                          "--log-outputs",
                                          folder_ + "/etcd." + member_.name + ".log"};
    if (!tls_files_.empty())
      for (const std::string& argument : {std::string("--cert-file"), tls_files_[0], std::string("--key-file"), tls_files_[1],
                                          std::string("--trusted-ca-file"), tls_files_[2], std::string("--client-cert-auth")})
        arguments.push_back(argument);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int out = open((folder_ + "/etcd.out").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(out, 1);
    dup2(out, 2);
    execv(argv[0], argv.data());
    _exit(127);
  }
  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  void Signal(int signal) { kill(pid_, signal); }

  std::string endpoint() const { return "127.0.0.1:" + std::to_string(member_.port); }

 private:
  const std::string folder_;
  const std::vector<std::string> tls_files_;
  const EtcdMember member_;
  const std::vector<EtcdMember> others_;
  pid_t pid_ = -1;
};

// A cluster of three, of which one may be lost.
class EtcdCluster {
 public:
  static constexpr int kMembers = 3;

  explicit EtcdCluster(const std::string& folder) {
    std::vector<EtcdMember> all;
    for (int i = 0; i < kMembers; ++i) all.push_back({.name = "m" + std::to_string(i)});
    for (int i = 0; i < kMembers; ++i) {
      std::vector<EtcdMember> others = all;
      others.erase(others.begin() + i);
      members_.push_back(std::make_unique<EtcdProcess>(folder, std::vector<std::string>(), all[i], others));
    }
  }

  EtcdProcess& member(int i) { return *members_[i]; }
  std::vector<std::string> endpoints() const {
    std::vector<std::string> endpoints;
    for (const auto& member : members_) endpoints.push_back(member->endpoint());
    return endpoints;
  }

 private:
  std::vector<std::unique_ptr<EtcdProcess>> members_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_ETCD_PROCESS_H_
