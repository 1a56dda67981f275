#include "tests/contract/tcp/tcp_world.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

namespace r2cc::contract {
namespace {

Lab* LabFor(bool full_fabric, std::string* error) {
  static std::array<std::unique_ptr<Lab>, 2> labs;
  std::unique_ptr<Lab>& lab = labs[full_fabric];
  if (lab == nullptr) lab = Lab::Make(full_fabric, error);
  return lab.get();
}

}  // namespace

Transport TcpTransport() {
  return {.name = "Tcp",
          .missing =
              [] {
                std::string error;
                LabFor(false, &error);
                return error;
              },
          .make = [](const Options& options) -> std::unique_ptr<World> {
            std::string error;
            Lab* const lab = LabFor(options.full_fabric, &error);
            if (lab == nullptr) {
              ADD_FAILURE() << error;
              return nullptr;
            }
            return std::make_unique<TcpWorld>(options, lab);
          },
          .real_time = true};
}

}  // namespace r2cc::contract
