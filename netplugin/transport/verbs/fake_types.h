// Brings the fakes of base/core/verbs into the namespace of the verbs transport, for tests.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_FAKE_TYPES_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_FAKE_TYPES_H_

#include "base/core/verbs/fake_fabric.h"
#include "base/core/verbs/fake_time.h"
#include "base/core/verbs/fake_verbs.h"
#include "base/core/verbs/faulty_verbs.h"
#include "netplugin/transport/verbs/verbs_types.h"

namespace r2cc::net::verbs {

using r2cc::verbs::Call;
using r2cc::verbs::FakeDevice;
using r2cc::verbs::FakeFabric;
using r2cc::verbs::FakeOptions;
using r2cc::verbs::FakePath;
using r2cc::verbs::FakePortName;
using r2cc::verbs::FakeStall;
using r2cc::verbs::FakeTime;
using r2cc::verbs::FakeTimeline;
using r2cc::verbs::FakeVerbs;
using r2cc::verbs::FaultyVerbs;

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_FAKE_TYPES_H_
