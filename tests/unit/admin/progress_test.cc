#include "admin/progress.h"

#include <doctest/doctest.h>

#include <string>

namespace nowcalls::admin {
namespace {

struct Screen {
  std::string text;
  int64_t now_ms = 1000;

  Progress Make(bool enabled) {
    return Progress(
        enabled, "tokens", [this](std::string_view bytes) { text += bytes; },
        [this] { return now_ms; });
  }
};

void CountStrides(Progress* progress, uint64_t strides) {
  for (uint64_t i = 0; i < strides * Progress::kStride; ++i) progress->Count();
}

TEST_CASE("progress shows the count, the total and the rate on one line") {
  Screen screen;
  Progress progress = screen.Make(true);
  progress.set_total(1024);
  screen.now_ms += 500;
  CountStrides(&progress, 1);
  CHECK(screen.text == "\r\x1b[K256 of 1024 tokens, 512 a second");
}

TEST_CASE("progress shows nothing for quick work") {
  Screen screen;
  {
    Progress progress = screen.Make(true);
    screen.now_ms += 199;
    CountStrides(&progress, 10);
  }
  CHECK(screen.text.empty());
}

TEST_CASE("progress is rewritten at most five times a second") {
  Screen screen;
  Progress progress = screen.Make(true);
  for (int i = 0; i < 100; ++i) {
    screen.now_ms += 10;
    CountStrides(&progress, 1);
  }
  int lines = 0;
  for (const char c : screen.text) lines += c == '\r' ? 1 : 0;
  CHECK(lines == 5);
}

TEST_CASE("progress erases its line once") {
  Screen screen;
  {
    Progress progress = screen.Make(true);
    screen.now_ms += 300;
    CountStrides(&progress, 1);
    screen.text.clear();
    progress.Erase();
    CHECK(screen.text == "\r\x1b[K");
  }
  CHECK(screen.text == "\r\x1b[K");
}

TEST_CASE("progress that is not enabled is silent") {
  Screen screen;
  {
    Progress progress = screen.Make(false);
    screen.now_ms += 10'000;
    CountStrides(&progress, 4);
  }
  CHECK(screen.text.empty());
}

}  // namespace
}  // namespace nowcalls::admin
