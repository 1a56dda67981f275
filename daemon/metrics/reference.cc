// Prints docs/reference/metrics.md.
#include <cstdio>

#include "daemon/metrics/table.h"

int main() { return std::fputs(r2cc::daemon::MetricsReference().c_str(), stdout) >= 0 ? 0 : 1; }
