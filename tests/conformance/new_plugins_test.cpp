// SPDX-License-Identifier: GPL-2.0-only
// A plug-in of each registry that only this file knows. The suites beside it try each of them without any edit, and
// here it is asserted that they do.
#include <algorithm>
#include <set>

#include "fabric/buffer_sharing/buffer_sharing.hpp"
#include "fabric/load_balancing/load_balancing.hpp"
#include "fabric/marking/queue_marking.hpp"
#include "fabric/scheduling/port_scheduler.hpp"
#include "graph/topology/topology_builder.hpp"
#include "internet/background.hpp"
#include "routing/algorithm/routing_algorithm.hpp"
#include "schedule/collective/collective.hpp"
#include "schedule/collective/selection.hpp"
#include "schedule/program/configuration.hpp"
#include "schedule/program/workload.hpp"
#include "tests/conformance/samples.hpp"
#include "topologies/files/machine_file.hpp"
#include "transport/congestion_control/congestion_control.hpp"
#include "workloads/model/model_config.hpp"
#include "workloads/pipeline/one_chunk_schedule.hpp"

namespace weft::new_plugins_test {
namespace {

constexpr const char* name = "newcomer";

/// Another plug-in of its registry does the newcomer's work.
template <class Interface>
std::unique_ptr<Interface> other(const std::string& known) {
  return Registry<Interface>::instance().find(known)->make();
}

/// Registers the newcomer; its sample is that of `known`, or a separate one in the folder.
template <class Interface, class Implementation>
struct Newcomer {
  Newcomer() { static const Registration<Interface, Implementation> registration(name, "for tests"); }
  Newcomer(const std::string& folder, const std::string& sample) : Newcomer() {
    conformance::borrowed_samples()[{folder, name}] = sample;
  }
};

class Machine final : public TopologyBuilder {
 public:
  Topology build(const Spec& spec) const override { return other<TopologyBuilder>("star")->build(spec); }
};
const Newcomer<TopologyBuilder, Machine> machine("topologies", "../new_plugins/machine.yaml");

class Key final : public TopologyExtension {
 public:
  Topology extend(const Spec& value, Topology machine) const override {
    value.boolean();
    return machine;
  }
};
const Newcomer<TopologyExtension, Key> key("machine_keys", "../new_plugins/machine_key.yaml");

class Routing final : public RoutingAlgorithm {
 public:
  void prepare(const Topology& topology, std::uint64_t seed) override { tables_->prepare(topology, seed); }
  void route(NodeId at, std::span<const RouteRequest> requests, std::uint16_t* ports) const override {
    tables_->route(at, requests, ports);
  }
  std::vector<std::uint16_t> candidates(NodeId at, NodeId destination) const override {
    return tables_->candidates(at, destination);
  }

 private:
  std::unique_ptr<RoutingAlgorithm> tables_ = other<RoutingAlgorithm>("shortest_path");
};
const Newcomer<RoutingAlgorithm, Routing> routing("routing", "shortest_path.yaml");

class Format final : public MachineFormat {
 public:
  std::string ending() const override { return ".newcomer"; }
  Topology read(const std::string& text, const std::string& path) const override {
    return other<MachineFormat>("ns3")->read(text, path);
  }
};
const Newcomer<MachineFormat, Format> format("machine_formats", "ns3.txt");

class Scheduling final : public SchedulingDiscipline {
 public:
  bool shares() const override { return false; }
  std::unique_ptr<PortScheduler> make(const ClassShares&) const override { return nullptr; }
};
const Newcomer<SchedulingDiscipline, Scheduling> scheduling;

/// Marks what finds a megabyte.
class Marking final : public MarkingDiscipline {
 public:
  void configure(const Spec&) override {}
  Bytes floor(const MarkedPort&) const override { return Bytes(1'000'000); }
  std::unique_ptr<QueueMarker> make(const MarkedPort&) const override { return std::make_unique<Marker>(); }

 private:
  struct Marker final : QueueMarker {
    bool marks(const MarkingMoment& moment) override { return moment.queue > Bytes(1'000'000); }
  };
};
const Newcomer<MarkingDiscipline, Marking> marking;

class Balancing final : public LoadBalancing {
 public:
  Overtaking overtaking() const override { return Overtaking::never; }
};
const Newcomer<LoadBalancing, Balancing> balancing;

class Sharing final : public BufferSharing {
 public:
  void configure(const Spec&) override {}
  Bytes limit(const BufferUse& use) const override { return Bytes((use.shared - use.used).count() / 2); }
};
const Newcomer<BufferSharing, Sharing> sharing;

class Control final : public CongestionControlKind {
 public:
  void configure(const std::optional<Spec>& spec) override {
    if (spec) spec->finish();
  }
  void check(const FlowPath& path) const override { window_->check(path); }
  Services services() const override { return window_->services(); }
  EcnMarking default_marking(Bandwidth rate, Time base_rtt) const override {
    return window_->default_marking(rate, base_rtt);
  }
  std::unique_ptr<CongestionControl> make(const FlowPath& path) const override { return window_->make(path); }

 private:
  std::unique_ptr<CongestionControlKind> window_ = other<CongestionControlKind>("none");
};
const Newcomer<CongestionControlKind, Control> control;

class Collective final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::broadcast; }
  std::uint32_t credits(const CollectiveCall& call) const override { return chain_->credits(call); }
  std::unique_ptr<StepStream> steps(const CollectiveCall& call, std::uint32_t index,
                                    std::uint32_t lane) const override {
    return chain_->steps(call, index, lane);
  }

 private:
  std::unique_ptr<CollectiveAlgorithm> chain_ = other<CollectiveAlgorithm>("chain");
};
const Newcomer<CollectiveAlgorithm, Collective> collective;

class ScheduleFile final : public ScheduleReader {
 public:
  std::unique_ptr<CollectiveAlgorithm> read(const std::string& path) const override {
    return other<ScheduleReader>("schedule")->read(path);
  }
};
const Newcomer<ScheduleReader, ScheduleFile> schedule_file("schedules", "schedule.schedule");

class Selector final : public CollectiveSelector {
 public:
  Selection select(const CollectiveCall&, const SelectionContext&) const override {
    Selection choice;
    choice.algorithm = "ring";
    choice.reason = "always";
    return choice;
  }
};
const Newcomer<CollectiveSelector, Selector> selector;

class Kind final : public WorkloadReader {
 public:
  std::unique_ptr<Workload> read(const Spec& spec, const WorkloadContext& context) const override {
    return other<WorkloadReader>("traffic")->read(spec, context);
  }
};
const Newcomer<WorkloadReader, Kind> kind("workloads", "../new_plugins/workload.yaml");

class Background final : public BackgroundKind {
 public:
  std::unique_ptr<BackgroundTraffic> read(const Spec& spec, const BackgroundContext& context) const override {
    return other<BackgroundKind>("tcp")->read(spec, context);
  }
};
const Newcomer<BackgroundKind, Background> background("background", "../new_plugins/background.yaml");

class Family final : public ModelFamily {
 public:
  ModelConfig read(const JsonConfig& config) const override { return other<ModelFamily>("gpt2")->read(config); }
};
const Newcomer<ModelFamily, Family> family("model_families", "gpt2.json");

class Configuration final : public ConfigurationReader {
 public:
  bool recognises(const std::string& path, const std::string&) const override { return path.ends_with(".newcomer"); }
  std::string experiment(const std::string&) const override {
    return "topology: {kind: star, hosts: 2, link_rate: 1 Gb/s, link_delay: 1 us}\n"
           "workload: {kind: traffic, pattern: all_to_all, size: 1 kB}\n";
  }
};
const Newcomer<ConfigurationReader, Configuration> configuration("configurations",
                                                                 "../new_plugins/configuration.newcomer");

class Pipeline final : public OneChunkSchedule {
 public:
  std::unique_ptr<SlotStream> slots(const PipelineShape& shape, std::uint32_t rank) const override {
    return gpipe_->slots(shape, rank);
  }
  std::optional<double> idle_time(const PipelineShape& shape, const PipelineTimes& times) const override {
    return gpipe_->idle_time(shape, times);
  }
  std::uint32_t peak_activations(const PipelineShape& shape, std::uint32_t rank) const override {
    return gpipe_->peak_activations(shape, rank);
  }

 private:
  std::unique_ptr<PipelineSchedule> gpipe_ = other<PipelineSchedule>("gpipe");
};
const Newcomer<PipelineSchedule, Pipeline> pipeline;

/// Suites that have a test for the newcomer.
std::set<std::string> suites_with_newcomer() {
  std::set<std::string> suites;
  const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const ::testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j)
      if (std::string(suite.GetTestInfo(j)->name()).find(name) != std::string::npos) suites.insert(suite.name());
  }
  return suites;
}

TEST(NewPlugins, AreTriedByTheSuiteOfTheirRegistry) {
  const std::set<std::string> due = {
      "Registered/Families",      "Registered/Keys",           "Registered/Formats",   "Registered/Routings",
      "Registered/Marking",       "Registered/Scheduling",     "Registered/Sharing",   "Registered/Balancing",
      "Registered/Controls",      "Registered/Conformance",    "Registered/ManyRanks", "Registered/Faults",
      "Registered/ScheduleFiles", "Registered/Selections",     "Registered/Workloads", "Registered/Background",
      "Registered/ModelFamilies", "Registered/Configurations", "All/Schedules",
  };
  const std::set<std::string> found = suites_with_newcomer();
  for (const std::string& suite : due) EXPECT_TRUE(found.contains(suite)) << suite << " passes over the newcomer";
}

TEST(NewPlugins, WithoutASampleFail) {
  EXPECT_THROW(conformance::sample_of("topologies", "qwertzuiop"), std::runtime_error);
}

// No suite would try a sample whose plug-in has another name, or is gone.
TEST(Samples, BelongToSomebody) {
  const auto expect_known = [](const std::string& folder, std::vector<std::string> names) {
    for (const auto& file : std::filesystem::directory_iterator(conformance::samples_folder() / folder)) {
      const bool part_of_another =
          file.path().extension() != ".yaml" && (folder == "workloads" || folder == "topologies");
      if (part_of_another) continue;
      EXPECT_TRUE(std::find(names.begin(), names.end(), file.path().stem()) != names.end()) << file.path();
    }
  };
  expect_known("topologies", TopologyRegistry::instance().names());
  expect_known("machine_keys", ExtensionRegistry::instance().names());
  expect_known("machine_formats", MachineFormatRegistry::instance().names());
  expect_known("routing", RoutingRegistry::instance().names());
  expect_known("workloads", WorkloadRegistry::instance().names());
  expect_known("background", BackgroundRegistry::instance().names());
  expect_known("model_families", ModelFamilyRegistry::instance().names());
  expect_known("configurations", ConfigurationRegistry::instance().names());
  expect_known("schedules", ScheduleReaderRegistry::instance().names());
}

}  // namespace
}  // namespace weft::new_plugins_test
