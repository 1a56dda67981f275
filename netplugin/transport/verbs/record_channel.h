// The records of one queue pair, both ways: those that go into the other end's memory, and those that came into the own one. See
// grant_ring.h. With the peer's lock.
//
// Credit goes with every record. Where none is due, the status slot says it: no receive of the other end is used up for that, so nobody
// waits for credit to give credit.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_RECORD_CHANNEL_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_RECORD_CHANNEL_H_

#include <cstdint>
#include <span>

#include "netplugin/transport/verbs/grant_ring.h"
#include "netplugin/transport/verbs/queue_pair.h"

namespace r2cc::net::verbs {

class RecordChannel {
 public:
  // `pair` is created, and outlives this. `tag` is the session's.
  RecordChannel(QueuePair* pair, uint32_t tag) : pair_(pair), tag_(tag) {}

  // So many records may be written: the other end has read what lay there.
  uint32_t free() const { return kSlots - (written_ - read_there_); }
  // In one list; number and credit are filled in. As many as there is room for in the send queue: `*written`. 0 or an errno.
  // REQUIRES: no more than free().
  int Write(std::span<Record> records, size_t* written);
  // Says what the other end may soon wait for: how much it may use up, how much was read of its records. 0 or an errno.
  int ReturnCredit();

  enum class Came {
    kNothing,
    kRecord,   // Took() it, or it is there again the next time
    kGarbled,  // it was written over before it was read: no honest end does that
  };
  // The next record that came, if any; and takes the credit that came beside it.
  Came Next(Record* record);
  void Took(const Record& record);

 private:
  Record Status(uint32_t number);
  // The other end's word on what it has posted and read.
  void Credit(const Record& record);
  int Post(std::span<const RecordData> data, std::span<const uint32_t> places, bool signaled);

  QueuePair* const pair_;
  const uint32_t tag_;
  uint32_t written_ = 0, read_there_ = 0;  // of our records, by their numbers
  uint32_t read_ = 0, read_told_ = 0;      // of the other end's
  uint32_t status_written_ = 0, status_read_ = 0;
  uint64_t status_posted_ = 0;  // sequence of the last status; it is not written over before it is complete, as writes may overtake
};

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_RECORD_CHANNEL_H_
