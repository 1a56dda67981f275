// Writes one queue pair's records into the other end's memory, and reads those that came into this end's. See grant_ring.h. With the peer's
// lock.
//
// Credit goes with every record. If no record is due, the status slot carries it: that uses up no receive of the other end, so no end waits
// for credit to give credit.
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

  // How many records may be written: the other end has read those slots.
  uint32_t free() const { return kSlots - (written_ - read_there_); }
  // Writes them in one list, with number and credit filled in. `*written`: how many the send queue had room for. 0 or an errno. REQUIRES:
  // no more than free().
  int Write(std::span<Record> records, size_t* written);
  // Sends what the other end may soon wait for: how much it may use up, and how many of its records were read. 0 or an errno.
  int ReturnCredit();

  enum class Came {
    kNothing,
    kRecord,   // then call Took(), or the same record is returned the next time
    kGarbled,  // it was overwritten before it was read, which no correct end does
  };
  // The next record that came, if any; also takes the credit in the status slot.
  Came Next(Record* record);
  void Took(const Record& record);

 private:
  Record Status(uint32_t number);
  // The other end's counts of what it has posted and read.
  void Credit(const Record& record);
  int Post(std::span<const RecordData> data, std::span<const uint32_t> places, bool signaled);

  QueuePair* const pair_;
  const uint32_t tag_;
  uint32_t written_ = 0, read_there_ = 0;  // of our records, by their numbers
  uint32_t read_ = 0, read_reported_ = 0;  // of the other end's
  uint32_t status_written_ = 0, status_read_ = 0;
  uint64_t status_posted_ = 0;  // sequence of the last status; it is not overwritten before it is complete, because writes may overtake
};

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_RECORD_CHANNEL_H_
