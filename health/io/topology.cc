#include "health/io/topology.h"

namespace r2cc::health {

const char* PcieDistanceName(PcieDistance distance) {
  switch (distance) {
    case PcieDistance::kSameDevice: return "same-device";
    case PcieDistance::kSameSwitch: return "same-switch";
    case PcieDistance::kSameSwitches: return "same-switches";
    case PcieDistance::kSameHostBridge: return "same-host-bridge";
    case PcieDistance::kSameNuma: return "same-numa";
    case PcieDistance::kSameMachine: return "same-machine";
  }
  return "unknown";
}

}  // namespace r2cc::health
