// Where the sessions' interface may or may not have a part yet, in one place.
#ifndef R2CC_TESTS_SIM_ADAPT_H_
#define R2CC_TESTS_SIM_ADAPT_H_

namespace r2cc::sim {

// Hooks `hook` into the options' step observer. False if they have none.
template <typename Options, typename Hook>
bool HookSteps(Options& options, Hook hook) {
  if constexpr (requires { options.on_step; }) {
    options.on_step = std::move(hook);
    return true;
  }
  return false;
}

template <typename Session, typename Flow>
auto DoneThroughOf(const Session& session, Flow flow) {
  if constexpr (requires { session.DoneThrough(flow); })
    return session.DoneThrough(flow);
  else
    return session.AckedThrough(flow);
}

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_ADAPT_H_
