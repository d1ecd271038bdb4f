// Listings: tokens page by page, oldest first, while tokens come and go.
#include <algorithm>
#include <functional>
#include <string>

#include "core/core.h"

namespace nowcalls::core {
namespace {

// Tokens one page looks at; a page may hold fewer rows than asked, even none, and go on.
constexpr uint32_t kLookedAtMax = 5000;

}  // namespace

Result<TokenPage> Core::ListTokens(Instant now, uint32_t owner, const TokenFilter& filter,
                                   uint32_t limit, uint64_t cursor) {
  Listing* listing = nullptr;
  if (cursor == 0) {
    listing = OpenListing(owner, filter);
  } else {
    Result<Listing*> found = FindListing(cursor, owner);
    if (!found.ok()) return found.status();
    listing = *found;
  }
  listing->used_ms = now.ms;
  TokenPage page;
  TokenSlot& next = listing->cursor.next;
  for (uint32_t seen = 0; next != kNoToken && seen < kLookedAtMax; ++seen) {
    if (page.tokens.size() == limit) break;
    const TokenEntry& entry = tokens_.at(next);
    if (now.ms - entry.issued_ms < listing->filter.min_age_ms) {
      next = kNoToken;  // All that follow are younger.
      break;
    }
    if (Matches(*listing, entry)) page.tokens.push_back(next);
    next = entry.next(listing->cursor.order);
  }
  if (next == kNoToken) {
    CloseListing(listing);
  } else {
    listing->id = next_listing_++;
    page.next_cursor = listing->id;
  }
  return page;
}

Result<Core::Listing*> Core::FindListing(uint64_t id, uint32_t owner) {
  for (const auto& listing : listings_) {
    if (listing->id == id && listing->owner == owner) return listing.get();
  }
  return Status::NotFound(
      "cursor " + std::to_string(id) +
      " is none of this connection, or is used up or forgotten; list again from "
      "the beginning");
}

Core::Listing* Core::OpenListing(uint32_t owner, const TokenFilter& filter) {
  if (ListingsOf(owner) >= options_.limits.listings_per_connection_max) {
    CloseOldestListing([&](uint32_t of) { return of == owner; });
  } else if (listings_.size() >= options_.limits.listings_max) {
    // Of an owner that has most: many who leave listings behind do not end that of one who goes on.
    int64_t most = 0;
    for (const auto& listing : listings_) most = std::max(most, ListingsOf(listing->owner));
    CloseOldestListing([&](uint32_t of) { return ListingsOf(of) == most; });
  }
  auto listing = std::make_unique<Listing>();
  listing->owner = owner;
  listing->filter = filter;
  listing->cursor = {TokenOrder::kAll, tokens_.all().head};
  if (filter.flow.has_value()) {
    const FlowSlot slot = flows_.Find(*filter.flow);
    listing->cursor = {TokenOrder::kFlow, slot == kNoFlow ? kNoToken : flows_.at(slot).tokens.head};
  }
  tokens_.Attach(&listing->cursor);
  listings_.push_back(std::move(listing));
  return listings_.back().get();
}

int64_t Core::ListingsOf(uint32_t owner) const {
  return std::count_if(listings_.begin(), listings_.end(),
                       [&](const auto& listing) { return listing->owner == owner; });
}

// The one unused for longest of those whose owner is `among`.
void Core::CloseOldestListing(const std::function<bool(uint32_t owner)>& among) {
  Listing* oldest = nullptr;
  for (const auto& listing : listings_) {
    if (!among(listing->owner)) continue;
    if (oldest == nullptr || listing->used_ms < oldest->used_ms) oldest = listing.get();
  }
  CloseListing(oldest);
}

void Core::CloseListing(Listing* listing) {
  tokens_.Detach(&listing->cursor);
  std::erase_if(listings_, [&](const auto& candidate) { return candidate.get() == listing; });
}

bool Core::Matches(const Listing& listing, const TokenEntry& entry) const {
  return !listing.filter.client_id.has_value() ||
         sessions_.at(entry.session).client_id == *listing.filter.client_id;
}

}  // namespace nowcalls::core
