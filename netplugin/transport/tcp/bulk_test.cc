// Chunks over a real pair of stream sockets with little room, so that calls are cut short everywhere.
#include "netplugin/transport/tcp/bulk.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>
#include <deque>
#include <iterator>
#include <random>
#include <vector>

namespace r2cc::net {
namespace {

constexpr uint32_t kTag = 0x5eed;

class BulkPair : public testing::TestWithParam<BulkReceiver::Look> {
 protected:
  BulkPair() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    const int little = 8 * 1024;
    setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &little, sizeof(little));
    sender_ = std::make_unique<BulkSender>(UniqueFd(fds[0]), kTag, true);
    receiver_ = std::make_unique<BulkReceiver>(UniqueFd(fds[1]), kTag, ProofPattern(1, 2, 3, 0));
  }

  void Add(uint32_t bytes) {
    auto data = std::make_unique<std::vector<std::byte>>(bytes);
    for (std::byte& byte : *data) byte = static_cast<std::byte>(random_());
    Chunk chunk{
        .flow = 1, .message = sent_.size(), .message_bytes = bytes, .chunk_bytes = 128 * 1024, .data = data->data(), .bytes = bytes};
    waiting_.push_back(chunk);
    sent_.push_back(std::move(data));
    received_.emplace_back(bytes).reserve(1);  // an address also for no bytes
  }

  void Send(int together, uint64_t* sent) {
    const auto pull = [&](Chunk* chunk) {
      if (waiting_.empty()) return false;
      *chunk = waiting_.front();
      waiting_.pop_front();
      return true;
    };
    sender_->Pump(pull, together, sent);
  }

  BulkReceiver::Result WithSink(FunctionRef<BulkReceiver::Result(const BulkReceiver::Sink&)> read) {
    const auto begin = [&](const Chunk& chunk, std::byte** destination) {
      *destination = discard_ ? nullptr : received_[chunk.message].data();
      return true;
    };
    const auto finish = [&](const Chunk& chunk) { finished_.push_back(chunk.message); };
    const auto proof = [&](bool ok) {
      proved_ = ok;
      ++proofs_;
    };
    return read({begin, finish, proof});
  }

  // Moves until nothing moves any more.
  void Move(int together) {
    for (bool moved = true; moved;) {
      const size_t waited = waiting_.size(), had = finished_.size() + proofs_;
      uint64_t sent = 0, read = 0;
      Send(together, &sent);
      const BulkReceiver::Result result =
          WithSink([&](const BulkReceiver::Sink& sink) { return receiver_->Read(sink, GetParam(), &read); });
      ASSERT_NE(result, BulkReceiver::Result::kGarbled);
      sent_bytes_ += sent;
      read_bytes_ += read;
      // Chunks of no bytes count too, and a data check, whose bytes are not counted, may take several looks.
      moved = sent + read > 0 || waiting_.size() != waited || finished_.size() + proofs_ != had || sender_->busy() ||
              result == BulkReceiver::Result::kMore;
    }
  }

  // One message more; true if one look finds it.
  bool Exchange(uint32_t bytes) {
    Add(bytes);
    uint64_t sent = 0;
    Send(1, &sent);
    Look();
    return finished_.size() == sent_.size() && received_.back() == *sent_.back();
  }
  BulkReceiver::Result Look() { return Look(GetParam()); }
  BulkReceiver::Result Look(BulkReceiver::Look look) {
    uint64_t read = 0;
    return WithSink([&](const BulkReceiver::Sink& sink) { return receiver_->Read(sink, look, &read); });
  }

  std::mt19937_64 random_{1};
  std::unique_ptr<BulkSender> sender_;
  std::unique_ptr<BulkReceiver> receiver_;
  std::deque<Chunk> waiting_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> sent_;
  std::vector<std::vector<std::byte>> received_;
  std::vector<MessageId> finished_;
  uint64_t sent_bytes_ = 0, read_bytes_ = 0;  // by Move()
  bool discard_ = false;
  bool proved_ = false;
  size_t proofs_ = 0;
};

TEST_P(BulkPair, EveryByteOfEverySizeArrivesOnceAndInOrder) {
  for (const int together : {1, BulkSender::kTogetherMost}) {
    for (const uint32_t bytes : {0u, 1u, 47u, 48u, 49u, 4047u, 4048u, 4049u, 16384u, 16385u, 100'000u, 0u, 0u, 131'072u, 7u}) Add(bytes);
    Move(together);
  }
  ASSERT_EQ(finished_.size(), sent_.size());
  for (MessageId i = 0; i < sent_.size(); ++i) {
    EXPECT_EQ(finished_[i], i);
    EXPECT_EQ(*sent_[i], received_[i]) << "message " << i;
  }
}

TEST_P(BulkPair, ADiscardedChunkIsReadAndNotWritten) {
  discard_ = true;
  Add(200'000);
  Add(3);
  Move(1);
  EXPECT_TRUE(finished_.empty());
  EXPECT_EQ(received_[0], std::vector<std::byte>(200'000));
  discard_ = false;
  Add(5);
  Move(1);
  EXPECT_EQ(finished_, (std::vector<MessageId>{2}));
  EXPECT_EQ(*sent_[2], received_[2]);
}

TEST_P(BulkPair, TheDataCheckGoesFirst) {
  sender_->SendProof(ProofPattern(1, 2, 3, 0));
  Add(10);
  Move(1);
  EXPECT_TRUE(proved_);
  EXPECT_EQ(finished_.size(), 1u);
  // It is none of the job's bytes, at either end.
  EXPECT_EQ(sent_bytes_, 10u);
  EXPECT_EQ(read_bytes_, 10u);
}

TEST_P(BulkPair, AnotherSocketsDataCheckIsNoProof) {
  sender_->SendProof(ProofPattern(1, 2, 4, 0));
  Move(1);
  EXPECT_FALSE(proved_);
}

TEST_P(BulkPair, AHalfSentMessageGoesOnFromItsCopy) {
  Add(60'000);
  uint64_t sent_bytes = 0;
  const auto pull = [&](Chunk* chunk) {
    if (waiting_.empty()) return false;
    *chunk = waiting_.front();
    waiting_.pop_front();
    return true;
  };
  ASSERT_EQ(sender_->Pump(pull, 1, &sent_bytes), BulkSender::Result::kBlocked);
  EXPECT_TRUE(sender_->AnyUnsent([](const Chunk& chunk) { return chunk.flow == 1; }));
  EXPECT_FALSE(sender_->AnyUnsent([](const Chunk& chunk) { return chunk.flow == 2; }));
  const std::vector<std::byte> copy = *sent_[0];
  sender_->Retarget(1, 0, copy.data());
  std::memset(sent_[0]->data(), 0, sent_[0]->size());
  Move(1);
  EXPECT_EQ(received_[0], copy);
}

TEST_P(BulkPair, EveryByteArrivesOnceWithEachMixOfReaders) {
  constexpr BulkReceiver::Look kLooks[] = {BulkReceiver::Look::kAhead, BulkReceiver::Look::kInPlace};
  uint64_t sent = 0;
  for (int i = 0; i < 5000; ++i) {
    for (uint64_t more = random_() % 3; more > 0; --more)
      Add(static_cast<uint32_t>(random_() % 8 == 0 ? random_() % 20'000 : random_() % 300));
    Send(1 + static_cast<int>(random_() % 3), &sent);
    ASSERT_EQ(Look(kLooks[random_() % std::size(kLooks)]), BulkReceiver::Result::kEmpty);
  }
  Move(1);
  ASSERT_EQ(finished_.size(), sent_.size());
  for (MessageId i = 0; i < sent_.size(); ++i) {
    EXPECT_EQ(finished_[i], i);
    EXPECT_EQ(*sent_[i], received_[i]) << "message " << i;
  }
}

TEST_P(BulkPair, TheEndShowsBehindTheLastMessage) {
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Exchange(8));
  sender_.reset();
  BulkReceiver::Result result = BulkReceiver::Result::kEmpty;
  for (int i = 0; i < 10 && result == BulkReceiver::Result::kEmpty; ++i) result = Look();
  EXPECT_EQ(result, BulkReceiver::Result::kBroken);
  EXPECT_EQ(finished_.size(), 4u);
}

INSTANTIATE_TEST_SUITE_P(Looks, BulkPair, testing::Values(BulkReceiver::Look::kInPlace, BulkReceiver::Look::kAhead));

}  // namespace
}  // namespace r2cc::net
