// `r2ccctl certs`: a cluster's authority, and certificates of it, as files. Asks no daemon.
#ifndef R2CC_CLIENT_LOCAL_CERTS_H_
#define R2CC_CLIENT_LOCAL_CERTS_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/status/status.h"

namespace r2cc::client {

struct CertsCommand {
  bool init = false;          // else: issue
  std::string directory;      // of the authority: ca.crt and ca.key
  std::string name;           // of the cluster, or of the node or operator
  bool is_operator = false;   // issue: for a person
  std::string out_directory;  // issue; empty: NAME below `directory`
  std::string owner;          // issue: the user that the key belongs to; empty: the caller
  int days = 0;
  bool json = false;
};

// Writes the files, keys with mode 0600, or 0400 if there is an owner. An authority that is there is never replaced; a certificate
// is, the key first. `now_s` is CLOCK_REALTIME.
absl::Status Run(const CertsCommand& command, int64_t now_s, std::ostream& out);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_LOCAL_CERTS_H_
