// SPDX-License-Identifier: BSD-3-Clause
#include "daemon.hpp"

#include <rte_launch.h>

#include <fstream>

#include "base/log.hpp"
#include "base/units.hpp"
#include "control/change_list.hpp"

namespace mayfly {
namespace {

constexpr uint64_t kReclaimTimeoutNs = 10 * kNsPerSecond;
constexpr int kPortWaitMs = 10;
constexpr uint64_t kNetworkSliceNs = 500 * kNsPerUs;

std::string new_boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/uuid") >> id;
  return id;
}

PortSettings settings_of(const Config& config, const PortConfig& port) {
  PortSettings settings;
  settings.name = port.name;
  settings.devargs = port.devargs;
  settings.rx_queues = config.rx_queues(port);
  settings.tx_queues = config.workers.count;
  settings.rx_descriptors = port.rx_descriptors;
  settings.tx_descriptors = port.tx_descriptors;
  settings.mtu = port.mtu;
  settings.promiscuous = port.promiscuous;
  settings.existing = port.existing;
  return settings;
}

struct Launch {
  Worker* worker;
  const std::atomic<bool>* stop;
};

int run_worker(void* argument) {
  const std::unique_ptr<Launch> launch(static_cast<Launch*>(argument));
  launch->worker->run(*launch->stop);
  return 0;
}

}  // namespace

Daemon::~Daemon() {
  shut_down();
}

Status Daemon::start_environment() {
  auto plan =
      plan_cpus(config_.workers.count,
                std::vector<int>(config_.workers.cpus.begin(), config_.workers.cpus.end()), allowed_cpus());
  if (!plan) return std::unexpected(plan.error());
  cpus_ = std::move(*plan);
  if (!cpus_.warning.empty()) log(LogLevel::warning, "mayflyd", "{}", cpus_.warning);
  EalSettings settings;
  settings.hugepages = config_.eal.hugepages;
  settings.memory_bytes = config_.eal.memory_or_default();
  settings.worker_cpus = cpus_.worker_cpus;
  settings.control_cpus = cpus_.control_cpus;
  for (const PortConfig& port : config_.ports) settings.port_devargs.push_back(port.devargs);
  settings.extra_args = config_.eal.args;
  auto eal = Eal::start(settings);
  if (!eal) return std::unexpected(eal.error());
  eal_ = std::move(*eal);
  if (surroundings_.environment_started)
    if (auto done = surroundings_.environment_started(); !done) return done;
  auto mbufs = MbufPool::create("mbufs", {.count = config_.mbufs.count,
                                          .data_room_bytes = config_.mbufs.size_bytes,
                                          .cache = config_.mbufs.cache});
  if (!mbufs) return std::unexpected(mbufs.error());
  mbufs_ = std::move(*mbufs);
  return {};
}

Status Daemon::build_tables() {
  blocks_ = std::make_unique<BlockPools>();
  neighbours_ = std::make_unique<Neighbours>(
      *blocks_, NeighbourConfig{.limit = config_.limits.neighbours,
                                .interface_limit = config_.limits.neighbours_per_interface});
  auto interfaces =
      InterfaceTable::create(config_.limits.interfaces, config_.workers.count, *blocks_, *neighbours_);
  if (!interfaces) return std::unexpected(interfaces.error());
  interfaces_ = std::move(*interfaces);
  routes_ = std::make_unique<RouteTable>(config_.limits.routes);
  netnses_ = std::make_unique<NetnsTable>(*blocks_, *routes_, config_.limits.namespaces);
  addressing_ = std::make_unique<Addressing>(*interfaces_, *neighbours_, *blocks_);
  TeardownConfig teardown = config_.teardown;
  teardown.cpus = cpus_.control_cpus;
  reclaim_ = std::make_unique<Reclaim>(std::move(teardown));
  if (auto started = reclaim_->start(); !started) return started;
  port_thread_ = std::make_unique<PortThread>(mbufs_->get(), cpus_.control_cpus);
  if (auto started = port_thread_->start(); !started) return started;
  auto ports = PortTable::create(*port_thread_, *interfaces_, &netnses_->initial());
  if (!ports) return std::unexpected(ports.error());
  ports_ = std::move(*ports);
  dataplane_.reset(new Dataplane{.blocks = *blocks_,
                                 .reclaim = *reclaim_,
                                 .interfaces = *interfaces_,
                                 .routes = *routes_,
                                 .neighbours = *neighbours_,
                                 .addressing = *addressing_,
                                 .netnses = *netnses_,
                                 .ports = *ports_,
                                 .mbufs = &mbufs_->get(),
                                 .workers = {},
                                 .boot_id = new_boot_id(),
                                 .daemon_name = "mayflyd " MAYFLY_VERSION,
                                 .socket_path = config_.socket.path,
                                 .hugepages = config_.eal.hugepages,
                                 .adaptive_idle = config_.workers.idle.adaptive,
                                 .started_ns = monotonic_ns(),
                                 .drop_rates = {}});
  return {};
}

Status Daemon::start_workers() {
  // A quarter of the mbufs may wait for neighbours; the workers share it.
  const uint32_t parked_limit = std::max(1u, config_.mbufs.count / 4 / config_.workers.count);
  for (uint32_t index = 0; index < config_.workers.count; ++index) {
    workers_.push_back(std::make_unique<WorkerParts>());
    WorkerParts& parts = *workers_.back();
    parts.worker = std::make_unique<Worker>(
        index, WorkerSettings{.idle = config_.workers.idle.adaptive ? IdlePolicy::adaptive : IdlePolicy::poll,
                              .after_ns = config_.workers.idle.after_ns,
                              .sleep_ns = config_.workers.idle.sleep_ns,
                              .table = *interfaces_,
                              .queues = ports_->queues(index),
                              .to_control = parts.to_control,
                              .from_control = parts.from_control,
                              .pool = &mbufs_->get(),
                              .parked_limit = parked_limit,
                              .statistics = parts.statistics});
    dataplane_->workers.push_back({&parts.statistics, &parts.to_control, &parts.from_control});
  }
  workers_running_ = true;
  for (uint32_t index = 0; index < config_.workers.count; ++index) {
    auto launch = std::make_unique<Launch>(Launch{workers_[index]->worker.get(), &stop_workers_});
    if (rte_eal_remote_launch(run_worker, launch.get(), worker_lcore(index)) != 0)
      return fail(EBUSY, "worker {}: its lcore does not take it", index);
    launch.release();
  }
  return {};
}

Status Daemon::add_ports(const std::atomic<bool>& stop) {
  size_t waiting = 0;
  Status outcome;
  loop_->on_port_event([&](const PortEvent& event) {
    if (event.type != PortEvent::Type::added && event.type != PortEvent::Type::failed) return;
    --waiting;
    if (!event.result && outcome) outcome = event.result;
  });
  for (const PortConfig& port : config_.ports) {
    if (auto begun = ports_->begin_add(settings_of(config_, port)); !begun) return begun;
    ++waiting;
  }
  while (waiting > 0 && outcome && !stop.load(std::memory_order_relaxed)) loop_->round(kPortWaitMs);
  loop_->on_port_event(nullptr);
  return outcome;
}

// All of the network section, before any client can connect.
Status Daemon::make_network(const std::atomic<bool>& stop) {
  Configuration& configuration = dataplane_->configuration;
  configuration.settings = dump_settings(config_);
  configuration.file = config_.network.file;
  configuration.text = config_.text;
  ChangeList changes(*dataplane_, creations(config_.network), "configuration");
  while (!stop.load(std::memory_order_relaxed)) {
    const Operation::Progress progress = changes.step(Deadline::after_ns(kNetworkSliceNs));
    if (progress == Operation::Progress::done) return changes.outcome();
    loop_->round(progress == Operation::Progress::waiting ? 1 : 0);
  }
  return {};
}

void Daemon::describe_start() const {
  log(LogLevel::info, "mayflyd", "{} ready: ports {}, workers {} on CPUs {}, socket {}",
      dataplane_->daemon_name, ports_->all().size(), config_.workers.count, format_cpus(cpus_.worker_cpus),
      config_.socket.path);
}

// For the service manager, once a second.
std::string Daemon::describe_size() const {
  const auto counted = [](uint64_t count, std::string_view what) {
    return fmt::format("{} {}{}", format_count(count), what, count == 1 ? "" : "s");
  };
  return fmt::format("{}, {}, {}", counted(ports_->all().size(), "port"),
                     counted(config_.workers.count, "worker"), counted(interfaces_->live(), "interface"));
}

Status Daemon::run(const std::atomic<bool>& stop) {
  if (auto started = start_environment(); !started) return started;
  if (auto built = build_tables(); !built) return built;
  server_ = std::make_unique<ControlServer>(
      *dataplane_, SocketSettings{config_.socket.path, config_.socket.group, config_.socket.mode});
  loop_ = std::make_unique<ControlLoop>(*dataplane_, *server_);
  if (auto started = start_workers(); !started) return started;
  if (auto added = add_ports(stop); !added) return added;
  if (auto made = make_network(stop); !made) return made;
  if (!stop.load(std::memory_order_relaxed)) {
    if (auto opened = server_->open(); !opened) return opened;
    describe_start();
    service_.ready(describe_size());
    if (surroundings_.ready) surroundings_.ready();
    loop_->every_second([this] { service_.alive(describe_size()); });
    loop_->run(stop);
  }
  log(LogLevel::info, "mayflyd", "stopping");
  service_.stopping();
  return {};
}

void Daemon::stop_workers() {
  if (!workers_running_) return;
  stop_workers_.store(true);
  rte_eal_mp_wait_lcore();
  workers_running_ = false;
}

// With no worker left everything can go at once; what is not back afterwards was leaked, and the log says so.
void Daemon::retire_everything() {
  RetireList retired;
  for (Netns* netns = netnses_->next(1); netns != nullptr; netns = netnses_->next(netns->number + 1))
    netns->dying = netns->doomed = true;
  for (const bool children : {true, false}) {
    for (uint32_t ifindex = interfaces_->next(1); ifindex != kNoInterface;
         ifindex = interfaces_->next(ifindex + 1)) {
      // Stacked interfaces first, whatever the order of their numbers; a number retired here is skipped
      // later.
      std::vector<uint32_t> chain{ifindex};
      while (children && interfaces_->first_child(chain.back()) != kNoInterface)
        chain.push_back(interfaces_->first_child(chain.back()));
      if (children && chain.size() == 1 && interfaces_->record(ifindex).parent == kNoInterface) continue;
      const uint32_t victim = chain.back();
      addressing_->detach(victim, retired);
      interfaces_->retire(victim, retired);
      if (victim != ifindex) --ifindex;
    }
  }
  Rib& rib = netnses_->initial().rib;
  while (true) {
    const RouteCursor cursor(rib);
    const Route* route = cursor.current();
    if (route == nullptr) break;
    RouteMatch match;
    match.address = route->address;
    match.length = route->length;
    match.type = route->type;
    match.metric = route->metric;
    if (!rib.remove(match, nullptr)) break;
  }
  routes_->commit(retired);
  for (Netns* netns = netnses_->next(1); netns != nullptr; netns = netnses_->next(netns->number + 1)) {
    netnses_->unlink(*netns);
    netnses_->retire(*netns, retired);
  }
  dataplane_->commit(retired);
}

void Daemon::shut_down() {
  if (server_ != nullptr) server_->close();
  stop_workers();
  if (dataplane_ != nullptr) retire_everything();
  if (reclaim_ != nullptr) reclaim_->stop(kReclaimTimeoutNs);
  if (ports_ != nullptr)
    ports_->shutdown();
  else if (port_thread_ != nullptr)
    port_thread_->stop();
  if (mbufs_ != nullptr && mbufs_->in_use() > (port_thread_ != nullptr ? port_thread_->buffers_kept() : 0))
    log(LogLevel::warning, "mayflyd", "{} mbufs are not back in their pool", mbufs_->in_use());
  if (eal_ != nullptr && surroundings_.ports_closed) surroundings_.ports_closed();
  loop_.reset();
  server_.reset();
  dataplane_.reset();
  workers_.clear();
  ports_.reset();
  if (blocks_ != nullptr && blocks_->blocks_in_use() != 0)
    log(LogLevel::warning, "mayflyd", "{} RCU blocks are not back in their pools", blocks_->blocks_in_use());
}

}  // namespace mayfly
