// The producer's half of the C interface.
#include <unistd.h>

#include <cstring>
#include <memory>

#include "base/core/hash.h"
#include "base/core/mutex.h"
#include "base/core/release.h"
#include "observe/capi/guard.h"
#include "observe/capi/observe.h"
#include "observe/cuda/cuda_producer.h"
#include "observe/gather/tap_work.h"
#include "observe/producer/host_producer.h"
#include "observe/sink/file_sink.h"

using namespace r2cc::observe;  // NOLINT

struct Opened {
  std::unique_ptr<Producer> producer;
  std::unique_ptr<FileSink> files;  // null: none are written
};

struct r2cc_observe_producer {
  explicit r2cc_observe_producer(std::unique_ptr<Producer> made) : opened{std::move(made), nullptr} {}

  const pid_t pid = getpid();
  r2cc::Mutex mutex;
  Opened opened R2CC_GUARDED_BY(mutex);
};

namespace r2cc::observe {

std::string& LastError() {
  thread_local std::string line;
  return line;
}

int Failed(int code, const std::string& line) {
  LastError() = line;
  return code;
}

void CopyCounts(const Counts& from, uint64_t cut_off, uint64_t lost, r2cc_observe_counts* to) {
  *to = {sizeof(*to), from.Steps(), from.records, from.dropped_device, from.dropped_host, from.unwanted, from.missed, cut_off, lost};
}

namespace {

// Refuses what cannot be a producer of this process, and runs `body` with its lock on what is open.
template <typename Body>
int With(r2cc_observe_producer* producer, Body body) {
  return Guarded([&] {
    if (producer == nullptr) return Failed(R2CC_OBSERVE_INVALID, "there is no producer");
    if (producer->pid != getpid())
      return Failed(R2CC_OBSERVE_FORKED, "the producer is that of process " + std::to_string(producer->pid) +
                                             ", and this is a child of it: it must open its own, under another name");
    const MutexLock lock(producer->mutex);
    return body(producer->opened);
  });
}

bool SourceOf(const r2cc_observe_tensor& tensor, TensorSource* source) {
  if (tensor.dimensions > kDimensionsMax + 1 || (tensor.dimensions != 0 && tensor.shape == nullptr)) return false;
  source->data = tensor.data;
  source->shape = {tensor.shape, tensor.dimensions};
  source->strides = {};
  if (tensor.strides != nullptr) source->strides = {tensor.strides, tensor.dimensions};
  return true;
}

bool TakeTaps(const r2cc_observe_tap* from, uint64_t count, std::vector<Tap>* to) {
  for (uint64_t i = 0; i < count; ++i) {
    const r2cc_observe_tap& tap = from[i];
    if (!Sized(&tap) || tap.name == nullptr || tap.dimensions > kDimensionsMax || (tap.dimensions != 0 && tap.shape == nullptr) ||
        tap.op > static_cast<uint8_t>(kOperatorNewest) || tap.dtype >= static_cast<uint8_t>(Dtype::kStats) || tap.rows > 1)
      return false;
    to->push_back({tap.name, static_cast<Operator>(tap.op), static_cast<Dtype>(tap.dtype), tap.group, tap.rows != 0,
                   std::vector<uint64_t>(tap.shape, tap.shape + tap.dimensions)});
  }
  return true;
}

}  // namespace
}  // namespace r2cc::observe

extern "C" {

const char* r2cc_observe_error(void) { return LastError().c_str(); }

const char* r2cc_observe_release(void) {
  static const std::string text = r2cc::VersionText("r2cc-observe", {{"record", kRecordVersion, kRecordVersion}});
  return text.c_str();
}

uint32_t r2cc_observe_crc32c(const void* data, uint64_t bytes, uint32_t seed) { return r2cc::Crc32c(data, bytes, seed); }

int r2cc_observe_open(const r2cc_observe_options* options, r2cc_observe_producer** producer) {
  return Guarded([&] {
    if (!Sized(options) || producer == nullptr || options->run == nullptr || options->device == nullptr || options->rank > UINT32_MAX)
      return Failed(R2CC_OBSERVE_INVALID, "the options are not those of this release");
    const std::string device = options->device;
    const int gpu = CudaProducer::NumberOf(device);
    if (device != "host" && gpu < 0)
      return Failed(R2CC_OBSERVE_INVALID, "device " + device + ": it is \"host\", \"cuda\" or \"cuda:NUMBER\"");
    ProducerOptions own;
    own.run = options->run;
    own.rank = static_cast<uint32_t>(options->rank);
    if (options->host_bytes != 0) own.ring_bytes = options->host_bytes;
    if (options->device_bytes != 0) own.device_bytes = options->device_bytes;
    if (options->held_bytes != 0) own.held_bytes = options->held_bytes;
    if (options->every != 0) own.every = options->every;
    if (options->phases != 0) own.phases = options->phases;
    if (options->reader_timeout_ns != 0) own.reader_timeout_ns = static_cast<r2cc::Nanos>(options->reader_timeout_ns);
    own.block_ns = static_cast<r2cc::Nanos>(options->block_ns);
    if (own.block_ns < 0 || own.block_ns > 3600 * r2cc::kNanosPerSecond || own.reader_timeout_ns < 0)
      return Failed(R2CC_OBSERVE_INVALID, "a step may wait for an hour at most");
    // Readers could not distinguish them.
    for (const FoundRun& other : FindRuns(own.run, "/proc"))
      if (other.rank == own.rank && static_cast<uint64_t>(other.holder_pid) == other.producer_pid)
        return Failed(R2CC_OBSERVE_INVALID, "run " + own.run + " has a producer of rank " + std::to_string(own.rank) +
                                                " already, process " + std::to_string(other.producer_pid));
    std::unique_ptr<Producer> made;
    std::string error;
    if (gpu < 0)
      made = HostProducer::Open(own, &kClock, &error);
    else
      made = CudaProducer::Open(own, gpu, &kClock, &error);
    if (made == nullptr) return Failed(R2CC_OBSERVE_SYSTEM, error);
    *producer = new r2cc_observe_producer(std::move(made));
    return 0;
  });
}

int r2cc_observe_files(r2cc_observe_producer* producer, const char* folder, uint64_t segment_bytes, uint64_t segment_age_ns) {
  return With(producer, [&](Opened& opened) {
    if (folder == nullptr || *folder == '\0' || opened.files != nullptr)
      return Failed(R2CC_OBSERVE_INVALID, "one folder for the files of a producer");
    FileOptions options;
    options.folder = folder;
    if (segment_bytes != 0) options.segment_bytes = segment_bytes;
    if (segment_age_ns != 0) options.segment_age = static_cast<r2cc::Nanos>(segment_age_ns);
    std::string error;
    opened.files = FileSink::Start(options, opened.producer->memory(), &kClock, &error);
    return opened.files != nullptr ? 0 : Failed(R2CC_OBSERVE_SYSTEM, error);
  });
}

int r2cc_observe_layout(r2cc_observe_producer* producer, const r2cc_observe_tap* tags, uint64_t tag_count, const r2cc_observe_tap* taps,
                        uint64_t tap_count, uint64_t rows_most, uint32_t* layout) {
  return With(producer, [&](Opened& opened) {
    Layout made;
    if (tag_count > kTagsMax || tap_count > kTapsMax || rows_most > UINT32_MAX || layout == nullptr ||
        (tag_count != 0 && tags == nullptr) || (tap_count != 0 && taps == nullptr) || !TakeTaps(tags, tag_count, &made.tags) ||
        !TakeTaps(taps, tap_count, &made.taps))
      return Failed(R2CC_OBSERVE_INVALID, "a layout has at most 64 tags and 4096 taps, of at most 8 dimensions");
    made.rows_most = static_cast<uint32_t>(rows_most);
    std::string error;
    return opened.producer->AddLayout(std::move(made), layout, &error) ? 0 : Failed(R2CC_OBSERVE_INVALID, error);
  });
}

int r2cc_observe_begin(r2cc_observe_producer* producer, uint32_t layout, uint64_t phase, const r2cc_observe_rows* rows, int* taken) {
  return With(producer, [&](Opened& opened) {
    if (taken == nullptr || (rows != nullptr && !Sized(rows)) || (phase != R2CC_OBSERVE_DECODE && phase != R2CC_OBSERVE_PREFILL))
      return Failed(R2CC_OBSERVE_INVALID, "a step is of one phase, decode or prefill");
    RowChoice choice;
    if (rows != nullptr) choice = {rows->count, rows->indices, rows->index_bytes, rows->count_at, rows->count_bytes};
    std::string error;
    const Producer::Began began = opened.producer->Begin(layout, static_cast<Phase>(phase), choice, &error);
    *taken = began == Producer::Began::kTaken ? 1 : 0;
    return began == Producer::Began::kRefused ? Failed(R2CC_OBSERVE_INVALID, error) : 0;
  });
}

int r2cc_observe_inline(r2cc_observe_producer* producer, int is_tag, uint64_t index, const r2cc_observe_tensor* tensor) {
  return With(producer, [&](Opened& opened) {
    TensorSource source;
    std::string error;
    if (!Sized(tensor) || !SourceOf(*tensor, &source)) return Failed(R2CC_OBSERVE_INVALID, "a tensor has at most 9 dimensions");
    return opened.producer->Copy(is_tag != 0, index, source, &error) ? 0 : Failed(R2CC_OBSERVE_INVALID, error);
  });
}

int r2cc_observe_gather(r2cc_observe_producer* producer, const r2cc_observe_tensor* taps, uint64_t count) {
  return With(producer, [&](Opened& opened) {
    std::string error;
    for (uint64_t i = 0; i < count; ++i) {
      if (taps[i].bytes == 0 || !opened.producer->Wants(false, i)) continue;
      TensorSource source;
      if (!Sized(&taps[i]) || !SourceOf(taps[i], &source)) {
        opened.producer->Abandon();
        return Failed(R2CC_OBSERVE_INVALID, "a tensor has at most 9 dimensions");
      }
      if (!opened.producer->CopyLate(i, source, &error)) return Failed(R2CC_OBSERVE_INVALID, error);
    }
    return opened.producer->Finish(&error) ? 0 : Failed(R2CC_OBSERVE_INVALID, error);
  });
}

int r2cc_observe_must_hold(r2cc_observe_producer* producer, uint32_t layout, int* must) {
  return With(producer, [&](Opened& opened) {
    if (must == nullptr) return Failed(R2CC_OBSERVE_INVALID, "there is no place for the answer");
    *must = opened.producer->MustHold(layout) ? 1 : 0;
    return 0;
  });
}

int r2cc_observe_hold(r2cc_observe_producer* producer, uint32_t layout, uint64_t phase, const r2cc_observe_tensor* tags, uint64_t tag_count,
                      const r2cc_observe_tensor* taps, uint64_t tap_count, uint64_t* id) {
  return With(producer, [&](Opened& opened) {
    if (id == nullptr || tag_count > kTagsMax || tap_count > kTapsMax || (tag_count != 0 && tags == nullptr) ||
        (tap_count != 0 && taps == nullptr) || (phase != R2CC_OBSERVE_DECODE && phase != R2CC_OBSERVE_PREFILL))
      return Failed(R2CC_OBSERVE_INVALID, "a step has at most 64 tags and 4096 taps, and one phase");
    std::vector<TensorSource> sources(tag_count + tap_count);
    for (uint64_t i = 0; i < sources.size(); ++i) {
      const r2cc_observe_tensor& tensor = i < tag_count ? tags[i] : taps[i - tag_count];
      if (!Sized(&tensor) || !SourceOf(tensor, &sources[i])) return Failed(R2CC_OBSERVE_INVALID, "a tensor has at most 9 dimensions");
    }
    std::string error;
    const std::span<const TensorSource> all(sources);
    return opened.producer->Hold(layout, static_cast<Phase>(phase), all.first(tag_count), all.subspan(tag_count), id, &error)
               ? 0
               : Failed(R2CC_OBSERVE_INVALID, error);
  });
}

int r2cc_observe_released(r2cc_observe_producer* producer, uint64_t* id) {
  return With(producer, [&](Opened& opened) {
    if (id == nullptr) return Failed(R2CC_OBSERVE_INVALID, "there is no place for the answer");
    *id = opened.producer->released();
    return 0;
  });
}

int r2cc_observe_abandon(r2cc_observe_producer* producer) {
  return With(producer, [&](Opened& opened) {
    opened.producer->Abandon();
    return 0;
  });
}

int r2cc_observe_hash(r2cc_observe_producer* producer, const r2cc_observe_tensor* tensor, uint8_t dtype, uint64_t* hash) {
  return With(producer, [&](Opened& opened) {
    TensorSource source;
    if (!Sized(tensor) || hash == nullptr || dtype >= static_cast<uint8_t>(Dtype::kStats) || !SourceOf(*tensor, &source))
      return Failed(R2CC_OBSERVE_INVALID, "a tensor has at most 9 dimensions");
    // Its first dimension as rows: one loop more than a row has.
    const bool has_rows = !source.shape.empty();
    const Tap tap{"tensor", Operator::kHash, static_cast<Dtype>(dtype),
                  0,        has_rows,        {source.shape.begin() + (has_rows ? 1 : 0), source.shape.end()}};
    TapWork work;
    std::string error;
    if (!MakeTapWork(tap, reinterpret_cast<uint64_t>(source.data), source.shape, source.strides, &work, &error) ||
        !opened.producer->Hash(work, hash, &error))
      return Failed(R2CC_OBSERVE_INVALID, error);
    return 0;
  });
}

int r2cc_observe_stream(r2cc_observe_producer* producer, uint64_t stream) {
  return With(producer, [&](Opened& opened) {
    opened.producer->SetStream(stream);
    return 0;
  });
}

int r2cc_observe_set(r2cc_observe_producer* producer, uint64_t groups) {
  return With(producer, [&](Opened& opened) {
    opened.producer->SetGroups(groups);
    return 0;
  });
}

int r2cc_observe_counters(r2cc_observe_producer* producer, r2cc_observe_counts* counts) {
  return With(producer, [&](Opened& opened) {
    if (!Sized(counts)) return Failed(R2CC_OBSERVE_INVALID, "the counts are not those of this release");
    CopyCounts(opened.producer->counts(), opened.producer->cut_off(), opened.files == nullptr ? 0 : opened.files->lost(), counts);
    return 0;
  });
}

int r2cc_observe_flush(r2cc_observe_producer* producer, uint64_t timeout_ns) {
  return With(producer, [&](Opened& opened) {
    std::string error;
    if (!opened.producer->Flush(static_cast<r2cc::Nanos>(timeout_ns), &error)) return Failed(R2CC_OBSERVE_TIMEOUT, error);
    if (opened.files == nullptr || opened.files->Flush(static_cast<r2cc::Nanos>(timeout_ns))) return 0;
    const std::string why = opened.files->LastError();
    return Failed(R2CC_OBSERVE_TIMEOUT, why.empty() ? "the files are not written yet" : why);
  });
}

int r2cc_observe_close(r2cc_observe_producer* producer) {
  const int code = With(producer, [&](Opened& opened) {
    opened.producer->Close();
    opened.files.reset();
    return 0;
  });
  // A child leaves to its parent what is the parent's.
  if (code == 0) delete producer;
  return code;
}

}  // extern "C"
