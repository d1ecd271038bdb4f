// Samples of exhaustive tests. Such a test tries every byte, call, moment or seed there is, which
// takes minutes; by default it tries a sample of them. `tools/dev test --whole` tries all.
//
// Thread: any. The sample differs from run to run. A run that fails prints its seed, and
// NOWCALLS_TEST_SEED repeats its sample. A case that has failed once stays as a test of its own.
#ifndef NOWCALLS_SUPPORT_SAMPLE_H_
#define NOWCALLS_SUPPORT_SAMPLE_H_

#include <cstdint>
#include <vector>

namespace nowcalls::testing {

// NOWCALLS_TEST_WHOLE is set, and not to 0.
bool Whole();

// NOWCALLS_TEST_SEED, or a number drawn once by this process.
uint64_t SampleSeed();
// SampleSeed() was asked for.
bool Sampled();

// Numbers from 0 to `all` - 1, ascending: at most `whole` of them if Whole(), else at most `usual`,
// spread evenly, with the first and the last. REQUIRES: both >= 2.
std::vector<uint64_t> SampleOf(uint64_t all, uint64_t usual, uint64_t whole = UINT64_MAX);

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_SAMPLE_H_
