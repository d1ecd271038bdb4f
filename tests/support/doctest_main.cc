// The main of every doctest binary.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

#include "support/sample.h"

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  const int result = context.run();
  if (result != 0 && nowcalls::testing::Sampled()) {
    std::printf("A sample of cases was tried; NOWCALLS_TEST_SEED=%llu repeats it.\n",
                static_cast<unsigned long long>(nowcalls::testing::SampleSeed()));
  }
  return result;
}
