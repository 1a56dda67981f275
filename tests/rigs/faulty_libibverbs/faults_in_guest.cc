// What the wrapper injects arrives through our seam; all that it leaves alone works. In a guest.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <vector>

#include "base/core/verbs/libibverbs.h"
#include "tests/rigs/one_guest/verbs_end.h"

namespace r2cc::rig {
namespace {

using verbs::Completion;
using verbs::Status;

constexpr size_t kBytes = 4096;
constexpr std::chrono::seconds kPatience(10);

int Injected() {
  void* const wrapper = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_NOLOAD);
  const auto injected = reinterpret_cast<int (*)()>(dlsym(wrapper, "faulty_libibverbs_injected"));
  return injected != nullptr ? injected() : -1;
}

// R2CC_VERBS_FAULTS=completion:3:12,post_send:5:11,post_receive:9:12
TEST(FaultsInGuest, TheThirdCompletionTheFifthPostAndTheNinthReceiveFail) {
  verbs::Libibverbs verbs;
  ASSERT_EQ(verbs.missing(), "");
  VerbsEnd a(&verbs, "rxe0a", kBytes);
  VerbsEnd b(&verbs, "rxe0b", kBytes);
  VerbsEnd::Connect(&a, &b, {});
  for (int i = 0; i < 8; ++i) b.PostReceive();
  EXPECT_EQ(Injected(), 0);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(a.Write(kBytes, true), 0);
  std::vector<Completion> sent;
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (sent.size() < 4 && std::chrono::steady_clock::now() < until)
    for (const Completion& completion : a.PollSends()) sent.push_back(completion);
  ASSERT_EQ(sent.size(), 4u);
  for (size_t i = 0; i < sent.size(); ++i) EXPECT_EQ(sent[i].status, i == 2 ? Status::kRetryExceeded : Status::kSuccess) << i;
  // It did arrive: only its word was taken away.
  EXPECT_EQ(b.PollReceives().size(), 4u);
  EXPECT_EQ(Injected(), 1);
  EXPECT_EQ(a.Write(kBytes, true), 11);
  EXPECT_EQ(a.Write(kBytes, true), 0);
  EXPECT_EQ(Injected(), 2);
  const verbs::ReceiveRequest request{.wr_id = 9};
  size_t posted = 1;
  EXPECT_EQ(verbs.PostReceive(b.pair(), {&request, 1}, &posted), ENOMEM);
  EXPECT_EQ(posted, 0u);
  EXPECT_EQ(Injected(), 3);
}

}  // namespace
}  // namespace r2cc::rig
