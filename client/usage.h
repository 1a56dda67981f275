// What was wrong with a command line, for a person.
#ifndef R2CC_CLIENT_USAGE_H_
#define R2CC_CLIENT_USAGE_H_

#include <CLI/CLI.hpp>

#include <string>

namespace r2cc::client {

// One line. CLI11 says what it could not use; this says which thing it is and what was probably meant. `root` has been parsed.
std::string ExplainUsage(const CLI::App& root, const CLI::ParseError& error);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_USAGE_H_
