// The seam between peers and transports: what a transport must do, and what it tells the peer that uses it.
//
// A peer (peer.h) has a session with one other process, and a link for each pair of rails. A link lives in incarnations: each is one
// SendLink at the initiator and one RecvLink at the acceptor, made for it and destroyed after it. A transport makes them. It knows nothing
// of sessions, flows and replays; a peer knows nothing of sockets and queue pairs.
//
// Threads: everything here runs under the lock of the peer and must not block, unless it is marked ANY THREAD. A transport may have
// threads of its own (workers, a control thread, an event reader): they enter by LinkOwner::WithLock() and in no other way.
//
// Order: a link may be destroyed only between two calls into it. So the peer carries out what a session asks for when no link of it is on
// the stack, and a link may call its owner from any method but its constructor, destructor, Close() and Forget().
//
// Who tells of a lost rail. That a rail of this process is down - no carrier, no address - the peer hears from the link monitor, and
// closes the rail's links: a transport need not look. What a connection or a device says - a reset, an error completion, a device
// that is gone - its link tells with Trouble(). Silence is the session's to judge: a transport never gives up what is only slow. It reports
// what its connections acknowledge (SendLink::Measure), and the session finds those that stall (link/link_progress.h).
//
// The close. After Close() nothing of the incarnation calls the owner, but LinkClosed(). Close() returns true if at that moment nothing of
// it reads or writes a buffer of a message any more, and never will. If it returns false, the peer keeps the link, and it may still read
// and write what it had begun; then comes LinkClosed(true) when it is at rest for good, or LinkClosed(false), at most once, when that
// cannot be promised for now, and LinkClosed(true) later if it can be after all. On this rests that lost chunks may be sent again: see
// link/action.h.
//
// Trust. An Endpoint - of the peer's rail, or in a Hello - is bytes that the peer wrote and nobody but the transport has read: it checks
// their length and each field. Frames and chunk headers too come from the peer; those who own the link check what these say.
//
// Who places. Where the receiving process places (TCP), RecvOwner::Begin() decides before a byte is written, and refusing a chunk prevents
// it. Where the sender's device places (RDMA), the bytes are there before anybody is asked, and refusing only detects. Such a transport:
// 1. drops what belongs to another incarnation than its own by its name, before it asks anybody;
// 2. calls Placed(), which ends the process with a line if the chunk went into a message that was reported done;
// 3. closes an incarnation only when its device cannot place for it any more.
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
  bool home = true;  // it joins rails of the same number; else it is a cross-rail link
};

// What the two ends of a session share. Packets after the greeting are stamped with the tag.
struct SessionKey {
  uint64_t session = 0;
  uint32_t tag = 0;
};

// What a peer tells all its links. It changes between two calls.
struct PeerState {
  bool jobs_thread = false;  // the lock is held by one of the job's own threads, which may touch the job's buffers
  bool bulk = false;         // not all messages are small: see WorkloadClassifier
};

// A connection that greeted us, on its way to the link that it is for. Only its own transport looks inside. Destroyed: hung up.
class Connection {
 public:
  virtual ~Connection() = default;
};

class LinkOwner {
 public:
  virtual ~LinkOwner() = default;
  // Keeps the owner alive: for threads of the transport. Null: it is ending, and nothing may call it after the call it is in. ANY THREAD.
  virtual std::shared_ptr<void> KeepAlive() = 0;
  // A control frame came on the link. The frame is sound; what it says is not trusted.
  virtual void Heard(const LinkName& name, const Frame& frame) = 0;
  // Hard evidence against the incarnation. A Close() follows, not within this call.
  virtual void Trouble(const LinkName& name, plan::EvidenceCause cause) = 0;
  // See above. Only after a Close() that returned false, and the last thing that the link does: after a true it is gone.
  virtual void LinkClosed(LinkName name, bool ok) = 0;
  // The link has something to do once more: it is asked to Pump(), or to ReadMore(), before the lock is released.
  virtual void Ready(const LinkName& name) = 0;
  // ANY THREAD: takes the lock, does what others left to its holder, calls `tell`, carries out what follows if it says that something
  // does, calls `ask`, and releases the lock. `ask(posted)`: whether requests of the job came in; true: the thread comes back at once, and
  // until then Close() may have to wait for it. False: the peer is shut, nothing was called.
  virtual bool WithLock(FunctionRef<bool()> tell, FunctionRef<bool(bool posted)> ask) = 0;
};

class SendOwner : public LinkOwner {
 public:
  // For transports whose connections carry no greeting: brings `endpoint` to the other end, on whatever channels there are, with the Hello
  // that Open() had. SendLink::Answered() may follow; if the word is lost, nothing does, and the next incarnation tries again.
  virtual void Offer(const LinkName& /*name*/, const Endpoint& /*endpoint*/) {}
  // All of the incarnation is greeted.
  virtual void Connected(const LinkName& name) = 0;
  // The next chunk for a link that has room; false: there is none, or this link may not carry more at the moment.
  virtual bool Pull(const LinkName& name, Chunk* chunk) = 0;
  // Where a chunk that was just pulled is to be placed, for transports in which the sender places. What is eager has no target: it goes
  // where the receiver says.
  virtual WriteTarget TargetOf(const LinkName& name, const Chunk& chunk) const = 0;
  // False: the message of this half-sent chunk was acknowledged or given up. Its bytes may be gone: report trouble, and do not send it.
  virtual bool Expects(const Chunk& chunk) const = 0;
  // What is granted to the flow is of use to somebody. False: the flow is gone.
  virtual bool IsOpen(FlowId /*flow*/) const { return true; }
  // False: the flow is gone, or has failed, as when its receiver has closed it.
  virtual bool MayWrite(FlowId /*flow*/) const { return true; }
  // The copy of an eager message, for a thread that sends it without the lock; null if there is none.
  virtual std::shared_ptr<const std::byte[]> CopyOf(const Chunk& chunk) const = 0;
};

class RecvOwner : public LinkOwner {
 public:
  // False: the incarnation is about to be closed. Nothing more is to be read.
  virtual bool Alive(const LinkName& name) const = 0;
  // A chunk's header came; every field is checked. True: write its bytes to `*destination`, then Finish(); a null destination: forget them.
  // False: the peer broke the protocol, report trouble.
  virtual bool Begin(const LinkName& name, const Chunk& header, std::byte** destination) = 0;
  virtual void Finish(const LinkName& name, const Chunk& header) = 0;
  // The same for a transport in which the sender places: it is there already. False as above.
  virtual bool Placed(const LinkName& name, const Chunk& header) = 0;
  // For transports in which what arrives names its flow and message by their low bits alone: of the flows that are open here the one whose
  // number is `slot` modulo `slots`, and below which all messages are placed. False: there is none.
  virtual bool FindFlow(uint32_t /*slot*/, uint32_t /*slots*/, FlowId* /*flow*/, MessageId* /*placed_through*/) const { return false; }
  // A sender may place into a buffer of the flow, or may have been allowed to and has not yet.
  virtual bool MayBePlaced(FlowId /*flow*/) const { return true; }
  // Answers RecvLink::Flush().
  virtual void Flushed(const LinkName& /*name*/, const FlushName& /*flush*/) {}
  // Brings the answer to an offer to the other end, as SendOwner::Offer().
  virtual void Answer(const LinkName& /*name*/, const Endpoint& /*endpoint*/) {}
  // The data check of all paths of the incarnation.
  virtual void Proved(const LinkName& name, bool ok) = 0;
};

// Frames to the other end, and from there: of a link, or of a peer's out-of-band connection. What comes is told to its owner. While it is
// not open nothing happens on it.
class ControlChannel {
 public:
  virtual ~ControlChannel() = default;
  // Keeps a frame for the next Flush(); frames that are repeated anyway may be dropped while the peer does not read.
  virtual void Queue(const Frame& frame) = 0;
  // False if the channel is broken.
  virtual bool Flush() = 0;
  // Everything queued is with the kernel or the device.
  virtual bool flushed() const = 0;
  // No more frames from us; what is queued still goes.
  virtual void HalfClose() = 0;
  // Handles frames that came, without waiting to be told of them.
  virtual void Poll() = 0;
};

// Whom a control channel tells.
struct ControlSink {
  std::function<void(const Frame&)> heard;  // a sound frame; what follows does not close the channel
  // The connection has ended, or what came is no sound frame. The channel may be closed within the call.
  std::function<void(plan::EvidenceCause)> broken;
};
// That of a link.
inline ControlSink SinkOf(LinkOwner* owner, const LinkName& name) {
  return {[owner, name](const Frame& frame) { owner->Heard(name, frame); },
          [owner, name](plan::EvidenceCause cause) { owner->Trouble(name, cause); }};
}

// One incarnation at either end.
class Link {
 public:
  // Only when it is closed: see above.
  virtual ~Link() = default;
  // As long as the link lives; not used after its Close().
  virtual ControlChannel* control() = 0;
  // Unread and unsent bytes are lost, at both ends. Called once.
  virtual bool Close() = 0;
};

// What the kernel or the device says of the incarnation since it began.
struct LinkFacts {
  uint64_t delivered_bytes = 0;  // acknowledged by the peer's kernel or device
  Nanos busy = 0;                // there was something to deliver
  bool limited = false;          // there is more to send than the rail or its queue takes just now
  // Each connection, those that are still being opened too, in the same order each time. None: the transport finds stalls by itself, or
  // the link is not proved yet.
  std::vector<PathFacts> paths = {};
};

// What the session knows of the link, for the transport's own budget.
struct LinkAdvice {
  double rate_bytes_per_s = 0;  // while it is busy; 0: not known yet
  bool spread = false;          // chunks of all flows are dealt out to all links
  uint32_t chunk_bytes = 0;     // of the messages that are posted now
};

class SendLink : public Link {
 public:
  // Connects to the peer's rail and greets it with `hello`, whose `endpoint` is the transport's to fill. Connected() or Trouble() follows,
  // perhaps within the call.
  virtual void Open(const Endpoint& remote_rail, const Hello& hello) = 0;
  // The other end's word on what was offered; false: it is refused. It may come more than once.
  virtual void Answered(bool /*accepted*/, const Endpoint& /*endpoint*/) {}
  // Sends the data check on every path that will carry chunks.
  virtual void Prove() = 0;
  // The acceptor found it right: chunks may be pulled from now on.
  virtual void Start() = 0;

  // Goes on with what was begun, then sends at most `most` more times what it pulls. `retry`: also where there was no room when it was
  // looked at last, which costs less than to ask whether there is again.
  enum class Room {
    kNone,  // it is full, and says Ready() when it is not; or it pulled, and there was nothing
    kLeft,  // it may take more at once
  };
  virtual Room Pump(int most, bool retry) = 0;
  // Something was begun that is not wholly with the kernel or the device.
  virtual bool busy() const = 0;
  // If the way of a small message is free: calls `post` for its chunk, and sends it. `post` may decline.
  enum class Sent {
    kNot,          // nothing was posted
    kBufferFree,   // the buffer is not read any more, wherever its bytes are now
    kBufferInUse,  // Retarget() follows, at once
  };
  virtual Sent SendNow(FunctionRef<bool(Chunk*)> post) = 0;
  // The message's buffer is given back: what is unread of it is read from its copy from now on. Such a message is one chunk, so both begin
  // with the chunk's first byte.
  virtual void Retarget(FlowId flow, MessageId message, const std::byte* copy) = 0;
  // A buffer of the flow may still be read. When the flow has been closed the peer closes the links of which that is true, and the buffers
  // are the job's again when it is true of none, those that are being closed among them. May wait for one call of a worker.
  //
  // That is not asked of a message that was acknowledged. A device that has not heard so by its own transport may read its buffer once
  // more, as long as the memory is registered with it. That does no harm: the other end has all of it, so that nobody places these bytes,
  // whatever they are by now. Deregistering ends it: a device that then still wants to read loses its link, and no byte.
  virtual bool Holds(FlowId flow) = 0;
  // Of a flow that was closed while Holds() is true. True: it will be false soon, as the device does what it was given; only a device that
  // takes long needs the end of the incarnation.
  virtual bool Release(FlowId /*flow*/) { return false; }

  // Workers of the transport may have something to send. Coming(): how many chunks those take that are on their way already.
  // Offer(): `claim(n)` is true if there are so many chunks for one more; each true wakes one.
  virtual uint32_t Coming() { return 0; }
  virtual void Offer(FunctionRef<bool(uint32_t chunks)> /*claim*/) {}

  virtual LinkFacts Measure() = 0;
  virtual void Advise(const LinkAdvice& /*advice*/) {}
};

class RecvLink : public Link {
 public:
  // One more connection of the incarnation. The transport takes it and reads its Hello, Greet judges that, and the peer whose session it
  // names attaches it: to this link, perhaps after the incarnation before has been closed. It is answered with `reply` if it is taken.
  // False and one line in `reason`: refused, and the connection is still the caller's. The control channel may be used once it says so in
  // `*control`.
  virtual bool Attach(const Hello& hello, const HelloReply& reply, std::unique_ptr<Connection>* greeted, bool* control,
                      std::string* reason) = 0;
  // The shortest way for a flow: looks where its next message is expected. True if anything came.
  virtual bool Poll(FlowId wanted) = 0;
  // Goes on with what the last look left; Ready() follows if something is left still. For links that say Ready().
  virtual void ReadMore() {}
  // For a transport in which the sender places: what the link has placed up to now in the memory of a GPU, where `at` lies, is to be seen
  // by it. RecvOwner::Flushed() follows, not within this call, or trouble.
  virtual void Flush(const FlushName& /*flush*/, const Buffer& /*at*/) {}
  // True: the link writes no buffer of the flow any more; the rest of a half-read chunk goes nowhere. False: that takes the end of the
  // incarnation. Asked again while it is being closed.
  virtual bool Forget(FlowId flow) = 0;
  // What the other end says on control() is heard after all that it had placed by the link before. Then the end of the incarnation is not
  // the only way: see RecvSession::CloseFlow().
  virtual bool orders() const { return false; }
};

// One transport as one peer uses it.
class Port {
 public:
  virtual ~Port() = default;
  // What the link carries is counted in `carried`.
  virtual std::unique_ptr<SendLink> NewSend(const LinkName& name, SendOwner* owner, Counter* carried) = 0;
  virtual std::unique_ptr<RecvLink> NewRecv(const LinkName& name, RecvOwner* owner, Counter* carried) = 0;

  // What the other end has offered, as a connection for RecvLink::Attach(). Attaching the same once more must do no harm. Null: it is not
  // this transport's, or nothing that anybody offers.
  virtual std::unique_ptr<Connection> Offered(const Endpoint& /*endpoint*/) { return nullptr; }
  // Readable while something may have come; -1: there is nothing to wait for.
  virtual int fd() const { return -1; }
  // Handles what has come. True: all of it, so that silence means silence.
  virtual bool Poll() = 0;
  // Nobody polls all the time any more: whatever comes must show in fd().
  virtual void WatchAll() {}
  // The own rail is up, perhaps on another interface than before. The peer, who is at `remote_rail`, is about to connect.
  virtual void RailUp(uint16_t /*rail*/, const Endpoint& /*remote_rail*/) {}
  // Threads beside NCCL's move all messages but small ones.
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
  // Something of this transport stands behind the rail. It may still not be to be had.
  virtual bool Has(const Rail& /*rail*/) { return true; }
  // What arrives names its flow by its number modulo so many: see RecvOwner::FindFlow(). 0: by the whole number.
  virtual uint32_t flow_slots() const { return 0; }
  // What stands behind a rail that is listened on, for the log; empty: the rail's name says it.
  virtual std::string NameOf(uint16_t /*rail*/) { return ""; }
  // Where an end of this transport's is, for lines: an address and a port, and its family, "IPv4", if it reaches no other. Empty: it has no
  // such thing.
  struct EndText {
    std::string address;
    uint16_t port = 0;
    std::string family;
  };
  virtual EndText Describe(const Endpoint& /*endpoint*/) const { return {}; }
  // Opens the rail for peers, and again when its address has changed: `*own` is where. An address may be missing, `*own` is empty then. On
  // failure one line in `error`. Before there are peers it may block. Later it is called with the locks of all of them and must not: what
  // takes time is done elsewhere, and TransportParts::rail_changed follows.
  virtual bool Listen(const Rail& rail, Endpoint* own, std::string* error) = 0;
  // The rail's device may reach `memory` from now on: `*key` is for peers whose devices place there, empty where the receiver places, which
  // keeps nothing. False and one line in `error`: it cannot, or the device is gone for now. `memory` stays until Unregister(), which is for
  // all rails; a device that is lost loses what is registered with it. Neither is called with a lock of a peer; they may block, and one
  // thread calls at a time, any.
  virtual bool Register(const Memory& memory, uint16_t rail, Endpoint* key, std::string* error) = 0;
  virtual void Unregister(const Memory& /*memory*/, uint16_t /*rail*/) {}
  // Memory of that kind may be registered on the rail, for every GPU that the job uses. What it says costs milliseconds the first time; not
  // with a lock of a peer.
  virtual bool Takes(MemoryKind kind, uint16_t /*rail*/) { return kind == MemoryKind::kHost; }
  // A communicator begins for which NCCL names a traffic class; negative: none. One line if it does not get it, and there is something to
  // say. Any thread.
  virtual std::string UseTrafficClass(int /*named*/) { return ""; }
  // `state` must outlive the port.
  virtual std::unique_ptr<Port> NewPort(const SessionKey& key, const PeerState* state) = 0;
  // On the I/O thread, when it begins: threads of the transport inherit its signal mask and processors, of which there are so many.
  virtual void StartThreads(int /*processors*/) {}
  // On the I/O thread.
  virtual void Tick(Nanos /*now*/) {}
  // On the I/O thread, at its end: nobody is let in any more; then, after all peers were shut, the threads end.
  virtual void StopListening() {}
  virtual void StopThreads() {}
  // Connections that were refused since the start.
  virtual uint64_t refused() const { return 0; }
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_LINKS_H_
