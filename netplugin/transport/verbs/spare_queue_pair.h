// The queue pair that the next incarnation of one end of a link takes. It is made before the one of the present incarnation is destroyed,
// so that its number certainly is another: packets that are late in the fabric find nobody. Any thread; what may block says so.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_SPARE_QUEUE_PAIR_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_SPARE_QUEUE_PAIR_H_

#include <memory>
#include <mutex>

#include "netplugin/transport/verbs/queue_pair.h"

namespace r2cc::net::verbs {

class SpareQueuePair {
 public:
  // There is one for the port of the device after this, unless the device has none left, or nobody wants it. MAY BLOCK.
  void Make(const std::shared_ptr<Device>& device, const QueuePairOptions& options);
  // Null: there is none. What is there of another port is ended. MAY BLOCK.
  std::unique_ptr<QueuePair> Take(const Device* device, uint8_t port);
  // Nobody takes one any more. What is there ends in its device's control thread.
  void End();

 private:
  std::mutex mutex_;
  std::unique_ptr<QueuePair> pair_;
  std::shared_ptr<Device> device_;  // the pair's
  bool over_ = false;
};

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_SPARE_QUEUE_PAIR_H_
