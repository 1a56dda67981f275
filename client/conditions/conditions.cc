#include "client/conditions/conditions.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/core/clock.h"
#include "client/core/client.h"
#include "client/core/table.h"

namespace r2cc::client {
namespace {

using google::protobuf::Struct;

constexpr int kLookEveryMs = 2000;
// A node with hundreds of images in its status is some 100 KiB.
constexpr int kNodesPerPage = 16;
// 65,536 nodes.
constexpr int kPagesMax = 4096;
constexpr char kComponent[] = "r2cc-conditions";
// The limit of Kubernetes.
constexpr size_t kNamespaceBytesMax = 63;
// No node is called so.
constexpr char kView[] = "the view";
constexpr char kAdoption[] = "nodes that have left";
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
  // Fields that are not in a patch stay.
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

const Struct& In(const Struct& object, const std::string& name) {
  const auto found = object.fields().find(name);
  return found == object.fields().end() ? Struct::default_instance() : found->second.struct_value();
}
std::string TextIn(const Struct& object, const std::string& name) {
  const auto found = object.fields().find(name);
  return found == object.fields().end() ? "" : found->second.string_value();
}

absl::StatusOr<Struct> Parse(const std::string& json) {
  Struct object;
  if (!google::protobuf::util::JsonStringToMessage(json, &object).ok()) return absl::UnavailableError("an answer that is no JSON");
  return object;
}

// Our condition in a Node of Kubernetes; empty: it has none.
Struct ConditionIn(const Struct& node) {
  const Struct& status = In(node, "status");
  const auto conditions = status.fields().find("conditions");
  if (conditions == status.fields().end()) return {};
  for (const auto& value : conditions->second.list_value().values())
    if (TextIn(value.struct_value(), "type") == kConditionType) return value.struct_value();
  return {};
}

// The manager of the condition's heartbeat, whose writer wrote last. Empty: Kubernetes does not name it.
std::string WriterOf(const Struct& node) {
  const Struct& metadata = In(node, "metadata");
  const auto managed = metadata.fields().find("managedFields");
  if (managed == metadata.fields().end()) return "";
  std::string writer, latest;
  for (const auto& value : managed->second.list_value().values()) {
    const Struct& entry = value.struct_value();
    const Struct& conditions = In(In(In(entry, "fieldsV1"), "f:status"), "f:conditions");
    const Struct& ours = In(conditions, absl::StrCat(R"(k:{"type":")", kConditionType, R"("})"));
    const std::string time = TextIn(entry, "time");
    if (!ours.fields().contains("f:lastHeartbeatTime") || time < latest) continue;
    writer = TextIn(entry, "manager");
    latest = time;
  }
  return writer;
}

// Empty, or the writer of the condition that must not be disturbed.
std::string OtherWriter(const Struct& node, const std::string& manager, int64_t now_realtime_ns) {
  const std::string writer = WriterOf(node);
  absl::Time heartbeat;
  if (writer.empty() || writer == manager ||
      !absl::ParseTime(absl::RFC3339_full, TextIn(ConditionIn(node), "lastHeartbeatTime"), &heartbeat, nullptr))
    return "";
  // Clocks differ.
  const absl::Duration age = absl::AbsDuration(absl::FromUnixNanos(now_realtime_ns) - heartbeat);
  return age < absl::Nanoseconds(kOtherWriterLasts) ? writer : "";
}

ConditionStatus StatusOf(const std::string& text) {
  return text == "True" ? ConditionStatus::kTrue : text == "False" ? ConditionStatus::kFalse : ConditionStatus::kUnknown;
}

}  // namespace

std::string FieldManager(const std::string& account) {
  std::string name;
  std::ifstream(account + "/namespace") >> name;
  const bool is_name = !name.empty() && name.size() <= kNamespaceBytesMax &&
                       std::all_of(name.begin(), name.end(), [](char c) { return absl::ascii_isalnum(c) || c == '-'; });
  return is_name ? absl::StrCat(kComponent, ".", name) : kComponent;
}

absl::Status WriteCondition(const NodeConditions::Write& write, const std::string& manager, int64_t now_realtime_ns, KubernetesApi* api) {
  const std::string path = absl::StrCat("/api/v1/nodes/", write.node);
  const absl::StatusOr<std::string> text = api->Ask({"GET", path, "", ""});
  if (!text.ok()) return text.status();
  const absl::StatusOr<Struct> node = Parse(*text);
  if (!node.ok()) return node.status();
  if (const std::string other = OtherWriter(*node, manager, now_realtime_ns); !other.empty())
    return absl::FailedPreconditionError(
        absl::StrCat("another program writes it, its field manager is '", other, "'; run only one of the two"));
  const std::string before = TextIn(ConditionIn(*node), "status");
  const bool turned = before != ToText(write.condition.status);
  // That all is well with a node that is seen for the first time is no news.
  const bool news = (turned || write.turned) && !(before.empty() && write.condition.status == ConditionStatus::kFalse);
  const std::string now = TimeText(now_realtime_ns);
  const auto patched = api->Ask({"PATCH", absl::StrCat(path, "/status?fieldManager=", manager), kPatch, PatchOf(write, turned, now)});
  if (!patched.ok() || !news) return patched.status();
  return api->Ask({"POST", kEvents, kJson, EventOf(write, now, now_realtime_ns)}).status();
}

absl::Status AdoptConditions(KubernetesApi* api, const std::string& manager, Nanos now, NodeConditions* conditions) {
  std::string more;
  for (int page = 0; page < kPagesMax; ++page) {
    const auto text = api->Ask({"GET", absl::StrCat("/api/v1/nodes?limit=", kNodesPerPage, more), "", ""});
    if (!text.ok()) return text.status();
    const absl::StatusOr<Struct> list = Parse(*text);
    if (!list.ok()) return list.status();
    if (const auto items = list->fields().find("items"); items != list->fields().end())
      for (const auto& item : items->second.list_value().values()) {
        const Struct condition = ConditionIn(item.struct_value());
        if (condition.fields().empty() || WriterOf(item.struct_value()) != manager) continue;
        conditions->Adopt(TextIn(In(item.struct_value(), "metadata"), "name"),
                          {StatusOf(TextIn(condition, "status")), TextIn(condition, "reason"), TextIn(condition, "message")}, now);
      }
    const std::string next = TextIn(In(*list, "metadata"), "continue");
    if (next.empty()) return absl::OkStatus();
    // It becomes part of the path of a request that carries our token.
    if (!std::all_of(next.begin(), next.end(), [](char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '='; }))
      return absl::UnavailableError("a page of nodes that does not name the next");
    more = "&continue=" + next;
  }
  return absl::UnavailableError("a list of nodes without an end");
}

void FollowConditions(const ConditionsWorld& world) {
  NodeConditions conditions;
  bool adopted = false;
  Nanos adopt_not_before = 0;
  std::map<std::string, std::string> troubles;  // by node, of those that `conditions` knows; or by kView, kAdoption
  const auto note = [&](const std::string& what, const std::string& trouble) {
    const std::string before = std::exchange(troubles[what], trouble);
    if (trouble.empty()) troubles.erase(what);
    if (before != trouble) world.log(trouble.empty() ? absl::StrCat(what, ": it works again") : trouble);
  };
  do {
    const absl::StatusOr<std::vector<v1::NodeView>> nodes = world.nodes();
    note(kView, nodes.ok() ? "" : absl::StrCat("no view of the cluster, so conditions stay as they are: ", nodes.status().message()));
    if (!nodes.ok()) continue;
    if (!adopted && world.now() >= adopt_not_before) {
      const absl::Status status = AdoptConditions(world.api, world.manager, world.now(), &conditions);
      adopted = status.ok();
      adopt_not_before = world.now() + NodeConditions::kHeartbeat;
      note(kAdoption, adopted ? "" : absl::StrCat("conditions of nodes that have left are not looked for: ", status.message()));
    }
    for (const NodeConditions::Write& write : conditions.Look(*nodes, world.now())) {
      const absl::Status status = WriteCondition(write, world.manager, world.now_realtime_ns(), world.api);
      if (status.ok())
        conditions.Delivered(write, world.now());
      else if (absl::IsNotFound(status) || absl::IsFailedPrecondition(status))
        conditions.NotOurs(write, world.now());
      else
        conditions.Failed(write, world.now());
      if (!conditions.Knows(write.node) || (absl::IsNotFound(status) && write.may_have_left()))
        troubles.erase(write.node);
      else
        note(write.node, status.ok() ? "" : absl::StrCat("the condition of node ", write.node, " is not written: ", status.message()));
      // The others would wait for the same.
      if (absl::IsUnavailable(status)) break;
    }
    std::erase_if(troubles, [&](const auto& trouble) {
      return trouble.first != kView && trouble.first != kAdoption && !conditions.Knows(trouble.first);
    });
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
  FollowConditions({nodes, FieldManager(command.account), api.get(), now_realtime_ns, [clock = SteadyClock()] { return clock.Now(); },
                    [](const std::string& line) { std::cerr << Printable(line) << std::endl; }, wait});
  return 0;
}

}  // namespace r2cc::client
