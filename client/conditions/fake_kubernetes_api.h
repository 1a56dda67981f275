// A fake API server: it keeps requests, and answers as a test sets.
#ifndef R2CC_CLIENT_CONDITIONS_FAKE_KUBERNETES_API_H_
#define R2CC_CLIENT_CONDITIONS_FAKE_KUBERNETES_API_H_

#include <deque>
#include <string>
#include <vector>

#include "client/conditions/kubernetes_api.h"

namespace r2cc::client {

class FakeKubernetesApi final : public KubernetesApi {
 public:
  absl::StatusOr<std::string> Ask(const Request& request) override {
    asked.push_back(request);
    if (!status.ok()) return status;
    if (missing && request.path.starts_with("/api/v1/nodes/")) return absl::NotFoundError("status 404");
    if (request.path.starts_with("/api/v1/nodes?")) {
      if (pages.empty()) return R"({"items":[]})";
      const std::string page = pages.front();
      pages.pop_front();
      return page;
    }
    return request.method == "GET" ? node : "{}";
  }

  std::string node = R"({"status":{"conditions":[{"type":"Ready","status":"True"}]}})";
  std::deque<std::string> pages;  // of the list of nodes
  bool missing = false;  // it has no node of these
  absl::Status status;
  std::vector<Request> asked;
};

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_CONDITIONS_FAKE_KUBERNETES_API_H_
