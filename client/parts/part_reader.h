// The seam to facts about NICs that need rights: lldpd answers root and its own group, and root reads PCI's vital product data.
#ifndef R2CC_CLIENT_PARTS_PART_READER_H_
#define R2CC_CLIENT_PARTS_PART_READER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace r2cc::client {

class PartReader {
 public:
  virtual ~PartReader() = default;
  // `lldpcli -f json0 show neighbors`.
  virtual absl::StatusOr<std::string> Neighbours() = 0;
  // The interface with this MAC; empty: there is none, or more than one.
  virtual std::string InterfaceOf(const std::string& mac) = 0;
  // The vital product data of the PCI function. The device takes up to a second for it.
  virtual absl::StatusOr<std::string> VitalData(const std::string& pci) = 0;
};

std::unique_ptr<PartReader> MakeOsPartReader();

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_PARTS_PART_READER_H_
