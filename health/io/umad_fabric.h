// The MadFabric over libibumad, which is opened when it is first needed: most machines have no InfiniBand.
#ifndef R2CC_HEALTH_IO_UMAD_FABRIC_H_
#define R2CC_HEALTH_IO_UMAD_FABRIC_H_

#include <memory>
#include <string>

#include "base/executor.h"
#include "health/io/mad_fabric.h"

namespace r2cc::health {

// Each open port has a thread, which waits for MADs.
class UmadFabric final : public MadFabric {
 public:
  // `executor` outlives this and the ports. `library`: for tests.
  explicit UmadFabric(Executor* executor, std::string library = "libibumad.so.3");
  ~UmadFabric() override;

  // The port's destructor waits until its thread has seen it: a fifth of a second.
  absl::StatusOr<std::unique_ptr<FabricPort>> Open(const std::string& device, uint32_t port, FabricHandler handler) override;

  // The functions of the library.
  struct Library;

 private:
  Executor* const executor_;
  const std::string name_;
  std::shared_ptr<const Library> library_;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_IO_UMAD_FABRIC_H_
