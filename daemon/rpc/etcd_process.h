// A real etcd of one member, on loopback, for one test.
#ifndef R2CC_DAEMON_RPC_ETCD_PROCESS_H_
#define R2CC_DAEMON_RPC_ETCD_PROCESS_H_

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "daemon/rpc/free_port.h"

namespace r2cc::daemon {

constexpr char kEtcdBinary[] = "/usr/bin/etcd";

// Killed in the destructor, and with the test's process.
class EtcdProcess {
 public:
  // `folder`: for data and log. `tls_files`: with the names of a certificate, its key and the authority's certificate it asks each client
  // for a certificate of that authority.
  explicit EtcdProcess(std::string folder, std::vector<std::string> tls_files = {})
      : folder_(std::move(folder)), tls_files_(std::move(tls_files)), port_(FreePort()), peer_port_(FreePort()) {
    Start("data");
  }
  ~EtcdProcess() { Kill(); }
  EtcdProcess(const EtcdProcess&) = delete;
  EtcdProcess& operator=(const EtcdProcess&) = delete;

  // On the data in `data`, below the folder; the same port each time.
  void Start(const std::string& data) {
    const std::string client = std::string(tls_files_.empty() ? "http" : "https") + "://127.0.0.1:" + std::to_string(port_);
    const std::string peer = "http://127.0.0.1:" + std::to_string(peer_port_);
    std::vector<std::string> words = {kEtcdBinary,
                                      "--name",
                                      "one",
                                      "--data-dir",
                                      folder_ + "/" + data,
                                      "--listen-client-urls",
                                      client,
                                      "--advertise-client-urls",
                                      client,
                                      "--listen-peer-urls",
                                      peer,
                                      "--initial-advertise-peer-urls",
                                      peer,
                                      "--initial-cluster",
                                      "one=" + peer,
                                      "--logger",
                                      "zap",
                                      "--log-outputs",
                                      folder_ + "/etcd.log"};
    if (!tls_files_.empty())
      for (const std::string& word : {std::string("--cert-file"), tls_files_[0], std::string("--key-file"), tls_files_[1],
                                      std::string("--trusted-ca-file"), tls_files_[2], std::string("--client-cert-auth")})
        words.push_back(word);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
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

  std::string endpoint() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  const std::string folder_;
  const std::vector<std::string> tls_files_;
  const int port_;
  const int peer_port_;
  pid_t pid_ = -1;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_ETCD_PROCESS_H_
