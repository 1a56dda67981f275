// Bugs that tests plant in the production source, to prove that the checkers see them. Without R2CC_PLANT, that is in everything that is
// shipped, nothing is ever planted and the compiler drops the switches. See flow/planted.h.
#ifndef R2CC_NETPLUGIN_COLLNET_PLANTED_H_
#define R2CC_NETPLUGIN_COLLNET_PLANTED_H_

namespace r2cc::collnet {

enum class Planted {
  kNothing,
  kStampNotAwaited,  // an operation begins with the last plan although nothing is stamped for it
  kCountedTwice,     // a contribution is added twice
  kForwardedEarly,   // what is not added up yet is sent on
  kDoneWhenSent,     // a send is done when it has left: the next operation's bytes may travel in its place
  kSlotNotAwaited,   // an operation uses the flows of one that is not done
  kArrivalOrder,     // contributions are added up in the order in which they came
  kWeightIgnored,    // lanes share a port equally
  kStampChanged,     // what was stamped is stamped again with another plan
  kPlanNotChecked,   // a peer's plan is used as it is
};

#ifdef R2CC_PLANT
inline thread_local Planted planted = Planted::kNothing;
inline bool IsPlanted(Planted bug) { return planted == bug; }
#else
constexpr bool IsPlanted(Planted) { return false; }
#endif

}  // namespace r2cc::collnet

#endif  // R2CC_NETPLUGIN_COLLNET_PLANTED_H_
