#include "absl/strings/str_cat.h"
#include "daemon/config/config_text.h"

namespace r2cc::daemon {
namespace {

constexpr uint32_t kTrafficClassMost = 255;
constexpr uint32_t kServiceLevelMost = 15;

}  // namespace

absl::Status ReadRdma(const v1::DaemonConfig& file, const ConfigPlaces& places, Config* config) {
  const v1::RdmaConfig& rdma = file.rdma();
  const auto most = [&](const char* name, uint32_t value, uint32_t limit) {
    return value <= limit ? absl::OkStatus()
                          : places.Wrong(places.Line(file, "rdma"), absl::StrCat("rdma: ", name, " is 0 to ", limit, ", not ", value));
  };
  absl::Status status = most("traffic_class", rdma.traffic_class(), kTrafficClassMost);
  if (status.ok()) status = most("service_level", rdma.service_level(), kServiceLevelMost);
  if (status.ok()) status = most("pkey_index", rdma.pkey_index(), UINT16_MAX);
  if (!status.ok()) return status;
  config->rdma.traffic_class = static_cast<uint8_t>(rdma.traffic_class());
  config->rdma.service_level = static_cast<uint8_t>(rdma.service_level());
  config->rdma.pkey_index = static_cast<uint16_t>(rdma.pkey_index());
  return absl::OkStatus();
}

}  // namespace r2cc::daemon
