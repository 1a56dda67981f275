#include "client/local/ready.h"

#include "client/core/client.h"
#include "client/core/table.h"
#include "proto/json.h"

namespace r2cc::client {
namespace {

absl::StatusOr<v1::NodeView> AskOwnNode(const std::string& socket_path) {
  const auto client = Client::Connect(socket_path);
  if (!client.ok()) return client.status();
  return (*client)->OwnNodeSoon();
}

}  // namespace

int Run(const ReadyCommand& command, std::ostream& out) {
  const v1::ReadyReport report = JudgeReady(AskOwnNode(command.socket_path), command.rails_min);
  const absl::StatusOr<std::string> json = ToJsonDocument(report);
  const std::string text = Printable(command.npd ? NpdLine(report) : report.text());
  out << (command.json && json.ok() ? *json : text + "\n") << std::flush;
  return out ? static_cast<int>(report.exit_code()) : kUndecided;
}

}  // namespace r2cc::client
