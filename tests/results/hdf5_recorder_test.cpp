// SPDX-License-Identifier: GPL-2.0-only
// The result file: content by any number of processes, life and death of the file, errors.
// MPI ranks: 1 2 3
#include "results/hdf5/hdf5_recorder.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include "results/processes/agreement.hpp"
#include "results/tables/collective_results.hpp"
#include "support/basics/error.hpp"
#include "tests/results/sample_run.hpp"

namespace weft::hdf5_recorder_test {
namespace {

namespace fs = std::filesystem;

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int world_size() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

/// Most of them on disk.
CollectiveLog log_of(const std::vector<CollectivePart>& parts) {
  CollectiveLog log(4);
  for (const CollectivePart& part : parts) log.add(part);
  return log;
}

/// A file opened by one process through HDF5's serial driver.
class ReadFile {
 public:
  explicit ReadFile(const std::string& path) : file_(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT)) {}
  ~ReadFile() {
    if (file_ >= 0) H5Fclose(file_);
  }
  ReadFile(const ReadFile&) = delete;
  ReadFile& operator=(const ReadFile&) = delete;
  bool is_open() const { return file_ >= 0; }
  bool has(const std::string& name) const { return H5Lexists(file_, name.c_str(), H5P_DEFAULT) > 0; }

  template <class Value>
  std::vector<Value> column(const std::string& name, hid_t type) const {
    const hid_t dataset = H5Dopen2(file_, name.c_str(), H5P_DEFAULT);
    EXPECT_GE(dataset, 0) << name;
    const hid_t space = H5Dget_space(dataset);
    std::vector<Value> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
    EXPECT_TRUE(values.empty() || H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0) << name;
    H5Sclose(space);
    H5Dclose(dataset);
    return values;
  }
  std::vector<std::int64_t> integers(const std::string& name) const {
    return column<std::int64_t>(name, H5T_NATIVE_INT64);
  }
  std::vector<double> numbers(const std::string& name) const { return column<double>(name, H5T_NATIVE_DOUBLE); }

  std::vector<std::string> texts(const std::string& name) const {
    const hid_t dataset = H5Dopen2(file_, name.c_str(), H5P_DEFAULT);
    const hid_t type = H5Dget_type(dataset);
    const hid_t space = H5Dget_space(dataset);
    const std::size_t width = H5Tget_size(type);
    EXPECT_EQ(H5Tget_strpad(type), H5T_STR_NULLPAD);
    EXPECT_EQ(H5Tget_cset(type), H5T_CSET_UTF8);
    std::string raw(width * static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)), '\0');
    EXPECT_TRUE(raw.empty() || H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, raw.data()) >= 0);
    std::vector<std::string> result;
    for (std::size_t at = 0; at < raw.size(); at += width) {
      const std::string cell = raw.substr(at, width);
      result.push_back(cell.substr(0, cell.find('\0')));
    }
    H5Sclose(space);
    H5Tclose(type);
    H5Dclose(dataset);
    return result;
  }

  std::int64_t integer_attribute(const std::string& object, const std::string& name) const {
    std::int64_t value = -99;
    const hid_t attribute = H5Aopen_by_name(file_, object.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT);
    EXPECT_GE(attribute, 0) << object << "@" << name;
    H5Aread(attribute, H5T_NATIVE_INT64, &value);
    H5Aclose(attribute);
    return value;
  }
  std::string text_attribute(const std::string& object, const std::string& name) const {
    const hid_t attribute = H5Aopen_by_name(file_, object.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT);
    EXPECT_GE(attribute, 0) << object << "@" << name;
    const hid_t type = H5Aget_type(attribute);
    char* text = nullptr;
    H5Aread(attribute, type, &text);
    std::string result = text == nullptr ? "" : text;
    H5free_memory(text);
    H5Tclose(type);
    H5Aclose(attribute);
    return result;
  }

 private:
  hid_t file_;
};

/// A fresh folder, the same on all processes, removed at the end of each test.
class Recorder : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = (fs::temp_directory_path() / fmt::format("weft-results-{}", getpid())).string();
    folder_ = broadcast_text(MPI_COMM_WORLD, folder);
    if (world_rank() == 0) fs::create_directory(folder_);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  void TearDown() override {
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank() == 0) fs::remove_all(folder_);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename().string());
    return names;
  }

  std::string folder_;
};

Manifest sample_manifest() {
  Manifest manifest;
  manifest.version = "1.2.3";
  manifest.git_revision = "abcdef";
  manifest.experiment_file = "ring.yaml";
  manifest.experiment_text = "# λ\ntopology: {k: 4}\n" + std::string(100'000, '#');  // above an attribute's 64 KiB
  manifest.effective_experiment = "topology: {k: 8}\n";
  manifest.seed = 7;
  manifest.model = {{"topology", "fat-tree, k = 4"}, {"hosts", "16"}};
  // Differs between processes: the first one's must win, or the collective metadata would diverge.
  manifest.host = fmt::format("machine{}", std::string(static_cast<std::size_t>(1 + world_rank()), 'x'));
  manifest.command_line = fmt::format("weft run {}", world_rank());
  manifest.date = "2000-01-01T00:00:00Z";
  manifest.engine = "weft";
  manifest.partition = {{"method", "pods"}};
  return manifest;
}

void write_sample(MPI_Comm comm, const std::string& path, std::uint64_t salt, bool complete = true,
                  bool portions = false) {
  int process = 0;
  int processes = 0;
  MPI_Comm_rank(comm, &process);
  MPI_Comm_size(comm, &processes);
  const sample::Deal deal{salt, static_cast<std::uint32_t>(process), static_cast<std::uint32_t>(processes)};
  Hdf5Recorder recorder(comm, path);
  recorder.write_manifest(sample_manifest());
  recorder.write_outcome(sample::simulated_time, 0x1234);
  // In portions, as a long run writes them: by time, and one that is empty.
  std::vector<MessageRecord> late = sample::messages(deal);
  std::vector<MessageRecord> early;
  std::erase_if(late, [&early](const MessageRecord& row) {
    const bool is_early = row.delivered < 2500;
    if (is_early) early.push_back(row);
    return is_early;
  });
  if (portions) {
    recorder.append(std::move(early), false);
    recorder.append(std::vector<MessageRecord>(), false);
    early.clear();
  }
  late.insert(late.end(), early.begin(), early.end());
  recorder.append(std::move(late), true);
  CollectiveLog log = log_of(sample::dealt<CollectivePart>(deal, sample::collectives, sample::part, sample::ranks));
  recorder.write_collectives(log, sample::directory());
  recorder.write(sample::dealt<LinkRecord>(
      deal, sample::links, [](std::uint32_t id, std::uint32_t) { return sample::link(id); }, 1));
  const auto series = sample::dealt<LinkSample>(deal, sample::links, sample::sample, sample::samples_per_link);
  std::vector<LinkSample> closed;
  std::vector<LinkSample> rest;
  for (const LinkSample& row : series) (portions && row.interval < 2 ? closed : rest).push_back(row);
  if (portions) recorder.append(std::move(closed), false, sample::interval);
  recorder.append(std::move(rest), true, sample::interval);
  recorder.write(sample::dealt<RankRecord>(
      deal, sample::ranks, [](std::uint32_t id, std::uint32_t) { return sample::rank(id); }, 1));
  recorder.write(process == 0 ? std::vector<JobRecord>{sample::job(1), sample::job(0)} : std::vector<JobRecord>());
  recorder.write(sample::dealt<OperationRecord>(deal, sample::ranks, sample::operation, sample::operations_per_rank));
  ProcessRecord own;
  own.process = static_cast<std::uint32_t>(process);
  own.packet_hops = 100 + own.process;
  recorder.write_processes({own}, {{"wall_seconds", 1.0 + process, "s"}});
  recorder.finish(complete);
}

void expect_messages(const ReadFile& file) {
  std::vector<MessageRecord> expected;
  for (std::uint32_t source = 0; source < sample::ranks; ++source)
    for (std::uint32_t n = 0; n < sample::messages_of(source); ++n) expected.push_back(sample::message(source, n));
  std::sort(expected.begin(), expected.end(), [](const MessageRecord& a, const MessageRecord& b) {
    return std::pair(a.delivered, a.id) < std::pair(b.delivered, b.id);
  });
  const auto expect_column = [&](const std::string& name, auto get) {
    std::vector<std::int64_t> values;
    for (const MessageRecord& row : expected) values.push_back(static_cast<std::int64_t>(get(row)));
    EXPECT_EQ(file.integers("messages/" + name), values) << name;
  };
  expect_column("id", [](const auto& row) { return row.id; });
  expect_column("source", [](const auto& row) { return row.source; });
  expect_column("destination", [](const auto& row) { return row.destination; });
  expect_column("bytes", [](const auto& row) { return row.bytes; });
  expect_column("issued", [](const auto& row) { return row.issued; });
  expect_column("delivered", [](const auto& row) { return row.delivered; });
  expect_column("ideal", [](const auto& row) { return row.ideal; });
  expect_column("packets", [](const auto& row) { return row.packets; });
  expect_column("collective", [](const auto& row) {
    return row.collective == no_collective ? std::int64_t{-1} : std::int64_t{row.collective};
  });
  expect_column("tag", [](const auto& row) { return row.tag; });
  EXPECT_EQ(file.integer_attribute("messages", "rows"), static_cast<std::int64_t>(expected.size()));
  EXPECT_EQ(file.text_attribute("messages/issued", "unit"), "ps");
}

void expect_collectives(const ReadFile& file) {
  std::vector<std::int64_t> ids, starts, ends, times, messages, sent;
  std::vector<double> algbw, busbw;
  std::vector<std::string> labels;
  for (std::uint32_t c = 0; c < sample::collectives; ++c) {
    const CollectiveInfo info = sample::collective(c);
    const std::int64_t start = sample::part(c, 0).start;  // starts rise with the rank, ends fall
    const std::int64_t end = sample::part(c, 0).end;
    std::int64_t all_messages = 0;
    std::int64_t all_bytes = 0;
    for (std::uint32_t r = 0; r < sample::ranks; ++r) {
      all_messages += static_cast<std::int64_t>(sample::part(c, r).messages);
      all_bytes += sample::part(c, r).bytes;
    }
    ids.push_back(c);
    labels.push_back(info.label);
    starts.push_back(start);
    ends.push_back(end);
    times.push_back(end - start);
    algbw.push_back(static_cast<double>(info.bytes) / (static_cast<double>(end - start) * 1e-12) / 1e9);
    busbw.push_back(algbw.back() * info.bus_factor);
    messages.push_back(all_messages);
    sent.push_back(all_bytes);
  }
  EXPECT_EQ(file.integers("collectives/id"), ids);
  EXPECT_EQ(file.texts("collectives/label"), labels);
  EXPECT_EQ(file.integers("collectives/start"), starts);
  EXPECT_EQ(file.integers("collectives/end"), ends);
  EXPECT_EQ(file.integers("collectives/time"), times);
  EXPECT_EQ(file.integers("collectives/messages"), messages);
  EXPECT_EQ(file.integers("collectives/sent_bytes"), sent);
  for (std::size_t c = 0; c < algbw.size(); ++c) {
    EXPECT_DOUBLE_EQ(file.numbers("collectives/algbw")[c], algbw[c]);
    EXPECT_DOUBLE_EQ(file.numbers("collectives/busbw")[c], busbw[c]);
  }
}

void expect_links(const ReadFile& file) {
  std::vector<std::int64_t> ids, busy;
  std::vector<double> utilization, mean_queue;
  std::vector<std::string> to_names, classes;
  for (std::uint32_t id = 0; id < sample::links; ++id) {
    const LinkRecord row = sample::link(id);
    ids.push_back(id);
    busy.push_back(row.busy);
    utilization.push_back(static_cast<double>(row.busy) / static_cast<double>(sample::simulated_time));
    mean_queue.push_back(row.mean_queue);
    to_names.push_back(row.to_name);
    classes.push_back(row.link_class);
  }
  EXPECT_EQ(file.integers("links/id"), ids);
  EXPECT_EQ(file.integers("links/busy"), busy);
  EXPECT_EQ(file.numbers("links/utilization"), utilization);
  EXPECT_EQ(file.numbers("links/mean_queue"), mean_queue);
  EXPECT_EQ(file.texts("links/to_name"), to_names);
  EXPECT_EQ(file.texts("links/link_class"), classes);
}

void expect_series_ranks_operations(const ReadFile& file) {
  std::vector<std::int64_t> queue;
  std::vector<double> utilization;
  for (std::uint32_t n = 0; n < sample::samples_per_link; ++n)
    for (std::uint32_t link = 0; link < sample::links; ++link) {
      const LinkSample row = sample::sample(link, n);
      queue.push_back(row.queue);
      utilization.push_back(static_cast<double>(row.busy) / static_cast<double>(sample::interval_length(n)));
    }
  EXPECT_EQ(file.integers("links_series/queue"), queue);
  EXPECT_EQ(file.numbers("links_series/utilization"), utilization);
  EXPECT_EQ(file.integer_attribute("links_series", "interval"), sample::interval);
  EXPECT_EQ(file.integers("links_series/time").back(), sample::simulated_time);
  EXPECT_EQ(file.texts("jobs/name"), (std::vector<std::string>{"job0", "job1"}));
  EXPECT_EQ(file.integers("jobs/time"), (std::vector<std::int64_t>{900, 1800}));
  EXPECT_EQ(file.numbers("jobs/step_time"), (std::vector<double>{900, 900}));
  EXPECT_EQ(file.numbers("jobs/compute"), (std::vector<double>{150, 225}));  // 600 of 4 ranks, 900 of 4
  EXPECT_EQ(file.numbers("jobs/idle"), (std::vector<double>{900 - 150 - 50, 1800 - 225 - 50}));
  std::vector<std::int64_t> received;
  std::vector<std::string> labels;
  for (std::uint32_t rank = 0; rank < sample::ranks; ++rank) {
    received.push_back(sample::rank(rank).bytes_received);
    for (std::uint32_t n = 0; n < sample::operations_per_rank; ++n) labels.push_back(sample::operation(rank, n).label);
  }
  EXPECT_EQ(file.integers("ranks/bytes_received"), received);
  EXPECT_EQ(file.texts("operations/label"), labels);
}

void expect_manifest(const ReadFile& file, int processes) {
  const Manifest manifest = sample_manifest();
  EXPECT_EQ(file.texts("manifest/experiment_text"), std::vector{manifest.experiment_text});
  EXPECT_EQ(file.texts("manifest/run/effective_experiment"), std::vector{manifest.effective_experiment});
  EXPECT_EQ(file.text_attribute("manifest", "version"), manifest.version);
  EXPECT_EQ(file.integer_attribute("manifest", "seed"), 7);
  EXPECT_EQ(file.text_attribute("manifest/model", "topology"), "fat-tree, k = 4");
  EXPECT_EQ(file.text_attribute("manifest/run", "host"), "machinex");
  EXPECT_EQ(file.texts("manifest/run/command_line"), std::vector<std::string>{"weft run 0"});
  EXPECT_EQ(file.integer_attribute("manifest/run", "mpi_ranks"), processes);
}

/// A communicator of the first `size` processes; MPI_COMM_NULL on the others.
MPI_Comm first_processes(int size) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank() < size ? 0 : MPI_UNDEFINED, world_rank(), &comm);
  return comm;
}

TEST_F(Recorder, ContentIsThatOfTheRowsForAnyNumberAndDealOfProcesses) {
  for (int size = 1; size <= world_size(); ++size) {
    for (std::uint64_t salt = 0; salt < 3; ++salt) {
      const std::string name = path(fmt::format("content{}.{}.h5", size, salt));
      if (MPI_Comm comm = first_processes(size); comm != MPI_COMM_NULL) {
        write_sample(comm, name, salt, true, salt == 2);
        MPI_Comm_free(&comm);
      }
      if (world_rank() != 0) continue;
      SCOPED_TRACE(name);
      const ReadFile file(name);
      ASSERT_TRUE(file.is_open());
      EXPECT_EQ(file.integer_attribute("/", "complete"), 1);
      EXPECT_EQ(file.integer_attribute("/", "simulated_time"), sample::simulated_time);
      EXPECT_EQ(file.text_attribute("/", "simulated_time_unit"), "ps");
      EXPECT_EQ(file.text_attribute("/", "fingerprint"), "0x0000000000001234");
      expect_manifest(file, size);
      expect_messages(file);
      expect_collectives(file);
      expect_links(file);
      expect_series_ranks_operations(file);
    }
  }
}

/// Runs a program on process 0 and gives its exit code to all.
int run_on_first(const std::string& command) {
  int status = 0;
  if (world_rank() == 0) {
    const int raw = std::system(command.c_str());
    status = WIFEXITED(raw) ? WEXITSTATUS(raw) : -1;
  }
  MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return status;
}

std::string source_file(const std::string& relative) {
  const char* root = std::getenv("WEFT_SOURCE");  // set by ctest
  return ((root != nullptr ? fs::path(root) : fs::current_path()) / relative).string();
}

TEST_F(Recorder, EveryDatasetIsDocumentedWithItsUnit) {
  write_sample(MPI_COMM_WORLD, path("schema.h5"), 1);
  const std::string check = "/usr/bin/python3 " + source_file("tests/results/schema_test.py") + " ";
  EXPECT_EQ(run_on_first(check + path("schema.h5") + " " + source_file("docs/reference/hdf5_schema.md")), 0);
  // The check can fail: one column less in the documentation.
  if (world_rank() == 0) {
    std::ifstream in(source_file("docs/reference/hdf5_schema.md"));
    std::ofstream out(path("short.md"));
    for (std::string line; std::getline(in, line);)
      if (line.find("`/messages/ideal`") == std::string::npos) out << line << "\n";
  }
  EXPECT_EQ(run_on_first(check + path("schema.h5") + " " + path("short.md") + " > /dev/null 2>&1"), 1);
}

TEST_F(Recorder, SameResultsTellsEqualFilesFromOthers) {
  write_sample(MPI_COMM_WORLD, path("all.h5"), 1);
  if (MPI_Comm one = first_processes(1); one != MPI_COMM_NULL) {
    write_sample(one, path("one.h5"), 2);
    write_sample(one, path("interrupted.h5"), 2, false);
    MPI_Comm_free(&one);
  }
  const std::string compare = "/usr/bin/python3 " + source_file("scripts/same_results") + " " + path("all.h5") + " ";
  EXPECT_EQ(run_on_first(compare + path("one.h5")), 0);
  EXPECT_EQ(run_on_first(compare + path("interrupted.h5") + " > /dev/null"), 1);
  EXPECT_EQ(run_on_first(compare + path("absent.h5") + " 2> /dev/null"), 2);
}

TEST_F(Recorder, TablesWithoutRowsAreThereAndEmpty) {
  Hdf5Recorder recorder(MPI_COMM_WORLD, path("empty.h5"));
  recorder.write_outcome(0, 0);
  recorder.write(std::vector<MessageRecord>());
  CollectiveLog nothing;
  recorder.write_collectives(nothing, sample::directory(0));
  recorder.write(std::vector<LinkRecord>());
  recorder.finish(true);
  if (world_rank() != 0) return;
  const ReadFile file(path("empty.h5"));
  EXPECT_EQ(file.integer_attribute("messages", "rows"), 0);
  EXPECT_TRUE(file.integers("messages/id").empty());
  EXPECT_TRUE(file.texts("links/from_name").empty());
  EXPECT_TRUE(file.integers("collectives/time").empty());
  EXPECT_FALSE(file.has("ranks"));
}

TEST_F(Recorder, UnfinishedCollectivesHaveNoTime) {
  Hdf5Recorder recorder(MPI_COMM_WORLD, path("unfinished.h5"));
  CollectiveLog log;
  if (world_rank() == world_size() - 1) log = log_of({sample::part(0, 1), sample::part(0, 2)});  // 2 of 5 ranks
  recorder.write_collectives(log, sample::directory(2));
  recorder.finish(false);
  if (world_rank() != 0) return;
  const ReadFile file(path("unfinished.h5"));
  EXPECT_EQ(file.integer_attribute("/", "complete"), 0);
  EXPECT_EQ(file.integers("collectives/finished_ranks"), (std::vector<std::int64_t>{2, 0}));
  EXPECT_EQ(file.integers("collectives/start"), (std::vector<std::int64_t>{sample::part(0, 1).start, -1}));
  EXPECT_EQ(file.integers("collectives/time"), (std::vector<std::int64_t>{-1, -1}));
  EXPECT_EQ(file.numbers("collectives/algbw"), (std::vector<double>{0, 0}));
}

TEST_F(Recorder, ReadableAndMarkedIncompleteWhileTheRunGoesOn) {
  Hdf5Recorder recorder(MPI_COMM_WORLD, path("running.h5"));
  recorder.write_manifest(sample_manifest());
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank() == 0) {
    EXPECT_FALSE(fs::exists(path("running.h5")));
    // A copy, as HDF5 refuses to open a file twice in one process with different drivers.
    fs::copy_file(path("running.h5.partial"), path("copy.h5"));
    const ReadFile file(path("copy.h5"));
    ASSERT_TRUE(file.is_open());
    EXPECT_EQ(file.integer_attribute("/", "complete"), 0);
    EXPECT_EQ(file.text_attribute("/", "format"), "weft-results");
    EXPECT_EQ(file.text_attribute("manifest", "git_revision"), "abcdef");
  }
  recorder.finish(false);
}

TEST_F(Recorder, ReplacesAnOlderFileOnlyAtTheEnd) {
  const std::string old = "\x89HDF\r\n\x1a\n";
  if (world_rank() == 0) std::ofstream(path("old.h5")) << old;
  MPI_Barrier(MPI_COMM_WORLD);
  { const Hdf5Recorder recorder(MPI_COMM_WORLD, path("old.h5")); }  // as in an exception
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_EQ(files(), std::vector<std::string>{"old.h5"});
  EXPECT_EQ(fs::file_size(path("old.h5")), old.size());
  MPI_Barrier(MPI_COMM_WORLD);
  Hdf5Recorder recorder(MPI_COMM_WORLD, path("old.h5"));
  recorder.finish(true);
  EXPECT_EQ(files(), std::vector<std::string>{"old.h5"});
  EXPECT_GT(fs::file_size(path("old.h5")), old.size());
}

TEST_F(Recorder, AProcessThatLeavesAloneDoesNotHang) {
  std::optional<Hdf5Recorder> recorder(std::in_place, MPI_COMM_WORLD, path("alone.h5"));
  if (world_rank() != 0) recorder.reset();  // the others wait their two seconds
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank() == 0) recorder.reset();
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_TRUE(files().empty());
}

std::string error_of_opening(const std::string& path) {
  try {
    const Hdf5Recorder recorder(MPI_COMM_WORLD, path);
  } catch (const EnvironmentError& error) {
    return error.what();
  }
  return "";
}

TEST_F(Recorder, SaysTheSameOnAllProcessesIfThePathCannotBeWritten) {
  const std::string missing = path("no/such/out.h5");
  EXPECT_EQ(error_of_opening(missing), "cannot write '" + missing + "': directory '" + path("no/such") +
                                           "': No such file or directory (create it first?)");
  EXPECT_EQ(error_of_opening(folder_), "cannot write '" + folder_ + "': it exists and is not a regular file");
  EXPECT_EQ(error_of_opening("/dev/null"), "cannot write '/dev/null': it exists and is not a regular file");
  EXPECT_NE(error_of_opening("/proc/out.h5"), "");
  EXPECT_NE(error_of_opening(""), "");
  EXPECT_TRUE(files().empty());
}

TEST_F(Recorder, KeepsFilesThatAreNoHdf5) {
  const std::string trace = path("trace.json");
  if (world_rank() == 0) std::ofstream(trace) << "{}";
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_EQ(error_of_opening(trace),
            "cannot write '" + trace + "': it exists and is no HDF5 file, so it is kept; expected another name");
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_EQ(files(), std::vector<std::string>{"trace.json"});
  // What `mktemp` makes is empty, and what an earlier run wrote is replaced.
  if (world_rank() == 0) std::ofstream(trace, std::ios::trunc);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int run = 0; run < 2; ++run) {
    Hdf5Recorder recorder(MPI_COMM_WORLD, trace);
    recorder.finish(true);
  }
  EXPECT_EQ(files(), std::vector<std::string>{"trace.json"});
}

TEST_F(Recorder, TwoRowsOfOneIdAreABugOnAllProcesses) {
  Hdf5Recorder recorder(MPI_COMM_WORLD, path("twice.h5"));
  std::vector<RankRecord> rows = {sample::rank(static_cast<std::uint32_t>(world_rank()))};
  if (world_rank() == world_size() - 1) rows.push_back(sample::rank(0));
  EXPECT_THROW(recorder.write(rows), InternalError);
}

// More than are summed up at once, and each with ranks on all processes: the written values are the sums of the parts.
TEST_F(Recorder, CollectivesInPiecesAreThoseOfAllProcesses) {
  constexpr std::uint32_t count = 20'000;
  const auto processes = static_cast<std::uint32_t>(world_size());
  const auto me = static_cast<std::uint32_t>(world_rank());
  CollectiveLog log(1000);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t id =
        (i * 7919U) % count;  // in no order, each once: 7919 is a prime that does not divide 20,000
    const std::int64_t start = 10 * std::int64_t{id} + me, end = start + 1000 + me;
    log.add({id, me, start, end, 2, 100});
    TimeParts parts;
    parts[TimePart::transfer] = end - start;
    log.add(id, {start, end, me, parts});
  }
  const CollectiveDirectory directory{
      count, [processes](std::uint32_t id) {
        return CollectiveInfo{id, "all_reduce", "ring", id == 17'777 ? "a longer label" : "x", processes, 100, 1, 0};
      }};
  Hdf5Recorder recorder(MPI_COMM_WORLD, path("pieces.h5"));
  recorder.write_collectives(log, directory, true);
  recorder.finish(true);
  if (world_rank() != 0) return;
  const ReadFile file(path("pieces.h5"));
  const auto ids = file.integers("collectives/id"), starts = file.integers("collectives/start");
  const auto ends = file.integers("collectives/end"), messages = file.integers("collectives/messages");
  const auto transfer = file.integers("collectives/part_transfer"), peers = file.integers("collectives/part_peers");
  EXPECT_EQ(file.integer_attribute("collectives", "rows"), count);
  ASSERT_EQ(ids.size(), count);
  const std::int64_t last = processes - 1;
  for (std::uint32_t id = 0; id < count; ++id) {
    ASSERT_EQ(ids[id], id);
    ASSERT_EQ(starts[id], 10 * std::int64_t{id});                     // the first rank's
    ASSERT_EQ(ends[id], 10 * std::int64_t{id} + last + 1000 + last);  // the last rank's
    ASSERT_EQ(messages[id], 2 * std::int64_t{processes});
    ASSERT_EQ(transfer[id], 1000 + last);  // of the rank that ended last
    ASSERT_EQ(peers[id], last);            // until that one had started
  }
  EXPECT_EQ(file.texts("collectives/label")[17'777], "a longer label");
  EXPECT_EQ(file.texts("collectives/label")[0], "x");
}

TEST(CollectiveResults, FirstProcessGetsTheLowestIds) {
  const sample::Deal deal{3, static_cast<std::uint32_t>(world_rank()), static_cast<std::uint32_t>(world_size())};
  CollectiveLog log = log_of(sample::dealt<CollectivePart>(deal, sample::collectives, sample::part, sample::ranks));
  const auto results = reduce_collectives(MPI_COMM_WORLD, log, sample::directory(), 3);
  ASSERT_EQ(results.size(), world_rank() == 0 ? 3U : 0U);
  for (std::uint32_t c = 0; c < results.size(); ++c) {
    EXPECT_EQ(results[c].info.id, c);
    EXPECT_EQ(results[c].start, sample::part(c, 0).start);
    EXPECT_EQ(results[c].end, sample::part(c, 0).end);
    EXPECT_TRUE(results[c].finished());
  }
}

TEST(CollectiveResults, PartsOfUnknownCollectivesAreABugOnAllProcesses) {
  CollectiveLog log;
  if (world_rank() == world_size() - 1) log.add(sample::part(9, 0));
  EXPECT_THROW(reduce_collectives(MPI_COMM_WORLD, log, sample::directory(1)), InternalError);
}

}  // namespace
}  // namespace weft::hdf5_recorder_test
