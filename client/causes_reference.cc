// Prints docs/reference/causes.md.
#include <cstdio>

#include "client/core/causes.h"

int main() { return std::fputs(r2cc::client::CausesReference().c_str(), stdout) >= 0 ? 0 : 1; }
