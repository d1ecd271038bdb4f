// One fuzz target, NOWCALLS_FUZZ_TARGET, as libFuzzer calls it. Built by `tools/dev fuzz` only.
//
// A failed assertion of a target, and a failed check of the product, must end the process so that
// libFuzzer keeps the input: by abort.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <stdint.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/check.h"
#include "fuzz/targets.h"

namespace nowcalls {

// In place of that of the product, which ends the process without a trace.
void CheckFailed(const char* file, int line, const char* expression) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, expression);
  std::abort();
}

}  // namespace nowcalls

namespace {

void Fail(const doctest::AssertData& assertion) {
  if (!assertion.m_failed) return;
  std::fprintf(stderr, "%s:%d: failed: %s\n  %s\n", assertion.m_file, assertion.m_line,
               assertion.m_expr, assertion.m_decomp.c_str());
  std::abort();
}

doctest::Context& OutOfTestCases() {
  static doctest::Context& context = *[] {
    auto* made = new doctest::Context;
    made->setAsDefaultForAssertsOutOfTestCases();
    made->setAssertHandler(Fail);
    return made;
  }();
  return context;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static_cast<void>(OutOfTestCases());
  nowcalls::fuzz::NOWCALLS_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
