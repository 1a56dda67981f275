#include "daemon/trust/signed_store.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/core/clock.h"
#include "base/fake_executor.h"
#include "base/tls/authority.h"
#include "daemon/io/fake_store.h"
#include "proto/r2cc.pb.h"
#include "proto/store.pb.h"

namespace r2cc::daemon {
namespace {

constexpr int64_t kNow = 1'800'000'000;
constexpr char kNodes[] = "/r2cc/nodes/";

class SignedStoreTest : public testing::Test {
 protected:
  struct Node {
    std::unique_ptr<SignedStore> store;
    FakeStore* bare;
    std::map<std::string, std::string> received;
  };
  void SetUp() override {
    folder_ = testing::TempDir() + "/signed.XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::shared_ptr<TlsFiles> Files(const CertificateAndKey& ca, const Identity& identity, int days = 10) {
    const CertificateAndKey pair = *Issue(ca, identity, ForDays(kNow, days));
    const std::string base = folder_ + "/" + std::to_string(++made_);
    std::ofstream(base + ".crt") << pair.certificate;
    std::ofstream(base + ".key") << pair.key;
    std::ofstream(base + ".ca") << ca_.certificate;
    return *TlsFiles::Load({base + ".crt", base + ".key", base + ".ca"}, [this] { return now_; });
  }
  std::unique_ptr<Node> Make(std::shared_ptr<TlsFiles> tls, bool insecure = false) {
    auto node = std::make_unique<Node>();
    auto bare = std::make_unique<FakeStore>();
    node->bare = bare.get();
    node->store = std::make_unique<SignedStore>(&executor_, std::move(bare), std::move(tls), insecure, &refusals_);
    node->store->Start(kNodes,
                       {[raw = node.get()](const StoreChange& change) { raw->received[change.key] = change.value; }, [](const auto&) {}});
    return node;
  }
  std::string Stored(const CertificateAndKey& ca, const Identity& identity, const std::string& key, const std::string& value) {
    const auto writer = Make(Files(ca, identity));
    writer->store->Put(key, value, 0);
    return writer->bare->entries().at(key);
  }
  // The reasons of refusals so far.
  std::string Refused() {
    std::string reasons;
    for (const auto& refusal : refusals_.List()) reasons += refusal.reason() + "=" + std::to_string(refusal.times()) + " ";
    return reasons;
  }

  FakeExecutor executor_;
  std::string folder_;
  int made_ = 0;
  int64_t now_ = kNow * kNanosPerSecond;
  const CertificateAndKey ca_ = *MakeAuthority("test", ForDays(kNow, 100));
  Refusals refusals_{[this] { return now_; }};
  const Identity n1_{Identity::Kind::kNode, "n1"};
  const std::string key_ = std::string(kNodes) + "n1";
};

TEST_F(SignedStoreTest, ANodesOwnValueIsTaken) {
  const auto reader = Make(Files(ca_, {Identity::Kind::kNode, "n0"}));
  reader->bare->Change(key_, Stored(ca_, n1_, key_, "view"));
  EXPECT_EQ(reader->received[key_], "view");
  EXPECT_EQ(Refused(), "");
}

// A view ends in random bytes, and these parse as a field that nobody knows or as a lifetime.
TEST_F(SignedStoreTest, AnUnsignedValueIsTakenWhole) {
  const std::string odd = std::string("view") + "\xfd\x85\x2a\xf6\x66\x02\x65\xc8\x01\x03";
  v1::ValueExpiry expiry;
  expiry.set_until_s(5);
  const auto writer = Make(nullptr);
  const auto reader = Make(nullptr);
  const auto moving = Make(Files(ca_, {Identity::Kind::kNode, "n0"}), /*insecure=*/true);
  for (const std::string& value : {odd, "view" + expiry.SerializeAsString()}) {
    writer->store->Put(key_, value, 0);
    for (const auto* to : {&reader, &moving}) {
      (*to)->bare->Change(key_, writer->bare->entries().at(key_));
      EXPECT_EQ((*to)->received[key_], value);
    }
  }
  EXPECT_EQ(Refused(), "");
}

// Junk behind a certificate is read away by every PEM reader: values with it, signed or not, are nowhere kept.
TEST_F(SignedStoreTest, AnUnbelievedValueIsNotKept) {
  const auto reader = Make(Files(ca_, {Identity::Kind::kNode, "n0"}));
  v1::SignedValue value;
  ASSERT_TRUE(value.ParseFromString(Stored(ca_, n1_, key_, "view")));
  reader->bare->Change(key_, value.SerializeAsString());
  EXPECT_EQ(reader->store->known(), 1u);
  const std::string pem = value.certificate();
  for (int i = 0; i < 200; ++i) {
    value.set_certificate(pem + std::string(1000 + static_cast<size_t>(i), 'x'));
    reader->bare->Change(key_, value.SerializeAsString());
  }
  EXPECT_EQ(reader->store->known(), 1u) << "a node has one, however it pads it";
  value.set_signature("nonsense");
  for (int i = 0; i < 200; ++i) {
    value.set_certificate(pem + std::string(2000 + static_cast<size_t>(i), 'x'));
    reader->bare->Change(std::string(kNodes) + "m" + std::to_string(i), value.SerializeAsString());
  }
  EXPECT_EQ(reader->store->known(), 1u);
  EXPECT_EQ(Refused(), "not-proven=200 ");
  value.set_certificate(pem + std::string(900'000, 'x'));
  reader->bare->Change(key_, value.SerializeAsString());
  EXPECT_EQ(Refused(), "not-proven=200 too-large=1 ");
  value.set_certificate(pem + std::string(20'000, 'x'));
  reader->bare->Change(key_, value.SerializeAsString());
  EXPECT_EQ(Refused(), "not-proven=201 too-large=1 ");
}

TEST_F(SignedStoreTest, AWriterOfTheStoreSpeaksForNobodyElse) {
  const auto reader = Make(Files(ca_, {Identity::Kind::kNode, "n0"}));
  const auto put = [&](const std::string& stored) { reader->bare->Change(key_, stored); };
  put("garbage");
  put("");
  put(Stored(ca_, {Identity::Kind::kNode, "n2"}, key_, "view"));
  put(Stored(ca_, n1_, std::string(kNodes) + "n2", "view"));  // of another key
  put(Stored(*MakeAuthority("strangers", ForDays(kNow, 10)), n1_, key_, "view"));
  put(Stored(ca_, {Identity::Kind::kOperator, "n1"}, key_, "view"));
  v1::SignedValue changed;
  ASSERT_TRUE(changed.ParseFromString(Stored(ca_, n1_, key_, "view")));
  changed.set_value("another view");
  put(changed.SerializeAsString());
  v1::SignedValue bare;
  bare.set_value("view");
  put(bare.SerializeAsString());
  EXPECT_TRUE(reader->received.empty());
  EXPECT_EQ(Refused(), "garbled=1 not-proven=4 not-signed=2 other-node=1 ");

  const std::string good = Stored(ca_, n1_, key_, "view");
  put(good);
  EXPECT_EQ(reader->received[key_], "view");
  reader->received.clear();
  now_ += 11 * 24 * 3600 * kNanosPerSecond;
  put(good);
  EXPECT_TRUE(reader->received.empty()) << "its certificate was good once, and has expired";
}

TEST_F(SignedStoreTest, AnOwnEntryThatSomebodyWroteOverIsGone) {
  const auto own = Make(Files(ca_, {Identity::Kind::kNode, "n1"}), /*insecure=*/false);
  own->store->Put(key_, "view", 0);
  own->bare->Change(key_, own->bare->entries().at(key_));
  ASSERT_EQ(own->received[key_], "view");
  own->bare->Change(key_, "garbage");
  EXPECT_EQ(own->received[key_], "") << "so that it is put again";
}

TEST_F(SignedStoreTest, ANewCertificateSignsWhatWasPutBeforeIt) {
  const auto files = Files(ca_, n1_, /*days=*/2);
  const auto writer = Make(files);
  writer->store->Put(key_, "view", 0);
  const std::string before = writer->bare->entries().at(key_);
  executor_.Advance(60 * kNanosPerSecond);
  EXPECT_EQ(writer->bare->entries().at(key_), before);
  const CertificateAndKey renewed = *Issue(ca_, n1_, ForDays(kNow, 90));
  std::ofstream(files->spec().key_file) << renewed.key;
  std::ofstream(files->spec().certificate_file) << renewed.certificate;
  now_ += 3 * 24 * 3600 * kNanosPerSecond;
  executor_.Advance(10 * kNanosPerSecond);
  const std::string after = writer->bare->entries().at(key_);
  EXPECT_NE(after, before);
  const auto reader = Make(Files(ca_, {Identity::Kind::kNode, "n0"}));
  reader->bare->Change(key_, before);
  EXPECT_TRUE(reader->received.empty()) << "the first certificate has expired";
  reader->bare->Change(key_, after);
  EXPECT_EQ(reader->received[key_], "view");
}

// A writer of etcd keeps a copy of a node's value from when it was drained, and puts it back when the node is gone.
TEST_F(SignedStoreTest, ACopyIsRefusedAfterItsLifetime) {
  const auto reader = Make(Files(ca_, {Identity::Kind::kNode, "n0"}));
  const std::string copy = Stored(ca_, n1_, key_, "drained");
  reader->bare->Change(key_, copy);
  EXPECT_EQ(reader->received[key_], "drained");
  const auto pass = [&](int64_t seconds) {
    now_ += seconds * kNanosPerSecond;
    executor_.Advance(10 * kNanosPerSecond);
  };
  pass(SignedStore::LifetimeS(0) - 60);
  EXPECT_EQ(reader->received[key_], "drained");
  pass(60);
  EXPECT_EQ(reader->received[key_], "") << "without a lease it would stay for ever";
  reader->bare->Change(key_, copy);
  EXPECT_EQ(reader->received[key_], "");
  const auto late = Make(Files(ca_, {Identity::Kind::kNode, "n2"}));
  late->bare->Change(key_, copy);
  EXPECT_TRUE(late->received.empty());
  EXPECT_EQ(Refused(), "too-old=2 ");
  // A change that lengthens its lifetime is not signed.
  v1::SignedValue longer;
  ASSERT_TRUE(longer.ParseFromString(copy));
  v1::ValueExpiry expiry;
  expiry.set_until_s(static_cast<uint64_t>(kNow + 1'000'000));
  longer.mutable_value()->replace(longer.value().size() - 10, 10, expiry.SerializeAsString());
  late->bare->Change(key_, longer.SerializeAsString());
  longer.mutable_value()->resize(longer.value().size() - 10);
  late->bare->Change(key_, longer.SerializeAsString());
  EXPECT_TRUE(late->received.empty());
  EXPECT_EQ(Refused(), "not-proven=2 too-old=2 ");
}

TEST_F(SignedStoreTest, ALivingNodeSignsAgainInTime) {
  const auto writer = Make(Files(ca_, n1_));
  const auto reader = Make(Files(ca_, {Identity::Kind::kNode, "n0"}));
  writer->store->Put(key_, "view", 0);
  int puts = writer->bare->puts();
  const int first = puts;
  for (int64_t passed = 0; passed < 10 * SignedStore::LifetimeS(0); passed += 5) {
    reader->bare->Change(key_, writer->bare->entries().at(key_));
    ASSERT_EQ(reader->received[key_], "view") << passed;
    now_ += 5 * kNanosPerSecond;
    executor_.Advance(5 * kNanosPerSecond);
    puts = writer->bare->puts();
  }
  EXPECT_LE(puts - first, 10 * SignedStore::LifetimeS(0) / SignedStore::RenewalS(0)) << "and no more often than it must";
  EXPECT_EQ(Refused(), "");
  EXPECT_GE(SignedStore::RenewalS(8192), 8192) << "of a large cluster one value a second is new";
}

// Release 0.2.0 signs the view alone, and reads past what this one adds to it.
TEST_F(SignedStoreTest, AValueOfTheReleaseBeforeIsTaken) {
  const auto reader = Make(Files(ca_, {Identity::Kind::kNode, "n0"}));
  const CertificateAndKey pair = *Issue(ca_, n1_, ForDays(kNow, 10));
  v1::NodeView view;
  view.set_node("n1");
  v1::SignedValue old;
  old.set_value(view.SerializeAsString());
  old.set_certificate(pair.certificate);
  const KeyPtr key = *ParseKey(pair.key);
  old.set_signature(*Sign(key.get(), SignedText(key_, old.value())));
  reader->bare->Change(key_, old.SerializeAsString());
  EXPECT_EQ(reader->received[key_], view.SerializeAsString());
  now_ += 24 * 3600 * kNanosPerSecond;
  executor_.Advance(10 * kNanosPerSecond);
  EXPECT_EQ(reader->received[key_], view.SerializeAsString());

  v1::SignedValue own;
  ASSERT_TRUE(own.ParseFromString(Stored(ca_, n1_, key_, view.SerializeAsString())));
  v1::NodeView seen;
  ASSERT_TRUE(seen.ParseFromString(own.value()));
  EXPECT_EQ(seen.node(), "n1");
}

TEST_F(SignedStoreTest, WhileAClusterMovesToTlsTheUnsignedAreTakenTooButNotOfOneThatHasSigned) {
  const auto reader = Make(Files(ca_, {Identity::Kind::kNode, "n0"}), /*insecure=*/true);
  const auto clear = Make(nullptr, true);
  clear->store->Put(key_, "old", 0);
  const std::string unsigned_view = clear->bare->entries().at(key_);
  reader->bare->Change(key_, unsigned_view);
  EXPECT_EQ(reader->received[key_], "old");
  const std::string signed_view = Stored(ca_, n1_, key_, "new");
  reader->bare->Change(key_, signed_view);
  EXPECT_EQ(reader->received[key_], "new");
  reader->bare->Change(key_, unsigned_view);
  EXPECT_EQ(reader->received[key_], "new");
  EXPECT_EQ(Refused(), "not-signed=1 ");
  clear->bare->Change(key_, signed_view);
  EXPECT_EQ(clear->received[key_], "new") << "a node without TLS reads what the others write";
}

}  // namespace
}  // namespace r2cc::daemon
