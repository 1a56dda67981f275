// The NIC's state table: what each event does in each state. Data; nic_machine.h runs it.
#ifndef R2CC_HEALTH_VIEW_NIC_TABLE_H_
#define R2CC_HEALTH_VIEW_NIC_TABLE_H_

#include <cstdint>

#include "health/view/nic_machine.h"
#include "health/view/nic_state.h"

namespace r2cc::health {

enum class NicStep : uint8_t {
  kStay,
  kHealthy,
  kDegraded,
  kSuspect,
  kFailed,
  kDrained,
  kRemembered,  // what is remembered of the NIC decides: its link, silence, drill, drain, proof, complaint and impairment, in this order
  kImpossible,  // the machine never gets here; if it does the process ends
};

// The transition for `event` in `state`, once the machine has found it to be news.
NicStep StepFor(NicState state, NicEvent event);

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_VIEW_NIC_TABLE_H_
