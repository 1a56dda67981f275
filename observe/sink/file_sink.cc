#include "observe/sink/file_sink.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/core/hash.h"

namespace r2cc::observe {
namespace {

// Between two looks at a ring that gives no event.
constexpr Nanos kLookAgain = 2 * kNanosPerMs;

std::string Because(const std::string& what) { return what + ": " + std::strerror(errno); }

bool WriteAll(int fd, const void* data, size_t bytes) {
  for (auto at = static_cast<const char*>(data); bytes > 0;) {
    const ssize_t written = write(fd, at, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += written;
    bytes -= static_cast<size_t>(written);
  }
  return true;
}

bool SyncFolder(const std::string& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool synced = fsync(fd) == 0;
  close(fd);
  return synced;
}

std::string StemOf(RunMemory* memory) { return memory->run() + "-rank" + std::to_string(memory->control()->rank); }

}  // namespace

std::unique_ptr<FileSink> FileSink::Start(const FileOptions& options, RunMemory* memory, const Clock* clock, std::string* error) {
  if (mkdir(options.folder.c_str(), 0700) != 0 && errno != EEXIST) {
    *error = Because("folder " + options.folder + " cannot be made");
    return nullptr;
  }
  const std::string path = options.folder + "/" + StemOf(memory) + ".manifest";
  const int manifest = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
  if (manifest < 0) {
    *error = errno == EEXIST ? path + " is there already: another run of that name and rank; files are never changed" : Because(path);
    return nullptr;
  }
  const std::string first =
      "{\"r2cc_taps\": 1, \"run\": " + JsonText(memory->run()) + ", \"rank\": " + std::to_string(memory->control()->rank) + "}\n";
  if (!WriteAll(manifest, first.data(), first.size()) || fsync(manifest) != 0 || !SyncFolder(options.folder)) {
    *error = Because(path);
    unlink(path.c_str());
    close(manifest);
    return nullptr;
  }
  return std::unique_ptr<FileSink>(new FileSink(options, memory, clock, manifest));
}

FileSink::FileSink(const FileOptions& options, RunMemory* memory, const Clock* clock, int manifest)
    : options_(options),
      clock_(clock),
      stem_(StemOf(memory)),
      manifest_(manifest),
      reader_(memory->control(), memory->ring(), memory->cursors(), static_cast<uint64_t>(getpid())),
      segment_(memory->run()) {
  reader_.Register();
  // Signals are the application's.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), "r2cc-taps-files");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

FileSink::~FileSink() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
  close(manifest_);
}

bool FileSink::Flush(Nanos timeout) {
  const MutexLock lock(mutex_);
  const uint64_t wanted = ++flushes_wanted_;
  const uint64_t lost = lost_;
  changed_.NotifyAll();
  return changed_.WaitFor(mutex_, timeout, [&]() R2CC_REQUIRES(mutex_) { return flushes_done_ >= wanted; }) && lost_ == lost;
}

std::string FileSink::LastError() {
  const MutexLock lock(mutex_);
  return last_error_;
}

void FileSink::Run() {
  for (bool more = true; more;) {
    uint64_t flush, flushed;
    bool stop;
    {
      const MutexLock lock(mutex_);
      flush = flushes_wanted_;
      flushed = flushes_done_;
      stop = stop_;
    }
    more = ReadSome() && !stop;
    const bool old = !segment_.empty() && clock_->Now() - segment_since_ >= options_.segment_age;
    if (flush != flushed || old || !more) WriteSegment();
    const MutexLock lock(mutex_);
    flushes_done_ = flush;
    changed_.NotifyAll();
    if (more && !stop_ && flushes_wanted_ == flush) changed_.WaitFor(mutex_, kLookAgain);
  }
  if (!pending_lines_.empty()) AppendLine("");
}

bool FileSink::ReadSome() {
  for (;;) {
    if (!reader_.registered()) reader_.Register();
    RecordView view;
    switch (reader_.Next(&view)) {
      case RingReader::Found::kRecord: {
        if (segment_.empty()) segment_since_ = clock_->Now();
        segment_.Add(view);
        // Bytes that were read in place are right only now. The producer is this process: it has cut us off because the disk is slow.
        if (!reader_.Release()) {
          Refused("cut off while a record was copied: the disk is slower than the model");
          segment_.Undo();
          ++lost_;
        }
        if (segment_.bytes() >= options_.segment_bytes) WriteSegment();
        break;
      }
      case RingReader::Found::kNothing: return true;
      case RingReader::Found::kBroken: Refused(reader_.error()); return true;
      case RingReader::Found::kEnd: {
        WriteSegment();
        const Counts& counts = reader_.counts();
        AppendLine("{\"end\": " + JsonText(reader_.Cause()) + ", \"steps\": " + std::to_string(counts.Steps()) +
                   ", \"records\": " + std::to_string(counts.records) + ", \"gaps\": [" +
                   (view.gap.Steps() == 0 ? "" : GapText(view.header.step - view.gap.Steps(), view.gap)) + "]}\n");
        return false;
      }
    }
  }
}

void FileSink::WriteSegment() {
  if (segment_.empty()) return;
  char number[24];
  std::snprintf(number, sizeof(number), "-%06llu", static_cast<unsigned long long>(segments_));
  const std::string name = stem_ + number + ".safetensors";
  const std::string path = options_.folder + "/" + name, temporary = options_.folder + "/." + name + ".part";
  const std::string head = segment_.Head();
  const std::vector<uint8_t>& data = segment_.data();
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  bool written = fd >= 0 && WriteAll(fd, head.data(), head.size()) && WriteAll(fd, data.data(), data.size()) && fsync(fd) == 0;
  std::string why = written ? "" : Because(temporary);
  if (fd >= 0) close(fd);
  if (written && (rename(temporary.c_str(), path.c_str()) != 0 || !SyncFolder(options_.folder))) {
    why = Because(path);
    written = false;
  }
  if (written) {
    ++segments_;
    const uint32_t sum = Crc32c(data.data(), data.size(), Crc32c(head.data(), head.size()));
    AppendLine(segment_.ManifestLine(name, head.size() + data.size(), sum));
  } else {
    unlink(temporary.c_str());
    lost_ += segment_.records();
    AppendLine(segment_.LostLine(why));
    Refused(why);
  }
  segment_.Clear();
}

void FileSink::AppendLine(const std::string& line) {
  struct stat status {};
  pending_lines_ += line;
  if (fstat(manifest_, &status) == 0 && WriteAll(manifest_, pending_lines_.data(), pending_lines_.size()) && fsync(manifest_) == 0) {
    pending_lines_.clear();
    return;
  }
  Refused(Because("the manifest of " + stem_));
  // Half a line is none: it is cut off and comes with the next one.
  if (ftruncate(manifest_, status.st_size) != 0) Refused(Because("the manifest of " + stem_));
}

void FileSink::Refused(const std::string& why) {
  const MutexLock lock(mutex_);
  if (last_error_ != why) std::fprintf(stderr, "r2cc-observe: %s: %s\n", stem_.c_str(), why.c_str());
  last_error_ = why;
}

}  // namespace r2cc::observe
