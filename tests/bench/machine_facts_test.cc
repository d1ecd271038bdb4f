#include "bench/machine_facts.h"

#include <doctest/doctest.h>

namespace nowcalls::compare {
namespace {

TEST_CASE("the first processor's field is found by its whole name") {
  const std::string cpuinfo =
      "processor\t: 0\nmodel\t\t: 1\nmodel name\t: AMD EPYC 7B13\nflags\t\t:\n\nprocessor\t: 1\n";
  CHECK(CpuInfoField(cpuinfo, "model name") == "AMD EPYC 7B13");
  CHECK(CpuInfoField(cpuinfo, "model") == "1");
  CHECK(CpuInfoField(cpuinfo, "flags").empty());
  CHECK(CpuInfoField(cpuinfo, "Hardware").empty());
}

TEST_CASE("a directory is on the disk that is mounted nearest above it") {
  const std::string mounts =
      "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
      "30 27 0:30 / /tmp rw shared:5 master:1 - tmpfs tmpfs rw\n"
      "31 27 8:1 / /work rw,noatime - xfs /dev/sdb1 rw\n"
      "32 31 0:44 / /work/build rw - overlay overlay rw\n";
  CHECK(DiskOf(mounts, "/home/x") == "ext4 on /dev/vda");
  CHECK(DiskOf(mounts, "/tmp") == "tmpfs on tmpfs");
  CHECK(DiskOf(mounts, "/tmpdir") == "ext4 on /dev/vda");
  CHECK(DiskOf(mounts, "/work/src") == "xfs on /dev/sdb1");
  CHECK(DiskOf(mounts, "/work/build/bench") == "overlay on overlay");
  CHECK(DiskOf("", "/work").empty());
}

}  // namespace
}  // namespace nowcalls::compare
