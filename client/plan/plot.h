// `r2ccctl plan simulate --plot`: a picture of the answer, as SVG.
#ifndef R2CC_CLIENT_PLAN_PLOT_H_
#define R2CC_CLIENT_PLAN_PLOT_H_

#include <string>

#include "client/plan/simulate.h"

namespace r2cc::client {

// Two drawings below each other: each candidate's predicted time over the message's size, and what the chosen schedule has each node's
// port do over time. The same command gives the same bytes.
std::string PlotSvg(const SimulateCommand& command);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_PLAN_PLOT_H_
