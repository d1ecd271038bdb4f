#include "fuzz/targets.h"

namespace nowcalls::fuzz {

const std::vector<Target>& Targets() {
  static const std::vector<Target> targets = {
      {"wire", FuzzWire},     {"ledger", FuzzLedger}, {"rules", FuzzRules},
      {"config", FuzzConfig}, {"log", FuzzLog},
  };
  return targets;
}

}  // namespace nowcalls::fuzz
