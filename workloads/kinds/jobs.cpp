// SPDX-License-Identifier: GPL-2.0-only
// Workload kind `jobs`: several workloads on one machine at the same time.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "schedule/program/server_check.hpp"
#include "support/basics/contract.hpp"
#include "support/basics/random.hpp"
#include "units/text.hpp"
#include "workloads/reading/reading.hpp"

namespace weft {
namespace {

/// Communicators of job j have the numbers from j * max_communicators on.
constexpr std::uint32_t max_communicators = 1U << 20;
constexpr std::uint32_t max_jobs = 1U << 12;
/// Entity of the random numbers that give jobs their seeds (workloads and placements use others).
constexpr std::uint64_t job_entity = std::uint64_t{1} << 52;

using Changes = std::vector<std::pair<std::string, std::string>>;

/// As YAML text.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char letter : text) result += letter == '\'' ? std::string("''") : std::string(1, letter);
  return result + "'";
}

struct Job {
  JobInfo info;
  std::unique_ptr<Workload> workload;
  Placement placement;
  bool share = false;
};

class JobsWorkload : public Workload {
 public:
  JobsWorkload(std::vector<Job> jobs, Time check) : jobs_(std::move(jobs)), check_(check) {
    for (Job& job : jobs_) {
      job.info.first_rank = ranks_;
      job.info.first_call = calls_;
      job.info.ranks = job.workload->ranks();
      job.info.calls = static_cast<std::uint32_t>(job.workload->call_count());
      job.info.steps = job.workload->steps();
      job.info.storage_ranks = job.workload->storage_ranks();
      ranks_ += job.info.ranks;
      calls_ += job.info.calls;
      placement_.append(job.placement);
    }
  }

  std::uint32_t ranks() const override { return ranks_; }
  std::uint64_t call_count() const override { return calls_; }
  const Placement* placement() const override { return &placement_; }
  Time background_check() const override { return check_; }
  std::uint64_t steps() const override { return 1; }

  std::vector<JobInfo> jobs() const override {
    std::vector<JobInfo> all;
    for (const Job& job : jobs_) all.push_back(job.info);
    return all;
  }
  Time start(Rank rank) const override {
    const Job& job = job_of_rank(rank.value());
    return bounded_sum(job.info.start, job.workload->start(Rank(rank.value() - job.info.first_rank)));
  }
  CollectiveCall call(std::uint32_t id) const override {
    const auto job = std::upper_bound(jobs_.begin(), jobs_.end(), id, [](std::uint32_t value, const Job& one) {
      return value < one.info.first_call + one.info.calls;
    });
    WEFT_EXPECT(job != jobs_.end(), "call {} of {}", id, calls_);
    return settled(*job, job->workload->call(id - job->info.first_call));
  }
  std::unique_ptr<RankProgram> program(Rank rank) const override;

  WorkloadEstimate estimate() const override {
    WorkloadEstimate all;
    unsigned __int128 bytes = 0;
    for (const Job& job : jobs_) {
      const WorkloadEstimate one = job.info.background ? WorkloadEstimate() : job.workload->estimate();
      all.messages += one.messages;
      bytes += static_cast<unsigned __int128>(one.bytes.count());
      all.compute = std::max(all.compute, bounded_sum(job.info.start, one.compute));
    }
    all.bytes = saturated(bytes);
    return all;
  }
  std::vector<std::pair<std::string, std::string>> description() const override {
    std::vector<std::pair<std::string, std::string>> lines;
    for (const Job& job : jobs_) {
      const JobInfo& info = job.info;
      lines.emplace_back(info.name, fmt::format("ranks {} to {}, the first on host {}, from {}{}", info.first_rank,
                                                info.first_rank + info.ranks - 1, job.placement.host(0).value(),
                                                to_text(info.start), info.background ? "; ends with the others" : ""));
      for (const auto& [name, value] : job.workload->description()) lines.emplace_back(info.name + ": " + name, value);
    }
    return lines;
  }
  bool from_user() const override {
    return std::any_of(jobs_.begin(), jobs_.end(), [](const Job& job) { return job.workload->from_user(); });
  }

  /// A call of a job, with its number and its members' in the whole.
  CollectiveCall settled(const Job& job, CollectiveCall call) const {
    const auto number = static_cast<std::uint32_t>(&job - jobs_.data());
    WEFT_EXPECT(call.communicator->id() < max_communicators, "communicator {}", call.communicator->id());
    const std::uint32_t id = number * max_communicators + call.communicator->id();
    auto& communicator = communicators_[id];
    if (!communicator)
      communicator = std::make_unique<Communicator>(call.communicator->shifted(id, job.info.first_rank));
    call.communicator = communicator.get();
    call.id += job.info.first_call;
    return call;
  }

 private:
  const Job& job_of_rank(std::uint32_t rank) const {
    const auto job = std::upper_bound(jobs_.begin(), jobs_.end(), rank, [](std::uint32_t value, const Job& one) {
      return value < one.info.first_rank + one.info.ranks;
    });
    WEFT_EXPECT(job != jobs_.end(), "rank {} of {}", rank, ranks_);
    return *job;
  }

  std::vector<Job> jobs_;
  Time check_;
  std::uint32_t ranks_ = 0;
  std::uint32_t calls_ = 0;
  Placement placement_;
  mutable std::map<std::uint32_t, std::unique_ptr<Communicator>> communicators_;  // those requested so far
};

/// The program of a rank of one job, with peers, calls and times of the whole.
class JobProgram : public RankProgram {
 public:
  JobProgram(const JobsWorkload& all, const Job& job, Rank rank)
      : all_(all), job_(job), program_(job.workload->program(rank)) {}

  bool next(Operation& operation) override {
    if (!program_->next(operation)) return false;
    operation.not_before = bounded_sum(operation.not_before, job_.info.start);
    if (operation.kind == Operation::Kind::send || operation.kind == Operation::Kind::recv)
      operation.peer = Rank(operation.peer.value() + job_.info.first_rank);
    if (operation.kind == Operation::Kind::collective)
      operation.call = std::make_shared<CollectiveCall>(all_.settled(job_, *operation.call));
    return true;
  }
  bool accepts_unexpected() const override { return program_->accepts_unexpected(); }
  bool receives_any() const override { return program_->receives_any(); }
  bool in_order_of_time() const override { return program_->in_order_of_time(); }
  std::size_t read_ahead() const override { return program_->read_ahead(); }
  bool reads_past_started() const override { return program_->reads_past_started(); }
  bool streams_are_processors() const override { return program_->streams_are_processors(); }
  bool takes_what_is_ready() const override { return program_->takes_what_is_ready(); }
  Time compute_time(const Operation& operation, Time now) const override {
    return program_->compute_time(operation, now - job_.info.start);
  }
  double compute_slowdown() const override { return program_->compute_slowdown(); }

 private:
  const JobsWorkload& all_;
  const Job& job_;
  std::unique_ptr<RankProgram> program_;
};

std::unique_ptr<RankProgram> JobsWorkload::program(Rank rank) const {
  const Job& job = job_of_rank(rank.value());
  return std::make_unique<JobProgram>(*this, job, Rank(rank.value() - job.info.first_rank));
}

/// The list `set` of a job: values that replace those of its workload.
std::vector<std::string> read_settings(const Spec& job) {
  std::vector<std::string> settings;
  const auto list = job.find("set");
  if (!list) return settings;
  for (const Spec& item : list->items()) {
    settings.push_back(item.text());
    if (const auto equals = settings.back().find('='); equals == 0 || equals == std::string::npos)
      throw item.error(fmt::format("found '{}'; expected KEY.PATH=VALUE, such as steps=2", settings.back()));
  }
  return settings;
}

/// The `workload` of a job: a map as of an experiment; or a file, which holds such a map or is an experiment, whose
/// workload is taken.
std::unique_ptr<Workload> read_part(const Spec& value, const std::vector<std::string>& settings,
                                    WorkloadContext context) {
  Spec map = value;
  if (!value.is_map()) {
    const std::string path = resolve_file(value, context.directory, "", "");
    const auto parent = std::filesystem::path(path).parent_path();
    context.directory = parent.empty() ? "." : parent.string();
    const Spec document = Spec::load(path);
    map = document.find("workload").value_or(document);
    if (const auto placement = map.find("placement"))
      throw value.error(
          fmt::format("the workload of '{}' has a placement of its own; a job has its placement beside "
                      "its workload: write the workload out here",
                      path));
  }
  for (const std::string& setting : settings)
    map.set(setting.substr(0, setting.find('=')), setting.substr(setting.find('=') + 1));
  if (map.has("placement")) throw map.at("placement").error("the placement of a job stands beside its workload");
  std::vector<std::string> kinds = WorkloadRegistry::instance().names();
  std::erase(kinds, "jobs");
  const std::string kind = map.at("kind").one_of(kinds);
  return WorkloadRegistry::instance().find(kind)->make()->read(map, context);
}

/// How long variants of one job take without the others. Those that are left out themselves are not timed: they are
/// read for the ranks that they would have.
std::function<Time(const Changes&)> time_alone(const std::function<Time(const Changes&)>& all, const std::string& name,
                                               std::size_t number, std::vector<std::string> settings, bool left_out) {
  if (!all) return nullptr;
  if (left_out) return [](const Changes&) { return Time::from_ps(1); };
  return [=](const Changes& changes) {
    std::vector<std::string> all_settings = settings;
    for (const auto& [key, value] : changes) all_settings.push_back(key + "=" + value);
    std::string list;
    for (const std::string& setting : all_settings) list += (list.empty() ? "" : ", ") + quoted(setting);
    const std::string job = fmt::format("jobs.{}.", number);
    return all({{"only", quoted(name)}, {job + "background", "false"}, {job + "set", "[" + list + "]"}});
  };
}

/// A job without its placement.
Job read_job(const Spec& spec, std::size_t number, const std::string& name, bool left_out, WorkloadContext context) {
  Job job;
  static_cast<void>(spec.find("name"));
  job.info.name = name;
  if (const auto start = spec.find("start")) job.info.start = start->time();
  if (const auto share = spec.find("share")) job.share = share->boolean();
  if (const auto background = spec.find("background")) job.info.background = background->boolean();
  static_cast<void>(spec.find("placement"));
  const auto ranks = spec.find("ranks");
  const auto workload = spec.find("workload");
  const std::vector<std::string> settings = read_settings(spec);
  spec.finish();
  if (ranks) context.hosts = require_ranks(*ranks, ranks->integer(), context);
  // The first job has the same seed as without the others.
  if (number > 0) context.seed = random_bits(context.seed, job_entity, number);
  context.endless = job.info.background;
  context.ideal_time = time_alone(context.ideal_time, name, number, settings, left_out);
  job.workload = read_part(spec.at("workload"), settings, context);
  const std::uint32_t found =
      job.workload->ranks() - (context.storage.empty() ? 0 : job.workload->storage_ranks());  // beside storage
  if (ranks && found != context.hosts)
    throw ranks->error(fmt::format("found {}, but the workload has {} ranks", context.hosts, found));
  return job;
}

bool is_storage(const WorkloadContext& context, std::uint32_t host) {
  return std::binary_search(context.storage.begin(), context.storage.end(), host);
}

void place_each(const std::vector<Spec>& specs, const WorkloadContext& context, std::vector<Job>& jobs) {
  std::uint32_t behind = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto spec = specs[i].find("placement");
    Job& job = jobs[i];
    job.placement = read_placement(spec, specs[i],
                                   {job.workload->ranks(), context.all_hosts(), context.servers, context.seed, behind,
                                    context.storage, job.workload->storage_ranks()});
    if (spec) require_servers(*spec, *job.workload, job.placement, context.servers);
    behind = 0;
    for (std::uint32_t rank = 0; rank < job.placement.ranks(); ++rank)
      if (!is_storage(context, job.placement.host(rank).value()))
        behind = std::max(behind, job.placement.host(rank).value() + 1);
  }
}

/// One placement for the ranks of all jobs. Storage ranks of all jobs share the machine's storage hosts.
void place_all(const Spec& spec, const WorkloadContext& context, std::vector<Job>& jobs) {
  const auto on_storage = [&](const Job& job) { return context.storage.empty() ? 0 : job.workload->storage_ranks(); };
  PlacementRequest request{0, context.all_hosts(), context.servers, context.seed, 0, context.storage};
  for (const Job& job : jobs) {
    request.ranks += job.workload->ranks() - on_storage(job);
    if (on_storage(job) > context.storage.size())
      throw spec.error(fmt::format("'{}' has {} storage targets, but the machine has {} storage hosts", job.info.name,
                                   on_storage(job), context.storage.size()));
  }
  const Placement all = read_placement(spec, spec, request);
  std::uint32_t rank = 0;
  for (Job& job : jobs) {
    std::vector<std::uint32_t> hosts;
    for (std::uint32_t r = 0; r < job.workload->ranks() - on_storage(job); ++r)
      hosts.push_back(all.host(rank++).value());
    hosts.insert(hosts.end(), context.storage.begin(), context.storage.begin() + on_storage(job));
    job.placement = Placement::listed(std::move(hosts));
    require_servers(spec, *job.workload, job.placement, context.servers);
  }
}

/// Storage hosts serve all jobs.
void refuse_overlaps(const std::vector<Spec>& specs, const std::vector<Job>& jobs, const WorkloadContext& context) {
  std::vector<std::uint32_t> taken(context.all_hosts(), max_jobs);  // by which job that does not share
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    for (std::uint32_t rank = 0; rank < jobs[i].placement.ranks() && !jobs[i].share; ++rank) {
      if (is_storage(context, jobs[i].placement.host(rank).value())) continue;
      std::uint32_t& owner = taken[jobs[i].placement.host(rank).value()];
      if (owner != max_jobs)
        throw specs[i].error(fmt::format(
            "'{}' and '{}' both have a rank on host {}; place them on different hosts, or let one of them have 'share: "
            "true': its ranks may then be on hosts of others",
            jobs[owner].info.name, jobs[i].info.name, jobs[i].placement.host(rank).value()));
      owner = static_cast<std::uint32_t>(i);
    }
  }
}

std::vector<std::string> read_names(const std::vector<Spec>& specs) {
  std::vector<std::string> names;
  for (const Spec& spec : specs) {
    const auto given = spec.find("name");
    const std::string name = given ? given->text() : fmt::format("job{}", names.size());
    if (std::find(names.begin(), names.end(), name) != names.end())
      throw spec.error(fmt::format("two jobs have the name '{}'", name));
    names.push_back(name);
  }
  return names;
}

/// The names of jobs that are not left out.
std::set<std::string> read_only(const std::optional<Spec>& only, const std::vector<std::string>& names) {
  if (!only) return {names.begin(), names.end()};
  if (!only->is_sequence()) return {only->one_of(names)};
  std::set<std::string> wanted;
  for (const Spec& item : only->items()) wanted.insert(item.one_of(names));
  return wanted;
}

class JobsReader : public WorkloadReader {
 public:
  std::unique_ptr<Workload> read(const Spec& spec, const WorkloadContext& context) const override {
    static_cast<void>(spec.find("kind"));
    const Spec list = spec.at("jobs");
    const auto placement = spec.find("placement");
    const auto only = spec.find("only");
    const auto every = spec.find("background_check");
    spec.finish();
    const std::vector<Spec> specs = list.items();
    if (specs.empty() || specs.size() >= max_jobs)
      throw list.error(fmt::format("found {} jobs; expected 1 to {}", specs.size(), max_jobs - 1));
    const std::vector<std::string> names = read_names(specs);
    const std::set<std::string> wanted = read_only(only, names);
    std::vector<Job> jobs;
    std::uint32_t first_rank = 0;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      if (placement && specs[i].has("placement"))
        throw specs[i].at("placement").error("there is a placement for all jobs already; give one of them");
      const bool left_out = !wanted.contains(names[i]);
      jobs.push_back(read_job(specs[i], i, names[i], left_out, context_of_job(context, first_rank, left_out)));
      if (!left_out) first_rank += jobs.back().workload->ranks();
    }
    if (placement)
      place_all(*placement, context, jobs);
    else
      place_each(specs, context, jobs);
    refuse_overlaps(specs, jobs, context);
    // The remaining jobs keep their places and seeds.
    std::erase_if(jobs, [&](const Job& job) { return !wanted.contains(job.info.name); });
    return make(list, std::move(jobs), every);
  }

 private:
  /// Ranks of a job are numbered from 0 in it; one that is left out has no place.
  static WorkloadContext context_of_job(const WorkloadContext& context, std::uint32_t first_rank, bool left_out) {
    WorkloadContext result = context;
    if (left_out) result.channel_graphs = nullptr;
    if (result.channel_graphs)
      result.channel_graphs = [all = context.channel_graphs, first_rank](const Communicator& members) {
        return all(members.shifted(members.id(), first_rank));
      };
    return result;
  }
  static std::unique_ptr<Workload> make(const Spec& list, std::vector<Job> jobs, const std::optional<Spec>& every) {
    const auto background = static_cast<std::size_t>(
        std::count_if(jobs.begin(), jobs.end(), [](const Job& job) { return job.info.background; }));
    if (background == jobs.size())
      throw list.error("all jobs are in the background, so that the run would never end; expected one that is not");
    Time check = every ? every->time() : Time::from_us(100);
    if (check <= Time::from_ps(1)) throw every->error("found 0; expected a time such as 100 us");
    if (background == 0) check = Time::max();
    return std::make_unique<JobsWorkload>(std::move(jobs), check);
  }
};

const Registration<WorkloadReader, JobsReader> jobs_registration("jobs", "several workloads on one machine");

}  // namespace
}  // namespace weft
