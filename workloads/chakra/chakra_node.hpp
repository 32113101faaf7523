// SPDX-License-Identifier: GPL-2.0-only
// Nodes of a Chakra execution trace, as its files list them (docs/reference/traces.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "support/basics/error.hpp"
#include "units/time.hpp"
#include "workloads/reading/byte_source.hpp"

namespace weft {

/// NodeType of schema/protobuf/et_def.proto (github.com/mlcommons/chakra), with its numbers.
enum class ChakraType : std::uint8_t {
  invalid,
  metadata,
  memory_load,
  memory_store,
  compute,
  send,
  recv,
  collective,
  storage,
  batch,
  checkpoint
};
constexpr std::uint64_t chakra_types = 11;

/// StorageLevel: where in the host a storage node was observed. System calls contain what is below them.
enum class ChakraStorageLevel : std::uint8_t { unknown, file_system, page, block, device };

/// The messages of the schema that weft uses. Attributes that are not named here are ignored.
struct ChakraNode {
  std::uint64_t id = 0;
  std::string name;
  ChakraType type = ChakraType::invalid;
  std::vector<std::uint64_t> data_dependencies;
  std::vector<std::uint64_t> control_dependencies;
  Time duration;
  Time not_before;           ///< "not_before_ps" of traces that weft has written: it does not start earlier
  std::string input_values;  ///< of metadata nodes; those of others would be most of a trace
  bool on_cpu = false;
  std::optional<std::int64_t> operations;   ///< num_ops
  std::optional<std::int64_t> tensor_size;  ///< bytes
  std::optional<std::int64_t> comm_type;    ///< CollectiveCommType
  std::optional<std::int64_t> comm_size;    ///< bytes
  std::optional<std::int64_t> comm_source, comm_destination, comm_tag;
  std::optional<std::int64_t> call;    ///< "weft_call" of traces that weft has written: number of the collective call
  std::optional<std::int64_t> root;    ///< "root", "root_rank" or "comm_root": index in the group
  std::optional<std::int64_t> stream;  ///< of the accelerator; negative: of none
  std::optional<std::int64_t> thread;  ///< "tid" of the processor
  std::string group;                   ///< "pg_name"
  bool leaves_out_dimensions = false;  ///< "involved_dim" has a false
};

/// An attribute's value. Lists but those of booleans are of no interest here: std::monostate.
using ChakraValue = std::variant<std::monostate, bool, __int128, double, std::string, std::vector<bool>>;

/// Sets what the attribute means. Throws InputError if the value cannot be meant.
void set_attribute(ChakraNode& node, std::string_view name, const ChakraValue& value, const std::string& file);

/// The name in ASCII, cut off where it is long: names of kernels can be thousands of bytes.
std::string printable_name(const ChakraNode& node);

/// "FILE: node 17 'name': MESSAGE".
InputError node_error(const std::string& file, const ChakraNode& node, const std::string& message);

/// The time of so many microseconds; refused from Time::limit() on.
Time chakra_duration(double microseconds, const ChakraNode& node, const std::string& file);

/// The nodes of one file in its order.
class ChakraStream {
 public:
  virtual ~ChakraStream() = default;
  /// False at the end. Throws InputError.
  virtual bool next(ChakraNode& node) = 0;
  /// The file's schema version: "0.0.4", "1.0.1", "1.0.2-chakra.0.0.4"; empty if nothing. Known after the stream has
  /// been opened.
  const std::string& schema() const { return schema_; }

 protected:
  std::string schema_;
};

/// Storage, batch and checkpoint nodes are work of the processor, for as long as they took. Behind all attributes.
void settle_host_work(ChakraNode& node, std::uint64_t storage_level);

/// Protobuf or JSON, recognised by the first bytes. Throws InputError, also for a schema that is not known.
std::unique_ptr<ChakraStream> open_chakra(ByteSource source);
std::unique_ptr<ChakraStream> open_chakra_protobuf(ByteSource source);
std::unique_ptr<ChakraStream> open_chakra_json(ByteSource source);

/// Throws InputError for a schema with other field numbers.
void require_schema(const std::string& schema, const std::string& file);

}  // namespace weft
