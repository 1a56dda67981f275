// Writes a producer's records to files: segments in the format of safetensors, whole or not there, and a manifest that names them, with
// what is missing. A registered reader like any other; it has a thread of its own.
#ifndef R2CC_OBSERVE_SINK_FILE_SINK_H_
#define R2CC_OBSERVE_SINK_FILE_SINK_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "base/core/clock.h"
#include "base/core/mutex.h"
#include "observe/ring/ring_reader.h"
#include "observe/ring/run_memory.h"
#include "observe/sink/segment.h"

namespace r2cc::observe {

struct FileOptions {
  std::string folder;
  uint64_t segment_bytes = uint64_t{64} << 20;
  Nanos segment_age = 10 * kNanosPerSecond;  // what came is in a file after so long at most
};

class FileSink {
 public:
  // Makes the manifest, which must not be there yet. Null and one line: the folder cannot be written. `memory` and `clock` outlive it.
  static std::unique_ptr<FileSink> Start(const FileOptions& options, RunMemory* memory, const Clock* clock, std::string* error);
  // Writes the ring's content, then the counts, if the producer is closed by then. Waits for the disk.
  ~FileSink();

  // All that was committed before the call is in files. False: not within the time, or it is lost.
  bool Flush(Nanos timeout);
  // Records that no file has because the disk refused, and the latest line with the cause.
  uint64_t lost() const { return lost_; }
  std::string LastError();

 private:
  FileSink(const FileOptions& options, RunMemory* memory, const Clock* clock, int manifest);

  void Run();
  // False: nothing more comes.
  bool ReadSome();
  void WriteSegment();
  void AppendLine(const std::string& line);
  void Refused(const std::string& why);

  const FileOptions options_;
  const Clock* clock_;
  const std::string stem_;
  int manifest_;
  RingReader reader_;
  SegmentBuilder segment_;
  Nanos segment_since_ = 0;
  uint64_t segments_ = 0;
  std::string pending_lines_;  // that the disk did not take yet
  std::atomic<uint64_t> lost_{0};

  Mutex mutex_;
  CondVar changed_;
  bool stop_ R2CC_GUARDED_BY(mutex_) = false;
  uint64_t flushes_wanted_ R2CC_GUARDED_BY(mutex_) = 0;
  uint64_t flushes_done_ R2CC_GUARDED_BY(mutex_) = 0;
  std::string last_error_ R2CC_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace r2cc::observe

#endif  // R2CC_OBSERVE_SINK_FILE_SINK_H_
