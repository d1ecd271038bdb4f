// Which acquires without an answer explain the tokens that no client was told of.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "crash/checker.h"
#include "crash/checker_times.h"

namespace nowcalls::crash {
namespace {

using Item = std::pair<int64_t, int64_t>;  // Flow and count.

// An acquire that may explain tokens: by its items, whether their token may have ended.
struct Candidate {
  std::map<Item, bool> items;
  bool used = false;
};

// Looks for acquires that explain the tokens of one client, each acquire used once. The tokens of a
// group have fences one after the other (ledger/FORMAT.md), and only ended ones may be missing.
class Explanation {
 public:
  // The tokens come by ascending fence.
  Explanation(std::vector<DumpedToken> tokens, std::vector<Candidate> candidates)
      : tokens_(std::move(tokens)), candidates_(std::move(candidates)) {}

  // The first token that cannot be explained; null: all can.
  const DumpedToken* FindUnexplained() { return ExplainFrom(0) ? nullptr : &tokens_.at(farthest_); }
  // How many groups explain tokens, when all can be explained.
  int64_t groups() const {
    return std::count_if(candidates_.begin(), candidates_.end(), [](const Candidate& candidate) {
      return candidate.used && candidate.items.size() > 1;
    });
  }

 private:
  bool ExplainFrom(size_t begin) {
    farthest_ = std::max(farthest_, begin);
    if (begin == tokens_.size()) return true;
    std::set<std::map<Item, bool>> tried;
    for (Candidate& candidate : candidates_) {
      if (candidate.used || !tried.insert(candidate.items).second) continue;
      candidate.used = true;
      for (size_t end = EndOfRun(candidate, begin); end > begin; --end) {
        if (IsWhole(candidate, begin, end) && ExplainFrom(end)) return true;
      }
      candidate.used = false;
    }
    return false;
  }

  static Item ItemOf(const DumpedToken& token) { return {token.flow_id, token.count}; }

  // The end of the longest run of tokens that may be of this acquire.
  size_t EndOfRun(const Candidate& candidate, size_t begin) const {
    std::set<Item> seen;
    size_t end = begin;
    while (end < tokens_.size() &&
           tokens_[end].fence - tokens_[begin].fence < candidate.items.size() &&
           candidate.items.contains(ItemOf(tokens_[end])) &&
           seen.insert(ItemOf(tokens_[end])).second) {
      ++end;
    }
    return end;
  }

  bool IsWhole(const Candidate& candidate, size_t begin, size_t end) const {
    std::map<Item, bool> excused = candidate.items;
    for (size_t i = begin; i < end; ++i) excused[ItemOf(tokens_[i])] = true;
    return std::all_of(excused.begin(), excused.end(),
                       [](const auto& item) { return item.second; });
  }

  std::vector<DumpedToken> tokens_;
  std::vector<Candidate> candidates_;
  size_t farthest_ = 0;
};

}  // namespace

// The acquires that may have been granted without anybody knowing, oldest first. A request id has
// the tokens of one grant at most: none if others of it are there, or if it was cancelled since.
std::vector<Items> Checker::Unanswered(const History& history) const {
  std::set<Request> taken;
  for (const auto& [id, token] : tokens_) {
    if (!token.gone) taken.insert({token.client, token.request_id});
  }
  std::vector<Items> unanswered;
  for (const Items items : history.Acquires()) {
    const Operation& first = items.front();
    if (first.outcome != Outcome::kUnknown) continue;
    const Request request{first.client, first.request_id};
    if (request.second != 0) {
      const auto cancelled = cancelled_.find(request);
      if (taken.contains(request)) continue;
      if (cancelled != cancelled_.end() && first.asked_us < cancelled->second) continue;
      taken.insert(request);
    }
    unanswered.push_back(items);
  }
  std::sort(unanswered.begin(), unanswered.end(),
            [](Items a, Items b) { return a.front().asked_us < b.front().asked_us; });
  return unanswered;
}

// Tokens that no client was told of must each belong to an acquire without an answer. For each
// token by itself any assignment is as good as another, so the oldest request gets the lowest
// fence: what follows from that holds for every assignment.
void Checker::Adopt(const Cycle& cycle, std::vector<DumpedToken> strangers, AskedByToken* adopted) {
  const std::vector<Items> unanswered = Unanswered(cycle.history);
  std::map<Wish, std::vector<const Operation*>> wishes;
  for (const Items items : unanswered) {
    for (const Operation& item : items) {
      wishes[{item.client, item.flow_id, item.count}].push_back(&item);
    }
  }
  std::map<Wish, size_t> used;
  std::map<std::string, std::vector<DumpedToken>> explained;
  std::sort(strangers.begin(), strangers.end(),
            [](const DumpedToken& a, const DumpedToken& b) { return a.fence < b.fence; });
  for (const auto& row : strangers) {
    const std::string id = std::to_string(row.token_id);
    const Wish wish{row.client_id, row.flow_id, row.count};
    const auto asked = wishes.find(wish);
    const size_t next = used[wish];
    if (ended_.contains(row.token_id) || reclaimed_.contains(row.token_id)) {
      Report("I2 token " + id + " came back", row.token_id);
    } else if (asked == wishes.end() || next == asked->second.size()) {
      Report("I3 nobody asked for token " + id + " of client " + row.client_id + " flow " +
                 std::to_string(row.flow_id) + " count " + std::to_string(row.count) +
                 ", or its request id was cancelled or has another token",
             row.token_id);
    } else {
      AdoptOne(cycle, row, asked->second);
      tokens_[row.token_id].asked_us = asked->second[next]->asked_us;
      adopted->emplace(row.token_id, asked->second[next]->asked_us);
      explained[row.client_id].push_back(row);
      ++used[wish];
      ++counts_.adopted;
    }
  }
  for (const auto& [client, rows] : explained) CheckGroupsWhole(cycle, unanswered, rows);
}

void Checker::AdoptOne(const Cycle& cycle, const DumpedToken& row,
                       const std::vector<const Operation*>& asked) {
  if (!fences_.insert(row.fence).second) {
    Report("I6 token " + std::to_string(row.token_id) + " has a fence given before", row.token_id);
  }
  Token token;
  token.client = row.client_id;
  token.flow_id = row.flow_id;
  token.count = row.count;
  token.fence = row.fence;
  token.issued_from_us = asked.front()->asked_us;
  token.held_from_us = cycle.dead_us;
  token.deadline_us = DueUs(asked.front()->asked_us, row.deadline_ms - row.issued_ms);
  token.offline_us = kNeverUs;
  token.release_us = kNeverUs;
  if (asked.size() == 1) token.request_id = asked.front()->request_id;
  for (const Operation* one : asked) token.requests.insert(one->request_id);
  token.trail.push_back("never answered, found in the ledger of cycle " + std::to_string(cycle_));
  tokens_.emplace(row.token_id, std::move(token));
}

// `rows` are adopted tokens of one client, by ascending fence.
void Checker::CheckGroupsWhole(const Cycle& cycle, const std::vector<Items>& unanswered,
                               const std::vector<DumpedToken>& rows) {
  std::vector<Candidate> candidates;
  std::string groups;
  for (const Items items : unanswered) {
    if (items.front().client != rows.front().client_id) continue;
    Candidate candidate;
    for (const Operation& item : items) {
      candidate.items[{item.flow_id, item.count}] = items.size() > 1 && MayHaveEnded(cycle, item);
      if (items.size() > 1) groups += "\n    " + Describe(item);
    }
    candidates.push_back(std::move(candidate));
  }
  if (groups.empty()) return;
  Explanation explanation(rows, std::move(candidates));
  const DumpedToken* row = explanation.FindUnexplained();
  if (row == nullptr) {
    counts_.adopted_groups += explanation.groups();
    return;
  }
  Report("I14 token " + std::to_string(row->token_id) + " of client " + row->client_id + " flow " +
             std::to_string(row->flow_id) + " count " + std::to_string(row->count) +
             " is in the ledger without the rest of its group, one of these:" + groups,
         row->token_id);
}

}  // namespace nowcalls::crash
