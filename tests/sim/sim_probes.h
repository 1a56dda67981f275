// The connections of net::Probes over the simulated network: of one process.
#ifndef R2CC_TESTS_SIM_SIM_PROBES_H_
#define R2CC_TESTS_SIM_SIM_PROBES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "netplugin/transport/probes.h"
#include "tests/sim/io.h"
#include "tests/sim/ready_set.h"

namespace r2cc::sim {

class SimProbes {
 public:
  explicit SimProbes(Io* io) : io_(io), ready_(io->wake) {}
  ~SimProbes();
  SimProbes(const SimProbes&) = delete;
  SimProbes& operator=(const SimProbes&) = delete;

  void Ask(const net::OobAddress& peer, const net::Probes::Question& question) { probes_.Ask(peer, question); }
  std::optional<net::ProbeResult> AnswerTo(const net::OobAddress& peer, const net::Probes::Question& question) const {
    return probes_.AnswerTo(peer, question);
  }
  // Once a turn.
  void Tick(Nanos now);

 private:
  struct Open {
    std::shared_ptr<Socket> socket;
    ReadySet::Token token = 0;
    bool connected = false;
  };
  void Connect(uint64_t connection, const net::OobAddress& peer);
  void Close(uint64_t connection);
  void Look(uint64_t connection);

  Io* const io_;
  ReadySet ready_;
  net::Probes probes_;
  std::map<uint64_t, Open> open_;
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_SIM_PROBES_H_
