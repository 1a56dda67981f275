// The world over TCP: the two processes are in network namespaces of their own.
#ifndef R2CC_TESTS_CONTRACT_TCP_TCP_WORLD_H_
#define R2CC_TESTS_CONTRACT_TCP_TCP_WORLD_H_

#include "tests/contract/processes/process_world.h"
#include "tests/contract/tcp/lab.h"

namespace r2cc::contract {

class TcpWorld final : public ProcessWorld {
 public:
  // The lab outlives the world.
  TcpWorld(const Options& options, Lab* lab) : ProcessWorld(options, lab), lab_(lab) {}

  // What only interfaces do: see Lab.
  void Renumber(End end, int rail) { lab_->Renumber(end, rail); }
  void Remake(End end, int rail) { lab_->Remake(end, rail); }
  Lab* lab() { return lab_; }

 private:
  Lab* const lab_;
};

// Labs are made once and kept.
Transport TcpTransport();

}  // namespace r2cc::contract

#endif  // R2CC_TESTS_CONTRACT_TCP_TCP_WORLD_H_
