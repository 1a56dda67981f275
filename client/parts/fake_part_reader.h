// A fake machine whose facts a test sets.
#ifndef R2CC_CLIENT_PARTS_FAKE_PART_READER_H_
#define R2CC_CLIENT_PARTS_FAKE_PART_READER_H_

#include <map>
#include <string>

#include "client/parts/part_reader.h"

namespace r2cc::client {

class FakePartReader final : public PartReader {
 public:
  absl::StatusOr<std::string> Neighbours() override {
    ++asked;
    return neighbours;
  }
  std::string InterfaceOf(const std::string& mac) override { return interfaces[mac]; }
  absl::StatusOr<std::string> VitalData(const std::string& pci) override {
    const auto found = vital_data.find(pci);
    return found == vital_data.end() ? absl::StatusOr<std::string>(absl::PermissionDeniedError("not root")) : found->second;
  }

  absl::StatusOr<std::string> neighbours = absl::NotFoundError("no lldpcli");
  std::map<std::string, std::string> interfaces;  // by MAC
  std::map<std::string, std::string> vital_data;  // by PCI address
  int asked = 0;
};

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_PARTS_FAKE_PART_READER_H_
