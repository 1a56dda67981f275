// Bugs that a test plants at a daemon's seams, to prove that the checkers of the one world see them: what the daemon would do wrong is done
// to what it hears and writes. None is in any daemon's source, which is compiled once.
#ifndef R2CC_TESTS_CLUSTER_BUG_H_
#define R2CC_TESTS_CLUSTER_BUG_H_

namespace r2cc::cluster {

enum class Bug {
  kNothing,
  kSettingForgotten,  // the daemon acknowledges a setting that is not on the disk
  kReportsDecide,     // a job's report that a link is lost counts as proof that the port is dead
  kSilenceForEver,    // a port that was silent once is never probed again
  kLinkEventLost,     // the kernel's word that a link is down is heard, and forgotten
  kEndUnheard,        // a process of a job that has ended stays in the list
  kRunsMixed,         // a process of a job that comes later counts as the one that was there before
  kEvidenceKept,      // what jobs report is kept for ever
};
inline thread_local Bug bug = Bug::kNothing;

}  // namespace r2cc::cluster

#endif  // R2CC_TESTS_CLUSTER_BUG_H_
