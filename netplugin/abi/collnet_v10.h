// CollNet plugin table of version 10, exported as ncclCollNetPlugin_v10. It equals v9: neither the functions nor the properties changed.
#ifndef R2CC_NETPLUGIN_ABI_COLLNET_V10_H_
#define R2CC_NETPLUGIN_ABI_COLLNET_V10_H_

#include "netplugin/abi/collnet_v9.h"

namespace r2cc::abi {

using CollNetTableV10 = CollNetTableV9;

}  // namespace r2cc::abi

#endif  // R2CC_NETPLUGIN_ABI_COLLNET_V10_H_
