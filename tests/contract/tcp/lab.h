// Two nodes and the fabric between them as network namespaces: real interfaces, real link events, shaped rails. The namespaces have no
// names: they end with the process that made them, however it ends.
#ifndef R2CC_TESTS_CONTRACT_TCP_LAB_H_
#define R2CC_TESTS_CONTRACT_TCP_LAB_H_

#include <memory>
#include <string>
#include <vector>

#include "tests/contract/processes/nodes.h"

namespace r2cc::contract {

class Lab final : public Nodes {
 public:
  // Null and one line in `error` ("needs root: ...") if this machine or user cannot have it.
  static std::unique_ptr<Lab> Make(bool full_fabric, std::string* error);
  ~Lab() override;
  Lab(const Lab&) = delete;
  Lab& operator=(const Lab&) = delete;

  int OpenNamespace(End end) const override;
  std::string InterfaceOf(End /*end*/, int rail) const override { return Interface(rail); }

  // ---- `rail` may be kOob ----

  void Cut(End end, int rail) override;
  void Silence(End end, int rail) override;
  void Heal(End end, int rail) override;
  // The interface gets another address in the place of the one that it has. Not in a full fabric.
  void Renumber(End end, int rail);
  // It is deleted and made anew, with the address that it had.
  void Remake(End end, int rail);
  bool Lose(End end, int rail, Loss loss) override;
  void Shape(End end, int rail, int64_t bytes_per_s) override;
  void Reset(int64_t rail_bytes_per_s) override;
  // Of listeners that are opened from now on: so many connections wait to be accepted.
  void LimitBacklog(End end, int connections);
  // Resets all connections of the management interface.
  void ResetOob(End end);
  // Connections that wait there to be accepted.
  int WaitingOob(End end) const;

 private:
  static std::string Interface(int rail);
  enum Namespace { kNode0, kNode1, kFabric, kNamespaces };
  struct RailState {
    bool cut = false;
    bool silenced = false;
    bool loses = false;  // of what it sends
    int64_t bytes_per_s = 0;
    int moves = 0;  // how often it was renumbered
  };
  explicit Lab(bool full_fabric) : full_fabric_(full_fabric) {}
  bool Build(std::string* error);
  bool Run(Namespace where, const std::string& program, const std::vector<std::string>& lines, std::string* error) const;
  void Must(Namespace where, const std::string& program, const std::vector<std::string>& lines) const;
  // What ss prints.
  std::string SocketStatistics(Namespace where, std::vector<std::string> arguments) const;
  static void Write(int name_space, const std::string& file, const std::string& value);
  std::string Address(End end, int rail) const;
  // Of the connections that the end has open on the rail the one that has sent most; 0: there is none.
  int BusiestPort(End end, int rail) const;
  std::vector<std::string> Routes(End end, int rail) const;
  // What makes it: in the fabric, in the node.
  std::vector<std::string> Cable(End end, int rail) const;
  std::vector<std::string> Configuration(End end, int rail) const;
  std::string Bridge(int rail) const;
  RailState& StateOf(End end, int rail) { return rails_[end][rail + 1]; }
  const RailState& StateOf(End end, int rail) const { return rails_[end][rail + 1]; }

  const bool full_fabric_;
  int namespaces_[kNamespaces] = {-1, -1, -1};
  RailState rails_[2][kRails + 1];
};

}  // namespace r2cc::contract

#endif  // R2CC_TESTS_CONTRACT_TCP_LAB_H_
