#include <errno.h>  // program_invocation_short_name
#include <unistd.h>

#include <cstdlib>

#include "netplugin/config/config.h"

namespace r2cc::net {
namespace {

// Cut and cleaned to what R2CC_NODE and R2CC_JOB allow.
std::string Clean(const char* text, const char* otherwise) {
  std::string name = std::string(text).substr(0, 63);
  for (char& c : name)
    if (c <= 0x20 || c >= 0x7f || c == '/') c = '_';
  return name.empty() ? otherwise : name;
}

}  // namespace

const char* FromEnvironment(const char* name) { return std::getenv(name); }

void FillFromSystem(PluginConfig* config) {
  if (config->node.empty()) {
    char name[256] = "";
    if (gethostname(name, sizeof(name) - 1) != 0) name[0] = '\0';
    config->node = Clean(name, "localhost");
  }
  if (config->job.empty()) config->job = Clean(program_invocation_short_name, "job");
}

}  // namespace r2cc::net
