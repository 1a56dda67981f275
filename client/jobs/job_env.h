// `r2ccctl job env`: the lines that make a job load the plugin and attach, for the ways in which jobs are started. Pure.
#ifndef R2CC_CLIENT_JOBS_JOB_ENV_H_
#define R2CC_CLIENT_JOBS_JOB_ENV_H_

#include <string>
#include <vector>

#include "proto/local.pb.h"

namespace r2cc::client {

struct JobEnvCommand {
  std::string launcher;           // one of Launchers()
  std::string job;                // R2CC_JOB; empty: the program's name
  std::string rails;              // R2CC_RAILS; empty: the NICs of r2ccd, or every usable interface
  std::string library_directory;  // of the plugin, if the loader does not find it; empty: it does
  std::string run_dir;
  bool seat = false;  // R2CC_SEAT, and what it needs
  bool json = false;
};

std::vector<std::string> Launchers();

// The environment as values, and as lines.
v1::JobEnvironment MakeJobEnvironment(const JobEnvCommand& command);

// Lines to copy. A line that begins with # is a comment in all of them.
std::string FormatJobEnv(const JobEnvCommand& command);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_JOBS_JOB_ENV_H_
