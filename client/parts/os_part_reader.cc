#include <filesystem>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/core/run_program.h"
#include "client/parts/part_reader.h"

namespace r2cc::client {
namespace {

// A node of 16 NICs with switches that describe themselves at length.
constexpr size_t kLldpBytesMax = 1 << 20;
constexpr int kLldpTimeoutMs = 2000;
// PCI's own limit.
constexpr size_t kVitalBytesMax = 32 << 10;

class OsPartReader final : public PartReader {
 public:
  absl::StatusOr<std::string> Neighbours() override {
    absl::StatusOr<std::string> text = RunSystemProgram({"lldpcli", "-f", "json0", "show", "neighbors"}, kLldpBytesMax, kLldpTimeoutMs);
    // It may warn before.
    if (text.ok()) text->erase(0, text->find('{'));
    return text;
  }

  std::string InterfaceOf(const std::string& mac) override {
    std::string found;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/sys/class/net", error)) {
      std::ifstream file(entry.path() / "address");
      std::string address;
      if (!std::getline(file, address) || !absl::EqualsIgnoreCase(address, mac)) continue;
      if (!found.empty()) return "";
      found = entry.path().filename();
    }
    return found;
  }

  absl::StatusOr<std::string> VitalData(const std::string& pci) override {
    // It becomes part of a path.
    for (const char letter : pci)
      if (!absl::ascii_isxdigit(static_cast<unsigned char>(letter)) && letter != ':' && letter != '.')
        return absl::InvalidArgumentError("no PCI address");
    std::ifstream file(absl::StrCat("/sys/bus/pci/devices/", pci, "/vpd"), std::ios::binary);
    std::string bytes(kVitalBytesMax, '\0');
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    bytes.resize(static_cast<size_t>(file.gcount()));
    if (bytes.empty()) return absl::NotFoundError("no vital product data");
    return bytes;
  }
};

}  // namespace

std::unique_ptr<PartReader> MakeOsPartReader() { return std::make_unique<OsPartReader>(); }

}  // namespace r2cc::client
