// The contract over TCP, between network namespaces.
#include "tests/contract/fixture.h"
#include "tests/contract/tcp/tcp_world.h"

namespace r2cc::contract {

INSTANTIATE_TEST_SUITE_P(Tcp, Contract, testing::Values(TcpTransport()), [](const auto& info) { return info.param.name; });

}  // namespace r2cc::contract
