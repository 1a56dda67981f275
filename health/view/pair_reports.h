// Packs what a node reports about its rail pairs: every daemon keeps the reports of all nodes, a hundred thousand with a thousand nodes.
#ifndef R2CC_HEALTH_VIEW_PAIR_REPORTS_H_
#define R2CC_HEALTH_VIEW_PAIR_REPORTS_H_

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>

#include "health/evidence/evidence.h"
#include "health/evidence/pair_state.h"

namespace r2cc::health {

// The result of the node's own probes on one of its rail pairs; see PairVerdict.
struct PairReport {
  std::string nic;
  NicKey peer;
  bool silent = false;
  bool broken = false;                        // by the verdict on it: only the path between the two is lost
  PairVerdict large = PairVerdict::kUnknown;  // whether large packets pass, where it is not silent

  friend bool operator==(const PairReport&, const PairReport&) = default;
};

// A sequence of them, to append to and to read from its beginning: about 20 bytes a pair. Values as vectors are.
class PairReports {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = PairReport;
    using difference_type = std::ptrdiff_t;
    using pointer = const PairReport*;
    using reference = PairReport;

    PairReport operator*() const;
    // Parts of the report: quicker if few of many are searched. The name is valid as long as the sequence.
    bool silent() const;
    bool large_lost() const;
    std::string_view peer_node() const;
    Iterator& operator++();
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    friend class PairReports;
    explicit Iterator(const char* at) : at_(at) {}
    const char* at_;
  };

  PairReports() = default;
  PairReports(std::initializer_list<PairReport> reports) {
    for (const PairReport& report : reports) push_back(report);
  }

  // REQUIRES: no name in it is longer than 255 bytes.
  void push_back(const PairReport& report);
  // Gives back what appending took in advance.
  void ShrinkToFit() { bytes_.shrink_to_fit(); }

  // Those that push_back makes invalid.
  Iterator begin() const { return Iterator(bytes_.data()); }
  Iterator end() const { return Iterator(bytes_.data() + bytes_.size()); }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // How many are silent, broken, and lose large packets: mostly none, and nobody need look for them.
  size_t silent() const { return silent_; }
  size_t broken() const { return broken_; }
  size_t large_lost() const { return large_lost_; }

  friend bool operator==(const PairReports&, const PairReports&) = default;

 private:
  std::string bytes_;  // of each: flags, then three names, each after its length
  size_t size_ = 0;
  size_t silent_ = 0;
  size_t broken_ = 0;
  size_t large_lost_ = 0;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_VIEW_PAIR_REPORTS_H_
