#include "client/commands/job_commands.h"

#include <cstdint>
#include <memory>
#include <string>

namespace r2cc::client {
namespace {

struct JobsTyped {
  bool ended = false;
  bool bad = false;
  std::string job;
  uint32_t uid = 0;
  std::string nic;
  std::string node;
};

}  // namespace

void AddJobCommands(CommandTree* tree) {
  const auto typed = std::make_shared<JobsTyped>();
  CLI::App* jobs = tree->Add(tree->root(), "jobs", "the jobs attached to this daemon and their traffic per rail");
  jobs->add_flag("--ended", typed->ended, "those that gave up on a peer and ended: which, by which rails, why, after how long");
  jobs->add_flag("--bad", typed->bad, "only those that gave up a rail or a peer, or whose rails are not this node's NICs");
  jobs->add_option("--job", typed->job, "only jobs whose names fit, such as 'train-*'")->option_text("GLOB");
  CLI::Option* uid = jobs->add_option("--uid", typed->uid, "only this user's")->option_text("UID");
  jobs->add_option("--nic", typed->nic, "only those with a rail on this NIC of the node")->option_text("NIC");
  jobs->add_option("--node", typed->node, "only those that talk to nodes whose names fit, such as 'rack3-*'")->option_text("GLOB");
  tree->Means(jobs, [typed, uid] {
    v1::ListJobsRequest list;
    list.set_ended(typed->ended);
    list.set_bad(typed->bad);
    list.set_job_glob(typed->job);
    if (uid->count() > 0) list.set_uid(typed->uid);
    list.set_nic(typed->nic);
    list.set_node_glob(typed->node);
    return Chosen(Request(list));
  });
}

}  // namespace r2cc::client
