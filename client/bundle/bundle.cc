#include "client/bundle/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/core/client.h"
#include "client/doctor/doctor.h"
#include "client/format/format.h"
#include "proto/json.h"

namespace r2cc::client {
namespace {

constexpr size_t kPeersTried = 8;
constexpr uint32_t kEventsMax = 20'000;
// NICs that are explained: if a switch is lost, the first ones show it.
constexpr int kExplainedMax = 16;

class Contents {
 public:
  void Add(const std::string& name, absl::StatusOr<std::string> text) {
    if (!text.ok()) return Miss(name, std::string(text.status().message()));
    if (text->size() > kBundleFileBytesMax)
      text = absl::StrCat("(the beginning is cut off)\n", text->substr(text->size() - kBundleFileBytesMax));
    if (bytes_ + text->size() > kBundleBytesMax) return Miss(name, "there is no room left for it");
    bytes_ += text->size();
    files_.push_back({name, *std::move(text)});
  }
  void Miss(const std::string& name, const std::string& why) { absl::StrAppend(&missing_, name, ": ", why, "\n"); }

  // With a list of what is there and what is not as the first one.
  std::vector<BundleFile> Take(const std::string& head) {
    std::string list = absl::StrCat(head, "\n\nFiles:\n");
    for (const BundleFile& file : files_) absl::StrAppend(&list, "  ", file.name, " ", file.text.size(), " bytes\n");
    absl::StrAppend(&list, "\nWhat could not be had, and why:\n", missing_.empty() ? "nothing\n" : missing_);
    files_.insert(files_.begin(), {"CONTENTS.txt", std::move(list)});
    return std::move(files_);
  }

 private:
  std::vector<BundleFile> files_;
  size_t bytes_ = 0;
  std::string missing_;
};

template <typename Reply>
absl::StatusOr<std::string> Json(const absl::StatusOr<Reply>& reply) {
  if (!reply.ok()) return reply.status();
  return ToJsonDocument(*reply);
}

absl::StatusOr<std::string> ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  file.seekg(0, std::ios::end);
  const auto bytes = static_cast<size_t>(std::max<std::streamoff>(file.tellg(), 0));
  const size_t skipped = bytes > kBundleFileBytesMax ? bytes - kBundleFileBytesMax : 0;
  file.seekg(static_cast<std::streamoff>(skipped));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void AddEvents(Client& client, Contents* contents) {
  v1::EventsRequest request;
  request.set_last(kEventsMax);
  std::string lines;
  const absl::Status status = client.Events(request, [&](const v1::Event& event) {
    if (const auto line = ToJsonLine(event); line.ok()) lines += *line;
    return true;
  });
  contents->Add("events.jsonl", status.ok() ? absl::StatusOr<std::string>(lines) : status);
}

void AddDaemon(Client& client, const Style& style, std::string* node, Contents* contents) {
  const auto status = client.GetStatus({});
  if (status.ok()) {
    *node = status->node();
    contents->Add("status.txt", FormatStatus(*status, style));
  }
  contents->Add("status.json", Json(status));
  const auto nics = client.ListNics({});
  if (nics.ok()) contents->Add("nics.txt", FormatNics(*nics, style));
  contents->Add("nics.json", Json(nics));
  contents->Add("jobs.json", Json(client.ListJobs({})));
  v1::ListJobsRequest ended;
  ended.set_ended(true);
  contents->Add("jobs-ended.json", Json(client.ListJobs(ended)));
  // The content of the jobs' page, with the reasons.
  contents->Add("page.json", Json(client.GetPlan({})));
  contents->Add("page-why.json", Json(client.ExplainPlan({})));
  const auto config = client.GetConfig({});
  contents->Add("config.textproto", config.ok() ? absl::StatusOr<std::string>(FormatConfig(*config, style)) : config.status());
  AddEvents(client, contents);
  int explained = 0;
  if (!nics.ok()) return;
  for (const v1::NodeView& view : nics->nodes())
    for (const v1::NicView& nic : view.nics()) {
      if (nic.state() == v1::HEALTHY || nic.state() == v1::UNCABLED || explained++ >= kExplainedMax) continue;
      v1::ExplainNicRequest request;
      request.set_node(view.node());
      request.set_nic(nic.name());
      const auto why = client.ExplainNic(request);
      contents->Add(absl::StrCat("why-", explained, ".txt"),
                    why.ok() ? absl::StatusOr<std::string>(FormatExplainNic(*why, style)) : why.status());
    }
}

absl::Status Write(const std::string& path, const std::string& bytes) {
  // Made new, for its owner alone from the first moment on.
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0)
    return absl::FailedPreconditionError(absl::StrCat("cannot make ", path, ": ", std::strerror(errno), "; --out names another file"));
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t wrote = write(fd, bytes.data() + done, bytes.size() - done);
    if (wrote <= 0) break;
    done += static_cast<size_t>(wrote);
  }
  const bool whole = done == bytes.size() && fsync(fd) == 0;
  close(fd);
  if (whole) return absl::OkStatus();
  unlink(path.c_str());
  return absl::FailedPreconditionError(absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
}

}  // namespace

absl::Status Run(const BundleCommand& command, Machine& machine, const RunProgram& run_program, const Style& style, std::ostream& out) {
  Contents contents;
  std::string node = "unknown";
  const auto client = Client::Connect(command.socket_path);
  if (client.ok())
    AddDaemon(**client, style, &node, &contents);
  else
    contents.Miss("all that r2ccd reports", std::string(client.status().message()));
  const DoctorCommand doctor{.run_dir = command.run_dir, .socket_path = command.socket_path, .peers_max = kPeersTried};
  contents.Add("doctor.txt", FormatDoctor(Diagnose(doctor, machine), /*all=*/true, style));
  for (const char* name : {"audit.log.1", "audit.log"}) contents.Add(name, ReadAll(absl::StrCat(command.state_dir, "/", name)));
  const std::vector<std::pair<std::string, std::vector<std::string>>> programs = {
      {"journal.txt", {"journalctl", "--no-pager", "-u", "r2ccd", "--since", "-1h"}},
      {"links.txt", {"ip", "-d", "-s", "link"}},
      {"addresses.txt", {"ip", "address"}},
      {"routes.txt", {"ip", "route", "show", "table", "all"}},
      {"rules.txt", {"ip", "rule"}},
      {"sysctls.txt",
       {"sysctl", "net.core.rmem_default", "net.core.rmem_max", "net.ipv4.conf.all.rp_filter", "net.ipv4.conf.all.arp_ignore",
        "net.ipv4.conf.all.arp_announce", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_congestion_control"}},
      {"system.txt", {"uname", "-a"}},
      {"release.txt", {"/proc/self/exe", "--version"}},
  };
  for (const auto& [name, program] : programs) contents.Add(name, run_program(program, kBundleFileBytesMax));

  const absl::Time now = absl::FromUnixNanos(style.now_ns);
  const std::string folder = absl::StrCat("r2cc-support-", node, "-", absl::FormatTime("%Y%m%dT%H%M%SZ", now, absl::UTCTimeZone()));
  const std::vector<BundleFile> files = contents.Take(
      absl::StrCat("Made by r2ccctl on node ", node, " at ", absl::FormatTime(now, absl::UTCTimeZone()), ". No keys are in it."));
  const auto archive = MakeTarGz(folder, files, absl::ToUnixSeconds(now));
  if (!archive.ok()) return archive.status();
  const std::string path = command.out.empty() ? folder + ".tar.gz" : command.out;
  if (absl::Status status = Write(path, *archive); !status.ok()) return status;
  out << files.front().text << "\nwritten to " << path << ", " << archive->size() << " bytes\n" << std::flush;
  return absl::OkStatus();
}

}  // namespace r2cc::client
