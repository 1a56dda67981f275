#include "tests/observe/run.h"

#include <memory>
#include <random>
#include <vector>

#include "observe/ring/ring_reader.h"
#include "tests/observe/lane.h"

namespace r2cc::observe {
namespace {

enum class Habit { kQuick, kSlow, kStalls, kCopies, kLies };

struct ReaderActor {
  Lane* lane;
  Habit habit;
  std::unique_ptr<RingReader> reader;
  RecordView view;
  bool holds = false;  // a record in place
  bool ended = false;
  uint64_t records = 0;
};

struct FalseReport {
  Lane* lane;
  uint64_t lied, oldest;
};

class World {
 public:
  explicit World(uint64_t seed)
      : random_(seed), device_(2 * Lane::kWords + 64, 2, random_()), engine_(&device_, &random_), background_([this] {
          if (!in_background_ && random_() % 24 == 0) Background();
        }) {
    const size_t lanes = 1 + random_() % 2;
    const Shared shared{&device_, &engine_, &random_, &background_, 0};
    for (size_t i = 0; i < lanes; ++i)
      lanes_.push_back(std::make_unique<Lane>(shared, static_cast<uint16_t>(i), 512 + i * Lane::kWords * 8));
    for (const auto& lane : lanes_)
      for (uint64_t i = random_() % 4; i > 0; --i) {
        ReaderActor actor;
        actor.lane = lane.get();
        actor.habit = static_cast<Habit>(random_() % 5);
        actor.reader = std::make_unique<RingReader>(lane->control(), lane->ring(), lane->cursors(), i);
        if (actor.habit != Habit::kCopies) actor.reader->Register();
        readers_.push_back(std::move(actor));
      }
    fails_ = random_() % 40 == 0;
    pump_laziness_ = 1 + random_() % 12;
  }

  RunResult Run() {
    bool running = true;
    while (running && failure_.empty()) {
      running = false;
      for (uint64_t turns = 1 + random_() % 4; turns > 0; --turns) Background();
      Lane* const lane = lanes_[random_() % lanes_.size()].get();
      if (!lane->Step())
        for (const auto& other : lanes_) running = other->Step() || running;
      else
        running = true;
    }
    for (int tries = 0; failure_.empty() && !AllDrained(); ++tries) {
      Background();
      if (tries > 200'000) failure_ = "the copy threads come to no end";
    }
    for (const auto& lane : lanes_) lane->Finish();
    for (ReaderActor& reader : readers_)
      for (int tries = 0; failure_.empty() && !reader.ended; ++tries) {
        Read(&reader);
        if (tries > 10'000) failure_ = "a reader comes to no end";
      }
    if (failure_.empty()) CheckCounts();
    return Result();
  }

 private:
  bool AllDrained() const {
    for (const auto& lane : lanes_)
      if (!lane->Drained()) return false;
    return true;
  }

  // Whatever else goes on while a block does one operation.
  void Background() {
    in_background_ = true;
    ++now_;
    switch (random_() % 8) {
      case 0:
      case 1: device_.Drain(); break;
      case 2:
      case 3:
        engine_.Step();
        if (fails_ && random_() % 64 == 0) engine_.FailOne();
        break;
      case 4:
      case 5:
        if (random_() % pump_laziness_ == 0) lanes_[random_() % lanes_.size()]->TurnPump(now_);
        break;
      default:
        if (!readers_.empty()) {
          ReaderActor& reader = readers_[random_() % readers_.size()];
          const uint64_t chance = reader.habit == Habit::kQuick || reader.habit == Habit::kCopies ? 1
                                  : reader.habit == Habit::kSlow                                  ? 8
                                                                                                  : 64;
          if (random_() % chance == 0) Read(&reader);
        }
    }
    in_background_ = false;
  }

  void Read(ReaderActor* actor) {
    if (actor->ended) return;
    RingReader& reader = *actor->reader;
    if (actor->holds) {
      actor->holds = false;
      const std::string wrong = actor->lane->Check(actor->view.header, *actor->view.layout, *actor->view.slots, actor->view.bytes.data());
      // It may have been overwritten if it was cut off, and only then.
      if (reader.Release() && !wrong.empty()) failure_ = "read in place: " + wrong;
      return;
    }
    if (actor->habit == Habit::kLies && reader.registered() && random_() % 8 == 0) {
      Lie(actor->lane);
      return;
    }
    if (!reader.registered() && actor->habit != Habit::kCopies) reader.Register();
    const bool registered = reader.registered();
    switch (reader.Next(&actor->view)) {
      case RingReader::Found::kRecord: {
        ++actor->records;
        // In place it is looked at when it is released, which is later.
        actor->holds = registered && reader.registered();
        if (actor->holds) break;
        const std::string wrong = actor->lane->Check(actor->view.header, *actor->view.layout, *actor->view.slots, actor->view.bytes.data());
        if (!wrong.empty()) failure_ = "copied: " + wrong;
        break;
      }
      case RingReader::Found::kNothing: break;
      case RingReader::Found::kBroken: failure_ = "broken: " + reader.error(); break;
      case RingReader::Found::kEnd: actor->ended = true; break;
    }
  }

  // Its cursor says that it has read what is not there yet.
  void Lie(Lane* lane) {
    for (size_t i = 0; i < kReadersMax; ++i) {
      uint64_t& word = lane->cursors()->cursors[i].word;
      if (word == 0) continue;
      word = CursorWord(lane->control()->generation[i], lane->control()->head + (uint64_t{1} << 20));
      lies_.push_back({lane, lane->control()->lied, lane->control()->oldest});
      return;
    }
  }

  void CheckCounts() {
    for (const auto& lane : lanes_) {
      if (!lane->GuardsStand()) failure_ = "written beyond the ring";
      if (!lane->pump().failure().empty()) {
        if (!fails_) failure_ = "a producer failed: " + lane->pump().failure();
        continue;
      }
      const Counts& counts = lane->pump().counts();
      if (counts.Steps() != lane->steps())
        failure_ = std::to_string(lane->steps()) + " steps, " + std::to_string(counts.Steps()) + " of them counted";
    }
    for (const ReaderActor& actor : readers_) {
      if (!actor.lane->pump().failure().empty()) continue;
      Counts counts = actor.reader->counts();
      if (counts.records != actor.records) failure_ = "a reader's records are not those that it got";
      counts.records += counts.missed;
      counts.missed = 0;
      if (counts != actor.lane->pump().counts()) failure_ = "a reader's counts are not the producer's";
      if (actor.habit == Habit::kQuick && readers_.size() == 1 && actor.reader->times_cut_off() == 0 && actor.reader->counts().missed != 0)
        failure_ = "a registered reader that was not cut off missed records";
    }
    // Whoever frees room looks at all cursors.
    for (const FalseReport& lie : lies_)
      if (lie.lane->control()->oldest > lie.oldest && lie.lane->control()->lied == lie.lied) failure_ = "a lie was not seen";
  }

  RunResult Result() const {
    RunResult result;
    result.failure = failure_;
    for (const auto& lane : lanes_) {
      const Counts& counts = lane->pump().counts();
      result.steps += lane->steps();
      result.dropped_device += counts.dropped_device;
      result.dropped_host += counts.dropped_host;
      result.unwanted += counts.unwanted;
      result.wraps += lane->control()->head / lane->ring().size();
      result.cut_off += lane->control()->cut_off;
      result.lied += lane->control()->lied;
      result.stubs += lane->stubs();
      result.waited += lane->waited();
      result.at_points += lane->at_points();
      result.flat_taps += lane->flat_taps();
    }
    for (const ReaderActor& reader : readers_) result.records_read += reader.records;
    result.failed_copies = engine_.failed();
    return result;
  }

  std::mt19937_64 random_;
  FakeGpu device_;
  FakeCopyEngine engine_;
  std::function<void()> background_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<ReaderActor> readers_;
  std::vector<FalseReport> lies_;
  bool in_background_ = false, fails_ = false;
  uint64_t pump_laziness_ = 1;
  Nanos now_ = 1;
  std::string failure_;
};

}  // namespace

RunResult RunSeed(uint64_t seed) {
  World world(seed);
  return world.Run();
}

}  // namespace r2cc::observe
