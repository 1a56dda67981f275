#include "daemon/rpc/reflection.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/descriptor_database.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace r2cc::daemon {
namespace {

using google::protobuf::UnknownFieldSet;
using testing::HasSubstr;

// A ServerReflectionRequest that asks for one thing.
std::string Asking(int field, const std::string& text) {
  UnknownFieldSet request;
  request.AddLengthDelimited(1, "a host");
  request.AddLengthDelimited(field, text);
  std::string bytes;
  request.SerializeToString(&bytes);
  return bytes;
}

// Fields of a message by their numbers; the last of each.
std::map<int, std::string> Fields(const std::string& bytes) {
  UnknownFieldSet fields;
  EXPECT_TRUE(fields.ParseFromString(bytes));
  std::map<int, std::string> found;
  for (int i = 0; i < fields.field_count(); ++i)
    if (fields.field(i).type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
      found[fields.field(i).number()] = fields.field(i).length_delimited();
  return found;
}

TEST(AnswerReflection, NamesControlAloneAndRepeatsTheQuestion) {
  const std::string request = Asking(7, "");
  const auto response = Fields(*AnswerReflection(request));
  EXPECT_EQ(response.at(2), request);
  EXPECT_EQ(Fields(Fields(response.at(6)).at(1)).at(1), "r2cc.v1.Control");
}

TEST(AnswerReflection, AClientBuildsTheServiceOfTheFilesAlone) {
  for (const auto& [field, name] : std::multimap<int, std::string>{
           {3, "proto/r2cc.proto"}, {4, "r2cc.v1.Control"}, {4, "r2cc.v1.NicView"}, {4, "r2cc.v1.Control.GetStatus"}}) {
    UnknownFieldSet files;
    ASSERT_TRUE(files.ParseFromString(Fields(*AnswerReflection(Asking(field, name))).at(4))) << name;
    google::protobuf::SimpleDescriptorDatabase database;
    for (int i = 0; i < files.field_count(); ++i) {
      google::protobuf::FileDescriptorProto file;
      ASSERT_TRUE(file.ParseFromString(files.field(i).length_delimited()));
      EXPECT_TRUE(database.Add(file)) << "each once: " << file.name();
    }
    google::protobuf::DescriptorPool pool(&database);
    const auto* const service = pool.FindServiceByName("r2cc.v1.Control");
    ASSERT_NE(service, nullptr) << name;
    EXPECT_NE(service->FindMethodByName("GetStatus"), nullptr);
  }
}

TEST(AnswerReflection, OnlyTheControlServiceIsThere) {
  for (const auto& request :
       {Asking(3, "google/protobuf/descriptor.proto"), Asking(3, "proto/etcd.proto"), Asking(3, ""), Asking(4, "r2cc.v1.NoSuch"),
        Asking(4, std::string(2000, 'x')), Asking(5, "\x0a\x01x"), Asking(6, "r2cc.v1.Event")}) {
    const auto response = Fields(*AnswerReflection(request));
    EXPECT_THAT(Fields(response.at(7)).at(2), testing::AnyOf(HasSubstr("no such"), HasSubstr("extensions")));
    EXPECT_FALSE(response.contains(4));
  }
  EXPECT_THAT(Fields(Fields(*AnswerReflection("")).at(7)).at(2), HasSubstr("asks for nothing"));
}

TEST(AnswerReflection, GarbageIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(AnswerReflection("\x1a\x7fx").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(AnswerReflection(std::string(16'000, '\x1b')).status())) << "groups within groups";
  EXPECT_LT(AnswerReflection(Asking(4, std::string(16'000, 'x')))->size(), 100u) << "nothing is repeated that is long";
}

}  // namespace
}  // namespace r2cc::daemon
