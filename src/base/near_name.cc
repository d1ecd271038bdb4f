#include "base/near_name.h"

#include <algorithm>
#include <cctype>
#include <numeric>

namespace nowcalls {
namespace {

constexpr size_t kLettersMax = 2;
constexpr size_t kLongNameBytes = 64;  // What is longer is no misspelt name.

// The least number of letters to add, leave out or change (Levenshtein's distance).
size_t Distance(std::string_view a, std::string_view b) {
  // One row of the table of distances between beginnings of `a` and `b`, renewed for each letter of
  // `a`.
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string PlainName(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c == '-' || c == '_') continue;
    plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return plain;
}

std::string NearName(std::string_view wrong, const std::vector<std::string>& names) {
  if (wrong.size() > kLongNameBytes) return {};
  const std::string plain_wrong = PlainName(wrong);
  std::string nearest;
  size_t least = kLettersMax + 1;
  for (const std::string& name : names) {
    const std::string plain = PlainName(name);
    // The distance is at least the difference of the lengths.
    const auto [shorter, longer] = std::minmax({plain.size(), plain_wrong.size()});
    if (longer - shorter >= least) continue;
    const size_t distance = Distance(plain_wrong, plain);
    if (distance >= least) continue;
    least = distance;
    nearest = name;
  }
  return nearest;
}

std::string DidYouMean(std::string_view wrong, const std::vector<std::string>& names) {
  const std::string near = NearName(wrong, names);
  return near.empty() ? near : "; did you mean " + near + "?";
}

}  // namespace nowcalls
