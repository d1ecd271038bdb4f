// The main of every doctest binary.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

#include "support/sample.h"

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  const int result = context.run();
  if (result != 0) {
    std::printf("If a test failed on a sample of its cases, NOWCALLS_TEST_SEED=%llu repeats it.\n",
                static_cast<unsigned long long>(nowcalls::testing::SampleSeed()));
  }
  return result;
}
