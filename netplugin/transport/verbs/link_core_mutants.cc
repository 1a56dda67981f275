// Bugs of flow/mutant.h that link_core_fence_test must see.

#include "netplugin/transport/fake_bugs.h"

int main(int argc, char** argv) {
  using r2cc::net::Mutant;
  constexpr r2cc::net::BugCase kCases[] = {
      {Mutant::kErrorIsGone, "LinkCoreFenced.ErrorCodesOfALivingDeviceAreNoProof"},
      {Mutant::kNoOwnReceive, "LinkCoreFenced.AllReceivesAreUsedAndNoKeyIsRevoked"},
      {Mutant::kSameDomain, "LinkCoreFenced.NewRegistrationsAreOutOfReachOfAnUnendedQueuePair"},
  };
  return r2cc::net::RunBugCases(argc, argv, kCases);
}
