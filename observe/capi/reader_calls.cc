// The reader's half of the C interface.
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "observe/capi/guard.h"
#include "observe/capi/observe.h"
#include "observe/ring/ring_reader.h"
#include "observe/ring/run_memory.h"

using namespace r2cc::observe;  // NOLINT

struct r2cc_observe_reader {
  std::unique_ptr<RunMemory> memory;
  std::unique_ptr<RingReader> reader;
  FoundRun found;
  RecordView view;
  bool has_view = false;
};

namespace r2cc::observe {
namespace {

// A process id may have gone to another process: then the run looks alive until that one ends.
bool Alive(uint64_t pid) { return pid != 0 && pid <= INT32_MAX && (kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM); }

template <typename Body>
int With(r2cc_observe_reader* reader, Body body) {
  return Guarded([&] { return reader == nullptr ? Failed(R2CC_OBSERVE_INVALID, "there is no reader") : body(); });
}

void Describe(const FoundRun& found, RunMemory* memory, r2cc_observe_run* run) {
  *run = {};
  run->bytes = sizeof(*run);
  run->id = found.id;
  run->pid = found.producer_pid;
  run->holder_pid = static_cast<uint64_t>(found.holder_pid);
  run->rank = found.rank;
  run->alive = Alive(found.producer_pid) ? 1 : 0;
  std::memcpy(run->run, found.run.data(), std::min(found.run.size(), sizeof(run->run) - 1));
  const ControlMemory* const control = memory->control();
  const RingReader reader(control, memory->ring(), nullptr, 0);
  run->life = static_cast<uint64_t>(reader.life());
  run->ring_bytes = memory->ring().size();
  const std::string cause = reader.Cause();
  std::memcpy(run->cause, cause.data(), std::min(cause.size(), sizeof(run->cause) - 1));
  const Counts counts{LoadRelaxed(&control->records), LoadRelaxed(&control->dropped_device), LoadRelaxed(&control->dropped_host),
                      LoadRelaxed(&control->unwanted), 0};
  CopyCounts(counts, LoadRelaxed(&control->cut_off), 0, &run->counts);
}

}  // namespace
}  // namespace r2cc::observe

extern "C" {

int r2cc_observe_find(const char* run, r2cc_observe_run* found, uint64_t most, uint64_t* count) {
  return Guarded([&] {
    if (count == nullptr || (most != 0 && found == nullptr)) return Failed(R2CC_OBSERVE_INVALID, "there is no place for what is found");
    *count = 0;
    std::string error;
    for (const FoundRun& one : FindRuns(run == nullptr ? "" : run, "/proc")) {
      const std::unique_ptr<RunMemory> memory = OpenFound(one, "/proc", &error);
      if (memory == nullptr) continue;
      if (*count < most) {
        if (!Sized(&found[*count])) return Failed(R2CC_OBSERVE_INVALID, "the runs are not those of this release");
        Describe(one, memory.get(), &found[*count]);
      }
      ++*count;
    }
    return 0;
  });
}

int r2cc_observe_reader_open(const char* run, uint64_t id, r2cc_observe_reader** reader) {
  return Guarded([&] {
    if (run == nullptr || reader == nullptr) return Failed(R2CC_OBSERVE_INVALID, "there is no run");
    std::string error = CheckRunName(run);
    if (!error.empty()) return Failed(R2CC_OBSERVE_INVALID, error);
    std::vector<FoundRun> fits;
    for (const FoundRun& one : FindRuns(run, "/proc"))
      if (id == 0 || one.id == id) fits.push_back(one);
    const std::string name = std::string("run ") + run;
    if (fits.empty())
      return Failed(R2CC_OBSERVE_NOT_HERE, name + ": no process of this user has it; it has ended, or runs in another PID namespace");
    if (fits.size() > 1) return Failed(R2CC_OBSERVE_INVALID, name + " has " + std::to_string(fits.size()) + " producers: say which rank");
    auto made = std::make_unique<r2cc_observe_reader>();
    made->found = fits[0];
    made->memory = OpenFound(fits[0], "/proc", &error);
    if (made->memory == nullptr) return Failed(R2CC_OBSERVE_SYSTEM, name + ": " + error);
    made->reader = std::make_unique<RingReader>(made->memory->control(), made->memory->ring(), made->memory->cursors(),
                                                static_cast<uint64_t>(getpid()));
    *reader = made.release();
    return 0;
  });
}

int r2cc_observe_reader_register(r2cc_observe_reader* reader) {
  return With(reader, [&] {
    return reader->reader->Register()
               ? 0
               : Failed(R2CC_OBSERVE_NOT_HERE, "16 readers are registered already, or its cursors cannot be written");
  });
}

int r2cc_observe_next(r2cc_observe_reader* reader, r2cc_observe_record* record) {
  return With(reader, [&] {
    if (!Sized(record)) return Failed(R2CC_OBSERVE_INVALID, "the record is not that of this release");
    *record = {};
    record->bytes = sizeof(*record);
    reader->has_view = false;
    // Before the look: what it had committed when it died is read.
    const bool gone = !Alive(reader->found.producer_pid);
    if (gone) reader->reader->AssumeClosed();
    RecordView& view = reader->view;
    switch (reader->reader->Next(&view)) {
      case RingReader::Found::kBroken: return Failed(R2CC_OBSERVE_BROKEN, "run " + reader->found.run + ": " + reader->reader->error());
      case RingReader::Found::kNothing: record->found = R2CC_OBSERVE_NOTHING; return 0;
      case RingReader::Found::kEnd:
        record->found = R2CC_OBSERVE_END;
        record->step = view.header.step;
        CopyCounts(view.gap, 0, 0, &record->gap);
        return 0;
      case RingReader::Found::kRecord: break;
    }
    reader->has_view = true;
    record->found = R2CC_OBSERVE_RECORD;
    record->step = view.header.step;
    record->sequence = view.header.sequence;
    record->groups = view.header.groups;
    record->time_ns = view.header.time_ns;
    record->arrival_ns = view.arrival_ns;
    record->layout = view.header.layout;
    record->rows = view.header.rows;
    record->rank = view.layout->rank;
    record->tags = view.layout->tags.size();
    record->taps = view.layout->taps.size();
    CopyCounts(view.gap, 0, 0, &record->gap);
    record->data = view.bytes.data();
    record->data_bytes = view.bytes.size();
    return 0;
  });
}

int r2cc_observe_record_tap(r2cc_observe_reader* reader, int is_tag, uint64_t index, r2cc_observe_view* view) {
  return With(reader, [&] {
    if (!Sized(view) || !reader->has_view) return Failed(R2CC_OBSERVE_INVALID, "there is no record");
    const std::vector<Tap>& taps = is_tag != 0 ? reader->view.layout->tags : reader->view.layout->taps;
    if (index >= taps.size()) return Failed(R2CC_OBSERVE_NOT_HERE, "the record has " + std::to_string(taps.size()) + " of them");
    const Tap& tap = taps[index];
    const Slot& slot = (is_tag != 0 ? reader->view.slots->tags : reader->view.slots->taps)[index];
    *view = {};
    view->bytes = sizeof(*view);
    view->name = tap.name.c_str();
    view->data = slot.offset == 0 ? nullptr : reader->view.bytes.data() + slot.offset;
    view->data_bytes = slot.bytes;
    const std::vector<uint64_t> shape = tap.RecordShape(reader->view.header.rows);
    view->dimensions = static_cast<uint32_t>(shape.size());
    for (size_t i = 0; i < shape.size(); ++i) view->shape[i] = shape[i];
    view->op = static_cast<uint8_t>(tap.op);
    view->dtype = static_cast<uint8_t>(tap.RecordDtype());
    view->group = tap.group;
    view->rows = tap.rows ? 1 : 0;
    return 0;
  });
}

int r2cc_observe_release_record(r2cc_observe_reader* reader) {
  return With(reader, [&] {
    reader->has_view = false;
    return reader->reader->Release()
               ? 0
               : Failed(R2CC_OBSERVE_CUT_OFF, "cut off: this reader was slower than its time-out while the ring was full");
  });
}

int r2cc_observe_reader_counts(r2cc_observe_reader* reader, r2cc_observe_run* run) {
  return With(reader, [&] {
    if (!Sized(run)) return Failed(R2CC_OBSERVE_INVALID, "the run is not that of this release");
    Describe(reader->found, reader->memory.get(), run);
    CopyCounts(reader->reader->counts(), reader->reader->times_cut_off(), 0, &run->counts);
    return 0;
  });
}

int r2cc_observe_reader_close(r2cc_observe_reader* reader) {
  return With(reader, [&] {
    delete reader;
    return 0;
  });
}

}  // extern "C"
