// Work on damaged files in a process of its own.
#include "store/salvage/trial.h"

#include <doctest/doctest.h>

#include <csignal>
#include <string>
#include <vector>

#include "base/exit_codes.h"
#include "base/last_words.h"

namespace nowcalls::store {
namespace {

using Kind = StoreError::Kind;

TEST_CASE("what work in a child has found and told is known to its parent") {
  const TrialEnd sound = Try([](const Tell& tell) {
    tell("one");
    tell("two");
    return StoreError();
  });
  CHECK(sound.error.ok());
  CHECK(sound.told == std::vector<std::string>{"one", "two"});
  const TrialEnd failed =
      Try([](const Tell&) { return StoreError(Kind::kOutOfFiles, "none", ""); });
  CHECK(failed.error.Is(Kind::kOutOfFiles));
  CHECK(failed.error.what() == "none");
}

TEST_CASE("work that ends its child is damage, with its last words, or what the system refused") {
  const TrialEnd damaged = Try([](const Tell& tell) -> StoreError {
    tell("one");
    EndWithLastWords("block.cc:7: a > 0; the ledger is damaged: restore it", kExitCorruption);
  });
  CHECK(damaged.error.Is(Kind::kDamaged));
  CHECK(damaged.error.what() == "block.cc:7: a > 0");
  CHECK(damaged.told == std::vector<std::string>{"one"});
  const TrialEnd refused =
      Try([](const Tell&) -> StoreError { EndWithLastWords("out of memory", kExitIoError); });
  CHECK(refused.error.Is(Kind::kIo));
  const TrialEnd crashed = Try([](const Tell&) {
    std::signal(SIGSEGV, SIG_DFL);  // Neither doctest nor a sanitizer is to tell of it.
    raise(SIGSEGV);
    return StoreError();
  });
  CHECK(crashed.error.Is(Kind::kDamaged));
  CHECK(crashed.error.what() == "its reader was ended by the signal Segmentation fault");
}

TEST_CASE("a child that is killed, as for want of memory, is no damage") {
  const TrialEnd killed = Try([](const Tell&) {
    raise(SIGKILL);
    return StoreError();
  });
  CHECK(killed.error.Is(Kind::kIo));
  CHECK(killed.error.WithAdvice().message().starts_with(
      "the process that tries to read the ledger was killed; raise the limits of processes"));
}

}  // namespace
}  // namespace nowcalls::store
