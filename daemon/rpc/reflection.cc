#include "daemon/rpc/reflection.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/unknown_field_set.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "proto/r2cc.grpc.pb.h"

namespace r2cc::daemon {
namespace {

using google::protobuf::FileDescriptor;
using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

// Numbers of fields, as published. A request has one of:
constexpr int kFileByName = 3;
constexpr int kFileContainingSymbol = 4;
constexpr int kListServices = 7;
// A response has:
constexpr int kOriginalRequest = 2;
constexpr int kFiles = 4;
constexpr int kServices = 6;
constexpr int kError = 7;

// The health service of gRPC is left out: nothing describes it here.
constexpr char kControl[] = "r2cc.v1.Control";
// The limit of one stream. A client asks once for each of a few files; streams are limited like all calls.
constexpr int kQuestionsMax = 256;
constexpr size_t kEchoBytesMax = 1024;

// The files that Control refers to, and nothing else that is linked: files with their bytes.
using Files = std::map<const FileDescriptor*, std::string>;

void Gather(const FileDescriptor* file, Files* files) {
  const auto [place, is_new] = files->try_emplace(file);
  if (!is_new) return;
  google::protobuf::FileDescriptorProto proto;
  file->CopyTo(&proto);
  place->second = proto.SerializeAsString();
  for (int i = 0; i < file->dependency_count(); ++i) Gather(file->dependency(i), files);
}

const Files& Served() {
  static const Files& files = *[] {
    auto* const gathered = new Files;
    Gather(v1::StatusRequest::descriptor()->file(), gathered);
    return gathered;
  }();
  return files;
}

// `file` and what it imports, each once.
void AddFiles(const FileDescriptor* file, std::set<const FileDescriptor*>* seen, UnknownFieldSet* response) {
  if (!seen->insert(file).second) return;
  response->AddLengthDelimited(1, Served().at(file));
  for (int i = 0; i < file->dependency_count(); ++i) AddFiles(file->dependency(i), seen, response);
}

void AddError(grpc::StatusCode code, const std::string& message, UnknownFieldSet* response) {
  UnknownFieldSet error;
  error.AddVarint(1, static_cast<uint64_t>(code));
  error.AddLengthDelimited(2, message);
  error.SerializeToString(response->AddLengthDelimited(kError));
}

// The last field is the one that counts, as in each oneof.
const UnknownField* AskedFor(const UnknownFieldSet& request) {
  const UnknownField* asked = nullptr;
  for (int i = 0; i < request.field_count(); ++i)
    if (const UnknownField& field = request.field(i); field.number() >= kFileByName && field.number() <= kListServices) asked = &field;
  return asked;
}

// Answers one question after another, so a client that takes no answers gets none.
class ReflectionStream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  ReflectionStream(std::string holder, std::shared_ptr<PendingReplies> replies) : holder_(std::move(holder)), replies_(std::move(replies)) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return End(grpc::Status::OK);
    std::vector<grpc::Slice> slices;
    std::string bytes;
    if (request_.Dump(&slices).ok())
      for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    request_.Clear();
    if (++questions_ > kQuestionsMax) return End(ToGrpc(absl::ResourceExhaustedError("too many questions of one stream: open another")));
    const absl::StatusOr<std::string> response = AnswerReflection(bytes);
    if (!response.ok()) return End(ToGrpc(response.status()));
    if (response->size() > PendingReplies::kSmallBytes) {
      if (!replies_->Hold(holder_, response->size()))
        return End(ToGrpc(absl::ResourceExhaustedError(absl::StrCat(holder_, " leaves replies untaken, or others do: ask again later"))));
      pending_bytes_ = response->size();
    }
    const grpc::Slice slice(*response);
    response_ = grpc::ByteBuffer(&slice, 1);
    absl::MutexLock lock(&mutex_);
    if (!finished_) StartWrite(&response_);
  }

  void OnWriteDone(bool ok) override {
    Release();
    if (!ok) return End(grpc::Status::CANCELLED);
    absl::MutexLock lock(&mutex_);
    if (!finished_) StartRead(&request_);
  }

  void OnCancel() override { End(grpc::Status::CANCELLED); }

  void OnDone() override {
    Release();
    delete this;
  }

 private:
  void End(const grpc::Status& status) {
    absl::MutexLock lock(&mutex_);
    if (!std::exchange(finished_, true)) Finish(status);
  }
  void Release() {
    if (pending_bytes_ > 0) replies_->Release(holder_, std::exchange(pending_bytes_, 0));
  }

  const std::string holder_;
  const std::shared_ptr<PendingReplies> replies_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
  size_t pending_bytes_ = 0;
  int questions_ = 0;
  absl::Mutex mutex_;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

class RefusedReflection final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  explicit RefusedReflection(const absl::Status& why) { Finish(ToGrpc(why)); }
  void OnDone() override { delete this; }
};

class ReflectionService final : public grpc::Service {
 public:
  ReflectionService(Backend* backend, const Authenticator* authenticator, std::shared_ptr<PendingReplies> replies)
      : backend_(backend), authenticator_(authenticator), replies_(std::move(replies)) {
    int index = 0;
    for (const char* method :
         {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}) {
      AddMethod(new grpc::internal::RpcServiceMethod(method, grpc::internal::RpcMethod::BIDI_STREAMING, nullptr));
      MarkMethodCallback(index++, new grpc::internal::CallbackBidiHandler<grpc::ByteBuffer, grpc::ByteBuffer>(
                                      [this](grpc::CallbackServerContext* context) { return Serve(context); }));
    }
  }

 private:
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Serve(grpc::CallbackServerContext* context) {
    const auto caller = authenticator_->Person(*context, "reflection");
    if (!caller.ok()) return new RefusedReflection(caller.status());
    if (const absl::Status status = backend_->Allow(*caller, Role::kView); !status.ok())
      return new RefusedReflection(authenticator_->Refuse(*caller, "role", "reflection", status));
    return new ReflectionStream(ShareOf(*caller), replies_);
  }

  Backend* const backend_;
  const Authenticator* const authenticator_;
  const std::shared_ptr<PendingReplies> replies_;
};

}  // namespace

absl::StatusOr<std::string> AnswerReflection(const std::string& request) {
  UnknownFieldSet fields;
  if (!fields.ParseFromString(request)) return absl::InvalidArgumentError("a request of reflection that is garbled");
  const UnknownField* const asked = AskedFor(fields);
  UnknownFieldSet response;
  if (request.size() <= kEchoBytesMax) response.AddLengthDelimited(kOriginalRequest, request);
  const std::string name = asked != nullptr && asked->type() == UnknownField::TYPE_LENGTH_DELIMITED ? asked->length_delimited() : "";
  const auto* const pool = google::protobuf::DescriptorPool::generated_pool();
  if (asked == nullptr) {
    AddError(grpc::StatusCode::INVALID_ARGUMENT, "the request asks for nothing", &response);
  } else if (asked->number() == kListServices) {
    UnknownFieldSet service, services;
    service.AddLengthDelimited(1, kControl);
    service.SerializeToString(services.AddLengthDelimited(1));
    services.SerializeToString(response.AddLengthDelimited(kServices));
  } else if (asked->number() == kFileByName || asked->number() == kFileContainingSymbol) {
    const bool by_name = asked->number() == kFileByName;
    const FileDescriptor* const file = by_name ? pool->FindFileByName(name) : pool->FindFileContainingSymbol(name);
    if (file != nullptr && Served().contains(file)) {
      std::set<const FileDescriptor*> seen;
      UnknownFieldSet files;
      AddFiles(file, &seen, &files);
      files.SerializeToString(response.AddLengthDelimited(kFiles));
    } else {
      AddError(grpc::StatusCode::NOT_FOUND, by_name ? "there is no such file" : "there is no such symbol", &response);
    }
  } else {
    AddError(grpc::StatusCode::NOT_FOUND, "no message has extensions", &response);
  }
  std::string bytes;
  response.SerializeToString(&bytes);
  return bytes;
}

std::unique_ptr<grpc::Service> MakeReflectionService(Backend* backend, const Authenticator* authenticator,
                                                     std::shared_ptr<PendingReplies> replies) {
  return std::make_unique<ReflectionService>(backend, authenticator, std::move(replies));
}

}  // namespace r2cc::daemon
