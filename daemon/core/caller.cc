#include "daemon/core/caller.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/names.h"

namespace r2cc::daemon {
namespace {

// A forwarded request with more keeps the first: at 5 bytes each they take 20 KiB of the 256 KiB that a request may have. A directory
// service gives a user some hundreds.
constexpr int kGroupsMax = 4096;
constexpr size_t kAddressBytesMax = 64;

}  // namespace

std::string Describe(const Caller& caller) {
  const std::string at = caller.address.empty() ? "" : absl::StrCat(" at ", caller.address);
  std::string who;
  switch (caller.kind) {
    case Caller::Kind::kNobody: who = absl::StrCat("an unauthenticated caller", at); break;
    case Caller::Kind::kLocal:
      who = caller.contained ? absl::StrCat("a process of a container (pid ", caller.pid, ")")
                             : absl::StrCat("uid ", caller.uid, " (pid ", caller.pid, ")");
      break;
    case Caller::Kind::kNode: who = absl::StrCat("node ", caller.name, at); break;
    case Caller::Kind::kOperator: who = absl::StrCat("operator ", caller.name, at); break;
  }
  return caller.forwarded() ? absl::StrCat(who, " on ", caller.via) : who;
}

std::string ShareOf(const Caller& caller) {
  if (caller.forwarded()) return absl::StrCat("node ", caller.via);
  if (caller.kind == Caller::Kind::kLocal) return caller.contained ? std::string("containers") : absl::StrCat("uid ", caller.uid);
  if (caller.kind != Caller::Kind::kNobody) return absl::StrCat(caller.kind == Caller::Kind::kNode ? "node " : "operator ", caller.name);
  return caller.address.substr(0, caller.address.rfind(':'));
}

v1::Asker ToAsker(const Caller& caller, const std::string& node) {
  v1::Asker asker;
  if (caller.kind == Caller::Kind::kOperator) asker.set_operator_name(caller.name);
  asker.set_address(caller.address);
  asker.set_uid(caller.uid);
  asker.set_gid(caller.gid);
  for (const uint32_t group : caller.groups) asker.add_groups(group);
  asker.set_pid(caller.pid);
  asker.set_node(node);
  return asker;
}

Caller FromAsker(const v1::Asker& asker, const Caller& from) {
  Caller caller;
  caller.kind = asker.operator_name().empty() ? Caller::Kind::kLocal : Caller::Kind::kOperator;
  const auto clean = [](const std::string& text, size_t most) { return CleanText(text.data(), std::min(text.size(), most)); };
  caller.name = clean(asker.operator_name(), kNodeNameBytesMax);
  caller.address = clean(asker.address(), kAddressBytesMax);
  caller.uid = asker.uid();
  caller.gid = asker.gid();
  caller.groups.assign(asker.groups().begin(), asker.groups().begin() + std::min(asker.groups_size(), kGroupsMax));
  caller.pid = asker.pid();
  caller.via_proven = from.kind == Caller::Kind::kNode;
  caller.via = caller.via_proven ? from.name : clean(asker.node(), kNodeNameBytesMax);
  if (caller.via.empty()) caller.via = from.address.empty() ? "another node" : from.address;
  return caller;
}

}  // namespace r2cc::daemon
