// SPDX-License-Identifier: GPL-2.0-only
// The arrivals of a node in an epoch, put in order.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "transport/messages/packet.hpp"
#include "units/port_id.hpp"
#include "units/time.hpp"

namespace weft {

/// A packet that has arrived at a node. Without bytes that mean nothing, so that a copy is two halves of 16 bytes: a
/// load that overlaps two of the stores before it waits until both have reached the cache.
struct Arrival {
  Time time;
  std::uint64_t sequence;  ///< on its link
  Packet* packet;
  PortId port;               ///< through which it came
  std::uint32_t unused = 0;  ///< up to 32 bytes
};
static_assert(std::has_unique_object_representations_v<Arrival> && sizeof(Arrival) == 32);

/// One of the collected arrivals among those that leave by the same port: half of it, because it is moved to its place.
struct Departure {
  Time time;
  std::uint32_t number;  ///< in ArrivalOrder::collected()
  std::uint32_t unused = 0;
};

/// Collects arrivals port by port, each port's in order, and puts all of them in order.
///
/// Few ports: neighbouring runs are merged until one is left, log2(ports) passes in which no branch can be predicted.
/// Many: each arrival is put into its place among half as many again equal parts of the epoch as there are arrivals,
/// and the few that share a part are sorted by insertion; three passes whatever the number of ports. Where many share a
/// part, because a collective moves in step, runs are merged again.
class ArrivalOrder {
 public:
  void clear() {
    size_ = 0;
    runs_.clear();
  }
  /// The arrivals of the next port follow, at most `max` of them, in their order: where they are to be written.
  Arrival* begin_run(std::size_t max) {
    runs_.push_back(static_cast<std::uint32_t>(size_));
    if (size_ + max > arrivals_.size()) arrivals_.resize(2 * (size_ + max));
    return arrivals_.data() + size_;
  }
  /// Behind the last one that was written.
  void end_run(const Arrival* end) { size_ = static_cast<std::size_t>(end - arrivals_.data()); }

  /// As they were written: port by port.
  std::span<const Arrival> collected() const { return {arrivals_.data(), size_}; }
  std::size_t runs() const { return runs_.size(); }
  std::span<const Arrival> run(std::size_t number) const {
    const std::size_t end = number + 1 < runs_.size() ? runs_[number + 1] : size_;
    return collected().subspan(runs_[number], end - runs_[number]);
  }

  /// Puts those together that leave by the same port, in order: `to[i] < ports` of collected()[i]. departures() gives
  /// them.
  template <class Before>
  void deal_out(std::span<const std::uint16_t> to, std::size_t ports, const Before& before) {
    starts_.assign(ports + 1, 0);
    if (dealt_.size() < arrivals_.size()) dealt_.resize(arrivals_.size());
    if (places_.size() < ports) places_.resize(ports);
    for (std::size_t i = 0; i < size_; ++i) ++starts_[to[i]];
    std::uint32_t sum = 0;
    Departure* const first = dealt_.data();
    for (std::size_t port = 0; port < ports; ++port) {
      places_[port] = {first + sum, Time::from_ps(-1)};
      sum += std::exchange(starts_[port], sum);
    }
    starts_[ports] = sum;
    // Each port's arrivals are a few runs in order: mostly the next arrival is the last one.
    for (std::size_t i = 0; i < size_; ++i) {
      const Time time = arrivals_[i].time;
      DeparturePort& port = places_[to[i]];
      Departure* place = port.next++;
      if (time > port.last) {
        port.last = time;
      } else {
        const Departure* const begin = first + starts_[to[i]];
        const auto overtakes = [&](const Departure& other) {
          return time != other.time ? time < other.time : before(arrivals_[i], arrivals_[other.number]);
        };
        for (; place != begin && overtakes(place[-1]); --place) *place = place[-1];
      }
      place->time = time;
      place->number = static_cast<std::uint32_t>(i);
    }
  }
  /// After deal_out(): what leaves by a port.
  std::span<const Departure> departures(std::size_t port) const {
    return {dealt_.data() + starts_[port], dealt_.data() + starts_[port + 1]};
  }

  /// `before`: a strict total order that agrees with the order of times.
  template <class Before>
  std::span<const Arrival> sorted(const Before& before) {
    if (runs_.size() < min_runs || size_ < min_arrivals || !sort_by_place(before)) merge_runs(before);
    return {arrivals_.data(), size_};
  }

 private:
  /// Moves an arrival forward to its place among those from `first` on, which are in order.
  template <class Before>
  static void insert(Arrival* first, Arrival* from, const Before& before) {
    if (from == first || !before(*from, from[-1])) return;
    const Arrival moved = *from;
    do {
      *from = from[-1];
      --from;
    } while (from != first && before(moved, from[-1]));
    *from = moved;
  }

  struct DeparturePort {
    Departure* next;  // where the next one goes
    Time last;        // of those that are there
  };

  static constexpr std::size_t min_runs = 3;
  static constexpr std::size_t min_arrivals = 12;
  static constexpr std::uint32_t max_in_place = 8;
  static constexpr std::size_t max_places = 4096;

  template <class Before>
  bool sort_by_place(const Before& before) {
    const auto arrivals = std::span(arrivals_).first(size_);
    Time first = arrivals[0].time;
    Time last = first;
    for (std::size_t r = 0; r < runs_.size(); ++r) {
      const std::size_t end = r + 1 < runs_.size() ? runs_[r + 1] : size_;
      first = std::min(first, arrivals[runs_[r]].time);
      last = std::max(last, arrivals[end - 1].time);
    }
    const std::size_t places = std::min(size_ + size_ / 2, max_places);
    // Rounding moves an arrival by a place at most, and never before an earlier one: the conversion, the product with a
    // constant and the cut are all monotonic.
    const double scale = static_cast<double>(places - 1) / static_cast<double>((last - first).ps() + 1);
    if (place_of_.size() < size_) place_of_.resize(size_);  // what is made smaller has to be filled when it grows
    starts_.assign(places, 0);
    std::uint32_t max = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      const auto place = static_cast<std::uint32_t>(
          static_cast<std::int64_t>(static_cast<double>((arrivals[i].time - first).ps()) * scale));
      place_of_[i] = place;
      max = std::max(max, ++starts_[place]);
    }
    if (max > max_in_place) return false;
    std::uint32_t sum = 0;
    for (std::uint32_t& start : starts_) sum += std::exchange(start, sum);
    ordered_.resize(arrivals_.size());
    for (std::size_t i = 0; i < size_; ++i) ordered_[starts_[place_of_[i]]++] = arrivals[i];
    for (std::size_t i = 1; i < size_; ++i) insert(ordered_.data(), &ordered_[i], before);
    arrivals_.swap(ordered_);
    return true;
  }

  template <class Before>
  void merge_runs(const Before& before) {
    if (runs_.size() > 1) ordered_.resize(arrivals_.size());
    while (runs_.size() > 1) {
      std::size_t kept = 0;
      for (std::size_t r = 0; r < runs_.size(); r += 2) {
        const auto at = [this](std::size_t run) {
          return arrivals_.begin() + static_cast<std::ptrdiff_t>(run < runs_.size() ? runs_[run] : size_);
        };
        std::merge(at(r), at(r + 1), at(r + 1), at(r + 2), ordered_.begin() + runs_[r], before);
        runs_[kept++] = runs_[r];
      }
      runs_.resize(kept);
      arrivals_.swap(ordered_);
    }
  }

  std::size_t size_ = 0;
  std::vector<std::uint32_t> runs_;  // where each begins
  std::vector<Arrival> arrivals_;    // the first size_ of them
  std::vector<Arrival> ordered_;     // the same in better order, while it is made
  std::vector<std::uint32_t> place_of_;
  std::vector<std::uint32_t> starts_;  // [places] -> number, then position of the next arrival; [ports + 1] likewise
  std::vector<Departure> dealt_;       // by the port that they leave by
  std::vector<DeparturePort> places_;  // [ports]
};

}  // namespace weft
