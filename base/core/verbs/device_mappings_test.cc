#include "base/core/verbs/device_mappings.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

namespace r2cc::verbs {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST(DeviceMappingsTest, MappingsOfDeviceFilesAreFound) {
  std::istringstream maps(
      "55d0c0a00000-55d0c0a01000 r--p 00000000 fe:00 42    /usr/bin/job\n"
      "7f0010000000-7f0010001000 rw-s 00000000 00:06 123   /dev/infiniband/uverbs0\n"
      "7f0010001000-7f0010003000 rw-s 00000000 00:06 124   /dev/infiniband/uverbs11\n"
      "7f0010003000-7f0010004000 rw-s 00000000 00:06 125   /home/dev/infiniband/uverbs0\n"
      "7f0010004000-7f0010005000 rw-p 00000000 00:00 0\n"
      "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0     [stack]\n");
  EXPECT_THAT(MappingsOf(kDeviceFiles, maps),
              ElementsAre(Mapping{0x7f0010000000, 0x7f0010001000}, Mapping{0x7f0010001000, 0x7f0010003000}));
}

TEST(DeviceMappingsTest, ALineThatIsNoneIsLeftOut) {
  for (const char* const line : {"", "/dev/infiniband/uverbs0", "x-y rw-s /dev/infiniband/uverbs0", "7f00 rw-s /dev/infiniband/uverbs0",
                                 "7f0010001000-7f0010000000 rw-s /dev/infiniband/uverbs0"}) {
    std::istringstream maps(line);
    EXPECT_THAT(MappingsOf(kDeviceFiles, maps), IsEmpty()) << line;
  }
}

TEST(DeviceMappingsTest, AChildHasNoneOfThem) {
  const std::string file = testing::TempDir() + "uverbs0";
  const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const std::string path = std::filesystem::canonical(file);
  ASSERT_EQ(ftruncate(fd, 8192), 0);
  void* const mapped = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  close(fd);
  const auto mappings = [&] {
    std::ifstream maps("/proc/self/maps");
    return MappingsOf(path, maps);
  };
  const auto in_child = [&] {
    const pid_t pid = fork();
    if (pid == 0) _exit(static_cast<int>(mappings().size()));
    int status = 0;
    waitpid(pid, &status, 0);
    return WEXITSTATUS(status);
  };
  ASSERT_THAT(mappings(), SizeIs(1));
  DeviceMappings devices(path);
  devices.Change([&] {
    std::thread([&] { devices.Change([] { return 0; }); }).join();
    EXPECT_EQ(in_child(), 1) << "something else may be there while somebody is in a call";
    return 0;
  });
  EXPECT_EQ(in_child(), 0);
  EXPECT_THAT(mappings(), SizeIs(1)) << "the process itself still has it";
  munmap(mapped, 8192);
}

}  // namespace
}  // namespace r2cc::verbs
