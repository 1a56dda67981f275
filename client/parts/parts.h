// Reads the switch and its port behind a NIC of this machine, and the NIC's serial number, if the user of r2ccctl may read them. r2ccd may
// not: it has no capability and runs no program.
#ifndef R2CC_CLIENT_PARTS_PARTS_H_
#define R2CC_CLIENT_PARTS_PARTS_H_

#include <map>
#include <optional>
#include <string>

#include "client/parts/part_reader.h"
#include "proto/r2cc.pb.h"

namespace r2cc::client {

struct Neighbour {
  std::string name;  // of the switch, or its MAC
  std::string port;
  friend bool operator==(const Neighbour&, const Neighbour&) = default;
};
// Parses the output of lldpcli, by interface. Garbled parts are left out. Pure.
std::map<std::string, Neighbour> ParseNeighbours(const std::string& json);

// The serial number in a PCI device's vital product data; empty: it has none. Pure.
std::string SerialIn(const std::string& vital_data);

// Asks lldpd once.
class Parts {
 public:
  explicit Parts(PartReader* reader) : reader_(reader) {}

  // Adds what can be read of the NIC, of this machine, and takes away the reason why it lacked.
  void AddTo(const v1::NicView& nic, v1::NicInventory* inventory);

 private:
  PartReader* const reader_;
  std::optional<std::map<std::string, Neighbour>> neighbours_;
};

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_PARTS_PARTS_H_
