// The contract over the least transport behind the seam: whatever keeps to netplugin/transport's links.h is a transport.
#include "tests/contract/fixture.h"
#include "tests/contract/sim/sim_world.h"
#include "tests/contract/stub/stub_transport.h"

namespace r2cc::contract {
namespace {

std::unique_ptr<World> MakeWorld(const Options& options) {
  const auto fabric = std::make_shared<net::stub::Fabric>();
  const auto make = [fabric](sim::Io* io, net::Greet greet) {
    fabric->network = io->network;
    fabric->hosts[io->host] = {io->wake, &io->closing.fails, {}};
    return std::make_unique<net::stub::StubTransport>(fabric, io->host, std::move(greet));
  };
  // It stands in the place of RDMA, over which nothing goes eagerly.
  return std::make_unique<SimWorld>(options, false, make, /*eager=*/false);
}

INSTANTIATE_TEST_SUITE_P(Stub, Contract, testing::Values(Transport{"Stub", [] { return std::string(); }, MakeWorld}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace r2cc::contract
