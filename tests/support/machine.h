// Machine: what the real server takes for the machine it runs on. Its wall clock can be set, it can
// be booted anew, its disk can be slow.
//
// Thread: any. The server is the product's own binary with shim/machine_shim.cc before the C
// library; changes hold from the moment they are made, in a server that runs too.
#ifndef NOWCALLS_SUPPORT_MACHINE_H_
#define NOWCALLS_SUPPORT_MACHINE_H_

#include <string>

#include "shim/machine_control.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace nowcalls::testing {

class Machine {
 public:
  Machine();
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // For the processes that are to run on it.
  Environment environment() const;
  MachineControl& control() { return *control_; }

  // A power cut: another boot id, a boot clock that begins anew, and a wall clock that is wrong by
  // so much more than before. REQUIRES: the server was killed.
  void Reboot(int64_t wall_step_ms);

 private:
  TempDir dir_;
  const std::string path_;
  MachineControl* control_ = nullptr;
};

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_MACHINE_H_
