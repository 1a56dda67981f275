// What release 0.1.0 put on the wire, into shared memory and into files, this one reads; and what this one says to it is, wherever it
// looks, what it would have said itself.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/core/hash.h"
#include "daemon/convert.h"
#include "daemon/peer_words.h"
#include "netplugin/attach/attach_words.h"
#include "plan/page/page.h"
#include "plan/page/page_layout.h"
#include "tests/upgrade/golden_values.h"

namespace r2cc::golden {
namespace {

std::string Golden(const std::string& name) {
  std::ifstream file("tests/upgrade/golden/0.1.0/" + name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

net::Bytes GoldenBytes(const std::string& name) {
  const std::string text = Golden(name);
  return {text.begin(), text.end()};
}

std::string Text(const net::Bytes& bytes) { return {bytes.begin(), bytes.end()}; }

template <typename T>
std::string TextOf(const T& value, size_t bytes = sizeof(T)) {
  return {reinterpret_cast<const char*>(&value), bytes};
}

// Where two byte strings of one length differ.
std::vector<size_t> Differences(const std::string& one, const std::string& other) {
  std::vector<size_t> at;
  EXPECT_EQ(one.size(), other.size());
  for (size_t i = 0; i < std::min(one.size(), other.size()); ++i)
    if (one[i] != other[i]) at.push_back(i);
  return at;
}

TEST(Wire, GreetingsOfTheOldReleaseAreReadAndWrittenAsThen) {
  for (const auto& [name, value] : {std::pair("hello_oob", OobHello()), std::pair("hello_link", LinkHello())}) {
    EXPECT_EQ(Text(net::Encode(value)), Golden(name)) << name;
    net::Hello hello;
    ASSERT_TRUE(net::Decode(GoldenBytes(name), &hello)) << name;
    EXPECT_EQ(Text(net::Encode(hello)), Golden(name)) << name;
    EXPECT_EQ(hello.release, "");
    EXPECT_EQ(net::NegotiateVersion(hello.wire_least, hello.wire_newest), kOldWire);
  }
  for (const auto& [name, value] : {std::pair("hello_reply", Reply()), std::pair("hello_refusal", Refusal())}) {
    // What the old release does not know is not said to it.
    net::HelloReply ours = value;
    ours.release = "0.2.0";
    EXPECT_EQ(Text(net::Encode(ours)), Golden(name)) << name;
    net::HelloReply reply;
    ASSERT_TRUE(net::Decode(GoldenBytes(name), &reply)) << name;
    EXPECT_EQ(Text(net::Encode(reply)), Golden(name)) << name;
    EXPECT_TRUE(net::IsSpoken(reply.wire_version));
  }
}

// The old release reads its own fields and takes no notice of what stands behind them.
TEST(Wire, AGreetingOfThisReleaseBeginsAsTheOldOneReadsIt) {
  net::Hello ours = OobHello();
  ours.wire_least = net::kWireVersionLeast;
  ours.wire_newest = net::kWireVersion;
  ours.release = "0.2.0";
  const std::string said = Text(net::Encode(ours)).substr(net::kPacketHeaderBytes);
  const std::string old = Golden("hello_oob").substr(net::kPacketHeaderBytes);
  ASSERT_GT(said.size(), old.size());
  // The newest version, behind the least.
  EXPECT_EQ(Differences(said.substr(0, old.size()), old), std::vector<size_t>{4});
  // By the old release's rule.
  EXPECT_LE(ours.wire_least, kOldWire);
  EXPECT_GE(ours.wire_newest, kOldWire);
  net::Hello read;
  ASSERT_TRUE(net::Decode(net::Encode(ours), &read));
  EXPECT_EQ(read.release, "0.2.0");
}

TEST(Wire, EveryFrameIsTheSameBytes) {
  for (const auto& [name, value] : Frames()) {
    EXPECT_EQ(Text(net::Encode(value, kTag)), Golden(name)) << name;
    net::Frame frame;
    ASSERT_TRUE(net::Decode(GoldenBytes(name), kTag, &frame)) << name;
    EXPECT_EQ(Text(net::Encode(frame, kTag)), Golden(name)) << name;
  }
  uint8_t bulk[net::kBulkHeaderBytes];
  net::Encode(Bulk(), kTag, bulk);
  EXPECT_EQ(TextOf(bulk), Golden("bulk"));
}

TEST(Wire, HandlesNegotiate) {
  const std::string old = Golden("handle");
  EXPECT_EQ(TextOf(HandleOf(kOldWire, kOldWire)), old);
  net::Handle handle;
  ASSERT_TRUE(net::ReadHandle(old.data(), &handle));
  EXPECT_EQ(net::NegotiateVersion(handle.wire_least, handle.wire_newest), kOldWire);
  EXPECT_EQ(net::NegotiateVersion(kOldWire - 1, kOldWire - 1), 0u) << "older than the last release";
}

TEST(Attach, ARequestOfTheOldReleaseIsSoundAndOursBeginsLikeIt) {
  const std::string old = Golden("attach_request");
  plan::AttachRequest request{};
  ASSERT_EQ(old.size(), plan::AttachRequestBytes(kOldAttach));
  std::memcpy(&request, old.data(), old.size());
  EXPECT_TRUE(plan::Valid(request));
  EXPECT_TRUE(plan::IsAttachVersion(request.version));
  EXPECT_STREQ(request.job, "train");
  EXPECT_STREQ(request.release, "");
  plan::AttachRequest ours{};
  FillRequest(&ours);
  EXPECT_EQ(TextOf(ours, old.size()), old);
  EXPECT_FALSE(plan::IsAttachVersion(0));
}

TEST(Attach, AReplyIsTheSameBytes) {
  const std::string old = Golden("attach_reply");
  plan::AttachReply reply{};
  FillReply(&reply);
  EXPECT_EQ(TextOf(reply), old);
  plan::AttachReply taken{};
  EXPECT_EQ(net::CheckReply(old.data(), old.size(), 2, &taken), "");
  EXPECT_STREQ(taken.node, "n0");
}

// As the old daemon answers a request of this release.
TEST(Attach, TheOldDaemonsRefusalSaysInWhichVersionToAsk) {
  plan::AttachReply refusal{};
  refusal.magic = plan::kAttachMagic;
  refusal.version = kOldAttach;
  refusal.status = static_cast<uint32_t>(plan::AttachStatus::kWrongVersion);
  plan::SetText("attach version 2, this r2ccd speaks 1: upgrade r2ccd or the plugin", refusal.reason);
  EXPECT_EQ(net::VersionToAskIn(&refusal, sizeof(refusal), plan::kAttachVersion), kOldAttach);
}

// A page as the old daemon hands it over.
std::unique_ptr<plan::PageReader> OpenGoldenPage(std::string* error) {
  const std::string head = Golden("page");
  const int fd = memfd_create("golden", MFD_ALLOW_SEALING | MFD_CLOEXEC);
  EXPECT_EQ(ftruncate(fd, static_cast<off_t>(plan::kPageBytes)), 0);
  EXPECT_EQ(pwrite(fd, head.data(), head.size(), 0), static_cast<ssize_t>(head.size()));
  EXPECT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | 0x10 /* F_SEAL_FUTURE_WRITE */), 0);
  return plan::PageReader::Open(fd, error);
}

TEST(Page, TheOldDaemonsIsRead) {
  std::string error;
  const auto reader = OpenGoldenPage(&error);
  ASSERT_NE(reader, nullptr) << error;
  ASSERT_EQ(reader->Refresh(), plan::PageReader::Read::kNew);
  EXPECT_EQ(reader->copy().epoch, PlanOnPage().epoch);
  EXPECT_EQ(reader->copy().entries.size(), plan::PageCopyOf(PlanOnPage()).entries.size());
  EXPECT_TRUE(reader->copy().DrainedFor("train", "n1", "rail0"));
  EXPECT_TRUE(reader->copy().PathBroken("n0", "rail0", "n1", "rail1"));
  EXPECT_FALSE(reader->ended());
  EXPECT_FALSE(reader->Stale(kHeartbeat + plan::kPageStaleAfter));
  EXPECT_TRUE(reader->Stale(kHeartbeat + plan::kPageStaleAfter + 1));
}

class OurPage {
 public:
  OurPage() {
    std::string error;
    writer_ = plan::PageWriter::Create(&error);
    EXPECT_TRUE(writer_ != nullptr && writer_->Publish(PlanOnPage(), kHeartbeat, &error)) << error;
  }
  plan::PageWriter& writer() { return *writer_; }
  std::string Head() const {
    std::string head(kPageHeadBytes, '\0');
    EXPECT_EQ(pread(writer_->fd(), head.data(), head.size(), 0), static_cast<ssize_t>(head.size()));
    return head;
  }

 private:
  std::unique_ptr<plan::PageWriter> writer_;
};

// The old plugin looks at magic, version, heartbeat, sequence, checksum and body.
TEST(Page, TheOldPluginFindsInOursWhatItLooksFor) {
  OurPage page;
  constexpr size_t kNewest = offsetof(plan::PageLayout, newest);
  EXPECT_EQ(Differences(page.Head(), Golden("page")), std::vector<size_t>{kNewest});
  page.writer().LastWord(kHeartbeat);
  for (const size_t at : Differences(page.Head(), Golden("page"))) {
    const size_t last_word = offsetof(plan::PageLayout, last_word_until_ns);
    EXPECT_TRUE(at == kNewest || (at >= last_word && at < last_word + sizeof(uint64_t))) << at;
  }
}

TEST(Peers, AViewOfTheOldDaemonIsBelieved) {
  const std::string old = Golden("view");
  EXPECT_EQ(View().SerializeAsString(), old);
  v1::NodeView view;
  ASSERT_TRUE(view.ParseFromString(old));
  EXPECT_EQ(daemon::ForeignProtocol(view), "");
  const auto state = daemon::FromProto(view, daemon::Moment());
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->nics.at(0).state, health::NicState::kFailed);
  view.set_protocol(kOldPeers - 1);
  EXPECT_EQ(
      daemon::ForeignProtocol(view),
      "the daemon of n1 (release 0.1.0) speaks protocol 1, this one 2 to 3: install releases next to each other, and one on all nodes "
      "in the end");
}

TEST(State, TheOldFileIsReadAndOursIsTheSame) {
  const std::string old = Golden("state");
  const auto state = daemon::DecodeState(old, "state");
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(*state, State());
  EXPECT_EQ(daemon::EncodeState(*state), old) << "a downgrade reads it";
}

}  // namespace
}  // namespace r2cc::golden
