// SPDX-License-Identifier: GPL-2.0-only
// How much of a switch's packet memory a queue may take: the interface between buffers and the disciplines of sharing.
#pragma once

#include <cstddef>
#include <string>

#include "support/basics/registry.hpp"
#include "support/documents/spec.hpp"
#include "units/bandwidth.hpp"
#include "units/bytes.hpp"

namespace weft {

/// The packet memory of a switch at a moment, for one of its queues.
struct BufferUse {
  Bytes shared;            ///< in all, without reserves and headroom
  Bytes used;              ///< of that, by all queues
  std::size_t queues = 0;  ///< ingress queues that may use it
  Bandwidth rate;          ///< of the link that the queue is filled by
};

/// A frame for which an empty switch has no room.
struct MissingRoom {
  Bytes frame;
  Bytes reserve;    ///< of its queue
  Bytes size;       ///< of the memory
  Bytes set_aside;  ///< of that, for reserves and headroom
  BufferUse empty;
  std::string node;  ///< name of the switch

  Bytes beyond_reserve() const { return frame - reserve; }
};

/// A discipline and its parameters, made by name: `network.buffer.sharing`. Immutable once configured.
///
/// A limit is an indirect call. A buffer keeps one for somewhat more use than there is, and asks again only for queues
/// that are longer than that, or when more is used.
class BufferSharing {
 public:
  virtual ~BufferSharing() = default;
  /// Reads its keys of the map `network.buffer`; the caller finishes the map. Throws InputError.
  virtual void configure(const Spec& buffer) = 0;
  /// Most shared bytes that one queue may hold. Does not rise while more is used.
  virtual Bytes limit(const BufferUse& use) const = 0;
  /// What is wrong and what would be right, where no frame fits.
  virtual std::string remedy(const MissingRoom& missing) const;
};
using BufferSharingRegistry = Registry<BufferSharing>;

}  // namespace weft
