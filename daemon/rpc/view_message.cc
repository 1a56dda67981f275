#include "daemon/rpc/view_message.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include "absl/strings/str_cat.h"

namespace r2cc::daemon {
namespace {

using google::protobuf::internal::WireFormatLite;

constexpr int kView = v1::PushRequest::kViewFieldNumber;
static_assert(kView == v1::PushReply::kViewFieldNumber);

// Adds the fields up to the limit of `in`, and within a view also those of it. A garbled field ends the count.
void CountFields(google::protobuf::io::CodedInputStream* in, bool of_view, size_t* count) {
  while (*count <= kViewFieldsMax) {
    const uint32_t tag = in->ReadTag();
    if (tag == 0) return;
    ++*count;
    uint32_t bytes = 0;
    if (of_view || tag != WireFormatLite::MakeTag(kView, WireFormatLite::WIRETYPE_LENGTH_DELIMITED)) {
      if (!WireFormatLite::SkipField(in, tag)) return;
    } else if (!in->ReadVarint32(&bytes)) {
      return;
    } else {
      const auto outer = in->PushLimit(static_cast<int>(bytes));
      CountFields(in, true, count);
      if (in->BytesUntilLimit() > 0) return;
      in->PopLimit(outer);
    }
  }
}

}  // namespace

absl::Status CheckViewMessage(std::string_view bytes) {
  if (bytes.size() > kViewBytesMax)
    return absl::ResourceExhaustedError(absl::StrCat("a view of ", bytes.size(), " bytes, more than ", kViewBytesMax));
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
  size_t count = 0;
  CountFields(&in, false, &count);
  if (count <= kViewFieldsMax) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("a view of more than ", kViewFieldsMax, " NICs, pairs and other fields"));
}

}  // namespace r2cc::daemon
