#include "core/listings.h"

#include <algorithm>
#include <string>
#include <utility>

namespace nowcalls::core {
namespace {

// Pages between two batches that get cursors of their own.
constexpr int kCursorBits = 24;

// Tokens that a page looks at. It may have fewer rows than asked for, even none, and go on.
constexpr uint32_t kLookedAtMax = 5000;

}  // namespace

// Every start commits a batch before it answers anything, so batch numbers separate the starts.
void Listings::Begin(uint64_t batch_number) { next_id_ = (batch_number << kCursorBits) + 1; }

Result<TokenPage> Listings::Page(Instant now, uint32_t owner, const TokenFilter& filter,
                                 uint32_t limit, uint64_t cursor, const Sight& sight) {
  Listing* listing = nullptr;
  if (cursor == 0) {
    listing = Open(owner, filter);
  } else {
    Result<Listing*> found = Find(cursor, owner);
    if (!found.ok()) return found.status();
    listing = *found;
  }
  // The walk goes on where the last page ended; the cursor has passed tokens that ended since.
  listing->used_ms = now.ms;
  TokenPage page;
  TokenSlot& next = listing->cursor.next;
  uint32_t seen = 0;
  for (; next != kNoToken && seen < kLookedAtMax; ++seen) {
    if (page.tokens.size() == limit) break;
    const TokenEntry& entry = tokens_->at(next);
    if (now.ms - entry.issued_ms < listing->filter.min_age_ms) {
      next = kNoToken;  // All that follow are younger.
      break;
    }
    if (IsSeen(entry, sight) && Matches(*listing, entry)) page.tokens.push_back(next);
    next = entry.next(listing->cursor.order);
  }
  *looks_ += seen - page.tokens.size();  // The others are paid for as rows.
  // A new cursor a page: a repeated call gets kNotFound, and loses no rows unnoticed.
  if (next == kNoToken) {
    Close(listing);
  } else {
    listing->id = next_id_++;
    page.next_cursor = listing->id;
  }
  return page;
}

void Listings::ForgetIdle(Instant now) {
  std::erase_if(listings_, [&](const std::unique_ptr<Listing>& listing) {
    const bool idle = now.ms - listing->used_ms >= limits_->listing_idle_ms;
    if (idle) tokens_->Detach(&listing->cursor);
    return idle;
  });
}

Instant Listings::NextIdle() const {
  Instant next = kNever;
  for (const auto& listing : listings_) {
    next = std::min(next, Instant{listing->used_ms + limits_->listing_idle_ms});
  }
  return next;
}

Result<Listings::Listing*> Listings::Find(uint64_t id, uint32_t owner) {
  for (const auto& listing : listings_) {
    if (listing->id == id && listing->owner == owner) return listing.get();
  }
  return Status::NotFound(
      "cursor " + std::to_string(id) +
      " is none of this connection, or is used up or forgotten; list again from "
      "the beginning");
}

Listings::Listing* Listings::Open(uint32_t owner, const TokenFilter& filter) {
  // Full: the owner's own oldest listing first.
  if (CountOf(owner) >= limits_->listings_per_connection_max) {
    CloseOldest([&](uint32_t of) { return of == owner; });
  } else if (listings_.size() >= limits_->listings_max) {
    // Closes one of an owner with most listings: an owner that leaves listings behind does not end
    // another's.
    int64_t most = 0;
    for (const auto& listing : listings_) most = std::max(most, CountOf(listing->owner));
    CloseOldest([&](uint32_t of) { return CountOf(of) == most; });
  }
  auto listing = std::make_unique<Listing>();
  listing->owner = owner;
  listing->filter = filter;
  listing->cursor = {TokenOrder::kAll, tokens_->all().head};
  if (filter.session.has_value()) {
    const SessionSlot slot = sessions_->FindById(*filter.session);
    listing->cursor = {TokenOrder::kSession,
                       slot == kNoSession ? kNoToken : sessions_->at(slot).tokens.head};
  } else if (filter.flow.has_value()) {
    // Two flows have two lists; only the list of all has the order by age. Matches picks the rows.
    const std::vector<FlowSlot> slots = FindAll(*flows_, {*filter.flow, filter.kind});
    if (slots.empty()) listing->cursor.next = kNoToken;
    if (slots.size() == 1) {
      listing->cursor = {TokenOrder::kFlow, flows_->at(slots.front()).tokens.head};
    }
  }
  tokens_->Attach(&listing->cursor);
  listings_.push_back(std::move(listing));
  return listings_.back().get();
}

int64_t Listings::CountOf(uint32_t owner) const {
  return std::count_if(listings_.begin(), listings_.end(),
                       [&](const auto& listing) { return listing->owner == owner; });
}

// Closes the longest unused listing of owners that `among` accepts.
template <typename Among>
void Listings::CloseOldest(Among among) {
  Listing* oldest = nullptr;
  for (const auto& listing : listings_) {
    if (!among(listing->owner)) continue;
    if (oldest == nullptr || listing->used_ms < oldest->used_ms) oldest = listing.get();
  }
  Close(oldest);
}

void Listings::Close(Listing* listing) {
  tokens_->Detach(&listing->cursor);
  std::erase_if(listings_, [&](const auto& candidate) { return candidate.get() == listing; });
}

// A row shows the token's flow, and the namespace of its session: both must be in sight.
bool Listings::IsSeen(const TokenEntry& entry, const Sight& sight) const {
  return sight.all() || (sight.Has(*flows_, entry.flow_slot) &&
                         sight.Has(*flows_, sessions_->at(entry.session_slot).name_space));
}

bool Listings::Matches(const Listing& listing, const TokenEntry& entry) const {
  const TokenFilter& filter = listing.filter;
  if (filter.flow.has_value() || filter.kind.has_value()) {
    const FlowKey key = flows_->at(entry.flow_slot).key();
    if (key.id != filter.flow.value_or(key.id) || key.kind != filter.kind.value_or(key.kind)) {
      return false;
    }
  }
  const SessionState& session = sessions_->at(entry.session_slot);
  return (!filter.client_id.has_value() || session.client_id == *filter.client_id) &&
         (!filter.instance.has_value() || session.instance == *filter.instance);
}

}  // namespace nowcalls::core
