// SPDX-License-Identifier: GPL-2.0-only
// Workload kind `collective`: one collective operation over the first ranks, repeated.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "support/basics/contract.hpp"
#include "units/text.hpp"
#include "workloads/reading/byte_source.hpp"
#include "workloads/reading/reading.hpp"

namespace weft {
namespace {

/// Iterations one after another on the communication stream, with a compute operation of length `gap` between them.
class CollectiveProgram : public RankProgram {
 public:
  CollectiveProgram(const Workload& workload, Time gap)
      : workload_(workload), calls_(static_cast<std::uint32_t>(workload.call_count())), gap_(gap) {}

  bool next(Operation& operation) override {
    if (call_ == calls_) return false;
    operation = Operation{};
    operation.id = id_;
    if (id_ > 0) operation.after.push_back(id_ - 1);
    ++id_;
    if (gap_due_) {
      gap_due_ = false;
      operation.stream = Stream::compute;
      operation.duration = gap_;
      operation.label = "gap";
      return true;
    }
    operation.kind = Operation::Kind::collective;
    operation.stream = Stream::communication;
    operation.call = std::make_shared<CollectiveCall>(workload_.call(call_++));
    operation.line = static_cast<std::uint32_t>(operation.call->where.line);
    operation.label = operation.call->label;
    gap_due_ = gap_ > Time() && call_ < calls_;
    return true;
  }
  std::size_t read_ahead() const override { return 4; }

 private:
  const Workload& workload_;
  std::uint32_t calls_;
  Time gap_;
  std::uint32_t call_ = 0;
  std::uint64_t id_ = 0;
  bool gap_due_ = false;
};

class CollectiveWorkload : public Workload {
 public:
  CollectiveWorkload(std::uint32_t ranks, CollectiveCall call, std::uint32_t iterations, Time gap)
      : communicator_(0, ranks), call_(std::move(call)), iterations_(iterations), gap_(gap) {
    call_.communicator = &communicator_;
  }

  std::uint32_t ranks() const override { return communicator_.size(); }
  std::uint64_t call_count() const override { return iterations_; }
  std::uint64_t steps() const override { return iterations_; }
  CollectiveCall call(std::uint32_t id) const override {
    CollectiveCall call = call_;
    call.id = id;
    call.label = fmt::format("{} {}", to_text(call.kind), id);
    return call;
  }

  std::unique_ptr<RankProgram> program(Rank rank) const override {
    WEFT_EXPECT(rank.value() < ranks(), "rank {} of {}", rank.value(), ranks());
    return std::make_unique<CollectiveProgram>(*this, gap_);
  }

  WorkloadEstimate estimate() const override {
    WorkloadEstimate estimate = estimate_call(call_);
    estimate.messages = static_cast<std::uint64_t>(
        std::min<unsigned __int128>(static_cast<unsigned __int128>(estimate.messages) * iterations_, UINT64_MAX));
    estimate.bytes = saturated(static_cast<unsigned __int128>(estimate.bytes.count()) * iterations_);
    estimate.compute = bounded_product(std::int64_t{iterations_} - 1, gap_);
    return estimate;
  }

  std::vector<std::pair<std::string, std::string>> description() const override {
    return {{"collective", std::string(to_text(call_.kind))},
            {"algorithm", call_.algorithm},
            {"size", to_text(call_.size)},
            {"iterations", std::to_string(iterations_)}};
  }

 private:
  Communicator communicator_;
  CollectiveCall call_;
  std::uint32_t iterations_;
  Time gap_;
};

/// The rows of a table of whole numbers, separated by commas, semicolons or blanks, as text: `#` begins a comment.
class BlockFile {
 public:
  explicit BlockFile(const std::string& path) : source_(path) {}

  /// The bytes of the next line that has any; false at the end of the file.
  bool next(std::vector<std::int64_t>& row) {
    for (std::string line; read(line);) {
      row.clear();
      line.erase(std::min(line.find('#'), line.size()));
      const bool commas = line.find_first_of(",;") != std::string::npos;
      for (std::size_t at = 0; at <= line.size();) {
        const std::size_t end = std::min(line.find_first_of(commas ? ",;" : " \t", at), line.size());
        const std::string cell = trimmed(line.substr(at, end - at));
        if (commas || !cell.empty()) row.push_back(number(cell));
        at = end + 1;
      }
      if (!row.empty()) return true;
    }
    return false;
  }
  InputError error(const std::string& message) const { return {{source_.name(), line_}, message}; }

 private:
  bool read(std::string& line) {
    if (source_.peek() == ByteSource::end) return false;
    ++line_;
    line.clear();
    for (int byte = source_.get(); byte != '\n' && byte != ByteSource::end; byte = source_.get())
      line += static_cast<char>(byte);
    constexpr std::string_view mark = "\xef\xbb\xbf";  // UTF-8's byte order mark, with which Excel begins a file
    if (line_ == 1 && line.starts_with(mark)) line.erase(0, mark.size());
    return true;
  }
  static std::string trimmed(const std::string& text) {
    constexpr const char* blanks = " \t\r";
    const std::size_t begin = text.find_first_not_of(blanks);
    return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
  }
  std::int64_t number(const std::string& cell) const {
    constexpr std::size_t max_digits = 19;
    constexpr std::uint64_t max = std::numeric_limits<std::int64_t>::max();
    if (cell.empty() || cell.size() > max_digits || cell.find_first_not_of("0123456789") != std::string::npos ||
        std::stoull(cell) > max)
      throw error(fmt::format("found '{}'; expected bytes as a whole number from 0 to {}", cell, max));
    return static_cast<std::int64_t>(std::stoull(cell));
  }

  ByteSource source_;
  int line_ = 0;
};

/// The same of a file, row by row.
class FileRows {
 public:
  FileRows(const std::string& path, std::uint32_t ranks, std::uint32_t rows)
      : file_(path), ranks_(ranks), rows_(rows) {}
  void read(std::uint32_t number, std::vector<std::int64_t>& row) {
    if (!file_.next(row)) throw file_.error(fmt::format("the file ends after {} rows; expected {}", number, rows_));
    if (row.size() != ranks_)
      throw file_.error(fmt::format("found {} entries; expected one for each of {} ranks", row.size(), ranks_));
  }
  void finish() {
    std::vector<std::int64_t> more;
    if (file_.next(more)) throw file_.error(fmt::format("a row more than {}", rows_));
  }

 private:
  BlockFile file_;
  std::uint32_t ranks_;
  std::uint32_t rows_;
};

/// Rows of a list: itself, or of pairs a list of lists.
class ListRows {
 public:
  ListRows(const Spec& list, std::uint32_t ranks, bool of_pairs) : ranks_(ranks), rows_{list} {
    if (of_pairs) rows_ = one_each(list);
  }
  void read(std::uint32_t number, std::vector<std::int64_t>& row) {
    row.clear();
    for (const Spec& size : one_each(rows_[number])) row.push_back(size.bytes().count());
  }
  void finish() {}

 private:
  std::vector<Spec> one_each(const Spec& list) const {
    if (list.items().size() != ranks_)
      throw list.error(fmt::format("found {} entries; expected one for each of {} ranks", list.size(), ranks_));
    return list.items();
  }
  std::uint32_t ranks_;
  std::vector<Spec> rows_;
};

/// A list of sizes, one per rank, or for all_to_all a list of rows, or a file of those. `size` must be their sum.
template <typename Rows>
void read_rows(const Spec& spec, std::uint32_t ranks, Rows rows, CollectiveCall& call) {
  unsigned __int128 total = 0;
  const auto row_of = [&](std::uint32_t number, std::vector<std::int64_t>& row) {
    rows.read(number, row);
    for (const std::int64_t size : row) total += static_cast<unsigned __int128>(size);
    // A table of more bytes than there are is refused below.
    if (total > static_cast<unsigned __int128>(call.size.count())) std::fill(row.begin(), row.end(), 0);
  };
  if (call.kind == CollectiveKind::all_to_all) {
    call.blocks = BlockTable::of_rows(ranks, row_of);
  } else {
    std::vector<std::int64_t> row;
    row_of(0, row);
    call.blocks = std::make_shared<const BlockTable>(ranks, std::move(row));
  }
  rows.finish();
  if (total != static_cast<unsigned __int128>(call.size.count()))
    throw spec.error(
        fmt::format("the blocks have {} bytes, but size says {}", saturated(total).count(), call.size.count()));
}

void read_blocks(const Spec& spec, std::uint32_t ranks, const std::string& directory, CollectiveCall& call) {
  if (call.kind == CollectiveKind::all_reduce || call.kind == CollectiveKind::broadcast ||
      call.kind == CollectiveKind::reduce || call.kind == CollectiveKind::barrier ||
      call.kind == CollectiveKind::send_recv)
    throw spec.error(fmt::format("'{}' has no blocks", to_text(call.kind)));
  const bool of_pairs = call.kind == CollectiveKind::all_to_all;
  if (spec.is_scalar())
    read_rows(spec, ranks, FileRows(resolve_file(spec, directory, "", ""), ranks, of_pairs ? ranks : 1), call);
  else
    read_rows(spec, ranks, ListRows(spec, ranks, of_pairs), call);
}

class CollectiveReader : public WorkloadReader {
 public:
  std::unique_ptr<Workload> read(const Spec& spec, const WorkloadContext& context) const override {
    static_cast<void>(spec.find("kind"));
    CollectiveCall call;
    const Spec kind = spec.at("collective");
    call.kind = *parse_collective_kind(kind.one_of(collective_kind_names()));
    call.where = kind.where();
    const CollectiveSettings options = read_collective_options(spec, context);
    call.algorithm = algorithm_of(options, context, call.kind);
    call.tuning = options.tuning;
    const auto count = spec.find("ranks");
    const std::uint32_t ranks = count ? require_ranks(*count, count->integer(), context) : context.hosts;
    call.root = read_root(spec, call.kind, ranks);
    call.size = read_size(spec, call.kind);
    if (const auto blocks = spec.find("block_sizes")) read_blocks(*blocks, ranks, context.directory, call);
    const auto repeat = spec.find("iterations");
    const auto iterations =
        repeat ? static_cast<std::uint32_t>(repeat->integer(1, std::numeric_limits<std::int32_t>::max())) : 1U;
    const auto gap = spec.find("gap");
    const Time pause = gap ? gap->time() : Time();
    if (bounded_product(std::int64_t{iterations} - 1, pause) >= Time::limit())
      throw gap->error(fmt::format("found {}; {} of them are longer than 106 days, where simulated time ends",
                                   to_text(pause), iterations - 1));
    spec.finish();
    const Communicator members(0, ranks);
    call.communicator = &members;
    settle_call(kind, call, context);
    return std::make_unique<CollectiveWorkload>(ranks, std::move(call), iterations, pause);
  }
};

const Registration<WorkloadReader, CollectiveReader> collective_registration("collective",
                                                                             "one collective operation, repeated");

}  // namespace
}  // namespace weft
