// A fuzzer's bytes as messages of proto/: any fields, names that the rest of the input uses too, numbers at their limits. What is made so
// is what a parser can return: strings are UTF-8, enums may have numbers that nobody knows.
#ifndef R2CC_TESTS_FUZZ_MESSAGES_H_
#define R2CC_TESTS_FUZZ_MESSAGES_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "tests/fuzz/input.h"

namespace r2cc::fuzz {

// Each byte is a character up to U+00FF.
inline std::string TakeText(Input* input, size_t bytes) {
  std::string text;
  for (const uint8_t byte : input->TakeBytes(bytes)) {
    if (byte >= 0x80) text += static_cast<char>(0xc0 | byte >> 6);
    text += static_cast<char>(byte >= 0x80 ? 0x80 | (byte & 0x3f) : byte);
  }
  return text;
}

// One of `names` as often as not.
inline std::string TakeName(Input* input, std::span<const char* const> names) {
  const size_t choice = input->Below(2 * names.size());
  return choice < names.size() ? names[choice] : TakeText(input, input->Below(40));
}

// Sets some of the fields of `message`.
inline void Fill(Input* input, std::span<const char* const> names, google::protobuf::Message* message) {
  using google::protobuf::FieldDescriptor;
  using google::protobuf::Message;
  const auto* reflection = message->GetReflection();
  const auto* descriptor = message->GetDescriptor();
  for (int i = 0; i < descriptor->field_count() && !input->empty(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    const bool repeated = field->is_repeated();
    const size_t times = repeated ? input->Below(5) : input->Below(3) > 0;
    for (size_t t = 0; t < times; ++t) {
      const auto set = [&](auto add, auto assign, auto value) {
        repeated ? (reflection->*add)(message, field, value) : (reflection->*assign)(message, field, value);
      };
      using R = google::protobuf::Reflection;
      switch (field->cpp_type()) {
        case FieldDescriptor::CPPTYPE_BOOL: set(&R::AddBool, &R::SetBool, input->TakeBool()); break;
        case FieldDescriptor::CPPTYPE_INT32: set(&R::AddInt32, &R::SetInt32, static_cast<int32_t>(input->TakeNumber())); break;
        case FieldDescriptor::CPPTYPE_UINT32: set(&R::AddUInt32, &R::SetUInt32, static_cast<uint32_t>(input->TakeNumber())); break;
        case FieldDescriptor::CPPTYPE_INT64: set(&R::AddInt64, &R::SetInt64, static_cast<int64_t>(input->TakeNumber())); break;
        case FieldDescriptor::CPPTYPE_UINT64: set(&R::AddUInt64, &R::SetUInt64, input->TakeNumber()); break;
        case FieldDescriptor::CPPTYPE_DOUBLE: set(&R::AddDouble, &R::SetDouble, input->Take<int16_t>() / 8.0); break;
        case FieldDescriptor::CPPTYPE_FLOAT: set(&R::AddFloat, &R::SetFloat, static_cast<float>(input->Take<int16_t>())); break;
        case FieldDescriptor::CPPTYPE_ENUM: set(&R::AddEnumValue, &R::SetEnumValue, static_cast<int>(input->Take<int8_t>())); break;
        case FieldDescriptor::CPPTYPE_STRING: set(&R::AddString, &R::SetString, TakeName(input, names)); break;
        case FieldDescriptor::CPPTYPE_MESSAGE:
          Fill(input, names, repeated ? reflection->AddMessage(message, field) : reflection->MutableMessage(message, field));
          break;
      }
    }
  }
}

}  // namespace r2cc::fuzz

#endif  // R2CC_TESTS_FUZZ_MESSAGES_H_
