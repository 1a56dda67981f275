#include "health/probe/sa_mad.h"

#include <gtest/gtest.h>

#include <string>

namespace r2cc::health {
namespace {

// Byte for byte against the specification's tables.
TEST(SaMad, ASubscriptionToEverything) {
  const std::string mad = EncodeSubscription(0x01020304);
  ASSERT_EQ(mad.size(), kMadBytes);
  EXPECT_EQ(mad.substr(0, 4), std::string("\x01\x03\x02\x02", 4)) << "SA, Set";
  EXPECT_EQ(mad.substr(8, 8), std::string("\0\0\0\0\x01\x02\x03\x04", 8)) << "transaction";
  EXPECT_EQ(mad.substr(16, 2), std::string("\0\x03", 2)) << "InformInfo";
  EXPECT_EQ(mad.substr(56, 16), std::string(16, '\0')) << "no GID";
  EXPECT_EQ(mad.substr(72, 2), "\xff\xff") << "every LID";
  EXPECT_EQ(mad.substr(78, 2), "\x01\x01") << "generic, subscribe";
  EXPECT_EQ(mad.substr(80, 4), "\xff\xff\xff\xff") << "every type and trap";
  EXPECT_EQ(mad.substr(84, 4), std::string("\0\0\x01\x12", 4)) << "QP 1, a second";
  EXPECT_EQ(mad.substr(89, 3), "\xff\xff\xff") << "every producer";
  EXPECT_EQ(DecodeSaMessage(mad), std::nullopt) << "a request is no answer";
}

TEST(SaMad, TheAnswerToASubscription) {
  std::string mad = EncodeSubscription(7);
  mad[3] = '\x81';
  EXPECT_EQ(DecodeSaMessage(mad), (SaMessage{SaMessage::Kind::kSubscribed, 7, 0, {}}));
  mad[5] = '\x0c';
  EXPECT_EQ(DecodeSaMessage(mad)->status, 0x0c);
}

TEST(SaMad, EveryTrapNamesItsSubject) {
  for (const SaNotice& notice :
       {SaNotice{kTrapPortInService, 0x0002c90300001234, 0, 0}, SaNotice{kTrapPortOutOfService, 0x0002c90300001234, 0, 0},
        SaNotice{kTrapLinkState, 0, 3, 0}, SaNotice{kTrapLinkIntegrity, 0, 0xbffe, 36}, SaNotice{kTrapBufferOverrun, 0, 4, 1},
        SaNotice{kTrapFlowControl, 0, 4, 255}, SaNotice{kTrapCapability, 0, 9, 0}, SaNotice{256, 0, 0, 0}}) {
    const auto message = DecodeSaMessage(EncodeReport(5, notice));
    ASSERT_TRUE(message.has_value());
    EXPECT_EQ(*message, (SaMessage{SaMessage::Kind::kReport, 5, 0, notice})) << notice.trap;
    EXPECT_EQ(*TrapName(notice.trap) == '\0', notice.trap == 256);
  }
}

// The places of the fields, by hand: a port that left the fabric, as OpenSM reports it.
TEST(SaMad, ANoticeAsTheSaSendsIt) {
  std::string mad(kMadBytes, '\0');
  mad[0] = 1, mad[1] = 3, mad[2] = 2, mad[3] = 6, mad[17] = 2;
  mad[56] = '\x83';  // generic, subnet management
  mad[61] = 65;
  const std::string gid("\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\x10\0\x05", 16);
  mad.replace(56 + 16, gid.size(), gid);
  EXPECT_EQ(DecodeSaMessage(mad)->notice, (SaNotice{kTrapPortOutOfService, 0x100005, 0, 0}));
}

TEST(SaMad, TheAnswerToAReportIsTheReport) {
  const std::string report = EncodeReport(5, {kTrapLinkState, 0, 3, 0});
  std::string answer = EncodeReportAnswer(report);
  EXPECT_EQ(answer[3], '\x86');
  answer[3] = '\x06';
  EXPECT_EQ(answer, report);
}

TEST(SaMad, AMessageThatIsNoneIsRefused) {
  const std::string report = EncodeReport(5, {kTrapLinkState, 0, 3, 0});
  EXPECT_EQ(DecodeSaMessage(""), std::nullopt);
  EXPECT_EQ(DecodeSaMessage(report.substr(0, 255)), std::nullopt);
  EXPECT_EQ(DecodeSaMessage(report + "x"), std::nullopt);
  for (const size_t at : {0, 1, 2, 3, 16, 17}) {
    std::string other = report;
    other[at] ^= 0x40;
    EXPECT_EQ(DecodeSaMessage(other), std::nullopt) << at;
  }
  std::string vendor = report;
  vendor[56] = 0;
  EXPECT_EQ(DecodeSaMessage(vendor), std::nullopt) << "a vendor's own notice";
}

}  // namespace
}  // namespace r2cc::health
