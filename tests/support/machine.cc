#include "support/machine.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>

#include "base/clock.h"

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
  Environment environment = WithShim("machine_shim");
  environment[kMachineControlVariable] = path_;
  return environment;
}

void Machine::Reboot(int64_t wall_step_ms) {
  control_->wall_offset_ms += wall_step_ms;
  control_->boot_offset_ms = -BoottimeMs();
  ++control_->boot;
}

}  // namespace nowcalls::testing
