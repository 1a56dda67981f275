#include "netplugin/transport/verbs/ticket.h"

#include <gtest/gtest.h>

namespace r2cc::net::verbs {
namespace {

TEST(Ticket, EveryImmediateIsAMarkAndBack) {
  for (uint64_t immediate = 0; immediate <= UINT32_MAX; immediate += 65'521) {
    const ChunkMark mark = MarkOf(static_cast<uint32_t>(immediate));
    EXPECT_LT(mark.ticket, kTickets);
    EXPECT_LT(mark.chunk, kChunksMax);
    ASSERT_EQ(ImmediateOf(mark), immediate);
  }
  const ChunkMark most{kTickets - 1, kChunksMax - 1, true};
  EXPECT_EQ(ImmediateOf(most), UINT32_MAX);
  EXPECT_EQ(MarkOf(UINT32_MAX), most);
}

TEST(Ticket, NamesTheMessageWhileItMayBePosted) {
  for (const MessageId placed : {MessageId{0}, MessageId{1}, MessageId{63}, MessageId{64}, MessageId{1'000'003}, ~MessageId{0} - 200})
    for (MessageId message = placed; message < placed + kMessagesPerFlow; ++message)
      ASSERT_EQ(MessageOf(TicketOf(5, message), placed), message);
}

TEST(Ticket, FlowsAreDistinguished) {
  EXPECT_EQ(FlowSlotOf(TicketOf(4095, 63)), 4095u);
  EXPECT_NE(TicketOf(1, 0), TicketOf(0, 64 + 63));
  EXPECT_EQ(FlowSlot(4096 + 7), FlowSlot(7));
}

}  // namespace
}  // namespace r2cc::net::verbs
