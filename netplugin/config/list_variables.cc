// Prints what the plugin takes from its environment, a line each: the name, a tab, what it may be.
#include <cstdio>

#include "netplugin/config/config.h"

int main() {
  for (const r2cc::net::Variable& variable : r2cc::net::Variables()) std::printf("%s\t%s\n", variable.name, variable.allowed);
}
