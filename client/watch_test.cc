#include "client/watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/core/table.h"

namespace r2cc::client {
namespace {

using testing::HasSubstr;
using testing::Not;

v1::ListNicsReply Nics(int nodes) {
  v1::ListNicsReply list;
  for (int n = 0; n < nodes; ++n) {
    v1::NodeView* const node = list.add_nodes();
    node->set_node("gpu-node-" + std::to_string(n));
    for (int rail = 0; rail < 4; ++rail) {
      v1::NicView* const nic = node->add_nics();
      nic->set_name("rail" + std::to_string(rail));
      nic->set_state(n == 1 && rail == 2 ? v1::FAILED : v1::HEALTHY);
      nic->set_link_up(true);
      nic->set_reason(n == 1 && rail == 2 ? "port of n1/rail2 (NIC, cable or switch port): silent to n0/rail2, n2/rail2" : "link up");
      nic->set_address("10.2." + std::to_string(rail) + ".1");
      nic->set_pci("0000:1b:00.0");
      nic->set_rate_bits_per_s(400'000'000'000);
      nic->set_operator_weight_permille(1000);
      nic->set_since_ns(1);
    }
  }
  return list;
}

v1::StatusReply Status(const v1::ListNicsReply& nics) {
  v1::StatusReply status;
  status.set_node("gpu-node-0");
  *status.mutable_nodes() = nics.nodes();
  return status;
}

std::vector<v1::Event> Events() {
  std::vector<v1::Event> events(10);
  for (size_t i = 0; i < events.size(); ++i) {
    events[i].set_sequence(i + 1);
    events[i].set_node(i == 0 ? "gpu-node-1.rack3.example.com" : "gpu-node-0");
    events[i].set_nic("rail2");
    events[i].set_kind("nic-state");
    events[i].set_message("event " + std::to_string(i + 1));
  }
  return events;
}

TEST(Picture, IsWholeWhereThereIsRoom) {
  const v1::ListNicsReply nics = Nics(2);
  const std::string text = Picture(Status(nics), nics, Events(), {});
  for (const char* part : {"gpu-node-0/rail3", "event 1\n", "event 10\n"}) EXPECT_THAT(text, HasSubstr(part));
  EXPECT_EQ(text.find("event 1\n") - text.rfind('\n', text.find("event 1\n")),
            text.find("event 2\n") - text.rfind('\n', text.find("event 2\n")))
      << "a long name moves the columns of all";
}

TEST(Picture, FitsIntoAnyTerminal) {
  const v1::ListNicsReply nics = Nics(3);
  for (size_t rows = 2; rows < 60; ++rows)
    for (const size_t width : {40, 80, 120, 200}) {
      const std::string text = Picture(Status(nics), nics, Events(), {.now_ns = 5, .width = width, .rows = rows});
      EXPECT_LT(RowsOf(text, width), rows) << width << "x" << rows << "\n" << text;
    }
}

TEST(Picture, AnOrdinaryTerminalShowsWhatIsNotWell) {
  const v1::ListNicsReply nics = Nics(2);
  const std::string text = Picture(Status(nics), nics, Events(), {.now_ns = 5, .width = 80, .rows = 24});
  EXPECT_THAT(text, HasSubstr("FAILED"));
  EXPECT_THAT(text, HasSubstr("\n7 more are healthy\n"));
  EXPECT_THAT(text, HasSubstr("event 10\n"));
  EXPECT_THAT(text, Not(HasSubstr("more lines"))) << text;
  const v1::ListNicsReply well = Nics(1);
  EXPECT_THAT(Picture(Status(well), well, Events(), {.now_ns = 5, .width = 80, .rows = 14}), HasSubstr("\nall 4 NICs are healthy\n"));
}

}  // namespace
}  // namespace r2cc::client
