// Defines the interface between peers and transports: what a transport must do, and what it reports to the peer that uses it.
//
// A peer (peer.h) has a session with one other process, and a link for each pair of rails. A link lives in incarnations: each is one
// SendLink at the initiator and one RecvLink at the acceptor, made for it and destroyed after it. A transport makes them. It knows nothing
// of sessions, flows and replays; a peer knows nothing of sockets and queue pairs.
//
// Threads: everything here runs under the lock of the peer and must not block, unless it is marked ANY THREAD. A transport may have
// threads of its own (workers, a control thread, an event reader): they enter by LinkOwner::WithLock() and in no other way.
//
// Order: a link may be destroyed only between two calls into it. So the peer carries out what a session asks for only while no link of it
// is on the stack. A link may call its owner from any method but its constructor, destructor, Close() and Forget().
//
// Reports of a lost rail. The link monitor reports a rail of this process that is down (no carrier, no address) to the peer, and the peer
// closes the rail's links: a transport need not check for that. A link reports by Trouble() what its connection or device reports: a reset,
// an error completion, a device that is gone. The session alone judges silence: a transport never gives up what is only slow. It reports
// what its connections acknowledge (SendLink::Measure), and the session finds those that stall (link/link_progress.h).
//
// The close. After Close() the incarnation makes no call to the owner but LinkClosed(). Close() returns true if at that moment no part of
// the incarnation reads or writes a buffer of a message, and never will. If it returns false, the peer keeps the link, which may still read
// and write what it had begun. LinkClosed(true) follows when it is at rest for good. LinkClosed(false) follows, at most once, when that
// cannot be promised for now; LinkClosed(true) may still come later. Replay of lost chunks rests on this: see link/action.h.
//
// Trust. An Endpoint, of the peer's rail or in a Hello, is bytes that the peer wrote and that only the transport reads: the transport
// checks their length and each field. Frames and chunk headers also come from the peer; the owner of the link checks their content.
//
// Placing. Where the receiving process places (TCP), RecvOwner::Begin() decides before a byte is written, and a refused chunk is not
// written. Where the sender's device places (RDMA), the bytes are there before the owner is asked, and a refusal only detects the error.
// Such a transport:
// - drops what belongs to another incarnation than its own by its name, before it asks the owner;
// - calls Placed(), which ends the process with a line if the chunk went into a message that was reported done;
// - closes an incarnation only when its device cannot place for it any more.
#ifndef R2CC_NETPLUGIN_TRANSPORT_LINKS_H_
#define R2CC_NETPLUGIN_TRANSPORT_LINKS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "base/core/function_ref.h"
#include "netplugin/flow/types.h"
#include "netplugin/link/frame.h"
#include "netplugin/link/link_progress.h"
#include "netplugin/link/remote_regions.h"
#include "netplugin/rails/rails.h"
#include "netplugin/transport/counter.h"
#include "plan/page/ring.h"

namespace r2cc::net {

// One incarnation of one link.
struct LinkName {
  LinkId link = 0;
  Incarnation incarnation = 0;
  uint16_t local_rail = 0;
  uint16_t remote_rail = 0;
  bool home = true;  // it joins rails of the same number; false: a cross-rail link
};

// Identifies a session at both ends. Packets after the greeting carry the tag.
struct SessionKey {
  uint64_t session = 0;
  uint32_t tag = 0;
};

// What a peer publishes to all its links. It changes only between two calls.
struct PeerState {
  bool jobs_thread = false;  // one of the job's own threads holds the lock, and may touch the job's buffers
  bool bulk = false;         // not all messages are small: see WorkloadClassifier
};

// A connection that has greeted this process, before its link takes it. Only its own transport reads it. Its destructor hangs up.
class Connection {
 public:
  virtual ~Connection() = default;
};

class LinkOwner {
 public:
  virtual ~LinkOwner() = default;
  // Keeps the owner alive, for threads of the transport. Null: the owner is ending, and may not be called after the current call. ANY
  // THREAD.
  virtual std::shared_ptr<void> KeepAlive() = 0;
  // A control frame came on the link. Its encoding is valid; its content is not trusted.
  virtual void FrameReceived(const LinkName& name, const Frame& frame) = 0;
  // Hard evidence against the incarnation. A Close() follows, not within this call.
  virtual void Trouble(const LinkName& name, plan::EvidenceCause cause) = 0;
  // See above. Only after a Close() that returned false, and as the link's last call. After Close() returned true the link is gone.
  virtual void LinkClosed(LinkName name, bool ok) = 0;
  // The link has something to do again: it gets Pump(), or ReadMore(), before the lock is released.
  virtual void Ready(const LinkName& name) = 0;
  // ANY THREAD: takes the lock, does what others left to its holder, calls `report`, carries out what follows if `report` returns true,
  // calls `ask`, and releases the lock. `posted`: requests of the job came in. `ask` returns true if the thread comes back at once; until
  // then Close() may have to wait for it. False: the peer is shut, and nothing was called.
  virtual bool WithLock(FunctionRef<bool()> report, FunctionRef<bool(bool posted)> ask) = 0;
};

class SendOwner : public LinkOwner {
 public:
  // For transports whose connections carry no greeting: sends `endpoint` to the other end, on the channels that are there, with the Hello
  // that Open() had. SendLink::Answered() may follow. If the offer is lost, nothing follows, and the next incarnation tries again.
  virtual void Offer(const LinkName& /*name*/, const Endpoint& /*endpoint*/) {}
  // All connections of the incarnation are greeted.
  virtual void Connected(const LinkName& name) = 0;
  // The next chunk for a link that has room. False: there is none, or this link may not carry more at the moment.
  virtual bool Pull(const LinkName& name, Chunk* chunk) = 0;
  // Where a chunk that was just pulled is to be placed, for transports in which the sender places. An eager chunk has no target: the
  // receiver decides where it goes.
  virtual WriteTarget TargetOf(const LinkName& name, const Chunk& chunk) const = 0;
  // False: the message of this half-sent chunk was acknowledged or given up. Its bytes may be gone: report trouble, and do not send it.
  virtual bool Expects(const Chunk& chunk) const = 0;
  // Grants for the flow are still of use. False: the flow is gone.
  virtual bool IsOpen(FlowId /*flow*/) const { return true; }
  // False: the flow is gone, or has failed, as when its receiver has closed it.
  virtual bool MayWrite(FlowId /*flow*/) const { return true; }
  // The copy of an eager message, for a thread that sends it without the lock; null if there is none.
  virtual std::shared_ptr<const std::byte[]> CopyOf(const Chunk& chunk) const = 0;
};

class RecvOwner : public LinkOwner {
 public:
  // False: the incarnation is about to be closed, and nothing more is to be read.
  virtual bool Alive(const LinkName& name) const = 0;
  // A chunk's header came; every field is checked. True: write its bytes to `*destination`, then Finish(); a null destination: drop them.
  // False: the peer broke the protocol; report trouble.
  virtual bool Begin(const LinkName& name, const Chunk& header, std::byte** destination) = 0;
  virtual void Finish(const LinkName& name, const Chunk& header) = 0;
  // Begin() and Finish() for a transport in which the sender places: the bytes are there already. False as above.
  virtual bool Placed(const LinkName& name, const Chunk& header) = 0;
  // For transports in which a chunk names its flow and message only by their low bits: finds the open flow whose number is `slot` modulo
  // `slots`, and the number below which all its messages are placed. False: there is none.
  virtual bool FindFlow(uint32_t /*slot*/, uint32_t /*slots*/, FlowId* /*flow*/, MessageId* /*placed_through*/) const { return false; }
  // A sender may place into a buffer of the flow, or was allowed to and has not yet.
  virtual bool MayBePlaced(FlowId /*flow*/) const { return true; }
  // Answers RecvLink::Flush().
  virtual void Flushed(const LinkName& /*name*/, const FlushName& /*flush*/) {}
  // Sends the answer to an offer to the other end, as SendOwner::Offer().
  virtual void Answer(const LinkName& /*name*/, const Endpoint& /*endpoint*/) {}
  // The result of the data check of all paths of the incarnation.
  virtual void Proved(const LinkName& name, bool ok) = 0;
};

// Sends frames to the other end and delivers those from there, for a link or for a peer's out-of-band connection. Frames that come go to
// its owner. While it is not open, its calls do nothing.
class ControlChannel {
 public:
  virtual ~ControlChannel() = default;
  // Keeps a frame for the next Flush(). Frames that are repeated anyway may be dropped while the peer does not read.
  virtual void Queue(const Frame& frame) = 0;
  // False if the channel is broken.
  virtual bool Flush() = 0;
  // Everything queued is with the kernel or the device.
  virtual bool flushed() const = 0;
  // No more frames from this end; what is queued is still sent.
  virtual void HalfClose() = 0;
  // Handles frames that came, without waiting for an event.
  virtual void Poll() = 0;
};

// The receiver of a control channel's events.
struct ControlSink {
  std::function<void(const Frame&)> received;  // a valid frame; the channel is not closed within the call
  // The connection has ended, or what came is no valid frame. The channel may be closed within the call.
  std::function<void(plan::EvidenceCause)> broken;
};
// The sink of a link.
inline ControlSink SinkOf(LinkOwner* owner, const LinkName& name) {
  return {[owner, name](const Frame& frame) { owner->FrameReceived(name, frame); },
          [owner, name](plan::EvidenceCause cause) { owner->Trouble(name, cause); }};
}

// One incarnation of a link, at either end.
class Link {
 public:
  // Destroyed only when it is closed: see above.
  virtual ~Link() = default;
  // Lives as long as the link; not used after its Close().
  virtual ControlChannel* control() = 0;
  // Unread and unsent bytes are lost, at both ends. Called once.
  virtual bool Close() = 0;
};

// What the kernel or the device reports of the incarnation since it began.
struct LinkFacts {
  uint64_t delivered_bytes = 0;  // acknowledged by the peer's kernel or device
  Nanos busy = 0;                // time with something to deliver
  bool limited = false;          // there is more to send than the rail or its queue takes now
  // Each connection, also those that are still being opened, in the same order each time. Empty: the transport finds stalls itself, or the
  // link is not proved yet.
  std::vector<PathFacts> paths = {};
};

// What the session knows of the link, for the transport's own budget.
struct LinkAdvice {
  double rate_bytes_per_s = 0;  // while it is busy; 0: not known yet
  bool spread = false;          // chunks of all flows are striped over all links
  uint32_t chunk_bytes = 0;     // of the messages that are posted now
};

class SendLink : public Link {
 public:
  // Connects to the peer's rail and greets it with `hello`; the transport fills its `endpoint`. Connected() or Trouble() follows, perhaps
  // within the call.
  virtual void Open(const Endpoint& remote_rail, const Hello& hello) = 0;
  // The other end's answer to the offer; false: refused. It may come more than once.
  virtual void Answered(bool /*accepted*/, const Endpoint& /*endpoint*/) {}
  // Sends the data check on every path that will carry chunks.
  virtual void Prove() = 0;
  // The acceptor found the data check correct: chunks may be pulled from now on.
  virtual void Start() = 0;

  // Continues what was begun, then pulls and sends at most `most` more chunks. `retry`: tries even if there was no room at the last try,
  // which costs less than to ask whether there is room again.
  enum class Room {
    kNone,  // it is full, and will call Ready(); or it pulled, and there was nothing
    kLeft,  // it may take more at once
  };
  virtual Room Pump(int most, bool retry) = 0;
  // Something was begun that the kernel or the device has not taken completely.
  virtual bool busy() const = 0;
  // If a small message can be sent at once: calls `post` for its chunk, and sends it. `post` may decline.
  enum class Sent {
    kNot,          // nothing was posted
    kBufferFree,   // the buffer is not read any more, wherever its bytes are now
    kBufferInUse,  // Retarget() follows, at once
  };
  virtual Sent SendNow(FunctionRef<bool(Chunk*)> post) = 0;
  // The message's buffer is given back: unread bytes are read from its copy from now on. Such a message is one chunk, so buffer and copy
  // begin with the chunk's first byte.
  virtual void Retarget(FlowId flow, MessageId message, const std::byte* copy) = 0;
  // A buffer of the flow may still be read. When the flow has been closed, the peer closes the links for which this is true. The buffers
  // are the job's again when it is true for no link, including those that are being closed. May wait for one call of a worker.
  //
  // An acknowledged message does not count. A device whose own transport has not acknowledged it may read its buffer once more, as long as
  // the memory is registered with the device. That does no harm: the other end has all of the message, so it places these bytes nowhere,
  // whatever they are now. Deregistering ends it: a device that still wants to read then loses its link, and no byte.
  virtual bool Holds(FlowId flow) = 0;
  // For a flow that was closed while Holds() is true. True: Holds() will be false soon, when the device has done what it was given; only a
  // slow device needs the end of the incarnation.
  virtual bool Release(FlowId /*flow*/) { return false; }

  // For workers of the transport that may have something to send. Coming(): how many chunks the workers that are already woken will take.
  // OfferChunks(): `claim(n)` is true if there are `n` chunks for one more worker; each true wakes one.
  virtual uint32_t Coming() { return 0; }
  virtual void OfferChunks(FunctionRef<bool(uint32_t chunks)> /*claim*/) {}

  virtual LinkFacts Measure() = 0;
  virtual void Advise(const LinkAdvice& /*advice*/) {}
};

class RecvLink : public Link {
 public:
  // Adds a connection of the incarnation. The transport accepts it and reads its Hello, Greet judges that, and the peer of the session that
  // it names attaches it to this link, perhaps after the previous incarnation was closed. If the link takes it, the link answers it with
  // `reply`. False and one line in `reason`: refused, and the connection is still the caller's. `*control`: true if the control channel may
  // be used now.
  virtual bool Attach(const Hello& hello, const HelloReply& reply, std::unique_ptr<Connection>* greeted, bool* control,
                      std::string* reason) = 0;
  // The shortest path for a flow: reads where its next message is expected. True if anything came.
  virtual bool Poll(FlowId wanted) = 0;
  // Continues what the last read left; Ready() follows if something is still left. For links that call Ready().
  virtual void ReadMore() {}
  // For a transport in which the sender places: makes what the link has placed so far in the GPU memory of `at` visible to the GPU.
  // RecvOwner::Flushed() follows, not within this call, or trouble.
  virtual void Flush(const FlushName& /*flush*/, const Buffer& /*at*/) {}
  // True: the link writes no buffer of the flow any more, and drops the rest of a half-read chunk. False: that takes the end of the
  // incarnation. Asked again while the incarnation is being closed.
  virtual bool Forget(FlowId flow) = 0;
  // Frames of the other end on control() arrive after all that it had placed by the link before. Then the end of the incarnation is not the
  // only way: see RecvSession::CloseFlow().
  virtual bool orders() const { return false; }
};

// One transport, as one peer uses it.
class Port {
 public:
  virtual ~Port() = default;
  // `carried` counts the bytes that the link carries.
  virtual std::unique_ptr<SendLink> NewSend(const LinkName& name, SendOwner* owner, Counter* carried) = 0;
  virtual std::unique_ptr<RecvLink> NewRecv(const LinkName& name, RecvOwner* owner, Counter* carried) = 0;

  // Makes a connection for RecvLink::Attach() from the other end's offer. Attaching the same offer again must do no harm. Null: the offer
  // is not this transport's, or is invalid.
  virtual std::unique_ptr<Connection> Offered(const Endpoint& /*endpoint*/) { return nullptr; }
  // Readable while something may have come; -1: there is no descriptor to wait for.
  virtual int fd() const { return -1; }
  // Handles what has come. True: all of it, so that silence is real.
  virtual bool Poll() = 0;
  // No thread polls all the time any more: whatever comes must make fd() readable.
  virtual void WatchAll() {}
  // This process's rail is up, perhaps on another interface than before. The peer, at `remote_rail`, is about to connect.
  virtual void RailUp(uint16_t /*rail*/, const Endpoint& /*remote_rail*/) {}
  // The transport's own threads move all messages but small ones.
  virtual bool has_workers() const { return false; }
};

// Judges a greeting. Accepted: the connection was taken, and has its answer or will have it. Refused: it is still the caller's, to send the
// answer and hang up. I/O thread.
using Greet = std::function<HelloReply(const Hello& hello, std::unique_ptr<Connection>* connection)>;

// One transport of the process.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual TransportKind kind() const = 0;
  // The rail has a device or an address for this transport. It may still be unavailable.
  virtual bool Has(const Rail& /*rail*/) { return true; }
  // Chunks name their flow by its number modulo this: see RecvOwner::FindFlow(). 0: by the whole number.
  virtual uint32_t flow_slots() const { return 0; }
  // The device or address behind a rail that is listened on, for the log; empty: the rail's name is enough.
  virtual std::string NameOf(uint16_t /*rail*/) { return ""; }
  // Where an endpoint of this transport is, for the log: an address and a port, and the address family, "IPv4", if it reaches no other.
  // Empty: it has none.
  struct EndText {
    std::string address;
    uint16_t port = 0;
    std::string family;
  };
  virtual EndText Describe(const Endpoint& /*endpoint*/) const { return {}; }
  // Opens the rail for peers, and again when its address has changed. `*own`: its endpoint, empty if it has no address. On failure one line
  // in `error`. Before there are peers it may block. Later it is called with the locks of all peers and must not block: slow work is done
  // elsewhere, and TransportParts::rail_changed follows.
  virtual bool Listen(const Rail& rail, Endpoint* own, std::string* error) = 0;
  // Lets the rail's device reach `memory` from now on. `*key` is for peers whose devices place there; it is empty where the receiver
  // places, which keeps nothing. False and one line in `error`: it cannot, or the device is gone for now. `memory` stays until
  // Unregister(), which is called for all rails; a device that is lost loses its registrations. Neither is called with a lock of a peer.
  // Both may block. Any thread calls, one at a time.
  virtual bool Register(const Memory& memory, uint16_t rail, Endpoint* key, std::string* error) = 0;
  virtual void Unregister(const Memory& /*memory*/, uint16_t /*rail*/) {}
  // Memory of that kind may be registered on the rail, for every GPU that the job uses. The first call takes milliseconds; not with a lock
  // of a peer.
  virtual bool Takes(MemoryKind kind, uint16_t /*rail*/) { return kind == MemoryKind::kHost; }
  // A communicator begins for which NCCL names a traffic class; negative: none. Returns one line for the log if the communicator does not
  // get it; empty: nothing to report. Any thread.
  virtual std::string UseTrafficClass(int /*named*/) { return ""; }
  // `state` must outlive the port.
  virtual std::unique_ptr<Port> NewPort(const SessionKey& key, const PeerState* state) = 0;
  // On the I/O thread, when it begins: threads of the transport inherit its signal mask and its `processors` processors.
  virtual void StartThreads(int /*processors*/) {}
  // On the I/O thread.
  virtual void Tick(Nanos /*now*/) {}
  // On the I/O thread, at its end: first no connection is accepted any more; then, after all peers were shut, the threads end.
  virtual void StopListening() {}
  virtual void StopThreads() {}
  // Connections that were refused since the start.
  virtual uint64_t refused() const { return 0; }
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_LINKS_H_
