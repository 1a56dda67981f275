#include "client/conditions/conditions.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <iostream>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/core/clock.h"
#include "client/client.h"
#include "client/table.h"

namespace r2cc::client {
namespace {

using google::protobuf::Struct;

constexpr int kLookEveryMs = 2000;
constexpr char kComponent[] = "r2cc-conditions";
// Events of things without a namespace are in this one.
constexpr char kEvents[] = "/api/v1/namespaces/default/events";
constexpr char kJson[] = "application/json";
constexpr char kPatch[] = "application/strategic-merge-patch+json";

void Set(Struct* object, const std::string& name, const std::string& text) { (*object->mutable_fields())[name].set_string_value(text); }
Struct* Sub(Struct* object, const std::string& name) { return (*object->mutable_fields())[name].mutable_struct_value(); }

// Names are ours, and texts were cleaned: they are UTF-8.
std::string ToJson(const Struct& object) {
  std::string text;
  (void)google::protobuf::util::MessageToJsonString(object, &text);
  return text;
}

std::string TimeText(int64_t realtime_ns) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixSeconds(realtime_ns / kNanosPerSecond), absl::UTCTimeZone());
}

std::string PatchOf(const NodeConditions::Write& write, bool turned, const std::string& now) {
  Struct patch;
  Struct* const condition =
      (*Sub(&patch, "status")->mutable_fields())["conditions"].mutable_list_value()->add_values()->mutable_struct_value();
  Set(condition, "type", kConditionType);
  Set(condition, "status", ToText(write.condition.status));
  Set(condition, "reason", write.condition.reason);
  Set(condition, "message", write.condition.message);
  Set(condition, "lastHeartbeatTime", now);
  // What is not in a patch stays.
  if (turned) Set(condition, "lastTransitionTime", now);
  return ToJson(patch);
}

std::string EventOf(const NodeConditions::Write& write, const std::string& now, int64_t now_realtime_ns) {
  Struct event;
  Set(&event, "apiVersion", "v1");
  Set(&event, "kind", "Event");
  Struct* const metadata = Sub(&event, "metadata");
  Set(metadata, "name", absl::StrCat(write.node, ".", absl::Hex(now_realtime_ns)));
  Set(metadata, "namespace", "default");
  Struct* const node = Sub(&event, "involvedObject");
  Set(node, "kind", "Node");
  Set(node, "name", write.node);
  // As the kubelet's own: kubectl describe finds the Events of a node by this.
  Set(node, "uid", write.node);
  Set(&event, "type", write.condition.status == ConditionStatus::kFalse ? "Normal" : "Warning");
  Set(&event, "reason", absl::StrCat("R2CC", write.condition.reason));
  Set(&event, "message", write.condition.message);
  Set(&event, "firstTimestamp", now);
  Set(&event, "lastTimestamp", now);
  (*event.mutable_fields())["count"].set_number_value(1);
  Set(Sub(&event, "source"), "component", kComponent);
  return ToJson(event);
}

// The status of our condition in a Node of Kubernetes; empty: it has none.
absl::StatusOr<std::string> StatusIn(const std::string& node_json) {
  Struct node;
  if (!google::protobuf::util::JsonStringToMessage(node_json, &node).ok()) return absl::UnavailableError("a node that is no JSON");
  const Struct& status = node.fields().contains("status") ? node.fields().at("status").struct_value() : Struct::default_instance();
  if (!status.fields().contains("conditions")) return "";
  for (const auto& value : status.fields().at("conditions").list_value().values()) {
    const auto& fields = value.struct_value().fields();
    if (fields.contains("type") && fields.at("type").string_value() == kConditionType && fields.contains("status"))
      return fields.at("status").string_value();
  }
  return "";
}

}  // namespace

absl::Status WriteCondition(const NodeConditions::Write& write, int64_t now_realtime_ns, KubernetesApi* api) {
  const std::string path = absl::StrCat("/api/v1/nodes/", write.node);
  bool turned = write.turned;
  bool news = turned;
  if (write.first) {
    const absl::StatusOr<std::string> node = api->Ask({"GET", path, "", ""});
    if (!node.ok()) return node.status();
    const absl::StatusOr<std::string> before = StatusIn(*node);
    if (!before.ok()) return before.status();
    turned = *before != ToText(write.condition.status);
    // That all is well with a node that is seen for the first time is no news.
    news = turned && !(before->empty() && write.condition.status == ConditionStatus::kFalse);
  }
  const std::string now = TimeText(now_realtime_ns);
  const auto patched = api->Ask({"PATCH", path + "/status", kPatch, PatchOf(write, turned, now)});
  if (!patched.ok() || !news) return patched.status();
  return api->Ask({"POST", kEvents, kJson, EventOf(write, now, now_realtime_ns)}).status();
}

void FollowConditions(const ConditionsWorld& world) {
  NodeConditions conditions;
  std::map<std::string, std::string> troubles;  // by node; "" is the view
  const auto note = [&](const std::string& what, const std::string& trouble) {
    const std::string before = std::exchange(troubles[what], trouble);
    if (trouble.empty()) troubles.erase(what);
    if (before != trouble) world.tell(trouble.empty() ? absl::StrCat(what.empty() ? "the view" : what, ": it works again") : trouble);
  };
  do {
    const absl::StatusOr<std::vector<v1::NodeView>> nodes = world.nodes();
    note("", nodes.ok() ? "" : absl::StrCat("no view of the cluster, so conditions stay as they are: ", nodes.status().message()));
    if (!nodes.ok()) continue;
    for (const NodeConditions::Write& write : conditions.Look(*nodes, world.now())) {
      const absl::Status status = WriteCondition(write, world.now_realtime_ns(), world.api);
      if (status.ok())
        conditions.Delivered(write, world.now());
      else
        // A node that Kubernetes does not know is looked for seldom.
        conditions.Failed(write, world.now(), absl::IsNotFound(status) ? NodeConditions::kHeartbeat : NodeConditions::kPause);
      note(write.node, status.ok() ? "" : absl::StrCat("the condition of node ", write.node, " is not written: ", status.message()));
      // The others would wait for the same.
      if (absl::IsUnavailable(status)) break;
    }
  } while (world.wait(kLookEveryMs));
}

int Run(const ConditionsCommand& command, const std::function<int64_t()>& now_realtime_ns,
        const std::function<bool(int milliseconds)>& wait) {
  std::unique_ptr<Client> client;
  const auto nodes = [&]() -> absl::StatusOr<std::vector<v1::NodeView>> {
    if (client == nullptr) {
      auto made =
          command.server.empty() ? Client::Connect(command.socket_path) : Client::ConnectServer(command.server, command.certificates);
      if (!made.ok()) return made.status();
      client = *std::move(made);
    }
    auto status = client->GetStatus({});
    if (!status.ok()) {
      client.reset();
      return status.status();
    }
    return std::vector<v1::NodeView>(status->nodes().begin(), status->nodes().end());
  };
  const std::unique_ptr<KubernetesApi> api = ConnectKubernetes(command.api_server, command.account);
  FollowConditions({nodes, api.get(), now_realtime_ns, [clock = SteadyClock()] { return clock.Now(); },
                    [](const std::string& line) { std::cerr << Printable(line) << std::endl; }, wait});
  return 0;
}

}  // namespace r2cc::client
