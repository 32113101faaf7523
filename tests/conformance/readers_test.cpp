// SPDX-License-Identifier: GPL-2.0-only
// The contract of readers, for every registered kind of workload and of background, family of models, configuration of
// other programs, file of schedules and selection, on its sample.
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "fabric/parameters/network_parameters.hpp"
#include "internet/background.hpp"
#include "schedule/collective/collective_check.hpp"
#include "schedule/collective/selection.hpp"
#include "schedule/program/configuration.hpp"
#include "tests/conformance/samples.hpp"
#include "tests/topologies/machine.hpp"
#include "tests/workloads/workload_under_test.hpp"
#include "workloads/model/model_config.hpp"

namespace weft::readers_test {
namespace {

using conformance::sample_of;
using conformance::spec_of_sample;
using conformance::test_name;

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The workload of a map in a file of that folder, on 8 hosts.
std::unique_ptr<Workload> workload_of(const Spec& spec, const std::filesystem::path& folder, std::uint32_t hosts) {
  WorkloadContext context = test::context_of(hosts);
  context.directory = folder.string();
  return WorkloadRegistry::instance().find(spec.at("kind").text())->make()->read(spec, context);
}

/// Bytes by (sender, receiver, tag).
using Volumes = std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::int64_t>;

// Peers exist, ids and dependencies are those of operations_of(), each sent message is received unless it may arrive
// without a recv, and the members of each call, and no others, take part in it.
void expect_sound(const Workload& workload) {
  Volumes sent, received;
  std::map<std::uint32_t, std::set<std::uint32_t>> members;
  bool unexpected = false;
  for (std::uint32_t rank = 0; rank < workload.ranks(); ++rank) {
    unexpected = unexpected || workload.program(Rank(rank))->accepts_unexpected();
    for (const Operation& operation : test::operations_of(workload, rank)) {
      const std::uint32_t peer = operation.peer.value();
      if (operation.kind == Operation::Kind::collective) members[operation.call->id].insert(rank);
      if (operation.kind != Operation::Kind::send && operation.kind != Operation::Kind::recv) continue;
      ASSERT_LT(peer, workload.ranks());
      if (operation.kind == Operation::Kind::send)
        sent[{rank, peer, operation.tag}] += operation.bytes.count();
      else
        received[{peer, rank, operation.tag}] += operation.bytes.count();
    }
  }
  if (!unexpected) {
    EXPECT_EQ(sent, received);
  }
  EXPECT_EQ(members.size(), workload.call_count());
  for (const auto& [id, ranks] : members) {
    const CollectiveCall call = workload.call(id);
    std::set<std::uint32_t> due;
    for (std::uint32_t i = 0; i < call.communicator->size(); ++i) due.insert(call.communicator->rank(i).value());
    EXPECT_EQ(ranks, due) << call.label;
  }
  EXPECT_FALSE(workload.description().empty());
  EXPECT_GT(workload.estimate().messages, 0U);
}

class Workloads : public ::testing::TestWithParam<std::string> {
 protected:
  std::filesystem::path path_ = sample_of("workloads", GetParam());
};

TEST_P(Workloads, GiveProgramsThatFitTogether) {
  const auto workload = workload_of(Spec::load(path_.string()), path_.parent_path(), 8);
  ASSERT_GT(workload->ranks(), 1U);
  expect_sound(*workload);
}

// Each call makes a new program with the same operations.
TEST_P(Workloads, SayTheSameTwice) {
  const auto workload = workload_of(Spec::load(path_.string()), path_.parent_path(), 8);
  const auto one = test::operations_of(*workload, 0);
  const auto other = test::operations_of(*workload, 0);
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].id, other[i].id);
    EXPECT_EQ(one[i].bytes, other[i].bytes);
    EXPECT_EQ(one[i].duration, other[i].duration);
  }
}

TEST_P(Workloads, RefuseUnknownKeys) {
  Spec spec = Spec::load(path_.string());
  spec.set("qwertzuiop", "1");
  EXPECT_THROW(workload_of(spec, path_.parent_path(), 8), InputError);
}

INSTANTIATE_TEST_SUITE_P(Registered, Workloads, ::testing::ValuesIn(WorkloadRegistry::instance().names()), test_name);

class Background : public ::testing::TestWithParam<std::string> {
 protected:
  static std::unique_ptr<BackgroundTraffic> read(const Spec& spec) {
    static const NetworkParameters network;
    const std::string kind = spec.at("kind").text();
    return BackgroundRegistry::instance().find(kind)->make()->read(spec, {8, &network});
  }
};

TEST_P(Background, NamesHostsOfTheMachine) {
  const auto hosts = read(spec_of_sample("background", GetParam()))->hosts();
  EXPECT_FALSE(hosts.empty());
  for (const NodeId host : hosts) EXPECT_LT(host.value(), 8U);
}

TEST_P(Background, RefusesUnknownKeys) {
  Spec spec = spec_of_sample("background", GetParam());
  spec.set("qwertzuiop", "1");
  EXPECT_THROW(read(spec), InputError);
}

INSTANTIATE_TEST_SUITE_P(Registered, Background, ::testing::ValuesIn(BackgroundRegistry::instance().names()),
                         test_name);

class ModelFamilies : public ::testing::TestWithParam<std::string> {
 protected:
  static ModelConfig read(const std::string& text) {
    return ModelFamilyRegistry::instance().find(GetParam())->make()->read(JsonConfig::parse(text, "config.json"));
  }
  std::string text_ = text_of(sample_of("model_families", GetParam()));
};

TEST_P(ModelFamilies, HaveTheParametersOfTheirTensors) {
  const ModelConfig model = read(text_);
  std::int64_t parameters = elements_of(model.embedding) + elements_of(model.head);
  for (std::int64_t layer = 0; layer < model.layers(); ++layer)
    for (const Tensor& tensor : model.layer_shape(layer).tensors) {
      EXPECT_GT(tensor.elements, 0);
      parameters += tensor.elements;
    }
  EXPECT_GT(model.layers(), 0);
  EXPECT_EQ(model.parameters(), parameters);
  EXPECT_LE(model.active_parameters(), parameters);
  EXPECT_GT(model.active_parameters(), 0);
}

/// A model is read or refused with the file's name, and nothing else happens. True if it was refused.
bool refused(const std::function<void()>& action) {
  const std::string message = test::complaint(action);
  EXPECT_TRUE(message.empty() || message.starts_with("config.json")) << message;
  return !message.empty();
}

TEST_P(ModelFamilies, RefuseFieldsThatMakeNoSense) {
  const auto whole = nlohmann::json::parse(text_);
  std::size_t count = 0;
  for (const auto& item : whole.items()) {
    auto changed = whole;
    changed.erase(item.key());
    count += refused([&] { read(changed.dump()); }) ? 1 : 0;
    changed[item.key()] = -1;
    count += refused([&] { read(changed.dump()); }) ? 1 : 0;
  }
  EXPECT_GT(count, 0U);
}

INSTANTIATE_TEST_SUITE_P(Registered, ModelFamilies, ::testing::ValuesIn(ModelFamilyRegistry::instance().names()),
                         test_name);

class Configurations : public ::testing::TestWithParam<std::string> {
 protected:
  std::filesystem::path path_ = sample_of("configurations", GetParam());
};

TEST_P(Configurations, KnowTheirFilesAndNoOthers) {
  for (const auto& [name, entry] : ConfigurationRegistry::instance().entries()) {
    const std::filesystem::path sample = sample_of("configurations", name);
    EXPECT_EQ(ConfigurationRegistry::instance().find(GetParam())->make()->recognises(sample.string(), text_of(sample)),
              sample == path_)
        << name;
  }
}

TEST_P(Configurations, GiveAnExperimentThatCanBeRead) {
  const std::string text = ConfigurationRegistry::instance().find(GetParam())->make()->experiment(path_.string());
  Spec experiment = Spec::parse(text, "experiment.yaml");
  const Topology machine = build_topology(experiment.at("topology"));
  const auto read = [&] {
    return workload_of(experiment.at("workload"), path_.parent_path(), machine.graph.host_count());
  };
  // Some describe how a model is trained, but not which model.
  if (test::complaint(read).find("also give `model`") != std::string::npos) experiment.set("workload.model", "gpt2");
  const auto workload = read();
  EXPECT_LE(workload->ranks(), machine.graph.host_count());
  EXPECT_FALSE(workload->description().empty());
}

INSTANTIATE_TEST_SUITE_P(Registered, Configurations, ::testing::ValuesIn(ConfigurationRegistry::instance().names()),
                         test_name);

class ScheduleFiles : public ::testing::TestWithParam<std::string> {};

TEST_P(ScheduleFiles, AreCollectivesThatAreRight) {
  const auto algorithm =
      ScheduleReaderRegistry::instance().find(GetParam())->make()->read(sample_of("schedules", GetParam()).string());
  std::size_t kinds = 0;
  for (const std::string& name : collective_kind_names()) {
    const Communicator members(0, algorithm->fixed_ranks() != 0 ? algorithm->fixed_ranks() : 4);
    CollectiveCall call;
    call.kind = *parse_collective_kind(name);
    call.communicator = &members;
    call.size = Bytes(65'536);
    call.tuning.protocol = algorithm->fixed_protocol().value_or(Protocol::simple);
    if (!algorithm->supports(call.kind) || !algorithm->refuses(call).empty()) continue;
    ++kinds;
    const CollectiveReplay result = replay(*algorithm, call);
    EXPECT_TRUE(result.violations.empty()) << name << ": " << fmt::format("{}", fmt::join(result.violations, "\n"));
  }
  EXPECT_GT(kinds, 0U);
}

TEST_P(ScheduleFiles, RefuseDamage) {
  const std::string text = text_of(sample_of("schedules", GetParam()));
  const test::TemporaryFile half("half." + GetParam(), text.substr(0, text.size() / 2));
  try {
    ScheduleReaderRegistry::instance().find(GetParam())->make()->read(half.path());
    ADD_FAILURE() << "half of it is taken for all";
  } catch (const InputError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with(half.path())) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Registered, ScheduleFiles, ::testing::ValuesIn(ScheduleReaderRegistry::instance().names()),
                         test_name);

class Selections : public ::testing::TestWithParam<std::string> {};

// From one byte to a gigabyte, for 2 to 16 ranks: an algorithm that there is, and that can do it.
TEST_P(Selections, ChooseWhatIsPossible) {
  const auto selector = SelectorRegistry::instance().find(GetParam())->make();
  const SelectionContext context{Time::from_us(2), Bandwidth::from_gbps(400), false};
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                    CollectiveKind::reduce_scatter, CollectiveKind::broadcast})
    for (const std::uint32_t ranks : {2U, 6U, 8U, 16U})
      for (std::int64_t size = 1; size <= std::int64_t{1} << 30; size *= 64) {
        const Communicator members(0, ranks);
        CollectiveCall call;
        call.kind = kind;
        call.communicator = &members;
        call.size = Bytes(size);
        call.algorithm = GetParam();
        const Selection choice = selector->select(call, context);
        const auto algorithm = find_collective(choice.algorithm);
        ASSERT_NE(algorithm, nullptr) << choice.algorithm;
        EXPECT_TRUE(algorithm->supports(kind)) << choice.algorithm << ' ' << to_text(kind);
        EXPECT_FALSE(choice.reason.empty());
      }
}

INSTANTIATE_TEST_SUITE_P(Registered, Selections, ::testing::ValuesIn(SelectorRegistry::instance().names()), test_name);

}  // namespace
}  // namespace weft::readers_test
