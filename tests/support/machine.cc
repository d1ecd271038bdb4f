#include "support/machine.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

#include "base/clock.h"
#include "test_paths.h"

namespace nowcalls::testing {

Machine::Machine() : path_(dir_.Sub("control")) {
  const int fd = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(MachineControl)) != 0) {
    throw std::runtime_error("cannot make " + path_);
  }
  void* mapped = mmap(nullptr, sizeof(MachineControl), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (mapped == MAP_FAILED) throw std::runtime_error("cannot map " + path_);
  control_ = static_cast<MachineControl*>(mapped);
}

Machine::~Machine() { munmap(control_, sizeof(MachineControl)); }

Environment Machine::environment() const {
  // AddressSanitizer wants to be the first library, but does not need to be.
  const char* given = std::getenv("ASAN_OPTIONS");
  return {{"LD_PRELOAD", NOWCALLS_TEST_BIN_DIR "/machine_shim.so"},
          {kMachineControlVariable, path_},
          {"ASAN_OPTIONS", (given == nullptr ? std::string() : std::string(given) + ":") +
                               "verify_asan_link_order=0"}};
}

void Machine::Reboot(int64_t wall_step_ms) {
  control_->wall_offset_ms += wall_step_ms;
  control_->boot_offset_ms = -BoottimeMs();
  ++control_->boot;
}

}  // namespace nowcalls::testing
