// Names bugs (mutants) that tests switch on in the production source, to prove that the checkers detect them. None is in shipped code: see
// flow/mutant.h.
#ifndef R2CC_NETPLUGIN_COLLNET_MUTANT_H_
#define R2CC_NETPLUGIN_COLLNET_MUTANT_H_

namespace r2cc::collnet {

enum class CollNetMutant {
  kNothing,
  kStampNotAwaited,    // an operation begins with the last plan although nothing is stamped for it
  kCountedTwice,       // a contribution is added twice
  kForwardedEarly,     // a block is sent on before it is added up
  kDoneWhenSent,       // a send is done when it has left: the next operation's bytes may travel in its place
  kSlotNotAwaited,     // an operation uses the flows of one that is not done
  kArrivalOrder,       // contributions are added up in the order in which they came
  kWeightIgnored,      // lanes share a port equally
  kStampChanged,       // what was stamped is stamped again with another plan
  kStampNotForwarded,  // the others forward nothing to a member that member 0 does not reach
  kPlanNotChecked,     // a peer's plan is used as it is
};

#ifdef R2CC_SHIPPED
constexpr bool IsActive(CollNetMutant) { return false; }
#else
inline thread_local CollNetMutant mutant = CollNetMutant::kNothing;
inline bool IsActive(CollNetMutant bug) { return mutant == bug; }
#endif

}  // namespace r2cc::collnet

#endif  // R2CC_NETPLUGIN_COLLNET_MUTANT_H_
