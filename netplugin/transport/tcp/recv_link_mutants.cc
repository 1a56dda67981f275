// Bugs of flow/mutant.h that recv_link_test must see.

#include "netplugin/transport/fake_bugs.h"

int main(int argc, char** argv) {
  using r2cc::net::Mutant;
  constexpr r2cc::net::BugCase kCases[] = {
      {Mutant::kProofsPerLink, "HalfALinkTest.ASecondProofOnOneSocketProvesNothing"},
  };
  return r2cc::net::RunBugCases(argc, argv, kCases);
}
