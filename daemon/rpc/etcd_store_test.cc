// The store against a real etcd; and against one of our own making for what a real one does too seldom.
#include "daemon/rpc/etcd_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/event_loop.h"
#include "daemon/rpc/etcd_process.h"
#include "daemon/rpc/odd_etcd.h"

namespace r2cc::daemon {
namespace {

namespace pb = etcdserverpb;

constexpr absl::Duration kPatience = absl::Seconds(30);
// etcd grants no lease below two seconds.
constexpr int64_t kLeaseMs = 2000;

// One node: a store with a core of its own, and the changes that it received.
class Node {
 public:
  explicit Node(const std::vector<std::string>& endpoints,
                const std::shared_ptr<grpc::ChannelCredentials>& credentials = grpc::InsecureChannelCredentials())
      : core_("core"), store_(std::make_unique<EtcdStore>(&core_.loop(), endpoints, credentials)) {
    core_.loop().RunAndWait([this] {
      store_->Start("/r2cc/nodes/", {[this](const StoreChange& change) { OnChange(change); },
                                     [this](const std::string& state) {
                                       absl::MutexLock lock(&mutex_);
                                       states_.push_back(state);
                                     }});
    });
  }
  ~Node() { Crash(); }

  void Put(const std::string& name, const std::string& value, int64_t lease_ms = kLeaseMs) {
    core_.loop().RunAndWait([&] { store_->Put("/r2cc/nodes/" + name, value, lease_ms); });
  }
  // Its entries end with their lease.
  void Crash() {
    if (store_ == nullptr) return;
    core_.loop().RunAndWait([this] { store_->Stop(); });
    store_.reset();
  }

  bool AwaitState(const std::string& beginning) {
    return Await([this, beginning]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !states_.empty() && states_.back().starts_with(beginning); });
  }
  bool AwaitEntries(const std::map<std::string, std::string>& entries) {
    return Await([this, entries]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return entries_ == entries; });
  }
  bool Await(const std::function<bool()>& there) {
    absl::MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(&there), kPatience);
  }
  std::vector<std::string> states() {
    absl::MutexLock lock(&mutex_);
    return states_;
  }
  std::map<std::string, std::string> entries() {
    absl::MutexLock lock(&mutex_);
    return entries_;
  }
  size_t changes() {
    absl::MutexLock lock(&mutex_);
    return changes_;
  }
  void Forget() {
    absl::MutexLock lock(&mutex_);
    entries_.clear();
  }

 private:
  void OnChange(const StoreChange& change) {
    absl::MutexLock lock(&mutex_);
    ++changes_;
    const std::string name = change.key.substr(change.key.rfind('/') + 1);
    if (change.deleted)
      entries_.erase(name);
    else
      entries_[name] = change.value;
  }

  ScopedLoopThread core_;
  std::unique_ptr<EtcdStore> store_;
  absl::Mutex mutex_;
  std::map<std::string, std::string> entries_;
  std::vector<std::string> states_;
  size_t changes_ = 0;
};

class EtcdStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    if (access(kEtcdBinary, X_OK) != 0) GTEST_SKIP() << "needs etcd: there is no " << kEtcdBinary << " (bazelw installs it)";
    folder_ = std::string(std::getenv("TEST_TMPDIR")) + "/etcd.XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override {
    if (HasFailure()) {
      std::ifstream log(folder_ + "/etcd.out");
      std::ostringstream text;
      text << log.rdbuf();
      std::fprintf(stderr, "%s\n", text.str().c_str());
    }
    std::filesystem::remove_all(folder_);
  }
  std::unique_ptr<pb::KV::Stub> Kv(const EtcdProcess& etcd) {
    return pb::KV::NewStub(grpc::CreateChannel(etcd.endpoint(), grpc::InsecureChannelCredentials()));
  }
  void PutRaw(pb::KV::Stub* kv, const std::string& key, const std::string& value) {
    grpc::ClientContext context;
    pb::PutRequest request;
    request.set_key(key);
    request.set_value(value);
    pb::PutResponse reply;
    ASSERT_TRUE(kv->Put(&context, request, &reply).ok());
    revision_ = reply.header().revision();
  }
  // Runs a line of shell in the test's folder.
  void Shell(const std::string& command) {
    ASSERT_EQ(std::system(("cd " + folder_ + " && (" + command + ") >shell.log 2>&1").c_str()), 0) << command;
  }

  std::string folder_;
  int64_t revision_ = 0;
};

TEST_F(EtcdStoreTest, TheOthersSeeWhatOneNodePuts) {
  EtcdProcess etcd(folder_);
  Node a({etcd.endpoint()});
  a.Put("a", "1");
  ASSERT_TRUE(a.AwaitState("connected to etcd at " + etcd.endpoint())) << a.states().back();
  ASSERT_TRUE(a.AwaitEntries({{"a", "1"}})) << "its own entry comes back";

  Node b({etcd.endpoint()});
  EXPECT_TRUE(b.AwaitEntries({{"a", "1"}})) << "what was there before";
  a.Put("a", "2");
  b.Put("b", "1");
  for (Node* node : {&a, &b}) EXPECT_TRUE(node->AwaitEntries({{"a", "2"}, {"b", "1"}}));
}

TEST_F(EtcdStoreTest, ANodeThatDiesIsGoneWithItsLeaseAndNotBefore) {
  EtcdProcess etcd(folder_);
  Node a({etcd.endpoint()}), b({etcd.endpoint()});
  a.Put("a", "1");
  b.Put("b", "1");
  b.Put("kept", "for ever", 0);
  ASSERT_TRUE(a.AwaitEntries({{"a", "1"}, {"b", "1"}, {"kept", "for ever"}}));
  b.Crash();
  ASSERT_TRUE(a.AwaitEntries({{"a", "1"}, {"kept", "for ever"}}));
  EXPECT_EQ(a.changes(), 4u) << "its own lease never ran out";
}

TEST_F(EtcdStoreTest, ItComesBackAndEverythingWithIt) {
  EtcdProcess etcd(folder_);
  Node a({etcd.endpoint()}), b({etcd.endpoint()});
  a.Put("a", "1");
  ASSERT_TRUE(b.AwaitEntries({{"a", "1"}}));
  etcd.Kill();
  for (Node* node : {&a, &b}) ASSERT_TRUE(node->AwaitState("lost: etcd at " + etcd.endpoint()));
  a.Put("a", "2");
  b.Forget();
  etcd.Start("data");
  EXPECT_TRUE(b.AwaitEntries({{"a", "2"}}));

  etcd.Kill();
  ASSERT_TRUE(a.AwaitState("lost: "));
  b.Forget();
  etcd.Start("an empty one");
  EXPECT_TRUE(b.AwaitEntries({{"a", "2"}})) << "a cluster that lost its memory gets it again";
}

TEST_F(EtcdStoreTest, AStoreThatHangsIsLostAndTakenBack) {
  EtcdProcess etcd(folder_);
  Node a({etcd.endpoint()});
  a.Put("a", "1");
  ASSERT_TRUE(a.AwaitEntries({{"a", "1"}}));
  etcd.Signal(SIGSTOP);
  ASSERT_TRUE(a.AwaitState("lost: etcd at " + etcd.endpoint() + ": "));
  etcd.Signal(SIGCONT);
  EXPECT_TRUE(a.AwaitState("connected to etcd")) << a.states().back();
  a.Put("a", "2");
  EXPECT_TRUE(a.AwaitEntries({{"a", "2"}}));
}

TEST_F(EtcdStoreTest, ARevokedLeaseIsAskedForAgain) {
  EtcdProcess etcd(folder_);
  Node a({etcd.endpoint()}), b({etcd.endpoint()});
  a.Put("a", "1");
  ASSERT_TRUE(b.AwaitEntries({{"a", "1"}}));
  {
    grpc::ClientContext context;
    pb::RangeRequest request;
    request.set_key("/r2cc/nodes/a");
    pb::RangeResponse reply;
    ASSERT_TRUE(Kv(etcd)->Range(&context, request, &reply).ok());
    ASSERT_EQ(reply.kvs_size(), 1);
    grpc::ClientContext revoke;
    pb::LeaseRevokeRequest lease;
    lease.set_id(reply.kvs(0).lease());
    pb::LeaseRevokeResponse revoked;
    ASSERT_TRUE(pb::Lease::NewStub(grpc::CreateChannel(etcd.endpoint(), grpc::InsecureChannelCredentials()))
                    ->LeaseRevoke(&revoke, lease, &revoked)
                    .ok());
  }
  EXPECT_TRUE(b.Await([&] { return true; }));
  ASSERT_TRUE(b.AwaitEntries({}));
  EXPECT_TRUE(b.AwaitEntries({{"a", "1"}}));
}

// 256 nodes of an all-to-all: a view has 26 KB, and a page of them more than gRPC takes in one message.
TEST_F(EtcdStoreTest, PagesAreBoundedByBytesToo) {
  EtcdProcess etcd(folder_);
  const auto kv = Kv(etcd);
  Node first({etcd.endpoint()});
  ASSERT_TRUE(first.AwaitState("connected"));
  std::map<std::string, std::string> all;
  for (int i = 0; i < 256; ++i) {
    const std::string name = "n" + std::to_string(i);
    all[name] = std::string(26'500, 'x');
    PutRaw(kv.get(), "/r2cc/nodes/" + name, all[name]);
  }
  Node late({etcd.endpoint()});
  EXPECT_TRUE(late.AwaitEntries(all)) << late.states().back();
}

TEST_F(EtcdStoreTest, ManyEntriesComePageByPageOnceEachAlsoAfterACompaction) {
  EtcdProcess etcd(folder_);
  Node first({etcd.endpoint()});
  ASSERT_TRUE(first.AwaitState("connected"));
  const auto kv = Kv(etcd);
  std::map<std::string, std::string> all;
  for (int i = 0; i < 600; ++i) {
    const std::string name = "n" + std::to_string(i);
    PutRaw(kv.get(), "/r2cc/nodes/" + name, "old");
    all[name] = "old";
  }
  PutRaw(kv.get(), "/r2cc/other", "not ours");
  PutRaw(kv.get(), "/r2cc/nodes0", "behind the prefix");
  PutRaw(kv.get(), "/r2cc/nodes/n5", "new");
  all["n5"] = "new";
  grpc::ClientContext context;
  pb::CompactionRequest request;
  request.set_revision(revision_);
  request.set_physical(true);
  pb::CompactionResponse compacted;
  ASSERT_TRUE(kv->Compact(&context, request, &compacted).ok());
  Node late({etcd.endpoint()});
  EXPECT_TRUE(late.AwaitEntries(all));
  EXPECT_EQ(late.changes(), all.size());
  EXPECT_TRUE(first.AwaitEntries(all));
  PutRaw(kv.get(), "/r2cc/nodes/n6", "newer");
  all["n6"] = "newer";
  for (Node* node : {&late, &first}) EXPECT_TRUE(node->AwaitEntries(all));
}

TEST_F(EtcdStoreTest, AMemberThatRefusesIsNamedAndTheNextOneIsTaken) {
  const std::string nobody = "127.0.0.1:" + std::to_string(FreePort());
  EtcdProcess etcd(folder_);
  Node a({nobody, etcd.endpoint()});
  ASSERT_TRUE(a.AwaitState("connected to etcd at " + etcd.endpoint()));
  EXPECT_EQ(a.states()[1], "lost: etcd at " + nobody + ": Connection refused");
}

TEST_F(EtcdStoreTest, OnlyWithACertificateOfItsAuthority) {
  Shell("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=ca -keyout ca.key -out ca.pem");
  Shell("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=stranger -keyout s.key -out s.pem");
  for (const std::string name : {"etcd", "n0"})
    Shell("openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=" + name + " -keyout " + name + ".key -out " + name +
          ".csr && printf 'subjectAltName=IP:127.0.0.1' > ext && openssl x509 -req -in " + name +
          ".csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out " + name + ".pem");
  const auto credentials = [this](const std::string& name, const std::string& ca) {
    return *LoadEtcdCredentials(TlsSpec{folder_ + "/" + name + ".pem", folder_ + "/" + name + ".key", folder_ + "/" + ca + ".pem"}, "tls");
  };
  EtcdProcess etcd(folder_, {folder_ + "/etcd.pem", folder_ + "/etcd.key", folder_ + "/ca.pem"});
  Node known({etcd.endpoint()}, credentials("n0", "ca"));
  known.Put("n0", "1");
  ASSERT_TRUE(known.AwaitEntries({{"n0", "1"}})) << known.states().back();

  Node clear({etcd.endpoint()}), foreign({etcd.endpoint()}, credentials("s", "ca")), distrusting({etcd.endpoint()}, credentials("n0", "s"));
  for (Node* node : {&clear, &foreign, &distrusting}) {
    node->Put("x", "1");
    EXPECT_TRUE(node->AwaitState("lost: etcd at " + etcd.endpoint() + ": "));
    EXPECT_EQ(node->states().back().find('\n'), std::string::npos) << "one line";
    EXPECT_THAT(node->entries(), testing::IsEmpty());
  }
}

TEST(OddEtcdTest, ARangeThatWasCompactedWhileItWasReadIsReadAgain) {
  OddEtcd etcd;
  etcd.compactions_ = 2;
  Node a({etcd.endpoint()});
  ASSERT_TRUE(a.AwaitState("connected"));
  const auto states = a.states();
  EXPECT_EQ(states[1], "lost: etcd at " + etcd.endpoint() + ": the changes up to revision 9 were compacted before they were told");
  EXPECT_EQ(etcd.start_revision_, 8);
  EXPECT_TRUE(etcd.leader_asked_for_);
}

TEST(OddEtcdTest, ARefusalIsOneClearLine) {
  OddEtcd etcd;
  etcd.range_status_ = grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "etcdserver: permission denied");
  Node a({etcd.endpoint()});
  EXPECT_TRUE(a.AwaitState("lost: etcd at " + etcd.endpoint() + ": etcdserver: permission denied"));
}

TEST(OddEtcdTest, AReadOnlyClusterIsReadAndReportsThat) {
  OddEtcd etcd;
  etcd.put_status_ = grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "etcdserver: permission denied");
  Node a({etcd.endpoint()});
  a.Put("a", "1");
  EXPECT_TRUE(
      a.AwaitState("connected to etcd at " + etcd.endpoint() + ", which does not take this node's entry: etcdserver: permission denied"));
}

TEST(OddEtcdTest, NoLeaseNoConnection) {
  OddEtcd etcd;
  etcd.grants_ = false;
  Node a({etcd.endpoint()});
  a.Put("a", "1");
  EXPECT_TRUE(a.AwaitState("lost: etcd at " + etcd.endpoint() + ": it grants no lease: no more leases"));
}

TEST(OddEtcdTest, ALeaseThatNobodyConfirmsIsALostConnection) {
  OddEtcd etcd;
  etcd.keeps_alive_ = false;
  Node a({etcd.endpoint()});
  a.Put("a", "1");
  EXPECT_TRUE(a.AwaitState("lost: etcd at " + etcd.endpoint() + ": it does not answer"));
}

TEST(OddEtcdTest, APageThatPromisesMoreAndHoldsNothingIsTheLast) {
  OddEtcd etcd;
  etcd.range_has_more_ = true;
  Node a({etcd.endpoint()});
  EXPECT_TRUE(a.AwaitState("connected"));
}

}  // namespace
}  // namespace r2cc::daemon
